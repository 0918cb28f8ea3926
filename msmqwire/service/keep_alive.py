"""TCP probes, which detect a peer that has vanished."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

_PROBES: Final[Mapping[str, int]] = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""Seconds of silence, between probes, and their number."""


def keep_alive(sock: socket.socket | None) -> None:
    """Make a connection end two minutes after its peer has vanished, instead of the hours that systems
    take.
    """
    if sock is None:
        return
    with suppress(OSError):  # it has ended already
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _PROBES.items():
            if hasattr(socket, name):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
