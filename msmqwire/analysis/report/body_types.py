"""Types of the bodies of each queue, and those that are unusual for it: counted, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from msmqwire.analysis.dissection.contents import MessageBody, message_body
from msmqwire.analysis.dissection.item import Item
from msmqwire.analysis.report.limits import Limits
from msmqwire.bodies import Body, inspect_body, plain
from msmqwire.constants import variant_name
from msmqwire.names.printable import cut, safe

LOOKED_AT: Final = 64 << 10
"""Bytes of a body that are looked at: its type stands at its beginning."""
FEW_MESSAGES: Final = 20
"""The least number of messages of a queue with which a type can be unusual."""
RARE: Final = 0.05
"""The share of messages of a queue up to which a type is unusual: that of all unusual types together."""
TYPES_MAX: Final = 50
"""Types of one queue that are counted apart."""
NO_ROW: Final = -1


@dataclass(slots=True)
class BodyType:
    """Bodies of one type in a queue: their number, and the row of the first in the table of packets."""

    count: int = 0
    row: int = NO_ROW


@dataclass(slots=True)
class _OfQueue:
    messages: int = 0
    types: dict[str, BodyType] = field(default_factory=dict)
    others: int = 0


class BodyTypes:
    """Counts the types of bodies by queue.

    Attributes:
        left_out: messages of queues, and of types, for which there was no room.
    """

    def __init__(self, limits: Limits) -> None:
        self.left_out = 0
        self._limits = limits
        self._queues: dict[str, _OfQueue] = {}

    def add(self, item: Item, queue: str, row: int) -> None:
        """Count the body of a message to a queue, which is in a row of the table of packets, -1 for none."""
        message = message_body(item.packet, item.examiner)
        if message is not None and queue:
            self.add_alike(message, queue, row)

    def add_alike(self, message: MessageBody, queue: str, row: int, count: int = 1) -> None:
        """Count bodies alike of messages to a queue, the first of which is in a row of the table of packets.

        Only the first `LOOKED_AT` bytes of each are looked at.
        """
        of_queue = self._queues.get(queue)
        if of_queue is None:
            if len(self._queues) == self._limits.queues:
                self.left_out += count
                return
            of_queue = self._queues[queue] = _OfQueue()
        found = inspect_body(
            message.body[:LOOKED_AT], body_type=message.body_type, extension=message.extension
        )
        name = cut(safe(type_of(found, message.body_type)), self._limits.text)
        of_queue.messages += count
        one = of_queue.types.get(name)
        if one is None:
            if len(of_queue.types) == TYPES_MAX:
                of_queue.others += count
                self.left_out += count
                return
            one = of_queue.types[name] = BodyType()
        one.count += count
        if one.row == NO_ROW:
            one.row = row

    def to_json(self) -> list[list[Any]]:
        """Return ``[queue, type, messages, row of the first, is unusual]``, the busiest first."""
        rows = []
        for queue, of_queue in sorted(self._queues.items(), key=lambda one: (-one[1].messages, one[0])):
            odd = _odd(of_queue)
            for name, one in sorted(of_queue.types.items(), key=lambda one: (-one[1].count, one[0])):
                rows.append([queue, name, one.count, one.row, name in odd])
        return rows


def type_of(found: Body, body_type: int) -> str:
    """Return the type of a body, in a word or two: its format, and the type that it or its headers name."""
    types = found.named.message_types
    value = found.value
    kind: Any = types[0] if types else value.get(plain.TYPE) if isinstance(value, dict) else None
    if kind is None and found.format == "activex":
        kind = variant_name(body_type)
    name = kind.partition(",")[0] if isinstance(kind, str) else ""
    return " ".join(filter(None, (found.format, name)))


def _odd(of_queue: _OfQueue) -> set[str]:
    """Return the types that are unlike most bodies of a queue; none if it carries all kinds of them."""
    rare = {name for name, one in of_queue.types.items() if one.count <= RARE * of_queue.messages}
    together = of_queue.others + sum(of_queue.types[name].count for name in rare)
    is_mostly_alike = of_queue.messages >= FEW_MESSAGES and together <= RARE * of_queue.messages
    return rare if is_mostly_alike else set()
