"""Message packets in sections: [MS-MQRR] 2.2.5, 2.2.6 and 3.1.4.7."""

from __future__ import annotations

import struct
from contextlib import suppress
from ipaddress import ip_address
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire import InvalidValue, MalformedPacket, parse
from msmqwire.headers import DEAD_LETTER_HEADER, EXTENSION_HEADER
from msmqwire.remote_read.interface import build_response, parse_response
from msmqwire.remote_read.message_packet import MessageState, message_packet, read_message_packet, state_of
from msmqwire.remote_read.sections import ReadMessage, message_of, sections_of
from msmqwire.rpc.ndr import NDR20
from tests.support import handmade
from tests.support.codec_checks import proving, requirement

FULL, FIRST, SECOND, SRMP_FIRST, SRMP_SECOND = range(5)
BODY = b"0123456789"
HOST = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")
SENT = 1_700_000_000
DIRECT = (7, handmade.direct_name("OS:a\\b"))
PRIVATE = (3, handmade.private_id(9))
PROPERTIES_SIZE = 56
BEHIND = 12 + 148 + 28
NO_LIMIT = 0xFFFFFFFF


def message(body: bytes = BODY, destination: Any = DIRECT, **parts: Any) -> bytes:
    user = handmade.user_header(sent_time=SENT, destination=destination)
    properties = handmade.properties_header(label="", body=body)
    return handmade.user_message(user=user, properties=properties, **parts)


ENVELOPE = handmade.srmp_envelope_header("<e/>")
HTTP = b"POST / HTTP/1.1\r\n\r\nthe body."
COMPOUND = handmade.compound_message_header(HTTP, body_size=9, body_offset=19)
COMPOUND_SIZE = 16 + len(HTTP)


def srmp_message(**parts: Any) -> bytes:
    return message(b"", srmp=ENVELOPE, compound=COMPOUND, **parts)


def packet_of(data: bytes, **state: Any) -> bytes:
    return message_packet(data, MessageState(**state))


def shapes(sections: Any) -> list[tuple[int, int, int]]:
    assert all(section.SectionSize == len(section.pSectionBuffer) for section in sections)
    return [
        (section.SectionBufferType, section.SectionSizeAlloc, section.SectionSize) for section in sections
    ]


def section(kind: int, data: bytes | None, alloc: int | None = None, size: int | None = None) -> Any:
    length = len(data or b"")
    return SimpleNamespace(
        SectionBufferType=kind,
        SectionSizeAlloc=length if alloc is None else alloc,
        SectionSize=length if size is None else size,
        pSectionBuffer=data,
    )


# -- the message packet --------------------------------------------------------------------------------


@requirement("MQRR-2.2.5-01", "MQRR-2.2.5.2-02", "MQRR-2.2.5.2-04", "MQRR-2.2.5.2-05", "MQRR-2.2.5.2-08")
def test_what_is_always_behind_a_message() -> None:
    data = message(time_to_reach_queue=handmade.INFINITE)
    packet = packet_of(data)
    behind = handmade.extension_header(176, 0x12) + handmade.subqueue_header()
    assert (
        packet
        == data[:32]
        + bytes.fromhex("0400 0100").ljust(16, b"\0")
        + data[48:]
        + behind
        + handmade.extended_address_header()
    )


@requirement(
    "MQRR-2.2.5.2-04",
    "MQRR-2.2.5.2-06",
    "MQRR-2.2.5.3-04",
    "MQRR-2.2.5.3-06",
    "MQRR-2.2.5.3-07",
    "MQRR-2.2.5.3-08",
    "MQRR-2.2.5.3-09",
    "MQRR-2.2.5.3-10",
    "MQRR-2.2.5.4-01",
    "MQRR-2.2.5.4-02",
    "MQRR-2.2.5.5-02",
    "MQRR-2.2.5.5-03",
    "MQRR-2.2.5.5-05",
    "MQRR-2.2.5.5-06",
)
@pytest.mark.parametrize("invalid", [False, True])
@pytest.mark.parametrize("address", ["10.1.2.3", "2001:db8::1", "fe80::1%7"])
def test_the_state_after_a_message(address: str, invalid: bool) -> None:
    state = MessageState(
        address=ip_address(address),
        acknowledgement_class=0xC004,
        abort_count=2,
        move_count=3,
        last_move_time=0xFFFFFFFF,
        subqueue="sub",
        target_subqueue="to",
        dead_letter_queue="host\\dead",
        dead_letter_invalid=invalid,
    )
    packet = message_packet(message(), state)
    start, dead_letter = len(message()), handmade.dead_letter_header("host\\dead")
    flags = 0x13 | (0x08 if invalid else 0)
    assert packet[start : start + 12] == handmade.extension_header(176 + len(dead_letter), flags)
    subqueue = packet[start + 12 : start + 160]
    words = struct.unpack_from("<IIIII", subqueue)
    assert words == (148, 0xC004 << 1, 2, 3, 0xFFFFFFFF)
    assert subqueue[20:84] == "sub".encode("utf-16-le").ljust(64, b"\0")
    assert subqueue[84:] == "to".encode("utf-16-le").ljust(64, b"\0")
    assert packet[start + 160 : -28] == dead_letter
    packed = ip_address(address).packed
    kind, scope = (1, 0) if len(packed) == 4 else (6, 7 if "%" in address else 0)
    assert packet[-28:] == handmade.extended_address_header(packed, kind=kind, scope=scope)
    assert message_of(sections_of(packet, NO_LIMIT, 0)).state == state


@requirement("MQRR-2.2.5.2-04", "MQRR-2.2.5.2-06")
def test_no_dead_letter_queue_is_not_an_invalid_one() -> None:
    assert packet_of(message(), dead_letter_invalid=True) == packet_of(message())
    unnamed = DEAD_LETTER_HEADER.build({"DeadLetterPathName": ""})
    flags = {"DL": True, "SQ": False, "DI": True, "EA": False}
    extension = EXTENSION_HEADER.build({"RemainingHeadersSize": len(unnamed), "Flags": flags})
    assert state_of(read_message_packet(message() + extension + unnamed)) == MessageState()


@requirement("MQRR-3.1.4.7-37", "MQRR-3.1.4.13-26", "MQRR-2.2.5.1-03")
@pytest.mark.parametrize(
    "stored, sent",
    [(60, SENT + 60), (0, SENT), (handmade.INFINITE, handmade.INFINITE), (0xFFFFFFF0, handmade.INFINITE)],
)
def test_the_time_to_reach_the_queue_is_absolute(stored: int, sent: int) -> None:
    data = message(time_to_reach_queue=stored)
    packet = packet_of(data)
    assert struct.unpack_from("<I", packet, 12) == (sent,)
    assert message_of(sections_of(packet, NO_LIMIT, 0)).time_to_reach_queue == (
        stored if sent != handmade.INFINITE else handmade.INFINITE
    )
    assert struct.unpack_from("<I", data, 12) == (stored,)


@requirement("MQRR-2.2.5.1-04", "MQRR-2.2.5.1-07", "MQRR-2.2.5.1-08", "MQRR-2.2.5.1-10")
def test_the_address_of_the_sender_for_a_direct_destination() -> None:
    packet = message_packet(message(), MessageState(address=ip_address("10.1.2.3")), sender=HOST)
    overlay = handmade.source_address(length=4, kind=1, address=bytes((10, 1, 2, 3, 0, 0, 0, 0)))
    assert packet[32:48] == overlay


@requirement("MQRR-2.2.5.1-05")
def test_the_guid_of_the_sender_for_any_other_destination() -> None:
    data, state = message(destination=PRIVATE), MessageState(address=ip_address("10.1.2.3"))
    packet = message_packet(data, state, sender=HOST)
    assert packet[32:48] == HOST.bytes_le
    assert packet[48:] == message_packet(data, state)[48:]
    assert message_packet(data, state)[32:48] == data[32:48]


@requirement("MQRR-2.2.5.1-13")
@pytest.mark.parametrize("trailing", [b"", handmade.extension_header(0, 0), b"1234"])
def test_what_belongs_to_a_session_is_left_out(trailing: bytes) -> None:
    """The SessionHeader and its bit, and what PacketSize counts behind the last header."""
    session = handmade.session_header(ack=7)
    packet = packet_of(message(trailing=trailing, session=session))
    assert packet == packet_of(message())
    assert len(packet) == len(message()) + BEHIND


@pytest.mark.parametrize(
    "state",
    [
        {"subqueue": "x" * 32},
        {"target_subqueue": "x" * 32},
        {"subqueue": "a\0b"},
        {"subqueue": "\ud800"},
        {"dead_letter_queue": "a\0"},
        {"acknowledgement_class": 0x10000},
        {"abort_count": -1},
        {"last_move_time": 1 << 32},
        {"address": ip_address("fe80::1%eth0")},
    ],
    ids=str,
)
def test_a_state_that_does_not_fit(state: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        packet_of(message(), **state)


# -- sections ------------------------------------------------------------------------------------------


@requirement(
    "MQRR-3.1.4.7-31/a",
    "MQRR-3.1.4.7-31/b",
    "MQRR-3.1.4.7-32",
    "MQRR-3.1.4.13-20/a",
    "MQRR-3.1.4.13-20/b",
    "MQRR-3.1.4.13-21",
    "MQRR-2.2.6-04",
    "MQRR-2.2.6-07",
    "MQRR-2.2.7-02",
    "MQRR-3.1.4.7-26",
    "MQRR-3.1.4.13-17",
)
@pytest.mark.parametrize(
    "data, limits",
    [
        (message(), (len(BODY), 0)),  # equal is enough, the limit of the other kind is nothing
        (message(), (NO_LIMIT, NO_LIMIT)),
        (message(b""), (0, 0)),
        (srmp_message(), (0, COMPOUND_SIZE)),
        (srmp_message(), (0, NO_LIMIT)),
    ],
)
def test_a_full_packet(data: bytes, limits: tuple[int, int]) -> None:
    packet = packet_of(data)
    (only,) = sections_of(packet, *limits)
    assert shapes([only]) == [(FULL, len(packet), len(packet))]
    assert only.pSectionBuffer == packet


@requirement(
    "MQRR-3.1.4.7-24",
    "MQRR-3.1.4.7-31/a",
    "MQRR-3.1.4.13-20/a",
    "MQRR-3.1.4.7-33",
    "MQRR-3.1.4.7-34",
    "MQRR-3.1.4.7-35",
    "MQRR-3.1.4.13-16",
    "MQRR-3.1.4.13-22",
    "MQRR-3.1.4.13-23",
    "MQRR-3.1.4.13-24",
    "MQRR-2.2.6-04",
    "MQRR-2.2.6-05",
    "MQRR-2.2.6-06",
    "MQRR-2.2.6-07",
    "MQRR-2.2.6-08",
    "MQRR-2.2.7-03",
    "MQRR-2.2.7-04",
)
@pytest.mark.parametrize("limit", range(len(BODY)))
@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"soap": handmade.soap_header()},
        {"debug": handmade.debug_header(HOST.bytes_le), "multi_queue": handmade.multi_queue_format_header()},
    ],
    ids=["body", "soap", "debug"],
)
def test_a_cut_binary_message(limit: int, parts: dict[str, bytes]) -> None:
    """Headers and the start of the body, unpadded; then what follows the MessagePropertiesHeader."""
    data = message(**parts)
    packet = packet_of(data)
    more = sum(map(len, parts.values()))
    body, end = data.index(BODY), len(data) - more
    first, second = sections_of(packet, limit, 0)
    assert shapes([first, second]) == [
        (FIRST, body + len(BODY), body + limit),
        (SECOND, more + BEHIND, more + BEHIND),
    ]
    assert first.pSectionBuffer == packet[: body + limit]
    assert second.pSectionBuffer == packet[end:]


@requirement(
    "MQRR-3.1.4.7-25",
    "MQRR-3.1.4.7-31/b",
    "MQRR-3.1.4.13-20/b",
    "MQRR-3.1.4.7-33",
    "MQRR-3.1.4.7-34",
    "MQRR-3.1.4.7-35",
    "MQRR-3.1.4.13-16",
    "MQRR-3.1.4.13-22",
    "MQRR-3.1.4.13-23",
    "MQRR-3.1.4.13-24",
    "MQRR-2.2.6-04",
    "MQRR-2.2.6-06",
    "MQRR-2.2.6-07",
    "MQRR-2.2.6-08",
    "MQRR-2.2.7-05",
    "MQRR-2.2.7-06",
)
@pytest.mark.parametrize("limit", [0, 1, 15, 16, 30, COMPOUND_SIZE - 1])
def test_a_cut_srmp_message(limit: int) -> None:
    """It is cut in its CompoundMessageHeader."""
    soap = handmade.soap_header()
    data = srmp_message(soap=soap)
    packet = packet_of(data)
    start = data.index(COMPOUND)
    first, second = sections_of(packet, 0, limit)
    assert shapes([first, second]) == [
        (SRMP_FIRST, start + COMPOUND_SIZE, start + limit),
        (SRMP_SECOND, len(soap) + BEHIND, len(soap) + BEHIND),
    ]
    assert first.pSectionBuffer == packet[: start + limit]
    assert second.pSectionBuffer == packet[len(data) - len(soap) :]


@requirement("MQRR-3.1.4.7-36", "MQRR-3.1.4.13-25")
@pytest.mark.parametrize("body", [b"01234567", b"0123456789"])
def test_no_second_section_without_trailers(body: bytes) -> None:
    data = message(body)
    (only,) = sections_of(data, 3, 0)  # as an older server has it: nothing behind the message
    assert shapes([only]) == [(FIRST, data.index(body) + len(body), data.index(body) + 3)]


@pytest.mark.parametrize("cut", range(0, 148, 7))
def test_sections_of_no_packet(cut: int) -> None:
    with pytest.raises(MalformedPacket):
        sections_of(message()[:cut], 3, 0)


# -- and back ------------------------------------------------------------------------------------------


def read(data: bytes, *limits: int, **state: Any) -> ReadMessage:
    """The message as a client reads it from the stub of an answer."""
    sections = sections_of(packet_of(data, **state), *limits)
    stub = build_response(7, {"ppPacketSections": sections, "status": 0}, NDR20)
    return message_of(parse_response(7, stub, NDR20).ppPacketSections)


@requirement("MQRR-2.2.6-11", "MQRR-3.1.4.7-57")
@pytest.mark.parametrize("limit", [*range(len(BODY) + 1), NO_LIMIT])
@pytest.mark.parametrize("soap", [b"", handmade.soap_header("h", "b")])
def test_a_binary_message_is_read(limit: int, soap: bytes) -> None:
    got = read(message(soap=soap, time_to_reach_queue=60), limit, 0, subqueue="sub")
    assert (got.body, got.body_size, got.cut) == (BODY[:limit], len(BODY), limit < len(BODY))
    assert got.state == MessageState(subqueue="sub")
    assert got.time_to_reach_queue == 60
    assert got.packet.schema.name == "UserMessage"
    assert got.packet.MessagePropertiesHeader.MessageBody == BODY[:limit]
    assert (got.packet.SoapHeader is not None) == bool(soap)
    assert len(got.packet.to_bytes()) == got.packet.BaseHeader.PacketSize
    assert parse(got.packet.to_bytes()) == got.packet


@requirement("MQRR-2.2.6-11", "MQRR-3.1.4.7-57")
@pytest.mark.parametrize(
    "limit, body",
    [(0, b""), (15, b""), (16, b""), (35, b""), (38, b"the"), (43, b"the body"), (44, b"the body.")],
)
def test_an_srmp_message_is_read(limit: int, body: bytes) -> None:
    got = read(srmp_message(soap=handmade.soap_header("h", "b")), 0, limit)
    assert (got.body, got.cut) == (body, limit < COMPOUND_SIZE)
    assert got.body_size == (9 if limit >= 12 else 0)
    assert got.packet.SRMPEnvelopeHeader.Data == "<e/>"
    assert got.packet.CompoundMessageHeader.Data == HTTP[: max(0, limit - 16)]
    assert got.packet.SoapHeader.Header == "h"
    assert parse(got.packet.to_bytes()) == got.packet


@requirement("MQRR-2.2.5-02", "MQRR-2.2.5.2-11")
@pytest.mark.parametrize("session", [b"", handmade.session_header(ack=3)])
def test_a_message_of_an_older_server(session: bytes) -> None:
    """None of the four headers; uncut, and cut without a second section."""
    data = message(session=session)
    got = message_of([section(FULL, data)])
    assert (got.body, got.state, got.cut) == (BODY, MessageState(), False)
    if not session:
        start = data.index(BODY)
        got = message_of([section(FIRST, data[: start + 4], start + len(BODY))])
        assert (got.body, got.state, got.cut) == (BODY[:4], MessageState(), True)


@pytest.mark.parametrize("session", [b"", handmade.session_header(ack=3)])
def test_headers_that_packet_size_counts(session: bytes) -> None:
    """Some count the headers behind the message in PacketSize, before a SessionHeader."""
    packet = packet_of(message(), subqueue="sub")
    behind = packet[-BEHIND:]
    got = message_of([section(FULL, message(trailing=behind, session=session))])
    assert got.state == MessageState(subqueue="sub")
    assert got.packet.TrailingData == b""
    assert (got.packet.SessionHeader is not None) == bool(session)


@requirement("MQRR-2.2.5.3-02", "MQRR-2.2.5.2-07", "MQRR-2.2.5.5-04")
def test_headers_to_be_ignored() -> None:
    """A SubqueueHeader without a name, an address of type 0, DI without a DeadLetterHeader."""
    subqueue = handmade.subqueue_header(abort_counter=2, move_counter=3)
    address = handmade.extended_address_header(b"\1\2\3\4", kind=0)
    data = handmade.remote_read_message(message(), subqueue=subqueue, address=address, flags=0x08)
    assert message_of([section(FULL, data)]).state == MessageState()


@pytest.mark.parametrize("more", range(3))
def test_padding_that_a_peer_counts_as_cut(more: int) -> None:
    body = BODY[:8]  # 2 bytes of padding
    packet, data = packet_of(message(body, soap=handmade.soap_header())), message(body)
    start, end = data.index(body), len(data)
    assert (start + len(body) + 2) == end
    sections = [section(FIRST, packet[: start + 4], start + len(body) + more), section(SECOND, packet[end:])]
    assert message_of(sections).body == body[:4]


START = message().index(BODY)
HEAD = packet_of(message())[: START + 4]
TAIL = packet_of(message())[len(message()) :]


@pytest.mark.parametrize(
    "sections, path",
    [
        proving(None, "ppPacketSections", name="null"),
        proving([], "ppPacketSections", name="none"),
        proving([section(9, b"")], "ppPacketSections", ids="MQRR-2.2.7-01", name="type 9"),
        proving([section(SECOND, TAIL)], "ppPacketSections", ids="MQRR-2.2.6-05", name="the second alone"),
        proving(
            [section(FULL, HEAD), section(SECOND, TAIL)],
            "ppPacketSections",
            ids="MQRR-2.2.6-05",
            name="a second of a full packet",
        ),
        proving(
            [section(FIRST, HEAD, START + 10), section(SRMP_SECOND, TAIL)],
            "ppPacketSections",
            name="a second of another kind",
        ),
        proving([section(FULL, None, 0, 0)], "BaseHeader.VersionNumber", name="empty"),
        proving(
            [section(FULL, message(), size=9)],
            "ppPacketSections[0].SectionSize",
            ids="MQRR-2.2.6-09",
            name="another size",
        ),
        proving(
            [section(FULL, None, 9, 9)],
            "ppPacketSections[0].SectionSize",
            ids="MQRR-2.2.6-10",
            name="null with a size",
        ),
        proving(
            [section(FULL, message(), 9999)],
            "ppPacketSections[0].SectionSizeAlloc",
            ids="MQRR-2.2.6-07",
            name="a full packet that is larger",
        ),
        proving(
            [section(FIRST, HEAD, START + 10), section(SECOND, TAIL, 999)],
            "ppPacketSections[1].SectionSizeAlloc",
            ids="MQRR-2.2.6-07",
            name="a second that is larger",
        ),
        proving(
            [section(FIRST, HEAD, START + 3)],
            "ppPacketSections[0].SectionSizeAlloc",
            ids="MQRR-2.2.6-08",
            name="a first that is smaller",
        ),
        proving(
            [section(FIRST, HEAD, START + 9), section(SECOND, TAIL)],
            "ppPacketSections[0].SectionSizeAlloc",
            ids="MQRR-2.2.6-06",
            name="less cut than is missing",
        ),
        proving(
            [section(FIRST, HEAD, 0xFFFFFFFF), section(SECOND, TAIL)],
            "ppPacketSections[0].SectionSizeAlloc",
            ids="MQRR-2.2.6-06",
            name="more cut than is missing",
        ),
        proving(
            [section(SRMP_FIRST, HEAD, START + 10)],
            "ppPacketSections[0].SectionBufferType",
            ids="MQRR-2.2.7-01",
            name="a binary message as SRMP",
        ),
    ],
)
def test_sections_that_are_refused(sections: list[Any] | None, path: str) -> None:
    with pytest.raises(MalformedPacket) as caught:
        message_of(sections)
    assert caught.value.path == path


@pytest.mark.parametrize("kind", [FULL, FIRST])
def test_every_cut_in_the_headers_is_refused(kind: int) -> None:
    for cut in range(START):
        with pytest.raises(MalformedPacket):
            message_of(
                [section(kind, HEAD[:cut], START + 10 if kind else cut), section(SECOND, TAIL)][: kind + 1]
            )


@given(
    st.sampled_from([message(), srmp_message(), message(soap=handmade.soap_header("h", "b"))]),
    st.integers(0, 60),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=3),
    st.integers(-4, 4),
)
def test_hostile_sections(data: bytes, limit: int, changes: list[tuple[int, int]], more: int) -> None:
    """Refused, or a message with no more body than there are bytes."""
    hostile = []
    for original in sections_of(packet_of(data), limit, limit):
        content = bytearray(original.pSectionBuffer)
        for at, value in changes:
            content[at % len(content)] = value
        alloc = original.SectionSizeAlloc + (more if original.SectionBufferType in (FIRST, SRMP_FIRST) else 0)
        hostile.append(section(original.SectionBufferType, bytes(content), alloc))
    with suppress(MalformedPacket):
        got = message_of(hostile)
        assert len(got.body) <= sum(each.SectionSize for each in hostile)
        got.packet.to_json()
