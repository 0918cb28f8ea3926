"""Captures into a lake: new parts are read and written by tasks, and committed by the process that planned
them.
"""

from __future__ import annotations

import os
import secrets
import time
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from msmqwire.analysis.dissection import check_ports
from msmqwire.analysis.dissection.message_security import Examiner, FileContent, contents_of
from msmqwire.analysis.protocols.readings import PROPOSED, NcpReadings
from msmqwire.capture.folders import all_captures_of
from msmqwire.capture.not_read import NotRead, listed, warn_of
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.errors import CaptureError, CaptureWarning, InvalidArgument
from msmqwire.names.nearest import unknown_name
from msmqwire.tables import Condition, Where, chosen_columns
from msmqwire.tables.columns import FINDING_IDS
from msmqwire.tables.exact_parts import ExactPart, MapWindows
from msmqwire.tables.filters import Filter, conditions_of, need_findings
from msmqwire.tables.lake.commits import until_accepted
from msmqwire.tables.lake.deleted_rows import deleted_again
from msmqwire.tables.lake.exact_planning import plan_exact_run
from msmqwire.tables.lake.part_files import replaced_files
from msmqwire.tables.lake.part_writer import NumberedPart, PartFiles, PartWriter
from msmqwire.tables.lake.partitions import COLUMN_KEYS, By
from msmqwire.tables.lake.place import Place, lake_place
from msmqwire.tables.lake.planning import OVERLAP, SPLIT_SIZE, Plan, plan_run, without
from msmqwire.tables.lake.schemas import table_schema, table_with_columns
from msmqwire.tables.lake.settings import Settings, check_settings, lake_columns, settings_of
from msmqwire.tables.lake.state import LakeState, PartEntry, WindowRange
from msmqwire.tables.lake.table import Commit, LakeTable, create
from msmqwire.tables.lake.workers import surveys_by_processes, write_parts
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


def write_lake(
    captures: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    by: By | None = None,
    columns: Collection[str] | None = None,
    findings: bool = False,
    where: Where = (),
    ports: Collection[int] = (),
    body_limit: int | None = None,
    keys: FileContent | Iterable[FileContent] = (),
    certificates: FileContent | Iterable[FileContent] = (),
    readings: Readings = DEFAULT,
    ncp_readings: NcpReadings = PROPOSED,
    workers: int = 1,
    split_size: int = SPLIT_SIZE,
    overlap: int = OVERLAP,
    splits: Splits = "walked",
    storage_options: StorageOptions = NO_OPTIONS,
    progress: Callable[[int], None] | None = None,
    write: WriteParts | None = None,
    map_windows: MapWindows | None = None,
    planned: Callable[[int], None] | None = None,
) -> LakeCommit:
    """Read captures into a lake: a folder of Parquet files that grows with them.

    The captures are one capture, in their order, as for `msmqwire.read_capture`. Parts of them that the lake
    has are not read again. The lake has the rows of this run once it returns, and none of them before;
    docs/lake.md has the view of readers meanwhile.

    Args:
        captures: paths, patterns, folders and URLs; absolute paths and URLs tell captures apart.
        out: the folder, a local one, or the URL of one in a store; created if missing.
        by: partition by this column too, not by date alone.
        columns, where, ports, body_limit: as for `msmqwire.read_capture`, the same for all runs of a lake.
            Without ``columns`` those of the lake are meant if there is one.
        findings: whether there is the column ``finding_ids``, too. Then packets are judged, and sessions from
            their beginning: a run with anything new reads all captures that it names, in one process.
        keys, certificates, readings, ncp_readings: as for `msmqwire.dissect`; for the captures that this run
            reads.
        workers: processes.
        split_size: bytes of a part, about.
        overlap: bytes read before a part to learn the state of connections.
        splits: the method of dividing captures. ``walked``: each file is read once to find records.
            ``searched``: in large pcap files records are searched for near the splits. ``exact``: the rows
            are those of one reader of all captures, with its numbers of frames and streams; for that the
            workers go over all captures once before. A lake is exact from its first run on, or never.
        storage_options: as for `msmqwire.dissect`.
        progress: gets how many bytes of captures more are written.
        write: writes the parts elsewhere, in place of `workers`.
        map_windows: goes over the captures elsewhere before, for ``exact``, in place of `workers`.
        planned: gets how many bytes of captures more were gone over before, for ``exact``.

    Frames that were not read though packets may be in them are reported by a `CaptureWarning`, and so are
    files in a folder that are not captures: they are passed over.

    Of two writers at once the one that commits later plans again, from what the other has left.

    Raises:
        FileNotFoundError: a path or pattern names no file.
        LakeMismatch: the folder is not a lake, or is one with other settings, an exact one of which captures
            are not named, or one of an earlier or later version.
        LakeDamaged: the log or the state of the lake is broken.
        UnsupportedStore: a store can't be used.
        InvalidArgument: no such column, operator, key, port or way to divide captures, or a value that a
            column can't have. Its text names the nearest right ones. Or findings in an exact lake.
        InvalidValue: something is not a private key, or no certificate.
        OSError: a file can't be read or written.
    """
    if splits not in SPLITS:
        raise unknown_name(splits, SPLITS, "way to divide captures", path="splits")
    if by not in COLUMN_KEYS:
        raise unknown_name(by, filter(None, COLUMN_KEYS), "key of partitions", path="by")
    for name, value, least in (
        ("workers", workers, 1),
        ("split_size", split_size, 1),
        ("overlap", overlap, 0),
    ):
        if value < least:
            raise InvalidArgument(f"it is {least} or more, not {value}", path=name)
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
    sources = [captures] if isinstance(captures, (str, os.PathLike)) else captures
    files = all_captures_of(
        sources, lambda passed: warnings.warn(CaptureWarning(str(passed)), stacklevel=4), storage_options
    )
    reader = PartReader(
        ports=tuple(ports),
        body_limit=body_limit,
        keys=key_files,
        certificates=certificate_files,
        readings=readings,
        ncp_readings=ncp_readings,
    )
    run = _Run(
        place=lake_place(out, storage_options),
        files=files,
        reader=reader,
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

    def plan(state: LakeState, names: Sequence[str]) -> Plan:
        if splits == "exact":
            return plan_exact_run(
                files,
                state,
                split_size=split_size,
                ports=reader.ports,
                ncp_readings=ncp_readings,
                storage_options=storage_options,
                map_windows=map_windows or surveys_by_processes(workers, str(out)),
                progress=planned,
            )
        return plan_run(
            files,
            state,
            split_size=split_size,
            overlap=overlap,
            search=splits == "searched",
            whole=need_findings(names, where),
            storage_options=storage_options,
        )

    commit = run.carry_out(plan)
    warn_of(commit.frames_not_read, stacklevel=3)
    return commit


@dataclass
class _Run:
    """A run of a writer.

    Attributes:
        place: where the lake is.
        files: the captures.
        reader: the reader of their packets.
        where, by: as for `write_lake`.
        settings: those of the run.
        write: writes parts.
        progress: as for `write_lake`.
    """

    place: Place
    files: Sequence[str]
    reader: PartReader
    where: tuple[Condition, ...]
    by: By | None
    settings: Settings
    write: WriteParts
    progress: Callable[[int], None] | None
    _written: dict[Part | ExactPart, PartFiles] = field(default_factory=dict)
    """What was written for a commit that was refused."""

    def carry_out(self, plan: Callable[[LakeState, Sequence[str]], Plan]) -> LakeCommit:
        """Write what is new, and commit it."""
        self.place.prepare()
        try:
            return until_accepted(self.place, lambda found: self._attempt(found, plan))
        finally:
            self.place.remove(file.path for written in self._written.values() for file in written.files)

    def _attempt(
        self, found: tuple[LakeTable, LakeState] | None, plan_of: Callable[[LakeState, Sequence[str]], Plan]
    ) -> LakeCommit:
        table, state = found or (None, LakeState(self.settings))
        check_settings(state, self.settings, self.place)
        names = lake_columns(state.settings, self.place)
        plan = plan_of(state, names)
        if not plan.parts:
            version = None if table is None else table.version
            return LakeCommit(state.commit, 0, len(self.files), 0, 0, 0, (), version=version)
        if table is not None:
            table = table_with_columns(table, names, self.by)
        results = self._results(plan, state, names)
        new_state = _committed(state, plan, results)
        files = [file for written in results for file in written.files]
        with replaced_files(table, plan.replaced) as replaced:
            result = _commit_of(new_state, plan, results, replaced.rows)
            change = Commit("write", new_state, [*files, *replaced.adds], replaced.removes, result.figures())
            if table is None:
                table = create(self.place, *table_schema(names, self.by), change)
            else:
                table = table.commit(change)
        self._written.clear()
        return replace(result, version=table.version)

    def _results(self, plan: Plan, state: LakeState, names: Sequence[str]) -> list[PartFiles]:
        """Write the parts but those that were written for the same plan; return the results of all."""
        taken = {part.number for part in state.parts}
        for part, written in list(self._written.items()):
            if part not in plan.parts or written.number in taken:
                self.place.remove(file.path for file in self._written.pop(part).files)
        waiting = [part for part in plan.parts if part not in self._written]
        writer = PartWriter(self.place, self.reader, tuple(names), self.where, self.by, deleted_again(state))
        first = _first_number()
        for place, written in self.write(writer, [(first + n, part) for n, part in enumerate(waiting)]):
            part = waiting[place]
            self._written[part] = written
            if self.progress is not None:
                self.progress(sum(window.end - window.start for window in part.windows))
        return [self._written[part] for part in plan.parts]


def _first_number() -> int:
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
    captures = {path: replace(entry, since=entry.since or number) for path, entry in plan.captures.items()}
    return replace(
        state,
        commit=number,
        captures={**state.captures, **captures},
        parts=[*without(state.parts, plan.replaced), *parts],
    )


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
