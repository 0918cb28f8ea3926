"""Single packets of an unauthenticated peer that could end, bypass or slow down a queue manager."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.qm.model.enumerations import QueuePrivacy
from msmqwire.qm.protocols.binary.session_acknowledgements import UNSAVED_MAX
from tests.support import handmade as h
from tests.support.engine_harness import EngineHarness
from tests.support.peers.handwritten_peer import NA, PA, HandwrittenPeer, direct

LARGEST = 1 << 22


def unknown_peer(harness: EngineHarness, address: str = "10.0.0.99") -> HandwrittenPeer:
    return harness.accept_session(address=address, client=UUID(int=0x99))


def bodies(harness: EngineHarness, queue: str = "orders") -> list[bytes]:
    return [position.message.body for position in harness.find_queue(queue).positions]


@pytest.fixture
def harness() -> EngineHarness:
    harness = EngineHarness(send_insecure_nacks=True)
    for name in ("orders", "adm"):
        harness.queue(name)
    harness.queue("tx", transactional=True)
    return harness


# -- what is about a message, and can not be built -----------------------------------------------------------


def unterminated(packet: bytes, label: str) -> bytes:
    """Replace the null of a label by a character."""
    text = label.encode("utf-16-le")
    return packet.replace(text + b"\0\0", text + "!".encode("utf-16-le"), 1)


@pytest.mark.parametrize("label", ["x" * 249, "x" * 247 + "\U0001f600", "\U0001f600" * 124 + "x"])
def test_a_label_that_fills_its_field_is_cut(harness: EngineHarness, label: str) -> None:
    peer = unknown_peer(harness)
    admin = direct("adm")
    for queue in ("orders", "missing"):
        packet = peer.message(b"m", queue=queue, label=label, acks=PA | NA, admin=admin)
        peer.send(unterminated(packet, label))
    told = [position.message for position in harness.find_queue("adm").positions]
    assert [message.label for message in told] == [label, label]
    assert not peer.closed


def test_a_message_too_large_to_return_is_nacked_without_a_body(harness: EngineHarness) -> None:
    peer = unknown_peer(harness)

    def packet(size: int) -> bytes:
        return peer.message(
            bytes(size), queue="tx", label="label", acks=NA, admin=direct("adm", "10.0.0.99"), count=False
        )

    # The acknowledgement has a null more, by which the body begins four bytes later.
    largest = unterminated(packet(LARGEST - len(packet(0))), "label")
    assert len(largest) == LARGEST
    peer.count_sent(recoverable=False)
    peer.send(largest)
    assert not peer.closed
    (told,) = harness.outgoing(r"DIRECT=TCP:10.0.0.99\private$\adm").positions
    assert (told.message.message_class, told.message.label, told.message.body) == (0x800A, "label!", b"")
    peer.send(peer.message(b"honest"))
    assert bodies(harness) == [b"honest"]


# -- a queue here that claims to be elsewhere ---------------------------------------------------------------


def test_a_local_queue_is_checked_whatever_address_is_named(harness: EngineHarness) -> None:
    harness.queue("signed", authentication=True)
    harness.queue("sealed", privacy_level=QueuePrivacy.BODY)
    peer = unknown_peer(harness)
    for queue in ("tx", "signed", "sealed", "orders"):
        peer.send(peer.message(b"m", queue=queue, address=UUID(int=0x1234).bytes_le))
    assert [bodies(harness, queue) for queue in ("tx", "signed", "sealed")] == [[], [], []]
    assert bodies(harness) == [b"m"]
    for _ in range(2):
        peer.send(peer.message(b"1", queue="tx", tx=(1, 0), address=UUID(int=0x1234).bytes_le))
    assert bodies(harness, "tx") == [b"1"], "the second one is a duplicate"


# -- a peer that saves nothing -------------------------------------------------------------------------------


@pytest.mark.parametrize("saves", [True, False])
def test_a_peer_that_receives_and_never_saves_is_given_up(harness: EngineHarness, saves: bool) -> None:
    peer = harness.open_session()
    for _ in range(UNSAVED_MAX // 16):
        for _ in range(32):
            if not peer.closed:
                harness.send(b"m", recoverable=True)
        if peer.closed:
            break
        peer.take()
        if saves:
            peer.acknowledge()
        else:
            peer.send(peer.ack(ack=peer.received))
        assert len(peer.session.unsaved) <= UNSAVED_MAX + 64
    assert peer.closed is not saves


# -- identifiers ---------------------------------------------------------------------------------------------


def test_a_hostile_peer_drives_out_its_own_identifiers_only() -> None:
    harness = EngineHarness(remove_duplicate_size=100)
    harness.queue()
    honest, forger = harness.accept_session(), unknown_peer(harness)
    for number in range(1, 61):
        honest.send(honest.message(b"honest", message_id=number))
    for _ in range(1_000):
        forger.send(forger.message(queue="missing"))
    assert len(harness.core.history) == 100
    honest.send(honest.message(b"again", message_id=60), honest.message(b"again", message_id=1))
    assert b"again" not in bodies(harness)


# -- what nothing carries ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["http://10.0.0.7/msmq/private$/a", "https://10.0.0.7/msmq/private$/a"])
def test_no_messages_wait_for_a_protocol_that_nothing_carries(harness: EngineHarness, name: str) -> None:
    peer = unknown_peer(harness)
    queues = len(harness.core.queue_manager.queues)
    peer.send(peer.message(queue="missing", acks=NA, admin=(7, h.direct_name(name))))
    peer.send(peer.message(destination=(7, h.direct_name(name)), address=UUID(int=0x77).bytes_le))
    assert len(harness.core.queue_manager.queues) == queues
    assert not peer.closed
