"""Transactional messages that are sent again: [MS-MQQB] 3.1.2.6, 3.1.5.6, 3.1.6.5 and 3.1.5.8.8."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.elements import SequenceInfo
from msmqwire.qm.model.enumerations import DeliveryGuarantee
from msmqwire.qm.model.message import TxSequenceId
from msmqwire.qm.model.settings import RESEND_TIMES, Settings
from msmqwire.qm.model.timers import Timer
from tests.support import handmade
from tests.support.message_desk import BEHIND, PEER_ADDRESS, THERE, UTC, Desk, bodies

FIRST = TxSequenceId(UTC, 1)


@pytest.mark.requirement(
    "MQQB-3.1.2.6-01", "MQQB-3.1.2.6-02", "MQQB-3.1.2.6-03", "MQQB-3.1.7.1.3-03", "MQQB-3.1.1.3.1.1-04",
    "MQQB-3.1.1.3.1.1-06",
)  # fmt: skip
def test_the_timer_starts_with_a_transactional_message():
    desk = Desk()
    desk.send(b"recoverable", delivery_guarantee=DeliveryGuarantee.RECOVERABLE)
    transfer, timers = desk.transfer(), desk.core.context.timers
    assert transfer.resend_time == 0
    assert not timers.active(Timer.TRANSACTIONAL_ACK_WAIT, transfer.queue.number)
    desk.passes(2_000)
    desk.send_all(b"m")
    assert timers.active(Timer.TRANSACTIONAL_ACK_WAIT, transfer.queue.number)
    assert transfer.resend_time == desk.utc + 30
    peer = desk.called[0]
    peer.acknowledge()
    peer.take()
    desk.passes(29_999)
    assert peer.sent_in_order() == []
    desk.passes(1)
    assert peer.sent_in_order() == [(b"m", 1, 1, 0)]


@pytest.mark.requirement("MQQB-3.1.6.5-01", "MQQB-3.1.6.5-02")
def test_all_that_have_no_order_acknowledgement_are_sent_again():
    desk = Desk()
    desk.send_all(b"1", b"2", b"3")
    peer, transfer = desk.called[0], desk.transfer()
    desk.send(b"plain", delivery_guarantee=DeliveryGuarantee.RECOVERABLE)
    peer.acknowledge(ack=2, recoverable_ack=1, recoverable_flags=0b11)
    peer.order_ack(FIRST, 1)
    peer.take()
    desk.passes(15_000)
    peer.acknowledge(ack=2, recoverable_ack=0, recoverable_flags=0)  # the session lives
    desk.passes(15_000)
    assert peer.sent_in_order() == [(b"2", 1, 2, 1), (b"3", 1, 3, 2)]
    assert [one.sequence_number for one in transfer.table.values()] == [5, 6, 4]
    assert [one.received_session_ack for one in transfer.table.values()] == [False] * 3
    peer.acknowledge(ack=4, recoverable_ack=0, recoverable_flags=0)  # what was sent first has come
    assert [one.received_session_ack for one in transfer.table.values()] == [False, False, True]
    peer.acknowledge(recoverable_ack=4, recoverable_flags=0b111)
    assert bodies(desk.outgoing()) == [b"2", b"3"]
    peer.order_ack(FIRST, 3)
    assert bodies(desk.outgoing()) == []
    assert transfer.session.unacked_message_count == 0


@pytest.mark.requirement(
    "MQQB-3.1.5.6-03", "MQQB-3.1.5.6-06", "MQQB-3.1.5.6-14", "MQQB-3.1.1.3.1.1-03",
    "DMPR-3.1.1.4-07", "DMPR-3.1.1.4-09", "DMPR-3.1.1.4-10", "DMPR-3.1.1.4-11", "DMPR-3.1.1.4-12",
)  # fmt: skip
def test_the_times_between_sending_again_grow_and_begin_anew():
    desk = Desk(settings=Settings(session_cleanup_ms=1 << 40))
    desk.send_all(b"m", positive_journaling_requested=True)
    peer, info = desk.called[0], desk.outgoing().transfer
    packet = peer.take("UserMessage")[0]
    for number, interval in enumerate((*RESEND_TIMES, RESEND_TIMES[-1]), 1):
        peer.acknowledge()
        assert desk.transfer().resend_time == desk.utc + interval
        if number > 1:
            assert info.eod_resend_interval == interval
            assert info.eod_resend_time == desk.utc + interval
            assert info.eod_resend_count == min(number, 10)
        peer.take()
        desk.passes(interval * 1000 - 1)
        assert peer.sent_in_order() == []
        desk.passes(1)
        assert [number for _, _, number, _ in peer.sent_in_order()] == [1]
    peer.acknowledge()
    assert info.eod_next_seq == SequenceInfo(FIRST, 2, 1)
    assert info.eod_no_read_count == 0
    peer.order_ack(FIRST, 1)
    assert (desk.transfer().resend_index, info.eod_resend_interval) == (0, 30)
    assert info.eod_no_read_count == 1
    desk.send_all(b"next")
    peer.acknowledge()
    peer.take()
    desk.passes(29_999)
    assert peer.sent_in_order() == []
    desk.passes(1)
    assert [body for body, *_ in peer.sent_in_order()] == [b"next"]
    peer.final_ack(packet)
    assert info.eod_no_read_count == 0


@pytest.mark.requirement("MQQB-3.1.5.8.8-09", "MQQB-3.1.5.8.8-10", "DMPR-3.1.1.4-01")
def test_a_message_passed_on_has_the_state_of_its_queue_told():
    desk = Desk(routes={THERE: ["far"]})
    desk.names["far"] = PEER_ADDRESS
    desk.send_all(b"own", to=desk.open(f"PRIVATE={THERE}\\9"))
    queue = desk.outgoing(f"PRIVATE={THERE}\\9")
    queue.transfer.eod_next_seq, queue.transfer.eod_no_ack_count = None, 77
    other = desk.peer(BEHIND, "10.0.0.8")
    other.send(b"m", tx=(4, 3, 7), address=THERE.bytes_le, destination=(3, handmade.private_id(9)))
    assert queue.transfer.eod_next_seq == SequenceInfo(FIRST, 2, 1)
    assert queue.transfer.eod_no_ack_count == 1
    assert queue.transfer.eod_first_non_ack == SequenceInfo(FIRST, 1, 0)
