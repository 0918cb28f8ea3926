"""The work for an exact lake: everything from the first capture on that is new or has changed.

All captures of a lake are one capture, in their order, and a part has the rows that one reader of it finds
there. They depend on whatever comes before, so a part stays if nothing before its end has changed. The
captures before are read again too, without making rows: the state of the reader there is in no lake, as it
would have to be trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from msmqwire.analysis.protocols.readings import PROPOSED, NcpReadings
from msmqwire.capture.record_index import is_splittable
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions, is_url
from msmqwire.capture.window import Window
from msmqwire.errors import CaptureError, LakeMismatch
from msmqwire.tables.exact_parts import MapWindows, plan_exact_parts
from msmqwire.tables.lake.captures import Change, examine_all
from msmqwire.tables.lake.planning import SPLIT_SIZE, Plan, without
from msmqwire.tables.lake.state import CaptureEntry, LakeState, PartEntry


def plan_exact_run(
    files: Sequence[str],
    state: LakeState,
    *,
    split_size: int = SPLIT_SIZE,
    ports: Collection[int] = (),
    ncp_readings: NcpReadings = PROPOSED,
    storage_options: StorageOptions = NO_OPTIONS,
    map_windows: MapWindows | None = None,
    progress: Callable[[int], None] | None = None,
) -> Plan:
    """Return the parts to read so that a lake has the rows of one reader of these captures.

    Args:
        files: absolute paths and URLs, each once, in their order; among them all that the lake has.
        state: the state of the lake.
        split_size: bytes of a part, about.
        ports, ncp_readings: as for `msmqwire.dissect`.
        storage_options: the options of the stores of URLs.
        map_windows: as for `exact_parts`.
        progress: as for `plan_exact_parts`.

    Raises:
        LakeMismatch: a capture of the lake is not named.
        OSError: a file can't be read.
    """
    refuse_missing(state, files)
    examined = examine_all(files, state.captures, storage_options)
    captures = {entry.path: entry for entry, _ in examined}
    windows = [whole_window(entry, storage_options) for entry, _ in examined]
    kept, start = kept_parts(state, windows, {entry.path: change for entry, change in examined})
    if kept and start == (len(files), 0) and not kept[-1].is_last:
        # It was followed: what was incomplete at the end is to be reported too.
        first = kept.pop().windows[0]
        start = (files.index(first.path), first.start)
    while start != (len(files), 0):
        try:
            parts = plan_exact_parts(
                windows,
                split_size,
                start=start,
                ports=ports,
                ncp_readings=ncp_readings,
                map_windows=map_windows,
                progress=progress,
            ).parts
            return Plan(parts, without(state.parts, kept), captures)
        except CaptureError:  # no record begins where the state says so
            kept, start = [], (0, 0)
    return Plan([], [], captures)


def refuse_missing(state: LakeState, files: Collection[str]) -> None:
    """Refuse captures of which some of the lake are missing. Raises LakeMismatch."""
    named = set(files)
    missing = [path for path in state.captures if path not in named]
    if missing:
        raise LakeMismatch(
            "the lake has the rows of one capture, of which this is a part: name all of it, in its order, or"
            " start another lake",
            file=missing[0],
        )


def whole_window(entry: CaptureEntry, storage_options: StorageOptions = NO_OPTIONS) -> Window:
    """Return the window of a capture as it is by its entry."""
    options = storage_options if is_url(entry.path) else NO_OPTIONS
    return Window(entry.path, b"", 0, entry.size, storage_options=options, version=entry.version)


def kept_parts(
    state: LakeState,
    files: Sequence[Window],
    changes: Mapping[str, Change],
    *,
    readable: Collection[str] = (),
) -> tuple[list[PartEntry], tuple[int, int]]:
    """Return the parts of a lake that stay, and the place after them: the index of a file, and an offset in
    it.

    Args:
        state: the state of the lake.
        files: the files of the capture, each as one window, in their order.
        changes: the changes of the captures of the lake.
        readable: captures whose damages, unless they are cut off, are records that are passed over.
    """
    by_start = {(part.windows[0].path, part.windows[0].start): part for part in state.parts}
    damaged = {
        damage.file
        for part in state.parts
        for damage in part.damages
        if damage.cut or damage.file not in readable
    }
    known = {window.path: window for window in files}
    valid = {
        path: _valid_bytes(entry, changes[path], known.get(path), is_damaged=path in damaged)
        for path, entry in state.captures.items()
        if path in changes
    }
    kept, place = list[PartEntry](), (0, 0)
    while place[0] < len(files):
        part = by_start.get((files[place[0]].path, place[1]))
        end = None if part is None else _end(part, place, files, valid)
        if part is None or end is None or (part.is_last and end != (len(files), 0)):
            break
        kept.append(part)
        place = end
    return kept, place


def _valid_bytes(entry: CaptureEntry, change: Change, window: Window | None, *, is_damaged: bool) -> int:
    """The bytes at the start of a capture that are those that the lake was made of."""
    if change is Change.GROWN and window is not None:
        # The last record of a file that has grown may have been cut off.
        whole = not is_damaged and is_splittable(entry.path, window.storage_options)
        return entry.size if whole else entry.size - 1
    return entry.size if change is Change.NONE else 0


def _end(
    part: PartEntry, place: tuple[int, int], files: Sequence[Window], valid: Mapping[str, int]
) -> tuple[int, int] | None:
    """The place after a part that begins at another place; None if its source is not there.

    ``valid`` says how many bytes of each file are those that the lake was made of.
    """
    file, offset = place
    for window in part.windows:
        if file == len(files) or (window.path, window.start) != (files[file].path, offset):
            return None
        if not offset <= window.end <= valid.get(window.path, 0):
            return None
        if window.end == files[file].end:
            file, offset = file + 1, 0
        else:
            offset = window.end
    return (file, offset) if (file, offset) > place else None
