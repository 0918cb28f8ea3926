"""Numbers of connections that every task gives alike."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

REMEMBERED_MAX: Final = 1 << 16
"""Connections whose number is remembered; the memory starts afresh when it is full."""


def flow_number(src: str, src_port: int, dst: str, dst_port: int) -> int:
    """A positive number of 63 bits for a pair of endpoints, the same in both directions.

    Connections that use the same pair one after the other have the same number; that two pairs have
    the same is as likely as for random numbers.
    """
    first, second = sorted(((src, src_port), (dst, dst_port)))
    text = f"{first[0]} {first[1]} {second[0]} {second[1]}".encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> 1


class FlowNumbers:
    """The numbers of many flows, remembered."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}

    def number(self, src: str, src_port: int, dst: str, dst_port: int) -> int:
        """The same as `flow_number`."""
        key = (src, src_port, dst, dst_port)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= REMEMBERED_MAX:
                self._known.clear()
            found = self._known[key] = flow_number(*key)
        return found

    def column(self, batch: pa.RecordBatch) -> pa.Array:
        """A column of them for the rows of a batch that are TCP; null for the others."""
        places = [batch.column(name) for name in ("src", "src_port", "dst", "dst_port")]
        texts = [pc.cast(place, pa.string()) for place in places]
        keys = pc.binary_join_element_wise(*texts, " ").dictionary_encode()
        numbers = [self._of(key) for key in keys.dictionary.to_pylist()]
        found = pc.take(pa.array(numbers, pa.int64()), keys.indices)
        return pc.if_else(pc.equal(batch.column("transport"), "tcp"), found, pa.scalar(None, pa.int64()))

    def _of(self, key: str) -> int:
        src, src_port, dst, dst_port = key.split(" ")
        return self.number(src, int(src_port), dst, int(dst_port))
