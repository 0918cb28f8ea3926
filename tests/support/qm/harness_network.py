"""Queue managers in a simulated network: one harness sends, another receives."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from msmqwire.qm.model.effects import Connect, Disconnect, Effect, Resolve, Send, SendDatagram
from msmqwire.qm.model.enumerations import ConnectionStatus
from msmqwire.service.virtual.loop import VirtualLoop
from tests.support.engine_harness import (
    OWN_ADDRESS,
    OWN_ID,
    PEER_ADDRESS,
    PEER_ID,
    START_UTC,
    EngineHarness,
)
from tests.support.qm.received_packets import ReceivedPacket, cut

PING_PORT = 3527
CLIENT_PORT = 4242
"""The source port of ping requests."""


class Carried(NamedTuple):
    """A packet sent over the network: a `ReceivedPacket`, or the bytes of a Ping."""

    sender: str
    receiver: str
    kind: str
    packet: Any


class NetworkedHarness(EngineHarness):
    """A queue manager whose effects a network carries out."""

    def __init__(self, network: HarnessNetwork, **options: Any) -> None:
        self._network = network
        super().__init__(loop=network.loop, **options)

    def _perform(self, effect: Effect) -> None:
        self._network.carry_out(self.core.queue_manager.computer_name, self, effect)


class HarnessNetwork:
    """Harnesses that reach each other by name and address and share one event loop.

    Attributes:
        delay: milliseconds that packets take.
        loop: the event loop.
        harnesses: the harnesses by computer name. log: the packets sent, in order.
        loses: decides from the names of sender and receiver whether a packet is lost.
        refuses: decides from the names of caller and called whether a connection fails.
    """

    def __init__(self, *, delay: int = 0) -> None:
        self.delay, self.loop = delay, VirtualLoop()
        self.harnesses: dict[str, EngineHarness] = {}
        self.log: list[Carried] = []
        self.loses: Callable[[str, str, ReceivedPacket], bool] = lambda *_: False
        self.refuses: Callable[[str, str], bool] = lambda *_: False
        self._addresses: dict[str, str] = {}
        self._links: dict[tuple[str, int], tuple[str, int]] = {}

    def add(
        self, name: str, address: str = OWN_ADDRESS, identifier: UUID = OWN_ID, **options: Any
    ) -> EngineHarness:
        """Add a queue manager with the options of `EngineHarness`."""
        harness = NetworkedHarness(
            self, computer_name=name, addresses=[address], identifier=identifier,
            utc=START_UTC + self.loop.now_ms // 1000, **options,
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
        self._disconnected(name, connection)

    def _disconnected(self, name: str, connection: int) -> None:
        harness = self.harnesses[name]
        harness.driver.notify(harness.engine.disconnected, connection)

    def _end(self, name: str, connection: int) -> None:
        other = self._links.pop((name, connection), None)
        if other is not None and self._links.pop(other, None) is not None:
            self._disconnected(*other)

    def run(self) -> None:
        """Deliver packets until nothing more is due now."""
        self.advance(0)

    def _named(self, address: str) -> str:
        return next(name for name, known in self._addresses.items() if known == address)

    def carry_out(self, name: str, harness: EngineHarness, effect: Effect) -> None:
        """Carry out an effect of a queue manager."""
        match effect:
            case Resolve(request, host):
                addresses = [known for other, known in self._addresses.items() if host in (other, known)]
                harness.driver.notify(harness.engine.resolved, request, addresses)
            case Connect(connection, address, _):
                other = self._named(address)
                if self.refuses(name, other):
                    refused = ConnectionStatus.CONNECTION_REFUSED
                    harness.driver.notify(harness.engine.connect_failed, connection, refused)
                    return
                accepting = self.harnesses[other]
                number = accepting.engine.next_connection()
                self._links[name, connection] = other, number
                self._links[other, number] = name, connection
                accepting.driver.notify(accepting.engine.accepted, number, self._addresses[name])
                harness.driver.notify(harness.engine.connected, connection)
            case Send(connection, data):
                self._send(name, connection, data)
            case Disconnect(connection):
                self._end(name, connection)
            case SendDatagram(address, port, data, _):
                other, is_request = self._named(address), port == PING_PORT
                self.log.append(Carried(name, other, "Ping", data))
                receive = partial(self.harnesses[other].engine.datagram, request=is_request)
                self._later(other, receive, data, self._addresses[name], CLIENT_PORT)

    def _send(self, name: str, connection: int, data: bytes) -> None:
        link = self._links.get((name, connection))
        if link is None:
            return
        other, number = link
        for packet in cut(data):
            self.log.append(Carried(name, other, packet.kind, packet))
            if not self.loses(name, other, packet):
                self._later(other, self.harnesses[other].engine.received, number, bytes(packet))

    def _later(self, receiver: str, *event: Any) -> None:
        self.loop.call_later(self.delay / 1000, self.harnesses[receiver].driver.notify, *event)

    def advance(self, milliseconds: int) -> None:
        """Let time pass, with each timer expiring when due."""
        for time in (0, milliseconds):
            self.loop.run_until((self.loop.now_ms + time) / 1000)
            for harness in self.harnesses.values():
                harness.run()

    def exchanged(self) -> list[tuple[str, str]]:
        """The senders and kinds of packets, in order."""
        return [(carried.sender, carried.kind) for carried in self.log]

    def between(self, sender: str, receiver: str, *kinds: str) -> list[ReceivedPacket]:
        """The packets from one queue manager to another: all, or only some kinds."""
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
