"""Columns of the contents of bodies, made of the columns of a batch: they cost nothing unless asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from msmqwire.analysis.dissection.contents import MessageBody, decoded
from msmqwire.bodies import Body
from msmqwire.tables.columns import Column

SOURCES: Final = ("body", "body_size", "body_type", "extension", "kind", "encrypted", "decrypted")
"""The columns that these are made of."""
_MESSAGE: Final = "UserMessage"
_ACKNOWLEDGEMENTS: Final = ("OrderAck", "FinalAck")


def content_arrays(
    columns: Sequence[tuple[int, Column]], sources: Sequence[Any]
) -> Iterator[tuple[int, Any]]:
    """Yield the arrays of columns with their places, made of the arrays of `SOURCES`."""
    cells: list[list[Any]] = [[] for _ in columns]
    for body, size, body_type, extension, kind, encrypted, decrypted in zip(
        *(array.to_pylist() for array in sources), strict=True
    ):
        # The queue manager that answers a call of remote read has decrypted the bodies encrypted for it.
        hidden = encrypted and not decrypted and kind == _MESSAGE
        found = None
        if body is not None and not hidden and kind not in _ACKNOWLEDGEMENTS:
            found = decoded(MessageBody(body, size, body_type or 0, extension or b""))
        for values, (_, column) in zip(cells, columns, strict=True):
            values.append(None if found is None else cell_of(column, found))
    for values, (place, column) in zip(cells, columns, strict=True):
        yield place, pa.array(values, column.type)


def cell_of(column: Column, found: Body) -> Any:
    """Return the cell of a column for a body; None for an empty text, and where there are no headers."""
    match column.name:
        case "body_format":
            return found.format
        case "body_text":
            return _valid(found.text) or None
        case _:
            if found.headers_format is None:
                return None
            return [(_valid(name), _valid(value)) for name, value in found.headers.items()]


def _valid(text: str) -> str:
    """Return a text with replacement characters for lone surrogates, which Arrow has not."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
