"""Reflection by multicast: forged packets on the loopback interface, and an honest sender beside them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address, ip_address

import pytest

from msmqwire.pgm import Data, Nak, Nla, PgmPacket, PgmType, Spm, build_pgm, parse_pgm
from tests.support.patience import happens
from tests.support.pgm.lossy_multicast import ASKS_SOON
from tests.support.pgm.multicast_networks import ADDRESS, GROUP, LOOPBACK, PORT, free_port, network, udp

pytestmark = pytest.mark.usefixtures("no_trouble_in_the_loop")

SOURCE_PORT, GSI = 4711, b"forged"


@contextmanager
def at(address: str, port: int) -> Iterator[socket.socket]:
    """A socket of another computer: it sends to groups on the loopback, and hears what is sent to it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind((address, port))
        one.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, LOOPBACK.packed)
        one.setblocking(False)
        yield one


def heard(one: socket.socket) -> list[bytes]:
    found: list[bytes] = []
    with suppress(BlockingIOError):
        while True:
            found.append(one.recv(65_536))
    return found


def packet(kind, body, data=b""):
    return build_pgm(PgmPacket(kind, SOURCE_PORT, PORT, GSI, body, (), data))


def spm(number, lead, path):
    return packet(PgmType.SPM, Spm(number, 0, lead % 2**32, Nla(ip_address(path))))


@pytest.fixture(autouse=True)
def asks_soon(monkeypatch):
    for name, value in ASKS_SOON.items():
        monkeypatch.setattr(f"msmqwire.pgm.receive_window.{name}", value)


def test_naks_do_not_go_where_a_packet_sends_them():
    """Three listening servers, two SPMs: the victim gets nothing, their sender no more than it has sent."""

    async def run():
        port = free_port()
        with at("127.0.0.8", 0) as attacker, at("127.0.0.9", port) as victim, at("127.0.0.8", port) as own:
            async with (
                network(udp(port), ADDRESS) as one,
                network(udp(port), ADDRESS) as two,
                network(udp(port), ADDRESS) as three,
                network(udp(port)) as honest,
            ):
                sent = [spm(0, -1, "127.0.0.9"), spm(1, 5000, "127.0.0.9")]
                for data in sent:
                    attacker.sendto(data, (GROUP, port))
                listening = [
                    seen.network._groups[IPv4Address(GROUP)].listening[PORT] for seen in (one, two, three)
                ]
                await happens(lambda: all(each.receiver.sources for each in listening))
                for number in range(3):
                    honest.network.send(number, *ADDRESS, b"%d" % number)
                await happens(lambda: all(len(seen.received) == 3 for seen in (one, two, three)))
                await asyncio.sleep(1.0)  # five times the time after which a NAK is repeated
            assert heard(victim) == []
            reflected = [*heard(attacker), *heard(own)]
            assert sum(map(len, reflected)) <= len(listening) * sum(map(len, sent))

    asyncio.run(run())


def test_a_router_that_was_heard_repairs():
    """The path of an SPM is not its source: the router there hears the NAK to the group and confirms it."""

    async def run():
        port = free_port()
        with at("127.0.0.8", 0) as source, at("127.0.0.9", port) as router:
            async with network(udp(port), ADDRESS) as one:
                source.sendto(packet(PgmType.ODATA, Data(0, 0), b"first"), (GROUP, port))
                source.sendto(spm(0, 0, "127.0.0.9"), (GROUP, port))
                source.sendto(packet(PgmType.ODATA, Data(2, 0), bytes(1000)), (GROUP, port))
                naks: list[bytes] = []

                def asked():
                    naks.extend(heard(source))
                    return naks

                await happens(asked)
                assert parse_pgm(naks[0]).Type == PgmType.NAK
                ncf = packet(PgmType.NCF, Nak(1, Nla(ip_address("127.0.0.8")), Nla(ip_address(GROUP))))
                for _ in range(3):
                    router.sendto(ncf, (GROUP, port))
                naks.clear()

                def routed():
                    naks.extend(heard(router))
                    return naks

                await happens(routed)
                assert parse_pgm(naks[0]).body.RequestedSequenceNumber == 1
                source.sendto(packet(PgmType.RDATA, Data(1, 0), b"repaired"), (GROUP, port))
                await happens(lambda: len(one.received) == 3)
                assert [message[0][:8] for message in one.received] == [b"first", b"repaired", bytes(8)]

    asyncio.run(run())
