"""Views and tables as HTML for notebooks: one element with its style, which loads and runs nothing."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Final

from msmqwire.schema.display.table import Table
from msmqwire.schema.display.view import View

_STYLE: Final = (
    ".msmqwire{max-height:36em;overflow:auto;font:13px/1.4 sans-serif}"
    ".msmqwire table{border-collapse:collapse;margin:.4em 0}"
    ".msmqwire td,.msmqwire th{text-align:left;vertical-align:top;padding:1px 10px 1px 0;border:0}"
    ".msmqwire .bytes{font-family:monospace;white-space:pre}"
    ".msmqwire tr.found{background:#d4351c33}"
    ".msmqwire tbody tr:hover{background:#8883}"
    ".msmqwire .left-out{opacity:.75}"
)


def to_html(view: View) -> str:
    """Return a view as HTML."""
    return "".join(_parts(view))


def _parts(view: View) -> Iterator[str]:
    yield f'<div class="msmqwire"><style>{_STYLE}</style><strong>{html.escape(view.title)}</strong>'
    if view.properties:
        yield "<table><tbody>"
        for name, value in view.properties:
            yield f'<tr><th scope="row">{html.escape(name)}</th><td>{html.escape(value)}</td></tr>'
        yield "</tbody></table>"
    if view.findings:
        yield _head("severity", "id", "field", "byte", "finding")
        for finding in view.findings:
            yield f"<tr>{''.join(f'<td>{html.escape(str(cell))}</td>' for cell in finding)}</tr>"
        yield "</tbody></table>"
    if view.fields:
        yield _head("byte", "bytes", "field", "value")
        for field, rows in zip(view.fields, view.rows, strict=True):
            mark = ' class="found"' if view.is_found(field) else ""
            shown = "\n".join(row.hex(" ") for row in rows)
            yield (
                f'<tr{mark}><td>{field.offset}</td><td class="bytes">{shown}</td>'
                f"<td>{html.escape(field.path)}</td><td>{html.escape(field.text)}</td></tr>"
            )
        yield "</tbody></table>"
    for sentence in view.left_out:
        yield f'<div class="left-out">{html.escape(sentence)}</div>'
    yield "</div>"


def table_to_html(table: Table) -> str:
    """Return a table as HTML."""
    return "".join(_table_parts(table))


def _table_parts(table: Table) -> Iterator[str]:
    yield f'<div class="msmqwire"><style>{_STYLE}</style><strong>{html.escape(table.title)}</strong>'
    if table.rows:
        yield _head(*table.columns)
        for number, row in enumerate(table.rows):
            mark = ' class="found"' if number in table.marked else ""
            yield f"<tr{mark}>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>"
        yield "</tbody></table>"
    if table.remark:
        yield f'<div class="left-out">{html.escape(table.remark)}</div>'
    yield "</div>"


def _head(*columns: str) -> str:
    return f"<table><thead><tr>{''.join(f'<th>{name}</th>' for name in columns)}</tr></thead><tbody>"
