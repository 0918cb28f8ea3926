"""``msmqwire check``: whether a server is ready, or all that was stored in a folder is there, and right."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

from click import BadParameter
from click.exceptions import Exit

from msmqwire.cli.accept import accept, agree
from msmqwire.cli.api_client import TokenFile, is_url
from msmqwire.cli.common import EX_DATAERR
from msmqwire.cli.errors import run_reporting_errors
from msmqwire.cli.health import health_of, show_health, was_killed
from msmqwire.cli.options import Argument, Option
from msmqwire.cli.progress import byte_progress
from msmqwire.errors import StoreDamaged, StoreForeign, StoreMissing, Unreachable
from msmqwire.json_text import dumps
from msmqwire.names.printable import counted, safe
from msmqwire.netware.runtime.folder import STORE as NETWARE_STORE
from msmqwire.netware.store.names import QueueServiceCheck
from msmqwire.netware.store.tables import LAYOUT as NETWARE_LAYOUT
from msmqwire.qm.directory.files import check_file
from msmqwire.qm.runtime.data_folder import DIRECTORY, STORE
from msmqwire.qm.runtime.store_names import QueueManagerCheck
from msmqwire.service.store.file_check import application_of, remedy
from msmqwire.service.store.findings import Finding, FolderCheck
from msmqwire.service.store.salvage import refuse_served

_OPENED: Final[dict[str, Callable[[Path], FolderCheck]]] = {
    STORE: QueueManagerCheck,
    NETWARE_STORE: QueueServiceCheck,
}


def command(
    place: Annotated[
        str,
        Argument(
            metavar="DATA",
            help="Folder of a queue manager or NetWare queue service, one store, or the URL of a console.",
        ),
    ],
    accept_loss: Annotated[
        bool,
        Option(
            "--accept",
            help="Go on without what is lost: keep a copy of a damaged store, then only what is whole.",
        ),
    ] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Accept the loss without asking.")] = False,
    stores: Annotated[
        bool, Option("--stores", help="Read the stores also while a server runs, in place of asking it.")
    ] = False,
    server: Annotated[
        bool, Option("--server", help="Ask the server only: 69 if none runs, whatever is stored.")
    ] = False,
    token_file: TokenFile = None,
    as_json: Annotated[
        bool, Option("--json", help="One JSON object a line: the faults, then a summary of each store.")
    ] = False,
) -> None:
    """Check whether a server is ready, or that everything that was stored in a folder is there and right.

    A server of the folder, or at the URL of its console, is asked for its health, also while it starts: its
    store, the disk, where it listens, changes that are not on disk, and whether it drains. In JSON that is
    one object with "ok" and "checks".

    If no server runs for the folder, or with --stores, what is lost or damaged is named. Every row is read
    and compared with its checksum and with the counts of rows. Nothing is changed without --accept, and a
    server may use the folder meanwhile.

    A server does not start on a damaged store. If there is no copy to put back, --accept keeps the damaged
    one beside it under another name, leaves out the rows that are damaged, and makes the rest fit together.
    No server may use the folder then.

    Exit statuses: 0 if the server is ready, or all is whole, or is after --accept; 1 for a question that was
    answered with no; 65 if anything is lost or damaged; 66 if there is no such folder or no store in it; 69
    if the server is not ready, is not there, or ended without a stop, and for --accept while a server uses
    the folder; 74 if the disk can't be read, or has no room for the copy.
    """

    def run() -> None:
        if yes and not accept_loss:
            raise BadParameter("it answers the question of --accept", param_hint="--yes")
        if server and (stores or accept_loss):
            raise BadParameter("not together with --stores and --accept", param_hint="--server")
        if is_url(place) and (stores or accept_loss):
            raise BadParameter("--stores and --accept are for a folder")
        if token_file is not None and not is_url(place):
            raise BadParameter("--token-file is for a URL")
        data, asks = Path(place), not (stores or accept_loss)
        if asks and (is_url(place) or data.is_dir()):
            report = health_of(place, token_file)
            if report is not None:
                show_health(report, as_json=as_json)
                return
        if server:
            _stores(data)  # 66 for a folder without one
            raise Unreachable(f"no server runs for {data}")
        if accept_loss:
            whole = [_accept(path, opened, as_json, yes=yes) for path, opened in _stores(data)]
        else:
            whole = [_check(path, opened, as_json) for path, opened in _stores(data)]
        if data.is_dir() and (data / DIRECTORY).exists():
            whole.append(_check_directory(data / DIRECTORY, as_json))
        if not all(whole):
            raise Exit(EX_DATAERR)
        if asks and data.is_dir() and was_killed(data):
            why = f"the server of {data} has ended without a stop, and is not back: start it again"
            raise Unreachable(why)

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
    with check.store:
        faults = _findings(path, check, as_json)
    if faults and _is_text(as_json):
        print(safe(f"{path}: {remedy(path)}"))
    return not faults


def _accept(path: Path, opened: Callable[[Path], FolderCheck], as_json: bool, *, yes: bool) -> bool:
    """Check a store, and go on without what it has lost; return whether it is whole then."""
    check = opened(path)
    with check.store as store:
        refuse_served(store)
        faults = _findings(path, check, as_json)
        if not faults:
            return True
        agree(path, faults, yes=yes)
        accepted = accept(check)
    for finding in accepted.repaired:
        _show(path, finding, as_json)
    if _is_text(as_json):
        text = f"{counted(faults, 'fault')} accepted, {counted(accepted.rows, 'row')} kept"
        print(safe(f"{path}: {text}; the damaged store is {accepted.copy}"))
    else:
        found = {"accepted": faults, "rows": accepted.rows, "copy": str(accepted.copy)}
        print(dumps({"store": str(path), **found}))
    return _check(path, opened, as_json)


def _findings(path: Path, check: FolderCheck, as_json: bool) -> int:
    """Print the faults of a store and a summary; return their number."""
    store, faults = check.store, 0
    with byte_progress(path.stat().st_size, path.name) as advance:
        for finding in check.findings(advance or (lambda size: None)):
            faults += 1
            _show(path, finding, as_json)
    summary = {
        "version": store.version, "rows": store.rows, "unsummed": store.unsummed, "served": store.served,
    }  # fmt: skip
    _sum_up(path, faults, summary, as_json)
    return faults


def _check_directory(path: Path, as_json: bool) -> bool:
    faults = check_file(str(path))
    for why in faults:
        _show(path, Finding("damaged", "file", "", why), as_json)
    _sum_up(path, len(faults), {}, as_json)
    return not faults


def _is_text(as_json: bool) -> bool:
    return not as_json and sys.stdout.isatty()


def _show(path: Path, finding: Finding, as_json: bool) -> None:
    if not _is_text(as_json):
        print(dumps({"store": str(path), **finding._asdict()}))
        return
    print(safe(": ".join(filter(None, (finding.fault, finding.name, finding.why)))))


def _sum_up(path: Path, faults: int, summary: dict[str, Any], as_json: bool) -> None:
    if not _is_text(as_json):
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
