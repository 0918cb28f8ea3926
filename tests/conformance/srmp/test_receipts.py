"""Receipts that a receiver makes: [MC-MQSRM] 2.2.5.4 to 2.2.5.6, 3.1.5.1.6.2, 3.1.6.3, 3.1.7.3."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.constants import MessageClass
from msmqwire.names import parse_format_name
from msmqwire.qm.model.enumerations import AcknowledgementsRequested
from msmqwire.qm.model.message import Message, ObjectId, TxSequenceId
from msmqwire.qm.protocols.srmp.deserializing import deserialize, stream_of
from msmqwire.qm.protocols.srmp.receipts import (
    Receipt,
    commitment_receipt,
    delivery_receipt,
    final_stream_receipt,
    stream_receipt,
)
from msmqwire.srmp.envelope import Envelope, build_envelope, parse_envelope
from msmqwire.srmp.identifiers import MessageIdentifier, StreamIdentifier
from msmqwire.srmp.kinds import EnvelopeKind, kind_of
from msmqwire.srmp.message import SrmpMessage
from tests.support.srmp.srmp_envelopes import GUID, PUBLISHED, changed

C = MessageClass
A = AcknowledgementsRequested
RECEIVER = UUID("ac678228-2dd6-418b-b31f-0539ffeea853")
NEGATIVE = (
    C.MQMSG_CLASS_NACK_DELETED,
    C.MQMSG_CLASS_NACK_Q_DELETED,
    C.MQMSG_CLASS_NACK_Q_PURGED,
    C.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT,
    C.MQMSG_CLASS_NACK_RECEIVE_REJECTED,
)
OTHER_REASONS = [c for c in MessageClass if c not in (C.MQMSG_CLASS_ACK_RECEIVE, *NEGATIVE)]
ORDER_QUEUE = parse_format_name("DIRECT=http://machine1/MSMQ/private$/receipts?SenderStream=XRntV")
STREAM = StreamIdentifier(UUID("2744e4e1-2b48-43e8-b441-42745f280d53"), 4839986701558349830)
SENT_4_3_3 = 1184815491  # 2007-07-19T03:24:51
SENT_4_3_5 = 1184815641  # 2007-07-19T03:27:21


def published(name: str, arrival: int = 0) -> Message:
    return deserialize(SrmpMessage(None, (), PUBLISHED[name]), arrival)


def asking(requested: AcknowledgementsRequested, **changes: object) -> Message:
    return Message(
        label="a label",
        identifier=ObjectId(GUID, 32852),
        priority=5,
        arrival_time=SENT_4_3_3,
        destination=parse_format_name("DIRECT=http://h/msmq/q"),
        administration=parse_format_name("DIRECT=http://a/msmq/admin"),
        acknowledgements_requested=requested,
        final_ack_required=bool(requested & ~A.ACK_POS_ARRIVAL),
    ).copy(**changes)


def in_stream(**changes: object) -> Message:
    return asking(
        A.NONE,
        transactional_message_sequence_identifier=TxSequenceId(0x432B1643, 6),
        transaction_sequence_number=42,
        negative_journaling_requested=True,
        **changes,
    )


def commitment(original: Message, reason: MessageClass) -> Receipt | None:
    return commitment_receipt(original, reason, ObjectId(RECEIVER, 9), SENT_4_3_3, SENT_4_3_5)


def final(original: Message, reason: MessageClass) -> Receipt | None:
    return final_stream_receipt(
        STREAM, original, ORDER_QUEUE, reason, ObjectId(RECEIVER, 9), SENT_4_3_3, SENT_4_3_5
    )


def envelope_of(receipt: Receipt | None) -> Envelope:
    """The envelope of a receipt, once through its bytes."""
    assert receipt is not None
    return parse_envelope(build_envelope(receipt.envelope))


def rev_moved(data: bytes) -> bytes:
    """A published receipt with rev behind id, where 3.1.7.2.4 has it."""
    start, end = data.index(b"<rev>"), data.index(b"</rev>") + len(b"</rev>")
    rev = data[start:end].decode()
    return changed(changed(data, rev, ""), "</id></path>", f"</id>{rev}</path>")


# -- the examples, byte for byte --------------------------------------------------------------------------


@pytest.mark.requirement(
    "SRMP-2.2.5.4-04",
    "SRMP-2.2.5.4-06",
    "SRMP-2.2.5.4-07",
    "SRMP-2.2.5.4-08",
    "SRMP-2.2.4.1-05",
    "SRMP-2.2.4.4-07",
    "SRMP-3.1.7.2.4-35",
)
@pytest.mark.requirement("SRMP-4.3-03", "SRMP-4.3-04")
def test_receipts_of_4_3() -> None:
    original = published("4.3-ReceiptRequests", arrival=SENT_4_3_3 + 3)
    delivery = delivery_receipt(original, ObjectId(RECEIVER, 34826), SENT_4_3_3)
    assert delivery is not None
    assert build_envelope(delivery.envelope) == rev_moved(PUBLISHED["4.3-DeliveryReceipt"])
    decided = commitment_receipt(
        original, C.MQMSG_CLASS_ACK_RECEIVE, ObjectId(RECEIVER, 34827), SENT_4_3_5, SENT_4_3_5
    )
    assert decided is not None
    assert build_envelope(decided.envelope) == rev_moved(PUBLISHED["4.3-CommitmentReceipt"])


@pytest.mark.requirement("SRMP-3.1.6.3-04", "SRMP-2.2.4.1-06", "SRMP-2.2.5.6-02")
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.requirement(
    "SRMP-2.2.4.4-07",
    "SRMP-2.2.5.4-07",
    "SRMP-2.2.5.4-08",
    "SRMP-2.2.5.6-03",
    "SRMP-3.1.7.2.4-35",
    "SRMP-4.4-02",
)
def test_receipts_of_4_4(number: int) -> None:
    original = published(f"4.4-Stream{number}")
    stream = stream_of(original)
    assert stream is not None
    wanted = parse_envelope(PUBLISHED[f"4.4-StreamReceipt{number}"])
    own = wanted.path.id
    sent = published(f"4.4-StreamReceipt{number}").sent_time
    receipt = stream_receipt(stream, original, ORDER_QUEUE, ObjectId(own.lineage, own.uniquifier), sent)
    assert build_envelope(receipt.envelope) == rev_moved(PUBLISHED[f"4.4-StreamReceipt{number}"])


# -- delivery receipts ------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "SRMP-3.1.5.1.6.2-03", "SRMP-3.1.5.1.6.2-04", "SRMP-2.2.4.1-04", "SRMP-2.2.5.4-05", "SRMP-3.1.1.3.1-01"
)
@pytest.mark.requirement("SRMP-2.2.5.4-02", "SRMP-2.2.5.4-03")
def test_delivery_receipt() -> None:
    original = asking(A.ACK_POS_ARRIVAL)
    receipt = delivery_receipt(original, ObjectId(RECEIVER, 9), SENT_4_3_5)
    envelope = envelope_of(receipt)
    assert kind_of(envelope) is EnvelopeKind.DELIVERY_RECEIPT
    assert envelope.path.action == "MSMQ:a label"
    assert envelope.path.to == "http://a/msmq/admin"
    assert envelope.path.id == MessageIdentifier(9, RECEIVER)
    assert int(envelope.deliveryReceipt.receivedAt.timestamp()) == original.arrival_time
    assert envelope.deliveryReceipt.id == MessageIdentifier(32852, GUID)
    assert envelope.Msmq.Correlation == bytes(original.identifier)
    assert envelope.Msmq.Priority == 5
    assert envelope.services is None
    assert receipt is not None
    assert receipt.message.body == b""
    assert delivery_receipt(asking(~A.ACK_POS_ARRIVAL), ObjectId(RECEIVER, 9), SENT_4_3_5) is None
    nobody = asking(A.ACK_POS_ARRIVAL, administration=None)
    assert delivery_receipt(nobody, ObjectId(RECEIVER, 9), SENT_4_3_5) is None


# -- commitment receipts ----------------------------------------------------------------------------------


@pytest.mark.requirement(
    "SRMP-3.1.7.3.1-02",
    "SRMP-3.1.7.3.1-03",
    "SRMP-3.1.7.3.1-04",
    "SRMP-3.1.7.3.1-05",
    "SRMP-3.1.7.3.1-07",
    "SRMP-3.1.7.3.1-08",
)
@pytest.mark.parametrize("reason", [C.MQMSG_CLASS_ACK_RECEIVE, *NEGATIVE])
@pytest.mark.requirement("SRMP-2.2.4.1-04")
def test_commitment_receipt(reason: MessageClass) -> None:
    envelope = envelope_of(commitment(asking(A.ACK_POS_RECEIVE | A.ACK_NEG_RECEIVE), reason))
    assert kind_of(envelope) is EnvelopeKind.COMMITMENT_RECEIPT
    assert envelope.path.action == "MSMQ:a label"
    assert envelope.path.to == "http://a/msmq/admin"
    content = envelope.commitmentReceipt
    assert content.id == MessageIdentifier(32852, GUID)
    assert int(content.decidedAt.timestamp()) == SENT_4_3_5
    assert content.decision == ("negative" if reason in NEGATIVE else "positive")
    assert reason == envelope.Msmq.Class


@pytest.mark.requirement("SRMP-3.1.1.3.4-01", "SRMP-3.1.1.3.4-04", "SRMP-3.1.7.3.1-06")
def test_commitment_receipts_that_are_not_due() -> None:
    for reason in NEGATIVE:
        assert commitment(asking(A.ACK_POS_RECEIVE), reason) is None
        assert commitment(asking(A.ACK_NEG_RECEIVE), reason) is not None
        assert commitment(asking(A.NONE, final_ack_required=True), reason) is None
    received = C.MQMSG_CLASS_ACK_RECEIVE
    assert commitment(asking(A.ACK_POS_RECEIVE), received) is not None
    assert commitment(asking(A.ACK_POS_RECEIVE, administration=None), received) is None
    assert commitment(asking(A.ACK_NEG_RECEIVE | A.ACK_POS_ARRIVAL), received) is None
    for reason in OTHER_REASONS:
        assert commitment(asking(A.ACK_POS_RECEIVE | A.ACK_NEG_RECEIVE), reason) is None


# -- final stream receipts --------------------------------------------------------------------------------


@pytest.mark.requirement(
    "SRMP-3.1.7.3.3-02",
    "SRMP-3.1.7.3.3-03",
    "SRMP-3.1.7.3.3-06",
    "SRMP-3.1.1.3.3-01",
)
@pytest.mark.parametrize("reason", [C.MQMSG_CLASS_ACK_RECEIVE, *NEGATIVE])
@pytest.mark.requirement("SRMP-2.2.4.1-06")
def test_final_stream_receipt(reason: MessageClass) -> None:
    envelope = envelope_of(final(in_stream(), reason))
    assert kind_of(envelope) is EnvelopeKind.FINAL_STREAM_RECEIPT
    assert envelope.path.action == "MSMQ:QM Ordering Ack"
    assert envelope.path.to == "http://machine1/MSMQ/private$/receipts?SenderStream=XRntV"
    assert (envelope.streamReceipt.streamId, envelope.streamReceipt.lastOrdinal) == (STREAM, 42)
    content = envelope.commitmentReceipt
    assert content.id == MessageIdentifier(32852, GUID)
    assert int(content.decidedAt.timestamp()) == SENT_4_3_5
    assert content.decision == ("negative" if reason in NEGATIVE else "positive")
    assert reason == envelope.Msmq.Class


@pytest.mark.requirement("SRMP-3.1.7.3.3-04")
def test_final_stream_receipts_that_are_not_due() -> None:
    received = C.MQMSG_CLASS_ACK_RECEIVE
    assert final(in_stream().copy(negative_journaling_requested=False), received) is None
    assert final(asking(A.NONE, negative_journaling_requested=True), received) is None
    for reason in OTHER_REASONS:
        assert final(in_stream(), reason) is None
