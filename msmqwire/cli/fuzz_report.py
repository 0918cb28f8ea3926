"""The output of ``msmqwire fuzz``: its progress, a table at the end, or one document."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msmqwire.json_text import dumps
from msmqwire.names.printable import counted

if TYPE_CHECKING:
    from fuzz.peer.running import Report
    from fuzz.peer.watcher import Watcher


class _Lines:
    """Prints the events."""

    def line(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def tick(self, seconds: float, packets: int, failures: int) -> None:
        """Print nothing: there is no terminal to draw on."""


@contextmanager
def progress(seconds: float) -> Iterator[Watcher]:
    """Return the display of a run of `seconds` on standard error; a bar only on a terminal."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=seconds)

        class Bar:
            def line(self, text: str) -> None:
                bar.console.print(text, markup=False, highlight=False)

            def tick(self, seconds: float, packets: int, failures: int) -> None:
                said = f"{counted(packets, 'packet')}, {counted(failures, 'failure')}"
                bar.update(task, completed=seconds, description=said)

        yield Bar()


def show(report: Report, *, as_json: bool) -> None:
    """Print the result of a run: tables for people, or the JSON document."""
    if as_json:
        print(dumps(report.to_json()))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    tested = report.coverage["requirements"]
    said = (
        f"{counted(report.packets, 'packet')} in {report.seconds:.1f} s,"
        f" {counted(len(tested), 'requirement')} tested"
    )
    console.print(f"{said}, {counted(len(report.failures), 'failure')}, seed {report.seed}", highlight=False)
    documents: dict[str, list[int]] = {}
    for name, count in tested.items():
        documents.setdefault(name.partition("-")[0], []).append(count)
    covered = Table("document", "requirements", "cases", box=None)
    for document, counts in documents.items():
        covered.add_row(document, f"{len(counts):,}", f"{sum(counts):,}")
    console.print(covered)
    kinds = Table("packets sent", "", box=None)
    for kind, count in report.coverage["kinds"].items():
        kinds.add_row(Text(kind), f"{count:,}")
    console.print(kinds)
    if not report.failures:
        return
    failures = Table("requirements", "failure", "cases", "packets", "replay")
    for kept in report.failures:
        text = kept.text if kept.replayed else f"{kept.text} (not seen again)"
        numbers = f"{kept.cases:,}", f"{kept.packets:,}"
        failures.add_row(Text("\n".join(kept.requirements)), Text(text), *numbers, Text(kept.seed))
    console.print(failures)
