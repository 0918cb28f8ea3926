"""Unauthenticated peers at the sockets of a server: limits hold, and an honest peer is served afterwards."""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from msmqwire.qm.model.enumerations import Relay
from msmqwire.qm.runtime.local import attach
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
    ORDERS,
    TO_PEER,
    alpha,
    at,
    in_queue,
    outgoing,
    recoverable,
    send,
    server_options,
    serves,
)
from tests.support.running import InThread, served

pytestmark = [pytest.mark.uvloop, pytest.mark.usefixtures("computers")]
FAR = uuid.UUID(int=0xFA).bytes_le
"""A queue manager elsewhere, to which a message is to be forwarded."""
THIRD = "TCP:127.0.0.76\\private$\\inbox"


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


def fill(server: InThread, address: str) -> None:
    """Send recoverable messages from an address until the session ends."""
    with Session.opened(at(server), address=address, client=OTHER) as other:
        other.sent = other.recoverable_sent = 60
        with suppress(ConnectionError):
            for _ in range(60):
                other.send(Message(bytes(50_000), recoverable=True, source=OTHER).bytes())
        assert {packet.kind for packet in other.ended()} <= {"SessionAck"}


def of_origins(server: InThread) -> dict[str, int]:
    with attach(server.data) as local:
        return dict(local.call("status")["shares"])


def test_a_sender_fills_its_share_of_the_quota_only(tmp_path: Path) -> None:
    """Also after a restart; a known computer is acknowledged, another one too, and the owner sends."""
    with Listener("127.0.0.77") as known:
        given = replace(server_options(tmp_path / "alpha", known), quota=1 << 20)
        for _ in range(2):
            with served(given) as server:
                fill(server, "127.0.0.78")
                told = of_origins(server)
                assert (told["limit"], told["per_origin"]) == (1 << 20, 1 << 18)
                assert 1 << 17 < told["unknown"] <= 1 << 18
                assert told["refused"] == 1
                for address in (known.at[0], PEER):
                    with Session.opened(at(server), address=address) as honest:
                        honest.push(Message(b"honest", recoverable=True))
                        assert honest.until_acknowledged() == []
                send(server, *recoverable(b"x" * 100_000), to=f"DIRECT=OS:alpha\\{ORDERS}")
                assert of_origins(server)["owner"] > told["owner"] + 100_000
                assert of_origins(server)["known"] > told["known"]


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
