"""A remote queue to send to, for programs without asyncio: runs an event loop on a thread of its own."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from msmqwire.qm.client.manager import connection_closed
from msmqwire.qm.client.queue import Properties, Queue, Transactional
from msmqwire.qm.client.sent import Acknowledgement, Sent
from msmqwire.qm.runtime.tasks import cancel_other_tasks

if TYPE_CHECKING:
    from typing import Unpack

T = TypeVar("T")
P = ParamSpec("P")


class _Connection(Protocol):
    async def open(self) -> Queue: ...

    async def leave(self, *, wait: bool) -> None: ...


class SyncConnection:
    """A connection in an event loop on a thread of its own. Any thread may use it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(_DaemonThreads())
        self._thread = threading.Thread(target=self._run_loop, name="msmqwire", daemon=True)
        self._lock = threading.Lock()
        self._ended = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` in the loop, and wait for its result."""
        with self._lock:  # the loop completes or cancels what is scheduled before its end
            future = None if self._ended else asyncio.run_coroutine_threadsafe(work, self._loop)
        if future is None:
            return _run_without_loop(work)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise connection_closed() from None

    def start(self, connection: _Connection) -> SyncQueue:
        """Open the connection."""
        self._thread.start()
        try:
            return SyncQueue(self, self.run(connection.open()))
        except BaseException:
            self._end()
            raise

    def stop(self, connection: _Connection, *, wait: bool) -> None:
        """Leave the connection."""
        try:
            self.run(connection.leave(wait=wait))
        finally:
            self._end()

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
    """Runs each call on a daemon thread: a name may take minutes to resolve, and the exit must not wait."""

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


def _run_without_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run `work`, which must not wait: the connection was left."""
    try:
        work.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    work.close()
    raise connection_closed()


class SyncSent:
    """The outcome of a message that was sent: `msmqwire.qm.client.sent.Sent` without ``await``."""

    def __init__(self, connection: SyncConnection, sent: Sent) -> None:
        self._connection, self._sent = connection, sent

    def __repr__(self) -> str:
        return repr(self._sent)

    @property
    def identifier(self) -> str:
        r"""Its identifier, ``guid\number``."""
        return self._sent.identifier

    @property
    def acknowledgements(self) -> list[Acknowledgement]:
        """Those received, in order of arrival."""
        return list(self._sent.acknowledgements)

    def transferred(self, timeout: float | None = None) -> None:
        """See `Sent.transferred`."""
        self._connection.run(self._sent.transferred(timeout))

    def arrived(self, timeout: float | None = None) -> Acknowledgement:
        """See `Sent.arrived`."""
        return self._connection.run(self._sent.arrived(timeout))

    def received(self, timeout: float | None = None) -> Acknowledgement:
        """See `Sent.received`."""
        return self._connection.run(self._sent.received(timeout))

    def acknowledged(self, *classes: int, timeout: float | None = None) -> Acknowledgement:
        """See `Sent.acknowledged`."""
        return self._connection.run(self._sent.acknowledged(*classes, timeout=timeout))


class SyncTransactional:
    """A transaction whose messages are sent when its block is left."""

    def __init__(self, connection: SyncConnection, transactional: Transactional) -> None:
        self._connection, self._transactional = connection, transactional

    def send(self, body: bytes | str = b"", **properties: Unpack[Properties]) -> SyncSent:
        """Add a message. Raises what `SyncQueue.send` raises."""
        return SyncSent(
            self._connection, self._connection.run(_call_in_loop(self._transactional.send, body, properties))
        )


async def _call_in_loop(send: Callable[..., Sent], body: bytes | str, properties: Properties) -> Sent:
    return send(body, **properties)


class SyncQueue:
    """A remote queue: `msmqwire.qm.client.queue.Queue` without ``await``.

    Attributes:
        format_name: its format name.
    """

    def __init__(self, connection: SyncConnection, queue: Queue) -> None:
        self._connection, self._queue = connection, queue
        self.format_name = queue.format_name

    def send(
        self, body: bytes | str = b"", *, transactional: bool = False, **properties: Unpack[Properties]
    ) -> SyncSent:
        """Send a message. See `msmqwire.qm.client.queue.Queue.send`."""
        sent = self._connection.run(self._queue.send(body, transactional=transactional, **properties))
        return SyncSent(self._connection, sent)

    @contextmanager
    def transaction(self) -> Iterator[SyncTransactional]:
        """Send several messages in order, all or none; an exception inside the block sends none."""
        entered = self._queue.transaction()
        transactional = self._connection.run(entered.__aenter__())
        try:
            yield SyncTransactional(self._connection, transactional)
        except BaseException as exc:
            self._connection.run(entered.__aexit__(type(exc), exc, exc.__traceback__))
            raise
        self._connection.run(entered.__aexit__(None, None, None))
