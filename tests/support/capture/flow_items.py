"""The items of shuffled segments, made packet by packet: what the compiled decoder of flows must equal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from msmqwire.analysis.dissection import Item, Tracker
from spark_udfs.reassembly.chunks import ChunkBoundaries, Segments, chunks


def flow_items(
    batches: Iterable[Any],
    *,
    ports: Collection[int] = (),
    lint: bool = False,
    end_ns: int = 0,
    boundaries: ChunkBoundaries | None = None,
) -> Iterator[tuple[int, Item]]:
    """Yield the items of segments, each with its flow number; each flow has a separate tracker.

    The arguments are as for `spark_udfs.reassembly.packets.packet_batches`; `lint`, which is not for divided
    flows, has the packets judged.
    """
    segments = Segments(batches)
    for chunk in chunks(segments, boundaries or {}):
        tracker = Tracker(ports=ports, lint=lint, locate=segments.locate)
        if chunk.checkpoint is not None:
            tracker.resume(chunk.checkpoint)
        for segment in chunk.segments:
            for item in tracker.feed(segment):
                yield chunk.flow, item
        if chunk.is_last:
            for item in tracker.flush(end_ns):
                yield chunk.flow, item
