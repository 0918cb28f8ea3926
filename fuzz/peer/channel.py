"""A TCP connection to a peer that is read with a deadline, recorded, and may be cut into segments."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Final

from fuzz.peer.recording import Ends, Recording

READ_SIZE: Final = 1 << 16
RECEIVED_MAX: Final = 64 << 20
"""Bytes that are taken from a peer in one case, on all connections."""
READS_MAX: Final = 16
"""Reads in a row of one connection."""
_LEAST_S: Final = 0.001
"""A time-out of 0 would mean something else to a socket."""
ACCEPTED_MAX: Final = 128
"""Connections that a peer may open in one case."""


class Channel:
    """One connection to the peer, or one that the peer has made.

    Attributes:
        sock: its socket.
        closed: whether the other side has ended it, or this one.
        reset: whether the other side has ended it by a RST.
        received: the number of bytes received.
    """

    def __init__(self, sock: socket.socket, recording: Recording, *, ours: bool) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
        self.sock, self._recording = sock, recording
        here, there = sock.getsockname()[:2], sock.getpeername()[:2]
        client, server = (here, there) if ours else (there, here)
        self._number = recording.connection(Ends(client, server, ours))
        self.closed = self.reset = False
        self.received = 0

    @classmethod
    def connect(
        cls, at: tuple[str, int], source: str | None, recording: Recording, timeout: float
    ) -> Channel:
        """Connect to the peer. Raises OSError."""
        origin = (source, 0) if source else None
        timeout = max(_LEAST_S, recording.deadline(timeout) - time.monotonic())
        return cls(socket.create_connection(at, timeout, origin), recording, ours=True)

    def send(self, data: bytes, deadline: float, cuts: tuple[int, ...] = ()) -> bool:
        """Send bytes, in segments that end at `cuts`; return whether the other side took them all."""
        starts = [0, *(cut for cut in sorted(cuts) if 0 < cut < len(data)), len(data)]
        for start, stop in pairwise(starts):
            if start:
                time.sleep(0.001)  # else the kernel may join the segments
            if not self._send(data[start:stop], deadline):
                return False
        return True

    def _send(self, data: bytes, deadline: float) -> bool:
        view = memoryview(data)
        while view and not self.closed:
            try:
                sent = self.sock.send(view)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    break
                select.select([], [self.sock], [], max(0.0, deadline - time.monotonic()))
                continue
            except OSError as exc:
                self._ended(reset=isinstance(exc, ConnectionResetError))
                break
            self._recording.note("sent", self._number, bytes(view[:sent]))
            view = view[sent:]
        return not view

    def read(self) -> bytes:
        """Return the bytes received, without waiting; empty for none, and when the time is over."""
        if self.closed or time.monotonic() >= self._recording.until:
            return b""
        try:
            data = self.sock.recv(READ_SIZE)
        except BlockingIOError:
            return b""
        except OSError as exc:
            self._ended(reset=isinstance(exc, ConnectionResetError))
            return b""
        if not data:
            self._ended(reset=False)
            return b""
        self.received += len(data)
        self._recording.note("received", self._number, data)
        if self._recording.received > RECEIVED_MAX:
            self.close()
        return data

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes received, without waiting: not all of an endless answer, so that deadlines hold."""
        for _ in range(READS_MAX):
            data = self.read()
            if not data:
                return
            yield data

    def _ended(self, *, reset: bool) -> None:
        self.closed, self.reset = True, reset
        self._recording.note("closed", self._number)
        self.sock.close()

    def finish(self) -> None:
        """End the direction of this side only."""
        with suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    def close(self, *, reset: bool = False) -> None:
        """End the connection, by a RST if that is wanted."""
        if self.closed:
            return
        if reset:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._ended(reset=False)


def accepted(listener: socket.socket, recording: Recording, before: int) -> Channel | None:
    """Return the next connection that the peer has opened; None if there is none, or it has gone.

    `before` are the connections of the case so far; beyond `ACCEPTED_MAX` they are closed at once.
    """
    try:
        sock, _ = listener.accept()
    except OSError:
        return None
    try:
        if before < ACCEPTED_MAX:
            return Channel(sock, recording, ours=False)
    except OSError:  # reset before it was looked at
        pass
    sock.close()
    return None


def wait_for(channels: list[Channel], listeners: list[socket.socket], deadline: float) -> bool:
    """Wait until bytes have come on one of them; return False when the deadline has passed."""
    sockets = [*(channel.sock for channel in channels if not channel.closed), *listeners]
    remaining = deadline - time.monotonic()
    if remaining <= 0 or not sockets:
        return False
    return bool(select.select(sockets, [], [], remaining)[0])
