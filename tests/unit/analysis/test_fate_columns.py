"""Fates of plain messages, which are judged by column: where that must not differ from one by one."""

from __future__ import annotations

import pytest

from msmqwire.analysis.fate import State
from tests.support import handmade as h
from tests.support.capture.fate_captures import (
    Link,
    fate_in,
    fates_in,
    identity,
    message,
    session_ack,
    told,
)


def test_an_acknowledgement_before_its_message() -> None:
    """A capture that is not in order has it so: the number of the message is known later."""
    link = Link(established=False).send(message(1)).answer(session_ack(ack=2))
    link.send(message(2, session=h.session_header(sent=2)))
    before, behind = fates_in(link)
    assert (told(before), before.state) == (["sent", "received"], State.RECEIVED)
    assert (told(behind), behind.state, behind.latencies) == (["received", "sent"], State.SENT, {})


@pytest.mark.parametrize(("seconds", "is_over"), [(5, True), (1 << 31, False), (h.INFINITE, False)])
def test_the_time_of_a_message_is_over(seconds: int, is_over: bool) -> None:
    link = Link().send(message(1, time_to_reach_queue=seconds, user={"sent_time": 1}))
    assert ("was over by then" in fate_in(link).explanation) is is_over


def test_plain_and_other_messages_are_in_order() -> None:
    link = Link()
    for number in (1, 2, 1, 3):
        link.send(message(number))
    other = Link("10.0.0.7", start_ns=link.time_ns, port=50_001, client_qm=h.SERVER)
    other.send(message(2, source=h.SERVER))
    link.answer(session_ack(ack=2))
    found = fates_in(link, other)
    assert [fate.identity for fate in found][:3] == [identity(number) for number in (1, 2, 3)]
    assert [fate.retransmissions for fate in found] == [1, 0, 0, 0]
    assert [fate.state for fate in found][:3] == [State.RECEIVED, State.RECEIVED, State.SENT]
