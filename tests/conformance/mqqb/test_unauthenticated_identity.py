"""An unauthenticated peer that knows the identifier of a sender, with and without `Settings.bind_senders`."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.qm.model.tables import Table
from msmqwire.service.store.changes import Changes
from tests.support.engine_harness import PEER_ID, EngineHarness
from tests.support.peers.handwritten_peer import JP, HandwrittenPeer

FORGED_LAST = (0xFFFFFFFF, 0, 0xFFFF)
"""Number, previous number and ordinal that take a sequence beyond all that its sender will send."""
UNKNOWN_ADDRESS = "10.0.0.99"


def bound(**options: object) -> EngineHarness:
    harness = EngineHarness(**{"bind_senders": True, "order_ack_timeout_ms": 0} | options)
    harness.queue()
    harness.queue("tx", transactional=True)
    return harness


def unknown_peer(
    harness: EngineHarness, identifier: UUID = PEER_ID, address: str = UNKNOWN_ADDRESS
) -> HandwrittenPeer:
    """A peer elsewhere that claims the identifier of the honest one."""
    return harness.accept_session(address=address, client=identifier)


def bodies(harness: EngineHarness, queue: str = "orders") -> list[bytes]:
    return [position.message.body for position in harness.find_queue(queue).positions]


def transactional(peer: HandwrittenPeer, body: bytes, number: int, **fields: object) -> None:
    tx = (number, number - 1)
    peer.send(peer.message(body, queue="tx", **{"tx": tx, "source": PEER_ID, "session": True} | fields))


# -- identifiers of messages --------------------------------------------------------------------------------


def test_a_forged_identifier_makes_no_honest_message_a_duplicate() -> None:
    harness = bound()
    forger = unknown_peer(harness)
    forger.send(forger.message(b"forged", message_id=7, recoverable=True))
    honest = harness.accept_session()
    for _ in range(2):
        honest.send(honest.message(b"honest", message_id=7, recoverable=True))
    assert bodies(harness) == [b"forged", b"honest"], "its own second one is a duplicate"
    restarted = harness.restarted()
    for peer in (unknown_peer(restarted), restarted.accept_session()):
        peer.send(peer.message(b"again", message_id=7, recoverable=True))
    assert bodies(restarted) == [b"forged", b"honest"], "both are stored with their origin"


def test_unbound_identifiers_belong_to_the_first_sender() -> None:
    """By the letter: MQQB-3.1.5.8.1-02. The first message with an identifier counts, whoever sends it."""
    harness = bound(bind_senders=False)
    forger = unknown_peer(harness)
    forger.send(forger.message(b"forged", message_id=7))
    honest = harness.accept_session()
    honest.send(honest.message(b"honest", message_id=7))
    assert bodies(harness) == [b"forged"]


def test_one_ipv6_network_is_one_origin() -> None:
    harness = bound()
    for address in ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"):
        peer = unknown_peer(harness, address=address)
        peer.send(peer.message(address.encode(), message_id=7))
    assert bodies(harness) == [b"2001:db8::1", b"2001:db8:0:1::1"]


# -- transactional sequences ---------------------------------------------------------------------------------


def test_nobody_elsewhere_takes_a_sequence_further() -> None:
    harness = bound()
    honest = harness.accept_session()
    transactional(honest, b"1", 1)
    forger = unknown_peer(harness)
    transactional(forger, b"forged", 0, tx=FORGED_LAST)
    transactional(honest, b"2", 2)
    transactional(honest, b"2", 2)
    assert bodies(harness, "tx") == [b"1", b"forged", b"2"]
    restarted = harness.restarted()
    honest = restarted.accept_session()
    transactional(honest, b"2", 2)
    transactional(honest, b"3", 3)
    assert bodies(restarted, "tx") == [b"1", b"forged", b"2", b"3"]


def test_without_binding_it_is_the_greatest_sequence_that_counts() -> None:
    """By the letter: MQQB-3.1.5.8.6-04 and -05."""
    harness = bound(bind_senders=False)
    forger = unknown_peer(harness)
    transactional(forger, b"forged", 0, tx=FORGED_LAST)
    transactional(harness.accept_session(), b"1", 1)
    assert bodies(harness, "tx") == [b"forged"]


def test_who_comes_first_does_not_own_the_sender() -> None:
    harness = bound()
    transactional(unknown_peer(harness), b"forged", 0, tx=FORGED_LAST)
    transactional(harness.accept_session(), b"1", 1)
    assert bodies(harness, "tx") == [b"forged", b"1"]


@pytest.mark.parametrize("claimed", [PEER_ID, UUID(int=0x99)], ids=["as the sender", "as a router"])
def test_forged_messages_send_no_acks_to_the_honest_sender(claimed: UUID) -> None:
    """The sender would take messages that have not arrived as acknowledged, and discard them."""
    harness = bound()
    honest = harness.accept_session()
    transactional(honest, b"1", 1)
    harness.advance(10)
    assert [packet.kind for packet in honest.take() if packet.kind != "SessionAck"] == ["OrderAck"]
    forger = unknown_peer(harness, claimed)
    transactional(forger, b"forged", 0, tx=(9, 0, 1), flags=JP)
    harness.advance(10)
    harness.receive("DIRECT=OS:here\\private$\\tx")
    harness.receive("DIRECT=OS:here\\private$\\tx")
    harness.advance(5_000)
    assert [packet.kind for packet in honest.take() if packet.kind != "SessionAck"] == []
    assert {packet.kind for packet in forger.take() if packet.kind != "SessionAck"} == {
        "OrderAck",
        "FinalAck",
    }


def test_acknowledgements_wait_for_the_sender_to_come_back() -> None:
    harness = bound()
    honest = harness.accept_session()
    transactional(honest, b"1", 1, flags=JP)
    harness.advance(10)
    honest.disconnect()
    harness.receive("DIRECT=OS:here\\private$\\tx")
    forger = unknown_peer(harness)
    harness.advance(60_000)
    assert forger.take("FinalAck") == []
    honest = harness.accept_session()
    harness.advance(60_000)
    assert [packet.kind for packet in honest.all_packets].count("FinalAck") == 1


@pytest.mark.parametrize("bind", [True, False], ids=["bound later", "bound no more"])
def test_sequences_go_on_when_the_setting_changes(bind: bool) -> None:
    harness = bound(bind_senders=not bind)
    honest = harness.accept_session()
    transactional(honest, b"1", 1)
    transactional(honest, b"2", 2)
    if not bind:
        transactional(unknown_peer(harness), b"forged", 1)
        harness.advance(2_000)
        transactional(honest, b"3", 3)
    restarted = harness.restarted(bind_senders=bind)
    again = restarted.restarted(bind_senders=bind)
    for twin in (restarted, again):
        before = len(bodies(twin, "tx"))
        honest = twin.accept_session()
        transactional(honest, b"duplicate", 2)
        transactional(honest, b"next", 3 if bind else 4)
        assert bodies(twin, "tx")[before:] == [b"next"]


def test_sequences_stored_by_an_older_version_go_on() -> None:
    harness = bound(bind_senders=False)
    honest = harness.accept_session()
    transactional(honest, b"1", 1)
    transactional(honest, b"2", 2)
    changes = Changes()
    for key, row in harness.rows(Table.INCOMING).items():
        changes.put(Table.INCOMING, key, row[:28])
    harness.store.commit(changes)
    restarted = harness.restarted(bind_senders=True)
    transactional(unknown_peer(restarted), b"forged", 0, tx=FORGED_LAST)
    honest = restarted.accept_session()
    transactional(honest, b"2", 2)
    transactional(honest, b"3", 3)
    assert bodies(restarted, "tx") == [b"1", b"2", b"forged", b"3"]
    unbound = harness.restarted()
    transactional(unbound.accept_session(), b"3", 3)
    assert bodies(unbound, "tx") == [b"1", b"2", b"3"]
