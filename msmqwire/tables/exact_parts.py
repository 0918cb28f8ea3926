"""Captures divided into parts of which each begins with the state that the one before it ends with.

One reader goes over the capture first, which takes about half of the time of decoding it, and keeps its state
at the start of each part. So parts have exactly the rows of one reader of the whole capture, with the numbers
of frames and streams, whatever is in it. `msmqwire.tables.parts` needs no such reader; there a part knows the
connections at its start only by an overlap.

States are small, unless a capture is made to fill the memory of a reader: then parts are larger, so that
their states stay within bounds.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from msmqwire.analysis.dissection import Dissection, dissect
from msmqwire.analysis.protocols.readings import PROPOSED, NcpReadings
from msmqwire.capture.record_index import record_positions
from msmqwire.capture.splits import divide
from msmqwire.capture.window import Window
from msmqwire.errors import CaptureError

if TYPE_CHECKING:
    from msmqwire.tables.part_survey import PartSurvey
    from msmqwire.tables.resumable_decoder import Checkpoint

MapWindows: TypeAlias = "Callable[[Callable[[Window], PartSurvey], Sequence[Window]], Iterable[PartSurvey]]"
"""Makes the survey of each window, in processes or tasks; returns the surveys in the order of the windows."""
SURVEYORS_MIN: Final = 4
"""Processors from which on surveys take less time than one reader: they take three times as many seconds."""
STATES_MAX: Final = 256 << 20
"""Bytes of the states of all parts of a plan."""


@dataclass(frozen=True)
class ExactPart:
    """The input of one task.

    Attributes:
        windows: the windows to read, in order.
        state: that of a reader before it, for `ResumableDecoder.resume`; empty for the start of the capture.
            A pickle: only for readers that trust its maker.
        is_last: whether the capture ends with it.
        by_offset: whether the number of a frame is the offset of its record in the (unpacked) file.
    """

    windows: tuple[Window, ...]
    state: bytes = field(repr=False)
    is_last: bool
    by_offset: bool = False


def exact_parts(
    files: Sequence[Window],
    part_size: int,
    *,
    start: tuple[int, int] = (0, 0),
    by_offset: bool = False,
    ports: Collection[int] = (),
    ncp_readings: NcpReadings = PROPOSED,
    map_windows: MapWindows | None = None,
) -> Iterator[ExactPart]:
    """Yield the parts of a capture, each as soon as it is known.

    The whole capture is read here, unless processes or tasks survey its windows: see `part_survey`.

    A part is larger if its state would otherwise be more than 1 MiB and a sixteenth of it.

    Args:
        files: the files, each as one window, in their order.
        part_size: bytes of files in a part, about; 0: each file is a part. Compressed files are not divided.
        start: the index of a file and the offset of a record in it: there the first part begins. Bytes before
            it are read too, but are in no part.
        by_offset: see `ExactPart`.
        ports, ncp_readings: as for `msmqwire.dissect`, and the same for the readers of the parts.
        map_windows: makes the surveys of windows, in processes or tasks; None for one reader.

    Raises:
        CaptureError: the start is not that of a record.
        OSError: a file can't be read.
    """
    dissection = dissect([], ports=ports, lint=False, ncp_readings=ncp_readings)
    if map_windows is None or not 0 < part_size < sum(file.end for file in files):
        checkpoints = _read_checkpoints(dissection, files, part_size, start, by_offset)
    else:
        checkpoints = _joined_checkpoints(dissection, files, part_size, start, by_offset, map_windows)
    begun = next(checkpoints)
    for following in checkpoints:
        windows = _between(files, begun[:2], following[:2])
        yield ExactPart(windows, begun.state, False, by_offset)
        begun = following
    yield ExactPart(_between(files, begun[:2], (len(files), 0)), begun.state, True, by_offset)


def state_at(
    files: Sequence[Window],
    place: tuple[int, int],
    *,
    ports: Collection[int] = (),
    ncp_readings: NcpReadings = PROPOSED,
) -> bytes:
    """Return the state of a reader of a capture at a place; the capture is read up to there.

    Args:
        files: the files, each as one window, in their order.
        place: the index of a file and the offset of a record in it; not the start of the capture.
        ports, ncp_readings: as for `exact_parts`.

    Raises:
        CaptureError: the place is not the start of a record.
        OSError: a file can't be read.
    """
    dissection = dissect([], ports=ports, lint=False, ncp_readings=ncp_readings)
    return next(_read_checkpoints(dissection, files, 0, place, False)).state


def _read_checkpoints(
    dissection: Dissection, files: Sequence[Window], part_size: int, start: tuple[int, int], by_offset: bool
) -> Iterator[Checkpoint]:
    """Yield the checkpoints at the start and after it, reading the capture."""
    from msmqwire.tables.resumable_decoder import Checkpoint, Surveyor

    surveyor = Surveyor(dissection, part_size, by_offset=by_offset)
    if any(start):
        yield surveyor.read_until(_between(files, (0, 0), start), start)
    else:
        yield Checkpoint(*start, b"")
    yield from surveyor.checkpoints(files, start)


def _joined_checkpoints(
    dissection: Dissection,
    files: Sequence[Window],
    part_size: int,
    start: tuple[int, int],
    by_offset: bool,
    map_windows: MapWindows,
) -> Iterator[Checkpoint]:
    """Yield the checkpoints at the start and after it, from surveys of windows."""
    from msmqwire.tables.resumable_decoder import Checkpoint
    from msmqwire.tables.survey_joining import SurveyJoiner

    survey = partial(_survey, dissection=pickle.dumps(dissection), by_offset=by_offset)
    joiner = SurveyJoiner(dissection, part_size, by_offset=by_offset)
    windows = [list[Window]() for _ in files]
    for number, file in enumerate(files):
        windows[number] = _divided(file, part_size, start[1] if number == start[0] else 0)
    surveys = iter(map_windows(survey, [window for of_file in windows for window in of_file]))
    if not any(start):
        yield Checkpoint(*start, b"")
    for number, file in enumerate(files):
        before = [window for window in windows[number] if (number, window.start) < start]
        for _ in joiner.checkpoints(number, file, islice(surveys, len(before))):
            pass
        if any(start) and number == start[0]:
            if start[1] and joiner.errors:
                raise joiner.errors[-1]
            yield joiner.save(*start)
        yield from joiner.checkpoints(number, file, islice(surveys, len(windows[number]) - len(before)))


def _survey(window: Window, *, dissection: bytes, by_offset: bool) -> PartSurvey:
    """Return the survey of a window, in a task; the dissection is a pickle of one without sources."""
    from msmqwire.tables.part_survey import survey

    return survey(window, pickle.loads(dissection), by_offset=by_offset)


def _divided(file: Window, part_size: int, at: int) -> list[Window]:
    """Return the windows of a file, one of which starts at an offset. Raises CaptureError if none can."""
    from msmqwire.tables.compiled.skip import skip_records

    windows = divide(file, part_size, search=True, skip=skip_records)
    if not at or any(window.start == at for window in windows):
        return windows
    index = next(number for number, window in enumerate(windows) if window.start < at < window.end)
    window = windows[index]
    for position in record_positions(window, lambda _: at):
        if position.start >= at:
            if position.start != at or position.head is None:
                raise CaptureError("no record starts there", file=file.path, offset=at)
            windows[index : index + 1] = [
                replace(window, end=at, tails=()),
                replace(window, head=position.head, start=at),
            ]
            return windows
    raise CaptureError("no record starts there", file=file.path, offset=at)


@dataclass(frozen=True)
class ExactPlan:
    """All parts of a capture.

    Attributes:
        parts: the parts, in their order.
        is_coarse: whether parts were joined because their states are too large, so that there may be few.
    """

    parts: Sequence[ExactPart]
    is_coarse: bool


def plan_exact_parts(
    files: Sequence[Window],
    part_size: int,
    *,
    start: tuple[int, int] = (0, 0),
    by_offset: bool = False,
    ports: Collection[int] = (),
    ncp_readings: NcpReadings = PROPOSED,
    map_windows: MapWindows | None = None,
    progress: Callable[[int], None] | None = None,
) -> ExactPlan:
    """Return the parts of a capture; arguments and errors as for `exact_parts`.

    If their states took more than `STATES_MAX` bytes, neighbours would be one part. `progress` gets the
    bytes of each part that was found.
    """
    parts, size = list[ExactPart](), 0
    wanted = last = 1  # parts that are joined to one, and those that the last one has
    found = exact_parts(
        files,
        part_size,
        start=start,
        by_offset=by_offset,
        ports=ports,
        ncp_readings=ncp_readings,
        map_windows=map_windows,
    )
    for part in found:
        if progress is not None:
            progress(sum(window.end - window.start for window in part.windows))
        if parts and last < wanted:
            parts[-1] = _joined(parts[-1], part)
            last += 1
        else:
            parts.append(part)
            size, last = size + len(part.state), 1
        while size > STATES_MAX and len(parts) > 1:
            last += 0 if len(parts) % 2 else wanted
            parts = [_joined(*parts[number : number + 2]) for number in range(0, len(parts), 2)]
            size, wanted = sum(len(part.state) for part in parts), 2 * wanted
    return ExactPlan(parts, wanted > 1)


def _joined(first: ExactPart, *others: ExactPart) -> ExactPart:
    """Return adjoining parts as one."""
    windows = list(first.windows)
    for window in (window for part in others for window in part.windows):
        if window.start:
            windows[-1] = replace(windows[-1], end=window.end)
        else:
            windows.append(window)
    return replace(first, windows=tuple(windows), is_last=[first, *others][-1].is_last)


def _between(files: Sequence[Window], start: tuple[int, int], end: tuple[int, int]) -> tuple[Window, ...]:
    """Return the windows between two places, each an index of a file and an offset in it."""
    windows = [*files[start[0] : end[0]]]
    if end[1]:
        windows.append(replace(files[end[0]], end=end[1]))
    if start[1]:
        windows[0] = replace(windows[0], start=start[1])
    return tuple(windows)
