"""Unauthenticated peers at the sockets of a server: limits hold, and an honest peer is served afterwards."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmqwire.qm.model.enumerations import Relay
from msmqwire.qm.runtime.local import attach
from tests.support.many_computers import many_computers
from tests.support.peers.raw_peer import (
    ACK_ARRIVAL,
    NACK_ARRIVAL,
    OTHER,
    PEER,
    TX_QUEUE,
    Listener,
    Message,
    Session,
    direct,
)
from tests.support.qm.peer_server import (
    LEDGER,
    TO_PEER,
    alpha,
    at,
    in_queue,
    outgoing,
    recoverable,
    send,
    serves,
)
from tests.support.running import InThread

pytestmark = pytest.mark.uvloop
FAR = uuid.UUID(int=0xFA).bytes_le
"""A queue manager elsewhere, to which a message is to be forwarded."""
THIRD = "TCP:127.0.0.76\\private$\\inbox"


@pytest.fixture(autouse=True)
def computers() -> Iterator[None]:
    """Addresses of the loopback stand for computers of a network."""
    with many_computers():
        yield


def troubles(server: InThread) -> dict[str, int]:
    with attach(server.data) as local:
        return dict(local.call("status")["troubles"])


@pytest.mark.parametrize("relay", list(Relay))
def test_only_who_may_has_messages_forwarded(tmp_path: Path, relay: Relay) -> None:
    with alpha(tmp_path / "alpha", relay=relay) as server:
        with Session.opened(at(server)) as peer:
            for _ in range(50):
                peer.push(Message(queue=direct(THIRD), address=FAR, recoverable=True))
            assert peer.until_acknowledged() == []
        taken = outgoing(server, f"DIRECT={THIRD}")
        assert taken == (50 if relay is Relay.ALL else 0)
        assert troubles(server).get("relay refused", 0) == 50 - taken
        serves(server)


def test_a_named_host_and_where_applications_send_is_known(tmp_path: Path) -> None:
    with Listener("127.0.0.77") as named, alpha(tmp_path / "alpha", named) as server:
        with Session.opened(at(server)) as peer:
            peer.push(Message(queue=direct("OS:peer\\private$\\inbox"), address=FAR, recoverable=True))
            assert peer.until_acknowledged() == []
        with named.accept() as third:
            assert third.until("UserMessage").kind == "UserMessage"
            third.acknowledge()
            assert third.fence() == []
        send(server, *recoverable(b"own"), to=f"DIRECT={THIRD}")
        with Session.opened(at(server)) as peer:
            peer.push(Message(queue=direct(THIRD), address=FAR, recoverable=True))
            assert peer.until_acknowledged() == []
        assert outgoing(server, f"DIRECT={THIRD}") == 2
        serves(server)


def test_acks_to_a_third_computer_are_limited_per_sender(tmp_path: Path) -> None:
    with (
        Listener("127.0.0.77") as third,
        alpha(tmp_path / "alpha", third, third_place_messages=4, third_place_bytes=1 << 20) as server,
    ):
        with Session.opened(at(server), address="127.0.0.78", client=OTHER) as other:
            for _ in range(40):
                other.push(
                    Message(
                        bytes(50_000), age=9, time_to_reach_queue=1, wants=NACK_ARRIVAL, source=OTHER,
                        admin=direct("OS:peer\\private$\\inbox"),
                    )
                )  # fmt: skip
            assert other.until_acknowledged() == []
        assert 4 <= outgoing(server, TO_PEER) <= 6
        assert troubles(server)["third place"] >= 34
        with Session.opened(at(server)) as honest:
            honest.push(Message(b"honest", wants=ACK_ARRIVAL, admin=direct("OS:peer\\private$\\inbox")))
            assert honest.until_acknowledged() == []
        assert 5 <= outgoing(server, TO_PEER) <= 7
        assert in_queue(server) == [b"honest"]


def test_memory_of_express_messages_is_bounded_and_reported(tmp_path: Path) -> None:
    with alpha(tmp_path / "alpha", memory=1 << 20) as server:
        with Session.opened(at(server), address="127.0.0.78", client=OTHER) as other:
            for _ in range(60):
                other.send(Message(bytes(10_000), source=OTHER).bytes())
            other.sent = 60
            assert {packet.kind for packet in other.ended()} <= {"SessionAck"}
        with attach(server.data) as local:
            memory = local.call("status")["memory"]
        assert memory["limit"] == 1 << 20
        assert 50_000 < memory["express"] <= 1 << 17
        serves(server)
        with Session.opened(at(server)) as honest:
            honest.push(Message(b"honest"))
            assert honest.until_acknowledged() == []
        assert in_queue(server)[-1] == b"honest"


def test_bound_senders_are_distinguished_by_address(tmp_path: Path) -> None:
    def push(server: InThread, body: bytes, *tx: int, address: str = PEER) -> None:
        with Session.opened(at(server), address=address) as peer:
            peer.push(Message(body, queue=direct(TX_QUEUE), tx=tx))
            peer.until_acknowledged()

    with alpha(tmp_path / "alpha", bind_senders=True) as server:
        push(server, b"forged", 0xFFFFFFFF, 1, 1, 0, address="127.0.0.78")
        push(server, b"honest", 1, 1, 1, 0)
    with alpha(tmp_path / "alpha", bind_senders=True) as server:
        push(server, b"again", 1, 1, 1, 0)
        push(server, b"next", 1, 1, 2, 1)
        assert in_queue(server, LEDGER) == [b"forged", b"honest", b"next"]
