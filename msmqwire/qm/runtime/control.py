"""The control channel of a server: how commands and programs of its computer use its queues.

Lines of JSON both ways. A request is ``{"id": any, "op": name, ...}``; its answer bears the same id and
``"answer"`` or ``"error"``. Requests are begun in their order, and answered when what they did is durable, so
that many may be under way. What was received and not ended goes back when the connection ends.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

from msmqwire.errors import InvalidName, LocatedError, QueueError, StoreError
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.folder import ControlAddress, DataFolder
from msmqwire.qm.runtime.logs import log
from msmqwire.qm.runtime.operations import LocalSession, error_json

VALUE, NAME, QUEUE, FAULT = "value", "name", "queue", "fault"
"""The kinds of errors: a value or a name is wrong, the queue manager refuses, or msmqwire is at fault."""
REQUEST_MAX: Final = 16 << 20
"""Bytes of one request."""
_UNANSWERED_MAX: Final = 1000
_SOCKET_PATH_MAX: Final = 100
_LOOPBACK: Final = "127.0.0.1"
_PREFIX: Final = "msmqwire-"
_FINISH_S: Final = 10.0
"""How long a stop waits until what was begun is durable and answered."""
_ENTER_S: Final = 10.0
_STRANGERS_MAX: Final = 32
_FIRST_LINE_MAX: Final = 4096
"""What those may take who have not shown the token yet."""


class ControlServer:
    """Listens for those who may read the folder."""

    def __init__(self, driver: EngineDriver, folder: DataFolder) -> None:
        self._driver, self._folder = driver, folder
        self._server: asyncio.Server | None = None
        self._own_folder: Path | None = None
        self._users: set[_User] = set()
        self._token = ""
        self._socket: Path | None = None

    async def start(self, *, tcp: bool = os.name == "nt") -> None:
        """Listen, at a Unix socket or else at a TCP port of the loopback, and write down where.

        Raises OSError.
        """
        loop = asyncio.get_running_loop()
        self._tidy()
        if tcp:
            self._token = secrets.token_urlsafe(32)
            self._server = await loop.create_server(lambda: _User(self), _LOOPBACK, 0)
            port = self._server.sockets[0].getsockname()[1]
            self._folder.tell_control(ControlAddress(port=port, token=self._token))
            return
        path = self._folder.socket_path
        if len(os.fsencode(path)) > _SOCKET_PATH_MAX:  # of the system: 104 to 108 bytes
            self._own_folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
            path = self._own_folder / path.name
        path.unlink(missing_ok=True)  # of a server that was killed: the store says that none runs
        before = os.umask(0o177)
        try:
            self._server = await loop.create_unix_server(lambda: _User(self), path)
        finally:
            os.umask(before)
        self._socket = path
        self._folder.tell_control(ControlAddress(path=str(path)))

    def _tidy(self) -> None:
        """Remove the folder that a server which was killed had made for its socket."""
        before = self._folder.control()
        found = Path(before.path) if before is not None else Path()
        if found.parent.name.startswith(_PREFIX) and found.parent.parent == Path(tempfile.gettempdir()):
            with suppress(OSError):
                found.unlink(missing_ok=True)
                found.parent.rmdir()

    async def stop(self) -> None:
        """Take no more requests, end those that wait, answer the others, and give back what was not ended."""
        self._folder.forget_control()
        if self._server is not None:
            self._server.close()
        finishing = [asyncio.ensure_future(user.finish()) for user in list(self._users)]
        if finishing:
            await asyncio.wait(finishing, timeout=_FINISH_S)
        for user in list(self._users):
            user.end()
        if self._socket is not None:
            self._socket.unlink(missing_ok=True)
        if self._own_folder is not None:
            self._own_folder.rmdir()
            self._own_folder = None

    @property
    def users(self) -> int:
        """How many are connected."""
        return len(self._users)

    def new_session(self, user: _User) -> LocalSession:
        """A new user."""
        self._users.add(user)
        return LocalSession(self._driver)

    def forget(self, user: _User) -> None:
        """A user is gone."""
        self._users.discard(user)

    @property
    def lets_in(self) -> bool:
        """Whether nobody has to show a token: only the owner of the folder can open its socket."""
        return not self._token

    @property
    def is_crowded(self) -> bool:
        """Whether too many are here that have not shown the token."""
        return sum(not user.entered for user in self._users) > _STRANGERS_MAX

    def may_enter(self, request: dict[str, Any]) -> bool:
        """Whether somebody who came over TCP knows the token."""
        given = request.get("token")
        if not isinstance(given, str):
            return False
        return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self._token.encode())


def _told(why: str, kind: str) -> dict[str, Any]:
    return {"error": why, "path": "", "offset": None, "kind": kind}


class _User(asyncio.Protocol):
    """One connection.

    Attributes:
        entered: whether its requests are listened to.
    """

    def __init__(self, server: ControlServer) -> None:
        self._server = server
        self._session: LocalSession | None = None
        self.entered = server.lets_in
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._searched = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._reads = asyncio.Event()  # it takes what it is answered
        self._reads.set()
        self._finishing: asyncio.Task[None] | None = None
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it
        self._session = self._server.new_session(self)
        if not self.entered:
            self._patience = asyncio.get_running_loop().call_later(_ENTER_S, self.end)
            if self._server.is_crowded:
                self.end()

    def connection_lost(self, exc: Exception | None) -> None:
        self.end()

    def eof_received(self) -> bool:
        """It asks for nothing more, and may read on: whether the connection stays until all is answered."""
        if self._tasks:
            self._finishing = asyncio.ensure_future(self.finish())
        return bool(self._tasks)

    async def finish(self) -> None:
        """Begin nothing more, wait for nothing, answer what was begun, then end."""
        self._buffer.clear()
        self._finishing = self._finishing or asyncio.current_task()
        if self._session is not None:
            self._session.stop_waiting()
        while self._tasks:
            await asyncio.wait(self._tasks)
        self.end()

    def end(self) -> None:
        """Nothing more is done and answered; what was not ended goes back."""
        self._buffer.clear()
        if self._patience is not None:
            self._patience.cancel()
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
        self._begin()
        limit = REQUEST_MAX if self.entered else _FIRST_LINE_MAX
        if self._searched > limit:
            log.warning("a request on the control channel is too long", extra={"limit": limit})
            self.end()

    def _begin(self) -> None:
        """Begin the requests that have come, as long as not too much is under way or not read."""
        while not self._is_busy and (end := self._buffer.find(b"\n", self._searched)) >= 0:
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._searched = 0
            self._line(line)
        if not self._is_busy:
            self._searched = len(self._buffer)
        if self._transport is not None and not self._transport.is_closing():
            (self._transport.pause_reading if self._is_busy else self._transport.resume_reading)()

    @property
    def _is_busy(self) -> bool:
        return len(self._tasks) >= _UNANSWERED_MAX or not self._reads.is_set()

    def pause_writing(self) -> None:
        self._reads.clear()

    def resume_writing(self) -> None:
        self._reads.set()
        self._begin()

    def _line(self, line: bytes) -> None:
        try:
            request = json.loads(line)
            why = None if isinstance(request, dict) else "not an object"
        except (ValueError, RecursionError) as exc:
            request, why = {}, f"not JSON: {exc}"
        if not self.entered:
            if why is not None or not self._server.may_enter(request):
                log.warning("a wrong token on the control channel")
                self.end()
                return
            self.entered = True
            if self._patience is not None:
                self._patience.cancel()
        if why is not None:
            self._answer(None, {"error": _told(why, VALUE)})
            return
        request.pop("token", None)
        task = asyncio.get_running_loop().create_task(self._run(request.pop("id", None), request))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._finishing is None:
            self._begin()

    async def _run(self, number: object, request: dict[str, Any]) -> None:
        assert self._session is not None, "requests come over a connection"
        while not self._reads.is_set():
            await self._reads.wait()
        try:
            answer: dict[str, Any] = {"answer": await self._session.run(request)}
        except InvalidName as exc:
            answer = {"error": {**error_json(exc), "kind": NAME, "hresult": f"0x{exc.hresult:08X}"}}
        except LocatedError as exc:
            answer = {"error": {**error_json(exc), "kind": VALUE}}
        except QueueError as exc:
            answer = {"error": {**error_json(exc), "kind": QUEUE}}
        except StoreError:  # the server ends, as its log says
            self.end()
            return
        except Exception as exc:
            log.exception("a request on the control channel failed")
            answer = {"error": _told(f"a fault of msmqwire itself: {exc!r}", FAULT)}
        self._answer(number, answer)

    def _answer(self, number: object, answer: dict[str, Any]) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(json.dumps({"id": number, **answer}).encode() + b"\n")
