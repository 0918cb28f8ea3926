"""Messages to packets and back: [MS-MQDMPR] 3.1.7.1.30 to 3.1.7.1.32, on the wire and in a store.

`to_packet` returns the packet of a message, as received or new. `deserialize` reads a message and stores its
packet in `Message.packet`. The packet is forwarded as received, reserved bits, padding and spelling included:
only fields that change in transit are taken from the message, see `packet_patch.patch_transit_fields`. Code
that changes another attribute of such a message must set its packet to None; `Message.copy` does.

A message serialized without its packet loses: reserved bits and fields, the content of padding and of bytes
after the body, the bytes after the last header (PacketSize does not count them then), the longer forms of
queue names where a shorter one is equivalent, the headers of HTTP, a ProviderInfo that names the system's own
provider, SecurityHeader.Flags.AU, AS, AI and DE where they do not follow from the rest, headers without
content, labels beyond a null, and Flags.PR and DM of transactional messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from msmqwire.headers import FINAL_ACK_BODY, ORDER_ACK_BODY, TX_SEQUENCE_ID
from msmqwire.qm.model.message import Message, TxSequenceId
from msmqwire.qm.rules import message_to_packet
from msmqwire.qm.rules.message_to_packet import new_packet
from msmqwire.qm.rules.packet_patch import (
    add_session_header,
    mark_clear,
    mark_verified,
    patch_transit_fields,
    session_header,
)
from msmqwire.qm.rules.packet_to_message import deserialize, deserialize_head
from msmqwire.schema import Record

__all__ = [
    "deserialize",
    "deserialize_head",
    "final_ack_body",
    "from_stored",
    "order_ack_body",
    "packet_size",
    "session_packet",
    "to_packet",
    "to_readable",
    "to_stored",
]


def packet_size(message: Message) -> int:
    """Return the size of the packet of a message, however large. Raises as `to_packet` does."""
    return message_to_packet.packet_size(message) if message.packet is None else len(message.packet)


def to_packet(message: Message) -> bytes:
    """Return the UserMessage packet of a message, as received or new, without a SessionHeader.

    Raises InvalidValue for attributes that do not fit, InvalidName for queues that a packet can't name.
    """
    if message.packet is not None:
        return patch_transit_fields(message.packet, message)
    return new_packet(message)  # DMPR-3.1.7.1.32-01


def session_packet(message: Message, header: Sequence[int] | None = None) -> bytes:
    """Return the packet of a message for a session, with or without a SessionHeader.

    Args:
        message: the message.
        header: the fields of the SessionHeader in their order, without Reserved. Order and final
            acknowledgements must have none, to be recognised: [MS-MQQB] 3.1.5.1.1.

    Raises as `to_packet` does.
    """
    if message.packet is None:
        return new_packet(message, header)
    packet = to_packet(message)
    return packet if header is None else add_session_header(packet, session_header(header))


# -- in a store ----------------------------------------------------------------------------------------


def to_stored(message: Message) -> bytes:
    """Return the packet of a message for this queue manager's store.

    It includes data that are never sent: the results of verification, and the SOAP envelope of a message
    received over HTTP. Raises as `to_packet` does.
    """
    kind = message.authentication_level or message.signature_type
    has_more = message.packet is None or message.soap_envelope
    # DMPR-3.1.1.12-18
    packet = _cleared(message, new_packet(message, stored=True) if has_more else to_packet(message))
    if not kind:
        return packet
    return mark_verified(packet, kind, authenticated=bool(message.authentication_level))


def to_readable(message: Message) -> bytes:
    """Return the packet of a message for remote readers: [MS-MQRR] 2.2.5.1.

    Unlike the packet of `to_packet` it has the SOAP envelope of a message received over HTTP, and EB is 0 if
    the body is in clear here. Its SecurityHeader does not report verification by this queue manager: AU and
    AS are 0 in everything sent, and no override of [MS-MQRR] changes that. Raises as `to_packet` does.
    """
    # MQRR-2.2.5.1-12: a receipt of this queue manager has an envelope alone, and no AH
    # MQRR-3.1.1.4-01
    is_srmp = message.soap_envelope and message.soap_compound_message  # MQRR-2.2.5.1.1-01, MQRR-2.2.5.1.2-01
    return _cleared(message, new_packet(message, stored=True) if is_srmp else to_packet(message))


def _cleared(message: Message, packet: bytes) -> bytes:
    """Return a packet of a message, with EB 0 if the body is in clear here."""
    return mark_clear(packet) if _is_clear(message) else packet


def _is_clear(message: Message) -> bool:
    """Return whether a message asks for encryption, and its body is in clear while it is here."""
    return bool(message.privacy_level) and not message.encrypted


def from_stored(data: bytes, identifier: UUID) -> Message:
    """Read a packet of `to_stored`. Raises MalformedPacket.

    `identifier` is this queue manager's, whose own messages are serialized again when they are sent.
    """
    message = deserialize(data, stored=True)
    if message.source_machine_identifier == identifier:
        message.packet = None
    return message


# -- bodies of order and final acknowledgements ----------------------------------------------------------


def order_ack_body(sequence: TxSequenceId, number: int, previous: int) -> bytes:
    """Build the OrderAckBody for a message of a sequence, `previous` being number - 1: [MS-MQQB] 2.2.4.1.

    Raises InvalidValue.
    """
    return ORDER_ACK_BODY.build(
        ORDER_ACK_BODY.record(
            TxSequenceID=_tx_sequence_id(sequence),
            TxSequenceNumber=number,
            TxPreviousSequenceNumber=previous,
            Reserved=bytes(20),
        )
    )


def final_ack_body(
    sequence: TxSequenceId, number: int, previous: int, source: UUID, message_id: int
) -> bytes:
    """Build the FinalAckBody for a message: [MS-MQQB] 2.2.5.1. Raises InvalidValue.

    Args:
        sequence, number, previous: the values of the message's TransactionHeader.
        source: its UserHeader.SourceQueueManager.
        message_id: its UserHeader.MessageID.
    """
    return FINAL_ACK_BODY.build(
        FINAL_ACK_BODY.record(
            TxSequenceID=_tx_sequence_id(sequence),
            TxSequenceNumber=number,
            TxPreviousSequenceNumber=previous,
            SourceGUID=source,
            MessageID=message_id,
        )
    )


def _tx_sequence_id(sequence: TxSequenceId) -> Record:
    return TX_SEQUENCE_ID.record(Ordinal=sequence.ordinal, TimeStamp=sequence.time_stamp)
