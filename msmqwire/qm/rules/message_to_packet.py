"""Construction and serialization of packets: [MS-MQDMPR] 3.1.7.1.30 and 3.1.7.1.32."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from msmqwire.errors import InvalidValue
from msmqwire.headers import (
    BASE_HEADER,
    COMPOUND_MESSAGE_HEADER,
    DEBUG_HEADER,
    MESSAGE_PROPERTIES_HEADER,
    MULTI_QUEUE_FORMAT_HEADER,
    SECURITY_HEADER,
    SOAP_HEADER,
    SRMP_ENVELOPE_HEADER,
    TRANSACTION_HEADER,
    TX_SEQUENCE_ID,
    USER_HEADER,
)
from msmqwire.headers.base import PACKET_SIZE_MAX, SIGNATURE, VERSION
from msmqwire.headers.properties import LABEL_LENGTH_MAX
from msmqwire.headers.security import PROVIDER_INFO, SECURITY_DATA
from msmqwire.headers.soap import BODY_SECTION_ID, HEADER_SECTION_ID
from msmqwire.packets import USER_MESSAGE
from msmqwire.qm.model.enumerations import DeliveryGuarantee
from msmqwire.qm.model.message import NULL_GUID, Message, TxSequenceId
from msmqwire.qm.rules.packet_patch import masks
from msmqwire.qm.rules.queue_fields import (
    QueueField,
    multi_queue_header,
    queue_fields,
)
from msmqwire.schema import FlagsValue, Header, Record, least_size
from msmqwire.schema.record import flags_class
from msmqwire.schema.utf16 import text_exact

SYSTEM_PROVIDERS: Final = frozenset(
    {
        "",
        "Microsoft Base Cryptographic Provider, v1.0",
        "Microsoft Enhanced Cryptographic Provider, v1.0",
        "Microsoft AES Cryptographic Provider",
    }
)
"""Providers that the queuing system itself signs with: DMPR-3.1.1.12-68, MQMQ-2.2.20.6-10."""

_new: Final = object.__new__
_PACKET, _BASE, _USER = USER_MESSAGE.record, BASE_HEADER.record, USER_HEADER.record
_TRANSACTION, _SEQUENCE = TRANSACTION_HEADER.record, TX_SEQUENCE_ID.record
_SECURITY, _DATA, _PROVIDER = SECURITY_HEADER.record, SECURITY_DATA.record, PROVIDER_INFO.record
_PROPERTIES, _DEBUG = MESSAGE_PROPERTIES_HEADER.record, DEBUG_HEADER.record
_SOAP, _ENVELOPE, _COMPOUND = SOAP_HEADER.record, SRMP_ENVELOPE_HEADER.record, COMPOUND_MESSAGE_HEADER.record


def _flags(header: Header) -> type[FlagsValue]:
    return flags_class(header.key, header.part("Flags"))  # type: ignore[arg-type]


_BASE_FLAGS, _USER_FLAGS = _flags(BASE_HEADER), _flags(USER_HEADER)
_TRANSACTION_FLAGS, _SECURITY_FLAGS = _flags(TRANSACTION_HEADER), _flags(SECURITY_HEADER)
_PROPERTIES_FLAGS, _DEBUG_FLAGS = _flags(MESSAGE_PROPERTIES_HEADER), _flags(DEBUG_HEADER)
_PR, _DH, _TR = masks(BASE_HEADER, "PR DH TR")
_RC, _JN, _JP = masks(USER_HEADER, "RC JN JP")
_DM, _DQ, _AQ, _RQ = (USER_HEADER.bits(f"Flags.{name}") for name in ("DM", "DQ", "AQ", "RQ"))
_SH, _TH, _MP, _CQ, _MQ, _AH, _HH = masks(USER_HEADER, "SH TH MP CQ MQ AH HH")
_HEADERS: Final = _SH | _TH | _MP | _MQ | _AH | _HH
_CG, _FA, _FM, _LM = masks(TRANSACTION_HEADER, "CG FA FM LM")
_ID: Final = TRANSACTION_HEADER.bits("Flags.ID")
_ST: Final = SECURITY_HEADER.bits("Flags.ST")
_EB, _DE, _AI = masks(SECURITY_HEADER, "EB DE AI")
_PUBLIC_TRACE_QUEUE: Final = 1  # DebugHeader.Flags.QT
_GUID_SIZE: Final = 16

_FIXED_SIZE: Final = least_size(BASE_HEADER) + least_size(USER_HEADER) + least_size(MESSAGE_PROPERTIES_HEADER)
_TRANSACTION_SIZE: Final = least_size(TRANSACTION_HEADER)
_SECURITY_SIZE: Final = least_size(SECURITY_HEADER)
_DEBUG_SIZE: Final = least_size(DEBUG_HEADER)
_PROVIDER_SIZE: Final = least_size(PROVIDER_INFO)
_SECTION_SIZE: Final = least_size(SOAP_HEADER) // 2
_ENVELOPE_SIZE: Final = least_size(SRMP_ENVELOPE_HEADER)
_COMPOUND_SIZE: Final = least_size(COMPOUND_MESSAGE_HEADER)
_PADDING: Final = tuple(bytes(count) for count in range(4))


# -- construction: 3.1.7.1.30 --------------------------------------------------------------------------


def _transactional(message: Message) -> bool:
    return (
        message.transactional_message_sequence_identifier is not None
        or message.transaction_identifier is not None
    )


def _secured(message: Message) -> bool:
    """Whether the message needs a SecurityHeader: not for signatures alone, see DMPR-3.1.7.1.30-03."""
    return bool(
        message.sender_identifier
        or message.authentication_level
        or message.privacy_level
        or message.signature
        or message.sender_certificate
        or message.symmetric_key
        or message.authentication_provider_name
        or message.authentication_provider_type
    )


def _traced(message: Message) -> bool:
    return message.tracing_requested or message.tracing_queue_identifier.int != 0


def construct(message: Message, *, stored: bool = False) -> Record:
    """Construct a UserMessage Packet: [MS-MQDMPR] 3.1.7.1.30.

    The record has the headers that the message needs and their presence bits; `serialize` writes the message
    into it. With `stored` it also has the headers for the SOAP envelope of a message that was received over
    HTTP; they are never sent (MQMQ-2.2.19.2-39).
    """
    record = _new(_PACKET)
    record.BaseHeader = base = _new(_BASE)
    base.VersionNumber, base.Reserved, base.Signature = VERSION, 0, SIGNATURE
    record.UserHeader = user = _new(_USER)
    record.MessagePropertiesHeader = _new(_PROPERTIES)  # DMPR-3.1.7.1.30-04: MP is always set
    record.TransactionHeader = record.SecurityHeader = record.DebugHeader = record.SoapHeader = None
    record.SRMPEnvelopeHeader = record.CompoundMessageHeader = record.MultiQueueFormatHeader = None
    record.TrailingData, record.SessionHeader = b"", None
    user_flags, base_flags = _MP, 0
    if _transactional(message):
        record.TransactionHeader = transaction = _new(_TRANSACTION)
        transaction.TxSequenceID = _new(_SEQUENCE)
        user_flags |= _TH
    if _secured(message):
        record.SecurityHeader = security = _new(_SECURITY)
        security.SecurityData = _new(_DATA)
        user_flags |= _SH
    if _traced(message):
        record.DebugHeader = _new(_DEBUG)
        base_flags = _DH  # MQMQ-2.2.19.1-12
    if message.soap_header or message.soap_body:
        record.SoapHeader = _new(_SOAP)
        user_flags |= _HH
    if stored and (message.soap_envelope or message.soap_compound_message):
        record.SRMPEnvelopeHeader = _new(_ENVELOPE)
        record.CompoundMessageHeader = _new(_COMPOUND)
        user_flags |= _AH
    if message.destinations:
        record.MultiQueueFormatHeader = MULTI_QUEUE_FORMAT_HEADER.record()
        user_flags |= _MQ
    base.Flags, user.Flags = _BASE_FLAGS(base_flags), _USER_FLAGS(user_flags)
    return record


# -- serialization: 3.1.7.1.32 -------------------------------------------------------------------------


def serialize(message: Message, record: Record) -> None:
    """Serialize Message to Buffer: [MS-MQDMPR] 3.1.7.1.32. `record` is that of `construct` for the message.

    Raises InvalidValue for attributes that do not fit, InvalidName for queues that a packet can't name.
    """
    queues = queue_fields(message)
    destination, admin, response = queues
    size = _size(message, queues)

    base = record.BaseHeader
    transactional = record.TransactionHeader is not None
    word = base.Flags & _DH | (_TR if message.tracing_requested else 0)
    if not transactional:  # DMPR-3.1.7.1.32-04: else it is 0
        if not 0 <= message.priority <= _PR:
            raise InvalidValue(f"{message.priority} is not in 0..{_PR}", path="BaseHeader.Flags.PR")
        word |= message.priority
    base.Flags = _BASE_FLAGS(word)
    base.TimeToReachQueue = message.time_to_reach_queue

    user = record.UserHeader
    user.SourceQueueManager = message.source_machine_identifier
    user.QueueManagerAddress = message.queue_manager_address  # DMPR-3.1.7.1.32-38
    user.TimeToBeReceived, user.SentTime = message.time_to_be_received, message.sent_time
    user.MessageID = message.identifier.uniquifier
    user.DestinationQueue, user.AdminQueue = destination.record, admin.record
    user.ResponseQueue = response.record
    if not 0 <= message.hop_count <= _RC:
        raise InvalidValue(f"{message.hop_count} is not in 0..{_RC}", path="UserHeader.Flags.RC")
    word = user.Flags & _HEADERS | message.hop_count
    word |= destination.kind << _DQ.shift | admin.kind << _AQ.shift | response.kind << _RQ.shift
    if transactional or message.delivery_guarantee:  # MQMQ-2.2.19.2-33
        word |= DeliveryGuarantee.RECOVERABLE << _DM.shift
    if message.negative_journaling_requested:
        word |= _JN
    if message.positive_journaling_requested:
        word |= _JP
    user.ConnectorType = None
    if message.connector_type_identifier.int:
        user.ConnectorType = message.connector_type_identifier
        word |= _CQ
    user.Flags = _USER_FLAGS(word)

    _write_properties(message, record.MessagePropertiesHeader)
    if transactional:
        _write_transaction(message, record.TransactionHeader)
    if record.SecurityHeader is not None:
        _write_security(message, record.SecurityHeader)
    if record.DebugHeader is not None:
        _write_debug(message.tracing_queue_identifier, record.DebugHeader)
    if record.SoapHeader is not None:
        _write_soap(message, record.SoapHeader)
    if record.MultiQueueFormatHeader is not None:
        record.MultiQueueFormatHeader, _ = _multi_queue(message)
    if record.SRMPEnvelopeHeader is not None:
        size += _write_envelope(message, record.SRMPEnvelopeHeader)
        size += _write_compound(message, record.CompoundMessageHeader)
    if size > PACKET_SIZE_MAX:
        raise InvalidValue(f"{size} is more than {PACKET_SIZE_MAX}", path="BaseHeader.PacketSize")
    base.PacketSize = size  # DMPR-3.1.7.1.32-02


def _write_properties(message: Message, properties: Record) -> None:
    extension, body = message.extension, message.body
    label, units = _label(message.label)
    if units > LABEL_LENGTH_MAX:
        raise InvalidValue(
            f"more than {LABEL_LENGTH_MAX - 1} characters", path="MessagePropertiesHeader.Label"
        )
    properties.Flags = _PROPERTIES_FLAGS(message.acknowledgements_requested)
    properties.LabelLength, properties.Label = units, label
    properties.MessageClass = message.message_class
    properties.CorrelationID = message.correlation_identifier
    properties.BodyType, properties.ApplicationTag = message.body_type, message.application_tag
    properties.MessageSize = properties.AllocationBodySize = len(body)
    properties.PrivacyLevel = message.privacy_level
    properties.HashAlgorithm = message.hash_algorithm
    properties.EncryptionAlgorithm = message.encryption_algorithm
    properties.ExtensionSize, properties.ExtensionData = len(extension), extension
    properties.MessageBody, properties.MessageBodySlack = body, b""
    properties.Padding = _PADDING[-(2 * units + len(extension) + len(body)) % 4]


def _write_transaction(message: Message, header: Record) -> None:
    number = message.transaction_number
    if not 0 <= number << _ID.shift <= _ID.mask:
        raise InvalidValue(f"{number} does not fit {_ID.width} bits", path="TransactionHeader.Flags.ID")
    word = number << _ID.shift
    if message.final_ack_required:
        word |= _FA
    if message.first_in_transaction:
        word |= _FM
    if message.last_in_transaction:
        word |= _LM
    header.ConnectorQMGuid = None
    if message.connector_queue_manager_identifier != NULL_GUID:
        header.ConnectorQMGuid = message.connector_queue_manager_identifier
        word |= _CG
    header.Flags = _TRANSACTION_FLAGS(word)
    sequence = message.transactional_message_sequence_identifier or TxSequenceId()
    header.TxSequenceID.Ordinal, header.TxSequenceID.TimeStamp = sequence.ordinal, sequence.time_stamp
    header.TxSequenceNumber = message.transaction_sequence_number
    header.PreviousTxSequenceNumber = message.transaction_previous_sequence_number


def _write_security(message: Message, header: Record) -> None:
    data, provider = header.SecurityData, _provider_size(message)
    sender, key = message.sender_identifier, message.symmetric_key
    signature, certificate = message.signature, message.sender_certificate
    word = message.sender_identifier_type << _ST.shift  # AU and AS stay 0: DMPR-3.1.7.1.32-10 and -11
    if message.privacy_level:
        word |= _EB
    if _signed_by_system(message):
        word |= _DE
    if key or signature or certificate or provider:  # a bare SecurityID has AI clear: MQMQ-2.2.20.6-12
        word |= _AI
    header.Flags = _SECURITY_FLAGS(word)
    header.SenderIdSize, header.EncryptionKeySize = len(sender), len(key)
    header.SignatureSize, header.SenderCertSize = len(signature), len(certificate)
    header.ProviderInfoSize = provider
    data.SecurityID, data.SecurityIDPadding = sender, _PADDING[-len(sender) % 4]
    data.EncryptionKey, data.EncryptionKeyPadding = key, _PADDING[-len(key) % 4]
    data.Signature, data.SignaturePadding = signature, _PADDING[-len(signature) % 4]
    data.SenderCert, data.SenderCertPadding = certificate, _PADDING[-len(certificate) % 4]
    data.ProviderInfo, data.ProviderInfoPadding = None, _PADDING[-provider % 4]
    if provider:
        data.ProviderInfo = _PROVIDER(
            ProviderType=message.authentication_provider_type,
            ProviderName=text_exact(_utf16(message.authentication_provider_name)),
        )


def _signed_by_system(message: Message) -> bool:
    """SecurityHeader.Flags.DE: DMPR-3.1.7.1.32-15."""
    signed = message.signature or message.multiple_destination_signature
    return bool(signed) and message.authentication_provider_name in SYSTEM_PROVIDERS


def _provider_size(message: Message) -> int:
    """Return the size of ProviderInfo, written for providers other than the system's: MQMQ-2.2.20.6-35."""
    name, kind = message.authentication_provider_name, message.authentication_provider_type
    if not (name or kind) or _signed_by_system(message):
        return 0
    return _PROVIDER_SIZE + len(_utf16(name))


def _write_debug(queue: UUID, header: Record) -> None:
    has_queue = queue != NULL_GUID
    header.Flags = _DEBUG_FLAGS(_PUBLIC_TRACE_QUEUE if has_queue else 0)  # DMPR-3.1.7.1.32-53
    header.Reserved, header.QueueIdentifier = 0, queue if has_queue else None


def _write_soap(message: Message, header: Record) -> None:
    header.HeaderSectionID, header.BodySectionID = HEADER_SECTION_ID, BODY_SECTION_ID
    header.Reserved = header.Reserved1 = 0
    header.Header, header.HeaderDataLength = _text(message.soap_header)
    header.HeaderPadding = _PADDING[-2 * header.HeaderDataLength % 4]
    header.Body, header.BodyDataLength = _text(message.soap_body)
    header.Padding = _PADDING[-2 * header.BodyDataLength % 4]


def _section_size(text: str) -> int:
    """Return the size of a section of a SoapHeader."""
    return _SECTION_SIZE + (2 * _text(text)[1] + 3 & ~3)


def _multi_queue(message: Message) -> tuple[Record, int]:
    return multi_queue_header(
        tuple(name.text for name in message.destinations),
        tuple(name.text for name in message.administrations),
        tuple(name.text for name in message.responses),
        message.multiple_destination_signature,
    )


def _write_envelope(message: Message, header: Record) -> int:
    """Write a SRMPEnvelopeHeader; return its size."""
    header.HeaderId = header.Reserved = 0
    header.Data, units = _text(message.soap_envelope)
    header.DataLength, header.Padding = units, _PADDING[-2 * units % 4]
    return _ENVELOPE_SIZE + (2 * units + 3 & ~3)


def _write_compound(message: Message, header: Record) -> int:
    """Write a CompoundMessageHeader; return its size."""
    compound = message.soap_compound_message
    header.HeaderId = header.Reserved = 0
    header.Data, header.HTTPBodySize = compound, len(compound)
    header.MsgBodySize, header.MsgBodyOffset = len(message.body), max(0, compound.find(message.body))
    header.Padding = _PADDING[-len(compound) % 4]
    return _COMPOUND_SIZE + (len(compound) + 3 & ~3)


def _label(text: str) -> tuple[str | bytes | None, int]:
    """Return a label as its field, and its characters with the null: 0 for an empty one."""
    if not text:
        return None, 0
    if text.isascii():
        return text, len(text) + 1
    data = _utf16(text)
    return text_exact(data), len(data) // 2


def _text(text: str) -> tuple[str | bytes | None, int]:
    """Return a text as its field, and its characters with the null."""
    if text.isascii() and "\0" not in text:
        return text, len(text) + 1
    data = _utf16(text)
    return text_exact(data), len(data) // 2


def _utf16(text: str) -> bytes:
    """Encode a text with its null. Lone surrogates, which received packets may contain, are preserved."""
    return (text + "\0").encode("utf-16-le", "surrogatepass")


def _size(message: Message, queues: tuple[QueueField, QueueField, QueueField]) -> int:
    """Return BaseHeader.PacketSize without the headers that are only stored."""
    destination, admin, response = queues
    _, units = _label(message.label)
    size = _FIXED_SIZE + destination.size + admin.size + response.size
    size += 2 * units + len(message.extension) + len(message.body) + 3 & ~3
    if message.connector_type_identifier.int:
        size += _GUID_SIZE
    if _transactional(message):
        size += _TRANSACTION_SIZE
        if message.connector_queue_manager_identifier != NULL_GUID:
            size += _GUID_SIZE
    if _secured(message):
        size += (
            _SECURITY_SIZE + (len(message.sender_identifier) + 3 & ~3) + (len(message.symmetric_key) + 3 & ~3)
        )
        size += (len(message.signature) + 3 & ~3) + (len(message.sender_certificate) + 3 & ~3)
        size += _provider_size(message) + 3 & ~3
    if _traced(message):
        size += _DEBUG_SIZE + (_GUID_SIZE if message.tracing_queue_identifier != NULL_GUID else 0)
    if message.soap_header or message.soap_body:
        size += _section_size(message.soap_header) + _section_size(message.soap_body)
    if message.destinations:
        size += _multi_queue(message)[1]
    return size


def packet_size(message: Message) -> int:
    """Return the size of the packet that `serialize` would build. Raises InvalidName."""
    return _size(message, queue_fields(message))
