"""Queue manager state that outlives sessions and restarts: [MS-MQQB] 3.1.1.2, 3.1.1.3, 3.1.3.1 and 3.1.4."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.qm.model.effects import Connect, Resolve
from msmqwire.qm.model.elements import SequenceInfo
from msmqwire.qm.model.enumerations import DeliveryGuarantee, OutgoingQueueState
from msmqwire.qm.model.message import NULL_GUID, Message, ObjectId, TxSequenceId
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.states import SessionRole, SessionState
from msmqwire.qm.store import memory_store
from tests.support import handmade as h
from tests.support.engine_harness import (
    OWN_ID,
    PEER_ADDRESS,
    PEER_ID,
    RECOVERABLE,
    START_UTC,
    THIRD_ID,
    EngineHarness,
)
from tests.support.peers.handwritten_peer import HandwrittenPeer

CLEANUP = Timer.MESSAGE_ID_HISTORY_CLEANUP
HALF_AN_HOUR = 1_800_000
TX = h.transaction_header


def times(harness: EngineHarness) -> dict[ObjectId, int]:
    entries = harness.core.history._entries
    return {ObjectId(UUID(int=key >> 32), key & 0xFFFF_FFFF): time for key, (time, _) in entries.items()}


def identifier(number: int, source: UUID = PEER_ID) -> ObjectId:
    return ObjectId(source, number)


def order(harness: EngineHarness, peer: HandwrittenPeer, number: int) -> None:
    """An OrderAck for a message of the harness's current sequence."""
    sequence = harness.transfer().sequence_id
    peer.sent += 1
    peer.send(
        h.order_ack(h.order_ack_body(ordinal=sequence.ordinal, time_stamp=sequence.time_stamp, number=number))
    )


# -- 3.1.1.2: shared elements ------------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.1.2-01", "MQQB-3.1.1-01")
def test_elements_are_shared_with_the_rules_of_queues() -> None:
    harness = EngineHarness()
    queue = harness.queue("tx", transactional=True)
    assert harness.engine.context.queue_manager is harness.core.queue_manager
    peer = harness.open_session(transactional=True, count=2)
    peer.send(peer.message(queue="tx", transaction=TX(ordinal=4, time_stamp=9, number=1)))
    (info,) = queue.incoming.values()
    assert (info.sequence_identifier, info.sequence_number) == (TxSequenceId(9, 4), 1)
    assert (info.sender_identifier, info.queue) == (PEER_ID, queue)
    peer.acknowledge()
    order(harness, peer, 1)
    shown = harness.outgoing().transfer
    assert shown.eod_last_ack == SequenceInfo(harness.transfer().sequence_id, 1, 0)
    assert (shown.eod_last_ack_count, shown.eod_no_ack_count) == (1, 1)


# -- MessageIDHistoryTable ---------------------------------------------------------------------------------


@pytest.mark.requirement(
    "MQQB-3.1.1.3-13", "MQQB-3.1.1.3-15", "MQQB-3.1.3.1-02", "MQQB-3.1.2.8-01", "MQQB-3.1.2.8-02"
)
def test_the_history_begins_empty_and_has_who_and_when() -> None:
    harness = EngineHarness()
    queue = harness.queue()
    assert times(harness) == {}
    assert harness.time_left(CLEANUP) is None
    peer = harness.accept_session()
    harness.advance(7_000)
    peer.send(peer.message(message_id=0xFFFF_FFFF))
    assert times(harness) == {identifier(0xFFFF_FFFF): START_UTC + 7}
    assert harness.time_left(CLEANUP) == HALF_AN_HOUR
    harness.advance(1_000)
    peer.send(peer.message(message_id=0xFFFF_FFFF), peer.message(message_id=5))
    assert times(harness) == {identifier(0xFFFF_FFFF): START_UTC + 8, identifier(5): START_UTC + 8}
    assert len(queue.positions) == 2, "a resent message is recognised"
    assert harness.time_left(CLEANUP) == HALF_AN_HOUR - 1_000, "a further entry does not restart it"


@pytest.mark.requirement("MQQB-3.1.1.3-13", "MQQB-3.1.1.3-14")
def test_the_history_keeps_the_latest_entries() -> None:
    harness = EngineHarness(remove_duplicate_size=3)
    harness.queue()
    peer = harness.accept_session()
    for number in (1, 2, 3, 1, 4):
        peer.send(peer.message(message_id=number, recoverable=True))
    assert list(times(harness)) == [identifier(3), identifier(1), identifier(4)]
    restarted = harness.restarted(remove_duplicate_size=3)
    assert set(times(restarted)) == set(times(harness))
    assert Settings().remove_duplicate_size == 10_000


@pytest.mark.requirement("MQQB-3.1.1.3-14", "MQQB-3.1.3.1-02", "MQQB-3.1.2.8-01")
def test_recoverable_history_survives_and_detects_duplicates() -> None:
    harness = EngineHarness()
    queue = harness.queue()
    peer = harness.accept_session()
    peer.send(peer.message(message_id=1, recoverable=True), peer.message(message_id=2))
    restarted = harness.restarted()
    assert times(restarted) == {identifier(1): START_UTC}
    assert restarted.time_left(CLEANUP) == HALF_AN_HOUR
    restored = restarted.core.queues.lookup.path(queue.pathname)
    assert restored is not None
    assert len(restored.positions) == 1
    peer = restarted.accept_session()
    peer.send(peer.message(message_id=1, recoverable=True), peer.message(message_id=2))
    assert [position.message.identifier.uniquifier for position in restored.positions] == [1, 2]


@pytest.mark.requirement("MQQB-3.1.1.3-14")
@pytest.mark.requirement("MQQB-3.1.6.7-01", "MQQB-3.1.6.7-02", "MQQB-3.1.2.8-01", "MQQB-3.1.2.8-02")
@pytest.mark.parametrize("period", [HALF_AN_HOUR, 60_000])
def test_history_cleanup_deletes_old_entries_until_none_is_left(period: int) -> None:
    """The cleanup timer runs only while the table has an entry."""
    harness = EngineHarness(message_id_history_cleanup_ms=period)
    harness.queue()
    peer = harness.accept_session()
    peer.send(peer.message(message_id=1, recoverable=True))
    harness.advance(period - 1_000)
    peer = harness.accept_session()
    peer.send(peer.message(message_id=2, recoverable=True))
    harness.advance(1_000)
    assert set(times(harness)) == {identifier(1), identifier(2)}, "not yet older than the duration"
    assert harness.time_left(CLEANUP) == period
    harness.advance(period)
    assert set(times(harness)) == set()
    assert harness.time_left(CLEANUP) is None
    assert times(harness.restarted()) == {}
    peer = harness.accept_session()
    peer.send(peer.message(message_id=1))
    assert harness.time_left(CLEANUP) == period, "an entry in an empty table starts the timer"


@pytest.mark.requirement("MQQB-3.1.6.7-01")
def test_an_entry_as_old_as_the_duration_stays() -> None:
    harness = EngineHarness()
    harness.queue()
    peer = harness.accept_session()
    peer.send(peer.message(message_id=1))
    harness.advance(1_000)
    peer.send(peer.message(message_id=2))
    harness.core.context.utc = START_UTC + 1801
    harness.core.history._clean()
    assert set(times(harness)) == {identifier(2)}


# -- MessageIdOrdinal --------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.1.12-02")
@pytest.mark.requirement("MQMQ-2.2.8-01", "MQMQ-2.2.18.1.3-01", "MQMQ-2.2.19.2-07")
@pytest.mark.requirement("MQMQ-2.2.18.1.3-03")
@pytest.mark.requirement("MQQB-3.1.1.3-16")
def test_ordinals_grow_by_one_and_never_come_again() -> None:
    harness = EngineHarness()
    peer = harness.open_session(count=3)
    harness.send(count=2, recoverable=True)
    harness.send(to=r"DIRECT=TCP:10.0.0.5\private$\other", transactional=True)
    assert [packet.MessageID for packet in peer.packets] == [1, 2, 3, 4, 5]
    assert harness.send()[0].identifier == ObjectId(OWN_ID, 7)
    stopped, killed = harness.restarted(stop=True), harness.restarted()
    assert stopped.send()[0].identifier == ObjectId(OWN_ID, 8)
    assert killed.send()[0].identifier.uniquifier > 7, "identifiers reserved for express messages are skipped"


@pytest.mark.requirement("MQQB-3.1.1.3-17", "MQQB-3.1.1.3-16")
def test_ordinals_begin_again_after_the_last_one() -> None:
    harness = EngineHarness()
    harness.core.identity._ordinal = harness.core.identity._reserved_until = 0xFFFF_FFFD
    numbers = [message.identifier.uniquifier for message in harness.send(count=4)]
    assert numbers == [0xFFFF_FFFE, 0xFFFF_FFFF, 1, 2]
    assert harness.restarted().send()[0].identifier.uniquifier > 2


# -- 3.1.3.1 and defaults ----------------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.3.1-01", "MQQB-3.1.1.3-12")
def test_the_resend_table_has_ten_entries() -> None:
    assert Settings().resend_timer_table == (30, 30, 30, 300, 300, 300, 1800, 1800, 1800, 21600)
    harness = EngineHarness()
    peer = harness.open_session(transactional=True)
    peer.acknowledge()
    key = harness.outgoing().number
    intervals = []
    for _ in range(12):
        remaining = harness.time_left(Timer.TRANSACTIONAL_ACK_WAIT, key)
        assert remaining is not None
        intervals.append(remaining // 1000)
        peer.session.session_active = True
        harness.engine.session_timers.start_cleanup(peer.session)
        harness.core.context.timers.stop(Timer.SESSION_CLEANUP, peer.session.number)
        harness.advance(remaining)
        peer.acknowledge()
    assert intervals == [30, 30, 30, 300, 300, 300, 1800, 1800, 1800, 21600, 21600, 21600]


def test_insecure_acknowledgements_are_not_sent_by_default() -> None:
    assert Settings().send_insecure_nacks is False


# -- what survives -----------------------------------------------------------------------------------------


@pytest.mark.requirement("MQMQ-2.2.18.1.2-04")
@pytest.mark.requirement("MQQB-3.1.1.3.1-12", "MQQB-3.1.1.3.1-14")
def test_the_outgoing_sequence_begins_at_one_grows_and_survives() -> None:
    harness = EngineHarness()
    peer = harness.open_session(transactional=True, count=2)
    transfer = harness.transfer()
    assert transfer.sequence_id == TxSequenceId(START_UTC, 1)
    assert [entry.tx_sequence_number for entry in transfer.ordered] == [1, 2]
    assert transfer.next_number == 3
    restored = harness.restarted().transfer()
    assert (restored.sequence_id, restored.next_number) == (TxSequenceId(START_UTC, 1), 3)
    peer.acknowledge()
    order(harness, peer, 2)
    harness.send(transactional=True)
    second = harness.transfer().sequence_id
    assert second > TxSequenceId(START_UTC, 1)
    assert harness.transfer().next_number == 2
    peer.acknowledge()
    order(harness, peer, 1)
    restarted = harness.restarted()
    restarted.open_session(transactional=True)
    assert restarted.transfer().sequence_id > second, "even when nothing of the old one was left"


@pytest.mark.requirement("MQQB-3.1.1.3.1-13", "MQQB-3.1.1.3.1-15", "MQQB-3.1.1.3.1-16")
def test_the_incoming_sequence_survives() -> None:
    harness = EngineHarness()
    queue = harness.queue("tx", transactional=True)
    peer = harness.accept_session()
    first = TX(ordinal=4, time_stamp=9, number=1)
    assert queue.incoming == {}
    peer.send(peer.message(queue="tx", transaction=first), peer.message(queue="tx", transaction=first))
    peer.send(peer.message(queue="tx", transaction=first))
    (info,) = queue.incoming.values()
    assert info.reject_count == 2
    restarted = harness.restarted()
    restored = restarted.core.queues.lookup.path(queue.pathname)
    assert restored is not None
    (info,) = restored.incoming.values()
    assert (info.sequence_identifier, info.sequence_number, info.reject_count) == (TxSequenceId(9, 4), 1, 2)
    peer = restarted.accept_session()
    peer.send(peer.message(queue="tx", transaction=first))
    assert len(restored.positions) == 1, "the duplicate is still recognised"
    peer.send(peer.message(queue="tx", transaction=TX(ordinal=4, time_stamp=9, number=2, previous=1)))
    assert len(restored.positions) == 2
    assert (info.sequence_number, info.reject_count) == (2, 0)


@pytest.mark.requirement("MQQB-3.1.1.3.1-13", "MQQB-3.1.1.3.1-15", "MQQB-3.1.1.3.1-16")
def test_the_incoming_sequence_begins_with_nothing() -> None:
    harness = EngineHarness()
    harness.queue("tx", transactional=True)
    peer = harness.accept_session()
    peer.send(peer.message(queue="tx", transaction=TX(ordinal=4, time_stamp=9, number=7, previous=6)))
    (info,) = harness.core.incoming_sequences.infos.values()
    assert (info.sequence_identifier, info.sequence_number, info.reject_count) == (TxSequenceId(0, 0), 0, 1)


@pytest.mark.requirement("MQQB-3.1.1.3.1-17", "MQQB-3.1.1.3.1-29", "MQQB-3.1.1.3.1.2-04", "MQQB-3.1.4.1-01")
def test_the_table_of_what_is_sent_survives_in_its_order() -> None:
    harness = EngineHarness()
    assert len(harness.transfer().table) == 0
    harness.send()
    harness.send(recoverable=True, count=2)
    harness.resolve(PEER_ADDRESS)
    peer = harness.connect()
    peer.answer_handshake()
    harness.send(transactional=True, count=2)
    first = [position.message.identifier for position in harness.transfer().table]
    restarted = harness.restarted()
    restarted.run()
    transfer = restarted.transfer()
    assert transfer.queue.destination == harness.outgoing().destination
    assert [position.message.identifier for position in transfer.table] == first[1:], (
        "express messages are gone"
    )
    assert [entry.tx_sequence_number for entry in transfer.table.values()] == [0, 0, 1, 2]
    assert [question.host for question in restarted.effects_of(Resolve)] == [PEER_ADDRESS], (
        "a connection is attempted at once"
    )
    restarted.resolve(PEER_ADDRESS)
    peer = restarted.connect()
    peer.answer_handshake()
    assert [packet.MessageID for packet in peer.packets] == [
        message_id.uniquifier for message_id in first[1:]
    ]


@pytest.mark.requirement("MQQB-3.1.1.3.1-29", "MQQB-3.1.1.3.1.2-04")
def test_numbered_messages_keep_the_order_of_their_numbers() -> None:
    harness = EngineHarness()
    peer = harness.open_session()
    descriptor = harness.open_to_send()
    transactions = []
    for body in (b"first", b"second"):
        transactions.append(harness.core.transactions.create(UUID(bytes=body.ljust(16))))
        harness.core.send(
            descriptor, Message(body=body, delivery_guarantee=DeliveryGuarantee.RECOVERABLE), transactions[-1]
        )
    for transaction in reversed(transactions):
        harness.core.commit(transaction)
    harness.run()
    sent = [packet.MessageID for packet in peer.take()][1:]
    transfer = harness.restarted().transfer()
    assert [entry.tx_sequence_number for entry in transfer.table.values()] == [1, 2]
    assert [position.message.body for position in transfer.table] == [b"second", b"first"]
    assert [position.message.identifier.uniquifier for position in transfer.table] == sent


@pytest.mark.requirement("MQQB-3.1.1.3.1-30")
def test_messages_that_await_a_final_acknowledgement_survive() -> None:
    harness = EngineHarness()
    peer = harness.open_session(transactional=True, positive_journaling_requested=True)
    transfer = harness.transfer()
    assert transfer.awaiting_final_ack == {}
    sequence = transfer.sequence_id
    (message,) = (position.message for position in transfer.table)
    peer.acknowledge()
    order(harness, peer, 1)
    assert len(transfer.table) == 0
    restarted = harness.restarted()
    restored = restarted.transfer()
    assert len(restored.table) == 0
    assert list(restored.awaiting_final_ack) == [message.identifier.uniquifier]
    assert restarted.effects_of(Resolve) == [], "there is nothing to send"
    peer = restarted.accept_session()
    peer.sent = peer.recoverable_sent = 1
    body = h.final_ack_body(
        ordinal=sequence.ordinal, time_stamp=sequence.time_stamp, source=OWN_ID.bytes_le,
        message_id=message.identifier.uniquifier,
    )  # fmt: skip
    peer.send(h.final_ack(body))
    assert restored.awaiting_final_ack == {}
    journal = restarted.core.queue_manager.system_journal_queue
    assert journal is not None
    assert len(journal.positions) == 1


@pytest.mark.requirement("MQQB-3.1.1.3.1-35", "MQQB-3.1.1.3.1.2-06")
def test_forwarded_messages_touch_no_sequence() -> None:
    harness = EngineHarness(routes={UUID(int=0xF4): ["gamma"]})
    peer = harness.accept_session()
    user = h.user_header(
        source=PEER_ID.bytes_le, address=UUID(int=0xF4).bytes_le, message_id=8, flags=h.MP | 0x20,
        sent_time=START_UTC, destination=(3, h.private_id(9)),
    )  # fmt: skip
    peer.sent = peer.recoverable_sent = 1
    peer.send(h.user_message(user=user, transaction=TX(ordinal=4, time_stamp=9, number=7, previous=6)))
    assert harness.core.incoming_sequences.infos == {}
    harness.resolve("10.0.0.3")
    next_hop = harness.connect()
    next_hop.answer_handshake(server=UUID(int=0xF4))
    (transfer,) = (candidate for candidate in harness.engine.transfers.values() if candidate.table)
    (packet,) = next_hop.packets
    assert packet.find(TX(ordinal=4, time_stamp=9, number=7, previous=6)) == 68, (
        "its TransactionHeader is unchanged"
    )
    assert [entry.tx_sequence_number for entry in transfer.table.values()] == [0]
    assert (transfer.sequence_id, transfer.next_number) == (TxSequenceId(0, 0), 1)
    next_hop.acknowledge()
    assert len(transfer.table) == 0, "the session acknowledgement is enough"


@pytest.mark.requirement("MQQB-3.1.3.2-17")
def test_the_identifier_is_made_once() -> None:
    harness = EngineHarness(identifier=NULL_GUID)
    new_identifier = harness.core.queue_manager.identifier
    assert new_identifier != NULL_GUID
    assert harness.restarted(identifier=UUID(int=7)).core.queue_manager.identifier == new_identifier
    other = EngineHarness(memory_store(), identifier=UUID(int=7))
    assert other.core.queue_manager.identifier == UUID(int=7)


# -- 3.1.4: started and stopped ----------------------------------------------------------------------------


@pytest.mark.requirement("MQQB-3.1.4-01", "MQQB-3.1.4.1-01", "MQQB-3.1.5.2-01")
def test_startup_opens_sessions_for_waiting_messages_only() -> None:
    harness = EngineHarness()
    harness.send(recoverable=True)
    harness.send(to=r"DIRECT=TCP:10.0.0.5\private$\express")
    harness.open_to_send(r"DIRECT=TCP:10.0.0.6\private$\nothing")
    restarted = harness.restarted(stop=True)
    assert [question.host for question in restarted.effects_of(Resolve)] == [PEER_ADDRESS]


@pytest.mark.requirement("MQQB-3.1.4-01", "MQQB-3.1.4.2-01")
def test_at_the_stop_all_sessions_are_closed() -> None:
    harness = EngineHarness()
    peers = [
        harness.open_session(),
        harness.accept_session(),
        harness.accept_connection(),
        harness.request_session(to=r"DIRECT=TCP:10.0.0.6\private$\more", addresses=["10.0.0.6"]),
    ]
    sessions = [peer.session for peer in peers]
    harness.send(to=r"DIRECT=TCP:10.0.0.7\private$\asked")
    harness.core.stop()
    harness.run()
    assert all(peer.closed for peer in peers)
    assert [session.state for session in sessions] == [SessionState.CLOSED] * 4
    assert harness.engine.sessions == {}
    connects = len(harness.effects_of(Connect))
    harness.resolve("10.0.0.7")
    harness.advance(600_000)
    assert len(harness.effects_of(Connect)) == connects, "handshakes in progress are abandoned"
    late = harness.accept_connection()
    assert late.closed, "and no connection is accepted"


def test_a_message_restored_after_a_kill_is_as_it_was() -> None:
    harness = EngineHarness()
    harness.send(recoverable=True)
    (position,) = harness.restarted().outgoing().positions
    assert position.message.delivery_guarantee is DeliveryGuarantee.RECOVERABLE
    assert harness.restarted().outgoing().state is OutgoingQueueState.INACTIVE


def test_acks_at_shutdown_open_a_session_when_none_is_open() -> None:
    """The acknowledgement of a forwarded message goes to its original sender."""
    harness = EngineHarness()
    harness.queue("tx", transactional=True)
    peer = harness.accept_session()
    peer.send(peer.message(queue="tx", source=THIRD_ID, transaction=TX(ordinal=4, time_stamp=9, number=1)))
    before = list(harness.engine.sessions.values())
    harness.core.acknowledge_received()
    (opened,) = [session for session in harness.engine.sessions.values() if session not in before]
    assert opened.role is SessionRole.INITIATOR


@pytest.mark.requirement("MQQB-3.1.1.3.1-29")
def test_numbered_messages_are_sent_first_after_a_restart() -> None:
    """A message with a sequence number goes before an older one whose transaction was committed later."""
    harness = EngineHarness()
    descriptor = harness.open_to_send()
    late = harness.begin()
    harness.core.send(descriptor, Message(body=b"came first", delivery_guarantee=RECOVERABLE), late)
    peer = harness.open_session(transactional=True)
    peer.disconnect()
    harness.core.commit(late)
    harness.run()
    restarted = harness.restarted()
    restarted.resolve(PEER_ADDRESS)
    again = restarted.connect()
    again.answer_handshake()
    sent = [(body, number, previous) for body, _, number, previous in again.sequenced_bodies()]
    assert sent == [(b"m0", 1, 0), (b"came first", 2, 1)]
