"""Rows of sessions grouped for counts: those alike are counted together, in the order of the first of each.

For what is counted, a group says as much as its rows one by one. Packets are parsed only for names of queues
that are new, and for handshakes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Any
from uuid import UUID

import numpy as np

from msmqwire.analysis.dissection import Item
from msmqwire.analysis.report.alike import Alike
from msmqwire.analysis.report.facts import GROUPS, Group, Protocol
from msmqwire.analysis.report.grouped import Grouped
from msmqwire.analysis.report.row_columns import RowColumns
from msmqwire.analysis.report.tallies import Queue
from msmqwire.capture.record import NO_TIME
from msmqwire.tables.compiled.packet import BAD, ESTABLISH, KINDS, SKIPPED
from msmqwire.tables.compiled.state import (
    R_DST_HIGH,
    R_IPV6,
    R_KIND,
    R_PORTS,
    R_SIZE,
    R_SRC_HIGH,
    R_STREAM,
    R_TIME,
)
from msmqwire.tables.scanning.flow_keys import address_of


class RowGroups(RowColumns):
    """Groups of rows."""

    @cached_property
    def _pairs(self) -> Grouped:
        """The rows with a UserHeader by the queue managers in it."""
        return Grouped(self.user_headers["SourceQueueManager"].tolist())

    def again(self, sent_before: Callable[[Iterable[Hashable]], list[bool]]) -> Any:
        """Return for each row whether it is a message that was sent before.

        Args:
            sent_before: says it of messages by their identity, with sender and receiver.
        """
        again = np.zeros(len(self), np.bool_)
        if len(self.users):
            rows, identities = self._identities()
            again[rows] = sent_before(identities)
        return again

    def _identities(self) -> tuple[Any, Iterable[Hashable]]:
        """Return the rows of messages that can be distinguished, and their identities, each with its way."""
        numbers = self.user_headers["MessageID"]
        chosen = np.flatnonzero(self.are_messages & (numbers != 0))
        rows = self.users[chosen]
        sources = [guid_text(pair[:16]) for pair in self._pairs.keys]
        ways = [_addresses(row) for row in self.rows[self.ways.first].tolist()]
        return rows, [
            ((sources[pair], number), *ways[way])
            for pair, number, way in zip(
                self._pairs.numbers[chosen].tolist(), numbers[chosen].tolist(),
                self.ways.numbers[rows].tolist(), strict=True,
            )
        ]  # fmt: skip

    def alike(self, again: Any) -> Iterator[Alike]:
        """Yield the counts of rows alike; `again` says of each row whether it was sent before."""
        ways, rows = self.ways, self.rows
        first = ways.first
        columns = (
            rows[first].tolist(), self.groups[first].tolist(), ways.counts.tolist(),
            ways.sum(rows[:, R_SIZE]), ways.sum(self.found), ways.sum(again.astype(np.int64)),
            ways.spans(rows[:, R_TIME]),
        )  # fmt: skip
        for row, group, packets, size, found, sent, (start_ns, end_ns) in zip(*columns, strict=True):
            kind, ports = row[R_KIND], row[R_PORTS]
            protocol = Protocol.UNREAD if kind in (BAD, SKIPPED) else Protocol.MSMQ
            src, dst = _addresses(row)
            yield Alike(
                KINDS[kind], GROUPS[group], protocol, "tcp", row[R_STREAM], src, ports >> 16, dst,
                ports & 0xFFFF, packets, size, found, sent, start_ns, end_ns,
            )  # fmt: skip

    def queues(self) -> Iterator[tuple[str, Queue]]:
        """Yield the names of queues, and the counts of each."""
        users = self.users
        if not len(users):
            return
        by_queue = self.by_queue
        columns = (
            self.queue_names, by_queue.counts.tolist(),
            by_queue.sum(self.properties["MessageSize"].astype(np.int64)), by_queue.sum(self.found[users]),
            by_queue.spans(self.rows[users, R_TIME]),
        )  # fmt: skip
        for name, packets, size, found, (start_ns, end_ns) in zip(*columns, strict=True):
            if name:
                yield name, Queue(start_ns, end_ns, packets, packets, size, found)

    def managers(self) -> Iterator[Item | tuple[str, str, int]]:
        """Yield handshakes; and of messages the queue managers from and to which they go, with a count."""
        handshakes = np.flatnonzero(self.kinds == ESTABLISH).tolist()
        named: list[tuple[int, tuple[bytes, int] | None]] = [(r, None) for r in handshakes]
        if len(self.users):
            pairs = self._pairs
            columns = self.users[pairs.first].tolist(), pairs.keys, pairs.counts.tolist()
            named += [(r, (pair, count)) for r, pair, count in zip(*columns, strict=True)]
        for r, pair in sorted(named):
            if pair is None:
                yield self.item(r)
            else:
                yield guid_text(pair[0][:16]), guid_text(pair[0][16:]), pair[1]

    @cached_property
    def _timed(self) -> Any:
        """The rows that have a time."""
        return np.flatnonzero(self.rows[:, R_TIME] != NO_TIME)

    @property
    def span(self) -> tuple[int, int] | None:
        """The earliest and the latest time; None if no row has one."""
        times = self.rows[self._timed, R_TIME]
        return (int(times.min()), int(times.max())) if len(times) else None

    def intervals(self, width_ns: int) -> Iterator[tuple[int, Group, int, int, int]]:
        """Yield for each interval and purpose a time in it, the purpose, bytes, findings and packets."""
        rows = self.rows[self._timed]
        groups = self.groups[self._timed]
        within = Grouped((rows[:, R_TIME] // width_ns * len(GROUPS) + groups).tolist())
        columns = (
            rows[within.first, R_TIME].tolist(), groups[within.first].tolist(), within.sum(rows[:, R_SIZE]),
            within.sum(self.found[self._timed]), within.counts.tolist(),
        )  # fmt: skip
        for time_ns, group, size, found, packets in zip(*columns, strict=True):
            yield time_ns, GROUPS[group], size, found, packets


@lru_cache(1 << 14)
def guid_text(guid: bytes) -> str:
    """Return a GUID as text."""
    return str(UUID(bytes_le=guid))


def _addresses(row: list[int]) -> tuple[str, str]:
    """Return the sender and the receiver of a row."""
    is_ipv6 = row[R_IPV6]
    return (
        address_of(row[R_SRC_HIGH], row[R_SRC_HIGH + 1], is_ipv6),
        address_of(row[R_DST_HIGH], row[R_DST_HIGH + 1], is_ipv6),
    )
