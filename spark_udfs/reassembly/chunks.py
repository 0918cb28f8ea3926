"""Flows divided into chunks, and the order in which a task gets their segments.

Segments arrive flow by flow, each flow in the order of the capture. A giant flow is divided at boundaries
into chunks, each of which is reassembled by a separate task.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msmqwire.capture import Datagram
from msmqwire.capture.connection_checkpoint import ConnectionCheckpoint
from msmqwire.capture.record import NO_TIME
from msmqwire.capture.tunnels import frame_in_tunnel
from msmqwire.tables.columns import TUNNEL
from spark_udfs.reassembly.segment_tunnels import SegmentTunnels

SEGMENT_COLUMNS: Final = (
    "flow", "file_index", "offset", "file", "time_ns", "transport", "src", "src_port", "dst", "dst_port",
    "payload", "missing", "seq", "ack", "flags", *TUNNEL,
)  # fmt: skip
"""The columns of segments that reassembly needs."""
OFFSET_BITS: Final = 42
"""Bits of a position in the capture that hold the offset in a file, up to 4 TiB; the index of the file is
above them, up to 2 million in 63 bits."""


class ChunkBoundary(NamedTuple):
    """A position in a connection from which a tracker can resume.

    Attributes:
        position: the position of the first segment after it, see `position_of`.
        checkpoint: the state of the connection there.
    """

    position: int
    checkpoint: ConnectionCheckpoint


ChunkBoundaries = Mapping[int, Sequence[ChunkBoundary]]
"""The boundaries between the chunks of a flow by flow number, in the order of the capture."""


def position_of(file_index: int, offset: int) -> int:
    """Return the position of a frame in the capture, which grows from frame to frame through all files."""
    return file_index << OFFSET_BITS | offset


class Segments:
    """The segments of batches, one by one, with their flow numbers.

    Attributes:
        files: the names of the files seen, by their index in the capture.
    """

    def __init__(self, batches: Iterable[Any]) -> None:
        self.files: dict[int, str] = {}
        self._batches = batches

    def __iter__(self) -> Iterator[tuple[int, Datagram]]:
        for batch in self._batches:
            columns = [batch.column(name).to_pylist() for name in SEGMENT_COLUMNS if name not in TUNNEL]
            tunnels = SegmentTunnels.of(batch)
            for row, (
                flow, index, offset, file, time_ns, transport, src, src_port, dst, dst_port,
                payload, missing, seq, ack, flags,
            ) in enumerate(zip(*columns, strict=True)):  # fmt: skip
                self.files[index] = file
                tunnel, network = tunnels.at(row)
                yield flow, Datagram(
                    transport, src, src_port, dst, dst_port, NO_TIME if time_ns is None else time_ns,
                    (frame_in_tunnel(position_of(index, offset), tunnel),),
                    file, payload, missing, seq, ack, flags, network,
                )  # fmt: skip

    def locate(self, positions: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """Return the file of the last of some frames, and the offsets of all."""
        mask = (1 << OFFSET_BITS) - 1
        return self.files[positions[-1] >> OFFSET_BITS], tuple(position & mask for position in positions)


class Chunk(NamedTuple):
    """The segments of a flow, or of one chunk of a divided flow.

    Attributes:
        flow: the flow number.
        number: the index of the chunk in its flow, from 0.
        checkpoint: the state of the connection at its start; None for the start of the flow.
        is_last: whether it is the last of its flow.
        segments: to be consumed before the next chunk is asked for.
    """

    flow: int
    number: int
    checkpoint: ConnectionCheckpoint | None
    is_last: bool
    segments: Iterator[Datagram]


def chunks(segments: Iterable[tuple[int, Datagram]], boundaries: ChunkBoundaries) -> Iterator[Chunk]:
    """Yield the chunks of segments in the order of the module; a flow without boundaries is one chunk."""
    source = iter(segments)
    following = next(source, None)

    def segments_before(flow: int, end: int) -> Iterator[Datagram]:
        nonlocal following
        while following is not None and following[0] == flow and following[1].frames[0] < end:
            yield following[1]
            following = next(source, None)

    while following is not None:
        flow, first = following
        position = first.frames[0]
        positions = [boundary.position for boundary in boundaries.get(flow, ())]
        number = bisect_right(positions, position)
        is_last = number == len(positions)
        checkpoint = boundaries[flow][number - 1].checkpoint if number else None
        end = position + (1 << 63) if is_last else positions[number]
        yield Chunk(flow, number, checkpoint, is_last, segments_before(flow, end))
