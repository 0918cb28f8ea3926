r"""Sending to queues from programs: ``msmqwire.connect(r"DIRECT=TCP:10.0.0.5\private$\orders")``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from msmqwire.errors import InvalidValue
from msmqwire.names import parse_format_name
from msmqwire.qm.client.connection import Connection
from msmqwire.qm.client.queue import Queue
from msmqwire.qm.client.sent import Acknowledgement, Sent
from msmqwire.qm.client.synchronous import SyncQueue
from msmqwire.qm.runtime.transport import TCP_PORT, AddressOverrides

_PORT_MAX: Final = 0xFFFF

__all__ = ["Acknowledgement", "Connection", "Queue", "Sent", "SyncQueue", "connect"]


def connect(
    format_name: str,
    *,
    state: str | os.PathLike[str] | None = None,
    port: int = TCP_PORT,
    hosts: Mapping[str, tuple[str, int | None]] | None = None,
    listen: tuple[str, int] | None = None,
    drain: float = 30.0,
) -> Connection:
    r"""A way to a queue of any queue manager that takes sessions of [MS-MQQB] on TCP.

    Enter it with ``async with``, which gives a `Queue`, or with ``with``, which gives a `SyncQueue`: the
    same without ``await`` for any number of threads. A small queue manager of its own runs inside until it is
    left, so that what is sent is kept, sent again and acknowledged as the protocol wants it. Leaving waits
    until all is transferred, but not when an exception leaves the block. It raises NotDelivered if a message
    was refused or given up and nobody was told.

    Args:
        format_name: the queue, ``DIRECT=TCP:10.0.0.5\private$\orders`` for one; several with commas between.
            The computer ``.`` is this one.
        state: a file for what is recoverable and not transferred yet, made if it is missing: it is sent when
            the same file is used again. Without one it is kept in memory, and gone with the process.
        port: the TCP port of the other side.
        hosts: where computers are that can't be found by their names: by name, address and port or None.
        listen: address and port at which the other side can reach this one, for acknowledgements. Without it
            they come back over the session that the message went out on.
        drain: seconds that leaving waits at most.

    Raises:
        InvalidName: the format name is none.
        InvalidValue: another argument is wrong; its name is the path.
    """
    if not isinstance(format_name, str):
        raise InvalidValue(f"{format_name!r:.100} is not a text", path="format_name")
    parse_format_name(format_name)
    if state is not None and not isinstance(state, str | os.PathLike):
        raise InvalidValue(f"{state!r:.100} is not the name of a file", path="state")
    _check_port(port, "port")
    places: dict[str, tuple[str, int | None]] = {".": ("127.0.0.1", None)}
    for name, place in (hosts or {}).items():
        places[name.lower()] = _place(place, f"hosts[{name}]")
    if listen is not None:
        _place(listen, "listen", least=0)
    if isinstance(drain, bool) or not isinstance(drain, int | float) or not drain >= 0:
        raise InvalidValue(f"{drain!r:.100} is no number of seconds", path="drain")
    return Connection(format_name, state, AddressOverrides(port, hosts=places), listen, drain)


def _check_port(port: object, path: str, least: int = 1) -> None:
    if isinstance(port, bool) or not isinstance(port, int) or not least <= port <= _PORT_MAX:
        raise InvalidValue(f"{port!r:.100} is not a port, {least} to {_PORT_MAX}", path=path)


def _place(place: tuple[str, int | None], path: str, least: int | None = None) -> tuple[str, int | None]:
    """An address and a port; the port may be None where none is asked for."""
    if not isinstance(place, tuple) or len(place) != 2 or not isinstance(place[0], str):
        raise InvalidValue(f"{place!r:.100} is not an address and a port", path=path)
    if least is not None or place[1] is not None:
        _check_port(place[1], path, 1 if least is None else least)
    return place
