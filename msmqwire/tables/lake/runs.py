"""A run of a writer of a lake: what its plan says is written, and committed at once."""

from __future__ import annotations

import os
import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from msmqwire.analysis.dissection import check_ports
from msmqwire.analysis.dissection.message_security import Examiner, FileContent, contents_of
from msmqwire.analysis.protocols.readings import NcpReadings
from msmqwire.capture.not_read import NotRead, listed
from msmqwire.capture.stores import StorageOptions
from msmqwire.crypto.readings import Readings
from msmqwire.errors import CaptureError, InvalidArgument
from msmqwire.names.nearest import unknown_name
from msmqwire.tables import Condition, Where, chosen_columns
from msmqwire.tables.columns import FINDING_IDS
from msmqwire.tables.exact_parts import ExactPart
from msmqwire.tables.filters import Filter, conditions_of, need_findings
from msmqwire.tables.lake.commits import until_accepted
from msmqwire.tables.lake.deleted_rows import deleted_again
from msmqwire.tables.lake.part_files import replaced_files
from msmqwire.tables.lake.part_writer import NumberedPart, PartFiles, PartWriter
from msmqwire.tables.lake.partitions import COLUMN_KEYS, By
from msmqwire.tables.lake.place import Place, lake_place
from msmqwire.tables.lake.planning import Plan, without
from msmqwire.tables.lake.schemas import table_schema, table_with_columns
from msmqwire.tables.lake.settings import (
    Settings,
    check_settings,
    lake_columns,
    settings_of,
    settings_of_splits,
)
from msmqwire.tables.lake.state import LakeState, PartEntry, WindowRange
from msmqwire.tables.lake.table import Commit, LakeTable, create
from msmqwire.tables.lake.workers import write_parts
from msmqwire.tables.part_reader import PartReader
from msmqwire.tables.parts import SPLITS, Part, Splits

WriteParts = Callable[[PartWriter, Sequence[NumberedPart]], Iterable[tuple[int, PartFiles]]]
"""Writes parts, and gives the place of each in the list with its result."""
_RANDOM_BITS: Final = 20


@dataclass(frozen=True, slots=True)
class LakeCommit:
    """The result of a run.

    Attributes:
        number: the number of the commit; that of the last one if there was nothing to do.
        captures_read: captures of which something was read.
        captures_unchanged: those of which the lake had everything.
        rows: rows written.
        files: files written.
        rows_replaced: rows that the lake had of the same packets before.
        damages: captures that could not be read to their ends.
        frames_not_read: the number of frames that were not read in these captures, by reason.
        version: the version of the lake that the run has made, or has found if there was nothing to do; None
            if there is no lake.
    """

    number: int
    captures_read: int
    captures_unchanged: int
    rows: int
    files: int
    rows_replaced: int
    damages: tuple[CaptureError, ...]
    frames_not_read: tuple[NotRead, ...] = ()
    version: int | None = None

    def figures(self) -> dict[str, int]:
        """Return the figures of the run, for the history of the lake."""
        names = ("captures_read", "captures_unchanged", "rows", "files", "rows_replaced")
        return {name: getattr(self, name) for name in names} | {"damages": len(self.damages)}


@dataclass
class Run:
    """A run of a writer.

    Attributes:
        place: where the lake is.
        reader: the reader of the packets.
        where, by: as for `write_lake`.
        settings: those of the run, without ``splits`` if those of the lake are meant.
        write: writes parts.
        progress: as for `write_lake`.
        new_splits: the ``splits`` of a new lake, if those of the lake are meant.
    """

    place: Place
    reader: PartReader
    where: tuple[Condition, ...]
    by: By | None
    settings: Settings
    write: WriteParts
    progress: Callable[[int], None] | None = None
    new_splits: Splits = "walked"
    _written: dict[Part | ExactPart, PartFiles] = field(default_factory=dict)
    """What was written for a commit that was refused."""
    _is_prepared: bool = False

    def carry_out(self, plan: Callable[[LakeState, Sequence[str]], Plan]) -> LakeCommit:
        """Write what is new, and commit it.

        Args:
            plan: gets the state of the lake and the names of its columns.

        Raises as `msmqwire.tables.lake.write_lake` does.
        """
        if not self._is_prepared:  # it takes a look at each file
            self.place.prepare()
            self._is_prepared = True
        try:
            return until_accepted(self.place, lambda found: self._attempt(found, plan))
        finally:
            self.place.remove(file.path for written in self._written.values() for file in written.files)
            self._written.clear()

    def _attempt(
        self, found: tuple[LakeTable, LakeState] | None, plan_of: Callable[[LakeState, Sequence[str]], Plan]
    ) -> LakeCommit:
        table, state = found or (None, self._new_state())
        check_settings(state, self.settings, self.place)
        names = lake_columns(state.settings, self.place)
        plan = plan_of(state, names)
        if not plan.parts and not plan.replaced:
            version = None if table is None else table.version
            return LakeCommit(state.commit, 0, len(plan.captures), 0, 0, 0, (), version=version)
        if table is not None:
            table = table_with_columns(table, names, self.by)
        results = self._results(plan, state, names)
        new_state = _committed(state, plan, results)
        files = [file for written in results for file in written.files]
        with replaced_files(table, plan.replaced) as replaced:
            result = _commit_of(new_state, plan, results, replaced.rows)

            def accepted() -> None:
                self._written.clear()
                replaced.pending.clear()

            change = Commit(
                "write", new_state, [*files, *replaced.adds], replaced.removes, result.figures(),
                accepted=accepted,
            )  # fmt: skip
            if table is None:
                table = create(self.place, *table_schema(names, self.by), change)
            else:
                table = table.commit(change)
        return replace(result, version=table.version)

    def _new_state(self) -> LakeState:
        """The state of a new lake."""
        return LakeState({**settings_of_splits(self.new_splits), **self.settings})

    def _results(self, plan: Plan, state: LakeState, names: Sequence[str]) -> list[PartFiles]:
        """Write the parts but those that were written for the same plan; return the results of all."""
        taken = {part.number for part in state.parts}
        for part, written in list(self._written.items()):
            if part not in plan.parts or written.number in taken:
                self.place.remove(file.path for file in self._written.pop(part).files)
        waiting = [part for part in plan.parts if part not in self._written]
        writer = PartWriter(self.place, self.reader, tuple(names), self.where, self.by, deleted_again(state))
        first = first_number() if plan.continued is None else plan.continued.number
        for place, written in self.write(writer, [(first + n, part) for n, part in enumerate(waiting)]):
            part = waiting[place]
            self._written[part] = written
            if self.progress is not None:
                self.progress(sum(window.end - window.start for window in part.windows))
        return [self._written[part] for part in plan.parts]


def first_number() -> int:
    """Return a number for a new part, after all of earlier times: two writers have different ones."""
    return (time.time_ns() // 1_000_000 << _RANDOM_BITS) + secrets.randbits(_RANDOM_BITS)


def _committed(state: LakeState, plan: Plan, results: Sequence[PartFiles]) -> LakeState:
    """The state after a run."""
    number = state.commit + 1
    parts = [
        PartEntry(
            number=written.number,
            windows=tuple(WindowRange(window.path, window.start, window.end) for window in part.windows),
            is_last=part.is_last,
            damages=written.damages,
        )
        for part, written in zip(plan.parts, results, strict=True)
    ]
    gone = list(plan.replaced)
    if plan.continued is not None:
        gone.append(plan.continued)
        parts = [_continued(plan.continued, parts[0])]
    known = state.captures
    captures = {
        path: entry if path in known else replace(entry, since=number)
        for path, entry in plan.captures.items()
    }
    return replace(
        state,
        commit=number,
        captures={**state.captures, **captures},
        parts=[*without(state.parts, gone), *parts],
    )


def _continued(part: PartEntry, more: PartEntry) -> PartEntry:
    """A part with what follows it."""
    windows, others = list(part.windows), list(more.windows)
    if others[0].start:
        windows[-1] = replace(windows[-1], end=others.pop(0).end)
    return replace(part, windows=(*windows, *others), damages=part.damages + more.damages)


def _commit_of(state: LakeState, plan: Plan, results: Sequence[PartFiles], replaced: int) -> LakeCommit:
    read = {window.path for part in plan.parts for window in part.windows}
    return LakeCommit(
        number=state.commit,
        captures_read=len(read),
        captures_unchanged=len(plan.captures) - len(read),
        rows=sum(file.rows or 0 for written in results for file in written.files),
        files=sum(len(written.files) for written in results),
        rows_replaced=replaced,
        damages=tuple(_errors(results)),
        frames_not_read=listed(sum((Counter(written.not_read) for written in results), Counter())),
    )


def _errors(results: Sequence[PartFiles]) -> Iterator[CaptureError]:
    for written in results:
        for damage in written.damages:
            yield CaptureError(damage.why, file=damage.file, offset=damage.offset, cut=damage.cut)


def new_run(
    out: str | os.PathLike[str],
    *,
    by: By | None,
    columns: Collection[str] | None,
    findings: bool,
    where: Where,
    ports: Collection[int],
    body_limit: int | None,
    keys: FileContent | Iterable[FileContent],
    certificates: FileContent | Iterable[FileContent],
    readings: Readings,
    ncp_readings: NcpReadings,
    workers: int,
    splits: Splits | None,
    storage_options: StorageOptions,
    progress: Callable[[int], None] | None,
    write: WriteParts | None,
) -> Run:
    """Return a run with these arguments, which are those of `msmqwire.tables.lake.write_lake`.

    Raises:
        InvalidArgument, InvalidValue: as `write_lake` does.
        UnsupportedStore: the store of the lake can't be used.
        OSError: a file with keys can't be read.
    """
    if splits is not None and splits not in SPLITS:
        raise unknown_name(splits, SPLITS, "way to divide captures", path="splits")
    if by not in COLUMN_KEYS:
        raise unknown_name(by, filter(None, COLUMN_KEYS), "key of partitions", path="by")
    check_least("workers", workers, 1)
    check_ports(ports)
    names = tuple(column.name for column in chosen_columns(columns))
    if findings and FINDING_IDS not in names:
        names += (FINDING_IDS,)
    where = conditions_of(where)
    Filter(where)
    if splits == "exact" and need_findings(names, where):
        raise InvalidArgument(
            "sessions are judged from their beginning, which parts with exact splits do not have:"
            " leave out one of the two",
            path="findings",
        )
    key_files, certificate_files = tuple(contents_of(keys, of_keys=True)), tuple(contents_of(certificates))
    Examiner.from_files(key_files, certificate_files)
    return Run(
        place=lake_place(out, storage_options),
        reader=PartReader(
            ports=tuple(ports),
            body_limit=body_limit,
            keys=key_files,
            certificates=certificate_files,
            readings=readings,
            ncp_readings=ncp_readings,
        ),
        where=tuple(where),
        by=by,
        settings=settings_of(
            columns=None if columns is None else names,
            findings=findings,
            where=where,
            ports=ports,
            body_limit=body_limit,
            by=by,
            splits=splits,
        ),
        write=write or partial(write_parts, workers=workers),
        progress=progress,
    )


def check_least(name: str, value: float, least: int) -> None:
    """Refuse a number below the least one. Raises InvalidArgument."""
    if not value >= least:  # nor is one that is not a number
        raise InvalidArgument(f"it is {least} or more, not {value}", path=name)
