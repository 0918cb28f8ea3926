"""Numbers of transactional sequences at the end of their 32 bits: [MS-MQQB] 3.1.1.5."""

from __future__ import annotations

from msmqwire.qm.model.message import TxSequenceId
from tests.support.engine_harness import START_UTC, EngineHarness, harness_with_peer
from tests.support.peers.handwritten_peer import HandwrittenPeer

LAST = 0xFFFFFFFF
FIRST = TxSequenceId(START_UTC, 1)


def nearly_used_up() -> tuple[EngineHarness, HandwrittenPeer]:
    """Send a message, and leave its sequence one number."""
    harness = harness_with_peer()
    harness.send(b"a", transactional=True)
    harness.transfer().next_number = LAST - 1
    return harness, harness.called[0]


def test_a_used_up_sequence_is_acked_before_the_next_begins():
    """A new sequence begins once every number of the last one is used and acknowledged."""
    harness, peer = nearly_used_up()
    harness.send(b"b", b"c", b"d", transactional=True)
    assert peer.sequenced_bodies() == [(b"a", 1, 1, 0), (b"b", 1, LAST - 1, LAST - 2)]
    peer.acknowledge()
    assert peer.sequenced_bodies() == []
    peer.send_order_ack(FIRST, LAST - 1)
    assert peer.sequenced_bodies() == [(b"c", 2, 1, 0), (b"d", 2, 2, 1)]


def test_it_is_so_after_a_restart():
    harness, _ = nearly_used_up()
    harness.send(b"b", b"c", transactional=True)
    restarted = harness.restarted()
    peer = restarted.called[0]
    assert [body for body, *_ in peer.sequenced_bodies()] == [b"a", b"b"]
    peer.acknowledge()
    peer.send_order_ack(FIRST, LAST - 1)
    assert peer.sequenced_bodies() == [(b"c", 2, 1, 0)]


def test_other_messages_do_not_wait_for_it():
    harness, peer = nearly_used_up()
    harness.send(b"b", transactional=True)
    peer.take()
    harness.send(b"plain")
    assert peer.bodies() == [b"plain"]


def test_after_the_last_ordinal_identifiers_grow():
    harness = harness_with_peer()
    harness.core.sequence_identity._last = TxSequenceId(START_UTC, LAST - 1)
    found = []
    for body in (b"a", b"b"):
        harness.send(body, transactional=True)
        peer = harness.called[0]
        (packet,) = peer.take("UserMessage")
        found.append(TxSequenceId(*packet.tx[:2]))
        peer.acknowledge()
        peer.send_order_ack(found[-1], 1)
    assert found == [TxSequenceId(START_UTC, LAST), TxSequenceId(START_UTC + 1, 1)]
    assert found[1] > found[0]
