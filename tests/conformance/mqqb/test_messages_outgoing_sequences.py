"""Outgoing transactional sequences: [MS-MQQB] 3.1.1.3.1.1, .2, 3.1.1.5, 3.1.5.6 and .7."""

from __future__ import annotations

import pytest

from msmqwire.constants import MQ_OK
from msmqwire.qm.model.elements import SequenceInfo
from msmqwire.qm.model.enumerations import DeliveryGuarantee
from msmqwire.qm.model.message import Message, TxSequenceId
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.tables import Table
from msmqwire.qm.protocols.binary.states import SessionMessageState
from msmqwire.qm.protocols.binary.transfer import SessionTransfer
from tests.support import handmade
from tests.support.engine_harness import (
    PEER_ADDRESS,
    PEER_ID,
    START_UTC,
    THIRD_ID,
    EngineHarness,
    harness_with_peer,
)
from tests.support.peers.handwritten_peer import HandwrittenPeer
from tests.support.qm.queue_contents import bodies

FIRST = TxSequenceId(START_UTC, 1)


def started(
    *message_bodies: bytes, settings: Settings | None = None, **attributes: object
) -> tuple[EngineHarness, HandwrittenPeer, SessionTransfer]:
    """Send messages in one transaction."""
    harness = harness_with_peer(settings=settings)
    harness.send(*message_bodies, **attributes, transactional=True)
    return harness, harness.called[0], harness.transfer()


def infos(*numbers: int) -> list[SequenceInfo]:
    return [SequenceInfo(FIRST, number, number - 1) for number in numbers]


# --- numbers ---


@pytest.mark.requirement("MQMQ-2.2.20.5-13", "MQMQ-2.2.20.5-14")
@pytest.mark.requirement("MQMQ-2.2.5-02")
@pytest.mark.requirement(
    "MQQB-3.1.1.5-01", "MQQB-3.1.1.5-03", "MQQB-3.1.7.1.3-01", "MQQB-3.1.7.1.3-02", "MQQB-3.1.1.5-05",
    "MQQB-3.1.1.3.1.1-07", "MQQB-3.1.1.3.1.2-04", "DMPR-3.1.1.12-69", "DMPR-3.1.1.12-70",
)  # fmt: skip
def test_messages_of_a_sequence_are_numbered():
    harness, peer, transfer = started(b"a", b"b")
    assert transfer.sequence_id == FIRST
    assert transfer.next_number == 3
    assert list(transfer.unacked_sequence) == infos(1, 2)
    assert [entry.tx_sequence_number for entry in transfer.table.values()] == [1, 2]
    first = peer.packets[0]
    assert first.tx[0] == START_UTC
    assert peer.sequenced_bodies() == [(b"a", 1, 1, 0), (b"b", 1, 2, 1)]
    (plain,) = harness.send(b"plain")
    assert [entry.tx_sequence_number for entry in transfer.table.values()] == [1, 2, 0]
    assert plain.transactional_message_sequence_identifier is None
    assert peer.packets[-1].tx is None


@pytest.mark.requirement("MQQB-3.1.1.5-05", "MQQB-3.1.6.5-02")
def test_a_message_that_is_sent_again_keeps_its_place():
    harness, peer, transfer = started(b"a", b"b")
    peer.take()
    peer.acknowledge()
    harness.advance(30_000)
    assert peer.sequenced_bodies() == [(b"a", 1, 1, 0), (b"b", 1, 2, 1)]
    assert list(transfer.unacked_sequence) == infos(1, 2)
    assert transfer.next_number == 3


@pytest.mark.requirement("MQQB-3.1.1.3.1.2-04")
def test_numbers_survive():
    harness, peer, _ = started(b"a", b"b", b"c")
    peer.acknowledge()
    peer.send_order_ack(FIRST, 1)
    restarted = harness.restarted()
    assert restarted.called[0].sequenced_bodies() == [(b"b", 1, 2, 0), (b"c", 1, 3, 2)]
    restarted.send(b"d", transactional=True)
    assert restarted.called[0].sequenced_bodies() == [(b"d", 1, 4, 3)]
    assert [info.number for info in restarted.transfer().unacked_sequence] == [2, 3, 4]
    restarted_again = restarted.restarted()
    assert restarted_again.called[0].sequenced_bodies() == [(b"b", 1, 2, 0), (b"c", 1, 3, 2), (b"d", 1, 4, 3)]


@pytest.mark.requirement("DMPR-3.1.1.12-69")
@pytest.mark.requirement("MQQB-3.1.1.5-02", "MQQB-3.1.1.5-06", "MQQB-3.1.1.5-07", "MQQB-3.1.5.6-09")
def test_the_next_sequence_begins_when_all_is_acknowledged():
    harness, peer, transfer = started(b"a", b"b")
    peer.take()
    peer.acknowledge()
    peer.send_order_ack(FIRST, 1)
    harness.send(b"c", transactional=True)
    assert peer.sequenced_bodies() == [(b"c", 1, 3, 2)]
    peer.acknowledge()
    peer.send_order_ack(FIRST, 3)
    assert transfer.table == {}
    harness.send(b"d", b"e", transactional=True)
    assert peer.sequenced_bodies() == [(b"d", 2, 1, 0), (b"e", 2, 2, 1)]
    restarted = harness.restarted()
    assert restarted.called[0].sequenced_bodies() == [(b"d", 2, 1, 0), (b"e", 2, 2, 1)]


@pytest.mark.requirement("MQQB-3.1.5.6-09", "MQQB-3.1.1.5-07")
def test_a_sequence_goes_on_while_a_session_ack_is_missing():
    """Messages whose order is acknowledged still wait for their session acknowledgements."""
    harness, peer, transfer = started(b"a")
    peer.take()
    peer.send_order_ack(FIRST, 1)
    assert len(transfer.table) == 1
    harness.send(b"b", transactional=True)
    assert peer.sequenced_bodies() == [(b"b", 1, 2, 1)]
    peer.disconnect()
    harness.advance(5_000)
    assert {ordinal for _, ordinal, _, _ in harness.called[1].sequenced_bodies()} == {1}


@pytest.mark.requirement("MQMQ-2.2.18.1.2-04")
@pytest.mark.requirement("MQQB-3.1.1.5-07")
def test_a_sequence_after_a_restart_is_later_than_all_before():
    harness, peer, _ = started(b"a")
    peer.acknowledge()
    peer.send_order_ack(FIRST, 1)
    restarted = harness.restarted()
    assert restarted.called == []
    restarted.send(b"b", transactional=True)
    assert restarted.called[0].sequenced_bodies() == [(b"b", 2, 1, 0)]
    assert restarted.transfer().sequence_id == TxSequenceId(START_UTC, 2)


@pytest.mark.requirement("MQMQ-2.2.19.1-23")
@pytest.mark.requirement("MQQB-3.1.1.5-04", "MQQB-3.1.7.1.3-04", "MQQB-3.1.7.1.2-02")
def test_the_gap_of_a_message_that_expired_is_bridged():
    harness = harness_with_peer(settings=Settings(expire_in_doubt=True))
    to = harness.open_to_send()
    transaction = harness.begin()
    for body, reach in ((b"a", 100_000), (b"b", 10), (b"c", 100_000), (b"d", 10), (b"e", 100_000)):
        harness.core.send(to, Message(body=body, time_to_reach_queue=reach), transaction)
    assert harness.core.commit(transaction) == MQ_OK
    harness.run()
    peer = harness.called[0]
    assert [number for _, _, number, _ in peer.sequenced_bodies()] == [1, 2, 3, 4, 5]
    peer.acknowledge()
    harness.advance(30_000)
    assert peer.sequenced_bodies() == [(b"a", 1, 1, 0), (b"c", 1, 3, 1), (b"e", 1, 5, 3)]
    peer.send_order_ack(FIRST, 1)
    peer.acknowledge()
    harness.advance(30_000)
    assert peer.sequenced_bodies() == [
        (b"c", 1, 3, 1),
        (b"e", 1, 5, 3),
    ]  # the first one follows the last acknowledged message


@pytest.mark.requirement("MQQB-3.1.7.1.3-04")
def test_the_first_of_a_sequence_may_expire():
    harness = harness_with_peer(settings=Settings(expire_in_doubt=True))
    to = harness.open_to_send()
    harness.send(b"a", to=to, time_to_reach_queue=10, transactional=True)
    harness.send(b"b", to=to, transactional=True)
    peer = harness.called[0]
    peer.take()
    peer.acknowledge()
    harness.advance(30_000)
    assert peer.sequenced_bodies() == [(b"b", 1, 2, 0)]


# --- OutgoingMessagePosition ---


@pytest.mark.requirement(
    "MQQB-3.1.1.3.1.2-01", "MQQB-3.1.1.3.1.2-02", "MQQB-3.1.1.3.1.2-03", "MQQB-3.1.5.5.1-01"
)
@pytest.mark.requirement("MQQB-3.1.1.3.1.2-05", "MQQB-3.1.7.12-03")
def test_what_is_known_of_a_message_on_its_way():
    harness = harness_with_peer()
    harness.hosts.clear()
    harness.send(b"express")
    harness.send(b"recoverable", delivery_guarantee=DeliveryGuarantee.RECOVERABLE)
    harness.send(b"transactional", transactional=True)
    transfer = harness.transfer()
    express, recoverable, transactional = transfer.table.values()
    assert {entry.position for entry in transfer.table.values()} == set(harness.outgoing().positions)

    def numbers() -> list[tuple[int, int, int]]:
        return [
            (entry.sequence_number, entry.recoverable_sequence_number, entry.tx_sequence_number)
            for entry in (express, recoverable, transactional)
        ]

    def states() -> list[tuple[bool, bool, bool, bool]]:
        return [
            (
                entry.session is not None,
                entry.received_session_ack,
                entry.received_order_ack,
                entry.transmitted,
            )
            for entry in (express, recoverable, transactional)
        ]

    assert numbers() == [(0, 0, 0)] * 3
    assert states() == [(False, False, False, False)] * 3
    harness.hosts[PEER_ADDRESS] = PEER_ID
    harness.advance(5_000)
    peer = harness.called[0]
    assert peer.bodies() == [b"express", b"recoverable", b"transactional"]
    assert numbers() == [(1, 0, 0), (2, 1, 0), (3, 2, 1)]
    assert states() == [(True, False, False, True)] * 3
    peer.acknowledge(ack=3, recoverable_ack=0, recoverable_flags=0)
    assert [entry.received_session_ack for entry in (express, recoverable, transactional)] == [True] * 3
    assert list(transfer.table.values()) == [recoverable, transactional]
    peer.send_order_ack(transfer.sequence_id, 1)
    assert transactional.received_order_ack
    assert not recoverable.received_order_ack


@pytest.mark.requirement("MQQB-3.1.1.3.1.2-06", "MQQB-3.1.7.1.3-05")
def test_a_forwarded_message_ends_with_its_session_ack():
    """A transactional message that is passed on is never resent by the timer of sequences."""
    harness = harness_with_peer(routes={PEER_ID: ["far"]})
    harness.names["far"] = PEER_ADDRESS
    other = harness.accept_session(client=THIRD_ID, address="10.0.0.8")
    other.send_message(b"m", tx=(4, 3, 7), address=PEER_ID.bytes_le, destination=(3, handmade.private_id(9)))
    peer = harness.called[0]
    assert peer.sequenced_bodies() == [(b"m", 7, 4, 3)]
    outgoing = harness.outgoing(f"PRIVATE={PEER_ID}\\9")
    (position,) = harness.core.binary.transfers[outgoing.number].table.values()
    assert position.tx_sequence_number == 0
    assert list(harness.store.rows(Table.OUTGOING)) == []
    harness.advance(35_000)  # until it is acknowledged, no sequence timer resends it
    assert peer.sequenced_bodies() == []
    restarted = harness.restarted()
    assert restarted.called[0].sequenced_bodies() == [(b"m", 7, 4, 3)]
    restarted.called[0].acknowledge()
    assert bodies(restarted.outgoing(f"PRIVATE={PEER_ID}\\9")) == []


# --- order acknowledgements ---


@pytest.mark.requirement("MQQB-3.1.5.6-01")
@pytest.mark.requirement("MQQB-3.1.5.7-01")
@pytest.mark.parametrize("packet", [handmade.order_ack(), handmade.final_ack()], ids=["order", "final"])
def test_an_acknowledgement_before_the_session_is_open_closes_it(packet):
    harness = harness_with_peer()
    peer = harness.accept_connection()
    peer.send(packet)
    assert peer.closed


@pytest.mark.requirement(
    "MQQB-3.1.5.6-02", "MQQB-3.1.5.6-04", "MQQB-3.1.5.6-05", "MQQB-3.1.5.6-12", "MQQB-3.1.5.6-13",
    "MQQB-3.1.1.3.1.1-01", "MQQB-3.1.1.3.1.1-02", "MQQB-3.1.1.3.1.1-05", "MQQB-3.1.1.6.2-07",
    "DMPR-3.1.1.4-02", "DMPR-3.1.1.4-03", "DMPR-3.1.1.4-04", "DMPR-3.1.1.4-05", "DMPR-3.1.1.4-06",
    "DMPR-3.1.1.4-08",
)  # fmt: skip
def test_what_an_order_acknowledgement_tells():
    harness, peer, transfer = started(b"1", b"2", b"3", b"4", b"5")
    info = harness.outgoing().transfer
    assert (transfer.last_ack_count, transfer.last_ack.number) == (0, 0)
    assert info.eod_no_ack_count == 5
    assert [info.eod_first_non_ack, info.eod_last_non_ack] == infos(1, 5)
    peer.acknowledge()
    harness.advance(3_000)
    peer.send_order_ack(FIRST, 3)
    assert (transfer.time_of_last_ack, transfer.last_ack_count) == (harness.utc, 1)
    assert [transfer.last_ack] == infos(3)
    assert list(transfer.unacked_sequence) == infos(4, 5)
    assert bodies(harness.outgoing()) == [b"4", b"5"]
    assert (info.eod_last_ack_time, info.eod_last_ack_count, info.eod_last_ack) == (harness.utc, 1, *infos(3))
    assert info.eod_no_ack_count == 2
    assert [info.eod_first_non_ack, info.eod_last_non_ack] == infos(4, 5)
    harness.advance(2_000)
    peer.send_order_ack(FIRST, 2)  # an older acknowledgement
    assert (transfer.time_of_last_ack, transfer.last_ack_count) == (harness.utc, 2)
    assert [transfer.last_ack] == infos(3)
    assert list(transfer.unacked_sequence) == infos(4, 5)
    peer.send_order_ack(FIRST, 5)
    assert info.eod_no_ack_count == 0
    assert info.eod_first_non_ack is info.eod_last_non_ack is None
    assert bodies(harness.outgoing()) == []


@pytest.mark.requirement("MQQB-3.1.5.6-07")
def test_a_message_without_its_session_acknowledgement_stays():
    harness, peer, transfer = started(b"1", b"2", b"3")
    peer.acknowledge(ack=1, recoverable_ack=1, recoverable_flags=1)
    peer.send_order_ack(FIRST, 2)
    assert bodies(harness.outgoing()) == [b"2", b"3"]
    peer.acknowledge(ack=3, recoverable_ack=2, recoverable_flags=0b11)
    assert bodies(harness.outgoing()) == [b"3"]
    assert [entry.state for entry in transfer.table.values()] == [SessionMessageState.WAITING_FOR_ORDER_ACK]


@pytest.mark.requirement("MQQB-3.1.5.6-07")
def test_a_received_message_is_deleted_by_its_order_ack():
    """Even if no session acknowledgement says that it is saved: an order acknowledgement does."""
    harness, peer, _ = started(b"1", b"2")
    peer.acknowledge(ack=1, recoverable_ack=0, recoverable_flags=0)
    assert bodies(harness.outgoing()) == [b"1", b"2"]
    peer.send_order_ack(FIRST, 1)
    assert bodies(harness.outgoing()) == [b"2"]


@pytest.mark.requirement("MQQB-3.1.5.6-11")
@pytest.mark.parametrize("sequence", [(START_UTC, 2), (START_UTC + 1, 1), (START_UTC - 1, 1), (0, 0)])
def test_an_order_ack_of_another_sequence_has_no_effect(sequence):
    harness, peer, transfer = started(b"1", b"2")
    peer.acknowledge()
    peer.send_order_ack(sequence, 2)
    peer.send_order_ack(FIRST, 3)  # was never sent
    assert bodies(harness.outgoing()) == [b"1", b"2"]
    assert list(transfer.unacked_sequence) == infos(1, 2)


@pytest.mark.requirement("MQQB-3.1.1.6.2-08", "MQQB-3.1.5.6-08", "MQQB-3.1.1.6.2-09", "MQQB-3.1.1.3.1-30")
@pytest.mark.parametrize("which", ["positive", "negative", None])
def test_a_transactional_message_is_kept_until_its_last_ack(which):
    journaling = {f"{which}_journaling_requested": True} if which else {}
    harness, peer, transfer = started(b"1", **journaling)
    (packet,) = peer.take("UserMessage")
    peer.acknowledge()
    harness.advance(10_000)
    assert bodies(harness.outgoing()) == [b"1"]
    assert transfer.table
    peer.send_order_ack(FIRST, 1)
    assert not transfer.table
    awaited = [entry.state for entry in transfer.awaiting_final_ack.values()]
    assert awaited == [SessionMessageState.WAITING_FOR_FINAL_ACK] * bool(which)
    assert bodies(harness.outgoing()) == ([b"1"] if which else [])
    if which:
        harness.advance(86_400_000)
        restarted = harness.restarted()
        assert bodies(restarted.outgoing()) == [b"1"]
        assert restarted.called == []
        restarted.accept_session().send_final_ack(packet)
        assert bodies(restarted.outgoing()) == []
        journal = restarted.core.queue_manager.system_journal_queue
        assert bodies(journal) == ([b"1"] if which == "positive" else [])


@pytest.mark.requirement("MQQB-3.1.5.6-10", "MQQB-3.1.1.7.3-02")
def test_order_and_final_acks_are_counted_and_acknowledged():
    harness, peer, transfer = started(b"1", positive_journaling_requested=True)
    (packet,) = peer.take("UserMessage")
    session = transfer.session
    peer.acknowledge()
    peer.send_order_ack(FIRST, 1)
    assert (session.message_received_count, session.recoverable_message_received_count) == (1, 0)
    peer.send_final_ack(packet)
    assert (session.message_received_count, session.recoverable_message_received_count) == (2, 1)
    peer.acknowledge()  # with correct counts
    assert not peer.closed
    harness.advance(500)
    assert peer.acks[-1][:3] == (2, 1, 1)


# --- final acknowledgements ---


def final_cases() -> list[object]:
    journal, dead = "system_journal_queue", "system_transactional_deadletter_queue"
    return [
        pytest.param(
            positive,
            negative,
            kind,
            end,
            marks=pytest.mark.requirement(f"MQQB-3.1.5.7-{row}", "MQQB-3.1.5.7-02"),
        )
        for positive, negative, kind, end, row in (
            (True, False, 0x4000, journal, "03"),
            (True, True, 0x4000, journal, "03"),
            (False, True, 0x8004, dead, "04"),
            (True, True, 0xC002, dead, "04"),
            (False, True, 0x4000, None, "05"),
            (True, False, 0xC000, None, "05"),
        )
    ]


def ends(harness: EngineHarness, end: str | None) -> None:
    manager = harness.core.queue_manager
    for name in ("system_journal_queue", "system_transactional_deadletter_queue", "system_deadletter_queue"):
        assert bodies(getattr(manager, name)) == ([b"m"] if name == end else [])
    assert bodies(harness.outgoing()) == []
    assert list(harness.store.rows(Table.OUTGOING)) == []


@pytest.mark.requirement("MQQB-3.1.5.7-05")
@pytest.mark.parametrize("when", ["last", "before the session's", "before the order's", "first"])
@pytest.mark.parametrize(("positive", "negative", "kind", "end"), final_cases())
def test_where_a_message_ends_with_its_final_acknowledgement(positive, negative, kind, end, when):
    harness, peer, transfer = started(
        b"m", positive_journaling_requested=positive, negative_journaling_requested=negative
    )
    (packet,) = peer.take("UserMessage")
    if when in ("last", "before the order's"):
        peer.acknowledge()
    if when in ("last", "before the session's"):
        peer.send_order_ack(FIRST, 1)
    peer.send_final_ack(packet, kind)
    ends(harness, end)
    assert not transfer.table
    assert not transfer.awaiting_final_ack
    peer.acknowledge()
    peer.send_order_ack(FIRST, 1)
    peer.send_final_ack(packet, kind)
    ends(harness, end)


@pytest.mark.requirement("MQQB-3.1.5.7-04")
@pytest.mark.parametrize("valid", [True, False])
def test_a_refused_message_goes_to_its_own_dead_letter_queue(valid):
    """The dead-letter queue of the application is taken only if it is transactional."""
    harness = harness_with_peer()
    dead_letter_queue = harness.queue("dead", transactional=valid)
    harness.send(
        b"m",
        negative_journaling_requested=True,
        application_deadletter_queue=dead_letter_queue.pathname,
        transactional=True,
    )
    peer = harness.called[0]
    (packet,) = peer.take("UserMessage")
    peer.acknowledge()
    peer.send_final_ack(packet, 0x8000)
    system_dead_letters = bodies(harness.core.queue_manager.system_transactional_deadletter_queue)
    assert (bodies(dead_letter_queue), system_dead_letters) == (([b"m"], []) if valid else ([], [b"m"]))


@pytest.mark.requirement("MQQB-3.1.5.7-02")
def test_a_final_acknowledgement_of_another_message_says_nothing():
    harness, peer, _ = started(b"m", positive_journaling_requested=True)
    (packet,) = peer.take("UserMessage")
    peer.send_final_ack(packet, message_id=packet.MessageID + 1)
    peer.send_final_ack(packet, ordinal=packet.tx[1] + 1)
    assert bodies(harness.outgoing()) == [b"m"]


def test_a_message_awaiting_its_final_ack_can_be_purged():
    harness, peer, transfer = started(b"m", positive_journaling_requested=True)
    (packet,) = peer.take("UserMessage")
    peer.acknowledge()
    peer.send_order_ack(FIRST, 1)
    harness.core.messages.purge(harness.outgoing())
    harness.run()
    peer.send_final_ack(packet)
    assert transfer.awaiting_final_ack == {}
    assert list(harness.store.rows(Table.OUTGOING)) == []
    assert bodies(harness.core.queue_manager.system_journal_queue) == []
