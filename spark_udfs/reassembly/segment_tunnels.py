"""The tunnels in which segments were, by their columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.capture.tunnels import PLAIN, Encapsulation, network_of_text
from msmqwire.tables.columns import TUNNEL


class SegmentTunnels(NamedTuple):
    """The tunnels of the segments of a batch.

    Attributes:
        distinct: each tunnel once.
        networks: the network in each, see `tunnels.network_of`.
        codes: for each row their index; None if no segment was in any.
    """

    distinct: list[Encapsulation]
    networks: list[int]
    codes: Any

    @classmethod
    def of(cls, batch: Any) -> SegmentTunnels:
        """Return the tunnels of a batch with the columns `TUNNEL`; without them there are none."""
        if TUNNEL[0] not in batch.schema.names or batch.column(TUNNEL[0]).null_count == batch.num_rows:
            return cls([], [], None)
        texts = [pc.fill_null(batch.column(name).cast(pa.string()), "") for name in TUNNEL]
        coded = pc.binary_join_element_wise(*texts, "\t").dictionary_encode()
        distinct = [_tunnel(*text.split("\t")) for text in coded.dictionary.to_pylist()]
        networks = [network_of_text(tunnel.text) for tunnel in distinct]
        return cls(distinct, networks, coded.indices.to_numpy())

    def at(self, row: int) -> tuple[Encapsulation, int]:
        """Return the tunnels of a row, and the network in them."""
        if self.codes is None:
            return PLAIN, 0
        code = self.codes[row]
        return self.distinct[code], self.networks[code]


def _tunnel(text: str, src: str, dst: str, number: str) -> Encapsulation:
    if not text:
        return PLAIN
    return Encapsulation(text, src or None, dst or None, int(number) if number else None)
