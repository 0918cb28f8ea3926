"""An event loop in virtual time: its clock jumps to the next timer, and every run of a seed is the same."""

from __future__ import annotations

import asyncio
import contextvars
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from heapq import heappop, heappush
from typing import Any, Protocol, TypeVar, cast

T = TypeVar("T")


class Killed(BaseException):
    """The process has been killed: its work is never completed, and no code learns of it."""


class Stuck(Exception):
    """All wait for one another: no event is left."""


class VirtualHandle:
    """A scheduled callback, which can be cancelled."""

    __slots__ = ("_args", "_callback", "_context", "_when", "is_cancelled")

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: contextvars.Context | None,
    ) -> None:
        self._when, self._callback, self._args, self._context = when, callback, args, context
        self.is_cancelled = False

    def cancel(self) -> None:
        """Cancel the call."""
        self.is_cancelled = True

    def cancelled(self) -> bool:
        """Whether the call is cancelled."""
        return self.is_cancelled

    def when(self) -> float:
        """The time at which the call is due."""
        return self._when

    def run(self) -> None:
        """Run the callback."""
        if self._context is None:
            self._callback(*self._args)
        else:
            self._context.run(self._callback, *self._args)


class VirtualLoop:
    """An event loop that never waits.

    Callbacks due at the same time are called in the order in which they were scheduled.
    An uncaught exception goes to the exception handler; without one it leaves `run_until` and
    `run_until_complete`.

    Attributes:
        turns: the number of callbacks so far.
        now_ms: milliseconds since the beginning, to the nearest one.
    """

    def __init__(self, thread_delays: Callable[[], tuple[float, float]] = lambda: (0.0, 0.0)) -> None:
        """Set the delays of work in a thread: see `run_in_executor`."""
        self._now = 0.0
        self.now_ms = 0
        self._thread_delays = thread_delays
        self._ready: deque[VirtualHandle] = deque()
        self._timers: list[tuple[float, int, VirtualHandle]] = []
        self._numbers = 0
        self._handler: Callable[[Any, dict[str, Any]], object] | None = None
        self._is_running = self._is_closed = False
        self.turns = 0

    # -- for callbacks ------------------------------------------------------------------------------------

    def time(self) -> float:
        """Return the seconds since the beginning."""
        return self._now

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> VirtualHandle:
        handle = VirtualHandle(self._now, callback, args, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> VirtualHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> VirtualHandle:
        handle = VirtualHandle(when, callback, args, context)
        self._numbers += 1
        heappush(self._timers, (when, self._numbers, handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=cast(Any, self))

    def create_task(
        self,
        coro: Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[T]:
        return asyncio.Task(coro, loop=cast(Any, self), name=name, context=context)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Call a function some time later, and return its result some time after that."""
        return in_thread(self, self._thread_delays(), func, args)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return self._is_running

    def is_closed(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        """Forget all scheduled callbacks."""
        self._is_closed = True
        self._ready.clear()
        self._timers.clear()

    # -- exceptions ---------------------------------------------------------------------------------------

    def set_exception_handler(self, handler: Callable[[Any, dict[str, Any]], object] | None) -> None:
        self._handler = handler

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        exc = context.get("exception")
        if self._handler is not None:
            self._handler(self, context)
        elif exc is not None:
            self.call_soon(_raise, exc)  # not out of a destructor

    # -- running ------------------------------------------------------------------------------------------

    def run_until(self, end: float) -> None:
        """Run all callbacks that are due up to a time."""
        self._run(lambda: False, end)
        self._now, self.now_ms = end, round(end * 1000)

    def run_one(self, end: float) -> bool:
        """Run the next callback, if it is due up to a time; return whether there was one."""
        turns = self.turns
        self._run(lambda: self.turns > turns, end)
        return self.turns > turns

    def run_until_complete(self, future: Any) -> Any:
        """Run until a future is done, and return its result. Raises Stuck if it never will be."""
        task = asyncio.ensure_future(future, loop=cast(Any, self))
        self._run(task.done, None)
        return task.result()

    def _run(self, is_over: Callable[[], bool], end: float | None) -> None:
        before = events._get_running_loop()
        events._set_running_loop(cast(Any, self))
        self._is_running = True
        try:
            while not is_over():
                handle = self._next(end)
                if handle is None:
                    return
                self.turns += 1
                try:
                    handle.run()
                except Killed:
                    pass
                except Exception as exc:
                    if self._handler is None:
                        raise
                    self._handler(self, {"message": "an exception in a callback", "exception": exc})
        finally:
            self._is_running = False
            events._set_running_loop(before)

    def _next(self, end: float | None) -> VirtualHandle | None:
        """Return the next callback; None if that is after `end`. Raises Stuck."""
        ready, timers = self._ready, self._timers
        while True:
            if ready:
                handle = ready.popleft()
            elif timers and (end is None or timers[0][0] <= end):
                when, _, handle = heappop(timers)
                if not handle.is_cancelled and when > self._now:
                    self._now, self.now_ms = when, round(when * 1000)
            elif end is None:
                raise Stuck("all wait for one another")
            else:
                return None
            if not handle.is_cancelled:
                return handle


class _Timers(Protocol):
    def create_future(self) -> asyncio.Future[Any]: ...

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> VirtualHandle: ...


def in_thread(
    loop: _Timers, delays: tuple[float, float], func: Callable[..., T], args: tuple[Any, ...]
) -> asyncio.Future[T]:
    """Do work as in a thread, with a delay until it is done, and another until the loop learns of it."""
    future: asyncio.Future[T] = loop.create_future()
    before, after = delays

    def work() -> None:
        try:
            result = func(*args)
        except Killed:
            return  # no task learns of it
        except Exception as exc:
            loop.call_later(after, _settle, future, None, exc)
        else:
            loop.call_later(after, _settle, future, result, None)

    loop.call_later(before, work)
    return future


def _settle(future: asyncio.Future[Any], result: Any, exc: Exception | None) -> None:
    if future.done():
        return
    if exc is None:
        future.set_result(result)
    else:
        future.set_exception(exc)


def _raise(exc: BaseException) -> None:
    raise exc
