"""Receipts: [MC-MQSRM] 2.2.5.4 to 2.2.5.6, 3.1.5.1.6.2, 3.1.6.3, 3.1.7.3.

A receipt is a message of its own, with a fresh identifier of this queue manager, express and without a body.
3.1.7.2.4 omits the elements that make it a receipt; in 4.3 and 4.4 they precede Msmq.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from msmqwire.constants import MessageClass
from msmqwire.names import FormatName, MulticastName
from msmqwire.qm.model.enumerations import AcknowledgementsRequested
from msmqwire.qm.model.message import Message, ObjectId
from msmqwire.qm.protocols.srmp.serializing import serialize
from msmqwire.qm.protocols.srmp.times import date_of
from msmqwire.srmp.envelope import Envelope
from msmqwire.srmp.identifiers import MessageIdentifier, StreamIdentifier
from msmqwire.srmp.kinds import DECISIONS, POSITIVE, STREAM_RECEIPT_LABEL

_ARRIVAL: Final = AcknowledgementsRequested.ACK_POS_ARRIVAL
_RECEIVED: Final = AcknowledgementsRequested.ACK_POS_RECEIVE
_NOT_RECEIVED: Final = AcknowledgementsRequested.ACK_NEG_RECEIVE


class Receipt(NamedTuple):
    """A receipt to send, as a message and as an envelope."""

    message: Message
    envelope: Envelope


def delivery_receipt(original: Message, identifier: ObjectId, sent_time: int) -> Receipt | None:
    """Return the receipt for a message that is in its queue; None if none was asked for. 3.1.5.1.6.2.

    `identifier` is the receipt's: a new number of this queue manager. Raises InvalidValue.
    """
    # SRMP-2.2.5.4-02, SRMP-3.1.1.3.1-01
    if original.administration is None or not original.acknowledgements_requested & _ARRIVAL:
        return None
    message = _answer(
        # SRMP-2.2.5.4-05 and -06
        original,
        original.administration,
        MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE,
        identifier,
        sent_time,
    )
    # SRMP-3.1.5.1.6.2-03 and -04, SRMP-2.2.5.4-03, SRMP-2.2.5.4-04, SRMP-4.3-03
    element = {"receivedAt": date_of(original.arrival_time, "arrival_time"), "id": _identifier(original)}
    return _receipt(message, deliveryReceipt=element)  # SRMP-3.1.7.2.4-35


def commitment_receipt(
    original: Message, reason: MessageClass, identifier: ObjectId, sent_time: int, decided_at: int
) -> Receipt | None:
    """Return the receipt for a message that left its queue; None if none is due. 3.1.7.3.1.

    `reason` is iReason of the event, `decided_at` its time. Raises InvalidValue.
    """
    decision = DECISIONS.get(reason)
    # final_ack_required adds nothing, and a stored message that is not transactional does not have it.
    # SRMP-3.1.1.3.4-01 and -04
    # SRMP-2.2.5.2.3-07, -09, -10, SRMP-3.1.1.1.2.3-02, SRMP-2.2.5.5-02
    requested = original.acknowledgements_requested & (_RECEIVED if decision == POSITIVE else _NOT_RECEIVED)
    if decision is None or original.administration is None or not requested:  # SRMP-3.1.7.3.1-06
        return None
    # SRMP-3.1.7.3.1-07 and -08, SRMP-2.2.5.5-06
    message = _answer(original, original.administration, reason, identifier, sent_time)
    # SRMP-3.1.7.2.4-35
    return _receipt(message, commitmentReceipt=_commitment(original, decision, decided_at))


def stream_receipt(
    stream: StreamIdentifier,
    last: Message,
    send_receipts_to: FormatName,
    identifier: ObjectId,
    sent_time: int,
) -> Receipt:
    """Return the receipt for all messages of a stream up to `last`. 3.1.6.3.

    `send_receipts_to` comes from the first message of the stream. Raises InvalidValue.
    """
    message = _answer(last, send_receipts_to, MessageClass.MQMSG_CLASS_ORDER_ACK, identifier, sent_time)
    message.label = STREAM_RECEIPT_LABEL  # SRMP-2.2.4.1-06
    message.correlation_identifier = bytes(20)  # both as in 4.4
    return _receipt(message, streamReceipt=_accepted(stream, last))  # SRMP-3.1.6.3-04


def final_stream_receipt(
    stream: StreamIdentifier,
    original: Message,
    send_receipts_to: FormatName,
    reason: MessageClass,
    identifier: ObjectId,
    sent_time: int,
    decided_at: int,
) -> Receipt | None:
    """Return the receipt for one message of a stream that left its queue; None if none is due. 3.1.7.3.3.

    It is due to a message that its sender keeps for its dead-letter queue. Raises InvalidValue.
    """
    decision = DECISIONS.get(reason)
    # SRMP-3.1.7.3.3-04, SRMP-3.1.1.3.3-02, SRMP-2.2.5.5-02
    if decision is None or not original.transactional or not original.negative_journaling_requested:
        return None
    message = _answer(original, send_receipts_to, reason, identifier, sent_time)  # SRMP-3.1.7.3.3-06
    message.label = STREAM_RECEIPT_LABEL  # SRMP-2.2.4.1-06
    return _receipt(
        message,
        streamReceipt=_accepted(stream, original),  # SRMP-3.1.7.3.3-03, SRMP-3.1.1.3.3-01
        commitmentReceipt=_commitment(original, decision, decided_at),
    )


def _answer(
    original: Message, destination: FormatName, reason: MessageClass, identifier: ObjectId, sent_time: int
) -> Message:
    """Return the message of a receipt: SRMP-2.2.5.4-07, SRMP-2.2.5.4-08."""
    answer = Message(
        identifier=identifier,
        priority=original.priority,  # SRMP-2.2.5.4-08
        sent_time=sent_time,
        source_machine_identifier=identifier.lineage,  # SRMP-2.2.5.4-08
        # A message in a queue can't have a multicast address for responses.
        # SRMP-2.2.4.4-07
        response=None if isinstance(original.destination, MulticastName) else original.destination,
        hash_algorithm=0,  # SRMP-2.2.5.4-08
    )
    answer.destination = destination  # SRMP-2.2.5.4-05, SRMP-2.2.5.5-06, SRMP-3.1.7.3.1-08
    answer.message_class = reason  # SRMP-2.2.5.4-06, SRMP-3.1.7.3.1-07
    answer.correlation_identifier = bytes(original.identifier)  # SRMP-2.2.5.4-07
    answer.label = original.label  # SRMP-2.2.4.1-04 and -05
    return answer


def _receipt(message: Message, **elements: Any) -> Receipt:
    envelope = serialize(message, queue_manager=message.source_machine_identifier).envelope
    return Receipt(message, envelope.replace(**elements))  # SRMP-3.1.7.2.4-35


def _identifier(original: Message) -> MessageIdentifier:
    return MessageIdentifier(original.identifier.uniquifier, original.identifier.lineage)


def _commitment(original: Message, decision: str, decided_at: int) -> dict[str, Any]:
    return {
        "decidedAt": date_of(decided_at, "decided_at"),  # SRMP-3.1.7.3.1-03, SRMP-3.1.7.3.3-02
        "decision": decision,  # SRMP-2.2.5.5-04, SRMP-4.3-04
        "id": _identifier(original),  # SRMP-3.1.7.3.1-02
    }


def _accepted(stream: StreamIdentifier, message: Message) -> dict[str, Any]:
    # SRMP-2.2.5.6-03, SRMP-3.1.1.3.2-02, SRMP-3.1.1.3.3-01, SRMP-3.1.6.3-04, SRMP-3.1.7.3.3-03, SRMP-4.4-02
    return {"streamId": stream, "lastOrdinal": message.transaction_sequence_number}
