"""Queues of NetWare file servers for programs: ``msmqwire.netware.connect("10.0.0.5:524", name="ALICE")``."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Final

from msmqwire.errors import InvalidValue
from msmqwire.ncp.headers import NCP_PORT
from msmqwire.ncp.readings import Readings
from msmqwire.ncp.type_names import type_number
from msmqwire.netware.client.connection import ANSWER_S, WHOLE_ANSWER_S, NcpConnection, open_connection
from msmqwire.netware.client.file_server import FileServer, NamedObject, log_in
from msmqwire.netware.client.job import JobEntry
from msmqwire.netware.client.queue import Queue, QueueReport
from msmqwire.netware.client.servicing import ServicedJob
from msmqwire.netware.client.submitting import OpenJob
from msmqwire.netware.model.passwords import to_bytes

if TYPE_CHECKING:
    from msmqwire.netware.client.synchronous import SyncFileServer
    from msmqwire.service.loop_thread import SyncConnection

__all__ = [
    "Connection",
    "FileServer",
    "JobEntry",
    "NamedObject",
    "NcpConnection",
    "OpenJob",
    "Queue",
    "QueueReport",
    "ServicedJob",
    "connect",
]

_PORT_MAX: Final = 0xFFFF


class Connection:
    """The result of `connect`, to be entered once, with ``async with`` or ``with``."""

    def __init__(
        self,
        host: str,
        port: int,
        name: str,
        type_: int,
        password: str,
        answer_s: float,
        readings: Readings,
    ) -> None:
        self._host, self._port = host, port
        self._name, self._type, self._password = name, type_, password
        self._answer_s, self._readings = answer_s, readings
        self._server: FileServer | None = None
        self._entered = False
        self._sync: SyncConnection | None = None

    def _enter(self) -> None:
        if self._entered:
            raise InvalidValue("it was entered before: make another one", path="connection")
        self._entered = True

    async def __aenter__(self) -> FileServer:
        """Connect and log in. Raises NcpLoginRefused, MalformedPacket and Unreachable."""
        self._enter()
        return await self._open()

    async def _open(self) -> FileServer:
        connection = await open_connection(
            self._host,
            self._port,
            answer_s=self._answer_s,
            whole_answer_s=max(WHOLE_ANSWER_S, self._answer_s),
            readings=self._readings,
        )
        try:
            self._server = await log_in(connection, self._name, self._type, self._password)
        except BaseException:
            await connection.close()
            raise
        return self._server

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._leave()

    def __enter__(self) -> SyncFileServer:
        """Do the same in an event loop on a separate thread."""
        from msmqwire.netware.client.synchronous import SyncFileServer
        from msmqwire.service.loop_thread import SyncConnection  # a thread, and the imports for it

        self._enter()
        self._sync = sync = SyncConnection()
        return SyncFileServer(sync, sync.start(self._open()))

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._sync is not None, "it was entered"
        self._sync.stop(self._leave())

    async def _leave(self) -> None:
        assert self._server is not None, "it was entered"
        try:
            await self._server.leave()
        finally:
            await self._server.connection.close()


def connect(
    address: str,
    *,
    name: str,
    type: str | int = "user",
    password: str = "",
    timeout: float = ANSWER_S,
    readings: Mapping[str, str] | None = None,
) -> Connection:
    """Return a connection to a file server, which logs in when it is entered.

    ``async with`` gives a `FileServer`, ``with`` a `SyncFileServer`: the same without ``await``, for any
    number of threads. Leaving it detaches from all queues, logs out and ends the connection.

    Args:
        address: ``ADDRESS:PORT`` or ``[ADDRESS]:PORT`` of NCP over TCP; without a port it is 524.
        name: the name of the bindery object to log in as.
        type: its type, a word of `msmqwire.ncp.type_names.OBJECT_TYPES` or a number.
        password: its password, which is sent in clear, its letters in capitals; empty for an object without
            one.
        timeout: seconds of silence after which the server has failed.
        readings: the byte orders of a server that differ from most, `msmqwire.ncp.readings.Readings` by their
            names: ``{"start_position": "big"}``.

    Raises InvalidValue for an argument; its name is the path.
    """
    if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not timeout > 0:
        raise InvalidValue(f"{timeout!r:.100} is not a number of seconds", path="timeout")
    if not isinstance(name, str) or not name:
        raise InvalidValue(f"{name!r:.100} is not a name", path="name")
    if not isinstance(password, str):
        raise InvalidValue("it is not a text", path="password")
    if password:
        to_bytes(password)
    host, port = parse_address(address)
    return Connection(host, port, name, type_number(type), password, timeout, Readings.of(readings or {}))


def parse_address(text: str) -> tuple[str, int]:
    """Return the address and the port of ``ADDRESS:PORT``. Raises InvalidValue."""
    host, colon, number = text.rpartition(":")
    if not colon or text.endswith("]") or (":" in host and not host.startswith("[")):
        host, number = text, str(NCP_PORT)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    is_number = number.isascii() and number.isdigit()
    if not host or not is_number or len(number) > len(str(_PORT_MAX)) or not 0 < int(number) <= _PORT_MAX:
        raise InvalidValue(f"{text!r:.100} is not ADDRESS:PORT, as 10.0.0.5:{NCP_PORT}", path="address")
    return host, int(number)
