"""Flows that only skip bytes, from the generic reader to the scan and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msmqwire.columnar.bridge.pending_segments import PendingSegments
from msmqwire.columnar.compiled.flow_table import (
    PACKET_BYTES,
    PACKET_FIRST,
    PACKET_FRAME,
    PACKET_LAST,
    PACKET_SEGMENTS,
    PACKET_SIZE,
    REMAINING,
    SKIPPED_BYTES,
    SKIPPED_FRAME,
    SKIPS,
    TAIL_FIRST,
)
from msmqwire.dissection.handover import DirectionSnapshot
from msmqwire.dissection.skipping import Skipping


def acquire_skipping(flow: Any, pending: PendingSegments, skipping: Skipping) -> None:
    """Let the scan go on with what a flow skips; there must be space for its segments."""
    flow[SKIPS], flow[REMAINING], flow[PACKET_SIZE] = 1, skipping.remaining, skipping.needed
    flow[SKIPPED_BYTES], flow[SKIPPED_FRAME] = skipping.skipped, skipping.frame
    flow[PACKET_FRAME] = skipping.frame
    for lead, data, frame, time_ns in skipping.segments:
        pending.append(flow, (PACKET_FIRST, PACKET_LAST, PACKET_SEGMENTS), data, frame, time_ns, lead)
        flow[PACKET_BYTES] += len(data)
        flow[PACKET_FRAME], flow[TAIL_FIRST] = frame, flow[PACKET_FIRST]


def release_skipping(
    flow: Any, segments: Iterable[tuple[int, int, int, int, bytes]], snapshot: DirectionSnapshot
) -> None:
    """Add to a snapshot what a flow skips; its segments are those of `PendingSegments.read`."""
    kept = []
    for lead, size, frame, time_ns, data in segments:
        if lead:
            snapshot.skipped_frames.append((frame, time_ns))
        if size:
            kept.append((lead, data, frame, time_ns))
    snapshot.skipping = Skipping(int(flow[REMAINING]), 0, int(flow[SKIPPED_BYTES]), -1, kept)
