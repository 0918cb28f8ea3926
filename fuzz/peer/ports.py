"""The ping port of a queue manager: the usual one, or that of its sessions."""

from __future__ import annotations

import select
import socket
import time
from contextlib import suppress
from typing import Final

from msmqwire.ping import PING, PING_PORT, is_ping

_PATIENCE_S: Final = 0.5


def ping_port(host: str, port: int) -> int | None:
    """Return the UDP port at which a host answers a ping: the usual one, or `port`; None for neither."""
    request = PING.build({"Cookie": 1})
    sockets: dict[socket.socket, int] = {}
    try:
        for number in (PING_PORT, port):
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sockets[sock] = number
            with suppress(OSError):
                sock.connect((host, number))
                sock.send(request)
        deadline = time.monotonic() + _PATIENCE_S
        waiting = list(sockets)
        while waiting and (left := deadline - time.monotonic()) > 0:
            for sock in select.select(waiting, [], [], left)[0]:
                waiting.remove(sock)
                with suppress(OSError):
                    if is_ping(sock.recv(1 << 16)):
                        return sockets[sock]
    finally:
        for sock in sockets:
            sock.close()
    return None
