"""Incoming transactional sequences: [MS-MQQB] 3.1.5.8.6, .8, 3.1.6.9, 3.1.2.7 and 3.1.1.6.2."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.effects import Connect
from msmqwire.qm.model.enumerations import QueueAccessType
from msmqwire.qm.model.message import TxSequenceId
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.tables import Table
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.states import SessionState
from tests.support import handmade
from tests.support.engine_harness import (
    OWN_ADDRESS,
    OWN_ID,
    PEER_ADDRESS,
    PEER_ID,
    THIRD_ID,
    EngineHarness,
    harness_with_peer,
)
from tests.support.peers.handwritten_peer import JP, HandwrittenPeer, direct
from tests.support.qm.queue_contents import bodies

TX = direct("tx")


def prepared(**options: object) -> tuple[EngineHarness, object, HandwrittenPeer]:
    harness = harness_with_peer(**options)
    return harness, harness.queue("tx", transactional=True), harness.accept_session()


def info_of(queue):
    (info,) = queue.incoming.values()
    return info


def order_acks(peer: HandwrittenPeer) -> list[tuple[int, int, int]]:
    """Sequence ordinal, number and previous number of the OrderAcks received."""
    return [packet.acknowledged_tx[1:] for packet in peer.take("OrderAck")]


# --- acceptance ---


@pytest.mark.requirement("MQQB-3.1.5.8.6-01")
@pytest.mark.parametrize(
    "address_fields",
    [
        {"destination": TX},
        {"destination": (3, handmade.private_id(5)), "address": OWN_ID.bytes_le},
    ],
    ids=["zero", "own"],
)
def test_sequences_of_local_queues_are_judged(address_fields):
    _, queue, peer = prepared()
    assert queue.private_queue_number == 5
    peer.send_message(b"2", tx=(2, 1), **address_fields)
    peer.send_message(b"1", tx=(1, 0), **address_fields)
    assert bodies(queue) == [b"1"]


@pytest.mark.requirement("MQQB-3.1.5.8.6-03", "MQQB-3.1.5.8.6-04", "MQQB-3.1.5.8.6-05")
@pytest.mark.parametrize(
    ("before", "message", "accepted"),
    [
        pytest.param(before, message, accepted, marks=pytest.mark.requirement(f"MQQB-3.1.5.8.6-{row}"))
        for before, message, accepted, row in (
            ([(1, 0)], (2, 1), True, "03"),
            ([(1, 0)], (5, 0), True, "03"),  # the messages between them were abandoned
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
            (
                [(1, 0, 3)],
                (2, 1, 4),
                False,
                "05",
            ),  # a new sequence that does not begin with its first message
        )
    ],
)
def test_what_follows_is_accepted(before, message, accepted):
    harness, queue, peer = prepared()
    for tx in before:
        peer.send_message(b"before", tx=tx, destination=TX)
    peer.send_message(b"it", tx=message, destination=TX)
    assert (b"it" in bodies(queue)) is accepted
    session = harness.core.binary.session_table.by_connection[peer.connection]
    assert session.message_received_count == session.recoverable_message_received_count == len(before) + 1
    assert session.recoverable_ack_flags == (1 << len(before) + 1) - 1


@pytest.mark.requirement("MQQB-3.1.5.8.6-04")
def test_the_time_stamp_is_the_high_part_of_a_sequence():
    harness, queue, peer = prepared()
    for time_stamp, ordinal in ((2, 9), (3, 1), (2, 10)):
        peer.sent, peer.recoverable_sent = peer.sent + 1, peer.recoverable_sent + 1
        header = handmade.transaction_header(ordinal=ordinal, time_stamp=time_stamp)
        user = handmade.user_header(
            source=PEER_ID.bytes_le, flags=handmade.MP | 0x20, destination=TX, sent_time=harness.utc
        )
        properties = handmade.properties_header(body=b"%d" % ordinal)
        peer.send(handmade.user_message(user=user, transaction=header, properties=properties, flags=0))
    assert bodies(queue) == [b"9", b"1"]


@pytest.mark.requirement(
    "MQQB-3.1.5.8.6-06", "MQQB-3.1.5.8.6-07", "MQQB-3.1.5.8.6-08", "MQQB-3.1.5.8.6-09",
    "DMPR-3.1.1.5-04", "DMPR-3.1.1.5-05", "DMPR-3.1.1.5-06", "DMPR-3.1.1.5-07",
)  # fmt: skip
def test_how_the_transfer_stands():
    harness, queue, peer = prepared()
    peer.send_message(b"1", tx=(1, 0, 6), destination=TX)
    info = info_of(queue)
    assert (info.sequence_identifier, info.sequence_number) == (TxSequenceId(2, 6), 1)
    assert (info.reject_count, info.last_access_time) == (0, harness.utc)
    for rejections in (1, 2):
        harness.advance(5_000)
        peer.send_message(b"3", tx=(3, 2, 6), destination=TX)
        assert (info.reject_count, info.last_access_time) == (rejections, harness.utc)
        assert (info.sequence_identifier, info.sequence_number) == (TxSequenceId(2, 6), 1)
    harness.advance(5_000)
    peer.send_message(b"2", tx=(2, 1, 6), destination=TX)
    assert (info.reject_count, info.last_access_time, info.sequence_number) == (0, harness.utc, 2)
    peer.send_message(b"1", tx=(1, 0, 7), destination=TX)
    assert (info.sequence_identifier, info.sequence_number) == (TxSequenceId(2, 7), 1)


@pytest.mark.requirement("DMPR-3.1.1-08/b", "DMPR-3.1.1.2-27")
@pytest.mark.requirement("MQQB-3.1.5.8.8-07", "DMPR-3.1.1.5-01/a", "DMPR-3.1.1.5-02", "DMPR-3.1.1.5-03")
def test_each_sender_and_each_name_has_a_sequence_of_its_own():
    _, queue, peer = prepared()
    private = {"destination": (3, handmade.private_id(5)), "address": OWN_ID.bytes_le}
    peer.send_message(b"1", tx=(1, 0, 6), destination=TX)
    peer.send_message(b"2", tx=(1, 0, 5), **private)
    peer.send_message(b"3", tx=(1, 0, 4), destination=TX, source=THIRD_ID)
    peer.send_message(b"4", tx=(2, 1, 6), destination=TX)
    assert bodies(queue) == [b"1", b"2", b"3", b"4"]
    sequences = {
        (info.sender_identifier, info.format_name.canonical, info.sequence_identifier.ordinal, info.queue)
        for info in queue.incoming.values()
    }
    assert sequences == {
        (PEER_ID, f"DIRECT=TCP:{OWN_ADDRESS}\\PRIVATE$\\tx", 6, queue),
        (PEER_ID, f"PRIVATE={OWN_ID}\\00000005", 5, queue),
        (THIRD_ID, f"DIRECT=TCP:{OWN_ADDRESS}\\PRIVATE$\\tx", 4, queue),
    }


@pytest.mark.parametrize("outcome", ["refused", "accepted"])
def test_where_a_transfer_stands_survives(outcome):
    harness, queue, peer = prepared()
    name = TX if outcome == "accepted" else direct("none")
    peer.send_message(b"1", tx=(1, 0, 6), destination=name)
    peer.send_message(b"2", tx=(2, 1, 6), destination=name)
    assert len(list(harness.store.rows(Table.INCOMING))) == 1
    restarted = harness.restarted()
    queue = restarted.core.queues.lookup.path("here\\private$\\tx")
    if outcome == "refused":
        restarted.queue("none", transactional=True)
    else:
        assert info_of(queue).sequence_number == 2
        assert info_of(queue).queue is queue
    peer = restarted.accept_session()
    peer.send_message(
        b"2", tx=(2, 1, 6), destination=name
    )  # the acknowledgement was lost: it is processed only once
    peer.send_message(b"3", tx=(3, 2, 6), destination=name)
    queue = queue if outcome == "accepted" else restarted.core.queues.lookup.path("here\\private$\\none")
    assert bodies(queue) == ([b"1", b"2", b"3"] if outcome == "accepted" else [b"3"])


# --- order acknowledgements ---


@pytest.mark.requirement(
    "MQQB-3.1.1.6.2-02", "MQQB-3.1.1.6.2-05", "MQQB-3.1.2.7-01", "MQQB-3.1.2.7-03", "MQQB-3.1.6.9-01",
    "MQQB-3.1.1.5-08", "MQQB-3.1.1.5-09", "DMPR-3.1.1.12-08",
)  # fmt: skip
def test_an_order_acknowledgement_follows_in_half_a_second():
    harness, _, peer = prepared()
    session = harness.core.binary.session_table.by_connection[peer.connection]
    timers = harness.core.context.timers
    peer.send_message(b"plain", recoverable=True, destination=direct("none"))
    assert not timers.active(Timer.ORDER_ACK_SEND, session.number)
    peer.send_message(b"1", tx=(1, 0, 6), destination=TX)
    assert timers.active(Timer.ORDER_ACK_SEND, session.number)
    assert peer.kinds() == []
    harness.advance(499)
    assert order_acks(peer) == []
    harness.advance(1)
    (ack,) = [packet for packet in peer.packets if packet.kind == "OrderAck"]
    assert ack.MessageClass == 0x00FF
    assert ack.body == handmade.order_ack_body(ordinal=6, number=1, previous=0)
    assert peer.acks[-1][:3] == (2, 1, 0b11)  # it is acknowledged like any recoverable message


@pytest.mark.requirement("MQQB-3.1.5.8.6-02", "MQQB-3.1.1.6.2-04", "MQQB-3.1.1.6.2-06", "MQQB-3.1.2.7-02")
def test_order_acks_are_delayed_by_messages_for_ten_seconds():
    """Each further message puts the order acknowledgement off, until ten seconds after the last one sent."""
    harness, _, peer = prepared()
    sent = 0
    for number in range(1, 25):  # every 400 ms
        tx = (
            (number, number - 1) if number % 2 else (number + 50, number + 49)
        )  # alternately accepted and refused
        if number % 2 and number > 1:
            tx = (number, number - 2)
        peer.send_message(tx=tx, destination=TX)
        harness.advance(400)
        sent = number
    assert order_acks(peer) == []
    assert harness.now == 9_600
    harness.advance(100)
    assert order_acks(peer) == [(1, 23, 22)]
    assert sent == 24
    session = harness.core.binary.session_table.by_connection[peer.connection]
    session.last_order_ack_send_time -= 10
    peer.send_message(tx=(25, 23), destination=TX)
    harness.advance(400)
    peer.send_message(tx=(26, 25), destination=TX)  # ten seconds have passed: the timer keeps running
    harness.advance(99)
    assert order_acks(peer) == []
    harness.advance(1)
    assert order_acks(peer) == [(1, 26, 25)]


@pytest.mark.requirement("MQQB-3.1.1.6.2-03")
def test_nothing_behind_a_gap_is_acknowledged():
    harness, queue, peer = prepared()
    for tx in ((1, 0), (2, 1), (4, 3)):
        peer.send_message(b"%d" % tx[0], tx=tx, destination=TX)
    harness.advance(500)
    assert order_acks(peer) == [(1, 2, 1)]
    assert bodies(queue) == [b"1", b"2"]
    for tx in ((3, 2), (4, 3)):
        peer.send_message(b"%d" % tx[0], tx=tx, destination=TX)
    harness.advance(500)
    assert order_acks(peer) == [(1, 4, 3)]
    assert bodies(queue) == [b"1", b"2", b"3", b"4"]


@pytest.mark.requirement("MQQB-3.1.5.8.6-02")
def test_a_duplicate_is_order_acknowledged_again():
    harness, _, peer = prepared()
    peer.send_message(tx=(1, 0), destination=TX)
    harness.advance(500)
    assert order_acks(peer) == [(1, 1, 0)]
    peer.send_message(tx=(1, 0), destination=TX)
    harness.advance(500)
    assert order_acks(peer) == [(1, 1, 0)]


@pytest.mark.requirement("MQQB-3.1.6.9-01", "MQQB-3.1.6.9-02")
def test_an_order_ack_is_timed_and_a_closed_session_sends_none():
    harness, _, peer = prepared()
    session = harness.core.binary.session_table.by_connection[peer.connection]
    harness.advance(7_000)
    peer.send_message(tx=(1, 0), destination=TX)
    harness.advance(500)
    assert session.last_order_ack_send_time == harness.utc
    assert len(order_acks(peer)) == 1
    peer.acknowledge()
    peer.send_message(tx=(2, 1), destination=TX)
    peer.disconnect()
    assert session.state is SessionState.CLOSED
    harness.advance(60_000)
    assert order_acks(peer) == []
    assert harness.called == []


@pytest.mark.requirement("MQQB-3.1.1.6.2-06")
def test_two_queues_have_their_own_order_acknowledgements():
    harness, _, peer = prepared(settings=Settings(order_ack_timeout_ms=200))
    harness.queue("tx2", transactional=True)
    peer.send_message(tx=(1, 0, 6), destination=TX)
    peer.send_message(tx=(1, 0, 7), destination=direct("tx2"))
    peer.send_message(tx=(2, 1, 6), destination=TX)
    harness.advance(200)
    assert sorted(order_acks(peer)) == [(6, 2, 1), (7, 1, 0)]


@pytest.mark.requirement("MQQB-3.1.7.2.2-01")
@pytest.mark.parametrize("flags", [JP, 0])
def test_a_final_ack_is_sent_when_the_reader_commits(flags):
    harness, _, peer = prepared()
    peer.send_message(b"m", tx=(1, 0), destination=TX, flags=flags)
    descriptor = harness.open(f"DIRECT=TCP:{OWN_ADDRESS}\\private$\\tx", QueueAccessType.RECEIVE_ACCESS)
    transaction = harness.begin()
    harness.core.messages.dequeue(descriptor, timeout=0, transaction=transaction)
    harness.run()
    assert peer.take("FinalAck") == []
    harness.core.commit(transaction)
    harness.run()
    assert len(peer.take("FinalAck")) == (1 if flags else 0)


def test_a_final_ack_survives_its_session_and_a_restart():
    harness, queue, peer = prepared()
    peer.send_message(b"1", tx=(1, 0), destination=TX, flags=JP)
    peer.send_message(b"2", tx=(2, 1), destination=TX, flags=JP)
    peer.disconnect()
    assert harness.receive(queue) == b"1"
    assert [called_peer.kinds() for called_peer in harness.called] == [["FinalAck"]]
    restarted = harness.restarted()
    assert [called_peer.kinds() for called_peer in restarted.called] == [
        ["FinalAck"]
    ]  # it was not acknowledged
    assert restarted.receive(restarted.core.queues.lookup.path("here\\private$\\tx")) == b"2"
    assert restarted.last_effect(Connect).address == PEER_ADDRESS
    (final,) = restarted.called[0].take("FinalAck")
    assert final.Flags >> 10 & 7 == 7
