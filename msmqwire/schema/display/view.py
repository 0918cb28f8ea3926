"""The view of a packet or message: bounded, for any content."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple, Protocol

from msmqwire.names.printable import counted, cut, safe

FIELDS_MAX: Final = 200
"""Fields that are shown."""
FOUND_MAX: Final = 50
"""Findings that are shown."""
ROW_SIZE: Final = 16
"""Bytes in a row."""
ROWS_MAX: Final = 4
"""Rows of bytes of one field."""
_SIZE_MAX: Final = ROWS_MAX * ROW_SIZE
TEXT_MAX: Final = 240
"""Characters of one value."""


class PlacedField(NamedTuple):
    """A field and its bytes.

    Attributes:
        path: its name, as findings have it.
        offset, size: its bytes in those of the packet.
        text: its value, for people.
    """

    path: str
    offset: int
    size: int
    text: str


class Found(Protocol):
    """A finding of lint."""

    @property
    def id(self) -> str:
        """The requirement."""

    @property
    def severity(self) -> str:
        """The strength of the requirement."""

    @property
    def path(self) -> str:
        """The field."""

    @property
    def offset(self) -> int:
        """The first byte of the field."""

    @property
    def message(self) -> str:
        """The fault."""


@dataclass(frozen=True, slots=True)
class View:
    """The view; all texts are printable.

    Attributes:
        title: its kind, in one line.
        properties: facts about it beside its bytes: names and values.
        fields: its fields, in the order of their bytes.
        rows: the bytes of each field by rows, as many as are shown.
        findings: severity, id, path, offset and message of each.
        left_out: sentences on the parts that are not shown.
    """

    title: str
    properties: tuple[tuple[str, str], ...]
    fields: tuple[PlacedField, ...]
    rows: tuple[tuple[bytes, ...], ...]
    findings: tuple[tuple[str, str, str, int, str], ...]
    left_out: tuple[str, ...]

    def is_found(self, field: PlacedField) -> bool:
        """Return whether a finding is about bytes of a field."""
        return any(field.offset <= offset < field.offset + field.size for *_, offset, _ in self.findings)


def view_of(
    title: str,
    *,
    properties: Iterable[tuple[str, str]] = (),
    fields: Iterable[PlacedField] = (),
    data: bytes = b"",
    findings: Sequence[Found] = (),
    remarks: Iterable[str] = (),
) -> View:
    """Return a view, cut to a readable size.

    Args:
        title, properties: as in the view, of any characters.
        fields: all fields; no more are taken than are shown.
        data: the bytes that they stand in.
        findings: the findings of lint.
        remarks: more sentences below.
    """
    shown = list(islice(fields, FIELDS_MAX + 1))
    left_out = [line(remark) for remark in remarks]
    if len(shown) > FIELDS_MAX:
        shown.pop()
        end = max(field.offset + field.size for field in shown)
        left_out.append(f"Only the first {FIELDS_MAX} fields are shown, of bytes 0 to {end - 1:,}.")
    rows = []
    for field in shown:
        first = data[field.offset : field.offset + min(field.size, _SIZE_MAX)]
        rows.append(tuple(first[at : at + ROW_SIZE] for at in range(0, len(first), ROW_SIZE)))
    long = [field for field in shown if field.size > _SIZE_MAX]
    if len(long) == 1:
        left_out.append(f"{long[0].size - _SIZE_MAX:,} bytes of {line(long[0].path)} are not shown.")
    elif long:
        left_out.append(f"Of {counted(len(long), 'field')} only the first {_SIZE_MAX} bytes are shown.")
    if len(findings) > FOUND_MAX:
        left_out.append(f"{len(findings) - FOUND_MAX:,} more findings are not shown.")
    return View(
        line(title),
        tuple((line(name), line(value)) for name, value in properties),
        tuple(field._replace(path=line(field.path), text=line(field.text)) for field in shown),
        tuple(rows),
        tuple(
            (one.severity, one.id, line(one.path), one.offset, line(one.message))
            for one in findings[:FOUND_MAX]
        ),
        tuple(left_out),
    )


def line(text: str) -> str:
    """Return a text in one line: characters that can't be seen are written out, and a long text is cut."""
    return cut(safe(text[: 2 * TEXT_MAX]), TEXT_MAX)
