"""``msmqwire top``: a queue manager at a glance, on a terminal, again and again."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

from rich.console import Console
from rich.live import Live

from msmqwire.cli.errors import run_reporting_errors
from msmqwire.cli.keys import keys
from msmqwire.cli.options import Option
from msmqwire.cli.top_tables import screen
from msmqwire.errors import StoreInUse, Unreachable
from msmqwire.json_text import dumps
from msmqwire.qm.runtime.local import attach
from msmqwire.service.control.client import Local

_QUEUES_MAX: Final = 100
"""Queues of each group that are asked for, those with the most messages first."""
_GROUPS: Final = ("application", "outgoing", "system", "journals")
_QUIT: Final = ("q", "Q", "\x03", "\x04")


@dataclass
class Figures:
    """The report of a queue manager at one time.

    Attributes:
        at: seconds of a clock that only goes forward.
        report: the report, as `--json` prints it.
        rates: messages ``put`` and ``taken`` a second since the figures before, by counter and by queue.
    """

    at: float
    report: dict[str, Any]
    rates: dict[str, float] = field(default_factory=dict)
    queue_rates: dict[str, tuple[float, float]] = field(default_factory=dict)

    def since(self, before: Figures | None) -> None:
        """Set the rates, from the figures before."""
        seconds = 0.0 if before is None else self.at - before.at
        if before is None or seconds <= 0:
            return
        old, new = before.report["counters"], self.report["counters"]
        self.rates = {
            name: (new[name] - old[name]) / seconds
            for name in new
            if new[name] >= old.get(name, new[name] + 1)
        }
        known = {queue["queue"]: queue for queue in before.report["queues"]}
        for queue in self.report["queues"]:
            other = known.get(queue["queue"])
            if other is not None and queue["put"] >= other["put"] and queue["taken"] >= other["taken"]:
                self.queue_rates[queue["queue"]] = (
                    (queue["put"] - other["put"]) / seconds,
                    (queue["taken"] - other["taken"]) / seconds,
                )


class Watched:
    """The queue manager of a folder, asked again and again.

    Without a server the folder is open only while it is asked, so that a server can start.
    """

    def __init__(self, data: Path) -> None:
        self._data = data
        self._local: Local | None = None

    def figures(self) -> Figures:
        """Return the figures of this moment.

        Raises as `attach` does, and Unreachable if the server goes meanwhile.
        """
        local = self._local or attach(self._data)
        try:
            report = _report(local)
        except BaseException:
            self._local = None
            local.close()
            raise
        self._local = local if local.served else None
        if not local.served:
            local.close()
        return Figures(time.monotonic(), report)

    def close(self) -> None:
        """End the connection to the server."""
        if self._local is not None:
            self._local.close()
            self._local = None


def _report(local: Local) -> dict[str, Any]:
    status = local.call("status")
    pages = [
        local.call("queues", group=group, sort="messages", descending=True, count=_QUEUES_MAX)
        for group in _GROUPS
    ]
    activity = local.call("activity")
    return {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "name": status["name"],
        "served": local.served,
        "messages": status["messages"],
        "used": status["used"],
        "quota": status["quota"],
        "disk": status["disk"],
        "troubles": status["troubles"],
        "refused": status["refused"],
        "groups": pages[0]["groups"],
        "queues": [queue for page in pages for queue in page["queues"]],
        **{name: activity[name] for name in ("sessions_total", "sessions", "transactions_total", "counters")},
    }


def command(
    data: Annotated[Path, Option(help="Folder of the queue manager.")],
    interval: Annotated[
        float, Option(min=0.2, max=3600, metavar="SECONDS", help="Time between updates.")
    ] = 2.0,
    once: Annotated[bool, Option("--once", help="Print the tables once.")] = False,
    as_json: Annotated[
        bool, Option("--json", help="Print one JSON object, as where output is not a terminal.")
    ] = False,
) -> None:
    """Watch the queues, sessions and counters of a queue manager; q quits."""

    def run() -> None:
        watched = Watched(data)
        try:
            if as_json or not (once or sys.stdout.isatty()):
                print(dumps(watched.figures().report))
            elif once:
                console = Console()
                console.print(screen(watched.figures(), console, fit=False))
            else:
                _watch(watched, interval)
        finally:
            watched.close()

    run_reporting_errors(run)


def _watch(watched: Watched, interval: float) -> None:
    """Show figures until q or Ctrl-C. Raises the error of the first look; later a server may come and go."""
    console = Console()
    figures = watched.figures()
    problem = ""
    with keys() as pressed, Live(console=console, screen=True, auto_refresh=False) as live:
        try:
            while True:
                live.update(screen(figures, console, fit=True, problem=problem), refresh=True)
                if pressed(interval) in _QUIT:
                    return
                try:
                    latest = watched.figures()
                except (Unreachable, StoreInUse) as exc:
                    problem = str(exc)
                    continue
                problem = ""
                latest.since(figures)
                figures = latest
        except KeyboardInterrupt:
            return
