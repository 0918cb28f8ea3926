"""Views and tables as tables of rich."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.schema.display.table import Table
from msmqwire.schema.display.view import View

_SHORT: Final = 8
"""Characters of cells that are never broken into lines: numbers are not."""


def to_rich(view: View) -> Any:
    """Return a view for the console of rich."""
    from rich import table as rich_table
    from rich.console import Group
    from rich.text import Text

    parts: list[Any] = [Text(view.title, "bold")]

    def table(*columns: str) -> Any:
        made = rich_table.Table(box=None, pad_edge=False, show_header=any(columns))
        for name in columns:
            made.add_column(name, overflow="fold")
        parts.append(made)
        return made

    if view.properties:
        properties = table("", "")
        for name, value in view.properties:
            properties.add_row(Text(name, "dim"), Text(value))
    if view.findings:
        found = table("severity", "id", "field", "byte", "finding")
        for finding in view.findings:
            found.add_row(*(Text(str(cell), "red") for cell in finding))
    if view.fields:
        fields = table("byte", "bytes", "field", "value")
        for field, rows in zip(view.fields, view.rows, strict=True):
            style = "red" if view.is_found(field) else ""
            shown = "\n".join(row.hex(" ") for row in rows)
            cells = (Text(str(field.offset), "dim"), Text(shown, "cyan"), Text(field.path, style))
            fields.add_row(*cells, Text(field.text, style))
    parts += [Text(sentence, "italic dim") for sentence in view.left_out]
    return Group(*parts)


def table_to_rich(table: Table) -> Any:
    """Return a table for the console of rich."""
    from rich import table as rich_table
    from rich.console import Group
    from rich.text import Text

    made = rich_table.Table(box=None, pad_edge=False)
    for name, *cells in zip(table.columns, *table.rows, strict=True):
        made.add_column(name, overflow="fold", no_wrap=max(map(len, cells), default=0) <= _SHORT)
    for number, row in enumerate(table.rows):
        made.add_row(*map(Text, row), style="red" if number in table.marked else None)
    parts: list[Any] = [Text(table.title, "bold"), *[made] * bool(table.rows)]
    parts += [Text(table.remark, "italic dim")] * bool(table.remark)
    return Group(*parts)
