"""The fate of messages in sessions written by hand: sent, acknowledged, stored, and what is missing."""

from __future__ import annotations

import pytest

from msmqwire.analysis import fate as fate_room
from msmqwire.analysis.fate import EventKind, State
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.fate_captures import (
    JOURNAL_NEGATIVE,
    NEGATIVE_ARRIVAL,
    POSITIVE_ARRIVAL,
    POSITIVE_RECEIVE,
    RECEIVER,
    RECEIVER_QM,
    SENDER,
    SENDER_QM,
    THIRD,
    Link,
    acknowledgement,
    fate_in,
    fates_in,
    final_ack,
    identity,
    message,
    order_ack,
    session_ack,
    told,
)

MILLISECOND = 1_000_000
ELSEWHERE = bytes(range(16))


def test_the_former_name_of_kinds_of_events_is_kept() -> None:
    assert fate_room.What is EventKind


def test_a_message_and_its_session_acknowledgement() -> None:
    link = Link()
    sent_at = link.time_ns
    link.send(message(7, body=b"seven"), acknowledged=False).wait(3 * MILLISECOND)
    link.answer(session_ack(ack=1))
    fate = fate_in(link)
    assert (fate.identity, fate.source_qm, fate.message_id) == (identity(7), SENDER_QM, 7)
    assert (fate.label, fate.transport, fate.message_class) == ("order 7", "tcp", "NORMAL")
    assert fate.destination == f"PRIVATE={RECEIVER_QM}\\00000009"
    assert (fate.body_size, fate.recoverable, fate.transactional) == (5, False, False)
    assert fate.sent_time == 0x441105E6
    assert fate.sent_ns == sent_at
    assert (fate.state, fate.reason, fate.stuck) == (State.RECEIVED, "", False)
    assert fate.latencies == {"received": 3 * MILLISECOND + link.step_ns}
    assert told(fate) == ["sent", "received"]
    sent, received = fate.events
    assert (sent.src, sent.dst, sent.stream) == (SENDER, RECEIVER, 0)
    assert (received.src, received.dst, received.frame) == (RECEIVER, SENDER, sent.frame + 1)
    assert fate.explanation == f"{RECEIVER} has received it; it asks for no further acknowledgement"


def test_acknowledgements_cover_those_before_and_none_behind() -> None:
    link = Link(window=2)
    for number in range(1, 6):
        link.send(message(number))
    link.answer(session_ack(ack=3, window=2))
    fates = fates_in(link)
    assert [fate.state for fate in fates] == [State.RECEIVED] * 3 + [State.SENT] * 2
    assert [fate.stuck for fate in fates] == [False] * 3 + [True] * 2
    assert fates[4].explanation == (
        f"sent to {RECEIVER}, and no acknowledgement came in the capture: "
        "the receiver's SessionAck stopped at 3 while 5 were sent, its window of 2 is closed"
    )


def test_no_acknowledgement_at_all() -> None:
    fate = fate_in(Link().send(message(1)))
    assert (fate.state, fate.stuck, fate.latencies) == (State.SENT, True, {})
    assert "no SessionAck came on this connection, on which 1 message was sent" in fate.explanation


def test_an_acknowledgement_on_a_message_of_the_other_side() -> None:
    link = Link().send(message(1)).send(message(2))
    header = h.session_header(ack=2, sent=1)
    link.answer(message(900, source=h.SERVER, session=header))
    first, second, other = fates_in(link)
    assert (first.state, second.state, other.state) == (State.RECEIVED, State.RECEIVED, State.SENT)
    assert other.source_qm == RECEIVER_QM


@pytest.mark.parametrize(
    ("base", "flags", "stored"),
    [(0, 0, []), (1, 1, [1]), (1, 0b111, [1, 2, 3]), (2, 0b101, [1, 2, 4]), (3, 0, [1, 2, 3])],
)
def test_recoverable_messages_are_stored_by_number_and_flags(
    base: int, flags: int, stored: list[int]
) -> None:
    link = Link()
    for number in range(1, 5):
        link.send(message(number, recoverable=True))
        link.send(message(100 + number))  # express messages have no number of this kind
    link.answer(session_ack(ack=8, recoverable_ack=base, recoverable_flags=flags))
    fates = {fate.message_id: fate for fate in fates_in(link)}
    assert [number for number in range(1, 5) if fates[number].state is State.STORED] == stored
    assert {fates[100 + number].state for number in range(1, 5)} == {State.RECEIVED}
    waiting = [fates[number] for number in range(1, 5) if number not in stored]
    assert all((fate.state, fate.stuck) == (State.RECEIVED, False) for fate in waiting)
    assert {fate.missing for fate in waiting} <= {"acknowledgement of storage"}
    assert all(told(fate)[-1] == "not stored" for fate in waiting)


def test_numbers_wrap() -> None:
    link = Link(established=False)
    link.send(message(1, session=h.session_header(sent=0xFFFF)))
    link.send(message(2)).send(message(3))
    link.answer(session_ack(ack=0))
    assert [fate.state for fate in fates_in(link)] == [State.RECEIVED, State.RECEIVED, State.SENT]


# --- captures that begin late, end early or have gaps ---


def test_a_capture_that_begins_in_the_middle_does_not_guess() -> None:
    link = Link(established=False)
    link.send(message(1)).send(message(2))
    link.answer(session_ack(ack=17))
    fates = fates_in(link)
    assert [(fate.state, fate.stuck) for fate in fates] == [(State.SENT, False)] * 2
    assert "the capture does not have the whole connection" in fates[0].explanation


def test_counts_of_the_sender_number_earlier_messages_too() -> None:
    """Acknowledgements that came while numbers were unknown are counted then, with their own times."""
    link = Link(established=False)
    for number in range(1, 4):
        link.send(message(number))
    link.answer(session_ack(ack=42)).answer(session_ack(ack=43))
    acknowledged_at = link.time_ns - link.step_ns * 2
    link.send(session_ack(sent=44))  # three messages to 44: 42, 43, 44
    link.send(message(4))
    fates = fates_in(link)
    assert [fate.state for fate in fates] == [State.RECEIVED] * 2 + [State.SENT] * 2
    assert fates[1].events[1].time_ns == acknowledged_at
    assert [fate.stuck for fate in fates] == [False] * 4


def test_after_a_gap_numbers_are_unknown_until_the_next_count() -> None:
    link = Link().send(message(1))
    lost = len(link.frames)
    link.send(message(2), acknowledged=False)
    del link.frames[lost:]
    link.send(message(3))
    link.answer(session_ack(ack=2))
    for number in range(4, 40):  # enough behind the gap that it is given up
        link.send(message(number, body=bytes(1400)))
    known = {fate.message_id: fate for fate in fates_in(link)}
    assert 2 not in known
    assert known[1].state is State.RECEIVED
    assert known[3].state is State.SENT
    assert not known[3].stuck


def test_wrong_sender_counts_do_not_change_a_whole_session() -> None:
    """MQMQ-2.2.20.4-12: Windows is known to send them."""
    link = Link().send(message(1)).send(message(2, session=h.session_header(sent=9)))
    link.send(message(3)).send(message(4))
    link.answer(session_ack(ack=3))
    assert [fate.state for fate in fates_in(link)] == [State.RECEIVED] * 3 + [State.SENT]


# --- sent again, passed on ---


def test_a_message_that_is_sent_again_by_another_connection() -> None:
    first, second = Link().send(message(1)), Link(port=50_001, start_ns=c.START_NS + 1_000 * MILLISECOND)
    second.send(message(1))
    second.answer(session_ack(ack=1))
    fate = fate_in(first, second)
    assert told(fate) == ["sent", "unacknowledged", "sent again", "received"]
    assert (fate.retransmissions, fate.hops, fate.state, fate.stuck) == (1, 0, State.RECEIVED, False)
    assert fate.latencies["received"] > 1_000 * MILLISECOND
    assert fate.explanation.endswith("; it was sent again once")


def test_a_message_that_is_passed_on() -> None:
    first = Link(server_qm=ELSEWHERE, server=THIRD).send(message(1))
    first.answer(session_ack(ack=1))
    second = Link(THIRD, RECEIVER, client_qm=ELSEWHERE, start_ns=first.time_ns + MILLISECOND)
    second.send(message(1, user={"flags": h.MP | 1}))
    fate = fate_in(first, second)
    assert told(fate) == ["sent", "received", "forwarded", "unacknowledged"]
    # It is where it was passed on: how far it came before is told by the events.
    assert (fate.retransmissions, fate.hops, fate.state) == (0, 1, State.SENT)
    assert (fate.stuck, fate.missing) == (True, "session acknowledgement")
    assert fate.explanation.startswith(f"sent to {RECEIVER}, and no acknowledgement came")


def test_copies_to_several_queues_are_not_sent_again() -> None:
    link = Link().send(message(1)).send(message(1, user={"destination": (3, h.private_id(10))}))
    fate = fate_in(link)
    assert told(fate)[:2] == ["sent", "sent"]
    assert fate.retransmissions == 0


# --- transactional messages ---


def test_order_acks_cover_a_sequence_up_to_a_number() -> None:
    link = Link()
    for number in (1, 2, 3):
        link.send(message(number, transaction=number))
    link.answer(session_ack(ack=3, recoverable_ack=1, recoverable_flags=7))
    link.answer(order_ack(2))
    fates = fates_in(link)
    assert [fate.state for fate in fates] == [State.DELIVERED, State.DELIVERED, State.STORED]
    assert [fate.missing for fate in fates] == ["", "", "order acknowledgement"]
    assert not any(fate.stuck for fate in fates)
    assert fates[2].explanation == (
        f"{RECEIVER} has stored it; no acknowledgement of its order came in the capture"
    )


def test_an_order_acknowledgement_by_another_connection() -> None:
    link = Link().send(message(1, transaction=1))
    back = Link(RECEIVER, SENDER, client_qm=h.SERVER, server_qm=h.CLIENT, start_ns=link.time_ns)
    back.send(order_ack(1))
    fate = fate_in(link, back)
    assert fate.state is State.DELIVERED
    assert "order acknowledgement" in told(fate)


@pytest.mark.parametrize(
    ("message_class", "state", "reason"),
    [
        (0x4000, State.READ, ""),
        (0x8001, State.DELETED, "NACK_DELETED"),
        (0x8002, State.EXPIRED, "NACK_REACH_QUEUE_TIMEOUT"),
        (0x8004, State.REFUSED, "NACK_ACCESS_DENIED"),
        (0xC001, State.DELETED, "NACK_Q_PURGED"),
        (0xC002, State.EXPIRED, "NACK_RECEIVE_TIMEOUT"),
        (0xC004, State.REJECTED, "NACK_RECEIVE_REJECTED"),
    ],
)
def test_final_acknowledgements(message_class: int, state: State, reason: str) -> None:
    link = Link().send(message(1, transaction=1))
    link.answer(order_ack(1)).answer(final_ack(1, 1, message_class))
    fate = fate_in(link)
    assert (fate.state, fate.reason, fate.stuck) == (state, reason, False)
    assert ("delivered" in fate.latencies) is bool(message_class & 0x4000)


# --- acknowledgements by messages ---


@pytest.mark.parametrize(
    ("message_class", "state", "words"),
    [
        (0x0002, State.DELIVERED, "it is in its queue"),
        (0x4000, State.READ, "an application has read it"),
        (0x8000, State.REFUSED, "there is no such queue"),
        (0x8001, State.DELETED, "it was deleted before it got there"),
        (0x8002, State.EXPIRED, "its time to reach the queue was over"),
        (0x8003, State.REFUSED, "the queue is full"),
        (0x8004, State.REFUSED, "its sender may not send to the queue"),
        (0x8005, State.REFUSED, "it was passed on too often"),
        (0x8006, State.REFUSED, "its signature is not valid"),
        (0x8007, State.REFUSED, "it can't be decrypted"),
        (0x8009, State.REFUSED, "it is transactional, and the queue is not"),
        (0x800A, State.REFUSED, "the queue is transactional, and it is not"),
        (0x800B, State.REFUSED, "its cryptographic provider is not supported"),
        (0xC000, State.DELETED, "the queue was deleted with it"),
        (0xC001, State.DELETED, "the queue was purged"),
        (0xC002, State.EXPIRED, "nobody has read it in time"),
        (0xC004, State.REJECTED, "the application has rejected it"),
    ],
)
def test_each_class_of_acknowledgement(message_class: int, state: State, words: str) -> None:
    link = Link().send(message(1, acks=15))
    link.answer(session_ack(ack=1))
    link.answer(acknowledgement(1, message_class))
    fate = fate_in(link)
    assert fate.state is state
    assert words in fate.explanation
    assert fate.reason == (fate.events[-1].message_class if message_class & 0x8000 else "")
    assert fate.latencies[state.value] > fate.latencies["received"]
    assert not fate.stuck


def test_a_negative_one_tells_of_the_dead_letter_queue() -> None:
    link = Link().send(message(1, acks=NEGATIVE_ARRIVAL, user={"flags": h.MP | JOURNAL_NEGATIVE}))
    link.answer(acknowledgement(1, 0x8003))
    assert fate_in(link).explanation == (
        f"the queue manager at {RECEIVER} answered MQMSG_CLASS_NACK_Q_EXCEED_QUOTA: the queue is full; "
        "its sender was asked to put it into the dead-letter queue"
    )


def test_an_acknowledgement_of_arrival_that_does_not_come() -> None:
    link = Link().send(message(1, acks=POSITIVE_ARRIVAL))
    link.answer(session_ack(ack=1))
    fate = fate_in(link)
    assert (fate.state, fate.stuck, fate.missing) == (State.RECEIVED, False, "arrival acknowledgement")
    assert "the acknowledgement of arrival that it asks for did not come" in fate.explanation


def test_the_time_that_a_message_had() -> None:
    sent_time = c.START_NS // 1_000_000_000 - 60
    late = message(1, user={"sent_time": sent_time, "time_to_be_received": 30})
    assert fate_in(Link().send(late)).explanation.endswith("its time to be received, 30 s, was over by then")
    in_time = message(1, user={"sent_time": sent_time, "time_to_be_received": 90})
    assert "over by then" not in fate_in(Link().send(in_time)).explanation
    link = Link().send(message(1, user={"sent_time": sent_time}, time_to_reach_queue=5))
    assert fate_in(link).explanation.endswith("its time to reach its queue, 5 s, was over by then")
    link.answer(session_ack(ack=1))  # it may have got there in time
    assert "over by then" not in fate_in(link).explanation


def test_only_the_acknowledgement_is_in_the_capture() -> None:
    link = Link().answer(acknowledgement(1, 0x4000))
    fate = fate_in(link)
    assert (fate.state, fate.reason, fate.sent_ns, fate.label) == (State.UNKNOWN, "", None, None)
    assert fate.explanation == (
        f"the message itself is not in the capture; {RECEIVER} says MQMSG_CLASS_ACK_RECEIVE of it"
    )


def test_messages_that_acknowledge_have_fates_on_request() -> None:
    link = Link().send(message(1, acks=POSITIVE_RECEIVE))
    link.answer(acknowledgement(1, 0x4000))
    fates = fates_in(link, acknowledgements=True)
    assert [fate.message_class for fate in fates] == ["NORMAL", "ACK_RECEIVE"]
    assert fates[1].identity == f"{RECEIVER_QM}\\500"
