"""The work of a step that follows captures: what is new in them and complete, as one part.

The state of the reader after what this process has read is kept in memory, by the number of the part, and its
end. Numbers are never used again, and an exact lake keeps the parts before a change only: so a state fits as
long as its part is in the lake, whoever has changed the lake meanwhile.

Steps are small, and what a lake has of each part is written with each commit: so a step continues the last
part, until that is large enough or another file begins.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from msmqwire.analysis.protocols.readings import NcpReadings
from msmqwire.capture.source import GZIP_MAGIC, ZSTD_MAGIC, ZSTD_SKIPPABLE_MAGICS
from msmqwire.capture.splits import Index
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions, is_url
from msmqwire.capture.window import Window
from msmqwire.errors import CaptureError, LakeMismatch, MsmqError
from msmqwire.names.printable import counted, safe
from msmqwire.tables.exact_parts import ExactPart, state_at
from msmqwire.tables.lake.captures import Change, entry_of_beginning, examine_all
from msmqwire.tables.lake.exact_planning import kept_parts, refuse_missing, whole_window
from msmqwire.tables.lake.place import Place
from msmqwire.tables.lake.planning import Plan, without
from msmqwire.tables.lake.settings import is_exact
from msmqwire.tables.lake.state import CaptureEntry, LakeState, PartEntry
from msmqwire.tables.lake.watching import Look
from msmqwire.tables.parts import skip_known

STATES_MAX: Final = 64 << 20
"""Bytes of the states of readers that are kept; the last one is in any case."""

CONTINUED_MAX: Final = 64 << 20
"""Bytes of a part that is not continued any more."""

Notice = Callable[[str], None]
"""Says something to whoever follows."""
_Place = tuple[int, str, int]
"""The number of a part, and a file with an offset in it."""


@dataclass
class StepPlanner:
    """Plans the steps.

    Attributes:
        place: where the lake is, for messages.
        step_size: bytes that a step reads, about.
        ports, ncp_readings, storage_options: as for `msmqwire.tables.lake.write_lake`.
        notice: gets lines about what is not as usual.
        has_work: whether the last plan has changed anything.
        has_more: whether the last plan has left something that can be read at once.
        waits: whether it waits for a file to be as it was at the next look.
        unread: the bytes of a last record that is not complete, by capture, as the last plan has found them.
    """

    place: Place
    step_size: int
    ports: tuple[int, ...]
    ncp_readings: NcpReadings
    storage_options: StorageOptions
    notice: Notice
    has_work: bool = False
    has_more: bool = False
    waits: bool = False
    unread: dict[str, int] = field(default_factory=dict)
    _states: dict[_Place, bytes] = field(default_factory=dict)
    _order: list[str] = field(default_factory=list)
    _indexes: dict[str, Index] = field(default_factory=dict)
    _said: set[str] = field(default_factory=set)

    def keep(self, number: int, end: Window, state: bytes) -> None:
        """Keep the state of the reader after a window of a part."""
        self._states[number, end.path, end.end] = state
        while len(self._states) > 1 and sum(map(len, self._states.values())) > STATES_MAX:
            del self._states[next(iter(self._states))]

    def plan(self, look: Look, state: LakeState, *, is_final: bool) -> Plan:
        """Return the part to read so that the lake has what is complete of the captures, or some of it.

        Args:
            look: the captures.
            state: the state of the lake.
            is_final: whether there is no later look: then a file before others is taken as it is.

        Raises:
            LakeMismatch: the lake can't be followed.
            OSError: a file can't be read.
        """
        if not is_exact(state):
            raise LakeMismatch(
                "only a lake with the rows of one reader can be followed, and this one was begun without"
                " --splits exact: let plain runs add to it, or start another lake",
                file=self.place.shown,
            )
        found = self._examine(look, state)
        windows = [whole_window(entry, self.storage_options) for entry, _ in found.values()]
        changes = {path: change for path, (_, change) in found.items()}
        kept, place = kept_parts(state, windows, changes, readable=found)
        if place == (len(windows), 0):
            self.has_work = self.has_more = self.waits = False
            self.unread = {}
            return Plan([], [], {path: entry for path, (entry, _) in found.items()})
        self._say_why(state, kept, changes)
        reader = self._states.get(_end_of(kept[-1])) if kept else b""
        if reader is None:
            kept, place, reader = self._earlier(windows, kept, place)
        new = self._new(windows, place, look, is_final=is_final)
        first = {window.path for window in windows[place[0] :]}
        self._indexes = {path: index for path, index in self._indexes.items() if path in first}
        parts = [ExactPart(tuple(new), reader, is_last=False)] if new else []
        replaced = without(state.parts, kept)
        self.has_work = bool(parts or replaced)
        continued = kept[-1] if kept and new and self._continues(kept[-1], new) else None
        return Plan(parts, replaced, self._entries(place, new, found, state), continued)

    def _continues(self, part: PartEntry, new: Sequence[Window]) -> bool:
        """Whether windows continue a part of this process: inside a file, unless it is large enough."""
        size = sum(window.end - window.start for window in part.windows)
        return new[0].start > 0 and size < CONTINUED_MAX and _end_of(part) in self._states

    def _examine(self, look: Look, state: LakeState) -> dict[str, tuple[CaptureEntry, Change]]:
        """The captures in their order, also those that are gone since an earlier look."""
        refuse_missing(state, {*look.stamps, *self._order})
        for path in self._order:
            if path not in look.stamps and path in state.captures:
                self._say_once(f"{safe(path)} is gone: its rows stay in the lake", f"gone {path}")
        self._order = _with_gone(list(look.stamps), self._order, state.captures)
        same = {
            path: (known, Change.NONE)
            for path in self._order
            if (known := state.captures.get(path)) is not None
            and (path not in look.stamps or look.stamps[path].is_of(known))
        }
        others = [path for path in self._order if path not in same]
        found = {
            entry.path: (entry, change)
            for entry, change in examine_all(others, state.captures, self.storage_options)
        }
        damaged = {damage.file for part in state.parts for damage in part.damages if not damage.cut}
        for path, (entry, change) in found.items():
            if change is Change.REPLACED:
                self._indexes.pop(path, None)
            if change is Change.GROWN and path in damaged and self._is_ended(entry, state.captures[path]):
                found[path] = (state.captures[path], Change.NONE)
        return {path: same.get(path) or found[path] for path in self._order}

    def _is_ended(self, entry: CaptureEntry, known: CaptureEntry) -> bool:
        """Whether a reader gets no further than what the lake has of a capture."""
        error = self._index(entry.path, entry.size).error
        if error is None or error.cut or error.offset >= known.size:
            return False
        self._say_once(
            f"{safe(entry.path)} is damaged at byte {error.offset:,}: what comes after it there is not read",
            f"ended {entry.path}",
        )
        return True

    def _say_once(self, text: str, key: str) -> None:
        if key not in self._said:
            self._said.add(key)
            self.notice(text)

    def _say_why(self, state: LakeState, kept: Sequence[PartEntry], changes: Mapping[str, Change]) -> None:
        """Say why parts are read again, unless it is the end of the captures that is no longer one."""
        again = without(state.parts, kept)
        reason = self._reason(state, changes)
        if again and (reason or not (len(again) == 1 and again[0].is_last)):
            count = len({window.path for part in again for window in part.windows})
            why = reason or "the order of the captures has changed"
            self.notice(f"{why}: {counted(count, 'capture', 'are')} read again")

    def _reason(self, state: LakeState, changes: Mapping[str, Change]) -> str:
        read = {window.path for part in state.parts for window in part.windows}
        for number, path in enumerate(self._order):
            change = changes[path]
            if change is Change.REPLACED and path in read:
                return f"{safe(path)} was replaced, or has become shorter"
            if change in (Change.NEW, Change.GROWN) and not read.isdisjoint(self._order[number + 1 :]):
                verb = "has grown" if change is Change.GROWN else "has come"
                return f"{safe(path)} {verb} after later captures were read"
        return ""

    def _earlier(
        self, windows: Sequence[Window], kept: list[PartEntry], place: tuple[int, int]
    ) -> tuple[list[PartEntry], tuple[int, int], bytes]:
        """The parts that stay, the place after them, and the state of the reader there.

        Raises LakeMismatch, OSError.
        """
        numbers = {window.path: number for number, window in enumerate(windows)}
        for count in range(len(kept) - 1, 0, -1):
            state = self._states.get(_end_of(kept[count - 1]))
            if state is not None:
                first = kept[count].windows[0]
                return kept[:count], (numbers[first.path], first.start), state
        size = sum(window.end for window in windows[: place[0]]) + place[1]
        self.notice(
            f"going over {counted(size, 'byte')} that the lake has, for the state of the connections there"
        )
        try:
            state = state_at(windows, place, ports=self.ports, ncp_readings=self.ncp_readings)
        except FileNotFoundError as exc:
            raise self._gone(str(exc.filename)) from None
        except CaptureError:  # no record begins where the state of the lake says so
            return [], (0, 0), b""
        return kept, place, state

    def _gone(self, path: str) -> LakeMismatch:
        return LakeMismatch(
            "it is gone, and has to be read again for what comes after it: start another lake", file=path
        )

    def _new(
        self, windows: Sequence[Window], place: tuple[int, int], look: Look, *, is_final: bool
    ) -> list[Window]:
        """The windows to read: from a place on, as far as the captures are complete. Raises LakeMismatch."""
        new, size = list[Window](), 0
        self.has_more, self.waits, self.unread = False, False, {}
        for number, whole in enumerate(windows[place[0] :], place[0]):
            if whole.path not in look.stamps:
                raise self._gone(whole.path)
            if new and size >= self.step_size:
                self.has_more = True
                break
            window = replace(whole, start=place[1] if number == place[0] else 0)
            is_last = number == len(windows) - 1
            is_taken = (is_final or whole.path in look.steady) and not is_last
            if not whole.end and not is_taken:
                self.waits = not is_last
                break
            end = self._complete_end(window, is_taken=is_taken)
            limited = self._limited(replace(window, end=end), self.step_size - size)
            if limited.end > limited.start or limited.end == whole.end:
                new.append(limited)
                size += limited.end - limited.start
            if limited.end < end:
                self.has_more = True
                break
            if end < whole.end:
                self.unread[whole.path] = whole.end - end
                self.waits = not is_last
                break
        return new

    def _complete_end(self, window: Window, *, is_taken: bool) -> int:
        """Where the last record of a capture ends that is complete.

        That is the end of it if it can be read to its end, or only up to a damage; also if it is to be taken
        as it is.
        """
        if is_taken or is_url(window.path):
            return window.end
        index = self._index(window.path, window.end)
        if index.error is None or not (index.error.cut or _is_compressed(window.path)):
            return window.end
        return max(index.end, window.start)

    def _limited(self, window: Window, size: int) -> Window:
        """The beginning of a window, of about so many bytes; all of it if it can't be divided."""
        if window.end - window.start <= max(size, 1):
            return window
        try:
            index = self._index(window.path, window.end)
            following = index.window(window.start + max(size, 1), window.end)
        except MsmqError:  # its interfaces are too many
            return window
        return replace(window, end=following.start) if following.start > window.start else window

    def _index(self, path: str, end: int) -> Index:
        """The index of the records of a capture up to an offset."""
        index = self._indexes.get(path)
        if index is None:
            options = self.storage_options if is_url(path) else NO_OPTIONS
            index = self._indexes[path] = Index(path, self.step_size // 4, options, skip_known)
        index.refresh(end)
        return index

    def _entries(
        self,
        place: tuple[int, int],
        new: Sequence[Window],
        found: Mapping[str, tuple[CaptureEntry, Change]],
        state: LakeState,
    ) -> dict[str, CaptureEntry]:
        """The captures as the lake has them after the step, as far as it has any of them."""
        ends = {window.path: window.end for window in new}
        entries = dict[str, CaptureEntry]()
        for number, (path, (entry, change)) in enumerate(found.items()):
            if path in ends:
                entries[path] = entry if ends[path] == entry.size else entry_of_beginning(entry, ends[path])
            elif number < place[0] or change is Change.NONE:
                entries[path] = entry
            elif path in state.captures:
                entries[path] = state.captures[path]
        return entries


def _end_of(part: PartEntry) -> _Place:
    """Where a part ends."""
    return part.number, part.windows[-1].path, part.windows[-1].end


def _with_gone(listed: Sequence[str], before: Sequence[str], captures: Collection[str]) -> list[str]:
    """The captures listed, and after those before them those of the lake that are not listed any more."""
    present, after, last = set(listed), dict[str, list[str]](), ""
    for path in before:
        if path in present:
            last = path
        elif path in captures:
            after.setdefault(last, []).append(path)
    return [*after.get("", ()), *(each for path in listed for each in (path, *after.get(path, ())))]


def _is_compressed(path: str) -> bool:
    """Whether a capture begins as compressed ones do."""
    with open(path, "rb") as file:
        magic = file.read(4)
    return magic.startswith((GZIP_MAGIC, ZSTD_MAGIC, *ZSTD_SKIPPABLE_MAGICS))
