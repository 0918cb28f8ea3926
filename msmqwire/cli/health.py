"""The health of a server for ``msmqwire check``: asked through its folder, or at the URL of its console."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

from click.exceptions import Exit

from msmqwire.cli.api_client import ApiClient, is_url
from msmqwire.cli.common import EX_UNAVAILABLE
from msmqwire.errors import Unreachable
from msmqwire.json_text import dumps
from msmqwire.names.printable import safe
from msmqwire.qm.runtime.data_folder import DataFolder
from msmqwire.service.control.client import server_of

ASK_S: Final = 5.0
"""Seconds that a server may take to tell its health: its loop answers at any time."""


def health_of(place: str, token_file: str | None) -> dict[str, Any] | None:
    """Return the health of a server, as ``/readyz``; None for a folder that no server serves.

    Raises Unreachable if a server does not answer, or none is at the URL, and StoreRefused.
    """
    if is_url(place):
        status, report = ApiClient(place, token_file).ask("GET", "/readyz")
        return _checked(report, f"{place}: the answer, {status}, is not the health of msmqwire")
    server = server_of(DataFolder(place), timeout_s=ASK_S)
    if server is None:
        return None
    with server:
        return _checked(server.call("health"), f"{place}: the answer is not the health of msmqwire")


def _checked(report: Any, why: str) -> dict[str, Any]:
    """Return a report if it is one. Raises Unreachable."""
    checks = report.get("checks") if isinstance(report, dict) else None
    if not isinstance(checks, list) or not isinstance(report.get("ok"), bool):
        raise Unreachable(why)
    for check in checks:
        if not (isinstance(check, dict) and {"name", "ok", "detail"} <= check.keys()):
            raise Unreachable(why)
    return {"ok": report["ok"], "checks": checks}


def was_killed(folder: Path) -> bool:
    """Whether the last server of a folder has ended without a stop, and none has started since."""
    return (folder / DataFolder.control_name).exists()


def show_health(report: dict[str, Any], *, as_json: bool) -> None:
    """Print the health of a server; raise Exit if it is not ready."""
    if as_json or not sys.stdout.isatty():
        print(dumps(report))
    else:
        for check in report["checks"]:
            state = "ok" if check["ok"] else "NOT OK"
            print(safe(f"{str(check['name']).replace('_', ' ')}: {state}: {check['detail']}"))
        print("ready" if report["ok"] else "not ready")
    if not report["ok"]:
        raise Exit(EX_UNAVAILABLE)
