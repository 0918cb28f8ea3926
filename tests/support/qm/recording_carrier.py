"""A carrier that carries nothing out and records it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msmqwire.qm.model.effects import Connect, Disconnect, Resolve, Send, SendDatagram
from msmqwire.service.carrier import Performers


def named(effect: Any) -> str:
    """Return a short text of an effect of TCP."""
    match effect:
        case Resolve(host=host):
            return f"resolve {host}"
        case Connect(address=address):
            return f"connect {address}"
        case Send(connection=number):
            return f"send {number}"
        case Disconnect(connection=number):
            return f"disconnect {number}"
    return "datagram"


class RecordingCarrier:
    """The carrier of TCP that records effects and the end of each turn.

    Attributes:
        events: the events in order: "flush", and for each effect the result of `record`.
        fails_at: called instead of recording: at a kind of effect, or at "flush".
    """

    def __init__(self, events: list[Any], record: Callable[[Any], Any] = named) -> None:
        self.events, self._record = events, record
        self.fails_at: dict[type | str, Callable[[], None]] = {}

    @property
    def performers(self) -> Performers:
        return dict.fromkeys((Resolve, Connect, Send, Disconnect, SendDatagram), self._perform)

    def _perform(self, effect: Any) -> None:
        if type(effect) in self.fails_at:
            self.fails_at[type(effect)]()
        self.events.append(self._record(effect))

    def flush(self) -> None:
        if "flush" in self.fails_at:
            self.fails_at["flush"]()
        self.events.append("flush")

    def stop_listening(self) -> None:
        """Nothing listens."""

    async def finish(self) -> None:
        """Nothing is under way."""

    def abort(self) -> None:
        """Nothing is connected."""

    async def close(self) -> None:
        """Nothing is connected."""
