"""A queue elsewhere to send to, for programs without asyncio: the same, on a thread of its own."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from msmqwire.errors import InvalidValue
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
    """An event loop on a thread, in which a connection is opened and left. Any thread may use it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(_Daemons())
        self._thread = threading.Thread(target=self._serve, name="msmqwire", daemon=True)
        self._lock = threading.Lock()
        self._ended = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in the loop, and wait for it."""
        with self._lock:  # what is given to the loop before it is told to end is done, or cancelled
            future = None if self._ended else asyncio.run_coroutine_threadsafe(work, self._loop)
        if future is None:
            return _at_once(work)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise _left() from None

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

    def _serve(self) -> None:
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


class _Daemons(concurrent.futures.ThreadPoolExecutor):
    """A thread for each call, which nobody waits for: a name may take minutes to be resolved."""

    def submit(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> concurrent.futures.Future[T]:
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        def work() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    found = fn(*args, **kwargs)
                except BaseException as exc:
                    future.set_exception(exc)
                else:
                    future.set_result(found)

        threading.Thread(target=work, name="msmqwire-names", daemon=True).start()
        return future


def _at_once(work: Coroutine[Any, Any, T]) -> T:
    """What can be told, or is refused, without waiting for anything: the connection was left."""
    try:
        work.send(None)
    except StopIteration as done:
        found: T = done.value
        return found
    work.close()
    raise _left()


def _left() -> InvalidValue:
    return InvalidValue("it was left, and can't be used any more", path="connection")


class SyncSent:
    """What becomes of a message that was sent: `msmqwire.qm.client.sent.Sent` without ``await``."""

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
        """Those that have come, in their order."""
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
    """Messages of one transaction, which are sent when it is left."""

    def __init__(self, connection: SyncConnection, transactional: Transactional) -> None:
        self._connection, self._transactional = connection, transactional

    def send(self, body: bytes | str = b"", **properties: Unpack[Properties]) -> SyncSent:
        """One more message. Raises what `SyncQueue.send` raises."""
        return SyncSent(
            self._connection, self._connection.run(_called(self._transactional.send, body, properties))
        )


async def _called(send: Callable[..., Sent], body: bytes | str, properties: Properties) -> Sent:
    return send(body, **properties)


class SyncQueue:
    """A queue elsewhere: `msmqwire.qm.client.queue.Queue` without ``await``.

    Attributes:
        format_name: its name.
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
        """Several messages that arrive all or not at all, in this order; an exception inside sends none."""
        entered = self._queue.transaction()
        transactional = self._connection.run(entered.__aenter__())
        try:
            yield SyncTransactional(self._connection, transactional)
        except BaseException as exc:
            self._connection.run(entered.__aexit__(type(exc), exc, exc.__traceback__))
            raise
        self._connection.run(entered.__aexit__(None, None, None))
