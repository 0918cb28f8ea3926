"""A process in virtual time: the event loop of its code, until it is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, Protocol, TypeVar

from msmqwire.service.virtual.loop import VirtualHandle, VirtualLoop, in_thread

T = TypeVar("T")


class Surroundings(Protocol):
    """The environment of a process: the time of its threads, and its sockets."""

    def thread_delays(self) -> tuple[float, float]:
        """Return the seconds until work in a thread is done, and from then until the loop learns of it."""

    async def create_connection(
        self, factory: Callable[[], asyncio.Protocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        """Connect to an address. Raises OSError."""


class ProcessLoop:
    """The event loop of one process: everything that it schedules ends with the process.

    Once it is killed none of its callbacks is called, its tasks are cancelled, and work in threads is not
    done, or its result is lost.

    Attributes:
        alive: whether it has not been killed.
    """

    def __init__(self, loop: VirtualLoop, surroundings: Surroundings) -> None:
        self._loop, self._surroundings = loop, surroundings
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self.alive = True

    def kill(self) -> None:
        """Kill the process."""
        self.alive = False
        for task in list(self._tasks):
            task.cancel()

    def _call(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        if self.alive:
            callback(*args)

    def time(self) -> float:
        return self._loop.time()

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Any = None) -> VirtualHandle:
        return self._loop.call_soon(self._call, callback, args, context=context)

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> VirtualHandle:
        return self._loop.call_later(delay, self._call, callback, args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> VirtualHandle:
        return self._loop.call_at(when, self._call, callback, args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        return self._loop.create_future()

    def create_task(self, coro: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = self._loop.create_task(coro)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        return task

    def run_in_executor(
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Call a function some time later, and return its result some time after that."""
        return in_thread(self, self._surroundings.thread_delays(), func, args)

    async def create_connection(
        self,
        protocol_factory: Callable[[], asyncio.Protocol],
        host: str,
        port: int,
        *,
        local_addr: tuple[str, int] | None = None,
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        return await self._surroundings.create_connection(protocol_factory, host, port)
