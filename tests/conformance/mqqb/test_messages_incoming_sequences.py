"""Transactional sequences that end here: [MS-MQQB] 3.1.5.8.6, .8, 3.1.6.9, 3.1.2.7 and 3.1.1.6.2."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.changes import Table
from msmqwire.qm.model.enumerations import QueueAccessType
from msmqwire.qm.model.message import TxSequenceId
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.states import SessionState
from tests.support import handmade
from tests.support.message_desk import (
    ADDRESS,
    BEHIND,
    HERE,
    JP,
    PEER_ADDRESS,
    THERE,
    Desk,
    Peer,
    bodies,
    direct,
)

TX = direct("tx")


def prepared(**how: object) -> tuple[Desk, object, Peer]:
    desk = Desk(**how)
    return desk, desk.queue("tx", transactional=True), desk.peer()


def info_of(queue):
    (info,) = queue.incoming.values()
    return info


def order_acks(peer: Peer) -> list[tuple[int, int, int]]:
    """Ordinal of the sequence, number and previous number of the OrderAcks that have come."""
    return [
        (
            packet.OrderAckBody.TxSequenceID.Ordinal,
            packet.OrderAckBody.TxSequenceNumber,
            packet.OrderAckBody.TxPreviousSequenceNumber,
        )
        for packet in peer.take("OrderAck")
    ]


# --- acceptance ---


@pytest.mark.requirement("MQQB-3.1.5.8.6-01")
@pytest.mark.parametrize(
    "how",
    [
        {"destination": TX},
        {"destination": (3, handmade.private_id(5)), "address": HERE.bytes_le},
    ],
    ids=["zero", "own"],
)
def test_sequences_of_local_queues_are_judged(how):
    _, queue, peer = prepared()
    assert queue.private_queue_number == 5
    peer.send(b"2", tx=(2, 1), **how)
    peer.send(b"1", tx=(1, 0), **how)
    assert bodies(queue) == [b"1"]


@pytest.mark.parametrize(
    ("before", "message", "accepted"),
    [
        pytest.param(before, message, accepted, marks=pytest.mark.requirement(f"MQQB-3.1.5.8.6-{row}"))
        for before, message, accepted, row in (
            ([(1, 0)], (2, 1), True, "03"),
            ([(1, 0)], (5, 0), True, "03"),  # what was between them was given up
            ([(1, 0)], (5, 1), True, "03"),
            ([(1, 0), (5, 1)], (6, 3), True, "03"),
            ([(1, 0, 3)], (1, 0, 4), True, "04"),
            ([(1, 0, 3)], (4, 0, 9), True, "04"),
            ([], (1, 0), True, "04"),
            ([], (3, 0), True, "04"),
            ([(1, 0)], (1, 0), False, "05"),  # a duplicate
            ([(1, 0), (2, 1)], (1, 0), False, "05"),
            ([(1, 0)], (3, 2), False, "05"),  # a gap
            ([], (2, 1), False, "05"),
            ([(1, 0, 3)], (2, 0, 2), False, "05"),  # an older sequence
            ([(1, 0, 3)], (2, 1, 4), False, "05"),  # a new one that does not begin at its head
        )
    ],
)
def test_what_follows_is_accepted(before, message, accepted):
    desk, queue, peer = prepared()
    for tx in before:
        peer.send(b"before", tx=tx, destination=TX)
    peer.send(b"it", tx=message, destination=TX)
    assert (b"it" in bodies(queue)) is accepted
    session = desk.core.engine.session_table.by_connection[peer.connection]
    assert session.message_received_count == session.recoverable_message_received_count == len(before) + 1
    assert session.recoverable_ack_flags == (1 << len(before) + 1) - 1


@pytest.mark.requirement("MQQB-3.1.5.8.6-04")
def test_the_time_stamp_is_the_high_part_of_a_sequence():
    desk, queue, peer = prepared()
    for time_stamp, ordinal in ((2, 9), (3, 1), (2, 10)):
        peer.sent, peer.recoverable = peer.sent + 1, peer.recoverable + 1
        header = handmade.transaction_header(ordinal=ordinal, time_stamp=time_stamp)
        user = handmade.user_header(
            source=THERE.bytes_le, flags=handmade.MP | 0x20, destination=TX, sent_time=desk.utc
        )
        properties = handmade.properties_header(body=b"%d" % ordinal)
        peer.put(handmade.user_message(user=user, transaction=header, properties=properties, flags=0))
    assert bodies(queue) == [b"9", b"1"]


@pytest.mark.requirement(
    "MQQB-3.1.5.8.6-06", "MQQB-3.1.5.8.6-07", "MQQB-3.1.5.8.6-08", "MQQB-3.1.5.8.6-09",
    "DMPR-3.1.1.5-04", "DMPR-3.1.1.5-05", "DMPR-3.1.1.5-06", "DMPR-3.1.1.5-07",
)  # fmt: skip
def test_how_the_transfer_stands():
    desk, queue, peer = prepared()
    peer.send(b"1", tx=(1, 0, 6), destination=TX)
    info = info_of(queue)
    assert (info.sequence_identifier, info.sequence_number) == (TxSequenceId(2, 6), 1)
    assert (info.reject_count, info.last_access_time) == (0, desk.utc)
    for rejections in (1, 2):
        desk.passes(5_000)
        peer.send(b"3", tx=(3, 2, 6), destination=TX)
        assert (info.reject_count, info.last_access_time) == (rejections, desk.utc)
        assert (info.sequence_identifier, info.sequence_number) == (TxSequenceId(2, 6), 1)
    desk.passes(5_000)
    peer.send(b"2", tx=(2, 1, 6), destination=TX)
    assert (info.reject_count, info.last_access_time, info.sequence_number) == (0, desk.utc, 2)
    peer.send(b"1", tx=(1, 0, 7), destination=TX)
    assert (info.sequence_identifier, info.sequence_number) == (TxSequenceId(2, 7), 1)


@pytest.mark.requirement("MQQB-3.1.5.8.8-07", "DMPR-3.1.1.5-02", "DMPR-3.1.1.5-03")
def test_each_sender_and_each_name_has_a_sequence_of_its_own():
    _, queue, peer = prepared()
    private = {"destination": (3, handmade.private_id(5)), "address": HERE.bytes_le}
    peer.send(b"1", tx=(1, 0, 6), destination=TX)
    peer.send(b"2", tx=(1, 0, 5), **private)
    peer.send(b"3", tx=(1, 0, 4), destination=TX, source=BEHIND)
    peer.send(b"4", tx=(2, 1, 6), destination=TX)
    assert bodies(queue) == [b"1", b"2", b"3", b"4"]
    found = {
        (info.sender_identifier, info.format_name.canonical, info.sequence_identifier.ordinal, info.queue)
        for info in queue.incoming.values()
    }
    assert found == {
        (THERE, f"DIRECT=TCP:{ADDRESS}\\PRIVATE$\\tx", 6, queue),
        (THERE, f"PRIVATE={HERE}\\00000005", 5, queue),
        (BEHIND, f"DIRECT=TCP:{ADDRESS}\\PRIVATE$\\tx", 4, queue),
    }


@pytest.mark.parametrize("how", ["refused", "accepted"])
def test_where_a_transfer_stands_survives(how):
    desk, queue, peer = prepared()
    name = TX if how == "accepted" else direct("none")
    peer.send(b"1", tx=(1, 0, 6), destination=name)
    peer.send(b"2", tx=(2, 1, 6), destination=name)
    assert len(list(desk.store.rows(Table.INCOMING))) == 1
    again = desk.restart()
    queue = again.core.queues.lookup.path("here\\private$\\tx")
    if how == "refused":
        again.queue("none", transactional=True)
    else:
        assert info_of(queue).sequence_number == 2
        assert info_of(queue).queue is queue
    peer = again.peer()
    peer.send(b"2", tx=(2, 1, 6), destination=name)  # its answer was lost: judged once only
    peer.send(b"3", tx=(3, 2, 6), destination=name)
    queue = queue if how == "accepted" else again.core.queues.lookup.path("here\\private$\\none")
    assert bodies(queue) == ([b"1", b"2", b"3"] if how == "accepted" else [b"3"])


# --- order acknowledgements ---


@pytest.mark.requirement(
    "MQQB-3.1.1.6.2-02", "MQQB-3.1.1.6.2-05", "MQQB-3.1.2.7-01", "MQQB-3.1.2.7-03", "MQQB-3.1.6.9-01",
    "MQQB-3.1.1.5-08", "MQQB-3.1.1.5-09", "DMPR-3.1.1.12-08",
)  # fmt: skip
def test_an_order_acknowledgement_follows_in_half_a_second():
    desk, _, peer = prepared()
    session = desk.core.engine.session_table.by_connection[peer.connection]
    timers = desk.core.context.timers
    peer.send(b"plain", recoverable=True, destination=direct("none"))
    assert not timers.active(Timer.ORDER_ACK_SEND, session.number)
    peer.send(b"1", tx=(1, 0, 6), destination=TX)
    assert timers.active(Timer.ORDER_ACK_SEND, session.number)
    assert peer.kinds() == []
    desk.passes(499)
    assert order_acks(peer) == []
    desk.passes(1)
    (ack,) = [packet for packet in peer.packets if packet.schema.name == "OrderAck"]
    assert ack.MessagePropertiesHeader.MessageClass == 0x00FF
    assert ack.MessagePropertiesHeader.MessageBody == handmade.order_ack_body(ordinal=6, number=1, previous=0)
    assert peer.acks[-1][:3] == (2, 1, 0b11)  # and it is acknowledged like any recoverable message


@pytest.mark.requirement("MQQB-3.1.5.8.6-02", "MQQB-3.1.1.6.2-04", "MQQB-3.1.1.6.2-06", "MQQB-3.1.2.7-02")
def test_further_messages_put_the_acknowledgement_off_for_ten_seconds():
    desk, _, peer = prepared()
    sent = 0
    for number in range(1, 25):  # every 400 ms
        tx = (number, number - 1) if number % 2 else (number + 50, number + 49)  # accepted and refused ones
        if number % 2 and number > 1:
            tx = (number, number - 2)
        peer.send(tx=tx, destination=TX)
        desk.passes(400)
        sent = number
    assert order_acks(peer) == []
    assert desk.now == 9_600
    desk.passes(100)
    assert order_acks(peer) == [(1, 23, 22)]
    assert sent == 24
    session = desk.core.engine.session_table.by_connection[peer.connection]
    session.last_order_ack_send_time -= 10
    peer.send(tx=(25, 23), destination=TX)
    desk.passes(400)
    peer.send(tx=(26, 25), destination=TX)  # ten seconds have passed: the timer goes on
    desk.passes(99)
    assert order_acks(peer) == []
    desk.passes(1)
    assert order_acks(peer) == [(1, 26, 25)]


@pytest.mark.requirement("MQQB-3.1.1.6.2-03")
def test_nothing_behind_a_gap_is_acknowledged():
    desk, queue, peer = prepared()
    for tx in ((1, 0), (2, 1), (4, 3)):
        peer.send(b"%d" % tx[0], tx=tx, destination=TX)
    desk.passes(500)
    assert order_acks(peer) == [(1, 2, 1)]
    assert bodies(queue) == [b"1", b"2"]
    for tx in ((3, 2), (4, 3)):
        peer.send(b"%d" % tx[0], tx=tx, destination=TX)
    desk.passes(500)
    assert order_acks(peer) == [(1, 4, 3)]
    assert bodies(queue) == [b"1", b"2", b"3", b"4"]


@pytest.mark.requirement("MQQB-3.1.5.8.6-02")
def test_a_duplicate_is_order_acknowledged_again():
    desk, _, peer = prepared()
    peer.send(tx=(1, 0), destination=TX)
    desk.passes(500)
    assert order_acks(peer) == [(1, 1, 0)]
    peer.send(tx=(1, 0), destination=TX)
    desk.passes(500)
    assert order_acks(peer) == [(1, 1, 0)]


@pytest.mark.requirement("MQQB-3.1.6.9-01", "MQQB-3.1.6.9-02")
def test_the_time_of_the_order_acknowledgement_is_kept_and_a_closed_session_sends_none():
    desk, _, peer = prepared()
    session = desk.core.engine.session_table.by_connection[peer.connection]
    desk.passes(7_000)
    peer.send(tx=(1, 0), destination=TX)
    desk.passes(500)
    assert session.last_order_ack_send_time == desk.utc
    assert len(order_acks(peer)) == 1
    peer.acknowledge()
    peer.send(tx=(2, 1), destination=TX)
    peer.drop()
    assert session.state is SessionState.CLOSED
    desk.passes(60_000)
    assert order_acks(peer) == []
    assert desk.called == []


@pytest.mark.requirement("MQQB-3.1.1.6.2-06")
def test_two_queues_have_their_own_order_acknowledgements():
    desk, _, peer = prepared(settings=Settings(order_ack_timeout_ms=200))
    desk.queue("tx2", transactional=True)
    peer.send(tx=(1, 0, 6), destination=TX)
    peer.send(tx=(1, 0, 7), destination=direct("tx2"))
    peer.send(tx=(2, 1, 6), destination=TX)
    desk.passes(200)
    assert sorted(order_acks(peer)) == [(6, 2, 1), (7, 1, 0)]


@pytest.mark.requirement("MQQB-3.1.7.2.2-01")
@pytest.mark.parametrize("flags", [JP, 0])
def test_a_final_acknowledgement_is_sent_when_the_transaction_of_the_reader_ends(flags):
    desk, _, peer = prepared()
    peer.send(b"m", tx=(1, 0), destination=TX, flags=flags)
    descriptor = desk.open(f"DIRECT=TCP:{ADDRESS}\\private$\\tx", QueueAccessType.RECEIVE_ACCESS)
    transaction = desk.begin()
    desk.core.messages.dequeue(descriptor, timeout=0, transaction=transaction)
    desk.run()
    assert peer.take("FinalAck") == []
    desk.core.commit(transaction)
    desk.run()
    assert len(peer.take("FinalAck")) == (1 if flags else 0)


def test_a_final_acknowledgement_finds_its_way_after_the_session_and_a_restart():
    desk, queue, peer = prepared()
    peer.send(b"1", tx=(1, 0), destination=TX, flags=JP)
    peer.send(b"2", tx=(2, 1), destination=TX, flags=JP)
    peer.drop()
    assert desk.receive(queue) == b"1"
    assert [one.kinds() for one in desk.called] == [["FinalAck"]]
    again = desk.restart()
    assert [one.kinds() for one in again.called] == [["FinalAck"]]  # it was not acknowledged
    assert again.receive(again.core.queues.lookup.path("here\\private$\\tx")) == b"2"
    assert again.called[0].address == PEER_ADDRESS
    (final,) = again.called[0].take("FinalAck")
    assert final.UserHeader.Flags.DQ == 7
