"""Packets one below the other: whole lines, or lines that fit a terminal; and columns as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from msmqwire.analysis.dissection import Item
from msmqwire.analysis.dissection.summaries import summary_with_body
from msmqwire.json_text import dumps
from msmqwire.names.printable import cut, format_endpoint, safe

TITLES: Final = ("time", "frames", "st", "from", "to", "packet", "size", "find", "about")
_KIND_WIDTH: Final = len("R_StartReceive response")
_NARROW_KIND: Final = 16
"""Characters of a kind of packet in a line that must fit."""
_KINDS_FROM: Final = 100
"""Characters of a line that has room for whole kinds of packets."""
_ENDPOINTS_FROM: Final = 120
"""Characters of a line that has room for ports."""
_ADDRESS_MAX: Final = 15
_ENDPOINT_MAX: Final = 21
_ABOUT_MIN: Final = 12


class WholeLines:
    """Lines with all that is known, however long they are."""

    def __init__(self) -> None:
        # There are calls with names of 38 characters: later rows are aligned with the widest so far.
        self._kind_width = _KIND_WIDTH

    def title(self) -> str:
        """Return the names of the columns."""
        return self._line(*TITLES)

    def rows(self, item: Item) -> Iterator[str]:
        """Yield the line of an item."""
        self._kind_width = max(self._kind_width, len(item.kind))
        yield self._line(
            item.time or "-",
            _frames(item),
            "" if item.stream is None else str(item.stream),
            format_endpoint(item.src, item.src_port),
            format_endpoint(item.dst, item.dst_port),
            item.kind,
            str(item.size),
            str(len(item.findings) or ""),
            summary_with_body(item),
        )

    def _line(self, *cells: str) -> str:
        time, frames, stream, source, target, kind, size, findings, about = cells
        origin = f"{time:<30} {frames:>9} {stream:>3} {source:<21} {target:<21}"
        return f"{origin} {kind:<{self._kind_width}} {size:>7} {findings:>4}  {about}"


class FittingLines:
    """Lines that are no longer than a terminal is wide: `WholeLines` have the rest.

    Times lack the date, which has a line of its own when it changes; endpoints lack the port where there is
    no room; long kinds and summaries are cut.
    """

    def __init__(self, width: int) -> None:
        self._width, self._date = width, ""
        self._has_ports = width >= _ENDPOINTS_FROM
        self._end_width = len("10.0.0.1:49759") if self._has_ports else len("10.0.0.1")
        self._kind_max = width if width >= _KINDS_FROM else _NARROW_KIND
        self._kind_width = min(self._kind_max, len("ConnectionParameters"))

    def title(self) -> str:
        """Return the names of the columns."""
        return self._line(*TITLES[:-2], "!", TITLES[-1])

    def rows(self, item: Item) -> Iterator[str]:
        """Yield the line of an item, before it the date if it is another one."""
        date, _, clock = (item.time or "").rstrip("Z").partition("T")
        if clock and date != self._date:
            self._date = date
            yield date
        ends = self._end(item.src, item.src_port), self._end(item.dst, item.dst_port)
        self._end_width = max(self._end_width, *map(len, ends))
        kind = cut(item.kind, self._kind_max)
        self._kind_width = max(self._kind_width, len(kind))
        stream = "" if item.stream is None else str(item.stream)
        findings = str(len(item.findings) or " ")
        yield self._line(
            clock[:12] or "-",
            _frames(item),
            stream,
            *ends,
            kind,
            str(item.size),
            findings,
            summary_with_body(item),
        )

    def _end(self, address: str, port: int) -> str:
        if self._has_ports:
            return _cut_middle(format_endpoint(address, port), _ENDPOINT_MAX)
        return _cut_middle(address, _ADDRESS_MAX)

    def _line(self, *cells: str) -> str:
        time, frames, stream, source, target, kind, size, findings, about = cells
        ends = f"{source:<{self._end_width}} {target:<{self._end_width}}"
        line = f"{time:<12} {frames:>6} {stream:>2} {ends} {kind:<{self._kind_width}} {size:>5} {findings} "
        return cut(line + cut(about, max(_ABOUT_MIN, self._width - len(line))), self._width)


def _frames(item: Item) -> str:
    first, last = (item.frames[0], item.frames[-1]) if item.frames else ("", "")
    return str(first) if first == last else f"{first}-{last}"


def _cut_middle(text: str, length: int) -> str:
    """Return a text with at most this many characters; one that was cut lacks its middle."""
    if len(text) <= length:
        return text
    end = (length - 1) // 2
    return f"{text[: length - 1 - end]}…{text[-end:]}"


def to_table(line: Callable[[str, str], None], width: int | None = None) -> Callable[[Any], Any]:
    """Return a sink of columns to a table of text with a header.

    Args:
        line: prints a line in a style.
        width: characters of a line, at the most.
    """

    @contextmanager
    def sink(schema: Any) -> Iterator[Callable[[Any], None]]:
        names = list(schema.names)
        widths = [len(name) for name in names]
        begun = False

        def write_batch(batch: Any) -> None:
            nonlocal begun
            columns = [_cells(column) for column in batch.columns]
            for place, cells in enumerate(columns):
                widths[place] = max([widths[place], *(min(len(cell), _CELL_MAX) for cell in cells)])
            if not begun:
                begun = True
                line(_joined(names, widths, width), "bold underline")
            for row in zip(*columns, strict=True):
                line(_joined(row, widths, width), "")

        yield write_batch
        if not begun:
            line(_joined(names, widths, width), "bold underline")

    return sink


_CELL_MAX: Final = 40
"""Characters with which a cell widens its column; longer ones stand out of it."""


def _joined(cells: Sequence[str], widths: Sequence[int], width: int | None) -> str:
    line = "  ".join(f"{cell:<{most}}" for cell, most in zip(cells, widths, strict=True)).rstrip()
    return line if width is None else cut(line, width)


def _cells(column: Any) -> list[str]:
    """Return the values of an Arrow array as text: times in full, bytes in hex, nothing for null."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.string())
    return ["" if value is None else _cell(value) for value in column.to_pylist()]


def _cell(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):  # texts by name
        return dumps(dict(value))
    return safe(str(value))
