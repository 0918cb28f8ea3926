"""Captures into a lake: new parts are read and written by tasks, and committed by the process that planned
them.
"""

from __future__ import annotations

import json
import os
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from msmqwire.analysis.dissection import check_ports
from msmqwire.analysis.dissection.message_security import Examiner, FileContent, contents_of
from msmqwire.analysis.protocols.readings import PROPOSED, NcpReadings
from msmqwire.capture.folders import all_captures_of
from msmqwire.capture.not_read import NotRead, listed, warn_of
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.errors import CaptureError, CaptureWarning, InvalidArgument, LakeDamaged, LakeMismatch
from msmqwire.names.nearest import unknown_name
from msmqwire.tables import Condition, Expression, Where, chosen_columns
from msmqwire.tables.columns import FINDING_IDS
from msmqwire.tables.exact_parts import ExactPart, MapWindows
from msmqwire.tables.filters import Filter, conditions_of, need_findings
from msmqwire.tables.lake.exact_planning import plan_exact_run
from msmqwire.tables.lake.folder import LakeFolder, opened
from msmqwire.tables.lake.manifest import Manifest, PartEntry, Pending, WindowRange
from msmqwire.tables.lake.part_writer import PartFiles, PartWriter
from msmqwire.tables.lake.partitions import COLUMN_KEYS, By
from msmqwire.tables.lake.planning import OVERLAP, SPLIT_SIZE, Plan, plan_run, without
from msmqwire.tables.lake.workers import surveys_by_processes, write_parts
from msmqwire.tables.part_reader import PartReader
from msmqwire.tables.parts import SPLITS, Part, Splits

WriteParts = Callable[[PartWriter, Sequence[Part | ExactPart]], Iterable[tuple[int, PartFiles]]]
"""Writes parts, and gives the number of each with its result."""
_TOLD: Final = 8
"""Entries of a list of settings that a message tells."""


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
    """

    number: int
    captures_read: int
    captures_unchanged: int
    rows: int
    files: int
    rows_replaced: int
    damages: tuple[CaptureError, ...]
    frames_not_read: tuple[NotRead, ...] = ()


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
        out: the folder, a local one; created if missing.
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

    Raises:
        FileNotFoundError: a path or pattern names no file.
        LakeInUse: another process is writing the lake.
        LakeMismatch: the folder is not a lake, or is one with other settings, or an exact one of which
            captures are not named.
        LakeDamaged: the manifest is broken.
        UnsupportedStore: the folder is a URL, or the store of a capture can't be used.
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
    settings = _settings(names, where, ports, body_limit, by, splits)
    with opened(out) as folder:
        if columns is None and folder.manifest is not None:
            names = _columns_of(folder.manifest, folder)
            if findings and FINDING_IDS not in names:
                raise LakeMismatch(
                    "the lake was begun without findings: leave them out, or start another one",
                    file=str(folder.path),
                )
            settings["columns"] = list(names)
        manifest = folder.manifest or Manifest(settings)
        _check_settings(manifest, settings, folder)
        if splits == "exact":
            plan = plan_exact_run(
                files,
                manifest,
                split_size=split_size,
                ports=reader.ports,
                ncp_readings=ncp_readings,
                storage_options=storage_options,
                map_windows=map_windows or surveys_by_processes(workers, str(out)),
                progress=planned,
            )
        else:
            plan = plan_run(
                files,
                manifest,
                split_size=split_size,
                overlap=overlap,
                search=splits == "searched",
                whole=need_findings(names, where),
                storage_options=storage_options,
            )
        if not plan.parts:
            return LakeCommit(manifest.commit, 0, len(files), 0, 0, 0, ())
        run = folder.begin()
        writer = PartWriter(str(folder.path), run, reader, names, tuple(where), by)
        results: list[PartFiles | None] = [None] * len(plan.parts)
        for number, written in (
            write(writer, plan.parts) if write is not None else write_parts(writer, plan.parts, workers)
        ):
            results[number] = written
            if progress is not None:
                progress(sum(window.end - window.start for window in plan.parts[number].windows))
        complete = [written for written in results if written is not None]
        folder.commit(_committed(manifest, plan, complete, run))
    commit = _commit_of(manifest, plan, complete)
    warn_of(commit.frames_not_read, stacklevel=3)
    return commit


def _settings(
    names: Sequence[str],
    where: Sequence[Condition],
    ports: Collection[int],
    body_limit: int | None,
    by: By | None,
    splits: Splits,
) -> dict[str, Any]:
    """The settings that all runs of a lake have in common, as JSON."""
    settings = {
        "columns": list(names),
        "where": [c.text if isinstance(c, Expression) else list(c) for c in where],
        "ports": sorted(set(ports)),
        "body_limit": body_limit,
        "by": by,
        "splits": "exact" if splits == "exact" else None,
    }
    return cast(dict[str, Any], json.loads(json.dumps(settings, default=repr)))


def _columns_of(manifest: Manifest, folder: LakeFolder) -> tuple[str, ...]:
    """The columns that a lake was begun with. Raises LakeDamaged."""
    try:
        return tuple(column.name for column in chosen_columns(manifest.settings["columns"]))
    except (KeyError, TypeError, ValueError):
        raise LakeDamaged(
            "the manifest is damaged: settings: no such columns", file=str(folder.path)
        ) from None


def _check_settings(manifest: Manifest, settings: dict[str, Any], folder: LakeFolder) -> None:
    for name, value in settings.items():
        if manifest.settings.get(name) != value:
            raise LakeMismatch(
                f"the lake was begun with {name} {_shown(name, manifest.settings.get(name))},"
                f" not {_shown(name, value)}:"
                " use the same, or start another one",
                file=str(folder.path),
            )


def _shown(name: str, value: Any) -> str:
    """A setting as a message has it: of a long list, how many there are and the first."""
    if name == "splits" and value is None:
        return "walked or searched"
    if isinstance(value, list) and len(value) > _TOLD:
        return f"{json.dumps(value[:_TOLD])[:-1]} and {len(value) - _TOLD} more]"
    return json.dumps(value)


def _committed(manifest: Manifest, plan: Plan, results: Sequence[PartFiles], run: str) -> Manifest:
    """The manifest with the files that a run has written."""
    number = manifest.commit + 1
    parts = [
        PartEntry(
            windows=tuple(WindowRange(window.path, window.start, window.end) for window in part.windows),
            is_last=part.is_last,
            commit=number,
            files=written.files,
            damages=written.damages,
        )
        for part, written in zip(plan.parts, results, strict=True)
    ]
    return replace(
        manifest,
        commit=number,
        captures={**manifest.captures, **plan.captures},
        parts=[*without(manifest.parts, plan.replaced), *parts],
        pending=Pending(
            run,
            removals=tuple(file.path for part in plan.replaced for file in part.files),
            moves=tuple(
                (staged, file.path)
                for written in results
                for staged, file in zip(written.staged, written.files, strict=True)
            ),
        ),
    )


def _commit_of(manifest: Manifest, plan: Plan, results: Sequence[PartFiles]) -> LakeCommit:
    read = {window.path for part in plan.parts for window in part.windows}
    return LakeCommit(
        number=manifest.commit + 1,
        captures_read=len(read),
        captures_unchanged=len(plan.captures) - len(read),
        rows=sum(file.rows for written in results for file in written.files),
        files=sum(len(written.files) for written in results),
        rows_replaced=sum(file.rows for part in plan.replaced for file in part.files),
        damages=tuple(_errors(results)),
        frames_not_read=listed(sum((Counter(written.not_read) for written in results), Counter())),
    )


def _errors(results: Sequence[PartFiles]) -> Iterator[CaptureError]:
    for written in results:
        for damage in written.damages:
            yield CaptureError(damage.why, file=damage.file, offset=damage.offset, cut=damage.cut)
