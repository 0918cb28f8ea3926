"""Captures with a missing part: one direction, the beginning, the end."""

from __future__ import annotations

import io
from collections.abc import Iterable

from msmqwire.analysis.dissection import dissect
from msmqwire.capture import IpDecoder, Record, open_records
from msmqwire.capture.writing import PcapngWriter
from msmqwire.qm.sim.plan import make_plan
from msmqwire.qm.sim.world import World


def records_of(capture: bytes) -> list[Record]:
    return list(open_records(io.BytesIO(capture)))


def written(records: Iterable[Record]) -> bytes:
    file = io.BytesIO()
    writer = PcapngWriter(file)
    for record in records:
        writer.write(record)
    return file.getvalue()


def one_direction(capture: bytes, *, of_first: bool) -> bytes:
    """The bytes sent by the peers that speak first in their conversations, or by the other peers."""
    decoder, first = IpDecoder(), set[tuple[str, int, str, int]]()
    kept = []
    for record in records_of(capture):
        datagram = decoder.decode(record)
        if datagram is not None:
            there = datagram.src, datagram.src_port, datagram.dst, datagram.dst_port
            back = *there[2:], *there[:2]
            if back not in first:
                first.add(there)
            if (there in first) is not of_first:
                continue
        kept.append(record)
    return written(kept)


def simulated(seed: int) -> bytes:
    """The bytes sent in a run of the simulator."""
    file = io.BytesIO()
    assert World(make_plan(seed), capture=file).run().violation is None
    return file.getvalue()


def findings_of(capture: bytes) -> set[tuple[str, str]]:
    """The findings of all items of a capture, by id and field."""
    return {(f.id, f.path) for item in dissect(io.BytesIO(capture)) for f in item.findings}
