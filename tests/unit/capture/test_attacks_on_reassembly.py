"""The cost of reassembly grows with the capture, not with its square, shown by counting what is called."""

from __future__ import annotations

import gc
import io
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import msmqwire
from msmqwire.analysis.dissection import dissect
from msmqwire.capture import IpDecoder, Reassembler, open_records
from msmqwire.capture.ip import RST
from msmqwire.capture.segment_buffer import Segment, SegmentBuffer
from msmqwire.tables.compiled.flow_table import PACKET_BYTES
from msmqwire.tables.scanning.flow_events import FlowTable
from msmqwire.tables.scanning.pending_segments import PendingSegments
from tests.support import handmade as h
from tests.support.capture import attacks

COUNT = 300


def calls(function: Callable[[], Any]) -> int:
    """Return how many calls of Python functions, with steps of generators, and of C functions this takes."""
    count = 0

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    gc.disable()  # others may have left callbacks with it
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def read_items(data: bytes) -> int:
    return sum(1 for _ in dissect(io.BytesIO(data), lint=False))


def read_columns(data: bytes) -> int:
    return len(msmqwire.read_capture(io.BytesIO(data), columns=["kind"]))


@pytest.mark.parametrize("read", [read_items, read_columns])
@pytest.mark.parametrize("name", attacks.CAPTURES)
def test_the_cost_is_in_proportion(name, read):
    make = attacks.CAPTURES[name]
    small, large = make(COUNT), make(4 * COUNT)
    read(large)  # compiles
    assert calls(lambda: read(large)) < 4.8 * calls(lambda: read(small))


def test_the_oldest_that_waits_is_found_without_a_search():
    """With the limit of all buffers reached, each segment lets the oldest gap go."""
    reassembler = Reassembler(max_buffered_total=COUNT * 300)
    decoder = IpDecoder()
    data = attacks.out_of_order_starts(3 * COUNT)
    gaps = []
    for record in open_records(io.BytesIO(data)):
        for datagram in decoder.feed(record):
            gaps += [event.flow.stream for event in reassembler.feed(datagram) if not hasattr(event, "data")]
    assert gaps == sorted(gaps)
    assert len(gaps) > COUNT


@pytest.mark.parametrize("name", ["gaps_in_turn", "sweeps_with_gaps", "many_packets_held"])
def test_the_scan_leaves_no_event_of_msmq_to_python(name, monkeypatch):
    monkeypatch.setattr(FlowTable, "take_event", None)
    read_columns(attacks.CAPTURES[name](COUNT))


@pytest.mark.parametrize("gaps", [100, 400])
def test_a_cut_off_segment_passes_over_runs(gaps):
    """After the first has filled all gaps, those that claim as much and have no byte compare nothing."""
    buffer = SegmentBuffer()
    for number in range(gaps):
        buffer.add(Segment(2 * number, 2 * number + 1, b"x", 0, 0))
    assert buffer.add(Segment(0, 2 * gaps, b"", 0, 1)) == gaps
    assert len(buffer) == 2 * gaps
    assert calls(lambda: buffer.add(Segment(0, 2 * gaps, b"", 0, 2))) < 20
    assert buffer.add(Segment(0, 2 * gaps + 5, b"yy", 0, 2)) == 5
    assert buffer.conflicts == 1
    assert buffer.contiguous(0) == 2 * gaps + 1
    assert [segment.start for segment in buffer.pop(2 * gaps)] == list(range(2 * gaps))
    assert buffer.add(Segment(0, 2 * gaps + 9, b"", 0, 3)) == 2 * gaps + 4


def test_resets_inside_an_incomplete_packet_do_not_move_it(monkeypatch):
    """Resets that no receiver accepts come inside a packet of a megabyte."""
    moved = 0
    compact = PendingSegments.compact

    def counting(self: PendingSegments, size: int, flows: Any) -> None:
        nonlocal moved
        compact(self, size, flows)
        moved += int(flows[:, PACKET_BYTES].sum())

    monkeypatch.setattr(PendingSegments, "compact", counting)
    packet = h.base_header(attacks.LARGEST).ljust(1 << 20, b"\0")
    resets = [attacks.segment(b"", seq=5, flags=RST | attacks.ACK)] * COUNT
    assert read_columns(attacks.pcap([*attacks.one_stream(packet), *resets])) == 1
    assert moved <= 4 * len(packet)  # otherwise 300 times
