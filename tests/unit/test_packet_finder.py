"""The packets of one direction in a capture, case by case."""

from __future__ import annotations

import time

import pytest

from msmqwire.dissection.finder import _CREDIT_MAX, _SKIP_SHOWN, PacketFinder, ScanResult, begins_packet
from tests.support import handmade as h

ACK = h.session_ack()
MESSAGE = h.user_message(properties=h.properties_header(label="label", body=b"body" * 100))
LARGEST = 0x0040_0000


def kinds(found: list[ScanResult]) -> list[tuple[str, int]]:
    return [
        (one.packet.schema.name if one.packet else one.error.path if one.error else one.reason, one.size)
        for one in found
    ]


def fed(data: bytes, *, size: int = 1460, midstream: bool = False) -> list[ScanResult]:
    finder, found = PacketFinder(midstream=midstream), []
    for number, at in enumerate(range(0, len(data), size), 1):
        found += finder.feed(data[at : at + size], number, number)
    return found + finder.end()


# --- in step ---------------------------------------------------------------------------------------------


def test_packets_with_their_frames_and_the_time_of_the_last():
    data, finder = ACK + MESSAGE + ACK, PacketFinder()
    assert finder.feed(data[:20], 4, 400) == []
    (ack,) = finder.feed(data[20:100], 5, 500)
    assert (ack.frames, ack.time_ns, ack.data) == ((4, 5), 500, ACK)
    message, last = finder.feed(data[100:], 7, 700)
    assert (message.frames, message.time_ns, message.data) == ((5, 7), 700, MESSAGE)
    assert (last.frames, last.time_ns) == ((7,), 700)
    assert finder.held == 0
    assert finder.end() == []


def test_a_frame_that_was_overtaken_completes_the_packet():
    finder = PacketFinder()
    finder.feed(ACK[:10], 3, 300)
    finder.feed(ACK[10:20], 5, 350)  # captured last, on a clock that is behind
    (ack,) = finder.feed(ACK[20:], 4, 400)
    assert (ack.frames, ack.time_ns) == ((3, 4, 5), 350)


def test_packets_in_a_body_are_not_found():
    outer = h.user_message(properties=h.properties_header(body=MESSAGE + ACK * 5 + b"\0\0\0"))
    for size in (1, 33, 1460):
        assert kinds(fed(outer + ACK, size=size)) == [("UserMessage", len(outer)), ("SessionAck", 36)]


def test_packets_in_the_body_of_one_that_is_cut_off_are_not_found():
    outer = h.user_message(properties=h.properties_header(body=ACK * 20))
    found = fed(outer[:-100])
    assert kinds(found) == [("MessagePropertiesHeader.MessageBody", len(outer) - 100)]
    assert found[0].data == outer[:-100]


# --- malformed packets -----------------------------------------------------------------------------------


def test_a_malformed_packet_ends_where_its_size_says():
    bad = h.base_header(60).ljust(60, b"\xff")
    found = fed(bad + ACK)
    assert [size for _, size in kinds(found)] == [60, 36]
    assert found[0].data == bad
    assert found[0].error is not None


def test_a_malformed_packet_whose_size_leads_nowhere_ends_at_the_next_certain_one():
    bad = h.base_header(100).ljust(60, b"\xff")
    found = fed(bad + ACK + MESSAGE + ACK)
    assert [size for _, size in kinds(found)] == [60, 36, len(MESSAGE), 36]
    assert found[0].error is not None
    assert [one.packet is not None for one in found] == [False, True, True, True]


@pytest.mark.requirement("MQMQ-2.2.19.1-21")
@pytest.mark.parametrize("size", [0, 15, LARGEST + 1, 0xFFFFFFFF])
def test_after_a_size_that_can_not_be_it_goes_on_at_the_next_certain_packet(size):
    found = fed(ACK + h.base_header(size) + b"garbage" + MESSAGE)
    assert kinds(found) == [
        ("SessionAck", 36),
        ("BaseHeader.PacketSize", 16),
        ("after a PacketSize that can't be", 7),
        ("UserMessage", len(MESSAGE)),
    ]


def test_garbage_between_packets():
    found = fed(ACK + b"\x10garbage LIOR" + ACK)
    assert [size for _, size in kinds(found)] == [36, 13, 36]
    assert "no packet begins here" in found[1].reason


def test_a_bad_header_that_is_cut_off():
    assert kinds(fed(h.base_header(1)[:13])) == [("BaseHeader.PacketSize", 13)]
    assert kinds(fed(ACK[:5])) == [("BaseHeader.Signature", 5)]


# --- out of step -----------------------------------------------------------------------------------------


def test_a_capture_that_begins_inside_a_packet():
    found = fed(MESSAGE[37:] + ACK + MESSAGE, midstream=True)
    assert kinds(found) == [
        ("the capture begins inside the stream", len(MESSAGE) - 37),
        ("SessionAck", 36),
        ("UserMessage", len(MESSAGE)),
    ]


def test_a_capture_that_begins_between_packets():
    assert kinds(fed(ACK, midstream=True)) == [("SessionAck", 36)]


def test_a_header_inside_a_segment_is_not_certain_when_the_stream_breaks():
    finder = PacketFinder(midstream=True)
    assert finder.feed(b"x" * 50 + h.base_header(5000) + b"x" * 50, 1, 1) == []
    found = finder.gap(4000, "acknowledged", 2, 2) + finder.feed(ACK, 3, 3) + finder.end()
    assert kinds(found) == [
        ("the capture begins inside the stream", 116),
        ("not in the capture: acknowledged", 4000),
        ("SessionAck", 36),
    ]


def test_a_header_at_the_start_of_a_segment_will_do_when_the_stream_breaks():
    finder = PacketFinder(midstream=True)
    finder.feed(b"x" * 50, 1, 1)
    finder.feed(MESSAGE[:300], 2, 2)
    found = finder.gap(len(MESSAGE) - 400, "cut", 2, 2) + finder.feed(MESSAGE[-100:] + ACK, 3, 3)
    assert kinds(found + finder.end()) == [
        ("the capture begins inside the stream", 50),
        ("MessagePropertiesHeader.MessageBody", 300),
        ("not in the capture: cut", len(MESSAGE) - 400),
        ("the rest of a packet that is not whole", 100),
        ("SessionAck", 36),
    ]


def test_skipped_bytes_come_in_runs():
    found = fed(bytes(3 * _SKIP_SHOWN), midstream=True)
    assert sum(one.size for one in found) == 3 * _SKIP_SHOWN
    assert 3 <= len(found) <= 4
    assert found[0].frames[0] == 1


# --- holes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [0, 1, 40])
def test_a_hole_inside_a_packet(after):
    start, hole = 200, len(MESSAGE) - 200 - after
    finder = PacketFinder()
    finder.feed(MESSAGE[:start], 1, 1)
    found = finder.gap(hole, "acknowledged", 2, 2) + finder.feed(MESSAGE[start + hole :] + ACK, 3, 3)
    expected = [
        ("MessagePropertiesHeader.MessageBody", start),
        ("not in the capture: acknowledged", hole),
        ("the rest of a packet that is not whole", after),
        ("SessionAck", 36),
    ]
    assert kinds(found + finder.end()) == [one for one in expected if one[1]]


def test_two_holes_in_one_packet():
    finder = PacketFinder()
    found = finder.feed(MESSAGE[:200], 1, 1) + finder.gap(50, "cut", 1, 1)
    found += finder.feed(MESSAGE[250:300], 2, 2) + finder.gap(len(MESSAGE) - 300, "cut", 2, 2)
    found += finder.feed(ACK, 3, 3) + finder.end()
    assert [size for _, size in kinds(found)] == [200, 50, 50, len(MESSAGE) - 300, 36]


def test_a_hole_that_reaches_beyond_the_packet():
    finder = PacketFinder()
    finder.feed(MESSAGE[:200], 1, 1)
    found = finder.gap(len(MESSAGE), "limit", 2, 2) + finder.feed(b"xyz" + ACK, 3, 3) + finder.end()
    assert kinds(found)[2:] == [("after a hole in the stream", 3), ("SessionAck", 36)]


def test_a_hole_of_unknown_size():
    finder = PacketFinder()
    finder.feed(ACK + MESSAGE[:20], 1, 1)
    found = finder.gap(None, "jump", 2, 2) + finder.feed(MESSAGE[20:] + ACK, 3, 3) + finder.end()
    assert kinds(found)[-2:] == [("after a hole in the stream", len(MESSAGE) - 20), ("SessionAck", 36)]


def test_a_hole_between_packets():
    finder = PacketFinder()
    found = finder.feed(ACK, 1, 1) + finder.gap(len(MESSAGE), "end", 2, 2) + finder.feed(ACK, 3, 3)
    assert [size for _, size in kinds(found + finder.end())] == [36, len(MESSAGE), 36]


# --- memory and time -------------------------------------------------------------------------------------


def test_letting_go_skips_the_packet():
    finder = PacketFinder()
    finder.feed(MESSAGE[:200], 1, 1)
    (skipped,) = finder.discard()
    assert (skipped.size, skipped.frames, finder.held) == (200, (1,), 0)
    assert finder.discard() == []
    found = finder.feed(MESSAGE[200:] + ACK, 2, 2) + finder.end()
    assert kinds(found) == [
        ("the rest of a packet that is not whole", len(MESSAGE) - 200),
        ("SessionAck", 36),
    ]


def test_letting_go_of_a_bad_header():
    finder = PacketFinder()
    finder.feed(h.base_header(1)[:13], 1, 1)
    found = finder.discard() + finder.feed(h.base_header(1)[13:] + ACK, 2, 2) + finder.end()
    assert [size for _, size in kinds(found)] == [13, 3, 36]


FAKE = h.base_header(LARGEST)
NEARLY = h.user_message(user_flags=h.MP | h.AH, size=100_000) + bytes.fromhex("f4010000") + b"\x40\xc0\0\0"
HOSTILE = {
    "headers only": FAKE * (8 << 16),
    "headers at segments": (FAKE + b"x" * 1444) * 5748,
    "headers and garbage": (FAKE + b"x" * 84) * 83_886,
    "sizes that lead nowhere": (h.base_header(LARGEST - 1) + b"x") * (8 << 16),
    "nearly good": (NEARLY + b"A\0" * 20) * (8388608 // (len(NEARLY) + 40)),
}


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("midstream", [False, True])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_headers_cost_time_and_memory_in_proportion(name, midstream, holes):
    """8 MiB take about a second; were each header judged against all that follows, it would be hours."""
    data, finder, sizes = HOSTILE[name], PacketFinder(midstream=midstream), 0
    began, held = time.process_time(), 0
    for number, at in enumerate(range(0, len(data), 1460), 1):
        found = finder.feed(data[at : at + 1460], number, number)
        if holes and number % 500 == 0:
            found += finder.gap(1000, "cut", number, number)[:-1]
        sizes += sum(one.size for one in found)
        held = max(held, finder.held)
    sizes += sum(one.size for one in finder.end())
    assert sizes == len(data)
    assert held < 3 * LARGEST
    assert time.process_time() - began < 30


def test_what_is_judged_in_vain_has_a_limit():
    finder = PacketFinder(midstream=True)
    size = 1_000_000
    for number in range(_CREDIT_MAX // size + 20):
        finder.feed(h.base_header(size), number, number)
    finder.feed(bytes(2 * size), 1000, 1000)
    assert finder._credit >= 0
    assert finder.end() != []


# --- what begins a packet --------------------------------------------------------------------------------


@pytest.mark.parametrize("length", range(1, 17))
def test_what_begins_a_packet(length):
    assert begins_packet(ACK[:length])
    for at in (0, 4, 5, 6, 7):
        other = bytearray(ACK)
        other[at] ^= 1
        assert begins_packet(other[:length]) == (at >= length)
    assert begins_packet(h.base_header(15)[:length]) == (length < 12)
