"""Numbers of connections, the same in every task."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.capture.tunnels import network_of_text

CACHED_MAX: Final = 1 << 16
"""Connections whose number is cached; the cache is emptied when it is full."""


def flow_number(src: str, src_port: int, dst: str, dst_port: int, network: int = 0) -> int:
    """Return a positive number of 63 bits for a pair of endpoints, the same in both directions.

    Successive connections of the same pair have the same number; in two networks, see `tunnels.network_of`,
    it is another. Two pairs collide with the probability of random numbers.
    """
    first, second = sorted(((src, src_port), (dst, dst_port)))
    within = f" {network}" if network else ""
    text = f"{first[0]} {first[1]} {second[0]} {second[1]}{within}".encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> 1


class FlowNumbers:
    """The numbers of many flows, cached."""

    def __init__(self) -> None:
        self._cache: dict[Any, int] = {}

    def number(self, src: str, src_port: int, dst: str, dst_port: int, network: int = 0) -> int:
        """Return the same as `flow_number`."""
        key = (src, src_port, dst, dst_port, network)
        number = self._cache.get(key)
        if number is None:
            if len(self._cache) >= CACHED_MAX:
                self._cache.clear()
            number = self._cache[key] = flow_number(*key)
        return number

    def column(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the numbers for the TCP rows of a batch as a column; null for the other rows."""
        names = ("src", "src_port", "dst", "dst_port", "tunnel")
        texts = [pc.cast(batch.column(name), pa.string()) for name in names]
        keys = pc.binary_join_element_wise(
            *texts, " ", null_handling="replace", null_replacement=""
        ).dictionary_encode()
        numbers = [self._number_of(key) for key in keys.dictionary.to_pylist()]
        column = pc.take(pa.array(numbers, pa.int64()), keys.indices)
        return pc.if_else(pc.equal(batch.column("transport"), "tcp"), column, pa.scalar(None, pa.int64()))

    def _number_of(self, key: str) -> int:
        src, src_port, dst, dst_port, tunnel = key.split(" ", 4)
        return self.number(src, int(src_port), dst, int(dst_port), network_of_text(tunnel))
