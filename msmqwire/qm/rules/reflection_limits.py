"""Limits on reflection: messages to third parties that messages of peers cause."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msmqwire.names import FormatName
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.message import Message

_MINUTE: Final = 60_000
_ORIGINS_MAX: Final = 4_096
_HEADERS: Final = 256
"""Approximate bytes of the headers of a message."""


class _ReflectionAllowance:
    """Messages and bytes that are left; both are refilled evenly within a minute."""

    __slots__ = ("_bytes_max", "_messages_max", "bytes", "messages", "since")

    def __init__(self, messages: int, size: int, now: int) -> None:
        self.messages: float = float(messages)
        self.bytes: float = float(size)
        self._messages_max, self._bytes_max, self.since = messages, size, now

    def refill(self, now: int) -> bool:
        """Add the share of the time since the last call; return whether the allowance is complete again."""
        part = (now - self.since) / _MINUTE
        self.since = now
        self.messages = min(self.messages + part * self._messages_max, self._messages_max)
        self.bytes = min(self.bytes + part * self._bytes_max, self._bytes_max)
        return self.messages == self._messages_max and self.bytes == self._bytes_max

    def covers(self, size: int) -> bool:
        return self.messages >= 1 and self.bytes >= size

    def spend(self, size: int) -> None:
        self.messages -= 1
        self.bytes -= size


class ReflectionLimits:
    """Bounds acknowledgements and reports about messages of peers that go to third parties.

    The sender of a message chooses its administration queue freely, and bears no cost of the messages that go
    there.

    Args:
        leads_back: whether messages to a name go over an open session with an origin.
    """

    def __init__(self, context: Context, leads_back: Callable[[FormatName, str], bool]) -> None:
        self._context, self._leads_back = context, leads_back
        self._origins: dict[
            str, _ReflectionAllowance
        ] = {}  # of origins with less than all, first refilled first
        settings = context.settings
        self._total = _ReflectionAllowance(
            settings.third_place_messages_total, settings.third_place_bytes_total, 0
        )

    def may_send(self, name: FormatName, origin: str, message: Message) -> bool:
        """Return whether a message may go to a name because of an origin, and count it if so."""
        return not origin or self._leads_back(name, origin) or self.spend(name, origin, message)

    def spend(self, name: FormatName, origin: str, message: Message) -> bool:
        """Return whether an origin may have a message sent to a third party, and count it if so."""
        characters = len(message.label) + len(message.response.canonical if message.response else "")
        size = _HEADERS + len(message.body) + 2 * (characters + len(name.canonical))
        context, settings = self._context, self._context.settings
        own = self._origins.pop(origin, None)
        if own is None:
            self._forget_complete()
            own = _ReflectionAllowance(settings.third_place_messages, settings.third_place_bytes, context.now)
        self._origins[origin] = own
        own.refill(context.now)
        self._total.refill(context.now)
        if own.covers(size) and self._total.covers(size):
            own.spend(size)
            self._total.spend(size)
            return True
        text = f"no more acknowledgements of messages of {origin} for now; none to {name!s:.200}"
        context.trouble("third place", text)
        return False

    def _forget_complete(self) -> None:
        """Forget origins whose allowance is complete again; if need be, the oldest ones."""
        if len(self._origins) < _ORIGINS_MAX:
            return
        now = self._context.now
        self._origins = {origin: left for origin, left in self._origins.items() if not left.refill(now)}
        while len(self._origins) >= _ORIGINS_MAX:
            del self._origins[next(iter(self._origins))]
