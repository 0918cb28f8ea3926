"""Segments in the order in which a task gets them: flow by flow, or piece by piece of flows that are cut."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msmqwire.capture import Datagram
from msmqwire.capture.connection_checkpoint import ConnectionCheckpoint

NEEDED: Final = (
    "flow", "file_index", "offset", "file", "time_ns", "transport", "src", "src_port", "dst", "dst_port",
    "payload", "missing", "seq", "ack", "flags",
)  # fmt: skip
"""The columns of segments that reassembly looks at."""
OFFSET_BITS: Final = 42
"""Bits of a place in the capture that stand for the offset in a file, up to 4 TiB; the index of the file is
above them, up to 2 million in 63 bits."""


class Cut(NamedTuple):
    """A place in a connection where a tracker may begin anew.

    Attributes:
        place: that of the first segment behind it, see `place_of`.
        saved: what is known of the connection there.
    """

    place: int
    saved: ConnectionCheckpoint


Cuts = Mapping[int, Sequence[Cut]]
"""By flow number, where it is cut, in the order of the capture."""


def place_of(file_index: int, offset: int) -> int:
    """A frame's place in the capture: a number that grows from frame to frame, through all files."""
    return file_index << OFFSET_BITS | offset


class Segments:
    """The segments of batches, one by one, with their flows.

    Attributes:
        files: the names of the files seen, by their index in the capture.
    """

    def __init__(self, batches: Iterable[Any]) -> None:
        self.files: dict[int, str] = {}
        self._batches = batches

    def __iter__(self) -> Iterator[tuple[int, Datagram]]:
        for batch in self._batches:
            columns = [batch.column(name).to_pylist() for name in NEEDED]
            for (
                flow, index, offset, file, time_ns, transport, src, src_port, dst, dst_port,
                payload, missing, seq, ack, flags,
            ) in zip(*columns, strict=True):  # fmt: skip
                self.files[index] = file
                yield flow, Datagram(
                    transport, src, src_port, dst, dst_port, time_ns or 0, (place_of(index, offset),), file,
                    payload, missing, seq, ack, flags,
                )  # fmt: skip

    def place(self, frames: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """The file of the last of some frames, and the offsets of all."""
        offset = (1 << OFFSET_BITS) - 1
        return self.files[frames[-1] >> OFFSET_BITS], tuple(frame & offset for frame in frames)


def pieces(
    segments: Iterable[tuple[int, Datagram]], cuts: Cuts
) -> Iterator[tuple[int, int, ConnectionCheckpoint | None, bool, Iterator[Datagram]]]:
    """Segments in runs of one flow, or of one piece of a flow that is cut.

    Gives flow and number of the piece, what is known where it begins, whether it is the last of its flow,
    and its segments, to be used up before the next is asked for.
    """
    source = iter(segments)
    following = next(source, None)

    def run(flow: int, end: int) -> Iterator[Datagram]:
        nonlocal following
        while following is not None and following[0] == flow and following[1].frames[0] < end:
            yield following[1]
            following = next(source, None)

    while following is not None:
        flow, datagram = following
        places = [cut.place for cut in cuts.get(flow, ())]
        number = bisect_right(places, datagram.frames[0])
        last = number == len(places)
        saved = cuts[flow][number - 1].saved if number else None
        yield flow, number, saved, last, run(flow, datagram.frames[0] + (1 << 63) if last else places[number])
