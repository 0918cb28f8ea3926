"""The end of a connection, waited for on a socket."""

from __future__ import annotations

import socket
from contextlib import suppress


def has_ended(connection: socket.socket) -> bool:
    """Wait until the peer ends a connection, whatever it still sends; TimeoutError if it does not."""
    with suppress(ConnectionError):
        while connection.recv(1 << 16):
            pass
    return True
