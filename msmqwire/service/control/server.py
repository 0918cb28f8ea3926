"""The control channel of a server, by which commands and programs of its computer use its queues.

Both sides send lines of JSON. A request is ``{"id": any, "op": name, ...}``; its response has the same id and
either ``"answer"`` or ``"error"``. Requests are started in order and answered once their changes are durable,
so that many may be pending. Messages of subscriptions are pushed as frames, see `control_frames`. Messages
received and not ended return to their queues when the connection ends.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import secrets
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol, cast

from msmqwire.errors import (
    ChangeWaits,
    EngineFailed,
    InvalidName,
    InvalidValue,
    LocatedError,
    ManagerStopped,
    MsmqError,
    NcpRefused,
    QueueError,
    StoreError,
)
from msmqwire.names.json_words import why_not_json
from msmqwire.names.printable import counted
from msmqwire.service.folder import ControlAddress, ServedFolder
from msmqwire.service.logs import log

VALUE, NAME, QUEUE, NCP, STORE, FAULT = "value", "name", "queue", "ncp", "store", "fault"
WAITS = "waits"
"""Kinds of errors: an invalid value or name, a refusal of the queue manager or of a NetWare file server, a
refusal of the disk that the server survives, an internal error.
"""
BATCH_MAX: Final = 1000
"""Limit of messages in a request."""
WINDOW_MAX: Final = 1000
"""Limit of messages of a subscription not ended."""
FRAMES: Final = "frames"
"""The part of an answer after its JSON, as bytes."""
REQUEST_MAX: Final = 16 << 20
"""Limit of a request in bytes."""
_UNANSWERED_MAX: Final = 1000
_UNREAD_S: Final = 60.0
"""Seconds that a client may leave answers unread."""
_SOCKET_PATH_MAX: Final = 100
_LOOPBACK: Final = "127.0.0.1"
_PREFIX: Final = "msmqwire-"
_FINISH_S: Final = 10.0
"""Seconds that a stop waits for pending requests to be durable and answered."""
_REFUSED_S: Final = 2.0
"""The same limit while the disk refuses commits."""
_AUTHENTICATE_S: Final = 10.0
_UNAUTHENTICATED_MAX: Final = 32
_FIRST_LINE_MAX: Final = 4096
"""Limits of clients that have not sent the token yet: seconds, connections, bytes of the first line."""


class Sink(Protocol):
    """The receiver of messages pushed in a session."""

    @property
    def writable(self) -> bool:
        """Whether the receiver has room for more messages."""

    def when_writable(self, action: Callable[[], None]) -> None:
        """Call `action` once it has room again."""

    def push(self, frames: list[bytes]) -> None:
        """Pass on messages, each as a frame."""

    def subscription_ended(self, subscription: int, error: MsmqError) -> None:
        """Pass on the reason why a subscription has ended by itself."""


class ControlSession(Protocol):
    """The session of one client with a service."""

    async def run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Run a request, and return its answer once its changes are durable.

        `FRAMES` in it are bytes that are sent after the answer.

        Raises LocatedError for an invalid request, QueueError and NcpRefused for a refused one.
        """

    def notify(self, request: Mapping[str, Any]) -> bool:
        """Carry out a request without an answer; return False for any other request. Raises as `run` does."""

    def stop_waiting(self) -> None:
        """End waiting requests, and let none wait from now on."""

    def close(self) -> None:
        """Return the messages that the client holds to their queues."""


class ControlServer:
    """Accepts connections of users who may read the folder."""

    def __init__(
        self,
        open_session: Callable[[Sink], ControlSession],
        folder: ServedFolder,
        *,
        refused: Callable[[], bool],
        outlives_store_errors: bool = False,
    ) -> None:
        """Serve sessions, each made with the receiver of its pushed messages.

        `refused` returns whether the disk refuses commits; `outlives_store_errors` is whether the service
        continues after a StoreError, which is then reported to the client.
        """
        self._open_session, self._folder, self._refused = open_session, folder, refused
        self.outlives_store_errors = outlives_store_errors
        self._server: asyncio.Server | None = None
        self._socket_folder: Path | None = None
        self._clients: set[_Client] = set()
        self._token = ""
        self._socket: Path | None = None

    async def start(self, *, tcp: bool = os.name == "nt") -> None:
        """Listen at a Unix socket, or at a TCP port of the loopback, and write the address to the folder.

        Raises OSError.
        """
        loop = asyncio.get_running_loop()
        self._remove_stale_socket()
        if tcp:
            self._token = secrets.token_urlsafe(32)
            self._server = await loop.create_server(lambda: _Client(self), _LOOPBACK, 0)
            port = self._server.sockets[0].getsockname()[1]
            self._folder.write_control(ControlAddress(port=port, token=self._token))
            return
        path = self._folder.socket_path
        if len(os.fsencode(path)) > _SOCKET_PATH_MAX:  # systems allow 104 to 108 bytes
            self._socket_folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
            path = self._socket_folder / path.name
        path.unlink(missing_ok=True)  # left by a server that was killed: the store is locked, so none runs
        umask = os.umask(0o177)
        try:
            self._server = await loop.create_unix_server(lambda: _Client(self), path)
        finally:
            os.umask(umask)
        self._socket = path
        self._folder.write_control(ControlAddress(path=str(path)))

    def _remove_stale_socket(self) -> None:
        """Remove the socket and its folder that a killed server has left in the temporary folder."""
        address = self._folder.control()
        path = Path(address.path) if address is not None else Path()
        if path.parent.name.startswith(_PREFIX) and path.parent.parent == Path(tempfile.gettempdir()):
            with suppress(OSError):
                path.unlink(missing_ok=True)
                path.parent.rmdir()

    async def stop(self) -> None:
        """Accept no more requests, end waiting ones, answer the others, and return messages not ended."""
        self._folder.remove_control()
        if self._server is not None:
            self._server.close()
        finishing = [asyncio.ensure_future(client.finish()) for client in list(self._clients)]
        if finishing:
            await asyncio.wait(finishing, timeout=_REFUSED_S if self._refused() else _FINISH_S)
        for client in list(self._clients):
            client.end()
        if self._socket is not None:
            self._socket.unlink(missing_ok=True)
        if self._socket_folder is not None:
            self._socket_folder.rmdir()
            self._socket_folder = None

    @property
    def clients(self) -> int:
        """Number of connections."""
        return len(self._clients)

    def new_session(self, client: _Client) -> ControlSession:
        """Register a client and open a session for it."""
        self._clients.add(client)
        return self._open_session(client)

    def forget(self, client: _Client) -> None:
        """Unregister a client."""
        self._clients.discard(client)

    @property
    def is_open(self) -> bool:
        """Whether no token is needed: only the owner of the folder can open its socket."""
        return not self._token

    @property
    def is_crowded(self) -> bool:
        """Whether too many clients have not sent the token yet."""
        return sum(not client.authenticated for client in self._clients) > _UNAUTHENTICATED_MAX

    def has_token(self, request: dict[str, Any]) -> bool:
        """Whether a request of a TCP client has the valid token."""
        token = request.get("token")
        if not isinstance(token, str):
            return False
        return hmac.compare_digest(token.encode("utf-8", "surrogatepass"), self._token.encode())


def check_at_most(request: Mapping[str, Any], there: int, what: str) -> None:
    """Raise InvalidValue if a request would delete more than its ``at_most`` allows."""
    most = request.get("at_most")
    if most is None:
        return
    if isinstance(most, bool) or not isinstance(most, int) or most < 0:
        raise InvalidValue(f"{most!r:.100} is not a number from 0 on", path="at_most")
    if there > most:
        raise InvalidValue(f"it has {counted(there, what)} by now", path="at_most")


def _error(reason: str, kind: str) -> dict[str, Any]:
    return {"error": reason, "path": "", "offset": None, "kind": kind}


def _error_json(exc: Exception) -> dict[str, Any]:
    """Return an error as clients receive it."""
    match exc:
        case InvalidName():
            return {**exc.to_json(), "kind": NAME, "hresult": f"0x{exc.hresult:08X}"}
        case LocatedError():
            return {**exc.to_json(), "kind": VALUE}
        case ManagerStopped():
            return {**exc.to_json(), "kind": QUEUE, "stops": True}
        case QueueError():
            return {**exc.to_json(), "kind": QUEUE}
        case ChangeWaits():
            return _error(str(exc), WAITS)
        case NcpRefused():
            return {**_error(exc.why, NCP), "code": exc.code}
        case StoreError():
            return {**_error(exc.why, STORE), "file": exc.file}
        case EngineFailed():
            return _error(str(exc), FAULT)
    return _error(f"a fault of msmqwire itself: {exc!r}", FAULT)


class _Client(asyncio.Protocol):
    """A connection of a client.

    Attributes:
        authenticated: whether its requests are accepted.
    """

    def __init__(self, server: ControlServer) -> None:
        self._server = server
        self._session: ControlSession | None = None
        self.authenticated = server.is_open
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._searched = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._not_started = 0  # of the tasks
        self._when_writable: list[Callable[[], None]] = []
        self._writable = asyncio.Event()  # cleared while the client does not read its answers
        self._writable.set()
        self._finishing: asyncio.Task[None] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass
        self._session = self._server.new_session(self)
        if not self.authenticated:
            self._deadline = asyncio.get_running_loop().call_later(_AUTHENTICATE_S, self.end)
            if self._server.is_crowded:
                self.end()

    def connection_lost(self, exc: Exception | None) -> None:
        self.end()

    def eof_received(self) -> bool:
        """Keep the connection open for the answers of pending requests; return whether there are any."""
        if self._tasks:
            self._finishing = asyncio.ensure_future(self.finish())
        return bool(self._tasks)

    async def finish(self) -> None:
        """Start no more requests, end waiting ones, answer the pending ones, then end the connection."""
        self._buffer.clear()
        self._finishing = self._finishing or asyncio.current_task()
        if self._session is not None:
            self._session.stop_waiting()
        while self._tasks:
            await asyncio.wait(self._tasks)
        self.end()

    def end(self) -> None:
        """End the connection at once; messages received and not ended return to their queues."""
        self._buffer.clear()
        for timer in (self._deadline, self._unread):
            if timer is not None:
                timer.cancel()
        for task in self._tasks:
            task.cancel()
        if self._session is not None:
            self._session.close()
        self._server.forget(self)
        if self._transport is not None:
            self._transport.close()

    # -- requests -----------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._finishing is not None:
            return
        self._buffer += data
        self._start_requests()
        limit = REQUEST_MAX if self.authenticated else _FIRST_LINE_MAX
        if self._searched > limit:
            log.warning("a request on the control channel is too long", extra={"limit": limit})
            self.end()

    def _start_requests(self) -> None:
        """Start the requests in the buffer, unless too many are pending or answers are not read."""
        while not self._is_busy and (end := self._buffer.find(b"\n", self._searched)) >= 0:
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._searched = 0
            self._start_request(line)
        if not self._is_busy:
            self._searched = len(self._buffer)
        if self._transport is not None and not self._transport.is_closing():
            (self._transport.pause_reading if self._is_busy else self._transport.resume_reading)()

    @property
    def _is_busy(self) -> bool:
        return len(self._tasks) >= _UNANSWERED_MAX or not self._writable.is_set()

    def pause_writing(self) -> None:
        self._writable.clear()
        if self._unread is None:
            self._unread = asyncio.get_running_loop().call_later(_UNREAD_S, self._give_up)

    def _give_up(self) -> None:
        """End a client that has not read its answers for long; its received messages return to their
        queues.
        """
        log.warning("a client of the control channel does not read its answers: its connection is ended")
        if self._transport is not None:
            self._transport.abort()
        self.end()

    def resume_writing(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        self._writable.set()
        actions, self._when_writable = self._when_writable, []
        for action in actions:
            action()
        self._start_requests()

    def _start_request(self, line: bytes) -> None:
        try:
            request = json.loads(line)
            problem = None if isinstance(request, dict) else "not an object"
        except (ValueError, RecursionError) as exc:
            request, problem = {}, why_not_json(exc)
        if not self.authenticated:
            if problem is not None or not self._server.has_token(request):
                log.warning("a wrong token on the control channel")
                self.end()
                return
            self.authenticated = True
            if self._deadline is not None:
                self._deadline.cancel()
        if problem is not None:
            self._answer(None, {"error": _error(problem, VALUE)})
            return
        request.pop("token", None)
        if "id" not in request and not self._not_started and self._notified(request):
            return
        self._not_started += 1
        task = asyncio.get_running_loop().create_task(self._run(request.pop("id", None), request))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._finishing is None:
            self._start_requests()

    def _notified(self, request: dict[str, Any]) -> bool:
        """Carry out a request without an answer; return False if it is none."""
        assert self._session is not None, "a request needs a connection"
        try:
            return self._session.notify(request)
        except Exception as exc:
            self._fail(None, exc)
            return True

    async def _run(self, number: object, request: dict[str, Any]) -> None:
        assert self._session is not None, "a request needs a connection"
        self._not_started -= 1
        while not self._writable.is_set():
            await self._writable.wait()
        try:
            answer = await self._session.run(request)
        except Exception as exc:
            self._fail(number, exc)
        else:
            frames = answer.pop(FRAMES, ())
            self._answer(number, {"answer": answer}, frames)

    def _fail(self, number: object, exc: Exception) -> None:
        """Answer with the error of a request, or end the connection if the service ends."""
        if isinstance(exc, StoreError) and not self._server.outlives_store_errors:  # it stops and logs why
            self.end()
            return
        if not isinstance(exc, MsmqError):
            log.error("a request on the control channel failed", exc_info=exc)
        self._answer(number, {"error": _error_json(exc)})
        if isinstance(exc, EngineFailed):  # as above; the client can tell whose fault it was
            self.end()

    def _answer(self, number: object, answer: dict[str, Any], frames: Iterable[bytes] = ()) -> None:
        line = json.dumps({"id": number, **answer}).encode() + b"\n"
        self._write(b"".join((line, *frames)))

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    # -- pushed messages ---------------------------------------------------------------------------------

    @property
    def writable(self) -> bool:
        """Whether the client reads its data."""
        return self._writable.is_set()

    def when_writable(self, action: Callable[[], None]) -> None:
        """Call `action` once the client reads again."""
        self._when_writable.append(action)

    def push(self, frames: list[bytes]) -> None:
        """Send messages."""
        self._write(b"".join(frames))

    def subscription_ended(self, subscription: int, error: MsmqError) -> None:
        """Send the reason why a subscription has ended by itself."""
        line = {"subscription": subscription, "error": _error_json(error)}
        self._write(json.dumps(line).encode() + b"\n")
