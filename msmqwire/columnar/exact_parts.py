"""Captures divided into parts of which each begins with the state that the one before it ends with.

One reader goes over the capture first, which takes about a fifth of the time of decoding it, and keeps its
state at the start of each part. So parts have exactly the rows of one reader of the whole capture, with the
numbers of frames and streams, whatever is in it. `msmqwire.columnar.parts` needs no such reader; there a part
knows of the connections at its start what an overlap shows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from msmqwire.capture.window import Window
from msmqwire.dissection import dissect
from msmqwire.netware.readings import PROPOSED
from msmqwire.netware.readings import Readings as NcpReadings


@dataclass(frozen=True)
class ExactPart:
    """The input of one task.

    Attributes:
        windows: what to read, in order.
        state: that of a reader before it, for `ResumableDecoder.resume`; empty for the start of the capture.
            A pickle: only for those who trust who made it.
        is_last: whether the capture ends with it.
    """

    windows: tuple[Window, ...]
    state: bytes = field(repr=False)
    is_last: bool


def exact_parts(
    files: Sequence[Window],
    part_size: int,
    *,
    ports: Collection[int] = (),
    ncp_readings: NcpReadings = PROPOSED,
) -> Iterator[ExactPart]:
    """Yield the parts of a capture, each as soon as it is known. The whole capture is read here.

    Args:
        files: the files, each as one window, in their order.
        part_size: bytes of files in a part, about; 0: each file is a part. Compressed files are not divided.
        ports, ncp_readings: as for `msmqwire.dissect`, and the same for the readers of the parts.

    Raises:
        OSError: a file can't be read.
    """
    from msmqwire.columnar.resumable_decoder import Checkpoint, Surveyor

    surveyor = Surveyor(dissect([], ports=ports, lint=False, ncp_readings=ncp_readings), part_size)
    start = Checkpoint(0, 0, b"")
    for following in surveyor.checkpoints(files):
        windows = _between(files, (start.file, start.offset), (following.file, following.offset))
        yield ExactPart(windows, start.state, False)
        start = following
    yield ExactPart(_between(files, (start.file, start.offset), (len(files), 0)), start.state, True)


def _between(files: Sequence[Window], start: tuple[int, int], end: tuple[int, int]) -> tuple[Window, ...]:
    """Return the windows between two places, each an index of a file and an offset in it."""
    windows = [*files[start[0] : end[0]]]
    if end[1]:
        windows.append(replace(files[end[0]], end=end[1]))
    if start[1]:
        windows[0] = replace(windows[0], start=start[1])
    return tuple(windows)
