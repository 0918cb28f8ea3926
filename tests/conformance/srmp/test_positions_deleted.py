"""Received messages that leave their queue: figures 5 and 8, [MC-MQSRM] 3.1.1.1.2.3, .6 and 3.1.7.3."""

from __future__ import annotations

import pytest

from msmqwire.constants import MessageClass
from msmqwire.qm.model.elements import Queue
from tests.support.engine_harness import OWN_ID, PEER_ID, START_UTC
from tests.support.qm.queue_contents import bodies
from tests.support.srmp.srmp_harness import SentRequest, SrmpHarness
from tests.support.srmp.srmp_requests import ADMIN, ORDINAL, RECEIPTS, SrmpPeer, date

C = MessageClass
OK = 200
RECEIVED = C.MQMSG_CLASS_ACK_RECEIVE
DEADLETTERED = [
    C.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT, C.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT, C.MQMSG_CLASS_NACK_DELETED,
    C.MQMSG_CLASS_NACK_Q_PURGED,
]  # fmt: skip
NOT_DEADLETTERED = [C.MQMSG_CLASS_NACK_Q_DELETED, C.MQMSG_CLASS_NACK_RECEIVE_REJECTED]
RECEIPTED = {
    RECEIVED: "positive",
    C.MQMSG_CLASS_NACK_DELETED: "negative",
    C.MQMSG_CLASS_NACK_Q_DELETED: "negative",
    C.MQMSG_CLASS_NACK_Q_PURGED: "negative",
    C.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT: "negative",
    C.MQMSG_CLASS_NACK_RECEIVE_REJECTED: "negative",
}


def commitment(*wanted: str) -> str:
    inner = "".join(f"<{which}Only/>" for which in wanted)
    return f"<commitmentReceiptRequest><sendTo>{ADMIN}</sendTo>{inner}</commitmentReceiptRequest>"


def received(
    *, stream: bool = False, services: str = "", dead_letter: bool = False, **attributes: object
) -> tuple[SrmpHarness, Queue]:
    """A queue manager with a queue in which a message has arrived, and whose receipts are accepted."""
    harness = SrmpHarness(answers=lambda _: OK)
    queue, peer = harness.queue("orders", transactional=stream), SrmpPeer(harness)
    extra = [peer.stream(1)] if stream else []
    msmq = "<DeadLetter/>" if dead_letter else ""
    assert peer.send(b"m", *extra, number=7, services=services, msmq=msmq, **attributes) == OK
    assert bodies(queue) == [b"m"]
    if stream:
        harness.advance(500)
        assert "streamReceipt" in harness.take_one()
    return harness, queue


def leave(harness: SrmpHarness, queue: Queue, reason: MessageClass) -> list[SentRequest]:
    """Let the message leave its queue; return what is sent then."""
    harness.delete_message(queue.positions.head, reason)
    return harness.take()


def read(harness: SrmpHarness, queue: Queue) -> list[SentRequest]:
    assert harness.receive(queue) == b"m"
    return harness.take()


@pytest.mark.requirement(
    "SRMP-3.1.1.1.2.3-01", "SRMP-3.1.1.3.4-02", "SRMP-3.1.7.3.1-01", "SRMP-3.1.1.1.2.6-01", "SRMP-3.1.7.3-01"
)
@pytest.mark.parametrize("kind", ["regular", "durable", "stream"])
@pytest.mark.parametrize("wanted", [("positive",), ("positive", "negative"), ("negative", "positive")])
@pytest.mark.requirement("SRMP-2.2.5.2.3-07", "SRMP-2.2.5.2.3-10", "SRMP-2.2.5.5-02", "SRMP-2.2.5.5-06")
@pytest.mark.requirement("SRMP-2.2.5.5-03")
def test_a_received_message_sends_a_requested_commitment_receipt(kind, wanted):
    stream, durable = kind == "stream", "<durable/>" if kind == "durable" else ""
    harness, queue = received(stream=stream, services=durable + commitment(*wanted), dead_letter=not stream)
    harness.advance(5_000)
    decided = harness.utc
    (sent,) = read(harness, queue)
    to = RECEIPTS if stream else ADMIN
    assert (sent.url, sent["path/to"], sent["path/action"]) == (to, to, "MSMQ:label")
    assert sent["commitmentReceipt/decidedAt"] == date(decided)
    assert sent["commitmentReceipt/decision"] == "positive"
    assert sent["commitmentReceipt/id"] == f"uuid:7@{PEER_ID}"
    assert (sent["Msmq/Class"], sent["Msmq/SourceQmGuid"]) == (str(int(RECEIVED)), str(OWN_ID))
    assert "streamReceipt" not in sent
    assert (bodies(queue), harness.where()) == ([], {})


@pytest.mark.requirement("SRMP-3.1.1.1.2.3-02")
@pytest.mark.parametrize("services", ["", commitment(), commitment("negative")])
@pytest.mark.parametrize("dead_letter", [False, True])
@pytest.mark.requirement("SRMP-2.2.5.2.3-08", "SRMP-2.2.5.2.3-09")
def test_a_received_message_without_a_request_has_no_receipt(services, dead_letter):
    """It is not dead-lettered either."""
    harness, queue = received(services=services, dead_letter=dead_letter)
    assert read(harness, queue) == []
    assert (bodies(queue), harness.where()) == ([], {})


@pytest.mark.requirement(
    "SRMP-3.1.1.1.2.3-03",
    "SRMP-3.1.1.3.4-03",
    "SRMP-3.1.1.1.2.6-02",
    "SRMP-3.1.5.1.5-08",
    "SRMP-3.1.7.3.1-01",
)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("reason", RECEIPTED, ids=lambda reason: reason.name)
@pytest.mark.requirement("SRMP-2.2.5.2.3-08", "SRMP-2.2.5.2.3-10")
@pytest.mark.requirement("SRMP-3.1.7-01")
def test_the_commitment_receipt_for_each_reason(reason, stream):
    harness, queue = received(stream=stream, services=commitment("positive", "negative"))
    (sent,) = leave(harness, queue, reason)
    assert (sent["commitmentReceipt/decision"], sent["Msmq/Class"]) == (RECEIPTED[reason], str(int(reason)))


@pytest.mark.requirement("SRMP-3.1.7.3.1-01", "SRMP-3.1.1.3.4-03")
@pytest.mark.parametrize("services", ["", commitment(), commitment("positive")])
@pytest.mark.requirement("SRMP-2.2.5.2.3-07", "SRMP-2.2.5.2.3-09")
def test_an_unreceived_message_without_a_request_has_no_receipt(services):
    for reason in (*DEADLETTERED, *NOT_DEADLETTERED):
        harness, queue = received(services=services)
        assert leave(harness, queue, reason) == []


@pytest.mark.requirement("SRMP-3.1.1.1.2.3-04", "SRMP-3.1.7.3.2-01", "SRMP-3.1.5.2.1.1-01", "SRMP-3.1.7-01")
@pytest.mark.parametrize("reason", DEADLETTERED, ids=lambda reason: reason.name)
@pytest.mark.parametrize("services", ["", commitment("negative")])
def test_an_unreceived_message_is_dead_lettered_on_request(reason, services):
    for wanted in (False, True):
        harness, queue = received(services=services, dead_letter=wanted)
        leave(harness, queue, reason)
        assert (bodies(queue), harness.where()) == ([], {"dead": [b"m"]} if wanted else {})


@pytest.mark.requirement("SRMP-3.1.7.3.2-02")
@pytest.mark.parametrize("reason", [*NOT_DEADLETTERED, RECEIVED], ids=lambda reason: reason.name)
def test_a_message_is_not_dead_lettered_for_other_reasons(reason):
    harness, queue = received(dead_letter=True)
    leave(harness, queue, reason)
    assert (bodies(queue), harness.where()) == ([], {})


@pytest.mark.requirement("SRMP-3.1.1.1.2.6-03", "SRMP-3.1.7.3.3-01", "SRMP-3.1.7.3.3-05", "SRMP-3.1.1.3.3-02")
@pytest.mark.parametrize("reason", RECEIPTED, ids=lambda reason: reason.name)
@pytest.mark.requirement("SRMP-2.2.5.5-02")
def test_a_dead_letter_stream_message_gets_a_final_receipt(reason):
    """It is not dead-lettered at its receiver."""
    harness, queue = received(stream=True, dead_letter=True)
    (sent,) = leave(harness, queue, reason)
    assert (sent.url, sent["path/to"], sent["path/action"]) == (RECEIPTS, RECEIPTS, "MSMQ:QM Ordering Ack")
    assert (sent["streamReceipt/streamId"], sent["streamReceipt/lastOrdinal"]) == (
        f"uid:{PEER_ID}\\{ORDINAL}",
        "1",
    )
    assert (sent["commitmentReceipt/decision"], sent["Msmq/Class"]) == (RECEIPTED[reason], str(int(reason)))
    assert sent["commitmentReceipt/id"] == f"uuid:7@{PEER_ID}"
    assert (bodies(queue), harness.where()) == ([], {})


@pytest.mark.requirement("SRMP-3.1.1.1.2.6-03", "SRMP-3.1.7.3.3-01")
@pytest.mark.parametrize("reason", RECEIPTED, ids=lambda reason: reason.name)
@pytest.mark.requirement("SRMP-3.1.1.3.3-02")
def test_a_stream_message_without_dead_letter_has_no_receipt(reason):
    harness, queue = received(stream=True)
    assert leave(harness, queue, reason) == []


@pytest.mark.requirement("SRMP-3.1.7.3.3-01", "SRMP-3.1.7.3.1-01")
def test_a_stream_message_may_have_both_receipts():
    harness, queue = received(
        stream=True,
        services=commitment("positive"),
        dead_letter=True,
    )
    commitment_receipt, final = read(harness, queue)
    assert "streamReceipt" not in commitment_receipt
    assert final["streamReceipt/lastOrdinal"] == "1"


@pytest.mark.requirement("SRMP-3.1.5.1.5-08", "SRMP-3.1.1.3.4-03")
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("expired", C.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT),
        ("purged", C.MQMSG_CLASS_NACK_Q_PURGED),
        ("queue deleted", C.MQMSG_CLASS_NACK_Q_DELETED),
    ],
)
@pytest.mark.requirement("SRMP-3.1.1.1.2.3-03", "SRMP-3.1.1.1.2.3-04")
def test_how_messages_leave_their_queue(how, reason):
    harness, queue = received(services=commitment("negative"), dead_letter=True, be_received=30)
    if how == "expired":
        harness.advance(29_999)
        assert harness.take() == []
        harness.advance(1_001)
    elif how == "purged":
        harness.purge(queue)
    else:
        harness.core.queues.delete(queue)
        harness.run()
    assert harness.take_one()["Msmq/Class"] == str(int(reason))
    assert harness.where() == ({} if how == "queue deleted" else {"dead": [b"m"]})


@pytest.mark.requirement("SRMP-3.1.7.3.3-05")
@pytest.mark.parametrize("bound", [False, True])
def test_the_final_receipt_address_survives_a_restart(bound):
    """It holds for the whole stream."""
    harness = SrmpHarness(answers=lambda _: OK, bind_senders=bound)
    harness.queue("orders", transactional=True)
    peer = SrmpPeer(harness)
    for number in (1, 2, 3):
        peer.send_in_stream(number, msmq="<DeadLetter/>")
    harness.advance(500)
    harness.restart()
    harness.take()
    queue = harness.find_queue()
    for number in (1, 2, 3):
        assert harness.receive(queue) == b"s%d" % number
        sent = harness.take_one()
        assert (sent.url, sent["streamReceipt/lastOrdinal"]) == (RECEIPTS, str(number))


@pytest.mark.requirement("SRMP-3.1.1.1.2.3-01")
def test_a_message_is_received_when_its_transaction_is_committed():
    harness, queue = received(stream=True, services=commitment("positive", "negative"))
    descriptor = harness.open(queue)
    for committed in (False, True):
        transaction = harness.begin()
        assert (
            harness.core.messages.dequeue(descriptor, timeout=0, transaction=transaction).message is not None
        )
        assert harness.take() == []
        if committed:
            harness.core.commit(transaction)
        else:
            harness.core.transactions.abort(transaction.identifier)
        assert len(harness.take()) == (1 if committed else 0)


@pytest.mark.requirement("SRMP-3.1.7.3-01")
def test_local_messages_and_journals_have_no_receipts():
    harness, queue = received(services=commitment("positive", "negative"), dead_letter=True)
    queue.journaling = True
    harness.send(b"own", to="DIRECT=OS:here\\private$\\orders", negative_journaling_requested=True)
    assert len(read(harness, queue)) == 1
    assert harness.receive(queue) == b"own"
    harness.purge(queue.journal)
    assert (harness.take(), harness.where()) == ([], {})


@pytest.mark.requirement("SRMP-2.2.5.2.3-04", "SRMP-2.2.5.2.3-03")
def test_both_receipts_go_to_the_queue_that_is_named_last():
    """As in 4.3; a message has one administration queue."""
    other = "http://there/msmq/private$/other"
    delivery = f"<deliveryReceiptRequest><sendTo>{ADMIN}</sendTo></deliveryReceiptRequest>"
    harness = SrmpHarness(answers=lambda _: OK)
    queue, peer = harness.queue("orders"), SrmpPeer(harness)
    assert peer.send(services=commitment("positive").replace(ADMIN, other) + delivery) == OK
    read(harness, queue)
    assert [sent.url for sent in harness.sent] == [ADMIN, ADMIN]


@pytest.mark.requirement("SRMP-3.1.1.4.1-01")
@pytest.mark.requirement("SRMP-2.2.5.2.2-05")
def test_the_receipts_of_figure_9():
    harness = SrmpHarness(answers=lambda _: OK)
    queue, peer = harness.queue("orders"), SrmpPeer(harness)
    delivery = f"<deliveryReceiptRequest><sendTo>{ADMIN}</sendTo></deliveryReceiptRequest>"
    assert peer.send(number=9, services=delivery + commitment("positive")) == OK
    (arrived,) = harness.take()
    assert arrived["deliveryReceipt/receivedAt"] == date(START_UTC)
    assert arrived["deliveryReceipt/id"] == f"uuid:9@{PEER_ID}"
    assert (arrived["Msmq/Class"], arrived.body, arrived.url) == ("2", None, ADMIN)
    harness.receive(queue)
    assert [sent["commitmentReceipt/decision"] for sent in harness.take()] == ["positive"]
