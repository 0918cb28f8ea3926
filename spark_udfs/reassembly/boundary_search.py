"""The search for chunk boundaries, which divide a connection of any length among tasks with the same result.

A boundary is placed, in the order of the capture, before a segment that begins a packet, at a moment when
neither direction has anything buffered or outstanding. A tracker's whole state of the connection is then a
few numbers, and a tracker that resumes from them continues exactly as the first would have: segments out of
order and retransmissions are judged by the same numbers. The search needs no payload: reassembly is run on
the sizes alone. Only the bytes before a boundary can tell whether a packet really begins there and none
continues in the other direction, so every boundary is verified by the chunk before it, and dropped unless
that chunk ends in exactly the state with which the next one begins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from msmqwire.analysis.dissection.tracker import CONNECTIONS_MAX
from msmqwire.capture import Datagram, Reassembler
from msmqwire.capture.ip import FIN, RST, SYN, FlowKey
from msmqwire.capture.record import NO_TIME
from msmqwire.framing import begins_packet
from msmqwire.headers.base import PREFIX_SIZE
from msmqwire.packets import packet_length, well_formed
from spark_udfs.reassembly.chunks import ChunkBoundaries, ChunkBoundary, position_of
from spark_udfs.reassembly.flow_decoder import ChunkChecker
from spark_udfs.reassembly.segment_tunnels import SegmentTunnels

_HEADER_FIELDS: Final = {
    "flow": pa.int64(),
    "file_index": pa.int32(),
    "offset": pa.int64(),
    "time_ns": pa.int64(),
    "src": pa.string(),
    "src_port": pa.int32(),
    "dst": pa.string(),
    "dst_port": pa.int32(),
    "missing": pa.int64(),
    "seq": pa.int64(),
    "ack": pa.int64(),
    "flags": pa.int32(),
}
HEADER_SCHEMA: Final = pa.schema(
    {**_HEADER_FIELDS, "network": pa.int64(), "size": pa.int64(), "begins_packet": pa.bool_()}
)
"""Segments without payload: their network, the size of the payload, and whether it begins with a packet."""
BOUNDARY_SCHEMA: Final = pa.schema(
    {"flow": pa.int64(), "position": pa.int64(), "pickled_checkpoint": pa.binary()}
)
"""Boundaries as rows."""
CHECK_SCHEMA: Final = pa.schema({"flow": pa.int64(), "chunk": pa.int32(), "matches": pa.bool_()})
"""Whether a chunk ends in the state with which the next begins."""


def segment_headers(batches: Iterable[Any]) -> Iterator[Any]:
    """Convert batches of segments to batches of `HEADER_SCHEMA`."""
    for batch in batches:
        payloads = batch.column("payload").to_pylist()
        columns = [batch.column(name).cast(kind) for name, kind in _HEADER_FIELDS.items()]
        tunnels = SegmentTunnels.of(batch)
        columns.append(pa.array([tunnels.at(row)[1] for row in range(batch.num_rows)], pa.int64()))
        columns.append(pa.array([len(payload) for payload in payloads], pa.int64()))
        columns.append(pa.array([begins_with_packet(payload) for payload in payloads], pa.bool_()))
        yield pa.RecordBatch.from_arrays(columns, schema=HEADER_SCHEMA)


def begins_with_packet(payload: bytes) -> bool:
    """Whether a payload seems to begin with a packet; one that it contains whole must be well-formed."""
    if len(payload) < PREFIX_SIZE or not begins_packet(payload):
        return False
    size = packet_length(payload)
    return size > len(payload) or well_formed(payload, 0, size)


@dataclass(slots=True)
class _Search:
    """The search for boundaries in one flow.

    Attributes:
        chunk_size: bytes of payload after which a boundary is due.
        since_boundary: bytes of payload since the last boundary.
        pending: boundaries that the opposite direction has not confirmed yet.
        opposite: source and destination of the direction whose next bytes show whether it was between packets
            at the pending boundaries.
    """

    chunk_size: int
    reassembler: Reassembler = field(default_factory=lambda: Reassembler(max_flows=CONNECTIONS_MAX))
    since_boundary: int = 0
    pending: list[ChunkBoundary] = field(default_factory=list)
    opposite: FlowKey = ("", 0, "", 0, 0)

    def feed(self, segment: Datagram, at_packet_start: bool) -> list[ChunkBoundary]:
        """Return the boundaries that a segment confirms, as far as possible without the bytes."""
        direction, confirmed = segment.key, list[ChunkBoundary]()
        if self.pending and self._continues_opposite(segment):
            if at_packet_start:
                confirmed = self.pending
            else:
                self.since_boundary = self.chunk_size
            self.pending = []
        is_due = self.since_boundary >= self.chunk_size
        if is_due and at_packet_start and not segment.flags & (SYN | FIN | RST):
            checkpoint = self.reassembler.save()
            if checkpoint is not None and checkpoint.next_of(direction) == segment.seq:
                self.pending.append(ChunkBoundary(segment.frames[0], checkpoint))
                src, src_port, dst, dst_port, network = direction
                self.opposite, self.since_boundary = (dst, dst_port, src, src_port, network), 0
        self.reassembler.feed(segment)
        self.since_boundary += len(segment.payload)
        return confirmed

    def _continues_opposite(self, segment: Datagram) -> bool:
        """Whether a segment has the next bytes of the opposite direction."""
        direction = segment.key
        expected = self.pending[-1].checkpoint.next_of(direction)
        return bool(segment.payload) and direction == self.opposite and segment.seq == expected


def find_boundaries(batches: Iterable[Any], chunk_size: int) -> Iterator[tuple[int, ChunkBoundary]]:
    """Yield a boundary about every `chunk_size` bytes of payload, each with its flow number.

    Takes batches of `HEADER_SCHEMA`, flow by flow, each flow in the order of the capture.
    """
    search, current_flow = _Search(chunk_size), 0
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in HEADER_SCHEMA.names]
        for (
            flow, index, offset, time_ns, src, src_port, dst, dst_port, missing, seq, ack, flags, network,
            size, begins
        ) in zip(*columns, strict=True):  # fmt: skip
            if flow != current_flow:
                yield from ((current_flow, boundary) for boundary in search.pending)
                search, current_flow = _Search(chunk_size), flow
            segment = Datagram(
                "tcp", src, src_port, dst, dst_port,
                NO_TIME if time_ns is None else time_ns, (position_of(index, offset),), "",
                bytes(size), missing, seq, ack, flags, network,
            )  # fmt: skip
            for boundary in search.feed(segment, begins):
                yield flow, boundary
    yield from ((current_flow, boundary) for boundary in search.pending)


def check_chunks(
    batches: Iterable[Any], boundaries: ChunkBoundaries, *, ports: Collection[int] = ()
) -> Iterator[tuple[int, int, bool]]:
    """Yield flow, chunk number, and whether the chunk ends in the state with which the next one begins, for
    every chunk but the last of a flow.

    Takes batches of segments as `spark_udfs.reassembly.packets.packet_batches` does.
    """
    checker = ChunkChecker(ports=ports, boundaries=boundaries)
    for _ in checker.batches(batches):
        raise AssertionError("rows of a checker")
    yield from checker.checked


def without_failed(
    boundaries: ChunkBoundaries, failed: Mapping[int, Collection[int]]
) -> dict[int, list[ChunkBoundary]]:
    """Return the boundaries that remain when the chunks that failed the check are joined with the next ones.

    Args:
        boundaries: of flows.
        failed: the numbers of the chunks by flow.
    """
    remaining = {
        flow: [boundary for number, boundary in enumerate(of_flow) if number not in failed.get(flow, ())]
        for flow, of_flow in boundaries.items()
    }
    return {flow: of_flow for flow, of_flow in remaining.items() if of_flow}
