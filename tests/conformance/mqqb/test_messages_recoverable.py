"""Recoverable messages are also counted and acknowledged separately: [MS-MQQB] 3.1.5.8.7."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.enumerations import DeliveryGuarantee
from msmqwire.qm.model.settings import Settings
from tests.support import handmade
from tests.support.engine_harness import harness_with_peer
from tests.support.peers.handwritten_peer import HandwrittenPeer


def session_of(peer: HandwrittenPeer):
    return peer.harness.core.binary.session_table.by_connection.get(peer.connection)


ALL = Settings(acknowledge_at_window=1.0, window_size=64)


@pytest.mark.requirement("MQQB-3.1.5.8.7-01", "MQQB-3.1.5.8.7-02", "MQQB-3.1.5.8.7-03")
def test_a_full_set_of_recoverable_flags_is_acked_at_once():
    harness = harness_with_peer(settings=ALL)
    harness.queue()
    peer = harness.accept_session()
    session = session_of(peer)
    for _ in range(32):
        peer.send_message(recoverable=True)
    assert peer.kinds() == []
    assert session.recoverable_ack_flags == 0xFFFFFFFF
    peer.send_message(recoverable=True)
    assert peer.all_packets[-1] == handmade.session_ack(
        handmade.session_header(ack=32, recoverable_ack=1, recoverable_flags=0xFFFFFFFF, window=64)
    )
    assert session.last_acked_recoverable == 32
    assert (session.unacked_received_count, session.recoverable_ack_flags) == (1, 1)
    harness.advance(500)
    assert peer.acks[-1][:3] == (33, 33, 1)


@pytest.mark.requirement("MQQB-3.1.5.8.7-02")
def test_the_acknowledgement_tells_what_was_sent():
    harness = harness_with_peer(settings=ALL)
    harness.queue()
    harness.send(b"a")
    harness.send(b"b", delivery_guarantee=DeliveryGuarantee.RECOVERABLE)
    far = harness.called[0]
    for _ in range(33):
        far.send_message(recoverable=True)
    ack, base, flags, sent, saved, window, _ = far.acks[-1]
    assert (ack, base, flags, sent, saved, window) == (32, 1, 0xFFFFFFFF, 2, 1, 64)


@pytest.mark.requirement("MQQB-3.1.5.8.7-05")
def test_the_first_recoverable_message_hastens_the_ack():
    harness = harness_with_peer()
    harness.queue()
    peer = harness.accept_session()
    peer.send_message()
    harness.advance(3_000)
    peer.send_message(recoverable=True)
    harness.advance(300)
    peer.send_message(recoverable=True)  # not the first one: the timer keeps running
    harness.advance(199)
    assert peer.kinds() == []
    harness.advance(1)
    assert peer.kinds() == ["SessionAck"]
    assert peer.acks[-1][:3] == (3, 1, 0b11)
