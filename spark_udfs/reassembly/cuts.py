"""Where a connection of any length can be cut, so that it becomes many tasks with the same packets.

A cut stands in the order of the capture, before a segment that begins a packet, at a moment when nothing of
either direction is held or awaited. Then all that a tracker knows of the connection is a few numbers, and
one that begins with them does all that follows as the first would have: what comes out of order or again
later is judged against the same numbers. Finding cuts takes no payload: reassembly is run over the sizes
alone. Whether a packet really begins there, and none goes on in the other direction, only the bytes before
the cut can tell; so every cut is checked by the piece before it, and left out unless that ends in exactly
the state with which the next begins.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from msmqwire.capture import Datagram, Reassembler
from msmqwire.capture.ip import FIN, RST, SYN
from msmqwire.dissection.tracker import CONNECTIONS_MAX
from msmqwire.framing import begins_packet
from msmqwire.headers.base import PREFIX_SIZE
from msmqwire.packets import packet_length, well_formed
from spark_udfs.reassembly.flow_decoder import PieceChecker
from spark_udfs.reassembly.segment_order import Cut, Cuts, place_of

HEADS: Final = pa.schema(
    {
        "flow": pa.int64(),
        "file_index": pa.int32(),
        "offset": pa.int64(),
        "time_ns": pa.int64(),
        "src": pa.string(),
        "src_port": pa.int32(),
        "dst": pa.string(),
        "dst_port": pa.int32(),
        "missing": pa.int64(),
        "seq": pa.int64(),
        "ack": pa.int64(),
        "flags": pa.int32(),
        "size": pa.int64(),
        "begins": pa.bool_(),
    }
)
"""Segments without payload: how long it is, and whether it begins with a packet."""
CUTS: Final = pa.schema({"flow": pa.int64(), "place": pa.int64(), "saved": pa.binary()})
"""Cuts as rows; ``saved`` is pickled."""
CHECKS: Final = pa.schema({"flow": pa.int64(), "piece": pa.int32(), "good": pa.bool_()})
"""Whether a piece ends in the state with which the next begins."""


def heads(batches: Iterable[Any]) -> Iterator[Any]:
    """Batches of segments to batches of `HEADS`."""
    names = [name for name in HEADS.names if name not in ("size", "begins")]
    for batch in batches:
        payloads = batch.column("payload").to_pylist()
        columns = [batch.column(name).cast(HEADS.field(name).type) for name in names]
        columns.append(pa.array([len(payload) for payload in payloads], pa.int64()))
        columns.append(pa.array([begins(payload) for payload in payloads], pa.bool_()))
        yield pa.RecordBatch.from_arrays(columns, schema=HEADS)


def begins(payload: bytes) -> bool:
    """Whether a segment begins with a packet, as far as it shows: a whole one is well-formed."""
    if len(payload) < PREFIX_SIZE or not begins_packet(payload):
        return False
    size = packet_length(payload)
    return size > len(payload) or well_formed(payload, 0, size)


@dataclass(slots=True)
class _Search:
    """The search for cuts in one flow."""

    piece_size: int
    reassembler: Reassembler = field(default_factory=lambda: Reassembler(max_flows=CONNECTIONS_MAX))
    since: int = 0  # bytes of payload since the last cut
    pending: list[Cut] = field(default_factory=list)
    # The direction whose next bytes tell whether it stood between packets at the pending cuts.
    awaited: tuple[str, int, str, int] = ("", 0, "", 0)

    def feed(self, datagram: Datagram, begins: bool) -> list[Cut]:
        """The cuts that are certain as far as can be told without the bytes."""
        key, found = datagram[1:5], list[Cut]()
        if self.pending and self._tells(datagram):
            if begins:
                found = self.pending
            else:
                self.since = self.piece_size
            self.pending = []
        if self.since >= self.piece_size and begins and not datagram.flags & (SYN | FIN | RST):
            saved = self.reassembler.save()
            if saved is not None and saved.next_of(key) == datagram.seq:
                self.pending.append(Cut(datagram.frames[0], saved))
                self.awaited, self.since = (key[2], key[3], key[0], key[1]), 0
        self.reassembler.feed(datagram)
        self.since += len(datagram.payload)
        return found

    def _tells(self, datagram: Datagram) -> bool:
        """Whether a segment has the next bytes of the direction that is awaited."""
        key = datagram[1:5]
        expected = self.pending[-1].saved.next_of(key)
        return bool(datagram.payload) and key == self.awaited and datagram.seq == expected


def find_cuts(batches: Iterable[Any], piece_size: int) -> Iterator[tuple[int, Cut]]:
    """Cuts about every so many bytes of payload, each with its flow number.

    Takes batches of `HEADS`, the segments of a flow behind each other in the order of the capture.
    """
    search, current = _Search(piece_size), 0
    names = [name for name in HEADS.names if name not in ("size", "begins")]
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in [*names, "size", "begins"]]
        for (
            flow, index, offset, time_ns, src, src_port, dst, dst_port, missing, seq, ack, flags, size, begins
        ) in zip(*columns, strict=True):  # fmt: skip
            if flow != current:
                yield from ((current, cut) for cut in search.pending)
                search, current = _Search(piece_size), flow
            frames = (place_of(index, offset),)
            datagram = Datagram(
                "tcp", src, src_port, dst, dst_port, time_ns or 0, frames, "",
                bytes(size), missing, seq, ack, flags,
            )  # fmt: skip
            for cut in search.feed(datagram, begins):
                yield flow, cut
    yield from ((current, cut) for cut in search.pending)


def check_pieces(
    batches: Iterable[Any], cuts: Cuts, *, ports: Collection[int] = ()
) -> Iterator[tuple[int, int, bool]]:
    """Flow, number of the piece, and whether it ends in the state with which the next begins, for every piece
    but the last of a flow.

    Takes batches of segments as `spark_udfs.reassembly.packets.items` does.
    """
    checker = PieceChecker(ports=ports, cuts=cuts)
    for _ in checker.batches(batches):
        raise AssertionError("rows of a checker")
    yield from checker.checked


def without_bad(cuts: Cuts, bad: Mapping[int, Collection[int]]) -> dict[int, list[Cut]]:
    """The cuts that are left when the pieces with these numbers, by flow, are joined with the next."""
    left: dict[int, list[Cut]] = defaultdict(list)
    for flow, places in cuts.items():
        left[flow] = [cut for number, cut in enumerate(places) if number not in bad.get(flow, ())]
    return {flow: places for flow, places in left.items() if places}
