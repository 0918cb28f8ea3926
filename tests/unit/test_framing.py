"""A byte stream divided into packets: [MS-MQMQ] 2.2.19.1, [MS-MQQB] 3.1.5.1.2."""

from __future__ import annotations

import struct
from itertools import pairwise

import hypothesis.strategies as st
import pytest
from hypothesis import given

from msmqwire.errors import MalformedPacket
from msmqwire.framing import Framer, find_header, find_whole_packet
from msmqwire.packets import packet_length
from tests.support import handmade as h

PACKETS = {
    "EstablishConnection": h.establish_connection(),
    "ConnectionParameters": h.connection_parameters(),
    "SessionAck": h.session_ack(),
    "UserMessage": h.user_message(properties=h.properties_header(label="l", body=b"body")),
    "UserMessage with SessionHeader": h.user_message(session=h.session_header(ack=3)),
    "OrderAck": h.order_ack(),
    "FinalAck": h.final_ack(),
    "only a BaseHeader": h.base_header(16),
}
MAX = 0x0040_0000


def fed(data: bytes, size: int) -> tuple[list[bytes], Framer]:
    framer, packets = Framer(), []
    for at in range(0, len(data), size):
        packets += framer.feed(data[at : at + size])
    return packets, framer


@pytest.mark.parametrize("size", [1, 2, 7, 11, 12, 13, 16, 100, 10_000])
@pytest.mark.parametrize("name", PACKETS)
def test_a_packet_comes_whole_however_it_is_fed(name, size):
    packets, framer = fed(PACKETS[name] * 2, size)
    assert packets == [PACKETS[name]] * 2
    assert (framer.buffered, framer.offset, framer.error) == (0, 2 * len(PACKETS[name]), None)
    framer.close()


@given(
    st.lists(st.sampled_from(list(PACKETS.values())), max_size=8),
    st.lists(st.integers(0, 4000), max_size=30),
    st.integers(0, 600),
)
def test_any_chunking_of_any_sequence_of_packets(packets, cuts, cut_off):
    data = b"".join(packets)
    data = data[: max(0, len(data) - cut_off)]
    offsets = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    framer, framed = Framer(), []
    for start, stop in pairwise(offsets):
        framed += framer.feed(data[start:stop])
        assert framer.offset == sum(map(len, framed))
        assert framer.offset + framer.buffered == stop
    assert framed == packets[: len(framed)]
    rest = len(data) - framer.offset
    assert framer.buffered == rest
    if rest:
        assert rest < len(packets[len(framed)])
        with pytest.raises(MalformedPacket, match=f"ends after {rest} of"):
            framer.close()
    else:
        framer.close()


@pytest.mark.requirement("MQMQ-2.2.19.1-20")
def test_a_session_header_counts_in_a_session_ack_only():
    """The size of a message leaves it out."""
    message = h.user_message(session=h.session_header())
    assert int.from_bytes(message[8:12], "little") == len(message) - 16
    ack = h.session_ack()
    assert int.from_bytes(ack[8:12], "little") == len(ack) == 36
    assert packet_length(message) == len(message)
    assert packet_length(ack) == 36
    packets, framer = fed(message + ack + message + ack, 5)
    assert packets == [message, ack, message, ack]
    assert framer.buffered == 0


@pytest.mark.requirement("MQMQ-2.2.19.1-21")
@pytest.mark.parametrize("size", [0, 1, 15, MAX + 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_an_invalid_size_ends_the_stream_at_once(size):
    framer = Framer()
    good = PACKETS["SessionAck"]
    assert framer.feed(good + h.base_header(size)[:12]) == [good]
    error = framer.error
    assert error is not None
    assert (error.path, error.offset) == ("BaseHeader.PacketSize", 8)
    assert error.why == f"{size} is not in 16..{MAX}"
    assert (framer.buffered, framer.offset) == (0, len(good))
    with pytest.raises(MalformedPacket) as raised:
        framer.feed(good)
    assert raised.value is error
    framer.close()  # the reason was already given


@pytest.mark.requirement("MQMQ-2.2.19.1-21")
@pytest.mark.parametrize("flags, length", [(3, MAX), (3 | h.BASE_SH, MAX + 16), (3 | h.IN | h.BASE_SH, MAX)])
def test_the_largest_size_is_taken(flags, length):
    framer = Framer()
    packet = h.base_header(MAX, flags).ljust(length, b"x")
    assert framer.feed(packet[:-1]) == []
    assert framer.buffered == length - 1
    assert framer.feed(packet[-1:] + b"\x10") == [packet]
    assert framer.buffered == 1


@pytest.mark.requirement("MQQB-3.1.5.1.2-01")
@pytest.mark.parametrize(
    "header, path, offset",
    [
        (h.base_header(36, version=0x11), "BaseHeader.VersionNumber", 0),
        (h.base_header(36, signature=0x4C494F52), "BaseHeader.Signature", 4),  # the bytes in reverse
        (b"GET / HTTP/1.1\r\n", "BaseHeader.VersionNumber", 0),
    ],
)
def test_a_bad_version_or_signature_ends_the_stream(header, path, offset):
    framer = Framer()
    assert framer.feed(header) == []
    assert framer.error is not None
    assert (framer.error.path, framer.error.offset) == (path, offset)


def test_a_size_is_judged_as_soon_as_it_is_there():
    framer = Framer()
    header = h.base_header(15)
    for byte in header[:11]:
        assert framer.feed(bytes([byte])) == []
        assert framer.error is None
    framer.feed(header[11:12])
    assert framer.error is not None


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_kind_of_bytes(kind):
    packets = Framer().feed(kind(PACKETS["SessionAck"]))
    assert packets == [PACKETS["SessionAck"]]
    assert type(packets[0]) is bytes


def test_a_packet_malformed_after_its_base_header_is_framed():
    packet = struct.pack("<BBHLLL", 0x10, 0, 3, 0x524F494C, 40, 0).ljust(40, b"\xff")
    assert Framer().feed(packet + PACKETS["SessionAck"]) == [packet, PACKETS["SessionAck"]]


def test_the_stream_ends_inside_a_header():
    framer = Framer()
    framer.feed(b"\x10")
    with pytest.raises(MalformedPacket) as raised:
        framer.close()
    assert (raised.value.path, raised.value.offset) == ("BaseHeader", 1)
    assert raised.value.why == "the stream ends after 1 of 16 bytes"


claims = st.one_of(
    st.sampled_from([0, 15, 16, 60, 255, 256, 300, 0xFFFF, 0x1_0000, 0x1_0040, MAX, MAX + 1, 0x0100_0010]),
    st.integers(0, 700),
)


@given(
    claimed=st.lists(st.tuples(claims, st.booleans(), st.integers(0, 40)), max_size=12),
    behind=st.sampled_from([0, 3, 16, 300, 0x1_0000, 0x1_0050]),
    start=st.integers(0, 60),
)
def test_the_first_header_with_its_packet_in_the_bytes_is_whole(
    claimed: list[tuple[int, bool, int]], behind: int, start: int
) -> None:
    headers = [h.base_header(size, flags=0x10 * session) + b"\x10LIOR"[:n] for size, session, n in claimed]
    data = b"".join(headers) + bytes(behind)
    at = find_header(data, start)
    while at >= 0 and (len(data) - at < 12 or at + packet_length(data, at) > len(data)):
        at = find_header(data, at + 1)
    assert find_whole_packet(data, start) == at
