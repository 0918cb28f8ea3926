"""Remote read in captures: which connections are followed, what is an item, which answer is whose."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from uuid import UUID

import pytest

from msmqwire.analysis.dissection import Item, dissect, tracker
from msmqwire.analysis.dissection.rpc_calls import CALLS_MAX
from msmqwire.analysis.dissection.rpc_connection import FRAGMENTED_MAX
from msmqwire.analysis.dissection.rpc_finder import RpcFinder
from msmqwire.cli.parse import run
from msmqwire.remote_read.constants import Opnum
from msmqwire.remote_read.interface import INTERFACE, build_request, build_response
from msmqwire.rpc.constants import AuthLevel, AuthType, PduType
from msmqwire.rpc.handles import ContextHandle
from msmqwire.rpc.ndr import NDR20
from msmqwire.rpc.pdu import build_pdu, make_pdu, parse_pdu, pdu_from_json
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture import rpc_captures as r

CANONICAL = "DIRECT=OS:server\\PRIVATE$\\orders"
SESSION = [
    ("bind", None), ("bind_ack", None),
    ("R_OpenQueue request", 0), ("R_OpenQueue response", 0),
    ("R_StartReceive request", 1), ("R_StartReceive response", 1),
    ("R_EndReceive request", 2), ("R_EndReceive response", 2),
    ("R_StartReceive request", 3), ("R_StartReceive response", 3),
    ("R_StartReceive request", 4), ("R_StartReceive response", 4),
    ("R_EndReceive request", 5), ("R_EndReceive response", 5),
    ("R_StartReceive request", 6), ("R_StartReceive response", 6),
    ("R_StartReceive request", 7),
    ("R_OpenQueue request", 8), ("fault", 8),
    ("R_CloseQueue request", 9), ("R_CloseQueue response", 9),
]  # fmt: skip


def items(frames: Sequence[c.Frame], **options) -> list[Item]:
    found = list(dissect(io.BytesIO(c.pcap_bytes(frames)), **options))
    for item in found:
        json.dumps(item.to_json())
        assert len(item.raw) == (0 if item.kind == "Skipped" else item.size)
    return found


def shown(found: Iterable[Item]) -> list[tuple]:
    return [(item.kind, item.exchange) for item in found]


def accounted(talk: r.Talk, found: list[Item]) -> bool:
    """Whether each byte of both directions is in one item."""
    sizes = {True: 0, False: 0}
    for item in found:
        sizes[item.src == c.CLIENT] += item.size
    return all(sizes[side] == len(sent) for side, sent in talk.conversation.sent.items())


def raw_talk(*said: tuple[bool, bytes], port: int = 2103, mss: int = 1460) -> c.TcpConversation:
    """A conversation that says these bytes."""
    talk = c.TcpConversation((c.CLIENT, 50_001), (c.SERVER, port), mss=mss).handshake()
    for by_client, data in said:
        talk.send(data, by_client=by_client)
    return talk


BIND, BIND_ACK = r.Talk().pdus[:2]


@pytest.mark.requirement("MQRR-1.9-01", "MQRR-2.2-01")
@pytest.mark.parametrize("port", [2103, 2105, 2107, 49_321])
@pytest.mark.parametrize("mss", [1, 1460])
@pytest.mark.parametrize("syntax", r.SYNTAXES.values(), ids=r.SYNTAXES)
def test_calls_and_answers_by_name(syntax, mss, port):
    if mss == 1:  # each byte a segment: a short session, on one port
        if port != 49_321:
            return
        talk = r.Talk(syntax, mss=1, port=port)
        talk.open()
        expected = SESSION[:4]
    else:
        talk, expected = r.session(syntax, mss=mss, port=port), SESSION
    found = items(talk.close().frames)
    assert shown(found) == expected
    assert accounted(talk, found)


@pytest.mark.requirement("MQRR-2.2.5-01", "MQRR-2.2.6-11")
@pytest.mark.parametrize("syntax", r.SYNTAXES.values(), ids=r.SYNTAXES)
def test_messages_queues_and_what_an_item_prints(syntax):
    found = items(r.session(syntax).close().frames)
    whole, cut, large = (found[number].packet.message for number in (5, 9, 11))
    assert (whole.body, whole.cut) == (b"seven" * 20, False)
    assert whole.packet.MessagePropertiesHeader.Label == "order 7"
    assert (cut.body, cut.cut, cut.body_size) == (b"sevense", True, 100)
    assert (large.body, found[11].packet.fragments) == (bytes(40_000), 7)
    first = found[5].to_json()
    assert first["message"]["fields"]["MessagePropertiesHeader"]["Label"] == "order 7"
    assert first["message"]["packet"] == "RemoteReadMessage"
    assert (first["queue"], first["request_frame"]) == (CANONICAL, found[4].frames[-1])
    assert first["fields"]["results"]["pSequenceId"] == 77
    assert found[2].to_json()["fields"]["arguments"]["BuildNumber"] == 7601
    assert found[18].to_json()["fields"]["status"] == 0xC00E0003
    queues = {item.to_json().get("queue") for item in found[2:]}
    assert queues == {CANONICAL, "DIRECT=OS:server\\PRIVATE$\\missing"}


def test_a_handle_is_followed_across_connections_until_closed():
    first, second = r.Talk(), r.Talk(client_port=50_002)
    first.open()
    second.conversation.wait(1_000_000_000)
    second.receive()
    first.conversation.wait(2_000_000_000)
    first.close_queue()
    second.conversation.wait(3_000_000_000)
    second.ask(Opnum.R_PurgeQueue, {"phContext": r.HANDLE})
    found = items(c.merged(first.frames, second.frames))
    by_kind = {item.kind: item.packet.queue for item in found if item.kind.startswith("R_")}
    assert by_kind["R_StartReceive response"] == CANONICAL
    assert by_kind["R_PurgeQueue request"] == ""


@pytest.mark.parametrize("auth_type", [AuthType.WINNT, AuthType.GSS_NEGOTIATE])
@pytest.mark.parametrize("level", [AuthLevel.CONNECT, AuthLevel.PKT_INTEGRITY, AuthLevel.PKT_PRIVACY])
def test_the_user_is_shown_and_encrypted_stubs_are_reported(level, auth_type):
    talk = r.Talk(level=level, auth_type=auth_type)
    talk.open()
    talk.receive(h.user_message(properties=h.properties_header(label="large", body=bytes(20_000))))
    found = items(talk.close().frames)
    assert accounted(talk, found)
    calls = [item for item in found if item.kind.startswith("R_")]
    assert [item.kind for item in calls] == [kind for kind, _ in SESSION[2:6]]
    for item in calls:
        assert item.to_json()["security"] == {
            "auth_type": auth_type.name, "level": level.name, "user": r.USER,
        }  # fmt: skip
    fields = calls[3].to_json()["fields"]
    if level == AuthLevel.PKT_PRIVACY:
        assert fields["encrypted"] is True
        assert "results" not in fields
        assert fields["stub_data"]
    else:
        assert calls[3].packet.message.body == bytes(20_000)
    assert not any(item.findings for item in found)


@pytest.mark.parametrize("port", [2103, 4444])
def test_other_interfaces_are_shown_on_rpc_ports_only(port):
    talk = r.Talk(interface=r.OTHER_INTERFACE, port=port)
    call = talk.client.call(3, b"stub data")
    talk.exchange()
    talk.server.answer(call, b"results")
    talk.exchange()
    found = items(talk.close().frames)
    if port == 4444:
        assert found == []
        return
    assert shown(found) == [("bind", None), ("bind_ack", None), ("request", 0), ("response", 0)]
    assert found[2].to_json()["fields"]["opnum"] == 3
    assert bytes.fromhex(found[2].to_json()["fields"]["stub_data"]) == b"stub data"


def test_only_rpc_and_msmq_are_shown_on_the_ports_of_rpc():
    assert items(raw_talk((True, b"GET / HTTP/1.1\r\n\r\n" * 9)).frames) == []
    found = items(raw_talk((True, h.session_ack()), port=2105).frames)
    assert [item.kind for item in found] == ["SessionAck"]


def test_the_option_for_ports_takes_rpc_too():
    talk = r.Talk(interface=r.OTHER_INTERFACE, port=4444)
    found = items(talk.frames, ports=[4444])
    assert [item.kind for item in found] == ["bind", "bind_ack"]


def test_interleaved_fragments_of_answers_are_reassembled():
    talk = r.Talk()
    talk.open()
    large = h.user_message(properties=h.properties_header(label="large", body=bytes(20_000)))
    calls = [talk.ask(Opnum.R_StartReceive, r.receive_arguments(dwRequestId=n)) for n in (1, 2)]
    answers = []
    for call in calls:
        talk.server.answer(call, build_response(Opnum.R_StartReceive, r.received(large), NDR20))
        data = talk.server.data_to_send()
        answers.append([frame.data for frame in r.PduFramer().feed(data)])
    mixed = [pdu for pair in zip(*answers, strict=True) for pdu in pair]
    assert len(mixed) == 8
    for data in mixed:
        talk.conversation.send(data, by_client=False)
    found = items(talk.frames)[-2:]
    assert [(item.kind, item.exchange) for item in found] == [("R_StartReceive response", n) for n in (1, 2)]
    assert [item.packet.message.body for item in found] == [bytes(20_000)] * 2
    assert [item.raw for item in found] == [b"".join(pieces) for pieces in answers]


@pytest.mark.requirement("MQRR-3.1.4-01")
def test_an_unreadable_stub_is_malformed_and_the_next_is_read():
    talk = r.Talk()
    stub = bytearray(build_request(Opnum.R_OpenQueue, r.open_arguments(), NDR20))
    stub[4] = 9  # the discriminant of QUEUE_FORMAT
    talk.client.call(Opnum.R_OpenQueue, bytes(stub))
    talk.exchange()
    talk.open()
    found = items(talk.frames)
    bad = found[2]
    assert (bad.kind, bad.exchange, bad.error.path) == ("Malformed", 0, "R_OpenQueue.pQueueFormat")
    assert bad.error.offset == 24 + 4
    assert [finding.id for finding in bad.findings] == ["MQRR-3.1.4-01"]
    assert shown(found[3:]) == [("R_OpenQueue request", 1), ("R_OpenQueue response", 1)]


def test_a_message_that_can_not_be_read_is_malformed_at_its_byte():
    talk = r.Talk()
    data = bytearray(r.message_packet(r.MESSAGE, r.MessageState()))
    data[0] = 0x11  # the version
    talk.open()
    talk.call(Opnum.R_StartReceive, r.receive_arguments(), r.one_section(bytes(data)))
    talk.close_queue()
    found = items(talk.frames)
    bad = found[5]
    assert (bad.kind, bad.error.path) == ("Malformed", "BaseHeader.VersionNumber")
    assert bad.raw[bad.error.offset :].startswith(bytes(data))
    assert [item.kind for item in found[6:]] == ["R_CloseQueue request", "R_CloseQueue response"]


@pytest.mark.parametrize("change", ["type", "drep", "length"])
def test_an_unreadable_pdu_is_malformed_and_the_next_is_read(change):
    pdu = bytearray(build_pdu(make_pdu(PduType.CO_CANCEL, {}, header={"call_id": 7})))
    path = {"type": "PTYPE", "drep": "packed_drep", "length": "frag_length"}[change]
    if change == "type":
        pdu[2] = 99
    elif change == "drep":
        pdu[4] = 0x11  # EBCDIC
    else:
        pdu[8:10] = b"\x0f\0"
    found = items(raw_talk(BIND, BIND_ACK, (True, bytes(pdu) + BIND[1])).close().frames)
    assert [item.kind for item in found] == ["bind", "bind_ack", "Malformed", "bind"]
    assert found[2].error.path.endswith(path)
    assert found[2].raw == pdu


def test_a_hole_is_reported_and_the_next_pdu_is_read():
    talk = r.session()
    fragments = [
        number for number, frame in enumerate(talk.frames)
        if frame.segment and len(frame.segment.payload) == talk.conversation.mss
    ]  # fmt: skip
    lost = talk.frames[fragments[2]]
    frames = [frame for frame in talk.close().frames if frame is not lost]
    found = items(frames)
    assert accounted(talk, found)
    reasons = [item.reason for item in found if item.kind == "Skipped"]
    assert any(reason.startswith("not in the capture") for reason in reasons)
    assert set(SESSION[-2:]) <= set(shown(found))
    attacks = {finding.id for item in found for finding in item.findings if finding.severity == "ATTACK"}
    assert attacks == set()


def test_a_capture_that_begins_inside_a_connection():
    talk = r.session().close()
    found = items(talk.frames[8:])
    assert {item.kind for item in found} <= {"request", "response", "fault"}
    assert [finding for item in found for finding in item.findings] == []


def fragment(call_id: int, first: bool, last: bool, size: int = 16) -> bytes:
    flags = (1 if first else 0) | (2 if last else 0)
    fields = {"p_cont_id": 0, "opnum": 7, "stub_data": bytes(size)}
    return build_pdu(make_pdu(PduType.REQUEST, fields, header={"pfc_flags": flags, "call_id": call_id}))


def test_fragments_without_beginning_or_end():
    endless, later = fragment(5, True, False), fragment(6, False, True)
    again = fragment(5, True, True)
    talk = raw_talk(BIND, BIND_ACK, (True, endless + later + again + endless)).close()
    found = items(talk.frames)[2:]
    assert [(item.kind, item.raw) for item in found[:2]] == [("Malformed", later), ("Malformed", endless)]
    assert (found[2].raw, found[3].raw) == (again, endless)
    for number in (0, 1, 3):
        assert "ATTACK-RPC-FRAGMENT" in [finding.id for finding in found[number].findings]


def test_memory_for_fragments_that_never_end_is_bounded(monkeypatch):
    many = b"".join(fragment(number, True, False) for number in range(FRAGMENTED_MAX + 3))
    found = items(raw_talk(BIND, BIND_ACK, (True, many)).frames)[2:]
    assert [item.kind for item in found] == ["Malformed"] * (FRAGMENTED_MAX + 3)
    assert [item.reason or item.error.why for item in found[:3]] == [
        f"more than {FRAGMENTED_MAX} stubs at a time"
    ] * 3
    monkeypatch.setattr(tracker, "HELD_MAX", 100_000)
    endless = fragment(1, True, False, 5000) + fragment(1, False, False, 5000) * 60
    talk = raw_talk(BIND, BIND_ACK, (True, endless)).close()
    found = items(talk.frames)
    assert sum(item.size for item in found if item.src == c.CLIENT) == len(talk.sent[True])
    assert max(item.size for item in found) < 110_000


def test_calls_that_are_never_answered_are_forgotten():
    calls = b"".join(fragment(number, True, True) for number in range(CALLS_MAX + 2))
    answers = [
        build_pdu(make_pdu(PduType.RESPONSE, {"stub_data": b""}, header={"call_id": number}))
        for number in (1, CALLS_MAX + 1)
    ]
    found = items(raw_talk((True, calls), (False, b"".join(answers)), mss=60_000).frames, lint=False)
    assert [item.exchange for item in found[-2:]] == [None, CALLS_MAX + 1]


def test_memory_for_calls_is_bounded_and_given_back(monkeypatch):
    monkeypatch.setattr(tracker, "HELD_MAX", 1 << 20)
    calls = b"".join(fragment(number, True, True) for number in range(2000))
    answer = build_pdu(make_pdu(PduType.RESPONSE, {"stub_data": b""}, header={"call_id": 3}))
    talk = raw_talk((True, calls), (False, answer))
    dissection = dissect(io.BytesIO(c.pcap_bytes(talk.close().frames)), lint=False)
    assert list(dissection)[-1].exchange is None  # forgotten
    assert dissection.tracker.held == 0


def test_alter_context_adds_remote_read_to_another_interface():
    elements = [
        {
            "p_cont_id": 3, "n_transfer_syn": 1, "abstract_syntax": {"if_uuid": INTERFACE.uuid, "major": 1},
            "transfer_syntaxes": [{"if_uuid": UUID("8a885d04-1ceb-11c9-9fe8-08002b104860"), "major": 2}],
        }
    ]  # fmt: skip
    alter = build_pdu(make_pdu(PduType.ALTER_CONTEXT, {"n_context_elem": 1, "p_context_elem": elements}))
    result = {"result": 0, "reason": 0, "transfer_syntax": elements[0]["transfer_syntaxes"][0]}
    answer = build_pdu(
        make_pdu(PduType.ALTER_CONTEXT_RESP, {"n_results": 1, "p_results": [result]})
    )  # fmt: skip
    other = r.Talk(interface=r.OTHER_INTERFACE, port=4444)
    call = build_pdu(
        make_pdu(
            PduType.REQUEST,
            {"p_cont_id": 3, "opnum": 4,
             "stub_data": build_request(4, {"phContext": ContextHandle(0, UUID(int=5))}, NDR20)},
        )
    )  # fmt: skip
    said = [*other.pdus, (True, alter), (False, answer), (True, call)]
    found = items(raw_talk(*said, port=4444).frames)
    kinds = [item.kind for item in found if item.kind != "Skipped"]
    assert kinds == ["alter_context", "alter_context_resp", "R_CreateCursor request"]
    assert sum(item.size for item in found) == sum(len(data) for _, data in said)
    assert parse_pdu(found[-1].raw).record.opnum == 4


def test_parse_reads_pdus_from_bytes():
    data = b"".join(said for by_client, said in r.session().pdus if by_client)
    out, err = io.StringIO(), io.StringIO()
    assert run(data, out, err, kind="rpc") == 0
    objects = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [item["packet"] for item in objects] == ["bind", *["request"] * 10]
    assert b"".join(build_pdu(pdu_from_json(item)) for item in objects) == data
    assert run(data[:-1], io.StringIO(), err, kind="rpc") == 65
    at = len(data) - objects[-1]["size"]
    assert json.loads(err.getvalue())["offset"] == at + 8


def test_a_capture_in_pieces_gives_the_same_items():
    frames = r.session(mss=700).close().frames
    whole = [(item.kind, item.exchange, item.raw) for item in items(frames)]
    for size in (1, 7, 40):
        pieces = [io.BytesIO(c.pcap_bytes(frames[at : at + size])) for at in range(0, len(frames), size)]
        assert [(item.kind, item.exchange, item.raw) for item in dissect(pieces)] == whole


@pytest.mark.parametrize("size", [1, 3])
def test_errors_of_an_interrupted_pdu_stay_in_its_own_bytes(size: int) -> None:
    """The rest of its header is that of the next PDU: nothing in it may be named."""
    header = bytes.fromhex("05 00 0b 03 10 00 00 00 10 00 00 00 01 00 00 00")
    finder = RpcFinder()
    broken, *_ = finder.feed(header[:size] + header, 1, 0)
    assert (broken.data, broken.size) == (header[:size], size)
    assert broken.error is not None
    assert (broken.error.offset, broken.error.why) == (size, "16 bytes are needed")
