"""The sending side of the small queue manager for tests of the fuzzer: sessions that it opens."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Final
from uuid import UUID

from msmqwire.errors import MalformedPacket
from msmqwire.packets import CONNECTION_PARAMETERS, ESTABLISH_CONNECTION, packet_length, parse
from msmqwire.schema import Record
from tests.support.patience import limit

WINDOW: Final = 64


class Outgoing:
    """A session to another queue manager."""

    def __init__(self, guid: UUID, host: str, *, endless: bool) -> None:
        """Open a session to a host; `endless` is the mistake of a window that is never full."""
        self.guid, self.endless = guid, endless
        self.ended = self.dead = False
        self.waiting: list[Record] = []
        self.wake = threading.Condition()
        threading.Thread(target=self._serve, args=(host,), daemon=True).start()

    def put(self, packet: Record) -> None:
        """Send a message when its turn comes."""
        with self.wake:
            self.waiting.append(packet)
            self.wake.notify()

    def _serve(self, host: str) -> None:
        with (
            contextlib.suppress(OSError, MalformedPacket),
            socket.create_connection((host, 1801), limit(2)) as sock,
        ):
            self._serve_open(sock)
        self.ended = True

    def _serve_open(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        establish = {"ClientGuid": self.guid, "OperatingSystem": {"SE": 1}, "Padding": bytes(512)}
        sock.sendall(ESTABLISH_CONNECTION.build({"EstablishConnectionHeader": establish}))
        packets = _packets(sock)
        if next(packets, None) is None:
            return
        agree = {"RecoverableAckTimeout": 500, "AckTimeout": 20_000, "WindowSize": WINDOW}
        sock.sendall(CONNECTION_PARAMETERS.build({"ConnectionParametersHeader": agree}))
        if next(packets, None) is None:
            return
        sent = acknowledged = 0
        window = 1 << 20 if self.endless else WINDOW
        while not self.dead:
            with self.wake:
                if not self.waiting:
                    self.wake.wait(0.2)
                ready = self.waiting[: max(0, window - (sent - acknowledged))]
                del self.waiting[: len(ready)]
            if ready:
                sock.sendall(b"".join(packet.to_bytes() for packet in ready))
                sent += len(ready)
            while not self.endless and sent > acknowledged and (not ready or sent - acknowledged >= window):
                packet = next(packets, None)
                if packet is None:
                    return
                header = packet.get("SessionHeader")
                acknowledged = acknowledged if header is None else header.AckSequenceNumber


def _packets(sock: socket.socket) -> Iterator[Record]:
    """Yield the packets that come over a connection."""
    buffer = b""
    while data := sock.recv(1 << 16):
        buffer += data
        while len(buffer) >= 16 and len(buffer) >= packet_length(buffer):
            size = packet_length(buffer)
            yield parse(buffer[:size])
            buffer = buffer[size:]
