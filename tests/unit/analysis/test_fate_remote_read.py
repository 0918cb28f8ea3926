"""The fate of messages that are read by remote read."""

from __future__ import annotations

from unittest import mock

import pytest

import msmqwire
from msmqwire.analysis.fate import MessageFate, State
from msmqwire.remote_read.constants import Opnum
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.fate_captures import Link, capture, fates_in, message, session_ack, told
from tests.support.capture.rpc_captures import Talk, end_arguments, receive_arguments, received

READ = message(7)
ORDERS = "DIRECT=OS:server\\private$\\orders"


def reader(queue: str = ORDERS, *, ack: int | None = 2, status: int = 0, **asked: int) -> Talk:
    """A reader that is handed the message, and accepts it or gives it back."""
    talk = Talk()
    talk.open(queue)
    talk.receive(READ, **asked)
    if ack is not None:
        talk.call(Opnum.R_EndReceive, end_arguments(dwAck=ack), {"status": status})
    return talk


def fate_by(talk: Talk, *links: c.TcpConversation) -> MessageFate:
    (fate,) = fates_in(talk.conversation, *links)
    return fate


def test_a_message_that_is_read() -> None:
    fate = fate_by(reader())
    assert (fate.label, fate.transport, fate.sent_ns) == ("order 7", "remote read", None)
    assert (fate.state, told(fate)) == (State.READ, ["handed out", "taken"])
    assert fate.events[0].detail == "DIRECT=OS:server\\PRIVATE$\\orders"
    assert fate.explanation == (
        f"{c.CLIENT} has received it by remote read from DIRECT=OS:server\\PRIVATE$\\orders"
    )


@pytest.mark.parametrize(
    ("talk", "events", "words"),
    [
        (reader(ack=1), ["handed out", "given back"], "and gave it back"),
        (reader(ack=None), ["handed out"], "who has not accepted it in the capture"),
        (reader(status=0xC00E0007), ["handed out"], "who has not accepted it in the capture"),
        (reader(ack=None, ulAction=0x80000000), ["peeked"], "it is in its queue"),
    ],
)
def test_a_message_that_stays_in_its_queue(talk: Talk, events: list[str], words: str) -> None:
    fate = fate_by(talk)
    assert (fate.state, told(fate)) == (State.DELIVERED, events)
    assert words in fate.explanation


def test_the_end_of_another_receive_says_nothing() -> None:
    talk = reader(ack=None)
    talk.call(Opnum.R_EndReceive, end_arguments(dwRequestId=2), {"status": 0})
    assert told(fate_by(talk)) == ["handed out"]


def test_in_a_transaction_whose_outcome_is_not_seen() -> None:
    talk = Talk()
    talk.open()
    arguments = receive_arguments() | {"pTransactionId": {"rgb": bytes(range(16))}}
    talk.call(Opnum.R_StartTransactionalReceive, arguments, received(READ))
    talk.call(Opnum.R_EndTransactionalReceive, end_arguments(), {"status": 0})
    fate = fate_by(talk)
    assert (fate.state, told(fate)) == (State.DELIVERED, ["handed out", "taken in a transaction"])
    assert "in a transaction whose outcome is not seen" in fate.explanation


def test_from_the_dead_letter_queue() -> None:
    fate = fate_by(reader("DIRECT=OS:server\\SYSTEM$;DEADLETTER"))
    assert (fate.state, fate.reason) == (State.DEAD_LETTERED, "")
    assert fate.explanation.startswith("it is in a dead-letter queue, DIRECT=OS:server\\SYSTEM$;DEADLETTER")


def test_from_a_journal_says_nothing_of_the_message() -> None:
    link = Link(c.CLIENT, c.SERVER, start_ns=c.START_NS - 1_000_000_000).send(READ)
    link.answer(session_ack(ack=1))
    fate = fate_by(reader(f"{ORDERS};JOURNAL"), link)
    assert fate.state is State.RECEIVED


def test_sent_and_read() -> None:
    """The latency counts from when it was sent to when it was taken."""
    link = Link(c.CLIENT, c.SERVER, start_ns=c.START_NS - 1_000_000_000)
    sent_ns = link.time_ns
    link.send(READ)
    link.answer(session_ack(ack=1))
    fate = fate_by(reader(), link)
    assert fate.state is State.READ
    assert fate.sent_ns == sent_ns
    assert fate.latencies["read"] == fate.events[-1].time_ns - sent_ns > 1_000_000_000


def test_by_a_server_that_is_not_at_the_address_of_the_queue() -> None:
    direct = {"destination": (7, h.direct_name("TCP:10.0.0.77\\private$\\orders")), "address": h.NULL_GUID}
    link = Link("10.0.0.5", "10.0.0.77", start_ns=c.START_NS - 1_000_000_000).send(message(7, user=direct))
    link.answer(session_ack(ack=1))
    fate = fate_by(reader(), link)
    assert fate.state is State.RECEIVED
    assert fate.events[-1].doubt == f"{c.SERVER} is not where the message was sent to"


@pytest.mark.parametrize(
    ("ack", "wait_ns", "state", "words"),
    [
        (
            2,
            500_000_000,
            State.READ,
            "has received it by remote read from DIRECT=OS:server\\PRIVATE$\\orders;",
        ),
        (1, 2_000_000_000, State.DELIVERED, "was handed it, and gave it back;"),
    ],
)
def test_another_queue_manager_that_hands_it_out_changes_nothing(
    ack: int, wait_ns: int, state: State, words: str
) -> None:
    direct = {
        "destination": (7, h.direct_name(f"TCP:{c.SERVER}\\private$\\orders")), "address": h.NULL_GUID
    }  # fmt: skip
    link = Link("10.0.0.5", c.SERVER, start_ns=c.START_NS - 1_000_000_000).send(message(7, user=direct))
    link.answer(session_ack(ack=1))
    talk = reader(ack=None)
    talk.conversation.wait(1_000_000_000)
    talk.call(Opnum.R_EndReceive, end_arguments(dwAck=ack), {"status": 0})
    with mock.patch.object(c, "SERVER", "10.0.0.88"), mock.patch.object(c, "CLIENT", "10.0.0.89"):
        other = Talk()
        other.open(f"{ORDERS};JOURNAL")
        other.conversation.wait(wait_ns)
        other.receive(READ)
    fate = fate_by(talk, link, other.conversation)
    doubts = [event.doubt for event in fate.events if event.doubt]
    assert (fate.state, doubts) == (state, ["10.0.0.88 is not where the message was sent to"])
    assert f"{c.CLIENT} {words}" in fate.explanation


def test_the_columns_of_calls() -> None:
    names = [
        "kind",
        "queue_handle",
        "read_queue",
        "request_id",
        "receive_action",
        "receive_ack",
        "call_status",
    ]
    rows = msmqwire.read_capture([capture(reader().conversation)], columns=names).to_pylist()
    handle, queue = f"00000000{7:032x}", "DIRECT=OS:server\\PRIVATE$\\orders"
    assert [tuple(row.values()) for row in rows if row["kind"].startswith(("R_Start", "R_End"))] == [
        ("R_StartReceive request", handle, queue, 1, 0, None, None),
        ("R_StartReceive response", handle, queue, 1, 0, None, 0),
        ("R_EndReceive request", handle, queue, 1, None, 2, None),
        ("R_EndReceive response", handle, queue, 1, None, 2, 0),
    ]
