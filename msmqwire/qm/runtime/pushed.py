"""The messages of subscriptions on the side of the client."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from msmqwire.errors import MsmqError


class Pushed:
    """The messages of one subscription that were pushed and not taken yet.

    Attributes:
        number: the number of the subscription.
        records: receipts and records in order. Any thread may take the first one.
        error: the reason for its end; None while the subscription lasts.
        when_filled: called when a message comes and there was none.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.records: deque[tuple[int, bytes]] = deque()
        self.error: MsmqError | None = None
        self.when_filled: Callable[[], None] | None = None
        self._waiting: asyncio.Future[bool] | None = None

    def add(self, receipt: int, record: bytes) -> None:
        """Add a message."""
        if not self.records and self.when_filled is not None:
            self.when_filled()
        self.records.append((receipt, record))
        self._wake()

    def fail(self, error: MsmqError) -> None:
        """End the messages, and forget those that returned to the queue; the first reason counts."""
        if self.error is None:
            self.error = error
            self.records.clear()
        self._wake()

    def _wake(self, *, came: bool = True) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(came)

    async def wait(self, timeout_s: float | None) -> bool:
        """Wait for a message or the end of the subscription; return False if neither comes in time.

        One task waits at a time.
        """
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[bool] = loop.create_future()
        self._waiting = waiting
        timer = None if timeout_s is None else loop.call_later(timeout_s, lambda: self._wake(came=False))
        try:
            return await waiting
        finally:
            if timer is not None:
                timer.cancel()


class Subscribed:
    """The subscriptions of one session, by their numbers."""

    def __init__(self) -> None:
        self._pushed: dict[int, Pushed] = {}
        self._last = 0

    async def subscribe(
        self, call: Callable[..., Coroutine[Any, Any, dict[str, Any]]], queue: str, window: int
    ) -> Pushed:
        """Number a new subscription, since messages may come together with the answer; then request it by
        `call`.
        """
        self._last += 1
        pushed = self._pushed[self._last] = Pushed(self._last)
        try:
            await call("subscribe", subscription=pushed.number, queue=queue, window=window)
        except BaseException:
            self.remove(pushed.number)
            raise
        return pushed

    def remove(self, number: int) -> None:
        """Ignore all further pushed messages."""
        self._pushed.pop(number, None)

    def add(self, subscription: int, receipt: int, record: bytes) -> None:
        """Pass on a message, unless the subscription was removed."""
        pushed = self._pushed.get(subscription)
        if pushed is not None:
            pushed.add(receipt, record)

    def fail(self, subscription: int, error: MsmqError) -> None:
        """Report the end of a subscription with its reason."""
        pushed = self._pushed.get(subscription)
        if pushed is not None:
            pushed.fail(error)

    def fail_all(self, error: MsmqError) -> None:
        """Report the end of all subscriptions with the reason."""
        for pushed in self._pushed.values():
            pushed.fail(error)
