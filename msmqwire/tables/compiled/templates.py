"""Texts of templates with integers in them, compiled: the same as Python's format of these."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from msmqwire.tables.compiled.arrays import Bytes, Input, Int32s, Int64Rows, Int64s
from msmqwire.tables.compiled.decorators import exported, inlined, jit
from msmqwire.tables.compiled.memory import copy

LITERAL_START, LITERAL_SIZE, VALUE, BASE, DIGITS = range(5)
PIECE: Final = 5
"""A piece of a template, by index: where its literal text begins and how long it is; then the number of the
value that follows, -1 for none; its base, 10 or 16, with 0x before the latter; its digits, at least."""
SEPARATED: Final = 0
"""In place of a least number of digits: a comma is before each three digits but the first ones."""
_HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8).copy()


@inlined
def _digits(value: int, piece: Any) -> int:
    """Return how many digits a value takes, with the commas between them."""
    count, value = 1, value // piece[BASE]
    while value:
        value //= piece[BASE]
        count += 1
    return count + (count - 1) // 3 if piece[DIGITS] == SEPARATED else max(count, piece[DIGITS])


@exported
@jit
def template_offsets(
    templates: Int64s, values: Int64Rows, firsts: Int64s, pieces: Int64Rows, offsets: Int32s
) -> int:
    """Write the offsets of texts when they are concatenated; return their total size.

    Args:
        templates: the template of each text, -1 for null.
        values: the values of each, not negative.
        firsts: the first piece of each template, and one behind those of the last.
        pieces: the pieces.
        offsets: is written, one more than there are texts.
    """
    pos = 0
    offsets[0] = 0
    for i in range(templates.size):
        if templates[i] >= 0:
            for n in range(firsts[templates[i]], firsts[templates[i] + 1]):
                piece = pieces[n]
                pos += piece[LITERAL_SIZE]
                if piece[VALUE] >= 0:
                    pos += _digits(values[i, piece[VALUE]], piece) + (2 if piece[BASE] == 16 else 0)
        offsets[i + 1] = pos
    return pos


@exported
@jit
def write_templates(
    templates: Int64s,
    values: Int64Rows,
    firsts: Int64s,
    pieces: Int64Rows,
    source: Input,
    offsets: Int32s,
    data: Bytes,
) -> None:
    """Concatenate texts, of which `template_offsets` has written the offsets; ``source`` has the literals."""
    for i in range(templates.size):
        if templates[i] < 0:
            continue
        pos = offsets[i]
        for n in range(firsts[templates[i]], firsts[templates[i] + 1]):
            piece = pieces[n]
            copy(source, piece[LITERAL_START], piece[LITERAL_SIZE], data, pos)
            pos += piece[LITERAL_SIZE]
            if piece[VALUE] < 0:
                continue
            value, count = values[i, piece[VALUE]], _digits(values[i, piece[VALUE]], piece)
            if piece[BASE] == 16:
                data[pos], data[pos + 1] = _HEX[0], 120  # x
                pos += 2
            for k in range(count):
                if piece[DIGITS] == SEPARATED and k % 4 == 3:
                    data[pos + count - 1 - k] = 44  # a comma
                else:
                    data[pos + count - 1 - k] = _HEX[value % piece[BASE]]
                    value //= piece[BASE]
            pos += count
