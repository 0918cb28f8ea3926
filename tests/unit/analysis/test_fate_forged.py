"""Acknowledgements that nobody on a message's way has sent: told, and not believed."""

from __future__ import annotations

import pytest

from msmqwire.analysis.fate import State
from tests.support import handmade as h
from tests.support.capture.fate_captures import (
    NEGATIVE_ARRIVAL,
    POSITIVE_ARRIVAL,
    POSITIVE_RECEIVE,
    RECEIVER,
    SENDER,
    THIRD,
    Link,
    acknowledgement,
    fate_in,
    fates_in,
    final_ack,
    message,
    order_ack,
    session_ack,
    told,
)

OTHER_QM = bytes(range(16))


def sent(acks: int = POSITIVE_RECEIVE, **more: int) -> Link:
    """A message that has arrived at the next queue manager."""
    link = Link().send(message(1, acks=acks, **more))
    link.answer(session_ack(ack=1))
    return link


def from_third(after: Link, data: bytes, *, qm: bytes = OTHER_QM) -> Link:
    """Somebody else sends to the sender."""
    return Link(THIRD, SENDER, client_qm=qm, server_qm=h.CLIENT, start_ns=after.time_ns).send(data)


def test_from_an_address_that_the_message_was_not_sent_to() -> None:
    link = sent()
    fate = fate_in(link, from_third(link, acknowledgement(1, 0x4000, source=OTHER_QM)))
    assert fate.state is State.RECEIVED
    assert "read" not in fate.latencies
    event = fate.events[-1]
    assert (event.what, event.message_class, event.src) == ("acknowledgement", "ACK_RECEIVE", THIRD)
    assert event.doubt == f"it comes from {THIRD}, which the message was not sent to"
    assert fate.explanation.endswith(f"not believed: MQMSG_CLASS_ACK_RECEIVE, as {event.doubt}")


def test_under_the_guid_of_the_receiver_from_elsewhere() -> None:
    link = sent()
    fate = fate_in(link, from_third(link, acknowledgement(1, 0x4000), qm=h.SERVER))
    assert fate.state is State.RECEIVED
    assert fate.events[-1].doubt == f"it comes from {THIRD}, and its queue manager is at {RECEIVER}"


def test_the_identity_of_a_believed_one_with_another_class() -> None:
    link = sent(POSITIVE_ARRIVAL | POSITIVE_RECEIVE)
    link.answer(acknowledgement(1, 0x0002, by=500))
    fate = fate_in(link, from_third(link, acknowledgement(1, 0x4000, by=500), qm=h.SERVER))
    assert fate.state is State.DELIVERED


def test_one_that_is_passed_on_is_believed_everywhere() -> None:
    link = sent()
    link.answer(acknowledgement(1, 0x4000))
    fate = fate_in(link, from_third(link, acknowledgement(1, 0x4000)))
    assert fate.state is State.READ
    assert [event.doubt for event in fate.events] == [""] * 4


@pytest.mark.parametrize(
    ("acks", "message_class"), [(POSITIVE_ARRIVAL, 0x4000), (POSITIVE_RECEIVE, 0x0002), (3, 0x8003)]
)
def test_what_was_not_asked_for(acks: int, message_class: int) -> None:
    link = sent(acks)
    link.answer(acknowledgement(1, message_class))
    fate = fate_in(link)
    assert fate.state is State.RECEIVED
    assert fate.events[-1].doubt == "the message did not ask for it"


def test_of_a_message_without_an_administration_queue() -> None:
    link = sent(0)
    link.answer(acknowledgement(1, 0x4000))
    assert fate_in(link).events[-1].doubt == "the message has no administration queue"


def test_the_sender_itself_says_only_that_it_gives_up() -> None:
    admin = {"admin": (7, h.direct_name(f"TCP:{THIRD}\\private$\\admin"))}
    for message_class, state in ((0x8002, State.EXPIRED), (0x4000, State.SENT)):
        link = Link().send(message(1, acks=NEGATIVE_ARRIVAL | POSITIVE_RECEIVE, user=admin))
        told_by = acknowledgement(1, message_class, source=h.CLIENT)
        own = Link(SENDER, THIRD, server_qm=OTHER_QM, start_ns=link.time_ns).send(told_by)
        assert fate_in(link, own).state is state


@pytest.mark.parametrize("forged", [order_ack(1), final_ack(1, 1, 0x4000)])
def test_acknowledgements_of_transactions(forged: bytes) -> None:
    link = sent(transaction=1)
    fate = fate_in(link, from_third(link, forged, qm=h.SERVER))
    assert fate.state is State.RECEIVED
    assert fate.events[-1].doubt
    plain = sent()
    plain.answer(final_ack(1, 1, 0x4000))
    assert fate_in(plain).events[-1].doubt == "the message is not transactional"


def test_a_forged_order_ack_leaves_room_for_the_true_one() -> None:
    link = Link()
    for number in range(1, 60):
        link.send(message(number, transaction=number))
    forged = from_third(link, order_ack(59, source=OTHER_QM))
    link.wait(forged.time_ns - link.time_ns + 1)
    link.answer(order_ack(59))
    fates = fates_in(link, forged)
    assert {fate.state for fate in fates} == {State.DELIVERED}
    assert sum(any(event.doubt for event in fate.events) for fate in fates) == 32


def test_session_acks_of_another_connection_have_no_effect() -> None:
    link = Link().send(message(1))
    other = Link(THIRD, RECEIVER, client_qm=OTHER_QM, port=50_001, start_ns=link.time_ns)
    other.answer(session_ack(ack=9))
    assert told(fate_in(link, other)) == ["sent", "unacknowledged"]
