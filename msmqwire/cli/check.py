"""``msmqwire check``: whether all that was stored in a folder is there, and right."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

from click.exceptions import Exit

from msmqwire.cli.common import EX_DATAERR
from msmqwire.cli.errors import run_reporting_errors
from msmqwire.cli.options import Argument, Option
from msmqwire.cli.progress import byte_progress
from msmqwire.errors import StoreDamaged, StoreForeign, StoreMissing
from msmqwire.json_text import dumps
from msmqwire.names.printable import counted, safe
from msmqwire.netware.runtime.folder import STORE as NETWARE_STORE
from msmqwire.netware.store.names import QueueServiceCheck
from msmqwire.netware.store.tables import LAYOUT as NETWARE_LAYOUT
from msmqwire.qm.directory.files import check_file
from msmqwire.qm.runtime.data_folder import DIRECTORY, STORE
from msmqwire.qm.runtime.store_names import QueueManagerCheck
from msmqwire.service.store.file_check import application_of
from msmqwire.service.store.findings import Finding, FolderCheck

_OPENED: Final[dict[str, Callable[[Path], FolderCheck]]] = {
    STORE: QueueManagerCheck,
    NETWARE_STORE: QueueServiceCheck,
}


def command(
    data: Annotated[
        Path,
        Argument(metavar="DATA", help="Folder of a queue manager or NetWare queue service, or one store."),
    ],
    as_json: Annotated[
        bool, Option("--json", help="One JSON object a line: the faults, then a summary of each store.")
    ] = False,
) -> None:
    """Check that everything that was stored in a folder is there and right; name what is lost or damaged.

    Every row is read and compared with its checksum and with the counts of rows. Nothing is changed. A server
    may use the folder meanwhile.

    Exit statuses: 0 if all is whole, 65 if anything is lost or damaged, 66 if there is no such folder or no
    store in it, 74 if the disk can't be read.
    """

    def run() -> None:
        whole = [_check(path, opened, as_json) for path, opened in _stores(data)]
        if data.is_dir() and (data / DIRECTORY).exists():
            whole.append(_check_directory(data / DIRECTORY, as_json))
        if not all(whole):
            raise Exit(EX_DATAERR)

    run_reporting_errors(run)


def _stores(data: Path) -> list[tuple[Path, Callable[[Path], FolderCheck]]]:
    """Return the stores to check, and the class that checks each. Raises StoreMissing."""
    if data.is_file():
        return [(data, _of_file(data))]
    found = [(data / name, opened) for name, opened in _OPENED.items() if (data / name).exists()]
    if not found:
        why = (
            "there is no queue manager and no NetWare queue service in this folder"
            if data.is_dir()
            else "there is no such folder"
        )
        raise StoreMissing(why, file=str(data))
    return found


def _of_file(path: Path) -> Callable[[Path], FolderCheck]:
    is_netware = application_of(path) == NETWARE_LAYOUT.application_id
    return QueueServiceCheck if is_netware else QueueManagerCheck


def _check(path: Path, opened: Callable[[Path], FolderCheck], as_json: bool) -> bool:
    """Check a store, print its faults and a summary; return whether it is whole."""
    try:
        check = opened(path)
    except (StoreDamaged, StoreForeign) as exc:
        _show(path, Finding("damaged", "file", "", exc.why), as_json)
        _sum_up(path, 1, {"version": None, "rows": 0, "unsummed": 0, "served": None}, as_json)
        return False
    faults = 0
    with check.store as store:
        with byte_progress(path.stat().st_size, path.name) as advance:
            for finding in check.findings(advance or (lambda size: None)):
                faults += 1
                _show(path, finding, as_json)
        summary = {
            "version": store.version, "rows": store.rows, "unsummed": store.unsummed, "served": store.served,
        }  # fmt: skip
    _sum_up(path, faults, summary, as_json)
    return not faults


def _check_directory(path: Path, as_json: bool) -> bool:
    faults = check_file(str(path))
    for why in faults:
        _show(path, Finding("damaged", "file", "", why), as_json)
    _sum_up(path, len(faults), {}, as_json)
    return not faults


def _show(path: Path, finding: Finding, as_json: bool) -> None:
    if as_json or not sys.stdout.isatty():
        print(dumps({"store": str(path), **finding._asdict()}))
        return
    print(safe(": ".join(filter(None, (finding.fault, finding.name, finding.why)))))


def _sum_up(path: Path, faults: int, summary: dict[str, Any], as_json: bool) -> None:
    if as_json or not sys.stdout.isatty():
        print(dumps({"store": str(path), "faults": faults, **summary}))
        return
    text = f"{path}: {counted(faults, 'fault') if faults else 'whole'}"
    if summary.get("rows"):
        text += f", {counted(summary['rows'], 'row')} read"
    if summary.get("unsummed"):
        text += f", {summary['unsummed']:,} of an earlier version, without checksums"
    if summary.get("served"):
        text += "; in use by a server"
    print(safe(text))
