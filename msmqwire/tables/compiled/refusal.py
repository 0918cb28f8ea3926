"""Refusals of bytes by compiled code, which Python puts into words: `msmqwire.tables.arrow.refusals`."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.tables.compiled.decorators import jit
from msmqwire.tables.compiled.memory import low32

REFUSED: Final = -1
"""Returned in place of the end of a packet: it is malformed."""
UNSURE: Final = -2
"""In place of the kind of a packet: only the generic reader can judge it."""

NUMBER, OFFSET, FIRST, SECOND, THIRD = range(5)
REFUSAL: Final = 5
"""A refusal in the field offsets of a row, by index: its number in `msmqwire.tables.arrow.refusals`, the
offset of the field in the packet, and the values that the reason shows, each the low 32 bits."""


@jit
def refuse(field_offsets: Any, r: int, number: int, offset: int, first: int, second: int, third: int) -> int:
    """Write a refusal in place of the field offsets of a row; return REFUSED."""
    refusal = field_offsets[r]
    refusal[NUMBER], refusal[OFFSET] = number, offset
    refusal[FIRST], refusal[SECOND], refusal[THIRD] = low32(first), low32(second), low32(third)
    return REFUSED
