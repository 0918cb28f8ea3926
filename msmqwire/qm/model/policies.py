"""Policies: properties of queues by their names, and what was set on a queue itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from msmqwire.qm.model.elements import OutgoingQueue, Queue
from msmqwire.qm.model.enumerations import INFINITE, QueuePrivacy, QueueType
from msmqwire.qm.model.message import NULL_GUID

REFUSE: Final = "refuse"
OLDEST: Final = "oldest-to-dead-letters"
WHEN_FULL: Final = (REFUSE, OLDEST)
"""What a full queue does with one more message: it is refused, or the oldest ones are moved away."""
SUBQUEUE: Final = "subqueue"
DEAD_LETTERS: Final = "dead-letters"
POISON: Final = (SUBQUEUE, DEAD_LETTERS)
"""Where a message goes at the limit of its deliveries: to the subqueue ``poison``, or to the dead letters."""
DELIVERY_LIMIT_MAX: Final = 0xFFFF
TIME_TO_LIVE_MAX: Final = INFINITE - 1


class Settable(NamedTuple):
    """A property of a queue that can be set.

    Attributes:
        attribute: the attribute of the queue.
        default: its value if nothing was set.
        nothing: the value that is null in JSON; None if that is the value itself.
    """

    attribute: str
    default: Any
    nothing: Any = None

    def of(self, queue: Queue) -> Any:
        """Return the value of a queue, as in JSON."""
        value = getattr(queue, self.attribute)
        if value == self.nothing:
            return None
        if isinstance(value, QueuePrivacy):
            return value.value.lower()
        return value if value is None or isinstance(value, (str, int)) else str(value)

    def set(self, queue: Queue, value: Any) -> None:
        """Set the value of a queue, given as in JSON."""
        setattr(queue, self.attribute, self.nothing if value is None else value)


GOVERNED: Final[Mapping[str, Settable]] = {
    "delivery_limit": Settable("delivery_limit", 0, 0),
    "journal": Settable("journaling", False),
    "poison": Settable("poison", SUBQUEUE),
    "quota": Settable("quota", INFINITE, INFINITE),
    "time_to_live": Settable("time_to_live", INFINITE, INFINITE),
    "when_full": Settable("when_full", REFUSE),
}
"""The properties that policies have, by name."""
SETTABLE: Final[Mapping[str, Settable]] = {
    **GOVERNED,
    "authenticated": Settable("authentication", False),
    "base_priority": Settable("base_priority", 0),
    "journal_quota": Settable("journal_quota", INFINITE, INFINITE),
    "label": Settable("label", ""),
    "multicast": Settable("multicast_address", None),
    "privacy": Settable("privacy_level", QueuePrivacy.OPTIONAL),
    "type": Settable("type", NULL_GUID),
}
"""The properties that can be set on a queue itself, by name: rights are not among them."""


def is_governed(queue: Queue) -> bool:
    """Whether policies apply to a queue: those of applications and their subqueues."""
    return queue.queue_type is not QueueType.SYSTEM and not isinstance(queue, OutgoingQueue)


class Pattern:
    """A glob over names: ``*`` is any text, everything else is itself; case is ignored."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._first, *rest = text.lower().split("*")
        self._last = rest.pop() if rest else None
        self._between = [part for part in rest if part]

    def matches(self, name: str) -> bool:
        """Return whether a name in lower case fits, in time linear in the pattern and the name."""
        if self._last is None:
            return name == self._first
        at, end = len(self._first), len(name) - len(self._last)
        if end < at or not (name.startswith(self._first) and name.endswith(self._last)):
            return False
        for part in self._between:
            found = name.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return True


@dataclass(frozen=True, slots=True)
class Policy:
    """Properties for all queues whose names fit a pattern.

    Attributes:
        name: identifies it.
        pattern: its pattern, as it was given.
        order: of two policies with a property the higher one counts.
        properties: values by the names of `GOVERNED`, as in JSON.
        glob: the pattern, ready for comparisons.
        attributes: the values by the attributes of queues.
    """

    name: str
    pattern: str
    order: int
    properties: Mapping[str, Any]
    glob: Pattern = field(init=False, compare=False, repr=False)
    attributes: dict[str, Any] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "glob", Pattern(self.pattern))
        values = {GOVERNED[name]: value for name, value in self.properties.items()}
        attributes = {one.attribute: one.nothing if value is None else value for one, value in values.items()}
        object.__setattr__(self, "attributes", attributes)

    def to_json(self) -> dict[str, Any]:
        """Return the policy as one JSON object."""
        return {"name": self.name, "pattern": self.pattern, "order": self.order, **self.properties}
