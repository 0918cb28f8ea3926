"""Receipts as they become due: [MC-MQSRM] 3.1.5.1.6.2, 3.1.6.3 and 3.1.7.3."""

from __future__ import annotations

from collections.abc import Callable

from msmqwire.constants import MessageClass
from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import IncomingTransactionalTransferInfo
from msmqwire.qm.model.enumerations import AcknowledgementsRequested
from msmqwire.qm.model.message import Message, ObjectId
from msmqwire.qm.protocols.srmp import receipts
from msmqwire.qm.protocols.srmp.deserializing import stream_of
from msmqwire.qm.protocols.srmp.queue_names import read_http
from msmqwire.qm.protocols.srmp.receipts import Receipt
from msmqwire.qm.rules.message_identity import MessageIdentity
from msmqwire.qm.rules.system_messages import SystemMessages
from msmqwire.srmp.envelope import build_envelope
from msmqwire.srmp.identifiers import StreamIdentifier
from msmqwire.srmp.kinds import DECISIONS

_RECEIVED = AcknowledgementsRequested.ACK_POS_RECEIVE
_NOT_RECEIVED = AcknowledgementsRequested.ACK_NEG_RECEIVE


class ReceiptSending:
    """Sends receipts as regular messages, within the limits on reflection.

    A receipt that is sent only once, for a stored message, is stored here as well until it is delivered.
    Otherwise the sender of the message, which may get no other report, would wait for it in vain after a
    restart.
    """

    def __init__(self, context: Context, identity: MessageIdentity, system_messages: SystemMessages) -> None:
        self._context, self._identity, self._system_messages = context, identity, system_messages

    def due(self, message: Message, message_class: int) -> None:
        """A message with an HTTP administration queue has arrived, or has left its queue."""
        utc, reason = self._context.utc, MessageClass(message_class)
        if reason is MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE:
            self._send(message, lambda number: receipts.delivery_receipt(message, number, utc))
        else:
            # SRMP-3.1.7.3.1-01, SRMP-3.1.1.1.2.3-01 and -03,
            # SRMP-3.1.1.1.2.6-01 and -02, SRMP-3.1.1.3.4-02 and -03
            self._send(message, lambda number: receipts.commitment_receipt(message, reason, number, utc, utc))

    def stream(self, info: IncomingTransactionalTransferInfo) -> None:
        """Acknowledge all messages of a stream up to the last one acknowledged: 3.1.6.3."""
        last = Message(
            destination=info.format_name, transaction_sequence_number=info.acknowledged, priority=0,
            origin=info.origin,
        )  # fmt: skip
        assert info.stream_owner is not None, "it is a stream"
        stream = StreamIdentifier(
            # SRMP-3.1.1.3.2-02
            info.stream_owner,
            info.sequence_identifier.time_stamp << 32 | info.sequence_identifier.ordinal,
        )
        self._send(
            last,
            lambda number: receipts.stream_receipt(
                stream, last, read_http(info.send_receipts_to, "sendReceiptsTo"), number, self._context.utc
            ),
        )

    def final(self, message: Message, send_receipts_to: str, reason: int) -> None:
        """A stream message has left its queue: 3.1.7.3.3."""
        stream, utc = stream_of(message), self._context.utc
        if stream is None or not send_receipts_to or reason not in DECISIONS:
            return
        self._send(
            message,
            lambda number: receipts.final_stream_receipt(
                stream, message, read_http(send_receipts_to, "sendReceiptsTo"), MessageClass(reason), number,
                utc, utc,
            ),
        )  # fmt: skip

    def _send(self, about: Message, make: Callable[[ObjectId], Receipt | None]) -> None:
        origin = about.origin
        try:
            receipt = make(self._identity.next())
            if receipt is None or receipt.message.destination is None:
                return
            receipt.message.delivery_guarantee = about.delivery_guarantee  # the envelope does not ask for it
            receipt.message.soap_envelope = build_envelope(receipt.envelope).decode("utf-8")
        except (InvalidValue, MalformedPacket) as exc:
            self._context.trouble("receipt", f"a receipt for a message of {origin} can't be built: {exc}")
            return
        # SRMP-3-01
        self._system_messages.send(receipt.message.destination, receipt.message, origin=origin)
