"""Multicast of servers on one computer, in UDP over the loopback interface."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address

import pytest

from msmqwire.qm.runtime.multicast import MulticastNetwork, PgmMode, PgmOptions
from msmqwire.qm.runtime.multicast import sockets as multicast_sockets

LOOPBACK = IPv4Address("127.0.0.1")
GROUP, PORT = "234.9.8.7", 8001
ADDRESS = (GROUP, PORT)


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@dataclass
class Seen:
    """What a network told its owner."""

    network: MulticastNetwork | None = None
    received: list = field(default_factory=list)
    sent: list = field(default_factory=list)
    failed: list = field(default_factory=list)


def udp(port: int, unicast: int | None = None, **more) -> PgmOptions:
    more = {"interface": LOOPBACK, "rate": 3e6, **more}
    return PgmOptions(PgmMode.UDP, port, port if unicast is None else unicast, **more)


@asynccontextmanager
async def network(options: PgmOptions, *groups) -> AsyncIterator[Seen]:
    seen = Seen()
    seen.network = MulticastNetwork(
        options,
        lambda *apdu: seen.received.append(apdu),
        seen.sent.append,
        lambda *failure: seen.failed.append(failure),
    )
    await seen.network.start()
    seen.network.set_groups(frozenset(groups))
    try:
        yield seen
    finally:
        await seen.network.close()


async def until(condition, seconds=8.0):
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not condition():
        assert loop.time() < end, "it does not happen"
        await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def no_trouble_in_the_loop(monkeypatch):
    """No callback may raise: what asyncio would only log is an error here."""
    raised = []
    monkeypatch.setattr(
        asyncio.BaseEventLoop, "call_exception_handler", lambda _, context: raised.append(context)
    )
    monkeypatch.setattr("msmqwire.qm.runtime.multicast.network.LINGER_S", 0.0)
    yield
    assert raised == []


class Lossy(socket.socket):
    """A socket that loses 30 % of what it gets."""

    chance = random.Random(7)

    def recvfrom(self, size):
        while True:
            got = super().recvfrom(size)
            if self.chance.random() >= 0.3:
                return got


def lossy(kind, protocol):
    made = Lossy(socket.AF_INET, kind, protocol)
    made.setblocking(False)
    return made


@pytest.mark.requirement("SRMP-2.1.2-01", "SRMP-2.1.2-02", "SRMP-2.1.3-06", "SRMP-2.1.3.1-15")
def test_two_servers_of_one_computer_over_a_network_that_loses(monkeypatch):
    """Messages of 1 byte to 64 KB arrive once and in order at both, which share all ports."""
    monkeypatch.setattr(multicast_sockets, "new_socket", lossy)
    # A packet that is lost six times in a row takes twelve seconds otherwise.
    for name, value in {"NAK_RDATA_IVL": 0.3, "NAK_RPT_IVL": 0.2, "NAK_DATA_RETRIES": 40}.items():
        monkeypatch.setattr(f"msmqwire.pgm.receive_window.{name}", value)
    chance = random.Random(1)
    sizes = [1, 65_536, *(chance.randint(1, 65_536 if number % 12 == 0 else 3000) for number in range(98))]
    apdus = [[bytes([who]) * size for size in sizes] for who in (1, 2)]

    async def run():
        port = free_port()
        async with network(udp(port), ADDRESS) as one, network(udp(port), ADDRESS) as two:
            for number in range(100):
                for who, of_one in ((one, apdus[0]), (two, apdus[1])):
                    who.network.send(number, *ADDRESS, of_one[number])
                await until(lambda number=number: min(len(one.sent), len(two.sent)) >= number - 8)
            await until(lambda: len(one.received) == len(two.received) == 200, 20)
            for seen in (one, two):
                assert seen.sent == list(range(100))
                assert seen.failed == []
                assert {message[1:] for message in seen.received} == {("127.0.0.1", GROUP, PORT)}
                got = [message[0] for message in seen.received]
                assert [apdu for apdu in got if apdu[0] == 1] == apdus[0]
                assert [apdu for apdu in got if apdu[0] == 2] == apdus[1]

    asyncio.run(run())
