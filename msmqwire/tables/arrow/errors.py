"""The columns of errors: why packets are malformed or bytes were skipped, and where."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from msmqwire.tables.arrow.buffers import bitmap
from msmqwire.tables.arrow.refusals import CHOOSING, IN_WORDS, LEFT_MAX, TIMES, Words, words_of
from msmqwire.tables.compiled.refusal import FIRST, NUMBER, OFFSET, REFUSAL, SECOND, THIRD
from msmqwire.tables.compiled.templates import (
    LITERAL_SIZE,
    PIECE,
    SEPARATED,
    template_offsets,
    write_templates,
)

ERRORS: Final = ("error", "error_path", "error_offset")
_VALUE: Final = re.compile("\0([0-2])(?:(,)|#(0?)([0-9]*)x)?\0")
_WHY, _PATH = range(2)


class _Shown(int):
    """A value that says where a text shows it. It is 1 where the noun after it is to be singular."""

    def __new__(cls, number: int, is_one: int) -> _Shown:
        shown = super().__new__(cls, 1 if is_one else number + 2)
        shown.number = number
        return shown

    number: int

    def __format__(self, form: str) -> str:
        return f"\0{self.number}{form}\0"


def _pieces(text: str, start: int) -> tuple[bytes, list[list[int]]]:
    """Return the literals of a text with `_Shown` values, and its pieces, if they begin at an offset."""
    literals, pieces, at = b"", list[list[int]](), 0
    for match in _VALUE.finditer(text):
        literal = text[at : match.start()].encode()
        value, comma, zeros, width = match.groups()
        base, digits = 10 if zeros is None else 16, int(width) - 2 if zeros else SEPARATED if comma else 1
        pieces.append([start + len(literals), len(literal), int(value), base, digits])
        literals, at = literals + literal, match.end()
    rest = text[at:].encode()
    pieces.append([start + len(literals), len(rest), -1, 10, 1])
    return literals + rest, pieces


class Templates:
    """Texts, some of them with values in them."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, bool], int] = {}
        self._source, self._pieces, self._firsts = bytearray(), list[list[int]](), [0]

    def number_of(self, text: str, *, shows_values: bool = False) -> int:
        """Return the number of a text, which is added if it is not there; with `_Shown` values or without."""
        number = self._numbers.get((text, shows_values))
        if number is None:
            number = self._numbers[text, shows_values] = len(self._numbers)
            literals, pieces = _pieces(text if shows_values else "", len(self._source))
            if not shows_values:
                literals = text.encode()
                pieces[0][LITERAL_SIZE] = len(literals)
            self._source += literals
            self._pieces += pieces
            self._firsts.append(len(self._pieces))
        return number

    def array(self, templates: Any, values: Any) -> Any:
        """Return an array of texts by the numbers of their templates, null for -1, and the values of each."""
        firsts = np.array(self._firsts, np.int64)
        pieces = np.array(self._pieces, np.int64).reshape(-1, PIECE)
        offsets = np.empty(len(templates) + 1, np.int32)
        data = np.empty(template_offsets(templates, values, firsts, pieces, offsets), np.uint8)
        source = np.frombuffer(bytes(self._source) or b"\0", np.uint8)
        write_templates(templates, values, firsts, pieces, source, offsets, data)
        buffers = [bitmap(templates >= 0), pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.string(), len(templates), buffers)


_BITS: Final = 1 << np.arange(3)


@cache
def _template(number: int, ones: int) -> Words:
    """Return the words of refusals with this number, with `_Shown` values.

    Args:
        number: that of the refusal; none of `CHOOSING`.
        ones: a bit for each of the three values, set where it is 1.
    """
    return IN_WORDS[number](*(_Shown(at, ones >> at & 1) for at in range(3)))


class ErrorCells:
    """The errors of the rows of a batch."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all errors, when a batch begins."""
        self._refusals: list[tuple[Any, Any]] = []
        self._others: dict[int, Sequence[Any]] = {}

    def add_refusals(self, rows: Any, refusals: Any) -> None:
        """Add refusals of some rows; see `compiled.refusal`."""
        if len(rows):
            self._refusals.append((rows, refusals[:, :REFUSAL].astype(np.int64)))

    def add(self, row: int, error: Sequence[Any]) -> None:
        """Add reason, path and offset of a row, as the generic reader has reported them."""
        self._others[row] = error

    def arrays(self, n: int) -> dict[str, Any]:
        """Return the columns of the first ``n`` rows, by name."""
        if not self._refusals and not self._others:
            return {name: pa.nulls(n, pa.int64() if name == ERRORS[2] else pa.string()) for name in ERRORS}
        templates = np.full((2, n), -1, np.int64)
        values, at = np.zeros((n, 3), np.int64), np.full(n, -1, np.int64)
        texts = Templates()
        if self._refusals:
            rows = np.concatenate([rows for rows, _ in self._refusals])
            refusals = np.concatenate([refusals for _, refusals in self._refusals])
            values[rows], at[rows] = _values(refusals), refusals[:, OFFSET]
            templates[:, rows] = _numbers(texts, refusals[:, NUMBER], values[rows])
            at[templates[_PATH] < 0] = -1
        if self._others:
            others = list(self._others)
            whys, paths, places, *_ = zip(*self._others.values(), strict=True)
            templates[_WHY, others] = [-1 if why is None else texts.number_of(why) for why in whys]
            templates[_PATH, others] = [-1 if path is None else texts.number_of(path) for path in paths]
            at[others] = [-1 if place is None else place for place in places]
        offsets = pa.Array.from_buffers(pa.int64(), n, [bitmap(at >= 0), pa.py_buffer(at)])
        whys, paths = (texts.array(numbers, values) for numbers in templates)
        return dict(zip(ERRORS, (whys, paths, offsets), strict=True))


def _values(refusals: Any) -> Any:
    """Return the values that refusals show, of which they have the low 32 bits."""
    values = refusals[:, FIRST : THIRD + 1] & 0xFFFF_FFFF
    product = values[:, 0] * TIMES[refusals[:, NUMBER]]
    is_product = product & 0xFFFF_FFFF == values[:, SECOND - FIRST]
    values[:, SECOND - FIRST] = np.where(is_product, product, values[:, SECOND - FIRST])
    return values


def _numbers(texts: Templates, numbers: Any, values: Any) -> Any:
    """Return the numbers of the templates for reason and path of refusals."""
    found = np.empty((2, len(numbers)), np.int64)
    for number in np.unique(numbers).tolist():
        here = np.flatnonzero(numbers == number)
        if number in CHOOSING:
            shown = values[here]
            shown[:, :2] = np.minimum(shown[:, :2], LEFT_MAX[number])
            words = [words_of(number, *row) for row in shown.tolist()]
            found[_WHY, here] = [texts.number_of(why) for why, _ in words]
            found[_PATH, here] = [-1 if path is None else texts.number_of(path) for _, path in words]
            continue
        ones = (values[here] == 1) @ _BITS
        for case in np.unique(ones).tolist():
            rows, (why, path) = here[ones == case], _template(number, case)
            found[_WHY, rows] = texts.number_of(why, shows_values=True)
            found[_PATH, rows] = -1 if path is None else texts.number_of(path, shows_values=True)
    return found
