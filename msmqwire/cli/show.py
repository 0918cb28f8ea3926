"""Packets for human readers: every field beside its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from msmqwire.bodies import Body
from msmqwire.cli.protocols import protocols
from msmqwire.names.printable import counted, cut, safe
from msmqwire.schema import Record
from msmqwire.schema.field_text import field_text
from msmqwire.schema.layout import layout

STYLES: Final = {
    "Malformed": "bold red",
    "Skipped": "yellow",
    "UserMessage": "bold",
    "Ping": "dim",
    **{kind: style for protocol in protocols() for kind, style in protocol.styles.items()},
}
_WIDTH: Final = 16  # bytes of a row of a hex dump
_ROWS: Final = 8  # rows shown of one field
_TEXT_MAX: Final = 200  # characters of the text of a body, of a header
_HEADERS: Final = 40
_PROBLEMS: Final = 8


def hexdump(packet: Record, data: bytes, body: Body | None = None) -> Iterator[str]:
    """Yield every field beside its bytes, and the decoded body; long values are truncated."""
    for field in layout(packet):
        assignment = f"{field.path} = {field_text(field)}"
        content = data[field.offset : field.offset + field.size]
        rows = [content[i : i + _WIDTH] for i in range(0, field.size, _WIDTH)]
        for number, row in enumerate(rows[:_ROWS]):
            text = assignment if number == 0 else _characters(row)
            yield f"{field.offset + number * _WIDTH:06x}  {row.hex(' '):<47}  {text}"
        if len(rows) > _ROWS:
            yield f"        ... {counted(field.size - _ROWS * _WIDTH, 'byte')} more"
    if body is None:
        return
    text = f" {safe(cut(body.text, _TEXT_MAX))}" if body.text else ""
    yield f"        body: {body.format}{text}"
    if body.headers_format is not None:
        yield f"        headers: {body.headers_format}"
        for name, value in islice(body.headers.items(), _HEADERS):
            yield f"          {safe(cut(name, _TEXT_MAX))}: {safe(cut(value, _TEXT_MAX))}"
        if len(body.headers) > _HEADERS:
            yield f"          ... {len(body.headers) - _HEADERS:,} more"
    for problem in body.problems[:_PROBLEMS]:
        yield f"        problem: {safe(cut(str(problem), _TEXT_MAX))}"


def raw_dump(data: bytes) -> Iterator[str]:
    """Yield a hex dump of bytes without fields, those of a malformed packet."""
    for i in range(0, min(len(data), _ROWS * _WIDTH * 4), _WIDTH):
        row = data[i : i + _WIDTH]
        yield f"{i:06x}  {row.hex(' '):<47}  {_characters(row)}"
    if len(data) > _ROWS * _WIDTH * 4:
        yield f"        ... {counted(len(data) - _ROWS * _WIDTH * 4, 'byte')} more"


def _characters(data: bytes) -> str:
    return "".join(chr(b) if 0x20 <= b < 0x7F else "." for b in data)
