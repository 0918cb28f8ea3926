"""Tables as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from msmqwire.bodies.body import Plain
from msmqwire.names.printable import counted

DATASET: Final = "$dataset"
_SHOWN: Final = 100


class NoTables(Exception):
    """The members are not those that a DataSet or DataTable writes."""


@dataclass(slots=True)
class Table:
    """A table.

    Attributes:
        name: its name.
        columns: names and types of the columns.
        rows: the values of each row.
    """

    name: str
    columns: list[tuple[str, str]] = field(default_factory=list)
    rows: list[list[Plain]] = field(default_factory=list)


def as_plain(name: str | None, tables: list[Table]) -> Plain:
    """Return tables as plain data; the name is that of the DataSet, None for a DataTable without one."""
    return {
        DATASET: name,
        "tables": [
            {
                "name": table.name,
                "columns": [{"name": column, "type": kind} for column, kind in table.columns],
                "rows": list[Plain](table.rows),
            }
            for table in tables
        ],
    }


def tables_line(value: dict[str, Any]) -> str:
    """Return tables in one line for people."""
    tables = ", ".join(
        f"{table['name']}: {counted(len(table['rows']), 'row')}" for table in value["tables"][:_SHOWN]
    )
    name = value[DATASET]
    return tables if name is None else f"{name}{{{tables}}}"
