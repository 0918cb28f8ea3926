"""What a queue manager keeps over sessions and restarts: [MS-MQQB] 3.1.1.2, 3.1.1.3, 3.1.3.1 and 3.1.4."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.qm.model.effects import Connect, Resolve
from msmqwire.qm.model.elements import SequenceInfo
from msmqwire.qm.model.enumerations import DeliveryGuarantee, OutgoingQueueState
from msmqwire.qm.model.message import NULL_GUID, Message, ObjectId, TxSequenceId
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.states import SessionState
from msmqwire.qm.store.memory import MemoryStore
from tests.support import handmade as h
from tests.support.engine_desk import OTHER, OWN, THERE, UTC, Desk, Peer, message_id

CLEANUP = Timer.MESSAGE_ID_HISTORY_CLEANUP
HALF_AN_HOUR = 1_800_000
TX = h.transaction_header


def times(desk: Desk) -> dict[ObjectId, int]:
    return dict(desk.engine.history._times)


def identifier(number: int, source: UUID = OTHER) -> ObjectId:
    return ObjectId(source, number)


def order(desk: Desk, peer: Peer, number: int) -> None:
    """An OrderAck for a message of the current sequence of the desk."""
    sequence = desk.transfer().sequence_id
    peer.sent += 1
    peer.send(
        h.order_ack(h.order_ack_body(ordinal=sequence.ordinal, time_stamp=sequence.time_stamp, number=number))
    )


# -- 3.1.1.2: shared elements ------------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.1.2-01", "MQQB-3.1.1-01")
def test_elements_are_shared_with_the_rules_of_queues() -> None:
    desk = Desk()
    queue = desk.queue("tx", transactional=True)
    assert desk.engine.context.queue_manager is desk.core.queue_manager
    peer = desk.dialled(transactional=True, count=2)
    peer.send(peer.message("tx", transaction=TX(ordinal=4, time_stamp=9, number=1)))
    (info,) = queue.incoming.values()
    assert (info.sequence_identifier, info.sequence_number) == (TxSequenceId(9, 4), 1)
    assert (info.sender_identifier, info.queue) == (OTHER, queue)
    peer.acknowledge()
    order(desk, peer, 1)
    shown = desk.outgoing().transfer
    assert shown.eod_last_ack == SequenceInfo(desk.transfer().sequence_id, 1, 0)
    assert (shown.eod_last_ack_count, shown.eod_no_ack_count) == (1, 1)


# -- MessageIDHistoryTable ---------------------------------------------------------------------------------


@pytest.mark.requirement(
    "MQQB-3.1.1.3-13", "MQQB-3.1.1.3-15", "MQQB-3.1.3.1-02", "MQQB-3.1.2.8-01", "MQQB-3.1.2.8-02"
)
def test_the_history_begins_empty_and_has_who_and_when() -> None:
    desk = Desk()
    queue = desk.queue()
    assert times(desk) == {}
    assert desk.left(CLEANUP) is None
    peer = desk.rung()
    desk.advance(7_000)
    peer.send(peer.message(number=0xFFFF_FFFF))
    assert times(desk) == {identifier(0xFFFF_FFFF): UTC + 7}
    assert desk.left(CLEANUP) == HALF_AN_HOUR
    desk.advance(1_000)
    peer.send(peer.message(number=0xFFFF_FFFF), peer.message(number=5))
    assert times(desk) == {identifier(0xFFFF_FFFF): UTC + 8, identifier(5): UTC + 8}
    assert len(queue.positions) == 2, "one that is sent again is known"
    assert desk.left(CLEANUP) == HALF_AN_HOUR - 1_000, "a further entry does not start it anew"


@pytest.mark.requirement("MQQB-3.1.1.3-13", "MQQB-3.1.1.3-14")
def test_the_history_keeps_the_latest_entries() -> None:
    desk = Desk(remove_duplicate_size=3)
    desk.queue()
    peer = desk.rung()
    for number in (1, 2, 3, 1, 4):
        peer.send(peer.message(number=number, recoverable=True))
    assert list(times(desk)) == [identifier(3), identifier(1), identifier(4)]
    again = desk.restart(remove_duplicate_size=3)
    assert set(times(again)) == set(times(desk))
    assert Settings().remove_duplicate_size == 10_000


@pytest.mark.requirement("MQQB-3.1.1.3-14", "MQQB-3.1.3.1-02", "MQQB-3.1.2.8-01")
def test_recoverable_entries_survive_and_duplicates_are_known_then() -> None:
    desk = Desk()
    queue = desk.queue()
    peer = desk.rung()
    peer.send(peer.message(number=1, recoverable=True), peer.message(number=2))
    again = desk.restart()
    assert times(again) == {identifier(1): UTC}
    assert again.left(CLEANUP) == HALF_AN_HOUR
    kept = again.core.queues.lookup.path(queue.pathname)
    assert kept is not None
    assert len(kept.positions) == 1
    peer = again.rung()
    peer.send(peer.message(number=1, recoverable=True), peer.message(number=2))
    assert [position.message.identifier.uniquifier for position in kept.positions] == [1, 2]


@pytest.mark.requirement("MQQB-3.1.6.7-01", "MQQB-3.1.6.7-02", "MQQB-3.1.2.8-01", "MQQB-3.1.2.8-02")
@pytest.mark.parametrize("period", [HALF_AN_HOUR, 60_000])
def test_old_entries_are_deleted_and_the_timer_runs_while_there_are_any(period: int) -> None:
    desk = Desk(message_id_history_cleanup_ms=period)
    desk.queue()
    peer = desk.rung()
    peer.send(peer.message(number=1, recoverable=True))
    desk.advance(period - 1_000)
    peer = desk.rung()
    peer.send(peer.message(number=2, recoverable=True))
    desk.advance(1_000)
    assert set(times(desk)) == {identifier(1), identifier(2)}, "not yet older than the duration"
    assert desk.left(CLEANUP) == period
    desk.advance(period)
    assert set(times(desk)) == set()
    assert desk.left(CLEANUP) is None
    assert times(desk.restart()) == {}
    peer = desk.rung()
    peer.send(peer.message(number=1))
    assert desk.left(CLEANUP) == period, "an entry in an empty table starts it"


@pytest.mark.requirement("MQQB-3.1.6.7-01")
def test_an_entry_as_old_as_the_duration_stays() -> None:
    desk = Desk()
    desk.queue()
    peer = desk.rung()
    peer.send(peer.message(number=1))
    desk.advance(1_000)
    peer.send(peer.message(number=2))
    desk.core.context.utc = UTC + 1801
    desk.engine.history._clean()
    assert set(times(desk)) == {identifier(2)}


# -- MessageIdOrdinal --------------------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.1.3-16")
def test_ordinals_grow_by_one_and_never_come_again() -> None:
    desk = Desk()
    peer = desk.dialled(count=3)
    desk.send(count=2, recoverable=True)
    desk.send(r"DIRECT=TCP:10.0.0.5\private$\other", transactional=True)
    assert [message_id(packet) for packet in peer.packets] == [1, 2, 3, 4, 5]
    assert desk.send()[0].identifier == ObjectId(OWN, 7)
    stopped, killed = desk.restart(stop=True), desk.restart()
    assert stopped.send()[0].identifier == ObjectId(OWN, 8)
    assert killed.send()[0].identifier.uniquifier > 7, "what was stored for express messages is a limit"


@pytest.mark.requirement("MQQB-3.1.1.3-17", "MQQB-3.1.1.3-16")
def test_ordinals_begin_again_after_the_last_one() -> None:
    desk = Desk()
    desk.core.identity._ordinal = desk.core.identity._reserved_until = 0xFFFF_FFFD
    numbers = [message.identifier.uniquifier for message in desk.send(count=4)]
    assert numbers == [0xFFFF_FFFE, 0xFFFF_FFFF, 1, 2]
    assert desk.restart().send()[0].identifier.uniquifier > 2


# -- 3.1.3.1 and defaults ----------------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.3.1-01", "MQQB-3.1.1.3-12")
def test_the_resend_table_has_ten_entries() -> None:
    assert Settings().resend_timer_table == (30, 30, 30, 300, 300, 300, 1800, 1800, 1800, 21600)
    desk = Desk()
    peer = desk.dialled(transactional=True)
    peer.acknowledge()
    key = desk.outgoing().number
    found = []
    for _ in range(12):
        left = desk.left(Timer.TRANSACTIONAL_ACK_WAIT, key)
        assert left is not None
        found.append(left // 1000)
        peer.session.session_active = True
        desk.engine.session_timers.start_cleanup(peer.session)
        desk.core.context.timers.stop(Timer.SESSION_CLEANUP, peer.session.number)
        desk.advance(left)
        peer.acknowledge()
    assert found == [30, 30, 30, 300, 300, 300, 1800, 1800, 1800, 21600, 21600, 21600]


def test_insecure_acknowledgements_are_not_sent_by_default() -> None:
    assert Settings().send_insecure_nacks is False


# -- what survives -----------------------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.1.3.1-12", "MQQB-3.1.1.3.1-14")
def test_the_outgoing_sequence_begins_at_one_grows_and_survives() -> None:
    desk = Desk()
    peer = desk.dialled(transactional=True, count=2)
    transfer = desk.transfer()
    assert transfer.sequence_id == TxSequenceId(UTC, 1)
    assert [one.tx_sequence_number for one in transfer.ordered] == [1, 2]
    assert transfer.next_number == 3
    again = desk.restart().transfer()
    assert (again.sequence_id, again.next_number) == (TxSequenceId(UTC, 1), 3)
    peer.acknowledge()
    order(desk, peer, 2)
    desk.send(transactional=True)
    second = desk.transfer().sequence_id
    assert second > TxSequenceId(UTC, 1)
    assert desk.transfer().next_number == 2
    peer.acknowledge()
    order(desk, peer, 1)
    restarted = desk.restart()
    restarted.dialled(transactional=True)
    assert restarted.transfer().sequence_id > second, "also when nothing of it was left"


@pytest.mark.requirement("MQQB-3.1.1.3.1-13", "MQQB-3.1.1.3.1-15", "MQQB-3.1.1.3.1-16")
def test_the_incoming_sequence_survives() -> None:
    desk = Desk()
    queue = desk.queue("tx", transactional=True)
    peer = desk.rung()
    first = TX(ordinal=4, time_stamp=9, number=1)
    assert queue.incoming == {}
    peer.send(peer.message("tx", transaction=first), peer.message("tx", transaction=first))
    peer.send(peer.message("tx", transaction=first))
    (info,) = queue.incoming.values()
    assert info.reject_count == 2
    again = desk.restart()
    kept = again.core.queues.lookup.path(queue.pathname)
    assert kept is not None
    (info,) = kept.incoming.values()
    assert (info.sequence_identifier, info.sequence_number, info.reject_count) == (TxSequenceId(9, 4), 1, 2)
    peer = again.rung()
    peer.send(peer.message("tx", transaction=first))
    assert len(kept.positions) == 1, "it is still known"
    peer.send(peer.message("tx", transaction=TX(ordinal=4, time_stamp=9, number=2, previous=1)))
    assert len(kept.positions) == 2
    assert (info.sequence_number, info.reject_count) == (2, 0)


@pytest.mark.requirement("MQQB-3.1.1.3.1-13", "MQQB-3.1.1.3.1-15", "MQQB-3.1.1.3.1-16")
def test_the_incoming_sequence_begins_with_nothing() -> None:
    desk = Desk()
    desk.queue("tx", transactional=True)
    peer = desk.rung()
    peer.send(peer.message("tx", transaction=TX(ordinal=4, time_stamp=9, number=7, previous=6)))
    (info,) = desk.engine.incoming_sequences.infos.values()
    assert (info.sequence_identifier, info.sequence_number, info.reject_count) == (TxSequenceId(0, 0), 0, 1)


@pytest.mark.requirement("MQQB-3.1.1.3.1-17", "MQQB-3.1.1.3.1-29", "MQQB-3.1.1.3.1.2-04", "MQQB-3.1.4.1-01")
def test_the_table_of_what_is_sent_survives_in_its_order() -> None:
    desk = Desk()
    assert len(desk.transfer().table) == 0
    desk.send()
    desk.send(recoverable=True, count=2)
    desk.resolve(THERE)
    peer = desk.connect()
    peer.accept()
    desk.send(transactional=True, count=2)
    first = [position.message.identifier for position in desk.transfer().table]
    again = desk.restart()
    again.take()
    transfer = again.transfer()
    assert transfer.queue.destination == desk.outgoing().destination
    assert [position.message.identifier for position in transfer.table] == first[1:], "express ones are gone"
    assert [one.tx_sequence_number for one in transfer.table.values()] == [0, 0, 1, 2]
    assert [question.host for question in again.of(Resolve)] == [THERE], "a connection is made at once"
    again.resolve(THERE)
    peer = again.connect()
    peer.accept()
    assert [message_id(packet) for packet in peer.packets] == [one.uniquifier for one in first[1:]]


@pytest.mark.requirement("MQQB-3.1.1.3.1-29", "MQQB-3.1.1.3.1.2-04")
def test_numbered_messages_keep_the_order_of_their_numbers() -> None:
    desk = Desk()
    peer = desk.dialled()
    descriptor = desk.open()
    transactions = []
    for body in (b"first", b"second"):
        transactions.append(desk.core.transactions.create(UUID(bytes=body.ljust(16))))
        desk.core.send(
            descriptor, Message(body=body, delivery_guarantee=DeliveryGuarantee.RECOVERABLE), transactions[-1]
        )
    for transaction in reversed(transactions):
        desk.core.commit(transaction)
    desk.take()
    sent = [message_id(packet) for packet in peer.take()][1:]
    transfer = desk.restart().transfer()
    assert [one.tx_sequence_number for one in transfer.table.values()] == [1, 2]
    assert [position.message.body for position in transfer.table] == [b"second", b"first"]
    assert [position.message.identifier.uniquifier for position in transfer.table] == sent


@pytest.mark.requirement("MQQB-3.1.1.3.1-30")
def test_messages_that_await_a_final_acknowledgement_survive() -> None:
    desk = Desk()
    peer = desk.dialled(transactional=True, positive_journaling_requested=True)
    transfer = desk.transfer()
    assert transfer.awaiting_final_ack == {}
    sequence = transfer.sequence_id
    (message,) = (position.message for position in transfer.table)
    peer.acknowledge()
    order(desk, peer, 1)
    assert len(transfer.table) == 0
    again = desk.restart()
    kept = again.transfer()
    assert len(kept.table) == 0
    assert list(kept.awaiting_final_ack) == [message.identifier.uniquifier]
    assert again.of(Resolve) == [], "there is nothing to send"
    peer = again.rung()
    peer.sent = peer.recoverable_sent = 1
    body = h.final_ack_body(
        ordinal=sequence.ordinal, time_stamp=sequence.time_stamp, source=OWN.bytes_le,
        message_id=message.identifier.uniquifier,
    )  # fmt: skip
    peer.send(h.final_ack(body))
    assert kept.awaiting_final_ack == {}
    journal = again.core.queue_manager.system_journal_queue
    assert journal is not None
    assert len(journal.positions) == 1


@pytest.mark.requirement("MQQB-3.1.1.3.1-35", "MQQB-3.1.1.3.1.2-06")
def test_forwarded_messages_touch_no_sequence() -> None:
    desk = Desk(routes={UUID(int=0xF4): ["gamma"]})
    peer = desk.rung()
    user = h.user_header(
        source=OTHER.bytes_le, address=UUID(int=0xF4).bytes_le, message_id=8, flags=h.MP | 0x20,
        sent_time=UTC, destination=(3, h.private_id(9)),
    )  # fmt: skip
    peer.sent = peer.recoverable_sent = 1
    peer.send(h.user_message(user=user, transaction=TX(ordinal=4, time_stamp=9, number=7, previous=6)))
    assert desk.engine.incoming_sequences.infos == {}
    desk.resolve("10.0.0.3")
    next_hop = desk.connect()
    next_hop.accept(server=UUID(int=0xF4))
    (transfer,) = (one for one in desk.engine.transfers.values() if one.table)
    (packet,) = next_hop.packets
    assert packet.find(TX(ordinal=4, time_stamp=9, number=7, previous=6)) == 68, (
        "its TransactionHeader is unchanged"
    )
    assert [one.tx_sequence_number for one in transfer.table.values()] == [0]
    assert (transfer.sequence_id, transfer.next_number) == (TxSequenceId(0, 0), 1)
    next_hop.acknowledge()
    assert len(transfer.table) == 0, "the session acknowledgement is enough"


@pytest.mark.requirement("MQQB-3.1.3.2-17")
def test_the_identifier_is_made_once() -> None:
    desk = Desk(identifier=NULL_GUID)
    own = desk.core.queue_manager.identifier
    assert own != NULL_GUID
    assert desk.restart(identifier=UUID(int=7)).core.queue_manager.identifier == own
    other = Desk(MemoryStore(), identifier=UUID(int=7))
    assert other.core.queue_manager.identifier == UUID(int=7)


# -- 3.1.4: started and stopped ----------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.4-01", "MQQB-3.1.4.1-01", "MQQB-3.1.5.2-01")
def test_at_the_start_sessions_are_made_for_waiting_messages_only() -> None:
    desk = Desk()
    desk.send(recoverable=True)
    desk.send(r"DIRECT=TCP:10.0.0.5\private$\express")
    desk.open(r"DIRECT=TCP:10.0.0.6\private$\nothing")
    again = desk.restart(stop=True)
    assert [question.host for question in again.of(Resolve)] == [THERE]


@pytest.mark.requirement("MQQB-3.1.4-01", "MQQB-3.1.4.2-01")
def test_at_the_stop_all_sessions_are_closed() -> None:
    desk = Desk()
    peers = [
        desk.dialled(),
        desk.rung(),
        desk.ring(),
        desk.dial(r"DIRECT=TCP:10.0.0.6\private$\more", addresses=["10.0.0.6"]),
    ]
    sessions = [peer.session for peer in peers]
    desk.send(r"DIRECT=TCP:10.0.0.7\private$\asked")
    desk.core.stop()
    desk.take()
    assert all(peer.closed for peer in peers)
    assert [session.state for session in sessions] == [SessionState.CLOSED] * 4
    assert desk.engine.sessions == {}
    connects = len(desk.of(Connect))
    desk.resolve("10.0.0.7")
    desk.advance(600_000)
    assert len(desk.of(Connect)) == connects, "what was being established is given up"
    late = desk.ring()
    assert late.closed, "and nobody is let in"


def test_a_message_restored_after_a_kill_is_as_it_was() -> None:
    desk = Desk()
    desk.send(recoverable=True)
    (position,) = desk.restart().outgoing().positions
    assert position.message.delivery_guarantee is DeliveryGuarantee.RECOVERABLE
    assert desk.restart().outgoing().state is OutgoingQueueState.INACTIVE
