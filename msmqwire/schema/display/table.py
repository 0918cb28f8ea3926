"""Many things one below the other: a row each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from msmqwire.names.printable import counted


@runtime_checkable
class Tabular(Protocol):
    """Something that makes its own row in a table."""

    @staticmethod
    def _table_head() -> tuple[str, tuple[str, ...]]:
        """Return its name, and the names of the columns."""

    def _table_row(self) -> tuple[str, ...]:
        """Return the cells of its row."""


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """Packets, items or messages one below the other: HTML in notebooks, a table by rich.

    Attributes:
        noun: the kind of thing in a row, in the singular.
        columns: their names.
        rows: the cells of each, all of them `msmqwire.schema.display.line`.
        marked: the numbers of rows that have findings.
        left_out: the number of rows beyond these.
    """

    noun: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    marked: frozenset[int] = frozenset()
    left_out: int = 0

    @property
    def title(self) -> str:
        """Their number."""
        return counted(len(self.rows) + self.left_out, self.noun)

    @property
    def remark(self) -> str:
        """A sentence on the rows that are not shown; empty if all are."""
        if not self.left_out:
            return ""
        return f"{counted(self.left_out, f'more {self.noun}')} not shown; a larger limit shows more."

    def __repr__(self) -> str:
        return f"<Table of {self.title}>"

    def __rich__(self) -> Any:
        """Return a table for rich."""
        from msmqwire.schema.display.as_rich import table_to_rich

        return table_to_rich(self)

    def _repr_html_(self) -> str:
        """Return HTML for a notebook."""
        from msmqwire.schema.display.as_html import table_to_html

        return table_to_html(self)
