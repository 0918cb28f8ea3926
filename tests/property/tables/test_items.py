"""Items and findings by the compiled scan are those of the generic reader, for any capture."""

from __future__ import annotations

import pickle
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from unittest import mock

import hypothesis.strategies as st
import pytest
from hypothesis import given

from msmqwire.analysis.dissection import Dissection, Item, dissect
from msmqwire.json_text import dumps
from msmqwire.packets import build
from msmqwire.tables import item_reader, row_judge
from msmqwire.tables.item_reader import ItemReader
from msmqwire.tables.scanning import row_buffer
from tests.property.tables.test_columnar import SIZES, captures, file_of
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.both_readers import streams
from tests.support.paths import EXAMPLES, ROOT

SMALL: dict[str, int] = {"CHUNK": 700, "ARENA": 300, "ROWS": 3}
FIELDS = [name for name in Item.__match_args__ if name not in ("error", "examiner")]


def read(files: list[bytes], *, lint: bool = True, only_findings: bool = False, **sizes: int) -> Any:
    """The items by the compiled scan, and their reader."""
    dissection = dissect(streams(files), lint=lint)
    with ExitStack() as stack:
        for name, size in sizes.items():
            stack.enter_context(mock.patch.object(row_buffer, name, size))
        stack.enter_context(mock.patch.object(item_reader, "_FRAMES", sizes.get("ROWS", 1)))
        stack.enter_context(mock.patch.object(row_judge, "_BEFORE", sizes.get("ROWS", 100)))
        stack.enter_context(mock.patch.object(row_judge, "_SESSIONS", 1))
        reader = ItemReader(dissection, only_findings=only_findings)
    return dissection, reader, list(reader.items())


def generic(files: list[bytes], *, lint: bool = True) -> tuple[Dissection, list[Item]]:
    dissection = dissect(streams(files), lint=lint)
    dissection.warns = False  # the counts are compared
    return dissection, list(dissection)


def assert_same(files: list[bytes], **sizes: int) -> Any:
    """Check that both readers return the same items and counts; return the judge."""
    by_items, expected = generic(files)
    by_scan, reader, actual = read(files, **sizes)
    assert len(actual) == len(expected)
    for here, there in zip(actual, expected, strict=True):
        for name in FIELDS:
            assert getattr(here, name) == getattr(there, name), (name, there.kind, there.frames)
        assert str(here.error) == str(there.error)
    assert [str(error) for error in by_scan.errors] == [str(error) for error in by_items.errors]
    assert by_scan.counters() == by_items.counters()
    assert by_scan.frames_not_read == by_items.frames_not_read
    assert by_scan.records == by_items.records
    found = [(item.frames, item.findings) for item in expected if item.findings]
    assert [(item.frames, item.findings) for item in read(files, only_findings=True, **sizes)[2]] == found
    return reader.judge


@given(frames=captures(), sizes=SIZES, data=st.data())
def test_any_capture_gives_the_same_items(frames: list[c.Frame], sizes: dict[str, int], data: Any) -> None:
    assert_same([file_of(data, frames)], **sizes)


@given(frames=captures(), cut=st.integers(0, 200), sizes=SIZES)
def test_captures_in_two_files_give_the_same_items(
    frames: list[c.Frame], cut: int, sizes: dict[str, int]
) -> None:
    assert_same([c.pcap_bytes(part) for part in (frames[:cut], frames[cut:])], **sizes)


# -- sessions ---------------------------------------------------------------------------------------------

FEW = st.sampled_from([0, 0, 1, 1, 2, 3, 5, 0x7FFF, 0xFFFF])
GUIDS = st.sampled_from(["00000000-0000-0000-0000-000000000000", *(f"{n}" * 8 + "-1-1-1-1" for n in "12")])
TIMES = st.sampled_from([500, 20_000, 120_000])


def guid(number: int) -> str:
    return f"0000000{number}-0000-0000-0000-00000000000{number}"


@st.composite
def session_headers(draw: st.DrawFn) -> dict[str, Any]:
    """A SessionHeader with small numbers, so that some are right."""
    return {
        "AckSequenceNumber": draw(FEW), "RecoverableMsgAckSeqNumber": draw(FEW),
        "RecoverableMsgAckFlags": draw(st.sampled_from([0, 1, 1, 2, 3, 0x8000_0001])),
        "UserMsgSequenceNumber": draw(FEW), "RecoverableMsgSeqNumber": draw(FEW),
        "WindowSize": draw(st.sampled_from([0, 1, 1, 2, 64])),
    }  # fmt: skip


@st.composite
def opening(draw: st.DrawFn) -> dict[str, Any]:
    refused = {"Flags": {"CS": draw(st.sampled_from([0, 0, 0, 1]))}}
    if draw(st.booleans()):
        header = {
            "ClientGuid": guid(draw(st.integers(0, 2))), "ServerGuid": guid(draw(st.integers(0, 2))),
            "TimeStamp": draw(st.integers(0, 1)), "OperatingSystem": {"SE": draw(st.integers(0, 1))},
            "Padding": draw(st.sampled_from(["5a" * 512, "00" * 512])),
        }  # fmt: skip
        fields = {"InternalHeader": refused, "EstablishConnectionHeader": header}
        return {"packet": "EstablishConnection", "fields": fields}
    header = {
        "RecoverableAckTimeout": draw(TIMES), "AckTimeout": draw(TIMES),
        "WindowSize": draw(st.integers(0, 2)),
    }  # fmt: skip
    fields = {"InternalHeader": refused, "ConnectionParametersHeader": header}
    return {"packet": "ConnectionParameters", "fields": fields}


WORDS = st.sampled_from([0, 1, 0, 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF])
"""Small numbers, and those that are negative where the sign is mistaken."""


@st.composite
def sequence(draw: st.DrawFn) -> dict[str, Any]:
    return {"TimeStamp": draw(WORDS), "Ordinal": draw(WORDS)}


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    """A message, or an acknowledgement of a transactional one."""
    names = (
        {"DirectFormatName": "TCP:10.0.0.2\\private$\\q"}, {"PrivateQueueIdentifier": 4},
        {"PrivateQueueIdentifier": 7}, {"PublicQueueIdentifier": guid(1)},
        {"DirectFormatName": "TCP:10.0.0.2\\PRIVATE$\\order_queue$"},
    )  # fmt: skip
    user: dict[str, Any] = {
        "SourceQueueManager": guid(draw(st.integers(0, 2))), "MessageID": draw(WORDS),
        "QueueManagerAddress": guid(draw(st.integers(0, 1))),
        "DestinationQueue": draw(st.sampled_from(names)),
        "Flags": {"DM": draw(st.integers(0, 2)), "RC": draw(st.sampled_from([0, 0, 1, 0x1E]))},
    }  # fmt: skip
    fields: dict[str, Any] = {"UserHeader": user}
    if draw(st.booleans()):
        fields["SessionHeader"] = draw(session_headers())
    kind = draw(st.sampled_from(["UserMessage", "UserMessage", "UserMessage", "OrderAck", "FinalAck"]))
    if kind == "UserMessage":
        fields["MessagePropertiesHeader"] = {
            "Label": draw(st.sampled_from(["", "label"])),
            "MessageClass": draw(st.sampled_from([0, 0, 0xFF, 0x4000, 0x1E00])),
            "MessageBody": draw(BODIES).hex(), "BodyType": draw(st.sampled_from([0, 8, 12, 0x300])),
        }  # fmt: skip
        if draw(st.booleans()):
            fields["TransactionHeader"] = {
                "TxSequenceID": draw(sequence()), "TxSequenceNumber": draw(st.integers(0, 3)),
                "PreviousTxSequenceNumber": draw(st.integers(0, 3)),
            }  # fmt: skip
        if draw(st.integers(0, 4)) == 0:
            fields["SecurityHeader"] = {"SecurityData": {"SecurityID": draw(st.sampled_from(IDS))}}
        return {"packet": kind, "fields": fields}
    body = {"TxSequenceID": draw(sequence()), "TxSequenceNumber": draw(st.integers(0, 3))}
    return {"packet": kind, "fields": {**fields, f"{kind}Body": body}}


IDS = ["", "00", "010100000000000512000000", "0102000000000005120000000000000000", "11" * 16]
_UTF_16 = '\ufeff<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><a/>'.encode("utf-16-le")
BODIES = st.sampled_from(
    [
        b"", b"body", b"<a/>", b"<?xml version='1.0'?>\r\n<a/>", b"<!-- -> -->\n<!DOCTYPE a><a/>", _UTF_16,
        b"<?><!DOCTYPE a [", b"<!--><!DOCTYPE a [", b"<!doctype html>",
        b"\xef\xbb\xbf <!DOCTYPE b SYSTEM 'x'>",
        b"\0" + bytes(8) + b"\1" + bytes(7) + b"\x0b", b"<", b"<!DOCTYPE",
    ]
)  # fmt: skip
acks = st.builds(
    lambda header: {"packet": "SessionAck", "fields": {"SessionHeader": header}}, session_headers()
)
EDITED = st.sampled_from([0, 0, 0, 1, 2])


@st.composite
def sessions(draw: st.DrawFn) -> list[c.Frame]:
    """A session whose packets are right, or nearly so, with holes, pauses and bytes that are changed."""
    talk = c.TcpConversation(
        (c.CLIENT, 50_000 + draw(st.integers(0, 1))),
        (c.SERVER, draw(st.sampled_from([1801, 1801, 1801, 2000]))),
        mss=draw(st.sampled_from([100, 600, 9000])),
    )
    if draw(st.sampled_from([True, True, False])):
        talk.handshake()
    if draw(st.booleans()):
        for by_client in (True, False):
            talk.send(h.establish_connection(), by_client=by_client)
        for by_client in (True, False):
            talk.send(h.connection_parameters(), by_client=by_client)
    for packet in draw(st.lists(st.one_of(messages(), messages(), acks, opening()), max_size=12)):
        data = bytearray(build(packet))
        for _ in range(draw(EDITED)):
            data[draw(st.integers(0, len(data) - 1))] = draw(st.sampled_from([0, 1, 0x10, 0x20, 0x80, 0xFF]))
        talk.send(bytes(data), by_client=draw(st.booleans()), acknowledged=draw(st.booleans()))
        if draw(st.integers(0, 9)) == 0:
            talk.wait(draw(st.sampled_from([1_500_000_000, 41_000_000_000, 300_000_000_000])))
    frames = talk.frames
    if draw(st.integers(0, 3)) == 0 and frames:
        del frames[draw(st.integers(0, len(frames) - 1))]
    return frames


@given(
    talks=st.lists(sessions(), min_size=1, max_size=3), sizes=st.sampled_from([{}, SMALL]),
    first_ns=st.sampled_from([None, None, None, 1 << 62, 0]),
)  # fmt: skip
def test_any_session_has_the_same_findings(
    talks: list[list[c.Frame]], sizes: dict[str, int], first_ns: int | None
) -> None:
    frames = c.merged(*talks)
    if first_ns is not None and frames:
        frames[0] = replace(frames[0], time_ns=first_ns)
    assert_same([c.pcapng_bytes(frames)], **sizes)


# -- single cases -----------------------------------------------------------------------------------------

FILES = sorted([*(ROOT / "tests" / "vectors" / "cases").rglob("*.pcap*"), *EXAMPLES.rglob("*.pcap*")])


@pytest.mark.parametrize("path", FILES, ids=[f"{path.parent.name}/{path.name}" for path in FILES])
def test_captures_of_the_project_give_the_same_items(path: Any) -> None:
    assert_same([path.read_bytes()])


@pytest.mark.parametrize("path", FILES, ids=[f"{path.parent.name}/{path.name}" for path in FILES])
def test_the_text_of_an_item_is_that_of_its_object(path: Any) -> None:
    for item in generic([path.read_bytes()])[1]:
        assert item.json_text() == dumps(item.to_json())


@given(frames=captures())
def test_items_of_any_capture_have_the_text_of_their_object(frames: list[c.Frame]) -> None:
    for item in generic([c.pcap_bytes(frames)])[1]:
        assert item.json_text() == dumps(item.to_json())


def test_the_text_of_an_item_may_be_of_any_depth() -> None:
    properties = {"BodyType": 0, "MessageBody": (b"[" * 20_000 + b"1" + b"]" * 20_000).hex()}
    user = {"DestinationQueue": {"DirectFormatName": "TCP:10.0.0.2\\q\x7f"}}
    fields = {"UserHeader": user, "MessagePropertiesHeader": properties}
    talk = c.TcpConversation().handshake().send(build({"packet": "UserMessage", "fields": fields}))
    (item,) = generic([c.pcap_bytes(talk.frames)])[1]
    assert item.json_text() == dumps(item.to_json())
    assert "q\\u007f" in item.json_text()


def test_a_lazy_item_passes_for_an_item():
    talk = c.TcpConversation().handshake().send(h.user_message()).send(h.base_header(3000) * 4).close()
    files = [c.pcap_bytes(talk.frames)]
    for here, there in zip(read(files, lint=False)[2], generic(files, lint=False)[1], strict=True):
        same = replace(there, error=here.error, examiner=here.examiner)
        assert (here == same, same == here, isinstance(here, Item)) == (True, True, True)
        assert replace(here, size=1).size == 1
        assert repr(here) == repr(there)
        assert here.to_json() == there.to_json()
        assert pickle.loads(pickle.dumps(here)).packet == there.packet
        with pytest.raises(AttributeError):
            here.packet = None  # type: ignore[misc]


# -- state of sessions that random ones seldom reach ------------------------------------------------------


def opened() -> c.TcpConversation:
    talk = c.TcpConversation().handshake()
    parameters = {"ConnectionParametersHeader": {"AckTimeout": 20_000}}
    for packet in (
        h.establish_connection(),
        build({"packet": "ConnectionParameters", "fields": parameters}),
    ):
        talk.send(packet).send(packet, by_client=False)
    return talk


def ids_of(talk: c.TcpConversation) -> list[str]:
    """The ids of the findings, the same by both readers."""
    files = [c.pcap_bytes(talk.frames)]
    assert_same(files)
    return [finding.id for item in generic(files)[1] for finding in item.findings]


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_break_ends_the_wait_for_a_silent_peer(is_broken: bool) -> None:
    header = h.session_header(sent=1)
    talk = opened().send(h.user_message(session=header))
    if is_broken:
        talk.send(h.user_message(size=40)[:40])
    talk.wait(41_000_000_000).send(h.user_message(session=h.session_header(sent=2)))
    assert ("MQQB-3.1.6.3-02" in ids_of(talk)) is not is_broken


def test_a_hole_of_unknown_size_is_a_break_of_the_session():
    """Sequence numbers jump out of any window: no bytes can be reported as lost."""
    talk = opened().send(h.user_message(session=h.session_header(sent=1)))
    at = talk.frames[-1].segment
    assert at is not None
    jumped = c.TcpConversation(client_isn=1_000 + (1 << 31) - 7, server_isn=9_000)
    for number in range(8):
        jumped.send(h.user_message(session=h.session_header(sent=40 + number)))
    talk.frames += [replace(frame, time_ns=frame.time_ns + 10**9) for frame in jumped.frames]
    ids_of(talk)


@pytest.mark.parametrize(
    ("name", "is_right"),
    [
        ("TCP:10.0.0.2\\private$\\order_queue$", True),
        ("tcp:255.0.0.2\\PRIVATE$\\ORDER_QUEUE$", True),
        ("SPX:0000000A:000000000001\\private$\\order_queue$", False),
        ("TCP:10.0.0.2.5\\private$\\order_queue$", False),
        ("TCP:10.0.0.256\\private$\\order_queue$", False),
        ("TCP:10.0.0.02\\private$\\order_queue$", False),
        ("TCP:10.0.0\\private$\\order_queue$", False),
        ("TCP:10..0.2\\private$\\order_queue$", False),
        ("TCP:host\\private$\\order_queue$", False),
    ],
)
def test_addresses_of_order_queues_are_judged_alike(name: str, is_right: bool) -> None:
    user = {"DestinationQueue": {"DirectFormatName": name}}
    packet = build({"packet": "OrderAck", "fields": {"UserHeader": user}})
    found = ids_of(opened().send(packet))
    assert (not {"MQQB-2.2.4-05", "MQQB-2.2.4-06"} & {*found}) is is_right


@pytest.mark.parametrize("time_stamp", [0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF])
def test_a_sequence_of_any_time_stamp_is_compared_alike(time_stamp: int) -> None:
    """From 2038 on, the seconds since 1970 have the highest bit."""
    talk = opened()
    for number, stamp in enumerate((time_stamp - 1, time_stamp), 1):
        header = {
            "TxSequenceID": {"TimeStamp": stamp, "Ordinal": 1}, "TxSequenceNumber": 1,
            "PreviousTxSequenceNumber": 0,
        }  # fmt: skip
        fields = {"UserHeader": {"MessageID": number, "Flags": {"DM": 1}}, "TransactionHeader": header}
        talk.send(build({"packet": "UserMessage", "fields": fields}))
    assert "MQQB-3.1.1.5-07" not in ids_of(talk)
