"""What a received envelope is: [MC-MQSRM] 3.1.5.1.5."""

from __future__ import annotations

import itertools

import pytest

from msmqwire.constants import MessageClass
from msmqwire.srmp.envelope import parse_envelope
from msmqwire.srmp.kinds import EnvelopeKind, kind_of
from tests.support.srmp.srmp_envelopes import GUID, PUBLISHED, STREAM_ID, xml
from tests.support.srmp.srmp_mapping import msmq, path, properties

K, C = EnvelopeKind, MessageClass
ORDERING = "MSMQ:QM Ordering Ack"
NEGATIVE = (
    C.MQMSG_CLASS_NACK_DELETED,
    C.MQMSG_CLASS_NACK_Q_DELETED,
    C.MQMSG_CLASS_NACK_Q_PURGED,
    C.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT,
    C.MQMSG_CLASS_NACK_RECEIVE_REJECTED,
)
DELIVERY = (
    f"<deliveryReceipt><receivedAt>20070719T032454</receivedAt><id>uuid:1@{GUID}</id></deliveryReceipt>"
)
STREAM = f"<streamReceipt><streamId>{STREAM_ID}</streamId><lastOrdinal>2</lastOrdinal></streamReceipt>"


def commitment(decision: str) -> str:
    return (
        f"<commitmentReceipt><decidedAt>20070719T032454</decidedAt><decision>{decision}</decision>"
        f"<id>uuid:1@{GUID}</id></commitmentReceipt>"
    )


def kind(number: int, *elements: str, action: str = "MSMQ:l") -> EnvelopeKind | None:
    return kind_of(parse_envelope(xml(path(action), properties(), *elements, msmq(number=number))))


@pytest.mark.requirement("SRMP-3.1.5.1.5-02", "SRMP-3.1.5.1.5-10")
def test_user_messages() -> None:
    assert kind(C.MQMSG_CLASS_NORMAL) is K.USER_MESSAGE
    assert kind(C.MQMSG_CLASS_NORMAL, action=ORDERING) is K.USER_MESSAGE
    assert kind_of(parse_envelope(xml(path(), properties()))) is K.USER_MESSAGE
    assert kind(0x0003) is K.USER_MESSAGE  # of an application
    for element in (DELIVERY, STREAM, commitment("positive")):
        assert kind(C.MQMSG_CLASS_NORMAL, element) is None
        assert kind(0x0003, element) is None


@pytest.mark.parametrize("number", [c for c in MessageClass if c] + [0x0200, 0x1000])
@pytest.mark.requirement("SRMP-3.1.5.1.5-01", "SRMP-3.1.5.1.5-02")
def test_other_classes_without_a_receipt_are_ignored(number: int) -> None:
    assert kind(number) is None
    assert kind(number, action=ORDERING) is None


@pytest.mark.requirement("SRMP-3.1.5.1.5-03")
def test_delivery_receipts() -> None:
    found = {c: kind(c, DELIVERY) for c in MessageClass}
    assert found.pop(C.MQMSG_CLASS_ACK_REACH_QUEUE) is K.DELIVERY_RECEIPT
    assert set(found.values()) == {None}
    assert kind(C.MQMSG_CLASS_ACK_REACH_QUEUE, STREAM, DELIVERY) is None
    assert kind(C.MQMSG_CLASS_ACK_REACH_QUEUE, DELIVERY, commitment("positive")) is None


@pytest.mark.requirement("SRMP-3.1.5.1.5-04")
def test_stream_receipts() -> None:
    found = {c: kind(c, STREAM, action=ORDERING) for c in MessageClass}
    assert found.pop(C.MQMSG_CLASS_ORDER_ACK) is K.STREAM_RECEIPT
    assert set(found.values()) == {None}
    for action in ("MSMQ:", "QM Ordering Ack", f"{ORDERING} ", "MSMQ:qm ordering ack"):
        assert kind(C.MQMSG_CLASS_ORDER_ACK, STREAM, action=action) is None
    assert kind(C.MQMSG_CLASS_ORDER_ACK, STREAM, DELIVERY, action=ORDERING) is None


@pytest.mark.requirement(
    "SRMP-3.1.5.1.5-05", "SRMP-3.1.5.1.5-06", "SRMP-3.1.5.1.5-07", "SRMP-3.1.5.1.5-09", "SRMP-2.2.6.1-02"
)
def test_class_and_decision() -> None:
    for number, decision in itertools.product(MessageClass, ("positive", "negative")):
        fits = (number, decision) == (C.MQMSG_CLASS_ACK_RECEIVE, "positive") or (
            number in NEGATIVE and decision == "negative"
        )
        element = commitment(decision)
        assert kind(number, element) is (K.COMMITMENT_RECEIPT if fits else None)
        final = kind(number, STREAM, element, action=ORDERING)
        assert final is (K.FINAL_STREAM_RECEIPT if fits else None)
        assert kind(number, STREAM, element) is None  # another action
        assert kind(number, DELIVERY, element) is None
        assert kind(number, STREAM, DELIVERY, element, action=ORDERING) is None


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("4.1-SimpleMessage", K.USER_MESSAGE),
        ("4.2-MsmqElement", K.USER_MESSAGE),
        ("4.3-ReceiptRequests", K.USER_MESSAGE),
        ("4.3-DeliveryReceipt", K.DELIVERY_RECEIPT),
        ("4.3-CommitmentReceipt", K.COMMITMENT_RECEIPT),
        ("4.4-Stream1", K.USER_MESSAGE),
        ("4.4-StreamReceipt1", K.STREAM_RECEIPT),
        ("4.5-Multicast", K.USER_MESSAGE),
    ],
)
def test_examples(name: str, wanted: EnvelopeKind) -> None:
    assert kind_of(parse_envelope(PUBLISHED[name])) is wanted
