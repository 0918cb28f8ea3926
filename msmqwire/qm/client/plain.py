"""A queue elsewhere to send to, for programs without asyncio: the same, on a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msmqwire.qm.client.queue import Properties, Queue, Transactional
from msmqwire.qm.client.sent import Acknowledgement, Sent

if TYPE_CHECKING:
    from typing import Unpack

T = TypeVar("T")


class _Entered(Protocol):
    async def __aenter__(self) -> Queue: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Plain:
    """An event loop on a thread, in which a connection is entered and left."""

    def __init__(self, connection: _Entered) -> None:
        self._connection = connection
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="msmqwire", daemon=True)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in the loop, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def start(self) -> PlainQueue:
        """Enter the connection."""
        self._thread.start()
        try:
            return PlainQueue(self, self.run(self._connection.__aenter__()))
        except BaseException:
            self._end()
            raise

    def stop(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the connection."""
        try:
            self.run(self._connection.__aexit__(kind, value, trace))
        finally:
            self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class PlainSent:
    """What becomes of a message that was sent: `msmqwire.qm.client.sent.Sent` without ``await``."""

    def __init__(self, plain: Plain, sent: Sent) -> None:
        self._plain, self._sent = plain, sent

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
        self._plain.run(self._sent.transferred(timeout))

    def arrived(self, timeout: float | None = None) -> Acknowledgement:
        """See `Sent.arrived`."""
        return self._plain.run(self._sent.arrived(timeout))

    def received(self, timeout: float | None = None) -> Acknowledgement:
        """See `Sent.received`."""
        return self._plain.run(self._sent.received(timeout))

    def acknowledged(self, *classes: int, timeout: float | None = None) -> Acknowledgement:
        """See `Sent.acknowledged`."""
        return self._plain.run(self._sent.acknowledged(*classes, timeout=timeout))


class PlainTransactional:
    """Messages of one transaction, which are sent when it is left."""

    def __init__(self, plain: Plain, transactional: Transactional) -> None:
        self._plain, self._transactional = plain, transactional

    def send(self, body: bytes | str = b"", **properties: Unpack[Properties]) -> PlainSent:
        """One more message. Raises what `PlainQueue.send` raises."""
        return PlainSent(self._plain, self._plain.run(_called(self._transactional.send, body, properties)))


async def _called(send: Callable[..., Sent], body: bytes | str, properties: Properties) -> Sent:
    return send(body, **properties)


class PlainQueue:
    """A queue elsewhere: `msmqwire.qm.client.queue.Queue` without ``await``.

    Attributes:
        format_name: its name.
    """

    def __init__(self, plain: Plain, queue: Queue) -> None:
        self._plain, self._queue = plain, queue
        self.format_name = queue.format_name

    def send(
        self, body: bytes | str = b"", *, transactional: bool = False, **properties: Unpack[Properties]
    ) -> PlainSent:
        """Send a message. See `msmqwire.qm.client.queue.Queue.send`."""
        sent = self._plain.run(self._queue.send(body, transactional=transactional, **properties))
        return PlainSent(self._plain, sent)

    @contextmanager
    def transaction(self) -> Iterator[PlainTransactional]:
        """Several messages that arrive all or not at all, in this order; an exception inside sends none."""
        entered = self._queue.transaction()
        transactional = self._plain.run(entered.__aenter__())
        try:
            yield PlainTransactional(self._plain, transactional)
        except BaseException as exc:
            self._plain.run(entered.__aexit__(type(exc), exc, exc.__traceback__))
            raise
        self._plain.run(entered.__aexit__(None, None, None))
