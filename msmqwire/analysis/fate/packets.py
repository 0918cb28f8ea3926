"""The packets of a batch: plain ones by column, the others as rows.

A packet is plain if it tells nothing but that a message was sent, and what its SessionHeader has: most are
such messages, or session acknowledgements. No row is made of them. Whether a message stays plain, and is kept
by column to the end, `msmqwire.analysis.fate.messages` finds out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.analysis.fate.acknowledging import ACKNOWLEDGING
from msmqwire.analysis.fate.arrays import coded, filled, flags, integers, mask, numbers, shared
from msmqwire.analysis.fate.blocks import Block
from msmqwire.analysis.fate.model import TEXT_MAX
from msmqwire.analysis.fate.observations import Where, sequence_group
from msmqwire.analysis.fate.row_attributes import known
from msmqwire.analysis.fate.rows import Row, rows

_HEADER: Final = (
    "ack_sequence",
    "recoverable_ack_sequence",
    "recoverable_ack_flags",
    "user_sequence",
    "recoverable_sequence",
    "window_size",
)
"""The columns of `SessionHeader`, in its order."""
_KINDS: Final = ("UserMessage", "SessionAck")
_TEXTS: Final = ("label", "destination", "admin_queue")
_ACKNOWLEDGING: Final = np.array(sorted(ACKNOWLEDGING), np.int64)


class Ends(NamedTuple):
    """A connection and the direction of a packet on it; the attributes are the columns."""

    stream: int
    src: str
    src_port: int
    dst: str
    dst_port: int


class Packets:
    """The packets of a batch.

    Attributes:
        block: the plain packets.
        ends: the connections and directions of plain packets, by their number in the batch.
    """

    def __init__(self, batch: Any, position: int) -> None:
        is_plain = _is_plain(batch)
        self._plain = batch.filter(mask(is_plain))
        self._others = batch.filter(mask(~is_plain))
        self._positions = position + np.flatnonzero(~is_plain)
        self.block = Block(self._plain, position + np.flatnonzero(is_plain))
        self.ends, self._ways = _ways(self._plain)

    def others(self) -> Iterator[tuple[int, Row, int]]:
        """Yield the number of plain packets that come first, for each other packet with its position."""
        positions = self._positions
        before = np.diff(np.searchsorted(self.block.positions, positions), prepend=0)
        yield from zip(before.tolist(), rows(self._others), positions.tolist(), strict=True)

    def plain(self) -> Iterator[tuple[Any, ...]]:
        """Yield the plain packets, as their connections need them.

        Of each its number in the block, the number of its ends, the identity of its message if it has one,
        whether that is recoverable, the queue manager that sent it first unless a router has raised its hop
        count, the values of the SessionHeader if there is one, and the number in a transactional sequence.
        """
        batch, column = self._plain, self._plain.column
        headers: list[Any] = list(zip(*(column(name).to_pylist() for name in _HEADER), strict=True))
        for number in np.flatnonzero(_array(batch, "ack_sequence", pc.is_null)).tolist():
            headers[number] = None
        texts, codes = shared(column("source_qm"))
        owners = [known(text) for text in texts]
        routed = filled(column("hop_count"), 0) > 0
        codes = np.where(routed, len(texts), codes)
        owners.append("")
        in_sequence = column("tx_number").to_pylist()
        halves = _array(batch, "tx_number") & ~_array(batch, "tx_sequence_timestamp")
        for number in np.flatnonzero(halves).tolist():
            in_sequence[number] = None
        return zip(
            range(batch.num_rows),
            self._ways.tolist(),
            self.block.keys,
            column("recoverable").to_pylist(),
            [owners[code] for code in codes.tolist()],
            headers,
            in_sequence,
            strict=True,
        )

    def where(self, number: int) -> Where:
        """Return where a plain packet was seen."""
        times, frames, files = self._places
        ends = self.ends[self._ways[number]]
        position = int(self.block.positions[number])
        return Where(position, times[number], ends.stream, files[number], frames[number], ends.src, ends.dst)

    @cached_property
    def _places(self) -> tuple[list[int], list[int | None], list[str | None]]:
        column = self._plain.column
        texts, codes = shared(column("file"))
        files = [texts[code] for code in codes.tolist()]
        return column("time").cast(pa.int64()).to_pylist(), column("frame").to_pylist(), files

    def sequence(self, number: int) -> tuple[str, str]:
        """Return the group of a message in a transactional sequence, and the queue manager that it is for."""
        timestamps, ordinals, guids = self._sequences
        return sequence_group(timestamps[number], ordinals[number] or 0), guids[number]

    @cached_property
    def _sequences(self) -> tuple[list[int], list[int | None], list[str]]:
        column = self._plain.column
        texts, codes = shared(column("destination_qm"))
        guids = [known(text) for text in texts]
        timestamps, ordinals = (
            column(f"tx_sequence_{name}").to_pylist() for name in ("timestamp", "ordinal")
        )
        return timestamps, ordinals, [guids[code] for code in codes.tolist()]


def _array(batch: Any, name: str, function: Any = pc.is_valid) -> Any:
    """Return a condition on a column as an array."""
    return flags(function(batch.column(name)))


def _is_plain(batch: Any) -> Any:
    """Return which packets are plain."""
    kinds, codes = shared(batch.column("kind"))
    is_message, is_ack = (np.array([kind == name for kind in kinds])[codes] for name in _KINDS)
    acknowledges = np.isin(filled(batch.column("message_class"), 0), _ACKNOWLEDGING)
    has_header = _array(batch, _HEADER[0])
    found = is_message & ~acknowledges & _array(batch, "source_qm") & _array(batch, "message_id")
    found |= is_ack & has_header
    found &= _array(batch, "stream") & _array(batch, "time")
    for name in _HEADER[1:]:
        found &= _array(batch, name) | ~has_header
    for name in _TEXTS:
        found &= filled(pc.binary_length(batch.column(name)), 0) <= TEXT_MAX
    return found


def _ways(batch: Any) -> tuple[list[Ends], Any]:
    """Return the connections and directions of packets, and for each packet the number of its own."""
    streams, stream = coded(batch.column("stream"))
    pairs: list[list[tuple[str, int]]] = []
    whole, sizes = stream, []
    for side in ("src", "dst"):
        texts, code = shared(batch.column(side))
        ports = numbers(batch.column(f"{side}_port")).astype(np.int64)
        values, pair = coded(integers(code * (1 << 17) + ports))
        pairs.append([(texts[value >> 17], value & (1 << 17) - 1) for value in values])
        sizes.append(max(1, len(values)))
        whole = whole * sizes[-1] + pair
    values, ways = coded(integers(whole))
    ends = []
    for value in values:
        rest, to = divmod(value, sizes[1])
        number, source = divmod(rest, sizes[0])
        ends.append(Ends(streams[number], *pairs[0][source], *pairs[1][to]))
    return ends, ways
