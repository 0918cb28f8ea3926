"""The traffic between a case and the peer, and its pcap file."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from ipaddress import ip_address
from typing import Literal

from msmqwire.qm.sim.capture import Capture, CapturedConnection

EventKind = Literal["open", "sent", "received", "closed", "datagram sent", "datagram received"]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that passed.

    Attributes:
        at: seconds of the monotonic clock.
        kind: its kind.
        connection: its number in the recording.
        data: the bytes.
    """

    at: float
    kind: EventKind
    connection: int
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Ends:
    """The addresses and ports of a connection, and the side that opened it.

    Attributes:
        client: the address and port of the side that opened it.
        server: the address and port of the other side.
        ours: whether this side opened it.
    """

    client: tuple[str, int]
    server: tuple[str, int]
    ours: bool


@dataclass(slots=True)
class Recording:
    """The traffic of one performance of a case, over all its connections, in order.

    Attributes:
        events: the events in order.
        ends: the ends of each connection.
        packets: the number of our sends that were recorded.
        size: the bytes that were sent.
        received: the bytes that were received.
        until: the time after which nothing is waited for any more, by the monotonic clock.
    """

    events: list[Event] = field(default_factory=list)
    ends: list[Ends] = field(default_factory=list)
    packets: int = 0
    size: int = 0
    received: int = 0
    until: float = math.inf
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def connection(self, ends: Ends) -> int:
        """Return the number of a new connection."""
        with self._lock:
            self.ends.append(ends)
            number = len(self.ends) - 1
        self.note("open", number)
        return number

    def deadline(self, seconds: float) -> float:
        """Return the end of a wait of some seconds that begins now, by the monotonic clock."""
        return min(time.monotonic() + seconds, self.until)

    def note(self, kind: EventKind, connection: int, data: bytes = b"") -> None:
        """Record an event that happens now."""
        with self._lock:
            self.events.append(Event(time.monotonic(), kind, connection, data))
            if kind in ("sent", "datagram sent"):
                self.packets += 1
                self.size += len(data)
            else:
                self.received += len(data)


def pcap_of(recordings: Sequence[Recording]) -> bytes:
    """Return the traffic as a capture file; an address that is not of IPv4 is written as 127.0.0.1."""
    begin = min((event.at for recording in recordings for event in recording.events), default=0.0)
    file = BytesIO()
    capture = Capture(file)
    for recording in recordings:
        _write(recording, capture, begin)
    return file.getvalue()


def _write(recording: Recording, capture: Capture, begin: float) -> None:
    connections: dict[int, CapturedConnection] = {}
    for event in recording.events:
        now, ends = int((event.at - begin) * 1000), recording.ends[event.connection]
        client, server = _ipv4(ends.client[0]), _ipv4(ends.server[0])
        match event.kind:
            case "open":
                continue
            case "datagram sent":
                capture.datagram(now, client, server, ends.server[1], event.data)
            case "datagram received":
                capture.datagram(now, server, client, ends.client[1], event.data)
            case "closed":
                if event.connection in connections:
                    connections[event.connection].close(now)
            case _:
                if event.connection not in connections:
                    connections[event.connection] = capture.connection(now, client, server, ends.server[1])
                by_client = (event.kind == "sent") == ends.ours
                connections[event.connection].data(now, 0 if by_client else 1, event.data)


def _ipv4(address: str) -> str:
    return address if ip_address(address).version == 4 else "127.0.0.1"
