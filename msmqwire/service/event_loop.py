"""The event loop of a service: that of asyncio, or one in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Handle(Protocol):
    """A scheduled callback, which can be cancelled."""

    def cancel(self) -> None:
        """Cancel the call."""


class EventLoop(Protocol):
    """See `asyncio.AbstractEventLoop`."""

    def time(self) -> float: ...

    def call_soon(self, callback: Callable[..., object], *args: Any) -> Handle: ...

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Handle: ...

    def create_future(self) -> asyncio.Future[Any]: ...

    def create_task(self, coro: Coroutine[Any, Any, T]) -> asyncio.Task[T]: ...

    def run_in_executor(
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]: ...

    async def create_connection(
        self,
        protocol_factory: Callable[[], asyncio.Protocol],
        host: str,
        port: int,
        *,
        local_addr: tuple[str, int] | None = None,
    ) -> tuple[asyncio.Transport, asyncio.Protocol]: ...
