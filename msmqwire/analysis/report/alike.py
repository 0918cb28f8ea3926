"""Packets that are counted together: of one kind, of one purpose, the same way."""

from __future__ import annotations

from dataclasses import dataclass

from msmqwire.analysis.dissection.item import Item
from msmqwire.analysis.report.facts import Facts, Group
from msmqwire.capture.ip import Transport


@dataclass(slots=True)
class Alike:
    """Packets alike; a packet that is counted alone is one of them.

    Attributes:
        kind, transport, stream, src, src_port, dst, dst_port: those of each item.
        group, protocol: those of the facts about each.
        packets: their number.
        bytes, findings: of all of them together.
        again: how many were sent again.
        start_ns, end_ns: the earliest and the latest time; None if no packet has one.
    """

    kind: str
    group: Group
    protocol: str
    transport: Transport
    stream: int | None
    src: str
    src_port: int
    dst: str
    dst_port: int
    packets: int
    bytes: int
    findings: int
    again: int
    start_ns: int | None
    end_ns: int | None


def alone(item: Item, facts: Facts, *, is_again: bool) -> Alike:
    """Return an item as the only one of its like."""
    return Alike(
        item.kind, facts.group, facts.protocol, item.transport, item.stream, item.src, item.src_port,
        item.dst, item.dst_port, 1, item.size, len(item.findings), is_again, item.time_ns, item.time_ns,
    )  # fmt: skip
