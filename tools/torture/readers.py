"""Remote readers of a torture run: they read queues by [MS-MQRR], some anonymously and some by NTLM.

A reader writes that it is about to acknowledge a message before it does, and the outcome afterwards:
confirmed, refused with the message back in its queue, or unknown because the answer was lost. Only in the
last case, and if the reader is killed in between, is the message in doubt.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import AsyncExitStack
from typing import Final

import msmqwire
from msmqwire.errors import EndUnknown, MsmqError, QueueError, ReadTimeout, RpcFault, Unreachable
from msmqwire.qm.client import Queue, ReceivedMessage
from msmqwire.rpc.constants import FaultStatus
from tools.torture import books
from tools.torture.participant import Participant

_OUTSTANDING: Final = 3
_TIMEOUT_S: Final = 0.3
_POLL_S: Final = 0.3


class _GivenBack(Exception):
    """Leaves the block of a message that is to return to its queue."""


async def read_remotely(participant: Participant) -> None:
    """Read the queues until asked to stop, each over a connection with several receives under way."""
    async with asyncio.TaskGroup() as group:
        for queue in participant.plan["queues"]:
            group.create_task(_read_queue(participant, queue))


async def _read_queue(participant: Participant, queue: str) -> None:
    plan = participant.plan
    at = plan["queues"][queue]
    connection = msmqwire.connect(
        at["name"], rpc_port=at["port"], user=plan["user"], password=plan["password"], auth=plan["auth"]
    )
    async with connection as opened, asyncio.TaskGroup() as group:
        for number in range(_OUTSTANDING):
            reader = _Reader(participant, queue, opened, participant.rng(f"{queue}-{number}"))
            group.create_task(reader.run())


class _Reader:
    """Takes one message of a queue after the other."""

    def __init__(self, participant: Participant, queue: str, opened: Queue, rng: random.Random) -> None:
        self._participant, self._queue, self._opened, self._rng = participant, queue, opened, rng

    async def run(self) -> None:
        """Read until asked to stop; a server that is gone is waited for."""
        while not self._participant.stop.is_set():
            try:
                await self._read()
            except (ReadTimeout, TimeoutError):
                pass
            except Unreachable:
                self._participant.book.write("disconnected")
                await asyncio.sleep(_POLL_S)
            except QueueError as exc:
                self._participant.book.write("failed", why=str(exc))
                await asyncio.sleep(_POLL_S)
            except RpcFault as exc:
                if exc.status != FaultStatus.NCA_S_SERVER_TOO_BUSY:
                    raise
                self._participant.book.write("failed", why="the server stops in good order")
                await asyncio.sleep(_POLL_S)

    async def _read(self) -> None:
        """Receive a message, and end it in one of several ways."""
        rng, book = self._rng, self._participant.book
        asked = time.monotonic()
        row: list[str | int] = []
        try:
            async with AsyncExitStack() as stack:
                message = await self._received(stack)
                name, sound = books.message_of(message.body, message.label)
                row = [name, message.lookup_identifier]
                taken = [name, message.lookup_identifier, sound, message.identifier]
                book.write("taken", queue=self._queue, asked=asked, messages=[taken], remote=True)
                await asyncio.sleep(rng.choice((0, 0, 0, rng.uniform(0, 0.1))))
                if rng.random() < 0.05:
                    book.write("back", messages=[row])
                    raise _GivenBack
                book.write("ending", messages=[row])
        except _GivenBack:
            return
        except EndUnknown as exc:
            book.write("in doubt", messages=[row], why=str(exc))
        except MsmqError as exc:
            if row:
                book.write("not ended", messages=[row], why=str(exc))
            raise
        else:
            book.write("ended", messages=[row])

    async def _received(self, stack: AsyncExitStack) -> ReceivedMessage:
        """Receive in time, or cancel a receive that would wait for longer."""
        if self._rng.random() < 0.7:
            return await stack.enter_async_context(self._opened.receiving(_TIMEOUT_S))
        async with asyncio.timeout(self._rng.uniform(0, _TIMEOUT_S)):
            return await stack.enter_async_context(self._opened.receiving())
