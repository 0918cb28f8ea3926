"""The kind of a received envelope: [MC-MQSRM] 3.1.5.1.5."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from msmqwire.constants import MessageClass
from msmqwire.constants.message_class import is_legal_class
from msmqwire.srmp.envelope import Envelope

STREAM_RECEIPT_LABEL: Final = "QM Ordering Ack"
"""The label of stream receipts and final stream receipts: SRMP-2.2.4.1-06."""
_STREAM_RECEIPT_ACTION: Final = f"MSMQ:{STREAM_RECEIPT_LABEL}"

POSITIVE: Final = "positive"
NEGATIVE: Final = "negative"
DECISIONS: Final[Mapping[int, str]] = {
    MessageClass.MQMSG_CLASS_ACK_RECEIVE: POSITIVE,  # SRMP-3.1.7.3.1-04
    MessageClass.MQMSG_CLASS_NACK_DELETED: NEGATIVE,  # SRMP-3.1.7.3.1-05, SRMP-2.2.6.1-02
    MessageClass.MQMSG_CLASS_NACK_Q_DELETED: NEGATIVE,
    MessageClass.MQMSG_CLASS_NACK_Q_PURGED: NEGATIVE,
    MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT: NEGATIVE,
    # 3.1.7.3.1 sends it, so it is recognised, though 3.1.5.1.5 does not list it: SRMP-3.1.5.1.5-09.
    MessageClass.MQMSG_CLASS_NACK_RECEIVE_REJECTED: NEGATIVE,
}
"""The decision that goes with the class of a receipt, which says how the message left its queue."""


class EnvelopeKind(Enum):
    """The types of messages of 3.1.5.1.5."""

    USER_MESSAGE = "user message"
    DELIVERY_RECEIPT = "delivery receipt"
    STREAM_RECEIPT = "stream receipt"
    FINAL_STREAM_RECEIPT = "final stream receipt"
    COMMITMENT_RECEIPT = "commitment receipt"


def kind_of(envelope: Envelope) -> EnvelopeKind | None:
    """Return the kind of an envelope; None for one of no kind, which is ignored: SRMP-3.1.5.1.5-01."""
    message_class = MessageClass.MQMSG_CLASS_NORMAL if envelope.Msmq is None else envelope.Msmq.Class
    for_sender = envelope.path.action == _STREAM_RECEIPT_ACTION
    match (
        envelope.deliveryReceipt is not None,
        envelope.streamReceipt is not None,
        envelope.commitmentReceipt is not None,
    ):
        case (False, False, False) if _is_of_application(message_class):
            return EnvelopeKind.USER_MESSAGE
        case (True, False, False) if message_class == MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE:
            return EnvelopeKind.DELIVERY_RECEIPT
        case (False, True, False) if for_sender and message_class == MessageClass.MQMSG_CLASS_ORDER_ACK:
            return EnvelopeKind.STREAM_RECEIPT
        case (False, True, True) if for_sender and _is_decided(envelope, message_class):  # SRMP-3.1.5.1.5-05
            return EnvelopeKind.FINAL_STREAM_RECEIPT
        case (False, False, True) if _is_decided(envelope, message_class):  # SRMP-3.1.5.1.5-07
            return EnvelopeKind.COMMITMENT_RECEIPT
    return None


def _is_of_application(message_class: int) -> bool:
    """Whether an application may give its message this class: SRMP-3.1.5.1.5-02 and -10."""
    if message_class == MessageClass.MQMSG_CLASS_NORMAL:
        return True
    return is_legal_class(message_class) and message_class not in frozenset(MessageClass)


def _is_decided(envelope: Envelope, message_class: int) -> bool:
    decision = DECISIONS.get(message_class)
    return decision is not None and envelope.commitmentReceipt.decision == decision  # SRMP-3.1.5.1.5-06
