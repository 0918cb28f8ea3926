r"""Sending to queues from programs: ``msmqwire.connect(r"DIRECT=TCP:10.0.0.5\private$\orders")``."""

from __future__ import annotations

import os
from collections.abc import Mapping

from msmqwire.names import parse_format_name
from msmqwire.qm.client.connection import Connection
from msmqwire.qm.client.plain import PlainQueue
from msmqwire.qm.client.queue import Queue
from msmqwire.qm.client.sent import Acknowledgement, Sent
from msmqwire.qm.service.network import TCP_PORT, Ways

__all__ = ["Acknowledgement", "Connection", "PlainQueue", "Queue", "Sent", "connect"]


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

    Enter it with ``async with``, which gives a `Queue`, or with ``with``, which gives a `PlainQueue`: the
    same without ``await``. A small queue manager of its own runs inside until it is left, so that what is
    sent is kept, sent again and acknowledged as the protocol wants it. Leaving waits until all is
    transferred.

    Args:
        format_name: the queue, ``DIRECT=TCP:10.0.0.5\private$\orders`` for one; several with commas between.
        state: a file for what is recoverable and not transferred yet, made if it is missing: it is sent when
            the same file is used again. Without one it is kept in memory, and gone with the process.
        port: the TCP port of the other side.
        hosts: where computers are that can't be found by their names: by name, address and port or None.
        listen: address and port at which the other side can reach this one, for acknowledgements. Without it
            they come back over the session that the message went out on.
        drain: seconds that leaving waits at most.

    Raises:
        InvalidName: the format name is none.
    """
    parse_format_name(format_name)
    places = {name.lower(): place for name, place in (hosts or {}).items()}
    return Connection(format_name, state, Ways(port, hosts=places), listen, drain)
