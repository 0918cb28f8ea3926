"""The carriers of a driver, and the effects of durable changes that they carry out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msmqwire.errors import EngineFailed
from msmqwire.service.batch import Batch
from msmqwire.service.carrier import Carrier
from msmqwire.service.event_loop import EventLoop
from msmqwire.service.unsettled import Unsettled


class Carrying(Unsettled):
    """The part of a driver that carries out effects, once their changes are durable.

    Attributes:
        carriers: the registered carriers.
    """

    def __init__(self, loop: EventLoop) -> None:
        super().__init__(loop)
        self.carriers: list[Carrier] = []
        self._performers: dict[type, Callable[[Any], None]] = {}
        self._flushing: list[Callable[[], None]] = []

    def register(self, carrier: Carrier) -> None:
        """Let a carrier carry out its kinds of effects; effects without a carrier are ignored."""
        for kind, perform in carrier.performers.items():
            self.perform_by(kind, perform)
        self.carriers.append(carrier)

    def perform_by(self, kind: type, perform: Callable[[Any], None]) -> None:
        """Let a function carry out a kind of effect."""
        if kind in self._performers:
            raise ValueError(f"two carriers carry out {kind.__name__}")
        self._performers[kind] = perform

    def flush_by(self, flush: Callable[[], None]) -> None:
        """Register a function that sends the output queued by the effects of a turn; it is called once after
        them.
        """
        self._flushing.append(flush)

    def _carry_out(self, batch: Batch) -> None:
        """Carry out the effects of a durable batch, call its actions, and send the output."""
        performers = self._performers
        for effect in batch.effects:
            perform = performers.get(type(effect))
            if perform is not None:
                perform(effect)
        for action in batch.actions:
            action()
        for flush in self._flushing:
            flush()

    def stop_listening(self) -> None:
        """Let all carriers stop accepting work."""
        for carrier in self.carriers:
            carrier.stop_listening()

    async def finish_carriers(self) -> None:
        """Let all carriers end their work under way, while its changes can still be made durable."""
        for carrier in self.carriers:
            await carrier.finish()

    async def close_carriers(self) -> None:
        """End all connections, the last registered carrier first; at once after a fault of msmqwire
        itself.
        """
        if self.broken.done() and isinstance(self.broken.result(), EngineFailed):
            for carrier in self.carriers:
                carrier.abort()  # its output may be wrong
        for carrier in reversed(self.carriers):
            await carrier.close()
