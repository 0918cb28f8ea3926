"""A relay before a right peer: it makes of that a peer which is gone for some time, or hangs."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from typing import Final

READ_SIZE: Final = 1 << 16
HOW: Final = ("silent", "a byte at a time", "does not read")
"""The ways to hang: all bytes are read and none is answered, one is read in each tenth of a second, or none.
"""


class TroubledRelay:
    """Relays connections to another port of its address until there is trouble.

    Args:
        address: where it listens, at a port of its own.
        port: the port of the right peer.
        deadly: bytes after which it refuses all connections for `gone_s`; empty for none.
        gone_s: seconds.
        hangs: one of `HOW`, for all connections after the first `served`; empty for none.
        served: the connections that are relayed before.
    """

    def __init__(
        self,
        address: str,
        port: int,
        *,
        deadly: bytes = b"",
        gone_s: float = 0.0,
        hangs: str = "",
        served: int = 0,
    ) -> None:
        self.address, self._peer = address, (address, port)
        self._deadly, self._gone_s, self._hangs, self._served = deadly, gone_s, hangs, served
        self._listener = socket.create_server((address, 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self.outages = 0

    def run(self) -> None:
        """Accept connections until the end."""
        while not self._ended.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                self._ended.wait(0.01)
                continue
            with self._lock:
                self._open.add(sock)
                self._served -= 1
                hangs = self._hangs if self._served < 0 else ""
            threading.Thread(target=self._hang if hangs else self._relay, args=(sock,), daemon=True).start()

    def end(self) -> None:
        """End everything."""
        self._ended.set()
        self._drop()

    def _drop(self) -> None:
        with self._lock:
            dropped, self._open = {self._listener, *self._open}, set()
        for sock in dropped:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _hang(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while not self._ended.wait(0.1):
                if self._hangs == "silent" and not sock.recv(READ_SIZE):
                    return
                if self._hangs == "a byte at a time" and not sock.recv(1):
                    return

    def _relay(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError), socket.create_connection(self._peer) as peer:
            with self._lock:
                self._open.add(peer)
            while True:
                for ready in select.select([sock, peer], [], [])[0]:
                    data = ready.recv(READ_SIZE)
                    if self._deadly and self._deadly in data:
                        self._go()
                    if not data:
                        return sock.close()
                    (peer if ready is sock else sock).sendall(data)
        sock.close()

    def _go(self) -> None:
        """Be gone for some time: connections are refused."""
        self._drop()
        self.outages += 1
        self._ended.wait(self._gone_s)
        if not self._ended.is_set():
            self._listener = socket.create_server((self.address, self.port), backlog=64)


@contextlib.contextmanager
def troubled_relay(address: str, port: int, **how: object) -> Iterator[TroubledRelay]:
    """Run a relay for a while."""
    relay = TroubledRelay(address, port, **how)  # type: ignore[arg-type]
    thread = threading.Thread(target=relay.run, daemon=True)
    thread.start()
    try:
        yield relay
    finally:
        relay.end()
        thread.join()
