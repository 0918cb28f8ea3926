"""Rows of sessions grouped for counts: those alike are counted together, in the order of the first of each.

For what is counted, a group says as much as its rows one by one. Packets are parsed only for names of queues
that are new, and for handshakes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any, Final
from uuid import UUID

import numpy as np

from msmqwire.analysis.dissection import Item
from msmqwire.analysis.lint import Finding
from msmqwire.analysis.report.alike import Alike
from msmqwire.analysis.report.facts import GROUPS, Group, Protocol, facts_of, group_of
from msmqwire.analysis.report.tallies import Queue
from msmqwire.capture.record import NO_TIME
from msmqwire.names.header_names import AT_DESTINATION
from msmqwire.tables.compiled.generated import FIELD_SLOTS
from msmqwire.tables.compiled.packet import BAD, ESTABLISH, FINAL, KINDS, PING_KIND, SKIPPED
from msmqwire.tables.compiled.state import (
    R_DST_HIGH,
    R_IPV6,
    R_KIND,
    R_PORTS,
    R_SIZE,
    R_SRC_HIGH,
    R_START,
    R_STREAM,
    R_TIME,
)
from msmqwire.tables.row_headers import USER, queues_of, structure_of, structures_at
from msmqwire.tables.scanning.flow_keys import address_of
from msmqwire.tables.session_rows import SessionRows

_MESSAGE: Final = FIELD_SLOTS["UserMessage"]
_PROPERTIES: Final = _MESSAGE["MessagePropertiesHeader.Flags"][0]
_LAST: Final = np.iinfo(np.int64).max
_GROUP_OF: Final = np.array(
    [
        [GROUPS.index(group_of(KINDS[kind], message_class)) for message_class in (0, 1)]
        if kind != PING_KIND  # they are items
        else [-1, -1]
        for kind in range(SKIPPED + 1)
    ]
)
"""The purpose of a packet by its kind, and by whether it has a message class."""


_OF_MESSAGE: Final = structure_of("MessagePropertiesHeader", {"MessageClass": "<u2", "MessageSize": "<u4"})


class QueueNames:
    """Names of queues by the bytes that they are of, in bounded memory."""

    KEPT: Final = 1 << 13
    SIZE_MAX: Final = 1 << 9
    """Bytes of a name, of longer ones nothing is kept."""

    def __init__(self) -> None:
        self._names: dict[Hashable, str] = {}

    def of(self, key: tuple[int, bytes, bytes | int], item: Callable[[], Item]) -> str:
        """Return the name of the queue that the bytes stand for; `item` returns a message to it."""
        name = self._names.get(key)
        if name is None:
            name = facts_of(item()).queue
            if isinstance(key[2], bytes) and len(key[2]) <= self.SIZE_MAX:
                if len(self._names) == self.KEPT:
                    self._names.clear()
                self._names[key] = name
        return name


class RowGroups:
    """Groups of rows.

    Args:
        rows: the rows; valid as long as they are.
        names: the names of queues so far.
    """

    def __init__(self, rows: SessionRows, names: QueueNames) -> None:
        self._block, self._within, self._of_block, self._item = rows
        self._names = names
        self._rows = self._block.rows[self._within.start : self._within.stop]
        self._kinds = self._rows[:, R_KIND]

    def __len__(self) -> int:
        return len(self._within)

    def item(self, r: int) -> Item:
        """Return the item of a row."""
        return self._item(self._within[r])

    @cached_property
    def findings(self) -> dict[int, list[Finding]]:
        """The findings of the rows that have any, in their order."""
        start = self._within.start
        return {r - start: found for r, found in self._of_block.items() if r in self._within}

    # -- the columns of all rows ------------------------------------------------------------------------

    @cached_property
    def _found(self) -> Any:
        found = np.zeros(len(self), np.int64)
        for r, findings in self.findings.items():
            found[r] = len(findings)
        return found

    @cached_property
    def _users(self) -> Any:
        """The rows with a UserHeader."""
        return np.flatnonzero(self._kinds <= FINAL)

    def _headers(self, kind: Any, slot: int | None = None) -> Any:
        """Return headers of the rows with a UserHeader, from the start of the packet, or from a slot."""
        starts = self._rows[self._users, R_START]
        if slot is not None:
            starts = starts + self._block.field_offsets[self._users + self._within.start, slot]
        return structures_at(self._block.memory, starts, kind)

    @cached_property
    def _user_headers(self) -> Any:
        return self._headers(USER)

    @cached_property
    def _properties(self) -> Any:
        return self._headers(_OF_MESSAGE, _PROPERTIES)

    @cached_property
    def _groups(self) -> Any:
        """The number of the purpose of each row."""
        has_class = np.zeros(len(self), np.int64)
        if len(self._users):
            has_class[self._users] = self._properties["MessageClass"] != 0
        return _GROUP_OF[self._kinds, has_class]

    @cached_property
    def _ways(self) -> Grouped:
        """The rows by session, direction, kind and purpose."""
        keys = np.column_stack([self._rows[:, R_STREAM : R_KIND + 1], self._groups])
        return Grouped(keys.view(f"V{keys.itemsize * keys.shape[1]}")[:, 0].tolist())

    @cached_property
    def _pairs(self) -> Grouped:
        """The rows with a UserHeader by the queue managers in it."""
        return Grouped(self._user_headers["SourceQueueManager"].tolist())

    # -- for the counts ---------------------------------------------------------------------------------

    def messages(self) -> set[int]:
        """Return the rows of messages with a body."""
        of_users = self._groups[self._users] == GROUPS.index(Group.MESSAGE)
        return set(self._users[of_users].tolist())

    def identities(self) -> tuple[list[int], Iterable[Hashable]]:
        """Return the rows of messages that can be distinguished, and their identities, each with its way."""
        if not len(self._users):
            return [], ()
        numbers = self._user_headers["MessageID"]
        chosen = np.flatnonzero((self._groups[self._users] == GROUPS.index(Group.MESSAGE)) & (numbers != 0))
        rows = self._users[chosen]
        sources = [guid_text(pair[:16]) for pair in self._pairs.keys]
        ways = [_addresses(row) for row in self._rows[self._ways.first].tolist()]
        return rows.tolist(), [
            ((sources[pair], number), *ways[way])
            for pair, number, way in zip(
                self._pairs.numbers[chosen].tolist(), numbers[chosen].tolist(),
                self._ways.numbers[rows].tolist(), strict=True,
            )
        ]  # fmt: skip

    def alike(self, again: set[int]) -> Iterator[Alike]:
        """Yield the counts of rows alike, of which some are `again` there."""
        ways, rows = self._ways, self._rows
        were_sent = np.zeros(len(self), np.int64)
        were_sent[list(again)] = 1
        first = ways.first
        columns = (
            rows[first].tolist(), self._groups[first].tolist(), ways.counts.tolist(),
            ways.sum(rows[:, R_SIZE]), ways.sum(self._found), ways.sum(were_sent),
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
        users = self._users
        if not len(users):
            return
        by_queue = Grouped(self._queue_keys())
        columns = (
            by_queue.keys, by_queue.first.tolist(), by_queue.counts.tolist(),
            by_queue.sum(self._properties["MessageSize"].astype(np.int64)), by_queue.sum(self._found[users]),
            by_queue.spans(self._rows[users, R_TIME]),
        )  # fmt: skip
        for key, at, packets, size, found, (start_ns, end_ns) in zip(*columns, strict=True):
            name = self._names.of(key, lambda at=at: self.item(int(users[at])))  # type: ignore[misc]
            if name:
                yield name, Queue(start_ns, end_ns, packets, packets, size, found)

    def _queue_keys(self) -> list[tuple[int, bytes, bytes | int]]:
        """Return all that the name of the queue of a message comes from."""
        headers, memory = self._user_headers, memoryview(self._block.memory)
        kinds, starts, sizes = queues_of(headers, self._rows[self._users, R_START])
        columns = kinds, headers["QueueManagerAddress"], starts, starts + sizes
        return [
            (
                kind,
                target if kind == AT_DESTINATION else b"",
                memory[start:end].tobytes() if end > start else start,  # of a kind that this does not know
            )
            for kind, target, start, end in zip(*(column.tolist() for column in columns), strict=True)
        ]

    def managers(self) -> Iterator[Item | tuple[str, str, int]]:
        """Yield handshakes; and of messages the queue managers from and to which they go, with a count."""
        handshakes = np.flatnonzero(self._kinds == ESTABLISH).tolist()
        named: list[tuple[int, tuple[bytes, int] | None]] = [(r, None) for r in handshakes]
        if len(self._users):
            pairs = self._pairs
            columns = self._users[pairs.first].tolist(), pairs.keys, pairs.counts.tolist()
            named += [(r, (pair, count)) for r, pair, count in zip(*columns, strict=True)]
        for r, pair in sorted(named):
            if pair is None:
                yield self.item(r)
            else:
                yield guid_text(pair[0][:16]), guid_text(pair[0][16:]), pair[1]

    @cached_property
    def _timed(self) -> Any:
        """The rows that have a time."""
        return np.flatnonzero(self._rows[:, R_TIME] != NO_TIME)

    @property
    def span(self) -> tuple[int, int] | None:
        """The earliest and the latest time; None if no row has one."""
        times = self._rows[self._timed, R_TIME]
        return (int(times.min()), int(times.max())) if len(times) else None

    def intervals(self, width_ns: int) -> Iterator[tuple[int, Group, int, int, int]]:
        """Yield for each interval and purpose a time in it, the purpose, bytes, findings and packets."""
        rows = self._rows[self._timed]
        groups = self._groups[self._timed]
        within = Grouped((rows[:, R_TIME] // width_ns * len(GROUPS) + groups).tolist())
        columns = (
            rows[within.first, R_TIME].tolist(), groups[within.first].tolist(), within.sum(rows[:, R_SIZE]),
            within.sum(self._found[self._timed]), within.counts.tolist(),
        )  # fmt: skip
        for time_ns, group, size, found, packets in zip(*columns, strict=True):
            yield time_ns, GROUPS[group], size, found, packets


class Grouped:
    """Groups of rows with the same key, in the order of the first row of each.

    Attributes:
        keys: the keys.
        numbers: the number of the group of each row.
        first: the first row of each group.
        counts: the number of rows of each.
    """

    def __init__(self, keys: Sequence[Hashable]) -> None:
        self.keys: list[Any] = list(dict.fromkeys(keys))
        number_of = {key: number for number, key in enumerate(self.keys)}
        self.numbers = np.fromiter(map(number_of.__getitem__, keys), np.int64, len(keys))
        self._order = np.argsort(self.numbers, kind="stable")
        self.counts = np.bincount(self.numbers, minlength=len(self.keys))
        self._starts = np.cumsum(self.counts) - self.counts
        self.first = self._order[self._starts]

    def sum(self, values: Any) -> list[int]:
        """Return the sum of each group."""
        sums: list[int] = np.add.reduceat(values[self._order], self._starts).tolist()
        return sums

    def spans(self, times_ns: Any) -> list[tuple[int | None, int | None]]:
        """Return the earliest and the latest time of each group; None if it has no time."""
        times = times_ns[self._order]
        latest = np.maximum.reduceat(times, self._starts).tolist()  # NO_TIME is before all times
        times[times == NO_TIME] = _LAST
        earliest = np.minimum.reduceat(times, self._starts).tolist()
        return [
            (None, None) if end == NO_TIME else (start, end)
            for start, end in zip(earliest, latest, strict=True)
        ]


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
