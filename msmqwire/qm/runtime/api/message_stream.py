"""Messages of a queue as server-sent events, up to a window of messages that are not settled."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from aiohttp import web

from msmqwire.errors import MsmqError
from msmqwire.qm.model.message import Message
from msmqwire.qm.runtime.api.holding_session import HoldingSession
from msmqwire.qm.runtime.api.problems import Problem, problem_of
from msmqwire.qm.runtime.api.token_session import Held, TokenSession
from msmqwire.qm.runtime.message_json import message_json
from msmqwire.qm.runtime.subscriptions import Subscription

if TYPE_CHECKING:
    from msmqwire.qm.runtime.api.message_sessions import MessageSessions

SEND_BUFFER: Final = 64 << 10
"""Bytes of a stream that the system holds for a client that does not read."""
_COMMENT: Final = b": \n\n"


class MessageStream:
    """One stream: it receives messages as a subscription does, and writes them to its client.

    It takes further messages only once all before them are written, so that a client that does not read holds
    a few of them. What could not be written is back in the queue when the stream ends; what was written is
    to be settled within a time from then on.

    Attributes:
        window: the most messages that are sent and not settled.
    """

    def __init__(self, sessions: MessageSessions, session: TokenSession, window: int, settle_s: int) -> None:
        self._all, self._session, self.window, self._settle_s = sessions, session, window, settle_s
        self._subscription: Subscription | None = None
        self._sent: dict[str, None] = {}  # receipts that are not settled, written or not
        self._unwritten: list[str] = []
        self._frames: list[bytes] = []
        self._size = 0  # bytes counted as unread
        self._again: list[Callable[[], None]] = []
        self._wake = asyncio.Event()
        self._problem: Problem | None = None

    async def run(self, request: web.Request, queue: str, gone: asyncio.Future[None]) -> web.StreamResponse:
        """Send messages of a queue until the client has gone, or the stream is ended.

        Raises QueueError, and Problem if there are too many streams.
        """
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        response.force_close()
        with self._session.in_use() as holding:
            self._session.opened(self)
            wake = lambda _: self._wake.set()  # noqa: E731
            try:
                self._subscription = holding.subscribe(
                    queue, self.window, self, self._event, self._failed, lambda: self._all.has_room
                )
                gone.add_done_callback(wake)
                await response.prepare(request)
                _limit_buffers(request)
                await self._write_all(request, response, gone)
            except ConnectionError:
                pass
            finally:
                gone.remove_done_callback(wake)
                self._leave(holding)
        return response

    # -- writing --------------------------------------------------------------------------------------------

    async def _write_all(
        self, request: web.Request, response: web.StreamResponse, gone: asyncio.Future[None]
    ) -> None:
        writer = request.writer
        while not gone.done():
            if not self._frames and self._problem is None:
                await self._until_woken()
            if gone.done():
                break
            ends = self._problem is not None and not self._frames
            data = self._ending() if ends else b"".join(self._frames) or _COMMENT
            self._frames.clear()
            with watched(request, self._all.limits.stall_s):
                await response.write(data)
                await writer.drain()
            if ends or gone.done():  # aiohttp waits no longer then, as if all had been written
                break
            self._written()

    async def _until_woken(self) -> None:
        """Wait until there is something to write, or until it is time for a comment."""
        self._wake.clear()
        timer = asyncio.get_running_loop().call_later(self._all.limits.keep_alive_s, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()

    def _written(self) -> None:
        """All that was taken so far is with the client, or on its way: go on."""
        self._unwritten.clear()
        self._all.read(self._size)
        self._size = 0
        again, self._again = self._again, []
        for action in again:
            action()

    def _ending(self) -> bytes:
        assert self._problem is not None, "it ends"
        return b"event: end\ndata: " + self._problem.body() + b"\n\n"

    # -- messages -------------------------------------------------------------------------------------------

    def _event(self, subscription: int, number: int, message: Message) -> bytes:
        """Return the event of a message that was received."""
        receipt = self._session.grant(Held(number, stream=self), None)
        self._sent[receipt] = None
        self._unwritten.append(receipt)
        told = message_json(message)
        told["lookup_identifier"], told["receipt"] = str(told["lookup_identifier"]), receipt
        return b"event: message\ndata: " + json.dumps(told, separators=(",", ":")).encode() + b"\n\n"

    def settled(self, receipt: str) -> None:
        """Note that one of its messages has ended."""
        self._sent.pop(receipt, None)

    @property
    def writable(self) -> bool:
        """Whether it has room for more messages."""
        return not self._size and self._problem is None and self._all.has_room

    def when_writable(self, action: Callable[[], None]) -> None:
        """Call `action` once it has room again."""
        if self._size:
            self._again.append(action)
        elif self._problem is None:
            self._all.when_room(action)

    def push(self, frames: list[bytes]) -> None:
        """Write messages, each as an event."""
        size = sum(map(len, frames))
        self._frames += frames
        self._size += size
        self._all.unread += size
        self._wake.set()

    def subscription_ended(self, subscription: int, error: MsmqError) -> None:
        """Do nothing: `_failed` is called as well."""

    # -- the end --------------------------------------------------------------------------------------------

    def end(self, problem: Problem) -> None:
        """End it for a reason, which its client is told."""
        if self._problem is None:
            self._problem = problem
            self._wake.set()

    def _failed(self, subscription: Subscription, error: MsmqError) -> None:
        self.end(problem_of(error) or Problem(503, str(error)))

    def _leave(self, holding: HoldingSession) -> None:
        """Stop: what could not be written is back at once."""
        if self._subscription is not None:
            holding.leave(self._subscription)
        self._session.withdraw(self._unwritten)
        self._all.read(self._size)
        self._size = 0
        self._session.ended(self, list(self._sent), self._settle_s)


@contextmanager
def watched(request: web.Request, seconds: float) -> Iterator[None]:
    """End the connection of a request, if bytes wait for its client and that reads none for some seconds."""
    transport, loop = request.transport, asyncio.get_running_loop()
    timer: asyncio.TimerHandle | None = None

    def look(before: int) -> None:
        nonlocal timer
        if transport is None:
            return
        left = transport.get_write_buffer_size()
        if left and left == before:
            transport.abort()
        else:
            timer = loop.call_later(seconds, look, left)

    look(-1)
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()


def _limit_buffers(request: web.Request) -> None:
    """Let writing wait until the system has the bytes, and the system have few that are not read."""
    transport = request.transport
    if transport is not None:
        found = transport.get_extra_info("socket")
        if found is not None:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        transport.set_write_buffer_limits(high=0)
