"""Messages of queues of other computers, as their queue manager hands them out: [MS-MQRR] 3.1.4.7."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msmqwire.errors import InvalidName, InvalidValue, MalformedPacket, UnsupportedAlgorithm
from msmqwire.headers.remote import size_after_extension
from msmqwire.names.printable import agreed, counted
from msmqwire.qm.client.received_message import ReceivedMessage
from msmqwire.qm.client.remote_lookup import PRIORITY_SHIFT, SEQUENCE_ID
from msmqwire.qm.model.enumerations import AuthenticationLevel
from msmqwire.qm.model.message import Message
from msmqwire.qm.rules.serialization import deserialize
from msmqwire.qm.runtime.message_json import message_json
from msmqwire.remote_read.sections import message_of
from msmqwire.schema import Record


def received_message(sections: Sequence[Any] | None, arrival_time: int, sequence_id: int) -> ReceivedMessage:
    """Return the message in an answer to R_StartReceive: [MS-MQRR] 3.1.4.7.

    Raises MalformedPacket, also for a truncated body: the request was for all of it.
    """
    read = message_of(sections)
    if read.cut:
        why = f"{counted(len(read.body), 'byte')} of the body came, and all of them were asked for"
        raise MalformedPacket(why, path="ppPacketSections[0]", requirement="MQRR-3.1.4.7-32")
    _check_extension(read.whole)
    message = deserialize(read.whole, stored=True, keep=False)  # some servers report what they have verified
    message.body = read.body
    if not message.signature_type:
        message.signature_type = _signature_type(message, read.packet)
    message.arrival_time = arrival_time  # MQRR-3.1.4.7-27
    message.deliveries = read.state.abort_count
    message.time_to_reach_queue = read.time_to_reach_queue
    message.lookup_identifier = _lookup_identifier(message, sequence_id)
    return ReceivedMessage.from_json(message_json(message))


def _check_extension(packet: Record) -> None:
    """Raise MalformedPacket if the length in the ExtensionHeader differs from the headers after it."""
    header = packet.ExtensionHeader
    if header is None:
        return
    size = size_after_extension(packet)
    if header.RemainingHeadersSize != size:
        why = f"{counted(header.RemainingHeadersSize, 'byte', 'are')} announced, {agreed(size, 'are')} there"
        path = "ExtensionHeader.RemainingHeadersSize"
        raise MalformedPacket(why, path=path, requirement="MQRR-2.2.5.2-02")


def _signature_type(message: Message, packet: Record) -> AuthenticationLevel:
    """Return the kind of signature that fits a message and its certificate; its owner is unknown."""
    if not (message.signature or message.multiple_destination_signature):
        return AuthenticationLevel.NONE
    from msmqwire.crypto.certificates import SenderCertificate
    from msmqwire.crypto.signatures import signature_version

    try:
        key = SenderCertificate.read(message.sender_certificate).key
        return AuthenticationLevel(signature_version(packet, key) or AuthenticationLevel.NONE)
    except (InvalidName, InvalidValue, UnsupportedAlgorithm):
        return AuthenticationLevel.NONE


def _lookup_identifier(message: Message, sequence_id: int) -> int:
    """Return the LookupIdentifier, whose low seven bytes are known: [MS-MQDMPR] 3.1.7.1.9.

    The high byte of a message that is not transactional is 7 - Priority, so that they are in the order of
    their queue; that of a transactional one is 0. The specification's text has the reverse, which would break
    the order that [MS-MQDMPR] 3.1.1.2 requires.
    """
    high = 0 if message.transactional else 7 - message.priority
    return high << PRIORITY_SHIFT | sequence_id & SEQUENCE_ID
