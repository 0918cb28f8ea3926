"""NCP over TCP: what clients send, whole, cut, wrong or too much, and how others fare meanwhile."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from msmqwire.errors import NcpRefused
from msmqwire.ncp.constants import CompletionCode
from msmqwire.netware.model.caller import AssumedRights
from msmqwire.netware.model.files import StoredJobFile
from msmqwire.netware.protocol.session import NcpSession
from msmqwire.netware.runtime import ncp_listener
from msmqwire.netware.runtime.limits import SPARE_CONNECTIONS, NcpLimits
from tests.support.many_computers import many_computers
from tests.support.netware.netware_running import InMemory, in_memory, unit
from tests.support.netware.netware_station import (
    CREATE,
    DESTROY,
    REQUEST,
    MemoryServer,
    be16,
    be32,
    le32,
    new_job,
    six_bytes,
)
from tests.support.own_addresses import has_ipv6
from tests.support.patience import limit
from tests.support.running import until

AUTO_START = 0x08
ATTACH = b"\x11\x11\0\xff\0\xff\0"
LOGOUT = 25


def office() -> tuple[MemoryServer, int]:
    """A server with ALICE and BOB, and the ID of their queue."""
    server = MemoryServer()
    members = [server.add(name) for name in ("ALICE", "BOB")]
    queue = server.queue()
    server.admit(queue, "Q_USERS", *members)
    server.service.take()
    return server, queue


@pytest.fixture
def served() -> Iterator[InMemory]:
    server, queue = office()
    assert queue == 4
    with in_memory(server) as running:
        yield running


QUEUE = be32(4)


def jobs(running: InMemory) -> list[int]:
    return running.do(lambda: list(running.server.service.queue_table[4].order))


def test_any_cuts(served: InMemory) -> None:
    with served.connect() as client:
        client.login("ALICE")
        units = [
            unit(client.request(121, QUEUE + new_job(description=b"%d" % number))) for number in range(5)
        ]
        stream, chance = b"".join(units), random.Random(4711)
        cuts = sorted(chance.sample(range(1, len(stream)), 40))
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            client.send(stream[start:end])
        assert [client.reply()[46] for _ in range(5)] == [1, 2, 3, 4, 5]


def test_many_requests_in_one_segment_are_answered_in_order(served: InMemory) -> None:
    with served.connect() as client:
        client.login("ALICE")
        requests = [client.request(121, QUEUE + new_job()) for _ in range(100)]
        client.send(b"".join(map(unit, requests)))
        replies = [client.reply() for _ in requests]
        assert [reply[8 + 38] for reply in replies] == list(range(1, 101))
        assert [reply[2] for reply in replies] == [request[2] for request in requests]


def test_a_client_that_only_sends_and_ends_reads_all_replies(served: InMemory) -> None:
    with served.connect() as client:
        client.login("ALICE")
        served.do(served.driver.held.clear)
        client.send(b"".join(unit(client.request(125, QUEUE)) for _ in range(50)) + b"DmdT")
        client.socket.shutdown(socket.SHUT_WR)
        served.do(served.driver.held.set)
        assert [client.reply()[6] for _ in range(50)] == [0] * 50
        assert client.reply() == b""
    until(lambda: not served.do(lambda: served.listener.service_connections), "it is given up")


def test_a_signature_is_passed_over(served: InMemory) -> None:
    with served.connect() as client:
        client.send(unit(client.request(53, be16(1) + b"\x05ALICE"), signature=b"\xaa" * 8))
        assert client.reply()[6:8] == b"\xfc\0"
        client.login("ALICE")
        client.send(unit(client.request(125, QUEUE), signature=bytes(8)))
        assert client.reply()[8:] == QUEUE + le32(0, 0, 0)


@pytest.mark.parametrize(
    "wrong",
    [
        b"GET / HTTP/1.1\r\n",
        b"tNcP" + be32(16) + bytes(8),
        b"DmdT" + be32(17, 1, 0),
        b"DmdT" + be32(0, 1, 0),
        b"DmdT" + be32(0x7FFFFFFF, 1, 0),
        b"DmdT" + be32(0xFFFFFFFF, 1, 0),
        b"DmdT" + be32(0x80000019, 1, 0),
        b"DmdT" + be32(0x00010041, 1, 0),
        b"\0",
    ],
    ids=bytes.hex,
)
def test_invalid_units_end_the_connection_after_valid_ones(served: InMemory, wrong: bytes) -> None:
    with served.connect() as client:
        client.login("ALICE")
        client.send(unit(client.request(121, QUEUE + new_job(flags=AUTO_START))) + wrong)
        assert client.reply()[6] == 0
        assert client.reply() == b""
    until(lambda: jobs(served) == [1], "the job of the lost connection is started")


@pytest.mark.parametrize("seed", range(3))
def test_any_bytes_from_many_while_another_is_served(served: InMemory, seed: int) -> None:
    chance = random.Random(seed)
    with served.connect() as other, ExitStack() as stack:
        other.login("BOB")
        for _ in range(10):
            hostile = stack.enter_context(served.connect(attach=chance.random() < 0.5))
            for _ in range(5):
                kind = chance.choice((CREATE, REQUEST, DESTROY, chance.randrange(0x10000)))
                head = (chance.randrange(4), hostile.connection & 0xFF, 0, hostile.connection >> 8)
                data = chance.choice((b"", be16(chance.randrange(9)))) + chance.randbytes(
                    chance.randrange(300)
                )
                packet = be16(kind) + bytes(head) + chance.choice((b"\x17", b"\x48", b"\x49")) + data
                hostile.send(unit(packet, chance.choice((0, 1, 0xFFFFFFFF))))
            hostile.send(chance.randbytes(8))
            other.call(125, QUEUE)
        other.call(129, QUEUE + le32(1))


def test_a_flood_of_requests_leaves_room_for_others(served: InMemory) -> None:
    with served.connect() as flood, served.connect() as other:
        other.login("BOB")
        requests = 5000
        flood.send(unit(flood.packet(REQUEST, bytes(3), function=99)) * requests)
        while served.do(lambda: served.listener.held_bytes):
            assert other.call(125, QUEUE) == QUEUE + le32(0, 0, 0)
        assert [flood.reply()[6] for _ in range(requests)] == [0xFB] * requests


def test_a_client_that_does_not_read_is_ended() -> None:
    server, _ = office()
    with in_memory(server, NcpLimits(partial_s=0.5)) as served, served.connect() as other:
        flood = served.connect().login("ALICE")
        handle = six_bytes(flood.call(121, QUEUE + new_job())[62:66])
        data = b"\0" + handle + be32(0) + be16(60_000)
        assert flood.exchange(flood.packet(REQUEST, data + bytes(60_000), function=73))[6] == 0
        flood.send(b"".join(unit(flood.packet(REQUEST, data, function=72)) for _ in range(1000)))
        held: list[int] = []

        def is_ended() -> bool:
            held.append(served.do(lambda: served.listener.held_bytes))
            return served.do(lambda: served.listener.service_connections) == 1

        until(is_ended, "it is ended")
        assert max(held) < 300_000, "no more requests are taken than there is room for replies"
        assert other.login("BOB").call(125, QUEUE)[4:] == le32(0, 0, 0), "its open job is gone"
        flood.close()


def test_memory_of_incomplete_requests_is_bounded() -> None:
    server, _ = office()
    with in_memory(server, NcpLimits(held_bytes=200_000)) as served:
        begun = b"DmdT" + be32(0xFFFF, 1, 0) + bytes(60_000)
        clients = [served.connect() for _ in range(8)]
        for client in clients:
            client.send(begun)
        until(lambda: served.do(lambda: served.listener.traffic.ended) == 5, "three are left")
        with served.connect() as other:
            other.login("ALICE").call(125, QUEUE)
        for client in clients:
            client.close()


@pytest.mark.parametrize("sent", [b"", b"D", unit(ATTACH)[:-1], unit(b"\x22\x22\0\0\0\0\0")], ids=len)
def test_who_does_not_attach_in_time_is_ended(sent: bytes) -> None:
    with in_memory(limits=NcpLimits(partial_s=0.1)) as served, served.connect(attach=False) as client:
        client.send(sent)
        assert client.has_ended()


def test_the_times_of_a_request_and_of_idling() -> None:
    with in_memory(limits=NcpLimits(partial_s=limit(0.4), idle_s=limit(1.0))) as served:
        with served.connect() as slow:
            begun = time.monotonic()
            slow.send(unit(slow.packet(REQUEST, function=LOGOUT))[:-1])
            assert slow.has_ended()
            assert time.monotonic() - begun > 0.3
        with served.connect() as idle:
            for _ in range(4):
                time.sleep(limit(0.3))  # four times, longer than idle_s together
                assert idle.exchange(idle.packet(REQUEST, function=LOGOUT))[6:] == b"\0\0"
            assert idle.has_ended()
    assert served.listener.traffic.accepted == 2


def test_service_connections_run_out_before_tcp_connections() -> None:
    limits = NcpLimits(connections=2, connections_per_peer=99)
    with in_memory(office()[0], limits=limits) as served, ExitStack() as stack:
        clients = [stack.enter_context(served.connect()).login("ALICE") for _ in range(2)]
        late = stack.enter_context(served.connect(attach=False))
        assert late.exchange(ATTACH) == b"\x33\x33\0\0\0\0\xf9\0"
        clients[0].close()
        until(lambda: late.exchange(ATTACH)[6] == 0, "the number is free")
        more = [stack.enter_context(served.connect(attach=False)) for _ in range(SPARE_CONNECTIONS)]
        late_ones = [client for client in more if client.exchange(ATTACH) == b""]
        assert len(late_ones) == 0 or served.listener.traffic.refused == len(late_ones)


def test_clients_beyond_the_reserve_are_answered() -> None:
    """Numbers for known addresses are free: others read that there are too many connections."""
    limits = NcpLimits(connections=16, connections_per_peer=99)
    with in_memory(office()[0], limits=limits) as served, ExitStack() as stack:
        for _ in range(14):
            stack.enter_context(served.connect()).login("ALICE")
        late = [stack.enter_context(served.connect(attach=False)) for _ in range(SPARE_CONNECTIONS)]
        assert {client.exchange(ATTACH)[6] for client in late} == {0xF9}
        assert {client.exchange(ATTACH)[6] for client in late} == {0xF9}, "they may ask again"
        traffic = served.listener.traffic
        assert (served.listener.service_connections, traffic.evicted, traffic.refused) == (14, 0, 0)


def test_who_attaches_again_and_again_keeps_nobody_out() -> None:
    limits = NcpLimits(connections=2, connections_per_peer=99)
    with in_memory(office()[0], limits=limits) as served, ExitStack() as stack:
        stack.enter_context(served.connect()).login("ALICE")
        again = stack.enter_context(served.connect())
        with suppress(ConnectionError):
            assert again.exchange(ATTACH[:2] + b"\1" + ATTACH[3:]) == b"", "it made room for itself"
        until(lambda: served.do(lambda: served.listener.service_connections) == 1, "its number is free")
        assert served.listener.traffic.evicted == 1
        stack.enter_context(served.connect()).login("BOB")


def test_too_many_connections_of_one_peer_are_refused() -> None:
    limits = NcpLimits(connections_per_peer=2)
    with in_memory(office()[0], limits=limits) as served, ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(served.connect()).login("ALICE")
        late = stack.enter_context(served.connect(attach=False))
        assert late.has_ended()
        assert served.listener.traffic.refused == 1


def test_a_request_under_way_and_its_repetition(served: InMemory) -> None:
    with served.connect() as client, served.connect() as other:
        client.login("ALICE")
        served.do(served.driver.held.clear)
        request = client.request(121, QUEUE + new_job())
        following = client.request(125, QUEUE)
        client.send(unit(request) * 2)
        assert client.reply() == b"\x99\x99" + request[2:6] + b"\0\0"
        client.send(unit(following) + unit(following))
        with served.connect() as third:
            assert third.connection == 3, "others attach meanwhile"
        served.do(served.driver.held.set)
        created = client.reply()
        assert (created[:3], created[6]) == (b"\x33\x33" + request[2:3], 0)
        replies = [client.reply() for _ in range(2)]
        assert replies[0] == b"\x99\x99" + following[2:6] + b"\0\0"
        assert replies[1][8:] == QUEUE + le32(0, 1, 0)
        assert jobs(served) == [1]
        other.login("BOB")


@pytest.mark.parametrize("flags", [0, AUTO_START])
def test_a_connection_that_breaks_while_its_job_is_created(served: InMemory, flags: int) -> None:
    client = served.connect().login("ALICE")
    served.do(served.driver.held.clear)
    client.send(unit(client.request(121, QUEUE + new_job(flags=flags))))
    until(lambda: served.do(lambda: served.listener.traffic.requests) == 2, "the request has come")
    client.close()
    served.do(served.driver.held.set)
    until(lambda: served.do(lambda: served.listener.service_connections) == 0, "the connection is given up")
    assert jobs(served) == [1] * bool(flags)


def test_a_disk_that_refuses(served: InMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ncp_listener, "RETRY_S", 0.02)
    client = served.connect().login("ALICE")
    handle = six_bytes(client.call(121, QUEUE + new_job())[62:66])
    served.driver.refuses = True
    client.call(121, QUEUE + new_job(), code=0xD0)
    client.call(125, QUEUE, code=0xD0)
    served.driver.refuses = False
    client.call(121, QUEUE + new_job())
    read = b"\0" + handle + be32(0) + be16(5)
    assert client.exchange(client.packet(REQUEST, read, function=72))[6:] == b"\0\0\0\0"
    served.driver.refuses = True
    client.close()
    until(lambda: served.do(lambda: served.listener.traffic.requests) == 6, "the read is answered")
    refusals = served.driver.refusals
    until(lambda: served.driver.refusals > refusals + 1, "the end is tried, and tried again")
    assert jobs(served) == [1, 2]
    served.driver.refuses = False
    until(lambda: jobs(served) == [], "the end of the connection is tried again")


def test_a_service_that_was_built_anew_ends_its_connections(served: InMemory) -> None:
    with served.connect() as client:
        client.login("ALICE")
        served.do(served.listener.restarted)
        assert client.has_ended()
    with served.connect() as client:
        client.login("ALICE")


def test_a_connection_lost_before_a_service_restart_is_dropped(served: InMemory) -> None:
    client = served.connect().login("ALICE")
    served.do(served.driver.held.clear)
    client.send(unit(client.request(125, QUEUE)))
    until(lambda: served.do(lambda: served.listener.traffic.requests) == 2, "the request has come")
    client.close()
    caller = served.do(lambda: next(iter(served.listener._sessions)).caller)
    assert caller is not None
    caller.assumed = AssumedRights(4, 1, 2)  # which a new service does not know
    served.do(served.listener.restarted)
    served.do(served.driver.held.set)
    until(lambda: not served.do(lambda: served.listener.service_connections), "it is given up")
    assert caller.assumed is None


def test_stopping_answers_the_request_under_way_and_no_other() -> None:
    server, _ = office()
    with in_memory(server) as served:
        client, idle = served.connect(), served.connect()
        client.login("ALICE")
        served.do(served.driver.held.clear)
        client.send(unit(client.request(125, QUEUE)) + unit(client.request(125, QUEUE)))
        until(lambda: served.do(lambda: served.listener.traffic.requests) == 2, "the request has come")
        served.loop.call_soon_threadsafe(lambda: served.loop.create_task(served.listener.close()))
        assert idle.has_ended()
        served.do(served.driver.held.set)
        assert client.reply()[6:] == b"\0\x10" + QUEUE + le32(0, 0, 0)
        assert client.reply() == b""
        client.close()
        idle.close()
        with pytest.raises(OSError, match=r"refused|reset"):
            served.connect()


@pytest.mark.skipif(not has_ipv6(), reason="this computer has no IPv6")
def test_over_ipv6() -> None:
    with in_memory(address="::1") as served, served.connect() as client:
        assert client.connection == 1


@pytest.mark.parametrize("flood", ["slow calls", "many answers"])
def test_requests_of_one_address_do_not_keep_others_waiting(
    served: InMemory, flood: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    served_calls: list[str] = []
    answers = NcpSession.received

    def received(session: NcpSession, packet: bytes, room: int) -> object:
        if packet[:2] == b"\x12\x12":
            served_calls.append("hostile")
            time.sleep(0.001)  # its share of the processor
        return answers(session, packet, room)

    def scan(*_: object, **__: object) -> None:
        served_calls.append("hostile")
        time.sleep(0.01)  # a search that takes long
        raise NcpRefused("nothing", CompletionCode.NO_SUCH_OBJECT)

    monkeypatch.setattr(NcpSession, "received", received)
    monkeypatch.setattr(served.server.service.bindery, "scan", scan)
    with many_computers(), ExitStack() as stack:
        bob = stack.enter_context(served.connect(source="127.0.0.2")).login("BOB")
        hostile = [stack.enter_context(served.connect()) for _ in range(30)]
        for one in hostile:
            scans = [one.request(55, be32(0xFFFFFFFF) + be16(0xFFFF) + b"\1*") for _ in range(2)]
            unknown = [one.packet(0x1212) for _ in range(40)]
            one.send(b"".join(map(unit, scans if flood == "slow calls" else unknown)))
        until(lambda: served_calls, "a request of an unauthenticated peer")
        before = len(served_calls)
        bob.call(125, QUEUE)
        meanwhile = len(served_calls) - before
        for one in hostile:
            assert one.reply()[6] in (0xFC, 0xFB)
    assert meanwhile <= (8 if flood == "slow calls" else 160)  # of 60, and of 1,200


def test_a_reply_that_can_not_be_ends_nothing(served: InMemory) -> None:
    with served.connect() as client:
        client.login("ALICE")
        number = client.call(121, QUEUE + new_job())[38:42]
        files = served.server.service.files
        served.do(lambda: files.space.add(StoredJobFile(4, 1), 1 << 32))
        client.call(135, QUEUE + number, code=0xFF)
        served.do(lambda: files.set_size(StoredJobFile(4, 1), 3))
        assert client.call(135, QUEUE + number) == QUEUE + number + be32(3)
