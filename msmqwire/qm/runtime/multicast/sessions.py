"""A source and a receiver of PGM with their timers, as a server runs them."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterable
from ipaddress import IPv4Address
from typing import Final

from msmqwire.pgm.effects import (
    Deliver,
    Ended,
    Finished,
    Joined,
    Lost,
    Multicast,
    ReceiverEffect,
    SourceEffect,
    Transmitted,
    Tsi,
    Unicast,
)
from msmqwire.pgm.memory import Memory
from msmqwire.pgm.receiver import Receiver, ReceiverSettings
from msmqwire.pgm.source import Source, SourceSettings
from msmqwire.qm.runtime.multicast.sockets import Datagram
from msmqwire.service.logs import log

IDLE_S: Final = 300.0
"""Seconds without a message to send after which a session ends; the next message begins another one."""
_NAK_GSI: Final = slice(8, 14)
_NAK_PORT: Final = slice(2, 4)


class Alarm:
    """Calls a function at the time that it asks for."""

    def __init__(self, due: Callable[[], float], action: Callable[[], None]) -> None:
        self._due, self._action = due, action
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None

    def set(self) -> None:
        """Note that the time may have changed. A later time costs one early call."""
        due = self._due()
        if self._handle is not None:
            if self._handle.when() <= due:
                return
            self._handle.cancel()
            self._handle = None
        if due != float("inf"):
            self._handle = self._loop.call_at(due, self._ring)

    def _ring(self) -> None:
        self._handle = None
        if self._loop.time() >= self._due():
            self._action()
        self.set()

    def cancel(self) -> None:
        """Stop calling."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


class MulticastSending:
    """A session of this server as a source.

    Attributes:
        settings: its identity.
        closing: whether nothing may be sent any more.
        requests: the numbers of the requests that have not been sent completely.
    """

    def __init__(
        self,
        settings: SourceSettings,
        transmit: Callable[[bytes], str | None],
        sent: Callable[[int], None],
        ended: Callable[[MulticastSending, str | None], None],
    ) -> None:
        """Begin a session.

        Args:
            settings: its identity.
            transmit: sends to the group; returns the reason why that is impossible, or None.
            sent: called with each request that has been sent.
            ended: called at the end, with the reason if data of waiting requests could not be sent.
        """
        self.settings = settings
        self._transmit, self._sent, self._ended = transmit, sent, ended
        self._loop = asyncio.get_running_loop()
        self._source = Source(settings, self._loop.time(), first=random.getrandbits(32))
        self._alarm = Alarm(self._next_time, self._tick)
        self._used_at = self._loop.time()
        self.requests: Final = deque[int]()
        self.closing = self._finished = False
        self._carry_out(self._source.tick(self._loop.time()))

    def has_room(self, size: int) -> bool:
        """Return whether a message of a number of bytes may wait."""
        return self._source.has_room(size)

    def send(self, request: int, data: bytes) -> None:
        """Send a message. Raises InvalidValue if it is too long or has no room."""
        self._used_at = self._loop.time()
        effects = self._source.send(data, self._used_at)
        self.requests.append(request)
        self._carry_out(effects)

    def received(self, datagram: Datagram) -> None:
        """Take a NAK."""
        self._carry_out(self._source.received(datagram.data, self._loop.time(), datagram.sender))

    def close(self) -> None:
        """Announce the end of the data; repairs continue until the window is empty."""
        if not (self.closing or self._finished):
            self.closing = True
            self._carry_out(self._source.close(self._loop.time()))

    def cancel(self) -> None:
        """End at once, without a notice to receivers."""
        self._finished = True
        self._alarm.cancel()

    def _next_time(self) -> float:
        if self._finished:
            return float("inf")
        idle_at = float("inf") if self.closing else self._used_at + IDLE_S
        return min(self._source.next_time(), idle_at)

    def _tick(self) -> None:
        now = self._loop.time()
        self._carry_out(self._source.tick(now))
        if now >= self._used_at + IDLE_S:
            self.close()

    def _carry_out(self, effects: Iterable[SourceEffect]) -> None:
        why: str | None = None
        for effect in effects:
            match effect:
                case Multicast(data):
                    why = self._transmit(data) or why
                case Transmitted():
                    if why is None:
                        self._sent(self.requests.popleft())
                case Finished():
                    self._finished = True
        broken = why is not None and bool(self.requests)
        if broken or self._finished:
            self.cancel()
            self._ended(self, why if broken else None)
        else:
            self._alarm.set()


class Listening:
    """The reception of one group and port.

    Attributes:
        receiver: follows its sources.
    """

    def __init__(
        self,
        settings: ReceiverSettings,
        memory: Memory,
        nak: Callable[[bytes, IPv4Address, int], None],
        multicast_nak: Callable[[bytes, int], object],
        deliver: Callable[[bytes, IPv4Address], None],
    ) -> None:
        """Listen.

        Args:
            settings: the group and port.
            memory: shared by all receptions.
            nak: sends to an address, and to the UDP port that the source sends from; 0 if that is not known.
            multicast_nak: sends to the group with a TTL.
            deliver: called with each message and the address of its source.
        """
        self._settings = settings
        self._nak, self._multicast_nak, self._deliver = nak, multicast_nak, deliver
        self._loop = asyncio.get_running_loop()
        self.receiver = Receiver(settings, random.random, memory)
        self._alarm = Alarm(self.receiver.next_time, self._tick)
        self._sources: dict[Tsi, Datagram] = {}

    def received(self, datagram: Datagram, ways: int) -> None:
        """Take a packet from the group, whose sender would get a number of copies of a NAK."""
        effects = self.receiver.received(datagram.data, datagram.sender, self._loop.time(), ways)
        self._carry_out(effects, datagram)

    def close(self) -> None:
        """Stop listening."""
        self._alarm.cancel()
        self.receiver.close()

    def _tick(self) -> None:
        self._carry_out(self.receiver.tick(self._loop.time()), None)

    def _carry_out(self, effects: Iterable[ReceiverEffect], datagram: Datagram | None) -> None:
        details = {"group": str(self._settings.group), "port": self._settings.group_port}
        for effect in effects:
            match effect:
                case Deliver(tsi, apdu):
                    self._deliver(apdu, self._sources[tsi].sender)
                case Multicast(data, ttl):
                    self._multicast_nak(data, ttl or 1)
                case Unicast(data, address):
                    source = self._sources[_session_of(data)]
                    if isinstance(address, IPv4Address):
                        self._nak(data, address, source.port if address == source.sender else 0)
                case Joined(tsi):
                    assert datagram is not None, "a source is joined by its packets"
                    self._sources[tsi] = datagram._replace(data=b"")
                    log.debug("follows a source", extra={**details, "peer": str(datagram.sender)})
                case Lost(tsi, first, last):
                    peer = str(self._sources[tsi].sender)
                    log.warning(
                        "multicast data can't be recovered",
                        extra={**details, "peer": peer, "first": first, "last": last},
                    )
                case Ended(tsi, reason):
                    source = self._sources.pop(tsi)
                    log.debug(
                        "stops following a source",
                        extra={**details, "peer": str(source.sender), "reason": reason.value},
                    )
        self._alarm.set()


def _session_of(nak: bytes) -> Tsi:
    """Return the session that a NAK of this server is for."""
    return Tsi(nak[_NAK_GSI], int.from_bytes(nak[_NAK_PORT], "big"))
