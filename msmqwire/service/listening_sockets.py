"""Listening sockets that survive a process without free file descriptors.

The servers of asyncio retry without a pause, with a traceback each time.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from ipaddress import IPv4Address, ip_address
from typing import Any, Final

from msmqwire.service.endpoints import canonical
from msmqwire.service.logs import log

PAUSE_S: Final = 0.5
"""Seconds after which an accept that the system has refused is retried."""
_BACKLOG: Final = 512
_OPENING_MAX: Final = 16
"""Limit of connections accepted in a row, before they count among those of their owner."""
_OF_THE_PEER: Final = frozenset(
    getattr(errno, name)
    for name in (
        "ECONNABORTED", "ECONNRESET", "EPROTO", "ENETDOWN", "ENOPROTOOPT", "EHOSTDOWN", "EHOSTUNREACH",
        "ENETUNREACH", "ETIMEDOUT", "EPERM",
    )
    if hasattr(errno, name)
)  # fmt: skip
"""Errors of the connection to accept; the next one may be good."""

AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]
Factory = Callable[[], asyncio.BaseProtocol]
"""Makes the protocol of a new connection."""
Admits = Callable[[str], bool]
"""Whether a connection from an address is accepted; one that is not is closed at once."""


class ListeningSockets:
    """The sockets at which connections of one kind are accepted.

    Args:
        admits: asked about each connection before it costs more than its socket; None for all.
    """

    def __init__(self, admits: Admits | None = None) -> None:
        self._admits = admits
        self._bound: list[tuple[socket.socket, Factory]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._opening: set[asyncio.Task[None]] = set()
        self._ending: list[asyncio.Task[None]] = []

    def __bool__(self) -> bool:
        """Return whether connections are accepted."""
        return bool(self._tasks)

    async def bind(self, address: str, port: int, factory: Factory) -> int:
        """Listen at one more address; connections wait for `accept`.

        Returns the port, which the system chooses for 0. Raises OSError.
        """
        infos = await _addresses(address, port)
        sockets: list[socket.socket] = []
        try:
            for family, kind, protocol, _, at in infos:
                sockets.append(sock := socket.socket(family, kind, protocol))
                _prepare(sock, at)
        except BaseException:
            for sock in sockets:
                sock.close()
            raise
        self._bound += ((sock, factory) for sock in sockets)
        return int(sockets[0].getsockname()[1])

    def accept(self) -> None:
        """Begin to accept connections."""
        bound, self._bound = self._bound, []
        self._tasks += (_begin(self._accept(sock, factory)) for sock, factory in bound)

    def close(self) -> None:
        """Accept no more connections."""
        for sock, _ in self._bound:
            sock.close()
        self._bound = []
        self._ending += (*self._tasks, *self._opening)
        for task in self._ending:
            task.cancel()
        self._tasks = []

    async def wait_closed(self) -> None:
        """Wait until the sockets are closed."""
        ending, self._ending = self._ending, []
        await asyncio.gather(*ending, return_exceptions=True)

    async def _accept(self, sock: socket.socket, factory: Factory) -> None:
        loop = asyncio.get_running_loop()
        with sock:  # closed only once the loop has stopped to watch it
            while True:
                try:
                    accepted, peer = await loop.sock_accept(sock)
                except OSError as exc:
                    if exc.errno not in _OF_THE_PEER:
                        log.error("no connection can be accepted; retried", extra={"error": str(exc)})
                        await asyncio.sleep(PAUSE_S)
                    continue
                if self._admits is not None and not self._admits(canonical(peer[0])):
                    accepted.close()
                    await asyncio.sleep(0)  # a flood of them would keep the loop for itself
                    continue
                opening = _begin(self._open(accepted, factory))
                self._opening.add(opening)
                opening.add_done_callback(self._opening.discard)
                if len(self._opening) >= _OPENING_MAX:
                    await asyncio.wait(self._opening, return_when=asyncio.FIRST_COMPLETED)

    async def _open(self, accepted: socket.socket, factory: Factory) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(factory, accepted)
        except OSError as exc:
            accepted.close()
            log.info("a connection was lost at once", extra={"error": str(exc)})


def _begin(work: Coroutine[None, None, None]) -> asyncio.Task[None]:
    """Start a task that is not awaited: an unforeseen exception is reported to the loop."""
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(_report)
    return task


def _report(task: asyncio.Task[None]) -> None:
    exc = None if task.cancelled() else task.exception()
    if exc is not None:
        context = {"message": "a connection can't be accepted", "exception": exc, "task": task}
        task.get_loop().call_exception_handler(context)


async def _addresses(address: str, port: int) -> list[AddressInfo]:
    """Return the addresses to listen at: several for the name of a host, or for all addresses."""
    with suppress(ValueError):
        family = socket.AF_INET if isinstance(ip_address(address), IPv4Address) else socket.AF_INET6
        return [(family, socket.SOCK_STREAM, 0, "", (address, port))]
    resolve = partial(
        socket.getaddrinfo, address or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    found = await asyncio.get_running_loop().run_in_executor(None, resolve)
    return list(dict.fromkeys(found))


def _prepare(sock: socket.socket, at: tuple[Any, ...]) -> None:
    """Bind and listen, as the servers of asyncio do."""
    if os.name == "posix":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        sock.bind(at)
        sock.listen(_BACKLOG)
    except OSError as exc:
        raise OSError(exc.errno, f"{at[0]} port {at[1]}: {exc.strerror or exc}") from None
    sock.setblocking(False)
