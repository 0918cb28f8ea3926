"""Receivers of pushed messages in a torture run: they read queues by `Queue.messages`.

A receiver writes that it is about to end a message before it asks for the next one, and that messages have
ended only when it has waited for that. Other messages may come again when it or the server is killed.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from functools import partial
from typing import Any, Final

from msmqwire.errors import Unreachable
from msmqwire.qm.client.local_queues import LocalReading, LocalSending
from msmqwire.qm.client.pushed_messages import Messages
from msmqwire.qm.client.queue import Queue
from msmqwire.qm.runtime.data_folder import DataFolder
from msmqwire.qm.runtime.local_names import queue_name
from msmqwire.qm.runtime.requests import LastingRequests
from msmqwire.qm.runtime.served_requests import ServedRequests
from tools.torture import books
from tools.torture.participant import Participant

_TIMEOUT_S: Final = 0.3
_POLL_S: Final = 0.05


class _GivenBack(Exception):
    """Leaves the block of messages; the present one returns to its queue."""


async def receive_pushed(participant: Participant) -> None:
    """Receive from the queues until asked to stop and they are empty, each over a connection of its own."""
    async with asyncio.TaskGroup() as group:
        for queue in participant.plan["queues"]:
            group.create_task(_Receiver(participant, queue).run())


class _Receiver:
    """Receives from one queue.

    `_ending` are the messages that it has begun to end and not heard of.
    """

    def __init__(self, participant: Participant, queue: str) -> None:
        self._participant, self._queue = participant, queue
        self._rng: random.Random = participant.rng(queue)
        self._ending: list[list[Any]] = []

    async def run(self) -> None:
        """Receive; a server that is gone is waited for, and the store never opened without one."""
        requests = await self._attached()
        name = str(queue_name(rf"private$\{self._queue}", requests.name))
        sending = LocalSending(requests, name, requests.identifier)
        queue = Queue(sending, partial(LocalReading, requests, name, requests.name))
        drained = False
        while not drained:
            try:
                drained = await self._receive(queue)
            except Unreachable as exc:  # the next use connects again
                self._participant.book.write("disconnected", why=str(exc))
                await asyncio.sleep(_POLL_S)
        await requests.close()

    async def _attached(self) -> LastingRequests:
        """Attach to the queue manager of the queue once that is served."""
        folder = DataFolder(self._participant.plan["data"][self._queue])
        while True:
            served = await ServedRequests.connect(folder)
            with suppress(Unreachable):
                if served is not None:
                    return await LastingRequests.of(folder, served)
            await asyncio.sleep(_POLL_S)

    async def _receive(self, queue: Queue) -> bool:
        """Receive until nothing comes; return whether that was so and a stop was asked for."""
        book, rng, stop = self._participant.book, self._rng, self._participant.stop
        self._ending = []
        stopping = stop.is_set()
        row: list[Any] = []
        try:
            async with queue.messages(rng.choice((1, 3, 20, 200)), timeout=_TIMEOUT_S) as messages:
                asked = time.monotonic()
                async for message in messages:
                    name, sound = books.message_of(message.body, message.label)
                    row = [name, message.lookup_identifier]
                    taken = [*row, sound, message.identifier]
                    book.write("taken", queue=self._queue, asked=asked, messages=[taken])
                    await self._end(messages, row)
                    asked = time.monotonic()
        except _GivenBack:  # it is not known whether the server had taken the end of earlier ones
            book.write("back", messages=[row[0]])
        else:
            self._ended()
        return stopping and not row

    async def _end(self, messages: Messages, row: list[Any]) -> None:
        """End a message in one of several ways."""
        rng = self._rng
        await asyncio.sleep(rng.choice((0, 0, 0, 0, 0, rng.uniform(0, 0.05))))
        choice = rng.random()
        if choice < 0.02:
            raise _GivenBack
        self._ending.append(row)
        self._participant.book.write("ending", messages=[row])
        if choice < 0.1:
            await messages.durable()
            self._ended()

    def _ended(self) -> None:
        """Write that the messages have ended, which is known now."""
        if self._ending:
            self._participant.book.write("ended", messages=self._ending)
        self._ending = []
