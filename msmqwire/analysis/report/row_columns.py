"""Columns of rows of sessions: headers, purposes, queues; made at the first use of each."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, Final

import numpy as np

from msmqwire.analysis.dissection import Item
from msmqwire.analysis.lint import Finding
from msmqwire.analysis.report.facts import GROUPS, Group, facts_of, group_of
from msmqwire.analysis.report.grouped import Grouped, grouped_by
from msmqwire.names.header_names import AT_DESTINATION
from msmqwire.tables.compiled.generated import FIELD_SLOTS
from msmqwire.tables.compiled.packet import FINAL, KINDS, PING_KIND, SKIPPED
from msmqwire.tables.compiled.state import R_KIND, R_START, R_STREAM
from msmqwire.tables.row_headers import USER, queues_of, structure_of, structures_at
from msmqwire.tables.session_rows import SessionRows

PROPERTIES: Final = FIELD_SLOTS["UserMessage"]["MessagePropertiesHeader.Flags"][0]
"""The slot of the MessagePropertiesHeader."""
_LABEL: Final = FIELD_SLOTS["UserMessage"]["MessagePropertiesHeader.Label"]
_OF_MESSAGE: Final = structure_of(
    "MessagePropertiesHeader", {"MessageClass": "<u2", "BodyType": "<u4", "MessageSize": "<u4"}
)
_GROUP_OF: Final = np.array(
    [
        [GROUPS.index(group_of(KINDS[kind], message_class)) for message_class in (0, 1)]
        if kind != PING_KIND  # they are items
        else [-1, -1]
        for kind in range(SKIPPED + 1)
    ]
)
"""The purpose of a packet by its kind, and by whether it has a message class."""


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


class RowColumns:
    """Columns of rows.

    Args:
        rows: the rows; valid as long as they are.
        names: the names of queues so far.

    Attributes:
        block: the block that the rows are in.
        within: their numbers in it.
        rows: what the scan knows of each.
        kinds: their kinds.
    """

    def __init__(self, rows: SessionRows, names: QueueNames) -> None:
        self.block, self.within, self._of_block, self._item, self._places = rows
        self._names = names
        self.rows = self.block.rows[self.within.start : self.within.stop]
        self.kinds = self.rows[:, R_KIND]

    def __len__(self) -> int:
        return len(self.within)

    def item(self, r: int) -> Item:
        """Return the item of a row."""
        return self._item(self.within[r])

    @cached_property
    def findings(self) -> dict[int, list[Finding]]:
        """The findings of the rows that have any, in their order."""
        start = self.within.start
        return {r - start: found for r, found in self._of_block.items() if r in self.within}

    @cached_property
    def found(self) -> Any:
        """The number of findings of each row."""
        found = np.zeros(len(self), np.int64)
        for r, findings in self.findings.items():
            found[r] = len(findings)
        return found

    @cached_property
    def users(self) -> Any:
        """The rows with a UserHeader."""
        return np.flatnonzero(self.kinds <= FINAL)

    def slots(self, slot: int, rows: Any) -> Any:
        """Return the entries of a slot of some rows: where a part of their packet begins, or -1."""
        return self.block.field_offsets[rows + self.within.start, slot].astype(np.int64)

    def headers(self, kind: Any, rows: Any, slot: int | None = None) -> Any:
        """Return headers of some rows, from the start of the packet, or from a slot."""
        starts = self.rows[rows, R_START]
        if slot is not None:
            starts = starts + self.slots(slot, rows)
        return structures_at(self.block.memory, starts, kind)

    def field_bytes(self, rows: Any, field: tuple[int, ...]) -> list[bytes]:
        """Return a field of `FIELD_SLOTS` of some rows, all of which have it."""
        slot, distance, end_slot, end = field
        memory, starts = memoryview(self.block.memory), self.rows[rows, R_START]
        first = (starts + self.slots(slot, rows) + distance).tolist()
        last = (starts + self.slots(end_slot, rows) + end).tolist()
        return [
            memory[one:stop].tobytes() if one < stop else b"" for one, stop in zip(first, last, strict=True)
        ]

    @cached_property
    def user_headers(self) -> Any:
        """The UserHeaders of `users`."""
        return self.headers(USER, self.users)

    @cached_property
    def properties(self) -> Any:
        """The MessagePropertiesHeaders of `users`."""
        return self.headers(_OF_MESSAGE, self.users, PROPERTIES)

    @cached_property
    def groups(self) -> Any:
        """The number of the purpose of each row."""
        has_class = np.zeros(len(self), np.int64)
        if len(self.users):
            has_class[self.users] = self.properties["MessageClass"] != 0
        return _GROUP_OF[self.kinds, has_class]

    @cached_property
    def are_messages(self) -> Any:
        """Whether each of `users` is a message with a body."""
        return self.groups[self.users] == GROUPS.index(Group.MESSAGE)

    @cached_property
    def ways(self) -> Grouped:
        """The rows by session, direction, kind and purpose."""
        return grouped_by([self.rows[:, R_STREAM : R_KIND + 1], self.groups])

    @cached_property
    def by_queue(self) -> Grouped:
        """The rows of `users` by all that the name of the queue of a message comes from."""
        headers, memory = self.user_headers, memoryview(self.block.memory)
        kinds, starts, sizes = queues_of(headers, self.rows[self.users, R_START])
        columns = kinds, headers["QueueManagerAddress"], starts, starts + sizes
        return Grouped(
            [
                (
                    kind,
                    target if kind == AT_DESTINATION else b"",
                    memory[start:end].tobytes()
                    if end > start
                    else start,  # of a kind that this does not know
                )
                for kind, target, start, end in zip(*(column.tolist() for column in columns), strict=True)
            ]
        )

    @cached_property
    def queue_names(self) -> list[str]:
        """The name of each queue of `by_queue`."""
        first = self.users[self.by_queue.first].tolist()
        return [
            self._names.of(key, lambda r=r: self.item(r))  # type: ignore[misc]
            for key, r in zip(self.by_queue.keys, first, strict=True)
        ]

    @cached_property
    def by_label(self) -> Grouped:
        """The rows of `users` by the bytes of their label."""
        return Grouped(self.field_bytes(self.users, _LABEL))

    def places(self) -> Any:
        """Return where the rows were captured."""
        return self._places(self.within)
