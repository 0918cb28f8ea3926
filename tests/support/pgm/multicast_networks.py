"""Networks of multicast on the loopback interface, as a server has one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address

import pytest

from msmqwire.qm.runtime.multicast import PgmMode, PgmOptions
from msmqwire.qm.runtime.multicast.network import MulticastNetwork
from tests.support.own_addresses import own_group

LOOPBACK = IPv4Address("127.0.0.1")
GROUP, PORT = own_group(7), 8001
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
    refused: list = field(default_factory=list)


def udp(port: int, unicast: int | None = None, **more) -> PgmOptions:
    more = {"interface": LOOPBACK, "rate": 3e6, **more}
    return PgmOptions(PgmMode.UDP, port, port if unicast is None else unicast, **more)


@asynccontextmanager
async def network(options: PgmOptions, *groups: tuple[str, int]) -> AsyncIterator[Seen]:
    seen = Seen()
    seen.network = MulticastNetwork(
        options,
        lambda *apdu: seen.received.append(apdu),
        seen.sent.append,
        lambda *failure: seen.failed.append(failure),
        seen.refused.append,
    )
    seen.network.begin()
    seen.network.set_groups(frozenset(groups))
    try:
        yield seen
    finally:
        await seen.network.close()


@pytest.fixture
def no_trouble_in_the_loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No callback may raise: what asyncio would only log is an error here."""
    raised = []
    monkeypatch.setattr(
        asyncio.BaseEventLoop, "call_exception_handler", lambda _, context: raised.append(context)
    )
    monkeypatch.setattr("msmqwire.qm.runtime.multicast.network.LINGER_S", 0.0)
    yield
    assert raised == []
