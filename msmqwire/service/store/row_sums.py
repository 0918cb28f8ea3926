"""Checksums of rows. They show damage that SQLite can't see: other bytes, or a row under another key.

A checksum covers the name of the table, the key and the content. It is a CRC-32: whoever may write to the
file can make it fit, and so can one damage in four billion.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final
from zlib import crc32

from msmqwire.service.store.changes import Key
from msmqwire.service.store.table import StoreTable

_WORD: Final = 0xFFFFFFFF

Pair = tuple[Key, bytes]


@cache
def table_sum(table: StoreTable) -> int:
    """Return the addend of a table in the checksums of its rows."""
    return crc32(table.value.encode())


def row_sum(table: StoreTable, key: Key, content: bytes) -> int:
    """Return the checksum of a row."""
    return table_sum(table) + crc32(content, _seed(key))


def _seed(key: Key) -> int:
    if isinstance(key, int):
        return key if 0 <= key <= _WORD else crc32(key.to_bytes(8, "little", signed=True))
    return crc32(key)


def sum_of_rows(table: StoreTable, rows: Sequence[Pair]) -> int:
    """Return the sum of the checksums of rows, which are in the order of their keys.

    Raises TypeError if the content of a row is not bytes.
    """
    keys, contents = zip(*rows, strict=True)
    first, last = keys[0], keys[-1]
    if isinstance(first, int) and first >= 0 and last <= _WORD:
        total = sum(map(crc32, contents, keys))  # a start reads millions of rows
    else:
        total = sum(map(crc32, contents, map(_seed, keys)))
    return total + len(rows) * table_sum(table)
