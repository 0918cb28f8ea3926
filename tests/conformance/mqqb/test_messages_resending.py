"""Resending transactional messages: [MS-MQQB] 3.1.2.6, 3.1.5.6, 3.1.6.5 and 3.1.5.8.8."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.elements import SequenceInfo
from msmqwire.qm.model.enumerations import DeliveryGuarantee
from msmqwire.qm.model.message import TxSequenceId
from msmqwire.qm.model.settings import RESEND_TIMES, Settings
from msmqwire.qm.model.timers import Timer
from tests.support import handmade
from tests.support.engine_harness import (
    PEER_ADDRESS,
    PEER_ID,
    START_UTC,
    THIRD_ID,
    harness_with_peer,
)
from tests.support.qm.queue_contents import bodies

FIRST = TxSequenceId(START_UTC, 1)


@pytest.mark.requirement(
    "MQQB-3.1.2.6-01", "MQQB-3.1.2.6-02", "MQQB-3.1.2.6-03", "MQQB-3.1.7.1.3-03", "MQQB-3.1.1.3.1.1-04",
    "MQQB-3.1.1.3.1.1-06",
)  # fmt: skip
def test_the_timer_starts_with_a_transactional_message():
    harness = harness_with_peer()
    harness.send(b"recoverable", delivery_guarantee=DeliveryGuarantee.RECOVERABLE)
    transfer, timers = harness.transfer(), harness.core.context.timers
    assert transfer.resend_time == 0
    assert not timers.active(Timer.TRANSACTIONAL_ACK_WAIT, transfer.queue.number)
    harness.advance(2_000)
    harness.send(b"m", transactional=True)
    assert timers.active(Timer.TRANSACTIONAL_ACK_WAIT, transfer.queue.number)
    assert transfer.resend_time == harness.utc + 30
    peer = harness.called[0]
    peer.acknowledge()
    peer.take()
    harness.advance(29_999)
    assert peer.sequenced_bodies() == []
    harness.advance(1)
    assert peer.sequenced_bodies() == [(b"m", 1, 1, 0)]


@pytest.mark.requirement("MQQB-3.1.6.5-01", "MQQB-3.1.6.5-02")
def test_all_that_have_no_order_acknowledgement_are_sent_again():
    harness = harness_with_peer()
    harness.send(b"1", b"2", b"3", transactional=True)
    peer, transfer = harness.called[0], harness.transfer()
    harness.send(b"plain", delivery_guarantee=DeliveryGuarantee.RECOVERABLE)
    peer.acknowledge(ack=2, recoverable_ack=1, recoverable_flags=0b11)
    peer.send_order_ack(FIRST, 1)
    peer.take()
    harness.advance(15_000)
    peer.acknowledge(ack=2, recoverable_ack=0, recoverable_flags=0)  # keeps the session open
    harness.advance(15_000)
    assert peer.sequenced_bodies() == [(b"2", 1, 2, 1), (b"3", 1, 3, 2)]
    assert [entry.sequence_number for entry in transfer.table.values()] == [5, 6, 4]
    assert [entry.received_session_ack for entry in transfer.table.values()] == [False] * 3
    peer.acknowledge(ack=4, recoverable_ack=0, recoverable_flags=0)  # the first transmission arrived
    assert [entry.received_session_ack for entry in transfer.table.values()] == [False, False, True]
    peer.acknowledge(recoverable_ack=4, recoverable_flags=0b111)
    assert bodies(harness.outgoing()) == [b"2", b"3"]
    peer.send_order_ack(FIRST, 3)
    assert bodies(harness.outgoing()) == []
    assert transfer.session.unacked_message_count == 0


@pytest.mark.requirement(
    "MQQB-3.1.5.6-03", "MQQB-3.1.5.6-06", "MQQB-3.1.5.6-14", "MQQB-3.1.1.3.1.1-03",
    "DMPR-3.1.1.4-07", "DMPR-3.1.1.4-09", "DMPR-3.1.1.4-10", "DMPR-3.1.1.4-11", "DMPR-3.1.1.4-12",
)  # fmt: skip
def test_the_times_between_sending_again_grow_and_begin_anew():
    harness = harness_with_peer(settings=Settings(session_cleanup_ms=1 << 40))
    harness.send(b"m", positive_journaling_requested=True, transactional=True)
    peer, info = harness.called[0], harness.outgoing().transfer
    packet = peer.take("UserMessage")[0]
    for number, interval in enumerate((*RESEND_TIMES, RESEND_TIMES[-1]), 1):
        peer.acknowledge()
        assert harness.transfer().resend_time == harness.utc + interval
        if number > 1:
            assert info.eod_resend_interval == interval
            assert info.eod_resend_time == harness.utc + interval
            assert info.eod_resend_count == min(number, 10)
        peer.take()
        harness.advance(interval * 1000 - 1)
        assert peer.sequenced_bodies() == []
        harness.advance(1)
        assert [number for _, _, number, _ in peer.sequenced_bodies()] == [1]
    peer.acknowledge()
    assert info.eod_next_seq == SequenceInfo(FIRST, 2, 1)
    assert info.eod_no_read_count == 0
    peer.send_order_ack(FIRST, 1)
    assert (harness.transfer().resend_index, info.eod_resend_interval) == (0, 30)
    assert info.eod_no_read_count == 1
    harness.send(b"next", transactional=True)
    peer.acknowledge()
    peer.take()
    harness.advance(29_999)
    assert peer.sequenced_bodies() == []
    harness.advance(1)
    assert [body for body, *_ in peer.sequenced_bodies()] == [b"next"]
    peer.send_final_ack(packet)
    assert info.eod_no_read_count == 0


def resent_after(harness, seconds):
    """Whether messages are sent again after exactly these seconds; they are acknowledged in the session."""
    peer = harness.called[0]
    peer.acknowledge()
    peer.take()
    harness.advance(seconds * 1000 - 1)
    too_early = peer.sequenced_bodies()
    harness.advance(1)
    bodies_resent = [body for body, *_ in peer.sequenced_bodies()]
    peer.acknowledge()
    return [] if too_early else bodies_resent


@pytest.mark.requirement("MQQB-3.1.5.6-03")
def test_an_order_acknowledgement_does_not_prolong_the_wait():
    """However many come: only time-outs in a row do. What one acknowledges begins the wait anew."""
    harness = harness_with_peer(settings=Settings(session_cleanup_ms=1 << 40))
    harness.send(*(b"%d" % number for number in range(1, 16)), transactional=True)
    for number in range(1, 15):
        harness.called[0].send_order_ack(FIRST, number)
    assert resent_after(harness, 30) == [b"15"]
    assert (resent_after(harness, 30), resent_after(harness, 30)) == ([b"15"], [b"15"])
    assert resent_after(harness, 300) == [b"15"]


@pytest.mark.requirement("MQQB-3.1.5.6-06")
def test_resend_times_restart_only_when_everything_is_acked():
    harness = harness_with_peer(settings=Settings(session_cleanup_ms=1 << 40))
    harness.send(b"1", b"2", b"3", transactional=True)
    peer, info = harness.called[0], harness.outgoing().transfer
    for _ in range(3):
        assert resent_after(harness, 30) == [b"1", b"2", b"3"]
    peer.send_order_ack(FIRST, 1)
    assert (info.eod_resend_count, info.eod_resend_interval) == (4, 300)
    harness.advance(10_000)
    peer.send_order_ack(FIRST, 2)
    assert (info.eod_resend_count, info.eod_resend_interval) == (4, 300)
    assert resent_after(harness, 300) == [b"3"]
    peer.send_order_ack(FIRST, 3)
    assert (info.eod_resend_count, info.eod_resend_interval) == (1, 30)
    harness.send(b"4", transactional=True)
    assert resent_after(harness, 30) == [b"4"]


@pytest.mark.requirement("MQQB-3.1.5.6-06", "MQQB-3.1.2.6-01")
@pytest.mark.parametrize("number", [0, 1, 2], ids=["none", "older", "the last"])
def test_a_repeated_order_ack_does_not_delay_resending(number):
    """A receiver that refuses what follows a gap repeats its last one: what it lacks is sent all the same."""
    harness = harness_with_peer(settings=Settings(session_cleanup_ms=1 << 40))
    harness.send(b"1", b"2", b"3", b"4", transactional=True)
    peer = harness.called[0]
    peer.send_order_ack(FIRST, 2)
    for _ in range(3):
        assert resent_after(harness, 30) == [b"3", b"4"]
    resend_time = harness.transfer().resend_time
    assert resend_time == harness.utc + 300
    for _ in range(29):
        harness.advance(10_000)
        peer.send_order_ack(FIRST, number)
        assert (harness.transfer().resend_time, harness.transfer().resend_index) == (resend_time, 3)
    assert resent_after(harness, 10) == [b"3", b"4"]


def test_resend_times_restart_after_expired_messages():
    harness = harness_with_peer(settings=Settings(session_cleanup_ms=1 << 40, expire_in_doubt=True))
    harness.send(b"1", transactional=True, time_to_reach_queue=100)
    for _ in range(3):
        assert resent_after(harness, 30) == [b"1"]
    harness.advance(11_000)
    assert bodies(harness.outgoing()) == []
    harness.send(b"2", transactional=True)
    assert resent_after(harness, 30) == [b"2"]


@pytest.mark.requirement("MQQB-3.1.5.8.8-09", "MQQB-3.1.5.8.8-10", "MQQB-3.1.5.8.6-01", "DMPR-3.1.1.4-01/a")
def test_the_queue_state_of_a_message_passed_on_is_reported():
    harness = harness_with_peer(routes={PEER_ID: ["far"]})
    harness.names["far"] = PEER_ADDRESS
    harness.send(b"own", to=harness.open_to_send(f"PRIVATE={PEER_ID}\\9"), transactional=True)
    queue = harness.outgoing(f"PRIVATE={PEER_ID}\\9")
    info = queue.transfer
    names = [name for name in dir(info) if name.startswith("eod_")]
    for name in names:
        setattr(info, name, 77)
    other = harness.accept_session(client=THIRD_ID, address="10.0.0.8")
    other.send_message(b"m", tx=(4, 3, 7), address=PEER_ID.bytes_le, destination=(3, handmade.private_id(9)))
    assert queue.transfer.eod_next_seq == SequenceInfo(FIRST, 2, 1)
    assert queue.transfer.eod_no_ack_count == 1
    assert queue.transfer.eod_first_non_ack == SequenceInfo(FIRST, 1, 0)
    assert info.eod_last_non_ack == SequenceInfo(FIRST, 1, 0)
    assert (info.eod_last_ack_time, info.eod_last_ack_count) == (harness.utc, 0)
    assert info.eod_last_ack == SequenceInfo()
    assert (info.eod_resend_interval, info.eod_resend_count) == (30, 1)
    assert (info.eod_resend_time, info.eod_no_read_count) == (harness.utc + 30, 0)
    assert bodies(queue) == [b"own", b"m"], "its place in its sequence is not judged here"
