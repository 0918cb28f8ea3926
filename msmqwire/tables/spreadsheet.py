"""Texts as cells of a spreadsheet, which would compute those that look like formulas.

Whoever sends a message chooses its label, and so what a spreadsheet would run as ``=HYPERLINK(...)``. An
apostrophe in front makes a cell a text. Texts that begin with an apostrophe get another one, so that
taking one off every cell that begins with it gives all texts back.
"""

from __future__ import annotations

import re
from typing import Any, Final

APOSTROPHE: Final = "'"
FORMULA: Final = "^('|[\t\r\n]|[\\x00-\\x20\\x7f\xa0\ufeff]*[=+\\-@\uff1d\uff0b\uff0d\uff20])"
"""The beginning of texts that get an apostrophe. Programs differ in what they skip before a formula, and some
take the wide characters of East Asian keyboards too. Python, RE2 and Java read this expression alike.
"""
_FORMULA: Final = re.compile(FORMULA)
_FIRST: Final = bytes([*range(0x21), 0x7F, *b"'=+-@", "\xa0".encode()[0], "\uff1d".encode()[0]])
"""The first bytes of such texts in UTF-8; some others begin with them, too."""


def escaped(text: str) -> str:
    """Return the text of a cell that a spreadsheet shows as this text."""
    return APOSTROPHE + text if _FORMULA.match(text) else text


def unescaped(cell: str) -> str:
    """Return the text of a cell of `escaped`."""
    return cell.removeprefix(APOSTROPHE)


def escaped_column(column: Any) -> Any:
    """Return an Arrow array of texts with each of them `escaped`."""
    from pyarrow import compute

    if not _may_need_it(column):
        return column
    return compute.replace_substring_regex(column, FORMULA, r"'\1", max_replacements=1)


def _may_need_it(column: Any) -> bool:
    """Return whether one of the texts begins with a byte of `_FIRST`.

    Most columns have none, and looking at bytes costs less than an expression.
    """
    import numpy as np

    _, offsets, data = column.buffers()
    if data is None:
        return False
    bounds = np.frombuffer(offsets, np.int32, len(column) + 1, 4 * column.offset)
    starts = bounds[:-1][bounds[1:] > bounds[:-1]]
    firsts = np.frombuffer(data, np.uint8)[starts]
    is_first = np.zeros(256, np.bool_)
    is_first[list(_FIRST)] = True
    return bool(is_first[firsts].any())
