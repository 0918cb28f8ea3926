"""Multicast of servers on one computer, in UDP over the loopback interface."""

from __future__ import annotations

import asyncio
import random
import socket
from ipaddress import IPv4Address, ip_address

import pytest

from msmqwire.pgm import Data, Nak, Nla, OptNakList, PgmPacket, PgmType, Spm, build_pgm, parse_pgm
from msmqwire.qm.runtime.multicast import PgmMode, PgmOptions
from msmqwire.qm.runtime.multicast import sockets as multicast_sockets
from tests.support.own_addresses import own_group
from tests.support.patience import happens
from tests.support.pgm.lossy_multicast import ASKS_SOON, Lossy, lossy_socket
from tests.support.pgm.multicast_networks import ADDRESS, GROUP, LOOPBACK, PORT, free_port, network, udp

pytestmark = pytest.mark.usefixtures("no_trouble_in_the_loop")


@pytest.mark.requirement("SRMP-2.1.2-01", "SRMP-2.1.2-02", "SRMP-2.1.3-06", "SRMP-2.1.3.1-15")
def test_two_servers_of_one_computer_over_a_network_that_loses(monkeypatch):
    """Messages of 1 byte to 64 KB arrive once and in order at both, which share all ports."""
    monkeypatch.setattr(multicast_sockets, "new_socket", lossy_socket)
    monkeypatch.setattr(Lossy, "loss", 0.3)
    for name, value in ASKS_SOON.items():
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
                await happens(lambda number=number: min(len(one.sent), len(two.sent)) >= number - 8)
            await happens(lambda: len(one.received) == len(two.received) == 200)
            for seen in (one, two):
                assert seen.sent == list(range(100))
                assert seen.failed == []
                assert {message[1:] for message in seen.received} == {("127.0.0.1", GROUP, PORT)}
                got = [message[0] for message in seen.received]
                assert [apdu for apdu in got if apdu[0] == 1] == apdus[0]
                assert [apdu for apdu in got if apdu[0] == 2] == apdus[1]

    asyncio.run(run())


def test_naks_of_two_servers_of_one_computer_find_their_source(monkeypatch):
    """Only the first has the port for what goes to one computer: the other is asked at its own."""
    monkeypatch.setattr(multicast_sockets, "new_socket", lossy_socket)
    monkeypatch.setattr(Lossy, "loss", 0.3)
    for name, value in ASKS_SOON.items():
        monkeypatch.setattr(f"msmqwire.pgm.receive_window.{name}", value)
    multicast = multicast_sockets.Sender.multicast
    monkeypatch.setattr(
        multicast_sockets.Sender, "multicast",
        lambda self, data, group, ttl: None if ttl == 1 else multicast(self, data, group, ttl),
    )  # fmt: skip

    async def run():
        port = free_port()
        async with (
            network(udp(port)) as first,
            network(udp(port)) as second,
            network(udp(port), ADDRESS) as who,
        ):
            for number in range(12):
                for seen in (first, second):
                    seen.network.send(number, *ADDRESS, bytes([number]) * 3000)
            await happens(lambda: len(who.received) == 24)
            ports = [
                interface.sender.socket.getsockname()[1]
                for seen in (first, second, who)
                for interface in seen.network._interfaces.values()
            ]
            assert len(set(ports)) == 3
            assert port in ports

    asyncio.run(run())


def test_only_what_is_listened_to_and_nothing_is_open_before():
    async def run():
        port = free_port()
        async with network(udp(port)) as one, network(udp(port), ADDRESS, (GROUP, 8002)) as two:
            assert one.network._sockets is None
            one.network.send(1, GROUP, 8003, b"another port")
            one.network.send(2, own_group(6), PORT, b"another group")
            one.network.send(3, *ADDRESS, b"for two")
            await happens(lambda: len(two.received) == 1)
            two.network.set_groups(frozenset({(GROUP, 8002)}))
            one.network.send(4, *ADDRESS, b"too late")
            one.network.send(5, GROUP, 8002, b"still heard")
            await happens(lambda: len(two.received) == 2)
            two.network.set_groups(frozenset())
            assert two.network._groups == two.network._interfaces == {}
            assert [message[0] for message in two.received] == [b"for two", b"still heard"]
            assert sorted(one.sent) == [1, 2, 3, 4, 5]

    asyncio.run(run())


def test_a_server_hears_itself():
    async def run():
        async with network(udp(free_port()), ADDRESS) as one:
            one.network.send(1, *ADDRESS, b"to all")
            await happens(lambda: one.received == [(b"to all", "127.0.0.1", GROUP, PORT)])

    asyncio.run(run())


def test_more_groups_than_one_socket_may_join():
    groups = [(own_group(100 + number), PORT) for number in range(40)]

    async def run():
        port = free_port()
        async with network(udp(port), *groups) as one, network(udp(port)) as two:
            for number, group in enumerate(groups):
                two.network.send(number, *group, b"%d" % number)
            await happens(lambda: len(one.received) == 40)
            assert {(message[0], message[2]) for message in one.received} == {
                (b"%d" % number, group[0]) for number, group in enumerate(groups)
            }

    asyncio.run(run())


@pytest.mark.requirement("SRMP-2.1.3-12")
def test_the_end_tells_receivers_and_sends_what_waits():
    async def run():
        port = free_port()
        async with network(udp(port), ADDRESS) as one:
            async with network(udp(port, rate=200_000.0)) as two:
                two.network.send(1, *ADDRESS, bytes(60_000))
                assert two.sent == []
            assert (two.sent, two.failed) == ([1], [])
            await happens(lambda: len(one.received) == 1)
            listening = one.network._groups[IPv4Address(GROUP)].listening[PORT]
            await happens(lambda: listening._sources == {})
            assert listening.receiver.sources == 1, "known, so that late packets do not begin it again"
            two.network.send(2, *ADDRESS, b"late")
            await happens(lambda: two.failed == [(2, "multicast has ended")])

    asyncio.run(run())


def test_what_can_not_go_out_in_time_fails_at_the_end(monkeypatch):
    monkeypatch.setattr("msmqwire.qm.runtime.multicast.network.CLOSE_S", 0.1)

    async def run():
        async with network(udp(free_port(), rate=1000.0)) as one:
            one.network.send(1, *ADDRESS, bytes(60_000))
            one.network.send(2, *ADDRESS, bytes(60_000))
        assert one.failed == [(1, "the server stops"), (2, "the server stops")]

    asyncio.run(run())


def test_a_quiet_session_ends_and_another_one_begins(monkeypatch):
    monkeypatch.setattr("msmqwire.qm.runtime.multicast.sessions.IDLE_S", 0.2)

    async def run():
        port = free_port()
        async with network(udp(port), ADDRESS) as one, network(udp(port)) as two:
            for number in range(2):
                two.network.send(number, *ADDRESS, b"%d" % number)
                await happens(lambda: two.network._groups[IPv4Address(GROUP)].sending[PORT].closing)
            await happens(lambda: [message[0] for message in one.received] == [b"0", b"1"])
            first, second = two.network._sessions.values()
            two.network._sending_ended(second, None)
            assert two.network._groups, "the first one repairs as long as it can"
            two.network._sending_ended(first, None)
            assert two.network._groups == two.network._interfaces == {}

    asyncio.run(run())


@pytest.mark.parametrize(
    "options, why",
    [
        (PgmOptions(PgmMode.OFF), "multicast is off"),
        (udp(free_port(), interface=IPv4Address("198.51.100.1")), "assign"),
    ],
)
def test_what_can_not_be_sent(options, why, caplog):
    async def run():
        async with network(options, ADDRESS) as one:
            for number in range(3):
                one.network.send(number, *ADDRESS, b"x")
                assert one.failed == [], "never before the call returns"
                await happens(lambda: one.failed)
                ((request, reason),) = one.failed
                assert request == number
                assert why in reason
                one.failed.clear()
            assert one.sent == []
        errors = [record for record in caplog.records if record.levelname == "ERROR"]
        assert len(errors) == ("assign" in why)

    asyncio.run(run())


def test_too_many_groups_to_send_to(monkeypatch):
    monkeypatch.setattr("msmqwire.qm.runtime.multicast.network.SENDING_MAX", 2)

    async def run():
        async with network(udp(free_port())) as one:
            for number in range(3):
                one.network.send(number, f"234.9.6.{number}", PORT, b"x")
            await happens(lambda: len(one.sent) + len(one.failed) == 3)
            assert (one.sent, one.failed) == ([0, 1], [(2, "too many multicast groups are sent to")])
            assert len(one.network._groups) == 2

    asyncio.run(run())


@pytest.mark.requirement("SRMP-2.1.3.1-15")
def test_what_is_too_long_is_refused_for_good():
    async def run():
        async with network(udp(free_port()), ADDRESS) as one:
            one.network.send(1, *ADDRESS, bytes(65_537))
            assert one.refused == [], "never before the call returns"
            one.network.send(2, *ADDRESS, bytes(65_536))
            await happens(lambda: len(one.received) == 1)
            assert (one.sent, one.failed, one.refused) == ([2], [], [1])

    asyncio.run(run())


def test_without_the_right_to_raw_sockets(monkeypatch):
    def refusing(kind, protocol):
        if kind == socket.SOCK_RAW:
            raise PermissionError(1, "Operation not permitted")
        return lossless(kind, protocol)

    lossless = multicast_sockets.new_socket
    monkeypatch.setattr(multicast_sockets, "new_socket", refusing)

    async def run():
        async with network(PgmOptions(PgmMode.RAW, interface=LOOPBACK), ADDRESS) as raw:
            raw.network.send(1, *ADDRESS, b"raw")
            await happens(lambda: raw.failed == [(1, f"group {GROUP}: Operation not permitted")])
        port = free_port()
        async with network(PgmOptions(PgmMode.AUTO, port, port, LOOPBACK), ADDRESS) as one:
            one.network.send(2, *ADDRESS, b"udp")
            await happens(lambda: [message[0] for message in one.received] == [b"udp"])

    asyncio.run(run())


def test_a_network_that_goes_away_and_comes_back(monkeypatch, caplog):
    """What waits fails at once; nothing is raised; later messages go out in another session."""
    unicast, down = multicast_sockets.Sender.unicast, []

    def failing(self, *arguments):
        if down:
            raise OSError(100, "Network is down")
        unicast(self, *arguments)

    monkeypatch.setattr(multicast_sockets.Sender, "unicast", failing)

    async def run():
        port = free_port()
        async with network(udp(port), ADDRESS) as one, network(udp(port, rate=50_000.0)) as two:
            two.network.send(1, *ADDRESS, bytes(20_000))
            two.network.send(2, *ADDRESS, bytes(20_000))
            down.append(True)
            await happens(lambda: [request for request, _ in two.failed] == [1, 2])
            assert two.failed[0][1] == f"group {GROUP}: Network is down"
            two.network.send(3, *ADDRESS, b"still down")
            await happens(lambda: len(two.failed) == 3)
            down.clear()
            two.network.send(4, *ADDRESS, b"again")
            await happens(lambda: b"again" in [message[0] for message in one.received])
            assert two.sent == [4]
        troubles = [record.message for record in caplog.records if record.levelname == "ERROR"]
        assert 1 <= len(troubles) <= 2, "once for each server"

    asyncio.run(run())


def forged(chance, number):
    """A packet that anybody could send, or bytes that are none."""
    gsi, source = chance.randbytes(6), chance.randint(1, 0xFFFF)
    sequence = chance.getrandbits(32)
    path = Nla(ip_address(chance.getrandbits(32)))
    nak = Nak(sequence, path, Nla(ip_address(GROUP)))
    kind, body, data = chance.choice(
        [
            (PgmType.SPM, Spm(number, sequence, (sequence + 300) % 2**32, path), b""),
            (PgmType.ODATA, Data(sequence, sequence), bytes(chance.randint(0, 9000))),
            (PgmType.RDATA, Data(sequence, sequence), b"x"),
            (PgmType.NCF, nak, b""),
            (PgmType.NAK, nak, b""),
        ]
    )
    ports = (PORT, source) if kind == PgmType.NAK else (source, PORT)
    built = build_pgm(PgmPacket(kind, *ports, gsi, body, (), data))
    cut = chance.choice([None, None, None, chance.randint(0, len(built))])
    return chance.choice([built, built, chance.randbytes(chance.randint(0, 100))])[:cut]


def test_hostile_datagrams():
    """Whatever comes to any of its sockets, nothing is raised, memory is bounded, messages get through."""

    async def run():
        port, chance = free_port(), random.Random(3)
        async with network(udp(port), ADDRESS) as one, network(udp(port)) as two:
            two.network.send(1, *ADDRESS, b"before")
            await happens(lambda: len(one.received) == 1)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as attacker:
                attacker.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, LOOPBACK.packed)
                for number in range(1500):
                    target = chance.choice([(GROUP, port), (GROUP, 3056), ("127.0.0.1", port)])
                    attacker.sendto(forged(chance, number), target)
                    if number % 20 == 0:
                        await asyncio.sleep(0)
            receiver = one.network._groups[IPv4Address(GROUP)].listening[PORT].receiver
            two.network.send(2, *ADDRESS, b"after")
            await happens(lambda: [message[0] for message in one.received].count(b"after") == 1)
            assert receiver.sources <= 64
            assert receiver.buffered <= 16 << 20
            assert receiver.refused > 100

    asyncio.run(run())


@pytest.mark.requirement("SRMP-2.1.3-04")
def test_a_flood_of_forged_naks_is_answered_at_a_rate():
    async def run():
        port, rate = free_port(), 100_000.0
        async with network(udp(port, rate=rate)) as one:
            sent = []
            one.network.send(1, *ADDRESS, bytes(50_000))
            await happens(lambda: one.sent == [1])
            ((own, sending),) = one.network._sessions.items()
            multicast = one.network._groups[IPv4Address(GROUP)].sender.multicast
            sender = one.network._groups[IPv4Address(GROUP)].sender
            sender.multicast = lambda data, group, ttl: (sent.append(data), multicast(data, group, ttl))[0]
            first = sending._source._window.trail
            body = Nak(first % 2**32, Nla(LOOPBACK), Nla(ip_address(GROUP)))
            numbers = OptNakList(tuple((first + number) % 2**32 for number in range(1, 37)))
            nak = build_pgm(PgmPacket(PgmType.NAK, PORT, own, sending.settings.gsi, body, (numbers,)))
            loop = asyncio.get_running_loop()
            began = loop.time()
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as attacker:
                while loop.time() < began + 1.0:
                    for _ in range(20):
                        attacker.sendto(nak, ("127.0.0.1", port))
                    await asyncio.sleep(0.002)  # the pace of the flood
            took = loop.time() - began
            kinds = [parse_pgm(data).Type for data in sent]
            assert PgmType.NCF in kinds
            assert PgmType.RDATA in kinds
            assert sum(map(len, sent)) <= (took + 0.1) * rate * 1.1 + 2000

    asyncio.run(run())
