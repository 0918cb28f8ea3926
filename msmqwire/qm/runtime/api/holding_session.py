"""The session of a token: it holds messages and transactions from one request to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final
from uuid import UUID

from msmqwire.constants import MQ_OK, HResult
from msmqwire.errors import MsmqError, QueueError
from msmqwire.qm.model.enumerations import QueueAccessType
from msmqwire.qm.model.message import Message
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.held_messages import HELD_MAX
from msmqwire.qm.runtime.operations import LocalSession
from msmqwire.qm.runtime.reasons import reason
from msmqwire.qm.runtime.subscriptions import Subscription
from msmqwire.service.control.server import Sink

OPEN_MAX: Final = 256
"""Limit of queues that a session leaves open when it holds nothing of them."""


class HoldingSession(LocalSession):
    """A session whose messages, transactions and subscriptions belong to no connection."""

    def __init__(self, driver: EngineDriver) -> None:
        self._direct: set[Subscription] = set()
        super().__init__(driver)

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing."""
        return not (self._direct or len(self._transactions) or self._held.room() < HELD_MAX)

    def room(self) -> int:
        """Return the number of messages that may still be received."""
        return self._held.room()

    def drain(self, *, on: bool) -> None:
        """See `LocalSession.drain`."""
        super().drain(on=on)
        for subscription in list(self._direct):
            subscription.drain(on=on)

    # -- sending and transactions -------------------------------------------------------------------------

    async def send(self, request: Mapping[str, Any], sent: Callable[[list[str]], None]) -> list[str]:
        """Send all messages of a request or none; return their identifiers, once they are durable.

        `sent` is called with them before their commit, for changes that belong to it.
        """

        def send() -> list[str]:
            identifiers: list[str] = self._send_messages({**request, "whole": True})["sent"]
            sent(identifiers)
            return identifiers

        identifiers = self._driver.call(send)
        await self._driver.durable()
        self._trim()
        return identifiers

    def has_transaction(self, identifier: UUID) -> bool:
        """Whether a transaction has begun, and not ended."""
        return identifier in self._transactions

    async def commit(self, identifier: UUID, committed: Callable[[], None]) -> None:
        """Commit a transaction. `committed` is called for changes that belong to it.

        Raises QueueError.
        """

        def commit() -> None:
            status = self._transactions.end(identifier, self._core.commit)
            if status != MQ_OK:
                raise QueueError(reason(status, "the transaction"), status)
            committed()

        self._driver.call(commit)
        await self._driver.durable()

    def abort_soon(self, identifier: UUID) -> None:
        """Abort a transaction, if it has not ended."""
        self._transactions.abort_soon(identifier)

    # -- receiving ----------------------------------------------------------------------------------------

    async def settle(self, done: list[int], back: list[int]) -> None:
        """End messages that are held, durably."""
        if done or back:
            self._driver.call(self._held.end, done, back)
            await self._driver.durable()

    def give_back(self, receipts: list[int]) -> None:
        """Return messages that were not ended in time: one delivery more, unless they were pushed ahead."""
        self._driver.notify(partial(self._held.end, [], receipts, named=False))

    def withdraw(self, receipts: list[int]) -> None:
        """Return messages that no program got."""
        self._driver.notify(self._held.withdraw, receipts)

    def subscribe(
        self,
        queue: str,
        window: int,
        sink: Sink,
        frame: Callable[[int, int, Message], bytes],
        failed: Callable[[Subscription, MsmqError], None],
        has_room: Callable[[], bool],
    ) -> Subscription:
        """Push messages of a queue to a sink of their own, see `Subscription`. Raises QueueError."""
        self._drain.check()
        if self._held.room() < window:
            why = "too many messages are received and not ended, or may be pushed"
            raise QueueError(why, HResult.MQ_ERROR_INSUFFICIENT_RESOURCES)
        request = {"queue": queue}
        descriptor = self._driver.call(self._descriptor, request, QueueAccessType.RECEIVE_ACCESS)
        made = partial(Subscription, self._driver, self._held, sink, 0, (queue, descriptor), window)
        subscription = made(failed, frame, has_room)
        self._direct.add(subscription)
        return subscription

    def leave(self, subscription: Subscription) -> None:
        """Push no more messages; those that were pushed are still held."""
        if subscription in self._direct:
            self._direct.discard(subscription)
            self._driver.notify(subscription.leave)
            self._trim()

    def _return_all(self) -> None:
        for subscription in self._direct:
            subscription.leave()
        self._direct.clear()
        super()._return_all()

    # -- open queues --------------------------------------------------------------------------------------

    def _trim(self) -> None:
        """Close queues that are not in use, if there are many: clients choose their names."""
        if len(self._open) > OPEN_MAX:
            self._driver.notify(self._close_unused)

    def _close_unused(self) -> None:
        used = self._held.descriptors() | {subscription.descriptor for subscription in self._direct}
        for key, descriptor in list(self._open.items()):
            if descriptor not in used and not descriptor.waiting:
                del self._open[key]
                self._core.queues.close(descriptor)
