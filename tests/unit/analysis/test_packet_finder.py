"""The packets of one direction in a capture, case by case."""

from __future__ import annotations

import time

import pytest

from msmqwire.analysis.dissection.finder import SKIP_SHOWN, ScanResult
from msmqwire.analysis.dissection.skip_reasons import PACKET_MIN
from msmqwire.framing import begins_packet
from tests.support import handmade as h
from tests.support.capture.finders import PacketFinder

ACK = h.session_ack()
MESSAGE = h.user_message(properties=h.properties_header(label="label", body=b"body" * 100))
LARGEST = 0x0040_0000


def kinds(results: list[ScanResult]) -> list[tuple[str, int]]:
    return [
        (r.packet.schema.name if r.packet else r.error.path if r.error else r.reason, r.size) for r in results
    ]


def scan(data: bytes, *, size: int = 1460, midstream: bool = False) -> list[ScanResult]:
    finder, results = PacketFinder(midstream=midstream), []
    for number, at in enumerate(range(0, len(data), size), 1):
        results += finder.feed(data[at : at + size], number, number)
    return results + finder.end()


# --- in sync ---------------------------------------------------------------------------------------------


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
        assert kinds(scan(outer + ACK, size=size)) == [("UserMessage", len(outer)), ("SessionAck", 36)]


def test_packets_in_the_body_of_a_cut_packet_are_not_found():
    outer = h.user_message(properties=h.properties_header(body=ACK * 20))
    results = scan(outer[:-100])
    assert kinds(results) == [("MessagePropertiesHeader.MessageBody", len(outer) - 100)]
    assert results[0].data == outer[:-100]


# --- malformed packets -----------------------------------------------------------------------------------


def test_a_malformed_packet_ends_where_its_size_says():
    bad = h.base_header(60).ljust(60, b"\xff")
    results = scan(bad + ACK)
    assert [size for _, size in kinds(results)] == [60, 36]
    assert results[0].data == bad
    assert results[0].error is not None


def test_a_malformed_packet_ends_at_the_next_certain_one():
    """Where its size ends, no packet begins."""
    bad = h.base_header(100).ljust(60, b"\xff")
    results = scan(bad + ACK + MESSAGE + ACK)
    assert [size for _, size in kinds(results)] == [60, 36, len(MESSAGE), 36]
    assert results[0].error is not None
    assert [result.packet is not None for result in results] == [False, True, True, True]


@pytest.mark.requirement("MQMQ-2.2.19.1-21")
@pytest.mark.parametrize("size", [0, 15, LARGEST + 1, 0xFFFFFFFF])
def test_an_impossible_size_resumes_at_the_next_certain_packet(size):
    results = scan(ACK + h.base_header(size) + b"garbage" + MESSAGE)
    assert kinds(results) == [
        ("SessionAck", 36),
        ("BaseHeader.PacketSize", 16),
        ("after a PacketSize that can't be", 7),
        ("UserMessage", len(MESSAGE)),
    ]


def test_garbage_between_packets():
    results = scan(ACK + b"\x10garbage LIOR" + ACK)
    assert [size for _, size in kinds(results)] == [36, 13, 36]
    assert "no packet begins here" in results[1].reason


def test_a_bad_header_that_is_cut_off():
    assert kinds(scan(h.base_header(1)[:13])) == [("BaseHeader.PacketSize", 13)]
    assert kinds(scan(ACK[:5])) == [("BaseHeader.Signature", 5)]


# --- bytes behind the last header ------------------------------------------------------------------------


def too_large(count: int, body: bytes = b"body") -> bytes:
    """A message whose PacketSize counts more bytes than its own."""
    properties = h.properties_header(body=body)
    return h.user_message(properties=properties, size=len(h.user_message(properties=properties)) + count)


@pytest.mark.parametrize("size", [1, 33, 1460])
@pytest.mark.parametrize("count", [1, 3, 4, 8, 16, 35, 37, 80, 300])
def test_packets_swallowed_by_a_wrong_size_are_found(count, size):
    """No packet follows where that size ends."""
    message = too_large(count)
    results = scan(message + ACK * 3 + MESSAGE + ACK, size=size)
    own = ("TrailingData", len(message))
    assert kinds(results) == [
        own,
        *[("SessionAck", 36)] * 3,
        ("UserMessage", len(MESSAGE)),
        ("SessionAck", 36),
    ]
    assert results[0].data == message


@pytest.mark.parametrize("size", [1, 33, 1460])
def test_a_packet_within_a_plausible_size_is_not_separate(size):
    """The size is plausible if a packet follows it, or nothing does."""
    message = too_large(2 * 36)
    results = scan(message + ACK * 3, size=size)
    assert kinds(results) == [("UserMessage", len(message) + 72), ("SessionAck", 36)]
    assert results[0].packet.TrailingData == ACK * 2
    assert kinds(scan(message + ACK * 2, size=size)) == [("UserMessage", len(message) + 72)]


@pytest.mark.parametrize("size", [33, 1460])
def test_packets_that_a_wrong_size_swallows_to_the_end_are_found(size):
    """Also the last of them, which is cut off, if a segment begins with it."""
    message = too_large(100_000)
    assert kinds(scan(message + ACK * 2, size=size)) == [
        ("TrailingData", len(message)), ("SessionAck", 36), ("SessionAck", 36)
    ]  # fmt: skip
    finder = PacketFinder()
    results = finder.feed(message, 1, 1) + finder.feed(ACK[:20], 2, 2) + finder.end(cut=True)
    assert [(r.size, r.cut) for r in results] == [(len(message), False), (20, True)]


def test_packets_in_a_body_with_a_doubtful_end_are_not_found():
    message = too_large(4, body=ACK * 2)
    results = scan(message + ACK[:4] + b"xyz" * 9 + ACK)
    assert kinds(results)[0] == ("UserMessage", len(message) + 4)
    assert [size for _, size in kinds(results)[1:]] == [27, 36]
    assert kinds(scan(message + b"\x10\0")) == [("TrailingData", len(message) + 2)]


def test_a_message_with_an_extension_header_is_certain():
    message = h.user_message(trailing=h.extension_header(0, 0))
    results = scan(MESSAGE[37:] + message + ACK, midstream=True)
    assert [size for _, size in kinds(results)] == [len(MESSAGE) - 37, len(message), 36]


# --- out of sync -----------------------------------------------------------------------------------------


def test_a_capture_that_begins_inside_a_packet():
    results = scan(MESSAGE[37:] + ACK + MESSAGE, midstream=True)
    assert kinds(results) == [
        ("the capture begins inside the stream", len(MESSAGE) - 37),
        ("SessionAck", 36),
        ("UserMessage", len(MESSAGE)),
    ]


def test_a_capture_that_begins_between_packets():
    assert kinds(scan(ACK, midstream=True)) == [("SessionAck", 36)]


def test_a_header_inside_a_segment_is_uncertain_at_a_break():
    finder = PacketFinder(midstream=True)
    assert finder.feed(b"x" * 50 + h.base_header(5000) + b"x" * 50, 1, 1) == []
    results = finder.gap(4000, "acknowledged", 2, 2) + finder.feed(ACK, 3, 3) + finder.end()
    assert kinds(results) == [
        ("the capture begins inside the stream", 116),
        ("not in the capture: acknowledged", 4000),
        ("SessionAck", 36),
    ]


def test_a_header_at_a_segment_start_suffices_at_a_break():
    finder = PacketFinder(midstream=True)
    finder.feed(b"x" * 50, 1, 1)
    finder.feed(MESSAGE[:300], 2, 2)
    results = finder.gap(len(MESSAGE) - 400, "cut", 2, 2) + finder.feed(MESSAGE[-100:] + ACK, 3, 3)
    assert kinds(results + finder.end()) == [
        ("the capture begins inside the stream", 50),
        ("MessagePropertiesHeader.MessageBody", 300),
        ("not in the capture: cut", len(MESSAGE) - 400),
        ("the rest of a packet that is not whole", 100),
        ("SessionAck", 36),
    ]


BARE = h.base_header(16)
RUN = "malformed like the packet before, and smaller than any that is well-formed"


def test_malformed_packets_below_the_least_size_form_runs():
    assert len(ACK) == PACKET_MIN
    size = 16 * 10_000
    for of_segment in (7, 1460):
        results = scan(BARE * 10_000 + ACK + BARE * 3, size=of_segment)
        assert sum(result.size for result in results) == size + len(ACK) + 48
        assert kinds(results)[0] == ("UserHeader.SourceQueueManager", 16)
        shown = [result for result in results[1:] if result.reason]
        assert {result.reason for result in shown} == {RUN}
        assert SKIP_SHOWN <= shown[0].size < SKIP_SHOWN + 16
        assert len(shown) == 4  # 64 KiB twice, their rest, and those behind the acknowledgement
        assert kinds(results)[-3:] == [("SessionAck", 36), ("UserHeader.SourceQueueManager", 16), (RUN, 32)]


def test_larger_malformed_packets_have_a_result_each():
    cut = h.base_header(PACKET_MIN) + bytes(PACKET_MIN - 16)
    assert [size for _, size in kinds(scan(cut * 5 + BARE + cut))] == [*[PACKET_MIN] * 5, 16, PACKET_MIN]


def test_a_hole_ends_a_run_of_malformed_packets():
    finder = PacketFinder()
    results = finder.feed(BARE * 3, 1, 1) + finder.gap(16, "cut", 2, 2) + finder.feed(ACK + BARE * 2, 3, 3)
    assert [size for _, size in kinds(results + finder.end())] == [16, 32, 16, 36, 16, 16]


def test_skipped_bytes_come_in_runs():
    results = scan(bytes(3 * SKIP_SHOWN), midstream=True)
    assert sum(result.size for result in results) == 3 * SKIP_SHOWN
    assert 3 <= len(results) <= 4
    assert results[0].frames[0] == 1


# --- gaps ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [0, 1, 40])
def test_a_gap_inside_a_packet(after):
    start, gap = 200, len(MESSAGE) - 200 - after
    finder = PacketFinder()
    finder.feed(MESSAGE[:start], 1, 1)
    results = finder.gap(gap, "acknowledged", 2, 2) + finder.feed(MESSAGE[start + gap :] + ACK, 3, 3)
    expected = [
        ("MessagePropertiesHeader.MessageBody", start),
        ("not in the capture: acknowledged", gap),
        ("the rest of a packet that is not whole", after),
        ("SessionAck", 36),
    ]
    assert kinds(results + finder.end()) == [(reason, size) for reason, size in expected if size]


def test_two_gaps_in_one_packet():
    finder = PacketFinder()
    results = finder.feed(MESSAGE[:200], 1, 1) + finder.gap(50, "cut", 1, 1)
    results += finder.feed(MESSAGE[250:300], 2, 2) + finder.gap(len(MESSAGE) - 300, "cut", 2, 2)
    results += finder.feed(ACK, 3, 3) + finder.end()
    assert [size for _, size in kinds(results)] == [200, 50, 50, len(MESSAGE) - 300, 36]


def test_a_gap_that_reaches_beyond_the_packet():
    finder = PacketFinder()
    finder.feed(MESSAGE[:200], 1, 1)
    results = finder.gap(len(MESSAGE), "limit", 2, 2) + finder.feed(b"xyz" + ACK, 3, 3) + finder.end()
    assert kinds(results)[2:] == [("after a hole in the stream", 3), ("SessionAck", 36)]


def test_a_gap_of_unknown_size():
    finder = PacketFinder()
    finder.feed(ACK + MESSAGE[:20], 1, 1)
    results = finder.gap(None, "jump", 2, 2) + finder.feed(MESSAGE[20:] + ACK, 3, 3) + finder.end()
    assert kinds(results)[-2:] == [("after a hole in the stream", len(MESSAGE) - 20), ("SessionAck", 36)]


def test_a_gap_between_packets():
    finder = PacketFinder()
    results = finder.feed(ACK, 1, 1) + finder.gap(len(MESSAGE), "end", 2, 2) + finder.feed(ACK, 3, 3)
    assert [size for _, size in kinds(results + finder.end())] == [36, len(MESSAGE), 36]


# --- memory and time -------------------------------------------------------------------------------------


def test_discarding_skips_the_packet():
    finder = PacketFinder()
    finder.feed(MESSAGE[:200], 1, 1)
    (skipped,) = finder.discard()
    assert (skipped.size, skipped.frames, finder.held) == (200, (1,), 0)
    assert finder.discard() == []
    results = finder.feed(MESSAGE[200:] + ACK, 2, 2) + finder.end()
    assert kinds(results) == [
        ("the rest of a packet that is not whole", len(MESSAGE) - 200),
        ("SessionAck", 36),
    ]


def test_discarding_a_bad_header():
    finder = PacketFinder()
    finder.feed(h.base_header(1)[:13], 1, 1)
    results = finder.discard() + finder.feed(h.base_header(1)[13:] + ACK, 2, 2) + finder.end()
    assert [size for _, size in kinds(results)] == [13, 3, 36]


FAKE = h.base_header(LARGEST)
NEARLY = h.user_message(user_flags=h.MP | h.AH, size=100_000) + bytes.fromhex("f4010000") + b"\x40\xc0\0\0"
HOSTILE = {
    "headers only": FAKE * (8 << 16),
    "headers at segments": (FAKE + b"x" * 1444) * 5748,
    "headers and garbage": (FAKE + b"x" * 84) * 83_886,
    "sizes that lead nowhere": (h.base_header(LARGEST - 1) + b"x") * (8 << 16),
    "nearly good": (NEARLY + b"A\0" * 20) * (8388608 // (len(NEARLY) + 40)),
}


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("midstream", [False, True])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_headers_cost_time_and_memory_in_proportion(name, midstream, gaps):
    """8 MiB take about a second; checking each header against all that follow would take hours."""
    data, finder, sizes = HOSTILE[name], PacketFinder(midstream=midstream), 0
    started, most_held = time.process_time(), 0
    for number, at in enumerate(range(0, len(data), 1460), 1):
        results = finder.feed(data[at : at + 1460], number, number)
        if gaps and number % 500 == 0:
            results += finder.gap(1000, "cut", number, number)[:-1]
        sizes += sum(result.size for result in results)
        most_held = max(most_held, finder.held)
    sizes += sum(result.size for result in finder.end())
    assert sizes == len(data)
    assert most_held < 3 * LARGEST
    assert time.process_time() - started < 30


# --- packet beginnings ---------------------------------------------------------------------------------


@pytest.mark.parametrize("length", range(1, 17))
def test_begins_packet(length):
    assert begins_packet(ACK[:length])
    for at in (0, 4, 5, 6, 7):
        other = bytearray(ACK)
        other[at] ^= 1
        assert begins_packet(other[:length]) == (at >= length)
    assert begins_packet(h.base_header(15)[:length]) == (length < 12)
