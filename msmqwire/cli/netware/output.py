"""The output of the commands of NetWare queues: lines of JSON, or tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msmqwire.json_text import dumps
from msmqwire.names.printable import safe


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str], table: bool) -> None:
    """Print objects, each as a line of JSON, or as a table with these keys by their headings."""
    if not table:
        for row in rows:
            print(dumps(row), flush=True)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        shown.add_row(*(Text(_cell(row[key])) for key in columns.values()))
    Console().print(shown)


def print_one(row: Mapping[str, Any], table: bool) -> None:
    """Print an object as a line of JSON, or each of its keys on a line."""
    if not table:
        print(dumps(row), flush=True)
        return
    for name, value in row.items():
        print(f"{name:28} {_cell(value)}")


def _cell(value: Any) -> str:
    """Format a value for people."""
    match value:
        case bool():
            return "yes" if value else "no"
        case None | "" | [] | {}:
            return "-"
        case list():
            return ", ".join(map(_cell, value))
        case dict():
            return "; ".join(f"{safe(name)}: {_cell(item)}" for name, item in value.items())
    return safe(str(value))
