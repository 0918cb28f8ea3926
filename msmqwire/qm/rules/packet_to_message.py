"""Deserialization of packets: [MS-MQDMPR] 3.1.7.1.31."""

from __future__ import annotations

from typing import Final

from msmqwire.constants import EncryptionAlgorithm, HashAlgorithm, MessageClass
from msmqwire.errors import MalformedPacket
from msmqwire.headers import BASE_HEADER, SECURITY_HEADER, SESSION_HEADER, TRANSACTION_HEADER, USER_HEADER
from msmqwire.packets import USER_MESSAGE
from msmqwire.qm.model.enumerations import (
    AcknowledgementsRequested,
    AuthenticationLevel,
    DeliveryGuarantee,
    SenderIdentifierType,
)
from msmqwire.qm.model.message import LABEL_MAX, NO_CORRELATION, NULL_GUID, Message, ObjectId, TxSequenceId
from msmqwire.qm.rules.packet_patch import mark_verified, masks, without_session_header
from msmqwire.qm.rules.queue_fields import multicast_of, read_list, read_queue
from msmqwire.schema import Record

_PR, _TR = masks(BASE_HEADER, "PR TR")
_RC, _JN, _JP = masks(USER_HEADER, "RC JN JP")
_DM, _DQ, _AQ, _RQ = (USER_HEADER.bits(f"Flags.{name}") for name in ("DM", "DQ", "AQ", "RQ"))
_FA, _FM, _LM = masks(TRANSACTION_HEADER, "FA FM LM")
_ID: Final = TRANSACTION_HEADER.bits("Flags.ID")
_ST, _AS = SECURITY_HEADER.bits("Flags.ST"), SECURITY_HEADER.bits("Flags.AS")
_EB: Final = SECURITY_HEADER.bits("Flags.EB").mask
_AU: Final = SECURITY_HEADER.bits("Flags.AU").mask
_VERIFIED: Final = _AU | _AS.mask  # DMPR-3.1.7.1.32-10 and -11

_SHA1: Final = int(HashAlgorithm.CALG_SHA1)
_RC4: Final = int(EncryptionAlgorithm.CALG_RC4)
_MESSAGE_CLASSES: Final = {int(member): member for member in MessageClass}
_AUTHENTICATION_LEVELS: Final = {int(member): member for member in AuthenticationLevel}
_SENDER_TYPES: Final = {int(member): member for member in SenderIdentifierType}
_DELIVERY_GUARANTEES: Final = {int(member): member for member in DeliveryGuarantee}
_REQUESTED: Final = tuple(AcknowledgementsRequested(word) for word in range(16))


def deserialize(
    packet: Record | bytes, data: bytes | None = None, *, stored: bool = False, keep: bool = True
) -> Message:
    """Deserialize Message From Buffer: [MS-MQDMPR] 3.1.7.1.31.

    Args:
        packet: a UserMessage (also an OrderAck or a FinalAck), parsed or as bytes.
        data: the bytes of a parsed packet; built again if not given.
        stored: the packet is from this queue manager's store (`serialization.to_stored`), so that its
            AuthenticationLevel can be trusted. That of a received packet is None until its signature has been
            verified.
        keep: whether to set `Message.packet`, to forward the packet as received (except for a SessionHeader,
            and AU and AS, which are 0 on the wire).

    Raises MalformedPacket.
    """
    if not isinstance(packet, Record):
        data = bytes(packet)
        packet = USER_MESSAGE.parse(data)
    assert isinstance(packet, Record)
    message, properties = Message(), packet.MessagePropertiesHeader  # DMPR-3.1.7.1.31-01
    _read_head(packet.BaseHeader, packet.UserHeader, message)  # MQQB-3.1.7.10-01, DMPR-3.1.7.1.31-01
    _read_properties(properties, message)  # MQQB-3.1.7.10-01, DMPR-3.1.7.1.31-01

    if stored:
        message.destination = multicast_of(message.destination)
    if packet.TransactionHeader is not None:  # DMPR-3.1.7.1.31-02
        _read_transaction(packet.TransactionHeader, message)  # MQMQ-2.2.20.5-02
    if packet.SecurityHeader is not None:  # DMPR-3.1.7.1.31-02
        _read_security(packet.SecurityHeader, message)
        verified = packet.SecurityHeader.Flags & _VERIFIED  # DMPR-3.1.7.1.32-10 and -11
        if verified:
            if stored:
                kind = (verified & _AS.mask) >> _AS.shift
                message.signature_type = _AUTHENTICATION_LEVELS.get(kind, AuthenticationLevel.NONE)
                if verified & _AU:
                    message.authentication_level = message.signature_type  # DMPR-3.1.7.1.31-03
            data = packet.to_bytes() if data is None else data
            data = mark_verified(data, AuthenticationLevel.NONE, authenticated=False)
    if packet.DebugHeader is not None:  # DMPR-3.1.7.1.31-02
        # DMPR-3.1.7.1.31-39
        message.tracing_queue_identifier = packet.DebugHeader.QueueIdentifier or NULL_GUID  # DMPR-3.1.1.12-20
    if packet.SoapHeader is not None:
        message.soap_header, message.soap_body = (
            _text(packet.SoapHeader.Header),
            _text(packet.SoapHeader.Body),
        )
    if packet.MultiQueueFormatHeader is not None:  # DMPR-3.1.7.1.31-02
        _read_multi_queue(packet.MultiQueueFormatHeader, message)
    if packet.SRMPEnvelopeHeader is not None:
        message.soap_envelope = _text(packet.SRMPEnvelopeHeader.Data)
        header = packet.CompoundMessageHeader
        message.soap_compound_message = header.Data
        if stored and not message.body:
            message.body = header.Data[header.MsgBodyOffset : header.MsgBodyOffset + header.MsgBodySize]
        keep = keep and not stored  # such a packet is never sent
    if keep:
        message.packet = without_session_header(packet.to_bytes() if data is None else data)
    return message


def _read_properties(properties: Record, message: Message) -> None:
    """Read the MessagePropertiesHeader. Properties with the most common values are left to the class."""
    requested = int(properties.Flags) & 0x0F
    if requested:  # DMPR-3.1.1.12-39
        message.acknowledgements_requested = _REQUESTED[requested]  # DMPR-3.1.7.1.31-10, DMPR-3.1.1.12-39
    if properties.MessageClass:  # DMPR-3.1.1.12-06
        # DMPR-3.1.7.1.31-41 and -42
        message.message_class = _MESSAGE_CLASSES.get(properties.MessageClass, properties.MessageClass)
    if properties.CorrelationID != NO_CORRELATION:  # DMPR-3.1.1.12-38
        # DMPR-3.1.7.1.31-09, DMPR-3.1.1.12-38
        message.correlation_identifier = properties.CorrelationID  # DMPR-3.1.7.1.31-09, MQMQ-2.2.19.3-10
    if properties.BodyType:
        message.body_type = properties.BodyType  # DMPR-3.1.7.1.31-07
    if properties.ApplicationTag:
        message.application_tag = properties.ApplicationTag  # DMPR-3.1.7.1.31-08, MQMQ-2.2.19.3-14
    if properties.PrivacyLevel:  # DMPR-3.1.7.1.31-43
        message.privacy_level = properties.PrivacyLevel  # DMPR-3.1.1.12-13
    if properties.HashAlgorithm != _SHA1:  # DMPR-3.1.1.12-50
        message.hash_algorithm = properties.HashAlgorithm  # DMPR-3.1.7.1.31-46, DMPR-3.1.1.12-50
    if properties.EncryptionAlgorithm != _RC4:  # DMPR-3.1.1.12-51
        message.encryption_algorithm = properties.EncryptionAlgorithm  # DMPR-3.1.7.1.31-45, DMPR-3.1.1.12-51
    if properties.Label is not None:
        message.label = _label(_text(properties.Label))  # DMPR-3.1.7.1.31-12
    if properties.ExtensionData:
        message.extension = properties.ExtensionData  # DMPR-3.1.7.1.31-11
    message.body = properties.MessageBody  # DMPR-3.1.7.1.31-13


def deserialize_head(data: bytes) -> tuple[Message, Record | None]:
    """Read a message without its properties, and the SessionHeader of its packet: for `lacks_properties`.

    Nothing after the TransactionHeader is read. Raises MalformedPacket.
    """
    base, start = BASE_HEADER.read(data)
    counted = data[: base.PacketSize]
    user, end = USER_HEADER.read(counted, start)
    message = Message()
    _read_head(base, user, message)
    if user.Flags.TH:
        header, _ = TRANSACTION_HEADER.read(counted, end)
        _read_transaction(header, message)
    session = SESSION_HEADER.read(data, base.PacketSize)[0] if base.Flags.SH else None
    return message, session


def _read_head(base: Record, user: Record, message: Message) -> None:
    """Read BaseHeader and UserHeader."""
    word = int(base.Flags)
    message.priority = word & _PR  # DMPR-3.1.7.1.31-04
    if word & _TR:
        message.tracing_requested = True  # DMPR-3.1.7.1.31-05
    message.time_to_reach_queue = base.TimeToReachQueue  # DMPR-3.1.7.1.31-06

    word = int(user.Flags)
    source, address = user.SourceQueueManager, user.QueueManagerAddress
    delivery = _DELIVERY_GUARANTEES.get((word & _DM.mask) >> _DM.shift)
    if delivery is None:
        raise MalformedPacket("neither 0 nor 1", path="UserHeader.Flags.DM")
    if delivery:
        message.delivery_guarantee = delivery  # DMPR-3.1.7.1.31-33, MQMQ-2.2.19.2-11
    message.identifier = ObjectId(source, user.MessageID)  # DMPR-3.1.7.1.31-29
    message.source_machine_identifier = source  # DMPR-3.1.7.1.31-30
    message.destination_queue_manager_identifier = address  # DMPR-3.1.7.1.31-26, DMPR-3.1.1.12-52
    # DMPR-3.1.7.1.31-27 and -28
    message.sent_time, message.time_to_be_received = user.SentTime, user.TimeToBeReceived
    if word & _RC:
        message.hop_count = word & _RC  # MQMQ-2.2.19.2-10
    if word & _JP:  # MQMQ-2.2.19.2-19
        message.positive_journaling_requested = True  # DMPR-3.1.7.1.31-44, MQMQ-2.2.19.2-19
    if word & _JN:  # MQMQ-2.2.19.2-15
        message.negative_journaling_requested = True  # DMPR-3.1.7.1.31-44, MQMQ-2.2.19.2-15
    message.destination = read_queue(  # DMPR-3.1.7.1.31-32 and -47, MQMQ-2.2.19.2-21
        (word & _DQ.mask) >> _DQ.shift, user.DestinationQueue, "destination", source, address
    )
    if word & _AQ.mask:  # DMPR-3.1.1.12-30
        message.administration = read_queue(  # DMPR-3.1.7.1.31-31 and -48, MQMQ-2.2.19.2-23
            (word & _AQ.mask) >> _AQ.shift, user.AdminQueue, "admin", source, address
        )
    if word & _RQ.mask:  # DMPR-3.1.1.12-26
        message.response = read_queue(  # DMPR-3.1.7.1.31-34 and -49, MQMQ-2.2.19.2-27
            (word & _RQ.mask) >> _RQ.shift, user.ResponseQueue, "response", source, address,
            message.administration,
        )  # fmt: skip
    if user.ConnectorType is not None:  # DMPR-3.1.1.12-62
        # DMPR-3.1.7.1.31-40, DMPR-3.1.1.12-62
        message.connector_type_identifier = user.ConnectorType  # DMPR-3.1.7.1.31-40, MQMQ-2.2.19.2-45


def _read_transaction(header: Record, message: Message) -> None:
    word = int(header.Flags)
    message.priority = 0  # PR is ignored: DMPR-3.1.7.1.32-05
    message.delivery_guarantee = DeliveryGuarantee.RECOVERABLE  # MQMQ-2.2.19.2-13
    message.transaction_number = (word & _ID.mask) >> _ID.shift  # DMPR-3.1.7.1.31-20, MQMQ-2.2.20.5-09
    message.final_ack_required = word & _FA != 0  # DMPR-3.1.7.1.31-19, MQMQ-2.2.20.5-05
    message.first_in_transaction = word & _FM != 0  # DMPR-3.1.7.1.31-24, MQMQ-2.2.20.5-06
    message.last_in_transaction = word & _LM != 0  # DMPR-3.1.7.1.31-25, MQMQ-2.2.20.5-07
    sequence = header.TxSequenceID
    # DMPR-3.1.7.1.31-22, MQMQ-2.2.20.5-02
    message.transactional_message_sequence_identifier = TxSequenceId(sequence.TimeStamp, sequence.Ordinal)
    message.transaction_sequence_number = header.TxSequenceNumber  # DMPR-3.1.7.1.31-21
    message.transaction_previous_sequence_number = header.PreviousTxSequenceNumber  # DMPR-3.1.7.1.31-40
    if header.ConnectorQMGuid is not None:  # DMPR-3.1.1.12-63
        # MQMQ-2.2.20.5-16, DMPR-3.1.1.12-63
        message.connector_queue_manager_identifier = header.ConnectorQMGuid  # DMPR-3.1.7.1.31-23


def _read_security(header: Record, message: Message) -> None:
    data, sender_type = header.SecurityData, _SENDER_TYPES.get((header.Flags & _ST.mask) >> _ST.shift)
    if sender_type is None:
        raise MalformedPacket("none of 0, 1 and 2", path="SecurityHeader.Flags.ST")
    message.sender_identifier_type = sender_type  # DMPR-3.1.1.12-59, DMPR-3.1.7.1.31-50, MQMQ-2.2.20.6-02
    message.encrypted = header.Flags & _EB != 0  # MQMQ-2.2.20.6-07
    message.sender_identifier = data.SecurityID  # DMPR-3.1.7.1.31-17
    message.symmetric_key = data.EncryptionKey  # DMPR-3.1.7.1.31-16
    message.signature = data.Signature  # DMPR-3.1.7.1.31-40
    message.sender_certificate = data.SenderCert  # DMPR-3.1.7.1.31-18
    if data.ProviderInfo is not None:
        message.authentication_provider_type = data.ProviderInfo.ProviderType  # DMPR-3.1.7.1.31-14
        message.authentication_provider_name = _text(data.ProviderInfo.ProviderName)  # DMPR-3.1.7.1.31-15


def _read_multi_queue(header: Record, message: Message) -> None:
    message.destinations = read_list(header.Destination, "Destination")  # DMPR-3.1.7.1.31-35
    # DMPR-3.1.1.12-31
    message.administrations = read_list(header.Administration, "Administration")  # DMPR-3.1.7.1.31-36
    message.responses = read_list(header.Response, "Response")  # DMPR-3.1.7.1.31-37, DMPR-3.1.1.12-27
    message.multiple_destination_signature = header.Signature.Signature  # DMPR-3.1.7.1.31-38


def _label(text: str) -> str:
    """Return a label that can be sent again: a label that fills its field without a null is truncated."""
    if len(text) <= LABEL_MAX // 2:
        return text
    units = text.encode("utf-16-le", "surrogatepass")
    return units[: 2 * LABEL_MAX].decode("utf-16-le", "surrogatepass") if len(units) > 2 * LABEL_MAX else text


def _text(value: str | bytes | None) -> str:
    """Return a text field; of malformed UTF-16, the part before the first null, lone surrogates included."""
    if type(value) is str:
        return value
    if not value:
        return ""
    assert isinstance(value, bytes)
    return value[: len(value) & ~1].decode("utf-16-le", "surrogatepass").partition("\0")[0]
