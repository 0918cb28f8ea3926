"""`parse --protocol ncp` and `build` of what it prints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.netware.ncp_vectors import calls, reply_of, request_of
from tests.support.running import in_process

REQUEST = request_of(122, "015D0311 F4010000")
REPLY = reply_of("FA000000 01000000 F4010000")


def unit(packet: bytes) -> bytes:
    return bytes.fromhex(f"446D6454 {16 + len(packet):08X} 00000001 00001000") + packet


def parsed(data: bytes, *options: str) -> list[dict[str, Any]]:
    done = in_process("parse", "--protocol", "ncp", *options, data=data)
    assert (done.returncode, done.stderr) == (0, b"")
    return [json.loads(line) for line in done.stdout.splitlines()]


def built(value: dict[str, Any]) -> bytes:
    done = in_process("build", data=json.dumps(value).encode())
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def test_calls_there_and_back() -> None:
    for vector in list(calls())[::7]:
        options = ("--call", vector.name) if vector.direction == "reply" else ()
        (value,) = parsed(vector.packet, *options)
        assert (value["packet"], value["size"]) == (
            f"{vector.name} {vector.direction}", len(vector.packet),
        )  # fmt: skip
        assert built(value) == vector.packet


def test_a_request_as_json() -> None:
    (value,) = parsed(REQUEST)
    assert value["fields"]["NcpSubfunctionHeader"] == {"StructureLength": 9, "SubFunctionCode": 122}
    assert value["fields"]["NcpJobOfQueue"] == {"QueueID": 0x015D0311, "JobNumber": 500}
    assert "readings" not in value


def test_units_over_tcp_one_after_the_other() -> None:
    first, second = parsed(unit(REQUEST) + unit(bytes.fromhex("5555 08 02 00 01")))
    assert first["fields"]["NcpTcpRequest"]["Length"] == {"Size": 34, "Signed": False}
    assert (first["packet"], second["packet"]) == ("ReadQueueJobEntry request", "DestroyConnection request")
    assert built(first) + built(second) == unit(REQUEST) + unit(bytes.fromhex("5555 08 02 00 01"))


def test_a_reply_tells_its_data_only_by_its_call() -> None:
    (unknown,) = parsed(REPLY)
    assert (unknown["packet"], unknown["fields"]["TrailingData"]) == ("Ncp reply", REPLY[8:].hex())
    (known,) = parsed(REPLY, "--call", "GetQueueJobList")
    assert known["fields"]["NcpJobList"] == {
        "TotalJobs": 250, "JobCount": 1, "JobNumbers": [{"JobNumber": 500}],
    }  # fmt: skip
    assert built(unknown) == built(known) == REPLY
    told = {"call": "GetQueueJobList", "completion": "SUCCESSFUL"}  # as dissect does
    assert built({**known, "fields": {**told, **known["fields"]}}) == REPLY


def test_a_disputed_field_is_read_the_other_way() -> None:
    (value,) = parsed(REQUEST, "--reading", "job_number=high-low", "--reading", "queue_id=little")
    assert value["fields"]["NcpJobOfQueue"] == {"QueueID": 0x11035D01, "JobNumber": 0xF401}
    assert value["readings"] == {"queue_id": "little", "job_number": "high-low"}
    assert built(value) == REQUEST


def test_what_follows_from_the_rest_may_be_left_out() -> None:
    fields = {"NcpTcpRequest": {}, "NcpRequestHeader": {"SequenceNumber": 7, "ConnectionNumberLow": 2,
              "TaskNumber": 5, "ConnectionNumberHigh": 1},
              "NcpJobOfQueue": {"QueueID": 0x015D0311, "JobNumber": 500}}  # fmt: skip
    assert built({"packet": "ReadQueueJobEntry request", "fields": fields})[16:] == REQUEST
    wrong = {**fields, "NcpSubfunctionHeader": {"StructureLength": 99}}
    assert built({"packet": "ReadQueueJobEntry request", "fields": wrong})[23:25] == b"\0\x63"
    create = built({"packet": "CreateConnection request", "fields": {}})
    assert create == bytes.fromhex("1111 0000 0000 00")
    failed = {"packet": "ReadQueueJobEntry reply", "fields": {"NcpReplyHeader": {"CompletionCode": 0xD5}}}
    assert built(failed) == bytes.fromhex("3333 0000 0000 D5 00")
    busy = {"packet": "ReadQueueJobEntry reply", "fields": {"NcpReplyHeader": {"ReplyType": 0x9999}}}
    assert built(busy) == bytes.fromhex("9999 0000 0000 00 00")


@pytest.mark.parametrize(
    ("data", "options", "path", "offset"),
    [
        (b"", (), "NcpRequestHeader.RequestType", 0),
        (b"\x77\x77" + bytes(8), (), "NcpRequestHeader.RequestType", 0),
        (REQUEST[:-1], (), "NcpSubfunctionHeader.StructureLength", 7),
        (unit(REQUEST)[:-1], (), "NcpTcpRequest.Length", 33),
        (unit(REQUEST)[:6], (), "NcpTcpRequest.Length", 6),
        (unit(REPLY), (), "NcpRequestHeader.RequestType", 16),
        (unit(REQUEST) + b"more", (), "NcpTcpRequest.Signature", 34),
        (unit(REQUEST) + unit(REQUEST[:8]), (), "NcpSubfunctionHeader.StructureLength", 58),
        (REPLY[:-1], ("--call", "GetQueueJobList"), "NcpJobList.JobCount", 12),
    ],
    ids=[
        "nothing", "other type", "shorter than its length word", "unit that breaks off",
        "preamble that breaks off", "reply in a request", "no unit behind", "second unit", "reply",
    ],
)  # fmt: skip
def test_parse_tells_what_is_wrong_and_where(
    data: bytes, options: tuple[str, ...], path: str, offset: int
) -> None:
    done = in_process("parse", "--protocol", "ncp", *options, data=data)
    error = json.loads(done.stderr)
    assert (done.returncode, error["path"], error["offset"]) == (65, path, offset)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"packet": "Nope request", "fields": {}}, "packet"),
        ({"packet": "ReadQueueJobEntry request"}, "fields"),
        ({"packet": "ReadQueueJobEntry request", "fields": {"NcpJobOfQueue": 5}}, "NcpJobOfQueue"),
        ({"packet": "ReadQueueJobEntry request", "fields": {"NcpQueue": {}}}, "NcpQueue"),
        ({"packet": "ReadQueueJobEntry request", "fields": {"NcpJobOfQueue": {"JobNumber": -1}}},
         "NcpJobOfQueue.JobNumber"),
        ({"packet": "Ncp request", "fields": {"TrailingData": 7}}, "TrailingData"),
        ({"packet": "Ncp request", "fields": {"TrailingData": "x"}}, "TrailingData"),
        ({"packet": "Ncp reply", "fields": {}, "readings": {"charge": "middle"}}, "Readings.charge"),
        ({"packet": "Ncp reply", "fields": {}, "readings": {"charge": ["big"]}}, "Readings.charge"),
        ({"packet": "Ncp reply", "fields": {}, "readings": 5}, "readings"),
        ({"packet": "Ncp reply", "fields": {"NcpTcpReply": {"Length": 1 << 32}}}, "NcpTcpReply.Length"),
    ],
    ids=[
        "no call", "no fields", "no object", "data of another call", "number", "no text", "no hex",
        "no value", "list", "no readings", "length",
    ],
)  # fmt: skip
def test_build_tells_what_is_wrong(value: dict[str, Any], path: str) -> None:
    done = in_process("build", data=json.dumps(value).encode())
    assert (done.returncode, done.stdout) == (65, b"")
    assert json.loads(done.stderr)["path"] == path


@pytest.mark.parametrize(
    "arguments",
    [
        ("--protocol", "ncp", "--call", "Nope"),
        ("--protocol", "ncp", "--reading", "charge"),
        ("--protocol", "ncp", "--reading", "charge=middle"),
        ("--protocol", "session", "--call", "GetQueueJobList"),
        ("--reading", "charge=little"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    done = in_process("parse", *arguments, data=REQUEST)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr
