"""Booleans of many columns to bits, compiled."""

from __future__ import annotations

from typing import Final

import numpy as np

from msmqwire.tables.compiled.arrays import ByteRows, Int64s
from msmqwire.tables.compiled.decorators import brief, exported
from msmqwire.tables.compiled.memory import u64

_LOWEST_BITS: Final = np.uint64(0x0101010101010101)
_GATHER: Final = np.uint64(0x0102040810204080)
_TOP_BYTE: Final = np.uint64(56)


@exported
@brief
def pack(values: ByteRows, n: int, bits: ByteRows, counts: Int64s) -> None:
    """Write the first ``n`` booleans of each row as bits, and how many are true.

    Args:
        values: bytes, of which the lowest bit counts.
        n: booleans of a row that are wanted.
        bits: gets the bits of each row, the first in the lowest bit of a byte; those behind are 0.
        counts: gets the number of true ones of each row.
    """
    for number in range(values.shape[0]):
        row, packed, count = values[number], bits[number], np.uint64(0)
        for byte in range(n // 8):
            eight = u64(row, 8 * byte) & _LOWEST_BITS
            packed[byte] = eight * _GATHER >> _TOP_BYTE
            count += eight * _LOWEST_BITS >> _TOP_BYTE
        if n % 8:
            rest = np.uint64(0)
            for k in range(n % 8):
                bit = np.uint64(row[n - n % 8 + k]) & np.uint64(1)
                rest |= bit << np.uint64(k)
                count += bit
            packed[n // 8] = rest
        counts[number] = count
