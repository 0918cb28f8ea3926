"""A peer of `broken_peers` without sockets: a clock set by the test, and clients of hand-written packets."""

from __future__ import annotations

import heapq
import itertools
import struct
from collections.abc import Callable
from typing import Any

from tests.support import handmade as h
from tests.support.broken_peers.manager import Manager
from tests.support.broken_peers.wire import Crash, Hang
from tests.support.peers.raw_peer import GUID, Message, direct, establish, parameters
from tests.support.qm.received_packets import ReceivedPacket, SessionHeader, cut
from tests.support.qm.session_counts import SessionCounts

ORDERS = direct(r"OS:peer\private$\orders")
TX = direct(r"OS:peer\private$\tx")
MISSING = direct(r"OS:peer\private$\missing")
ADMIN = 2, h.private_id(9)
ADDRESS = "127.0.0.9"


class _Timer:
    def __init__(self, callback: Callable[[], Any]) -> None:
        self.callback: Callable[[], Any] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Clock:
    """The event loop of a peer, simulated."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self._timers: list[tuple[float, int, _Timer]] = []
        self._order = itertools.count()

    def time(self) -> float:
        """Seconds."""
        return self.now

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> _Timer:
        """Call when `advance` comes there."""
        timer = _Timer(lambda: callback(*args))
        heapq.heappush(self._timers, (self.now + delay, next(self._order), timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        while self._timers and self._timers[0][0] <= end:
            self.now, _, timer = heapq.heappop(self._timers)
            if timer.callback is not None:
                timer.callback()
        self.now = end


class World:
    """One peer.

    Attributes:
        ended: "Crash" or "Hang" once the peer has come to that.
        called: the addresses that it wants to connect to.
    """

    def __init__(self, mistake: str | None = None, **options: Any) -> None:
        self.clock = Clock()
        self.manager = Manager(self.clock, mistake, **options)
        self.makes = self.manager.makes
        self.ended = ""
        self.called: list[str] = []
        self.manager.routes.connect = self.called.append

    def guarded(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call the peer unless it has ended."""
        try:
            return None if self.ended else function(*args)
        except (Crash, Hang, ConnectionResetError) as exc:
            self.ended = "Hang" if isinstance(exc, Hang) else "Crash"
            return None


class Client(SessionCounts):
    """The other side of one session; it counts what it sends and receives, and acknowledges when told to.

    Attributes:
        output: bytes received and not taken yet.
        closed: whether the peer has ended the connection.
    """

    def __init__(self, world: World, *, opened: bool = True, guid: bytes = GUID, **more: Any) -> None:
        super().__init__()
        self.world, self.output, self.closed = world, bytearray(), False
        self.session = world.manager.accept(self, ADDRESS)
        if opened:
            self.send(establish(client=guid))
            self.send(parameters(**{"recoverable": 500, "ack": 20_000, **more}))
            assert [packet.kind for packet in self.take()] == ["EstablishConnection", "ConnectionParameters"]

    # the peer's side of the connection

    def write(self, data: bytes) -> None:
        """Take the packets of the peer."""
        self.output += data

    def close(self) -> None:
        """The peer ends the connection."""
        self.closed = True

    # the client's side

    def send(self, *packets: bytes) -> None:
        """Send bytes in one segment."""
        if self.session is not None:
            self.world.guarded(self.world.manager.receive, self.session, b"".join(packets))

    def push(self, *messages: Message) -> None:
        """Send messages, each in a segment, and count them."""
        for message in messages:
            self.count_sent(recoverable=message.saved)
            self.send(message.bytes())

    def leave(self, *, reset: bool = False) -> None:
        """End the connection."""
        session, manager = self.session, self.world.manager
        self.world.guarded(lambda: manager.lost(session, reset=reset))

    def take(self, seconds: float = 0) -> list[ReceivedPacket]:
        """Let time pass, and return and count the packets that came."""
        self.world.clock.advance(seconds)
        data, self.output = bytes(self.output), bytearray()
        packets = cut(data)
        for packet in packets:
            self.count_received(packet)
        return packets

    def messages(self, seconds: float = 0) -> list[ReceivedPacket]:
        """`take`, without the SessionAcks."""
        return [packet for packet in self.take(seconds) if packet.kind != "SessionAck"]

    def acks(self, seconds: float = 0) -> list[SessionHeader]:
        """`take`, and return the SessionHeaders."""
        return [packet.session_header for packet in self.take(seconds) if packet.session_header is not None]


def message(body: bytes = b"body", queue: tuple[int, bytes] = ORDERS, **more: Any) -> Message:
    """A message to the peer, with an administration queue at the sender if it wants acknowledgements."""
    if more.get("wants"):
        more.setdefault("admin", ADMIN)
    return Message(body, queue, **more)


def in_sequence(number: int, previous: int | None = None, **more: Any) -> Message:
    """A transactional message at a place of a sequence, to a transactional queue by default."""
    sequence = more.pop("sequence", (7, 1))
    previous = number - 1 if previous is None else previous
    return message(queue=more.pop("queue", TX), tx=(*sequence, number, previous), **more)


def patched(packet: bytes, offset: int, form: str, *values: int) -> bytes:
    """A packet with other integers at an offset."""
    data = bytearray(packet)
    struct.pack_into(form, data, offset, *values)
    return bytes(data)
