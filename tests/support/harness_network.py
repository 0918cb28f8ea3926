"""Queue managers in a simulated network: what one harness sends, another receives."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from msmqwire.qm.model.effects import Connect, Disconnect, Effect, Resolve, Send, SendDatagram
from tests.support.engine_harness import (
    OWN_ADDRESS,
    OWN_ID,
    PEER_ADDRESS,
    PEER_ID,
    START_UTC,
    EngineHarness,
)
from tests.support.received_packets import ReceivedPacket, cut

PING_PORT = 3527
CLIENT_PORT = 4242
"""The source port of ping requests."""


class Carried(NamedTuple):
    """A packet sent over the network: a `ReceivedPacket`, or the bytes of a Ping."""

    sender: str
    receiver: str
    kind: str
    packet: Any


class HarnessNetwork:
    """Harnesses that reach each other by name and address and share one clock.

    Attributes:
        delay: milliseconds that packets take.
        harnesses: by computer name.
        log: the packets sent, in order.
        loses: decides from the names of sender and receiver whether a packet is lost.
    """

    def __init__(self, *, delay: int = 0) -> None:
        self.delay, self.now = delay, 0
        self.harnesses: dict[str, EngineHarness] = {}
        self.log: list[Carried] = []
        self.loses: Callable[[str, str, ReceivedPacket], bool] = lambda *_: False
        self._addresses: dict[str, str] = {}
        self._links: dict[tuple[str, int], tuple[str, int]] = {}
        self._travelling: list[tuple[int, Callable[[], None]]] = []

    def add(
        self, name: str, address: str = OWN_ADDRESS, identifier: UUID = OWN_ID, **options: Any
    ) -> EngineHarness:
        """Add a queue manager with the options of `EngineHarness`."""
        harness = EngineHarness(
            computer_name=name, addresses=[address], identifier=identifier,
            now=self.now, utc=START_UTC + self.now // 1000, **options,
        )  # fmt: skip
        self.harnesses[name], self._addresses[name] = harness, address
        self.run()
        return harness

    def connections(self, name: str) -> list[int]:
        """The connections of a queue manager."""
        return [connection for end, connection in self._links if end == name]

    def disconnect(self, name: str, connection: int) -> None:
        """Lose a connection; both ends notice."""
        self._end(name, connection)
        self.harnesses[name].engine.disconnected(connection)

    def _end(self, name: str, connection: int) -> None:
        other = self._links.pop((name, connection), None)
        if other is not None and self._links.pop(other, None) is not None:
            self.harnesses[other[0]].engine.disconnected(other[1])

    def run(self) -> None:
        """Deliver packets until nothing more is due now."""
        busy = True
        while busy:
            busy = False
            for name, harness in self.harnesses.items():
                for effect in harness.new_effects():
                    busy = True
                    self._perform(name, harness, effect)
            due = [deliver for time, deliver in self._travelling if time <= self.now]
            self._travelling = [travelling for travelling in self._travelling if travelling[0] > self.now]
            for deliver in due:
                busy = True
                deliver()

    def _named(self, address: str) -> str:
        return next(name for name, known in self._addresses.items() if known == address)

    def _perform(self, name: str, harness: EngineHarness, effect: Effect) -> None:
        match effect:
            case Resolve(request, host):
                addresses = [known for other, known in self._addresses.items() if host in (other, known)]
                harness.engine.resolved(request, addresses)
            case Connect(connection, address, _):
                other = self._named(address)
                number = self.harnesses[other].engine.next_connection()
                self._links[name, connection] = other, number
                self._links[other, number] = name, connection
                self.harnesses[other].engine.accepted(number, self._addresses[name])
                harness.engine.connected(connection)
            case Send(connection, data):
                self._send(name, connection, data)
            case Disconnect(connection):
                self._end(name, connection)
            case SendDatagram(address, port, data, _):
                other, is_request = self._named(address), port == PING_PORT
                self.log.append(Carried(name, other, "Ping", data))
                receive = partial(self.harnesses[other].engine.datagram, request=is_request)
                self._later(partial(receive, data, self._addresses[name], CLIENT_PORT))

    def _send(self, name: str, connection: int, data: bytes) -> None:
        link = self._links.get((name, connection))
        if link is None:
            return
        other, number = link
        receive = partial(self.harnesses[other].engine.received, number)
        for packet in cut(data):
            self.log.append(Carried(name, other, packet.kind, packet))
            if not self.loses(name, other, packet):
                self._later(partial(receive, bytes(packet)))

    def _later(self, deliver: Callable[[], None]) -> None:
        self._travelling.append((self.now + self.delay, deliver))

    def advance(self, milliseconds: int) -> None:
        """Let time pass, with each timer expiring when due."""
        end = self.now + milliseconds
        self.run()
        while True:
            times = [harness.core.deadline for harness in self.harnesses.values()]
            times += [time for time, _ in self._travelling]
            due = min((time for time in times if time is not None), default=end + 1)
            if due > end:
                break
            self._set_clock(max(due, self.now))
        self._set_clock(end)

    def _set_clock(self, now: int) -> None:
        self.now = now
        for harness in self.harnesses.values():
            harness.set_clock(now)
        self.run()

    def exchanged(self) -> list[tuple[str, str]]:
        """Who sent what kind of packet, in order."""
        return [(carried.sender, carried.kind) for carried in self.log]

    def between(self, sender: str, receiver: str, *kinds: str) -> list[ReceivedPacket]:
        """The packets from one queue manager to another: all, or those of some kinds."""
        return [
            carried.packet
            for carried in self.log
            if (carried.sender, carried.receiver) == (sender, receiver)
            and (not kinds or carried.kind in kinds)
        ]


def joined_pair(*, delay: int = 0, **options: Any) -> tuple[HarnessNetwork, EngineHarness, EngineHarness]:
    """A network of two queue managers, alpha and beta."""
    network = HarnessNetwork(delay=delay)
    alpha = network.add("alpha", OWN_ADDRESS, OWN_ID, **options)
    return network, alpha, network.add("beta", PEER_ADDRESS, PEER_ID, **options)
