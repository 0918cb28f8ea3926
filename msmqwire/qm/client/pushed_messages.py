"""Messages that are pushed to a program: the result of `Queue.messages`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Final, Protocol

from msmqwire.constants import HResult
from msmqwire.errors import QueueError, ReadTimeout
from msmqwire.qm.client.finishing import finish
from msmqwire.qm.client.received_message import ReceivedMessage

if TYPE_CHECKING:
    from msmqwire.qm.runtime.pushed import Pushed
    from msmqwire.qm.runtime.requests import Requests

_TICK_S: Final = 0.05
"""The longest time in seconds before the end of a message is reported, if the event loop runs."""


class Ending(Protocol):
    """Deletion and return of messages that were received one by one."""

    async def end(self, request: int, *, acknowledge: bool) -> None:
        """Delete a message that was received, or give it back."""


class Messages(Protocol):
    """The messages of a queue as they arrive, without end.

    Asking for the next message marks the one before as done.
    """

    def __aiter__(self) -> AsyncIterator[ReceivedMessage]: ...

    async def __anext__(self) -> ReceivedMessage: ...

    def ready(self) -> ReceivedMessage | None:
        """Return the next message if there is one, else None. Any single thread may call this."""

    async def following(self) -> ReceivedMessage | None:
        """Wait for the next message, and return it; None if none comes in time."""

    async def durable(self) -> None:
        """Mark the present message as done, and wait until it and all before it are deleted durably."""

    async def leave(self, *, done: bool) -> None:
        """Wait until the messages that are done are deleted durably, and give back the rest.

        `done` is whether the present message is done.
        """


class PushedMessages:
    """Messages of a queue of this computer: see `Messages`.

    Their ends are reported to the queue manager many at a time, without waiting for it: when half of the
    window is done, before waiting for a message, and at most `_TICK_S` after a message.

    One thread may take messages while the event loop runs in another. Each attribute is changed by one of the
    two: `_present`, `_upto` and `_done` by the thread that takes messages, the rest in the event loop.
    """

    def __init__(
        self,
        requests: Requests,
        pushed: Pushed,
        window: int,
        timeout: float | None,
        left: Callable[[PushedMessages], None],
    ) -> None:
        """Take pushed messages, in the running loop; `left` is called when no more are wanted."""
        self._requests, self._pushed, self._timeout, self._left = requests, pushed, timeout, left
        self._half = max(1, window // 2)
        self._loop = asyncio.get_running_loop()
        self._present = 0  # the receipt of the last message taken
        self._upto = 0  # the receipt of the last message done
        self._done = self._told = 0
        self._tick: asyncio.TimerHandle | None = None
        pushed.when_filled = self._start_tick
        if pushed.records:
            self._start_tick()

    def __aiter__(self) -> AsyncIterator[ReceivedMessage]:
        return self

    async def __anext__(self) -> ReceivedMessage:
        if self._pushed.records:
            message: ReceivedMessage | None = self._take()
            if self._done - self._told >= self._half:
                self._tell()
        else:
            message = await self.following()
        if message is None:
            raise StopAsyncIteration
        return message

    def ready(self) -> ReceivedMessage | None:
        """Return the next message if there is one; the message before is then done."""
        try:
            message = self._take()
        except IndexError:
            return None
        if self._done - self._told >= self._half:
            self._loop.call_soon_threadsafe(self._tell)
        return message

    def _take(self) -> ReceivedMessage:
        self._end_present()
        self._present, record = self._pushed.records.popleft()
        return ReceivedMessage.from_record(record)

    async def following(self) -> ReceivedMessage | None:
        """Wait for the next message and return it; the one before is done. None if none comes in time."""
        self._end_present()
        self._tell()
        pushed = self._pushed
        while not pushed.records:
            if pushed.error is not None:
                raise pushed.error
            if not await pushed.wait(self._timeout):
                return None
        return self._take()

    def _end_present(self) -> None:
        if self._present:
            self._upto, self._present = self._present, 0
            self._done += 1

    def _tell(self) -> None:
        """Report the messages that are done, without waiting."""
        done, upto = self._done, self._upto
        if done != self._told and self._pushed.error is None:
            self._told = done
            self._requests.done(self._pushed.number, upto)

    def _start_tick(self) -> None:
        if self._tick is None:
            self._tick = self._loop.call_later(_TICK_S, self._ticks)

    def _ticks(self) -> None:
        self._tick = None
        self._tell()
        if self._pushed.records:
            self._start_tick()

    async def durable(self) -> None:
        self._end_present()
        if self._pushed.error is not None:
            raise self._pushed.error
        if self._upto:
            self._told = self._done
            await self._requests.call("done", subscription=self._pushed.number, upto=self._upto)

    async def leave(self, *, done: bool) -> None:
        self._left(self)
        if done:
            self._end_present()
        if self._pushed.error is not None:
            raise self._pushed.error
        await self._unsubscribe()

    async def close(self) -> None:
        """End the subscription unless the block was left: messages done are deleted, the rest returned."""
        if self._pushed.error is None:
            why = "the queue was closed, and the messages that were not done are back in it"
            self._pushed.fail(QueueError(why, HResult.MQ_ERROR_INVALID_HANDLE))
            await self._unsubscribe()

    async def _unsubscribe(self) -> None:
        self._pushed.when_filled = None
        if self._tick is not None:
            self._tick.cancel()
        await self._requests.unsubscribe(self._pushed.number, self._upto, self._present)


class OneByOne:
    """Messages of a queue that can't push: see `Messages`.

    Each is deleted before the request for the next one.
    """

    def __init__(
        self, reading: Ending, start: Callable[[], Coroutine[None, None, tuple[int, ReceivedMessage]]]
    ) -> None:
        """`start` receives a message, which is later ended by its request number."""
        self._reading, self._start = reading, start
        self._present = 0

    def __aiter__(self) -> AsyncIterator[ReceivedMessage]:
        return self

    async def __anext__(self) -> ReceivedMessage:
        message = await self.following()
        if message is None:
            raise StopAsyncIteration
        return message

    def ready(self) -> ReceivedMessage | None:
        """Return None: a message comes only on request."""
        return None

    async def following(self) -> ReceivedMessage | None:
        """Delete the message before, then receive the next one; None if none comes in time."""
        await self.durable()
        try:
            self._present, message = await self._start()
        except ReadTimeout:
            return None
        return message

    async def durable(self) -> None:
        await self.leave(done=True)

    async def leave(self, *, done: bool) -> None:
        present, self._present = self._present, 0
        if present:
            await finish(self._reading.end(present, acknowledge=done))
