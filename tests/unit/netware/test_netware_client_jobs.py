"""Jobs, names of types and addresses as the client of NetWare queues reads and writes them."""

from __future__ import annotations

import json
import struct
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.ncp.job_structures import NEW_JOB, NEW_JOB_HEAD
from msmqwire.ncp.packets import CALLS_BY_NAME
from msmqwire.ncp.type_names import OBJECT_TYPES, QUEUE_TYPES, type_number, type_word
from msmqwire.netware import connect
from msmqwire.netware.client import parse_address
from msmqwire.netware.client.job import JobEntry, description_bytes, entry_of, request_fields
from msmqwire.netware.client.refusals import code_name, refusal
from msmqwire.netware.model.job import JobRequest

NOW = datetime(2026, 11, 23, 8, 30, tzinfo=UTC)


def structure(**spans: bytes) -> bytes:
    """280 bytes with these at the offsets of the newer structure."""
    data = bytearray(280)
    data[22:26] = b"\xff" * 4
    data[26:32] = b"\xff" * 6
    for name, value in spans.items():
        offset = int(name.removeprefix("at_"))
        data[offset : offset + len(value)] = value
    return bytes(data)


def entry(**spans: bytes) -> JobEntry:
    return entry_of(NEW_JOB.read(structure(**spans))[0], NOW)


def test_every_field_is_read_at_its_place() -> None:
    job = entry(
        at_10=struct.pack("<II", 300, 2),
        at_18=bytes.fromhex("0a0b0c01 0a0b0c03"),
        at_26=bytes((99, 12, 31, 24, 0, 0)) + bytes((26, 11, 23, 8, 30, 15)),
        at_38=bytes.fromhex("01000200"),
        at_42=b"\x01\x02" + b"\x03\x01" + b"\xd9\x00",
        at_48=b"\x0aQ$0300.001",
        at_66=struct.pack("<II", 301, 3) + bytes.fromhex("0a0b0c04"),
        at_78=b"caf\x82\0",
        at_128=bytes(range(152)),
    )
    assert job.to_json() == {
        "job": 0x00020001,
        "job_position": 0x0103,
        "state": "in service",
        "job_type": 0x0102,
        "job_description": "caf\xe9",
        "job_control_flags": ["NWCF_SERVICE_AUTO_START", "NWCF_SERVICE_RESTART", "NWCF_USER_HOLD",
                              "NWCF_OPERATOR_HOLD"],
        "target_server_id": "0A0B0C03",
        "target_execution_time": "2000-01-01T00:00:00",
        "job_entry_time": "2026-11-23T08:30:15",
        "client_station": 300,
        "client_task": 2,
        "client_id": "0A0B0C01",
        "job_file_name": "Q$0300.001",
        "servicing_server_station": 301,
        "servicing_server_task_number": 3,
        "servicing_server_id_number": "0A0B0C04",
        "queue_record": bytes(range(152)).hex(),
    }  # fmt: skip


@pytest.mark.requirement("QMS-jobfields-35")
def test_what_means_nothing_is_left_out() -> None:
    job = entry(at_66=b"\xff" * 8).to_json()
    empty = ("target_server_id", "target_execution_time", "job_entry_time", "servicing_server_station",
             "servicing_server_task_number", "servicing_server_id_number")  # fmt: skip
    assert {job[name] for name in empty} == {None}


@pytest.mark.requirement("QMS-flags-12", "QMS-jobfields-37")
@pytest.mark.parametrize(
    ("flags", "server", "time", "state"),
    [
        (0x20 | 0xC0, 5, True, "open"),
        (0x40 | 0x80, 5, True, "in service"),
        (0x40, 0, True, "held"),
        (0x80, 0, True, "held"),
        (0x18 | 0x07, 0, True, "waiting"),
        (0x18 | 0x07, 0, False, "ready"),
    ],
)
def test_the_state_follows_from_the_fields(flags: int, server: int, time: bool, state: str) -> None:
    later = (26, 11, 23, 8, 30, 1) if time else (26, 11, 23, 8, 30, 0)
    job = entry(at_26=bytes(later), at_46=bytes((flags, 0)), at_74=struct.pack(">I", server))
    assert job.to_json()["state"] == state


@pytest.mark.parametrize(
    "name", [b"\x0aQ$0300.001\xff\xff\xff", b"Q$0300.001\0\xff\xff\xff", b"\x0aQ$0300.001"]
)
def test_a_file_name_is_counted_or_ends_on_a_null(name: bytes) -> None:
    assert entry(at_48=name).job_file_name == "Q$0300.001"


def test_a_target_time_that_is_none() -> None:
    with pytest.raises(MalformedPacket, match="targetExecutionTime"):
        entry(at_26=bytes((26, 13, 1, 0, 0, 0)))


@given(st.binary(min_size=280, max_size=280), st.booleans())
def test_any_bytes_of_a_job(data: bytes, valid: bool) -> None:
    data = data[:26] + b"\xff" * 6 + data[32:] if valid else data
    for schema, size in ((NEW_JOB, 280), (NEW_JOB_HEAD, 78)):
        record = schema.read(data[:size])[0]
        try:
            shown = entry_of(record, NOW).to_json()
        except MalformedPacket:
            assert not valid
        else:
            json.dumps(shown)
            assert "\0" not in shown["job_description"] + shown["job_file_name"]


def test_a_request_has_the_fields_of_an_application_only() -> None:
    request = JobRequest(
        target_server_id=0x0A0B0C03,
        target_execution_time=bytes((30, 1, 2, 3, 4, 5)),
        job_type=7,
        job_control_flags=0x50,
        job_description=description_bytes("caf\xe9"),
        queue_record=b"\x01" * 152,
    )
    expected = structure(
        at_22=bytes.fromhex("0a0b0c03"),
        at_26=bytes((30, 1, 2, 3, 4, 5)),
        at_32=b"\xff" * 6,
        at_42=b"\x00\x07",
        at_46=b"\x50\x00",
        at_78=b"caf\x82",
        at_128=b"\x01" * 152,
    )
    assert NEW_JOB.build(request_fields(request)) == expected


@pytest.mark.requirement("QMS-jobfields-38")
@pytest.mark.parametrize("text", ["x" * 50, "a\0b", "\N{SNOWMAN}"])
def test_a_description_that_does_not_fit(text: str) -> None:
    with pytest.raises(InvalidValue):
        description_bytes(text)
    assert description_bytes("x" * 49) == b"x" * 49 + b"\0"


@pytest.mark.requirement("QMS-createq-03", "QMS-qservers-07", "QMS-createqs-02")
def test_the_words_of_types() -> None:
    assert {word: int(number) for word, number in QUEUE_TYPES.items()} == {
        "print": 3,
        "archive": 8,
        "job": 10,
    }
    servers = {"print-server": 7, "job-server": 5, "archive-server": 9}
    assert {word: type_number(word) for word in servers} == servers
    assert {type_number(type_word(number)) for number in OBJECT_TYPES.values()} == set(OBJECT_TYPES.values())
    assert (type_number("0x0102"), type_number(258), type_word(258)) == (258, 258, "0x0102")


@pytest.mark.parametrize("text", ["printer", "", "0", 0, -1, "0xFFFF", 0x10000])
def test_not_a_type(text: str | int) -> None:
    with pytest.raises(InvalidValue, match="is not a type"):
        type_number(text)


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("10.0.0.5", ("10.0.0.5", 524)),
        ("10.0.0.5:1524", ("10.0.0.5", 1524)),
        ("[::1]:1524", ("::1", 1524)),
        ("[::1]", ("::1", 524)),
        ("fe80::1", ("fe80::1", 524)),
    ],
)
def test_addresses(text: str, endpoint: tuple[str, int]) -> None:
    assert parse_address(text) == endpoint


@pytest.mark.parametrize("text", ["", ":524", "host:", "host:0", "host:65536", "host:5 24", "host:\u0665"])
def test_not_an_address(text: str) -> None:
    with pytest.raises(InvalidValue, match="ADDRESS:PORT"):
        parse_address(text)


def test_arguments_of_connect() -> None:
    for path, options in (
        ("name", {"name": ""}),
        ("type", {"name": "A", "type": "x"}),
        ("timeout", {"name": "A", "timeout": 0}),
    ):
        with pytest.raises(InvalidValue) as caught:
            connect("h", **options)  # type: ignore[arg-type]
        assert caught.value.path == path


def test_codes_have_the_name_that_they_have_in_the_call() -> None:
    assert code_name(0xF9, None) == "NO_FREE_CONNECTION_SLOTS"
    assert code_name(0xFB, CALLS_BY_NAME["ServiceQueueJob"]) == "NCP_NOT_SUPPORTED"
    assert code_name(0xFB, CALLS_BY_NAME["ReadPropertyValue"]) == "NO_SUCH_PROPERTY"
    assert code_name(0xD6, CALLS_BY_NAME["RemoveJobFromQueue"]) == "ERR_NO_Q_JOB_RIGHTS"
    assert code_name(0xD6, CALLS_BY_NAME["LoginObject"]) == ""
    assert str(refusal(0xDE, CALLS_BY_NAME["LoginObject"])).endswith("completion code 0xDE")
