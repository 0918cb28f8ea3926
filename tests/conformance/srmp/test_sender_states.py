"""The states of messages at their sender: figures 3 and 6, [MC-MQSRM] 3.1.1.1.2.1 and 3.1.1.1.2.4."""

from __future__ import annotations

import pytest

from msmqwire.qm.model.enumerations import ConnectionStatus, DeliveryGuarantee, OutgoingQueueState
from msmqwire.qm.model.message import NO_SEQUENCE
from msmqwire.qm.protocols.srmp.on_demand import srmp_of
from msmqwire.qm.protocols.srmp.states import MESSAGES, SrmpMessageEvent, SrmpMessageState
from msmqwire.qm.protocols.srmp.timers import SrmpTimer
from msmqwire.qm.protocols.srmp.transfer import OutgoingMessage
from tests.support.srmp.srmp_harness import THERE, SrmpHarness
from tests.support.srmp.srmp_requests import SrmpPeer, date

S, E = SrmpMessageState, SrmpMessageEvent
KINDS = ("express", "recoverable", "stream")
TABLES = {"express": "Regular or durable", "recoverable": "Regular or durable", "stream": "Stream"}
RETRY_MS = 20_000

FIGURE_3 = {
    (S.PREPARE_TO_SEND, E.SENT): S.WAIT_FOR_RESPONSE,
    (S.PREPARE_TO_SEND, E.EXPIRED): S.DONE,
    (S.WAIT_FOR_RESPONSE, E.FAILED): S.WAIT_FOR_RETRANSMISSION,
    (S.WAIT_FOR_RESPONSE, E.REFUSED): S.DONE,
    (S.WAIT_FOR_RESPONSE, E.ACCEPTED): S.DONE,
    (S.WAIT_FOR_RETRANSMISSION, E.RETRANSMISSION_TIMER): S.PREPARE_TO_SEND,
}
FIGURE_6 = FIGURE_3 | {
    (S.WAIT_FOR_RESPONSE, E.ACCEPTED): S.WAIT_FOR_STREAM_RECEIPT,
    (S.WAIT_FOR_STREAM_RECEIPT, E.EXPIRED): S.DONE,
    (S.WAIT_FOR_STREAM_RECEIPT, E.STREAM_RECEIPT): S.DONE,
    (S.WAIT_FOR_STREAM_RECEIPT, E.STREAM_RECEIPT_FINAL_AWAITED): S.WAIT_FOR_FINAL_RECEIPT,
    (S.WAIT_FOR_FINAL_RECEIPT, E.FINAL_RECEIPT): S.DONE,
    (S.WAIT_FOR_FINAL_RECEIPT, E.EXPIRED): S.DONE,
}
BESIDE_THE_FIGURES = {
    "Regular or durable": {(S.WAIT_FOR_RETRANSMISSION, E.EXPIRED)},
    "Stream": {
        (S.WAIT_FOR_RETRANSMISSION, E.EXPIRED),
        (S.WAIT_FOR_STREAM_RECEIPT, E.STREAM_RECEIPT_WAIT_TIMER),
        *(
            (state, event)
            for state in (S.PREPARE_TO_SEND, S.WAIT_FOR_RESPONSE, S.WAIT_FOR_RETRANSMISSION)
            for event in (E.STREAM_RECEIPT, E.STREAM_RECEIPT_FINAL_AWAITED, E.FINAL_RECEIPT)
        ),
        (S.WAIT_FOR_STREAM_RECEIPT, E.FINAL_RECEIPT),
    },
}
"""Late receipts, the timer of 3.1.6.2, and expiry as soon as it happens."""


def rows(kind: str, *numbers: str) -> pytest.MarkDecorator:
    figure = "4" if kind == "stream" else "1"
    return pytest.mark.requirement(*(f"SRMP-3.1.1.1.2.{figure}-{number}" for number in numbers))


def each(nonstream: str, stream: str | None = None) -> pytest.MarkDecorator:
    """The kinds of messages with the rows of their figures; no stream message without a row."""
    numbers = {"express": nonstream, "recoverable": nonstream} | ({"stream": stream} if stream else {})
    return pytest.mark.parametrize(
        "kind", [pytest.param(kind, marks=rows(kind, *its.split())) for kind, its in numbers.items()]
    )


def send_message(
    harness: SrmpHarness, kind: str, body: bytes = b"m", **attributes: object
) -> OutgoingMessage:
    """Send a message of a kind; return its transfer."""
    if kind == "stream":
        harness.send(body, transactional=True, **attributes)
    else:
        harness.send(body, delivery_guarantee=DeliveryGuarantee[kind.upper()], **attributes)
    return list(harness.outgoing_transfer().messages.values())[-1]


def dead(kind: str) -> str:
    return "dead transactional" if kind == "stream" else "dead"


@pytest.mark.parametrize("kind", MESSAGES)
def test_the_tables_are_the_figures_and_what_is_said_beside_them(kind):
    table, figure = MESSAGES[kind], FIGURE_6 if kind == "Stream" else FIGURE_3
    assert {arrow: table[arrow] for arrow in figure} == figure
    others = table.keys() - figure.keys()
    given_up = {(state, event) for state, event in others if event is E.GIVEN_UP}
    assert others - given_up == BESIDE_THE_FIGURES[kind]
    assert {table[arrow] for arrow in given_up} == {S.DONE}
    assert {state for state, _ in given_up} == {state for state, _ in table}
    assert not [state for state, _ in table if state is S.DONE]


@each("01 02", "01")
def test_a_message_is_sent_and_waits_for_the_response(kind):
    harness = SrmpHarness()
    harness.core.queues.take_offline()
    outgoing = send_message(harness, kind)
    assert (outgoing.state, harness.take()) == (S.PREPARE_TO_SEND, [])
    harness.core.queues.bring_online()
    harness.advance(RETRY_MS)
    assert outgoing.state is S.WAIT_FOR_RESPONSE
    sent = harness.take_one()
    assert (sent.url, sent.body) == ("http://there/msmq/private$/orders", b"m")
    assert harness.where() == {"outgoing": [b"m"]}


@pytest.mark.parametrize("wanted", [False, True])
@each("03 10 11", "02 12")
@pytest.mark.requirement("SRMP-3.1.7.2.1-01", "SRMP-3.1.7.2.1-02", "SRMP-3.1.7.2.1-03", "SRMP-3.1.5.2.1-01")
def test_a_message_that_expires_before_it_is_sent_is_never_sent(kind, wanted):
    harness = SrmpHarness()
    harness.core.queue_manager.connection_active = False
    outgoing = send_message(harness, kind, time_to_reach_queue=30, negative_journaling_requested=wanted)
    harness.advance(30_000)
    assert (outgoing.state, harness.where()) == (S.PREPARE_TO_SEND, {"outgoing": [b"m"]})  # equal is in time
    harness.core.queue_manager.connection_active = True
    harness.advance(1_000)
    assert outgoing.state is S.DONE
    assert harness.take() == []
    assert harness.where() == ({dead(kind): [b"m"]} if wanted else {})
    assert [key.reason for key in harness.core.context.refusals.kept] == ["REACH_QUEUE_TIMEOUT"]


@each("04 05 09", "03")
@pytest.mark.requirement("SRMP-3.1.2.1-01", "SRMP-3.1.2.1-02", "SRMP-3.1.7.2.5-01", "SRMP-3.1.1.3-01")
@pytest.mark.requirement("SRMP-2.2.5.1.2-02")
def test_a_message_without_an_answer_or_with_5xx_is_resent_as_is(kind):
    harness = SrmpHarness()
    outgoing = send_message(harness, kind)
    sent_at, first = date(harness.utc), harness.take_one()
    assert first["properties/sentAt"] == sent_at
    harness.advance(RETRY_MS + 1)  # the transport says when a response is late, and nobody else
    assert harness.take() == []
    for give in (harness.fail, *(lambda status=status: harness.answer(status) for status in (500, 503, 599))):
        give()
        assert outgoing.state is S.WAIT_FOR_RETRANSMISSION
        assert harness.where() == {"outgoing": [b"m"]}
        left = harness.time_left(SrmpTimer.RETRANSMISSION, harness.outgoing().number)
        assert 0 < left <= RETRY_MS
        harness.advance(left - 1)
        assert harness.take() == []
        harness.advance(1)
        again = harness.take_one()
        assert (again["properties/sentAt"], again.data) == (sent_at, first.data)
        assert outgoing.state is S.WAIT_FOR_RESPONSE


@each("03 09", "02 03")
@pytest.mark.requirement("SRMP-3.1.7.2.1-02")
def test_expiry_is_checked_at_each_transmission(kind):
    harness = SrmpHarness()
    outgoing = send_message(harness, kind, time_to_reach_queue=10, negative_journaling_requested=True)
    harness.advance(5_000)
    harness.answer(500)
    assert outgoing.state is S.WAIT_FOR_RETRANSMISSION
    harness.advance(5_999)
    assert outgoing.state is S.WAIT_FOR_RETRANSMISSION
    harness.advance(1)
    assert (outgoing.state, harness.where()) == (S.DONE, {dead(kind): [b"m"]})
    harness.advance(60_000)
    assert len(harness.sent) == 1


@pytest.mark.parametrize("wanted", [False, True])
@each("06 10 11", "04 12")
@pytest.mark.requirement("SRMP-3.1.7.2.5-05")
def test_a_message_that_is_refused_is_not_sent_again(kind, wanted):
    harness = SrmpHarness()
    outgoing = send_message(harness, kind, negative_journaling_requested=wanted)
    srmp_of(harness.core).reached(harness.sent[-1].number)
    harness.advance(1_000)
    harness.answer(400)
    assert outgoing.state is S.DONE
    assert harness.where() == ({dead(kind): [b"m"]} if wanted else {})
    assert harness.time_left(SrmpTimer.SESSION_CLEANUP, harness.outgoing().number) == 300_000
    harness.advance(600_000)
    assert len(harness.sent) == 1


@pytest.mark.parametrize("wanted", [False, True])
@each("07 08")
@pytest.mark.requirement("SRMP-3.1.7.2.5-02", "SRMP-3.1.7.2.5-04", "SRMP-3.1.5.2.2-01")
def test_a_message_that_is_accepted_is_deleted_or_journaled(kind, wanted):
    harness = SrmpHarness()
    outgoing = send_message(
        harness, kind, positive_journaling_requested=wanted, negative_journaling_requested=True
    )
    harness.advance(1_000)
    harness.answer(200)
    assert outgoing.state is S.DONE
    assert harness.where() == ({"journal": [b"m"]} if wanted else {})
    assert harness.time_left(SrmpTimer.SESSION_CLEANUP, harness.outgoing().number) == 300_000


@pytest.mark.requirement("SRMP-3.1.7.2.5-04")
def test_each_response_starts_the_session_cleanup_timer_anew():
    harness = SrmpHarness(answers=lambda _: 200)
    harness.send()
    harness.advance(299_999)
    harness.send()
    number = harness.outgoing().number
    assert harness.time_left(SrmpTimer.SESSION_CLEANUP, number) == 300_000
    assert harness.outgoing().state is OutgoingQueueState.CONNECTED


@pytest.mark.requirement("SRMP-3.1.6.4-01", "SRMP-3.1.2.4-01", "SRMP-3.1.7.7-06", "SRMP-3.1.7.9-06")
def test_an_idle_queue_disconnects_and_reconnects_to_send():
    harness = SrmpHarness(answers=lambda _: 200)
    harness.send()
    harness.advance(300_000)
    assert harness.outgoing().state is OutgoingQueueState.DISCONNECTED
    harness.send()
    assert (len(harness.sent), harness.outgoing().state) == (2, OutgoingQueueState.CONNECTED)


@pytest.mark.requirement("SRMP-3.1.2.4-01")
def test_the_time_of_an_idle_session_can_be_set():
    harness = SrmpHarness(answers=lambda _: 200, session_cleanup_ms=7_000)
    other = "DIRECT=HTTP://there/msmq/private$/other"
    harness.send()
    harness.advance(3_000)
    harness.send(to=other)  # each session has a timer of its own
    harness.advance(3_999)
    assert harness.outgoing().state is OutgoingQueueState.CONNECTED
    harness.advance(1)
    assert harness.outgoing().state is OutgoingQueueState.DISCONNECTED
    assert harness.outgoing(other).state is OutgoingQueueState.CONNECTED
    harness.advance(3_000)
    assert harness.outgoing(other).state is OutgoingQueueState.DISCONNECTED


@pytest.mark.requirement("SRMP-3.1.7.2.1-01", "SRMP-3.1.7.2.1-02")
@pytest.mark.parametrize(("age", "sent"), [(30, True), (31, False)])
def test_a_message_as_old_as_its_limit_is_sent(age, sent):
    """Greater is too late; the clock is set here, so that no timer finds that out before."""
    harness = SrmpHarness()
    harness.core.queue_manager.connection_active = False
    harness.send(b"m", time_to_reach_queue=30)
    harness.utc_start += age
    harness.run()
    harness.core.queue_manager.connection_active = True
    harness.core.queues.pause(harness.outgoing())
    harness.core.queues.resume(harness.outgoing())
    assert [request.body for request in harness.take()] == [b"m"] * sent
    assert harness.where() == ({"outgoing": [b"m"]} if sent else {})


@pytest.mark.requirement("SRMP-3.1.7.2-01")
def test_an_expired_message_takes_no_number():
    harness = SrmpHarness()
    harness.core.queue_manager.connection_active = False
    harness.send(b"1", transactional=True, time_to_reach_queue=5)
    harness.send(b"2", transactional=True)
    harness.utc_start += 6  # the clock is set: no timer has found out that the message is late
    harness.run()
    harness.core.queue_manager.connection_active = True
    harness.core.queues.pause(harness.outgoing())
    harness.core.queues.resume(harness.outgoing())
    sent = harness.take_one()
    assert sent.body == b"2"
    assert (int(sent.stream[0].partition("\\")[2]) & 0xFFFFFFFF, *sent.stream[1:3]) == (1, 1, None)


@pytest.mark.requirement("SRMP-3.1.7.2.5-07")
@pytest.mark.parametrize(
    ("status", "fate"),
    [
        *((status, "accepted") for status in (201, 202, 204, 299)),
        *((status, "refused") for status in (401, 403, 404, 405, 413, 499)),
        *((status, "again") for status in (100, 300, 301, 302, 307, 408, 425, 429, 500, 502, 503, 999)),
    ],
)
def test_other_status_codes(status, fate):
    harness = SrmpHarness()
    harness.send(b"m", positive_journaling_requested=True, negative_journaling_requested=True)
    harness.answer(status)
    where = {"accepted": "journal", "refused": "dead", "again": "outgoing"}[fate]
    assert harness.where() == {where: [b"m"]}
    harness.advance(RETRY_MS)
    assert len(harness.sent) == (2 if fate == "again" else 1)


@pytest.mark.requirement("SRMP-3.1.7.2.5-07")
def test_which_4xx_are_tried_again_can_be_set():
    harness = SrmpHarness(retry_statuses=(404,))
    harness.send(b"m")
    harness.answer(404)
    assert harness.where() == {"outgoing": [b"m"]}
    harness.advance(RETRY_MS)
    harness.answer(429)
    assert harness.where() == {}


@pytest.mark.requirement("SRMP-3.1.7.2.5-06")
@pytest.mark.requirement("SRMP-3.1.7.7-02")
def test_a_failure_stops_its_queue_until_the_timer_fires():
    harness = SrmpHarness()
    harness.send(b"1", b"2", transactional=True)
    harness.answer(200)
    number = harness.outgoing().number
    assert harness.time_left(SrmpTimer.STREAM_RECEIPT_WAIT, number) == 30_000
    harness.send(b"3")
    harness.answer(500)
    assert harness.time_left(SrmpTimer.STREAM_RECEIPT_WAIT, number) is None
    assert harness.outgoing().state is OutgoingQueueState.INACTIVE
    assert len(harness.core.dispatch) == 0
    assert harness.outgoing().connection_history[-1].status is ConnectionStatus.SOCKET_CONNECT_FAILURE
    harness.send(b"4")
    harness.take()
    harness.advance(RETRY_MS - 1)
    assert harness.take() == []
    harness.answers = lambda _: 200
    harness.advance(1)
    assert [sent.body for sent in harness.take()] == [b"2", b"3", b"4"]
    assert harness.time_left(SrmpTimer.STREAM_RECEIPT_WAIT, number) == 30_000
    assert harness.outgoing().connection_history[-1].status is ConnectionStatus.ESTABLISHED


@rows("stream", "05")
@pytest.mark.requirement("SRMP-3.1.7.2.5-03")
@pytest.mark.parametrize("status", [200, 202])
def test_an_accepted_stream_message_waits_for_its_receipt(status):
    harness = SrmpHarness()
    outgoing = send_message(harness, "stream", positive_journaling_requested=True)
    harness.answer(status)
    assert (outgoing.state, harness.where()) == (S.WAIT_FOR_STREAM_RECEIPT, {"outgoing": [b"m"]})


@pytest.mark.parametrize("journal", [False, True])
@rows("stream", "05", "07")
@pytest.mark.requirement(
    "SRMP-3.1.5.1.8.3-01", "SRMP-3.1.5.1.8.4-01", "SRMP-3.1.5.2.2-01", "SRMP-3.1.1.3.2-07"
)
@pytest.mark.requirement("SRMP-2.2.5.6-04")
@pytest.mark.requirement("SRMP-3.1.1.3-01", "SRMP-3.1.7.2.3-13")
def test_a_stream_receipt_ends_a_message_that_is_journaled_once(journal):
    harness = SrmpHarness()
    outgoing = send_message(harness, "stream", positive_journaling_requested=journal)
    harness.answer(200)
    peer = SrmpPeer(harness)
    assert peer.stream_receipt(harness.sent[0].stream[0], 1) == 200
    assert (outgoing.state, harness.where()) == (S.DONE, {"journal": [b"m"]} if journal else {})


@pytest.mark.parametrize(
    ("message_class", "decision", "where"),
    [
        pytest.param(0x4000, "positive", {}, marks=rows("stream", "09")),
        pytest.param(0x8001, "negative", "dead transactional", marks=rows("stream", "10")),
        pytest.param(0xC000, "negative", "dead transactional", marks=rows("stream", "10")),
        pytest.param(0xC001, "negative", "dead transactional", marks=rows("stream", "10")),
        pytest.param(0xC002, "negative", "dead transactional", marks=rows("stream", "10")),
    ],
)
@rows("stream", "08")
@pytest.mark.requirement(
    "SRMP-3.1.5.1.8.3-03", "SRMP-3.1.5.1.9.1-04", "SRMP-3.1.5.1.9.3-01", "SRMP-3.1.5.2.1.2-01",
    "SRMP-3.1.5.2.1.2-03", "SRMP-3.1.7.2.3-13",
)  # fmt: skip
@pytest.mark.requirement("SRMP-2.2.5.6-04")
def test_a_dead_letter_message_waits_for_its_final_receipt(message_class, decision, where):
    harness = SrmpHarness()
    outgoing = send_message(harness, "stream", negative_journaling_requested=True)
    harness.answer(200)
    peer, stream_id = SrmpPeer(harness), harness.sent[0].stream[0]
    peer.stream_receipt(stream_id, 1)
    assert (outgoing.state, harness.where()) == (S.WAIT_FOR_FINAL_RECEIPT, {"outgoing": [b"m"]})
    assert peer.final_receipt(stream_id, 1, message_class, decision) == 200
    assert outgoing.state is S.DONE
    assert harness.where() == ({where: [b"m"]} if where else {})
    assert harness.rows_of_streams() == {}


@pytest.mark.parametrize("wanted", [False, True])
@rows("stream", "06", "12")
@pytest.mark.requirement("SRMP-3.1.7.2.1-04")
def test_a_stream_message_that_expires_before_its_receipt(wanted):
    harness = SrmpHarness()
    outgoing = send_message(harness, "stream", time_to_reach_queue=10, negative_journaling_requested=wanted)
    harness.answer(200)
    harness.advance(10_999)
    assert outgoing.state is S.WAIT_FOR_STREAM_RECEIPT
    harness.advance(1)
    assert outgoing.state is S.DONE
    assert harness.where() == ({"dead transactional": [b"m"]} if wanted else {})
    assert harness.rows_of_streams() == {}


@rows("stream", "11")
@pytest.mark.parametrize("answered", ["before", "after"])
def test_a_stream_message_that_expires_is_dead_lettered(answered):
    """Its time may be over while the response is awaited, which decides nothing then."""
    harness = SrmpHarness()
    outgoing = send_message(harness, "stream", time_to_reach_queue=10, negative_journaling_requested=True)
    if answered == "after":
        harness.advance(20_000)
        assert outgoing.state is S.WAIT_FOR_RESPONSE
    else:
        harness.answer(200)
    SrmpPeer(harness).stream_receipt(harness.sent[0].stream[0], 1)
    if answered == "after":
        harness.answer(200)
    else:
        assert outgoing.state is S.WAIT_FOR_FINAL_RECEIPT
        harness.advance(11_000)
    assert (outgoing.state, harness.where()) == (S.DONE, {"dead transactional": [b"m"]})


@pytest.mark.requirement("SRMP-3.1.5.2.1.2-02")
@pytest.mark.parametrize(
    ("named", "where"),
    [
        ("own", "own"),
        ("plain", "dead transactional"),
        ("missing", "dead transactional"),
        (None, "dead transactional"),
    ],
)
def test_the_applications_dead_letter_queue_is_transactional(named, where):
    """A queue that is not transactional is not used, nor one that is missing."""
    harness = SrmpHarness()
    own = harness.queue("own", transactional=True)
    harness.queue("plain")
    path = f"here\\private$\\{named}" if named else ""
    harness.send(
        b"m", transactional=True, negative_journaling_requested=True, application_deadletter_queue=path
    )
    harness.answer(400)
    expected = {} if where == "own" else {where: [b"m"]}
    assert (harness.where(), [p.message.body for p in own.positions]) == (
        expected, [b"m"] if where == "own" else [],
    )  # fmt: skip


@pytest.mark.requirement("SRMP-3.1.5.2.1.1-02", "SRMP-3.1.1.1.3-02")
def test_the_system_queues_have_the_names_of_format_names():
    harness = SrmpHarness()
    for name in ("JOURNAL", "DEADLETTER", "DEADXACT"):
        assert harness.open(f"DIRECT=OS:here\\SYSTEM$;{name}").queue is not None
    manager = harness.core.queue_manager
    assert not manager.system_deadletter_queue.transactional
    assert manager.system_transactional_deadletter_queue.transactional


@pytest.mark.parametrize("kind", ["stream", "recoverable"])
@pytest.mark.parametrize("pending", [False, True])
def test_a_message_deleted_by_an_administrator_is_not_sent(kind, pending):
    harness = SrmpHarness()
    outgoing = send_message(harness, kind, b"1")
    second = send_message(harness, kind, b"2")
    if not pending:
        harness.answer(500)
    harness.take()
    harness.purge(harness.outgoing())
    assert (outgoing.state, second.state, harness.where()) == (S.DONE, S.DONE, {})
    assert harness.outgoing_transfer(THERE).messages == {}
    if pending:
        harness.answer(200)
    harness.advance(100_000)
    assert harness.take() == []
    third = send_message(harness, kind, b"3")
    assert third.state is S.WAIT_FOR_RESPONSE


@pytest.mark.requirement("SRMP-3.1.1.1.4-01", "SRMP-3.1.1.1.4-02", "SRMP-3.1.7.7-03", "SRMP-3.1.3.2-02")
def test_a_message_is_numbered_when_it_is_sent():
    harness = SrmpHarness(answers=lambda _: 200)
    harness.core.queue_manager.connection_active = False
    harness.send(b"m", transactional=True)
    outgoing, transfer = harness.only_message(), harness.outgoing_transfer()
    assert (outgoing.tx_sequence_number, transfer.unacknowledged, transfer.awaiting_final) == (
        0,
        type(transfer.unacknowledged)(),
        {},
    )
    assert (transfer.stream_id, harness.rows_of_streams()) == (NO_SEQUENCE, {})
    number = harness.outgoing().number
    assert harness.time_left(SrmpTimer.STREAM_RECEIPT_WAIT, number) is None
    harness.core.queue_manager.connection_active = True
    harness.advance(20_000)
    assert harness.time_left(SrmpTimer.STREAM_RECEIPT_WAIT, number) == 30_000
