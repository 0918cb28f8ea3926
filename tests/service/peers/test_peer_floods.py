"""Floods from a hand-written peer: the server stays alive, bounded, and serves others."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import repeat
from pathlib import Path

import pytest

from msmqwire.qm.model.enumerations import Relay
from msmqwire.qm.runtime.limits import Limits
from msmqwire.qm.runtime.transport import TcpNetwork
from tests.support import handmade as h
from tests.support.peers.raw_peer import (
    NACK_ARRIVAL,
    PEER,
    TX_QUEUE,
    Listener,
    Message,
    Session,
    direct,
    establish,
    new_id,
)
from tests.support.qm.peer_server import (
    ORDERS,
    alpha,
    at,
    in_queue,
    recoverable,
    send,
    server_options,
    serves,
    sessions,
    until,
)
from tests.support.running import InThread, attach, served

pytestmark = pytest.mark.usefixtures("computers")
ADMIN = (2, h.private_id(9))
ONE_SHARE = {"quota_per_origin_percent": 100, "quota_reserve_percent": 0}
"""One origin may use up the quota."""


def network(server: InThread) -> TcpNetwork:
    tcp_network = server.server.network
    assert tcp_network is not None
    return tcp_network


def is_accepted(peer: Session) -> bool:
    """Whether a connection was accepted: its request is answered."""
    try:
        peer.send(establish())
        return peer.take().kind == "EstablishConnection"
    except (EOFError, ConnectionError):
        return False


def is_cut_off(peer: Session, packets: Iterable[bytes]) -> bool:
    """Whether the server ends the connection while the peer sends without reading."""
    try:
        for packet in packets:
            peer.send(packet)
    except ConnectionError:
        return True
    return False


# -- connections ----------------------------------------------------------------------------------------


@contextmanager
def connections(server: InThread, count: int, address: str = PEER) -> Iterator[list[Session]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Session.connect(at(server), address=address)) for _ in range(count)]


def test_one_address_has_so_many_connections_and_no_more(tmp_path: Path) -> None:
    with alpha(tmp_path / "alpha", limits=Limits(connections_per_peer=5)) as server:
        with connections(server, 12) as peers:
            assert sum(map(is_accepted, peers)) == 5
            assert server.do(lambda _: network(server).traffic.evicted) == 7
            with connections(server, 3) as more:
                assert sum(map(is_accepted, more)) == 0
            assert server.do(lambda _: network(server).traffic.refused) == 3
            serves(server)
        until(lambda: sessions(server) == 0, "those connections have ended")
        with Session.opened(at(server)) as peer:
            assert peer.fence() == []


def test_all_together_have_so_many_connections_and_no_more(tmp_path: Path) -> None:
    with alpha(tmp_path / "alpha", limits=Limits(connections=6, reserved_percent=0)) as server:
        with connections(server, 4) as peers, connections(server, 4, "127.0.0.73") as others:
            assert sum(map(is_accepted, peers + others)) == 6
            with Session.connect(at(server), address="127.0.0.74") as third:
                assert not is_accepted(third)
        until(lambda: sessions(server) == 0, "those connections have ended")
        serves(server)


def test_half_open_connections_do_not_last(tmp_path: Path) -> None:
    limits = Limits(connections_per_peer=20)
    with alpha(tmp_path / "alpha", limits=limits, session_initialization_ms=500) as server:
        with connections(server, 20) as peers:
            assert [peer.ended() for peer in peers] == [[]] * 20
        until(lambda: sessions(server) == 0, "those connections have ended")
        with Session.opened(at(server)) as peer:
            assert peer.fence() == []


def test_connections_that_come_and_go_leave_nothing(tmp_path: Path) -> None:
    with alpha(tmp_path / "alpha") as server:
        for number in range(300):
            peer = Session.connect(at(server))
            peer.send(establish() if number % 3 else b"")
            if number % 2:
                peer.reset()
            else:
                peer.close()
        serves(server)  # accepted after all of them
        until(lambda: sessions(server) == 0, "those connections have ended")
        until(lambda: not server.do(lambda _: len(network(server).connections)), "they are forgotten")


def test_requests_in_thousands_are_answered_once(tmp_path: Path) -> None:
    with alpha(tmp_path / "alpha") as server:
        with Session.connect(at(server)) as peer:
            # The server may end the connection before it has received them all.
            with suppress(ConnectionError):
                peer.send(establish() * 2_000)
            assert [packet.kind for packet in peer.ended()] in ([], ["EstablishConnection"])
        until(lambda: sessions(server) == 0, "that session has ended")
        serves(server)


# -- messages -------------------------------------------------------------------------------------------


def test_who_does_not_read_the_answers_is_cut_off(tmp_path: Path) -> None:
    """Each message is returned, and the peer acknowledges it without reading it: no window stops this."""
    message = Message(bytes(100_000), age=9, time_to_reach_queue=1, wants=NACK_ARRIVAL, admin=ADMIN)
    with alpha(tmp_path / "alpha", limits=Limits(unsent_bytes=200_000)) as server:
        with Session.opened(at(server)) as peer:
            flood = (
                replace(message, message_id=new_id()).bytes()
                + h.session_ack(h.session_header(ack=number, sent=number))
                for number in range(1, 5_000)
            )
            assert is_cut_off(peer, flood)
        until(lambda: sessions(server) == 0, "that session has ended")
        bytes_sent = server.do(lambda _: network(server).traffic.bytes_sent)
        assert bytes_sent < 100_000_000, "it was cut off long before all messages were returned"
        with attach(server.data) as local:
            for queue in local.call("list")["queues"]:
                local.call("purge", queue=queue["queue"])
        serves(server)


def test_who_does_not_acknowledge_gets_no_more_than_the_window(tmp_path: Path) -> None:
    """Answers wait in the queue manager, which has a quota for them."""
    quota = 200_000
    message = Message(bytes(20_000), age=9, time_to_reach_queue=1, wants=NACK_ARRIVAL, admin=ADMIN)
    with served(replace(server_options(tmp_path / "alpha", **ONE_SHARE), quota=quota)) as server:
        with Session.opened(at(server), window=2) as peer:
            peer.sent = 500
            with suppress(ConnectionError):
                for _ in range(500):
                    peer.send(replace(message, message_id=new_id()).bytes())
            peer.ended()
            assert peer.received <= 2
        with attach(server.data) as local:
            used = local.call("status")["used"]
            assert quota - 30_000 < used <= quota, "one answer more would exceed the quota"
            for queue in local.call("list")["queues"]:
                local.call("purge", queue=queue["queue"])
        serves(server)


@pytest.mark.requirement("MQQB-3.1.5.8.8-06")
def test_a_full_queue_manager_takes_no_more_and_says_nothing(tmp_path: Path) -> None:
    body = bytes(10_000)
    with served(replace(server_options(tmp_path / "alpha", **ONE_SHARE), quota=105_000)) as server:
        messages = [Message(body, recoverable=True, wants=NACK_ARRIVAL, admin=ADMIN) for _ in range(20)]
        with Session.opened(at(server)) as peer:
            peer.send(*(message.bytes() for message in messages))
            peer.sent = peer.recoverable_sent = 20
            assert {packet.kind for packet in peer.ended()} <= {"SessionAck"}
            assert max(peer.saved, default=0) <= 10
        assert len(in_queue(server)) == 10
        with attach(server.data) as local:
            local.call("purge", queue=ORDERS)
        with Session.opened(at(server)) as peer:
            peer.push(*messages[:12])
            assert peer.until_acknowledged() == []
        assert len(in_queue(server)) == 2, "ten are duplicates, two are accepted now"


@pytest.mark.parametrize("kind", ["for others", "reports to others", "orders of others"])
def test_unreachable_places_have_a_limit(tmp_path: Path, kind: str) -> None:
    """Without a limit each destination would be tried again and again."""
    limit = 40
    settings = {"unreachable_max": limit, "session_retry_connect_ms": 5_000, "relay": Relay.ALL}
    with alpha(tmp_path / "alpha", **settings) as server:
        with Session.opened(at(server)) as peer:
            for number in range(1, 3 * limit + 1):
                guid = uuid.UUID(int=number).bytes_le
                peer.push(
                    {
                        "for others": Message(queue=(3, h.private_id(9)), address=guid),
                        "reports to others": Message(wants=1, admin=(6, guid + h.private_id(9))),
                        "orders of others": Message(queue=direct(TX_QUEUE), source=guid, tx=(1, 1, 1, 0)),
                    }[kind]
                )
            peer.push(Message(wants=1, admin=ADMIN), Message(queue=direct(TX_QUEUE), tx=(1, 1, 1, 0)))
            packets = peer.until_acknowledged()
            while {packet.kind for packet in packets} != {"UserMessage", "OrderAck"}:
                packets.append(peer.take())
            assert len(packets) == 2, "only the connected peer gets its report and its acknowledgement"
            assert sessions(server) == limit + 1
            peer.acknowledge()
            assert peer.fence() == []
        serves(server)


def test_messages_to_thousands_of_queues_that_are_not_there(tmp_path: Path) -> None:
    with alpha(tmp_path / "alpha") as server:
        with Session.opened(at(server)) as peer:
            for _ in range(20):
                names = [direct(f"OS:alpha\\private$\\{uuid.uuid4()}") for _ in range(100)]
                peer.push(*(Message(queue=name, recoverable=True) for name in names))
            assert peer.until_acknowledged() == []
        with attach(server.data) as local:
            status = local.call("status")
        assert (status["queues"], status["used"]) == (5, 0), "two, and three system queues"
        serves(server)


def test_who_goes_on_after_the_end_is_not_read_for_long(tmp_path: Path) -> None:
    limits = Limits(close_s=1_000, unwanted_bytes=1 << 20)
    with Listener() as listener, alpha(tmp_path / "alpha", listener, limits=limits) as server:
        send(server, *recoverable(b"1"))
        with listener.ring() as peer:
            assert is_cut_off(peer, repeat(bytes(1 << 16), 10_000))
        with listener.accept() as peer:
            assert peer.until("UserMessage").body == b"1"
            peer.acknowledge()
            assert peer.fence() == []
            peer.finish()
        serves(server)
