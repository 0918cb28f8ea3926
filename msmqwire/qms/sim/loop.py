"""An event loop in virtual time, whose threads are part of it: every run of a seed is the same."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from concurrent.futures import Executor
from selectors import SelectorKey, SelectSelector
from typing import Any, Final, TypeVar

from msmqwire.qms.sim.violation import Invariant, Violation

T = TypeVar("T")
_THREAD_S: Final = 0.02
"""The most seconds that work in a thread takes before and after it is done."""


class Killed(BaseException):
    """The server has been killed: what it was doing is never done, and nobody learns of it."""


class _VirtualTime(SelectSelector):
    """Waits for nothing but the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        if timeout is None:
            raise Violation(Invariant.ENDS, "all wait for one another")
        self.now += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop that does not wait: its clock jumps to the next timer."""

    def __init__(self, chance: random.Random) -> None:
        self._virtual, self._chance = _VirtualTime(), chance
        super().__init__(self._virtual)

    def time(self) -> float:
        """Return the seconds since the beginning."""
        return self._virtual.now

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Call a function a moment later, and return its result another moment later."""
        future: asyncio.Future[T] = self.create_future()

        def work() -> None:
            try:
                result = func(*args)
            except Killed:
                return
            except Exception as exc:
                self.call_later(self._moment(), _settle, future, None, exc)
            else:
                self.call_later(self._moment(), _settle, future, result, None)

        self.call_later(self._moment(), work)
        return future

    def _moment(self) -> float:
        return self._chance.random() * _THREAD_S


def _settle(future: asyncio.Future[Any], result: Any, exc: Exception | None) -> None:
    if future.done():
        return
    if exc is None:
        future.set_result(result)
    else:
        future.set_exception(exc)
