"""NCP in captures: which connections are followed, what is an item, which reply answers which request."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

import click
import pytest

from msmqwire.analysis.dissection import Item, Tracker, dissect, ncp_datagrams
from msmqwire.analysis.dissection.ncp_exchanges import UNANSWERED_MAX
from msmqwire.cli.captures.dissect import command
from msmqwire.errors import MalformedPacket
from msmqwire.ncp.headers import DESTROY_CONNECTION, NCP_PORT, NO_CONNECTION
from msmqwire.ncp.packets import make_reply, parse_request
from msmqwire.ncp.readings import Readings
from msmqwire.tables import read_capture
from spark_udfs.source.options import BadOption, Options
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.netware_captures import NcpTalk, connection_request, reply_unit, request_unit
from tests.support.paths import EXAMPLES

EXAMPLE = EXAMPLES / "netware.pcap"
QUEUE, JOB = 0x0500_000B, {"QueueID": 0x0500_000B, "JobNumber": 1}
READ_JOB = "ReadQueueJobEntry"
TIME = {"Year": 26, "Month": 3, "Day": 1, "Hour": 12, "Minute": 0, "Second": 1}
ENTRY = {"jobNumber": 1, "jobPosition": 1, "jobEntryTime": TIME, "jobDescription": "report", "jobType": 3}
WATCHDOG = bytes.fromhex("3e3e0100000000000000")
BUSY = b"\x99\x99"


def items(frames: Sequence[c.Frame], **options) -> list[Item]:
    found = list(dissect(io.BytesIO(c.pcap_bytes(frames)), **options))
    for item in found:
        json.dumps(item.to_json())
        assert len(item.raw) == (0 if item.kind == "Skipped" else item.size)
    return found


def shown(found: Sequence[Item]) -> list[tuple]:
    return [(item.kind, item.exchange) for item in found]


def conversation(*said: tuple[bool, bytes], port: int = NCP_PORT, mss: int = 1460) -> c.TcpConversation:
    talk = c.TcpConversation((c.CLIENT, 50_001), (c.SERVER, port), mss=mss).handshake()
    for by_client, data in said:
        talk.send(data, by_client=by_client)
    return talk


def talked(*calls: tuple) -> list[tuple[bool, bytes]]:
    """Units with their sender: a connection is made, then these calls."""
    talk = NcpTalk(7)
    for call in calls:
        talk.call(*call)
    return [
        (by_client, unit)
        for request, reply in talk.pairs
        for by_client, unit in ((True, request_unit(request)), (False, reply_unit(reply)))
    ]


def datagrams(*sent: tuple[bool, bytes], port: int = NCP_PORT) -> list[c.Frame]:
    frames = []
    for number, (by_client, payload) in enumerate(sent):
        ends = (c.CLIENT, 50_001), (c.SERVER, port)
        source, target = ends if by_client else ends[::-1]
        frames.append(c.Frame(c.START_NS + number, c.ethernet(c.udp_packet(payload, *source, *target))))
    return frames


READING = talked(*2 * [(READ_JOB, JOB, {"Job": ENTRY})])
NAMES = [
    ("CreateConnection request", 0), ("CreateConnection reply", 0),
    (f"{READ_JOB} request", 1), (f"{READ_JOB} reply", 1),
    (f"{READ_JOB} request", 2), (f"{READ_JOB} reply", 2),
]  # fmt: skip


def test_the_example_pairs_all_calls():
    found = list(dissect(EXAMPLE))
    assert len(found) == 76
    requests = {(item.stream, item.exchange): item for item in found if item.kind.endswith(" request")}
    replies = [item for item in found if item.kind.endswith(" reply")]
    assert len(requests) == len(replies) == 38
    for item in replies:
        request = requests[item.stream, item.exchange]
        assert item.kind.removesuffix("reply") == request.kind.removesuffix("request")
        assert item.request_frame == request.frames[-1]
        assert item.packet.call is request.packet.call
    assert not any(item.findings or item.error for item in found)
    refused = [item.to_json()["fields"] for item in replies if item.packet.packet.header.CompletionCode]
    assert [(fields["call"], fields["completion"]) for fields in refused] == [
        ("ChangeQueueJobPosition", "ERR_NO_Q_RIGHTS"),
        ("ServiceQueueJob", "ERR_NO_Q_JOB"),
    ]
    (entry, _) = [item for item in found if item.kind == f"{READ_JOB} reply"]
    fields = entry.to_json()["fields"]
    assert fields["NcpJob"]["Job"]["jobDescription"] == "Quarterly report"
    assert fields["NcpReplyHeader"]["CompletionCode"] == 0
    assert fields["completion"] == "SUCCESSFUL"


@pytest.mark.parametrize("mss", [1, 9, 1460])
@pytest.mark.parametrize("port, given", [(NCP_PORT, ()), (4444, ()), (18_010, (18_010,)), (1801, ())])
def test_ncp_is_found_on_every_port(port, given, mss):
    talk = conversation(*READING, port=port, mss=mss).close()
    found = items(talk.frames, ports=given)
    assert shown(found) == NAMES
    assert [item.raw for item in found] == [unit for _, unit in READING]


def test_other_protocols_on_its_port_and_other_bytes():
    message = h.user_message()
    assert shown(items(conversation((True, message)).frames)) == [("UserMessage", None)]
    for said in ((b"\x10\1", b"welcome"), (b"\x16\3\1\0\x9d\1" + bytes(156), b"D"), (b"\r\n", b"tNc")):
        found = items(conversation((True, said[0]), (False, said[1])).close().frames)
        assert [(item.kind, item.size, item.reason, item.findings) for item in found] == [
            ("Skipped", len(data), "no NCP begins here: neither DmdT nor tNcP", []) for data in said
        ]
    (begun, broken) = items(conversation((True, b"DmdT"), (False, b"tNcP" + bytes(4))).close().frames)
    assert [(item.kind, item.error.path) for item in (begun, broken)] == [
        ("Malformed", "NcpTcpRequest"), ("Malformed", "NcpTcpReply.Length")
    ]  # fmt: skip
    assert items(conversation((True, b"D"), (False, b"tNcPuzzle"), port=4444).close().frames) == []


def test_a_capture_that_begins_midstream_and_one_with_a_hole():
    for first in range(4, 31, 3):
        frames = conversation(*READING, mss=9).frames[first:]
        sizes = {True: 0, False: 0}
        for item in items(frames):
            sizes[item.src == c.CLIENT] += item.size
            assert item.kind in ("Skipped", "Ncp reply", *dict(NAMES))
            assert item.reason in ("", "the capture begins inside the stream")
        for by_client, size in sizes.items():
            sent = [f.segment.payload for f in frames if (f.segment.src[0] == c.CLIENT) is by_client]
            assert size == sum(map(len, sent))
    talk = c.TcpConversation((c.CLIENT, 50_001), (c.SERVER, NCP_PORT), mss=9).handshake()
    for by_client, data in READING:
        talk.send(data, by_client=by_client)
    lost = next(n for n, frame in enumerate(talk.frames) if b"repo" in frame.data)
    found = items(talk.frames[:lost] + talk.frames[lost + 1 :] + talk.close().frames[-3:])
    kinds = [item.kind for item in found]
    assert kinds.count("Malformed") == 1
    assert next(item.reason for item in found if item.kind == "Skipped").startswith("not in the capture")
    assert shown(found)[-1] == NAMES[-1]
    assert NAMES[-2] in shown(found)
    assert sum(item.size for item in found) == sum(map(len, talk.sent.values()))
    assert not [finding for item in found for finding in item.findings]  # missing bytes are not an attack


def test_repeated_packets_busy_servers_and_a_number_used_twice():
    talk = NcpTalk(7)
    request = talk.request(READ_JOB, JOB)
    reply = make_reply(request, {"Job": ENTRY})
    busy = reply_unit(make_reply(request, completion=0))
    busy = busy[:8] + BUSY + busy[10:]
    other = request_unit(replace(request, data=request.data.replace(JobNumber=2)))
    said = [
        (True, request_unit(request)), (False, busy), (True, request_unit(request)),
        (False, reply_unit(reply)), (False, reply_unit(reply)), (True, other),
    ]  # fmt: skip
    found = items(conversation(*said).frames)
    assert [item.exchange for item in found] == [0, 0, 0, 0, 0, 1]
    assert {item.request_frame for item in found if item.kind.endswith("reply")} == {4}
    assert [item.packet.is_busy for item in found] == [False, True, False, False, False, False]
    assert [item.packet.is_repeated for item in found] == [False, False, True, False, True, False]
    assert found[3].packet.data == found[4].packet.data
    assert [finding.id for item in found for finding in item.findings] == ["ATTACK-NCP-SEQUENCE"]
    assert found[5].findings[0].offset == 18


def test_signed_units_other_functions_and_types():
    talk = NcpTalk(7)
    request = talk.request(READ_JOB, JOB)
    signed = request_unit(request, PacketSignature=b"12345678")
    reply = reply_unit(make_reply(request, {"Job": ENTRY}), PacketSignature=b"abcdefgh")
    other = bytes.fromhex("2222 05 07 01 00 15 0102030405")  # function 21
    preamble = request_unit(connection_request(0x1111))[:16]
    unit = preamble[:4] + (16 + len(other)).to_bytes(4, "big") + preamble[8:] + other
    unknown = preamble + bytes.fromhex("1234 00 ff 00 ff 00")
    burst = preamble + bytes.fromhex("7777 00 ff 00 ff 00")
    found = items(conversation((True, signed), (False, reply), (True, unit + unknown + burst)).frames)
    assert shown(found) == [
        (f"{READ_JOB} request", 0), (f"{READ_JOB} reply", 0), ("Ncp request", 1), ("Malformed", None),
        ("Skipped", None),
    ]  # fmt: skip
    assert found[0].packet.preamble.PacketSignature == b"12345678"
    assert found[1].packet.start == 16
    assert found[2].to_json()["fields"]["TrailingData"] == "0102030405"
    assert (found[3].error.path, found[3].error.offset) == ("NcpRequestHeader.RequestType", 16)
    assert (found[4].reason, found[4].size) == ("NCP of packet burst, type 0x7777", 23)


MALFORMED = {
    "small unit": (4, "00000011", "NcpTcpRequest.Length", 4, "ATTACK-NCP-LENGTH"),
    "large unit": (4, "7fffffff", "NcpTcpRequest.Length", 4, "ATTACK-NCP-LENGTH"),
    "signature": (0, "446d6455", "NcpTcpRequest.Signature", 0, None),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_units_are_reported_and_the_next_is_found(case):
    at, patch, path, offset, finding = MALFORMED[case]
    first, second, (by_client, unit), *rest = READING
    broken = unit[:at] + bytes.fromhex(patch) + unit[at + len(patch) // 2 :]
    found = items(conversation(first, second, (by_client, broken), *rest).close().frames)[2:]
    assert [item.kind for item in found][-2:] == [f"{READ_JOB} request", f"{READ_JOB} reply"]
    malformed = next(item for item in found if item.src == c.CLIENT)
    assert (malformed.kind, malformed.raw) == ("Malformed", broken)
    assert (malformed.error.path, malformed.error.offset) == (path, offset)
    assert [found.id for found in malformed.findings] == ([finding] if finding else [])
    answered = next(item for item in found if item.src == c.SERVER)
    assert answered.kind == "Ncp reply"


def with_length(packet: bytes, change: int, behind: bytes = b"") -> bytes:
    """A request over UDP whose length word tells so many bytes more, and with other bytes behind it."""
    length = int.from_bytes(packet[7:9], "big") + change
    return packet[:7] + length.to_bytes(2, "big") + packet[9:] + behind


LENGTHS = [
    (-1, b"", ["ATTACK-NCP-LENGTH"], "8, but 9 bytes follow"),
    (1, b"", ["ATTACK-NCP-LENGTH"], "10, but 9 bytes follow"),
    (0, b"\0\1", ["ATTACK-NCP-LENGTH"], "9, but 11 bytes follow"),
    (0, bytes(9), [], ""),
    (2, bytes(2), ["ATTACK-NCP-TRAILING"], "2 bytes"),
]


@pytest.mark.parametrize("change, behind, ids, why", LENGTHS)
def test_a_request_is_read_whatever_its_length_word_tells(change, behind, ids, why):
    plain = [(by_client, unit[16 if by_client else 8 :]) for by_client, unit in READING[:4]]
    sent = with_length(plain[2][1], change, behind)
    asked, answered = items(datagrams(*plain[:2], (True, sent), plain[3]))[2:]
    assert (asked.kind, asked.raw, asked.packet.packet.to_bytes()) == (f"{READ_JOB} request", sent, sent)
    assert asked.packet.data == items(datagrams(*plain))[2].packet.data
    assert [(found.id, found.message) for found in asked.findings] == [(id, why) for id in ids]
    assert (answered.kind, answered.request_frame) == (f"{READ_JOB} reply", 3)
    with pytest.raises(MalformedPacket, match="bytes follow") if sent[8] != len(sent) - 9 else nullcontext():
        parse_request(sent)  # servers take nothing but what fits


@pytest.mark.parametrize("behind, ids", [(bytes(4), []), (b"\0\0\0\1", ["ATTACK-NCP-TRAILING"])])
def test_what_follows_a_watchdog_packet_is_kept(behind, ids):
    sent = WATCHDOG[:9] + b"Y" + behind
    (item,) = items(datagrams((True, sent)))
    assert (item.kind, item.raw, item.packet.packet.to_bytes()) == ("Watchdog reply", sent, sent)
    assert item.to_json()["fields"]["NcpWatchdog"]["TrailingData"] == behind.hex()
    assert [(found.id, found.offset) for found in item.findings] == [(id, 10) for id in ids]
    (whole,) = items(datagrams((True, sent[:10])))
    assert whole.packet.packet.TrailingData == b""
    assert whole.packet.packet.to_bytes() == sent[:10]


def test_a_datagram_on_its_port_is_ncp_by_its_type_only():
    query = bytes.fromhex("1234 0100 0001 0000 0000 0000 0161 0000 0100 01")
    assert items(datagrams((True, query), (False, query), (True, WATCHDOG[:1]), (True, b""))) == []
    found = items(datagrams((True, b"\x77\x77" + bytes(20)), (True, b"\x22\x22" + bytes(4))))
    assert [(item.kind, item.reason) for item in found] == [
        ("Skipped", "NCP of packet burst, type 0x7777"), ("Malformed", "")
    ]  # fmt: skip


@pytest.mark.parametrize("size", range(1, 6))  # of more a length comes about that can be
def test_a_unit_that_another_one_breaks_off(size):
    """What is said of it has nothing of the bytes of the other."""
    request = READING[2][1]
    found = items(conversation((True, request[:size]), (True, request)).frames)
    assert (found[-1].kind, found[-1].size) == ("ReadQueueJobEntry request", len(request))
    assert sum(item.size for item in found) == size + len(request)
    assert [item.error.offset for item in found if item.error] == ([4] if size >= 4 else [])


def test_a_unit_and_a_list_that_end_early():
    found = items(conversation((True, READING[2][1][:-3])).close().frames)
    assert [(f.id, f.path, f.offset) for f in found[0].findings] == [
        ("ATTACK-TRUNCATED", "NcpTcpRequest.Length", 4)
    ]
    said = talked(
        ("GetQueueJobList", {"QueueID": QUEUE, "StartPosition": 1}, {"JobNumbers": [{"JobNumber": 1}]})
    )
    reply = said[3][1]
    said[3] = False, reply[:20] + (2).to_bytes(4, "little") + reply[24:]
    found = items(conversation(*said).close().frames)
    assert (found[3].kind, found[3].exchange) == ("Malformed", 1)
    assert [(f.id, f.path, f.offset) for f in found[3].findings] == [
        ("ATTACK-NCP-COUNT", "NcpJobList.JobCount", 20)
    ]


@pytest.mark.parametrize("port, given", [(NCP_PORT, ()), (18_010, (18_010,))])
def test_over_udp_a_datagram_is_a_packet(port, given):
    plain = [(by_client, unit[16 if by_client else 8 :]) for by_client, unit in READING[:4]]
    short = connection_request(DESTROY_CONNECTION, 7, 9).to_bytes()[:6]
    alive = WATCHDOG[:9]
    sent = [*plain, (True, short), (False, alive + b"?"), (True, alive + b"Y"), (True, plain[2][1][:-1])]
    found = items(datagrams(*sent, port=port), ports=given)
    assert shown(found) == [
        *NAMES[:4], ("DestroyConnection request", 2), ("Watchdog request", None), ("Watchdog reply", None),
        ("Malformed", 3),
    ]  # fmt: skip
    assert {(item.transport, item.stream) for item in found} == {("udp", None)}
    assert [item.raw for item in found] == [data for _, data in sent]
    assert found[3].packet.data.Job.jobDescription == "report"
    assert (found[7].error.path, found[7].error.offset) == ("NcpJobOfQueue.JobNumber", 17)
    assert not items(datagrams(*sent, port=4444), ports=given)


def test_what_waits_for_replies_is_bounded(monkeypatch):
    talk = NcpTalk(7)
    requests = [talk.request("WriteFile", {"Data": bytes(2000)}) for _ in range(200)]
    tracker = Tracker(ports=(), lint=True, locate=lambda frames: ("", frames))
    frames = conversation(*((True, request_unit(request)) for request in requests)).frames
    from msmqwire.capture import IpDecoder, open_records

    decoder = IpDecoder()
    for record in open_records(io.BytesIO(c.pcap_bytes(frames))):
        for datagram in decoder.feed(record):
            for _ in tracker.feed(datagram):
                pass
    assert 0 < tracker.held <= 1024 * UNANSWERED_MAX
    monkeypatch.setattr(ncp_datagrams, "FLOWS_MAX", 3)
    answer = READING[3][1][8:]
    sent = []
    for number in range(5):
        sent += (c.udp_packet(READING[2][1][16:], c.CLIENT, 1000 + number, c.SERVER, NCP_PORT),)
    sent += [c.udp_packet(answer, c.SERVER, NCP_PORT, c.CLIENT, port) for port in (1000, 1004)]
    frames = [c.Frame(c.START_NS + n, c.ethernet(packet)) for n, packet in enumerate(sent)]
    assert [item.kind for item in items(frames)][-2:] == ["Ncp reply", f"{READ_JOB} reply"]


def test_a_reading_changes_what_is_read():
    frames = conversation(*talked((READ_JOB, {**JOB, "JobNumber": 0x0100_0000}, {"Job": ENTRY}))).frames
    usual, other = (items(frames, ncp_readings=Readings(job_number=order)) for order in ("little", "big"))
    assert [item.packet.data.get("JobNumber") for item in (usual[2], other[2])] == [0x0100_0000, 1]
    assert other[3].packet.data.Job.jobNumber == 0x0100_0000
    assert [item.raw for item in usual] == [item.raw for item in other]
    options = Options.parse({"path": "-", "readings": "job_number=big, label_null=false"})
    assert (options.ncp_readings, options.readings.label_null) == (Readings(job_number="big"), False)
    with pytest.raises(BadOption, match="middle"):
        Options.parse({"path": "-", "readings": "job_number=middle"})


def test_columns_of_jobs():
    where = [("kind", "in", ["CreateQueueJobAndFile request", "CreateQueueJobAndFile reply"])]
    names = [
        "call", "completion_code", "completion", "queue_id", "job_number", "job_type", "job_flags",
        "client_id", "target_execution_time", "job_entry_time", "job_file_name", "job_description",
    ]  # fmt: skip
    asked, answered = read_capture(EXAMPLE, columns=names, where=where).to_pylist()
    assert asked.pop("call") == answered.pop("call") == "CreateQueueJobAndFile"
    assert {name: value for name, value in asked.items() if value is not None} == {
        "queue_id": QUEUE, "job_type": 1, "job_flags": 0x18, "job_description": "Quarterly report",
    }  # fmt: skip
    assert str(answered.pop("job_entry_time")) == "2026-03-01 12:00:01+00:00"
    assert answered == {
        "completion_code": 0, "completion": "SUCCESSFUL", "queue_id": QUEUE, "job_number": 1, "job_type": 1,
        "job_flags": 0x38, "client_id": 0x0200_0007, "target_execution_time": None,
        "job_file_name": "Q$000B.001", "job_description": "Quarterly report",
    }  # fmt: skip
    objects = read_capture(
        EXAMPLE, columns=["object_name", "object_type"], where=[("call", "==", "CreateQueue")]
    )
    assert objects.to_pylist() == 2 * [{"object_name": "REPORTS", "object_type": 3}]


def test_the_command_shows_them(capfd):
    with pytest.raises(click.exceptions.Exit) as ended:
        command([str(EXAMPLE)], kind=["ServiceQueueJob reply"], reading=["job_number=big"])
    assert ended.value.exit_code == 0
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[1].endswith("#8 queue 0500000b job 16777216 position 1")
    assert lines[2].endswith("#12 ERR_NO_Q_JOB queue 0500000b")
    with pytest.raises(click.BadParameter, match="middle"):
        command([str(EXAMPLE)], reading=["job_number=middle"])


def test_no_connection_left():
    request = connection_request(0x1111)
    reply = make_reply(request, completion=0xF9).to_bytes()
    found = items(datagrams((True, request.to_bytes()), (False, reply)))
    assert found[1].packet.completion == "NO_FREE_CONNECTION_SLOTS"
    assert found[1].packet.packet.connection == NO_CONNECTION
    assert shown(found) == NAMES[:2]
