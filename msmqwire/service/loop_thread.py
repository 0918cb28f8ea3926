"""An event loop on a separate thread, for programs without asyncio."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, ParamSpec, TypeVar

from msmqwire.service.control.client import connection_closed
from msmqwire.service.tasks import cancel_other_tasks

T = TypeVar("T")
P = ParamSpec("P")


class SyncConnection:
    """A connection in an event loop on a separate thread. Any thread may use it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(_DaemonThreads())
        self._thread = threading.Thread(target=self._run_loop, name="msmqwire", daemon=True)
        self._lock = threading.Lock()
        self._ended = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` in the loop, and wait for its result. Raises InvalidValue if the connection was left."""
        future = self._scheduled(work)
        if future is None:
            work.close()
            raise connection_closed()
        return _result(future)

    def run_if_known(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` as `run` does; once the connection was left, `work` must not wait."""
        future = self._scheduled(work)
        return _run_without_loop(work) if future is None else _result(future)

    def _scheduled(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T] | None:
        with self._lock:  # the loop completes or cancels work scheduled before its end
            return None if self._ended else asyncio.run_coroutine_threadsafe(work, self._loop)

    def start(self, opening: Coroutine[Any, Any, T]) -> T:
        """Start the loop, and open the connection in it."""
        self._thread.start()
        try:
            return self.run(opening)
        except BaseException:
            self._end()
            raise

    def stop(self, leaving: Coroutine[Any, Any, None]) -> None:
        """Leave the connection, and end the loop."""
        try:
            self.run(leaving)
        finally:
            self._end()

    @contextmanager
    def entered(self, block: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """Enter a block in the loop, and leave it with the exception that leaves this one, if any."""
        value = self.run(block.__aenter__())
        try:
            yield value
        except BaseException as exc:
            if not self._ended:
                self.run(_left_by(block, exc))
            raise
        self.run(_left_by(block, None))

    def _run_loop(self) -> None:
        loop = self._loop
        loop.run_forever()
        loop.run_until_complete(cancel_other_tasks())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    def _end(self) -> None:
        with self._lock:
            self._ended = True
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


class _DaemonThreads(concurrent.futures.ThreadPoolExecutor):
    """Runs each call on a daemon thread: resolving a name may take minutes, and the exit must not wait."""

    def submit(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> concurrent.futures.Future[T]:
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        def work() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    result = fn(*args, **kwargs)
                except BaseException as exc:
                    future.set_exception(exc)
                else:
                    future.set_result(result)

        threading.Thread(target=work, name="msmqwire-names", daemon=True).start()
        return future


def _result(future: concurrent.futures.Future[T]) -> T:
    try:
        return future.result()
    except concurrent.futures.CancelledError:
        raise connection_closed() from None
    except BaseException:
        future.cancel()  # if the wait was interrupted, for example by Ctrl-C, and not ended by its work
        raise


async def _left_by(block: AbstractAsyncContextManager[Any], exc: BaseException | None) -> None:
    await block.__aexit__(None if exc is None else type(exc), exc, None if exc is None else exc.__traceback__)


def _run_without_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run `work`, which must not wait: the connection was left."""
    try:
        work.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    work.close()
    raise connection_closed()
