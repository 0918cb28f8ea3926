"""The certificates of signed messages that have been judged before, compiled."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from msmqwire.tables.compiled.arrays import Bools, Bytes, Input, Int32s, Int64Rows, Int64s
from msmqwire.tables.compiled.decorators import brief, exported, inlined
from msmqwire.tables.compiled.memory import copy, u64
from msmqwire.tables.compiled.scan_arrays import RowBlock
from msmqwire.tables.compiled.state import R_START

SLOT_BITS: Final = 13
SLOTS: Final = 1 << SLOT_BITS
"""Entries of the table of judged certificates."""
JUDGED_MAX: Final = 512
"""Judged certificates that are remembered."""
SIZE_MAX: Final = 2048
"""Bytes of a certificate that is remembered, at most."""
NOT_VERIFIED: Final = -1
"""The code of a signature whose certificate has a key."""
NOT_JUDGED: Final = -2
_WORD: Final = 8


class Judged(NamedTuple):
    """Certificates and what was found.

    Attributes:
        slots: a table of numbers of certificates, -1 for none.
        sizes, codes: bytes of each certificate, and the code of what was found.
        bytes: the certificates, `SIZE_MAX` bytes for each.
    """

    slots: Int64s
    sizes: Int64s
    codes: Int64s
    bytes: Bytes


@inlined
def _slot(memory: Any, start: int, size: int) -> Any:
    """Return the place of a certificate in the table, by its size and its last word, part of a signature."""
    mixed = np.uint64(size)
    if size >= _WORD:
        mixed ^= u64(memory, start + size - _WORD)
    return np.int64(mixed * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(64 - SLOT_BITS))


@inlined
def _same(memory: Any, start: int, size: int, other: Any, at: int) -> bool:
    k = 0
    while k + _WORD <= size:
        if u64(memory, start + k) != u64(other, at + k):
            return False
        k += _WORD
    while k < size:
        if memory[start + k] != other[at + k]:
            return False
        k += 1
    return True


@exported
@brief
def codes_of(
    block: RowBlock,
    signed: Bools,
    secured: Bools,
    bounds: Int64Rows,
    judged: Judged,
    codes: Int32s,
    extents: Int64Rows,
) -> int:
    """Write what is known of the certificate of each signed row, and where it is in the memory.

    A certificate is compared with one other, whatever is in it: that which has its slot.

    Args:
        block: the rows.
        signed: which have a signature of their own.
        secured: which rows are wanted, all of messages with a SecurityHeader.
        bounds: where the certificate stands, and the signature over several names: slot and distance of the
            start and of the end of each.
        judged: the certificates that are known.
        codes: gets the codes of the rows that are wanted and signed.
        extents: gets start and size of their certificates.

    Returns:
        How many codes are `NOT_JUDGED` or `NOT_VERIFIED`.
    """
    others = 0
    for i in range(block.rows.shape[0]):
        if not secured[i]:
            continue
        offsets = block.field_offsets[i]
        if not signed[i]:
            in_lists = offsets[bounds[1, 2]] + bounds[1, 3] - offsets[bounds[1, 0]] - bounds[1, 1]
            if in_lists <= 0:
                continue
        start = offsets[bounds[0, 0]] + bounds[0, 1]
        size = offsets[bounds[0, 2]] + bounds[0, 3] - start
        start += block.rows[i, R_START]
        extents[i, 0], extents[i, 1] = start, size
        codes[i] = NOT_JUDGED
        if size <= SIZE_MAX:
            number = judged.slots[_slot(block.memory, start, size)]
            if number >= 0 and judged.sizes[number] == size:
                if _same(block.memory, start, size, judged.bytes, number * SIZE_MAX):
                    codes[i] = judged.codes[number]
        others += codes[i] < 0
    return others


@exported
@brief
def codes_if(codes: Int32s, valid: Bools, chosen: Int32s) -> None:
    """Write codes where they are valid, and 0 for the others."""
    for i in range(chosen.size):
        chosen[i] = codes[i] if valid[i] else 0


@exported
@brief
def remember(judged: Judged, number: int, memory: Input, start: int, size: int, code: int) -> None:
    """Remember a certificate of at most `SIZE_MAX` bytes under a number, in place of another in its slot."""
    judged.slots[_slot(memory, start, size)] = number
    judged.sizes[number], judged.codes[number] = size, code
    copy(memory, start, size, judged.bytes, number * SIZE_MAX)
