"""Shared by the commands that serve: addresses to listen at, waiting for a folder, and signals."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import Annotated, Final, TypeVar

from click import BadParameter

from msmqwire.cli.options import Option
from msmqwire.errors import StoreInUse
from msmqwire.names.addresses import without_brackets
from msmqwire.names.grammar import PORT_MAX
from msmqwire.names.nearest import unknown_name
from msmqwire.service.control.client import server_of
from msmqwire.service.endpoints import LOOPBACK, Endpoint
from msmqwire.service.folder import ServedFolder

T = TypeVar("T")
_LEVELS: Final = ("debug", "info", "warning", "error")
_RETRY_S: Final = 0.05

LogLevel = Annotated[str, Option(metavar="LEVEL", help=f"Lowest level that is logged: {', '.join(_LEVELS)}.")]


def parse_endpoint(text: str, port: int) -> Endpoint:
    """Parse ``ADDRESS``, ``ADDRESS:PORT``, ``[ADDRESS]:PORT`` or ``:PORT``; `port` is the default.

    Raises BadParameter.
    """
    host, colon, number = text.rpartition(":")
    if not colon or text.endswith("]") or (":" in host and not host.startswith("[")):
        host, number = text, str(port)
    if not number.isascii() or not number.isdigit():
        raise BadParameter(f"{text!r:.80} is not ADDRESS:PORT, as 127.0.0.1:{port or 1801}")
    if len(number) > len(str(PORT_MAX)) or int(number) > PORT_MAX:
        raise BadParameter(f"{text!r:.80} has no port of 0 to {PORT_MAX}, as 127.0.0.1:{port or 1801} has")
    return without_brackets(host) or LOOPBACK, int(number)


def check_level(log: str) -> None:
    """Check the least level of logs. Raises BadParameter."""
    if log not in _LEVELS:
        raise BadParameter(unknown_name(log, _LEVELS, "level").why, param_hint="--log")


def check_host_names(option: str, names: list[str] | None) -> None:
    """Raise BadParameter for a name that no client sends as its Host."""
    for name in names or ():
        if not name or set(name) & set(":/@ "):
            raise BadParameter(f"{option} {name:.100}: a name of a host, without scheme and port")


async def when_free(start: Callable[[], Awaitable[T]], is_served: Callable[[], bool], *, seconds: float) -> T:
    """Start a server; wait so long for a command that has its folder open, but not for another server.

    Raises StoreInUse, and as `start` does.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while True:
        try:
            return await start()
        except StoreInUse:
            if is_served() or loop.time() > until:
                raise
            await asyncio.sleep(_RETRY_S)


def is_served(folder: ServedFolder) -> bool:
    """Return whether a server of a folder can be reached."""
    served = server_of(folder)
    if served is not None:
        served.close()
    return served is not None


def stop_event() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, stop.set)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop.set))
    return stop


def on_hangup(act: Callable[[], None]) -> None:
    """Act on each SIGHUP, where there is one."""
    if hasattr(signal, "SIGHUP"):
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, act)
