"""Captures into a lake: new parts are read and written by tasks, and committed by the process that planned
them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence

from msmqwire.analysis.dissection.message_security import FileContent
from msmqwire.analysis.protocols.readings import PROPOSED, NcpReadings
from msmqwire.capture.folders import all_captures_of
from msmqwire.capture.not_read import warn_of
from msmqwire.capture.stores import NO_OPTIONS, StorageOptions
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.errors import CaptureWarning
from msmqwire.tables import Where
from msmqwire.tables.exact_parts import MapWindows
from msmqwire.tables.filters import need_findings
from msmqwire.tables.lake.exact_planning import plan_exact_run
from msmqwire.tables.lake.partitions import By
from msmqwire.tables.lake.planning import OVERLAP, SPLIT_SIZE, Plan, plan_run
from msmqwire.tables.lake.runs import LakeCommit, WriteParts, check_least, new_run
from msmqwire.tables.lake.settings import is_exact
from msmqwire.tables.lake.state import LakeState
from msmqwire.tables.lake.workers import surveys_by_processes
from msmqwire.tables.parts import Splits


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
    splits: Splits | None = None,
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
        splits: the method of dividing captures; None for that of the lake, and ``walked`` for a new one.
            ``walked``: each file is read once to find records. ``searched``: in large pcap files records are
            searched for near the splits. ``exact``: the rows are those of one reader of all captures, with
            its numbers of frames and streams; for that the workers go over all captures once before. A lake
            is exact from its first run on, or never.
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
    check_least("split_size", split_size, 1)
    check_least("overlap", overlap, 0)
    run = new_run(
        out,
        by=by,
        columns=columns,
        findings=findings,
        where=where,
        ports=ports,
        body_limit=body_limit,
        keys=keys,
        certificates=certificates,
        readings=readings,
        ncp_readings=ncp_readings,
        workers=workers,
        splits=splits,
        storage_options=storage_options,
        progress=progress,
        write=write,
    )
    sources = [captures] if isinstance(captures, (str, os.PathLike)) else captures
    files = all_captures_of(
        sources, lambda passed: warnings.warn(CaptureWarning(str(passed)), stacklevel=4), storage_options
    )

    def plan(state: LakeState, names: Sequence[str]) -> Plan:
        if is_exact(state):
            return plan_exact_run(
                files,
                state,
                split_size=split_size,
                ports=run.reader.ports,
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
            whole=need_findings(names, run.where),
            storage_options=storage_options,
        )

    commit = run.carry_out(plan)
    warn_of(commit.frames_not_read, stacklevel=3)
    return commit
