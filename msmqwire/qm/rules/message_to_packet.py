"""Construction and serialization of packets: [MS-MQDMPR] 3.1.7.1.30 and 3.1.7.1.32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias
from uuid import UUID

from msmqwire.errors import InvalidValue
from msmqwire.headers import BASE_HEADER, SECURITY_HEADER, TRANSACTION_HEADER, USER_HEADER
from msmqwire.headers.base import PACKET_SIZE_MAX, SIGNATURE, VERSION
from msmqwire.headers.multiqueue import SIGNATURE_ID
from msmqwire.headers.properties import LABEL_LENGTH_MAX
from msmqwire.headers.session import SESSION_HEADER_SIZE
from msmqwire.headers.soap import BODY_SECTION_ID, HEADER_SECTION_ID
from msmqwire.packets import USER_MESSAGE
from msmqwire.qm.model.enumerations import DeliveryGuarantee
from msmqwire.qm.model.message import NO_SEQUENCE, Message
from msmqwire.qm.rules.packet_patch import masks
from msmqwire.qm.rules.queue_fields import queue_fields, queue_lists

SYSTEM_PROVIDERS: Final = frozenset(
    {
        "",
        "Microsoft Base Cryptographic Provider, v1.0",
        "Microsoft Enhanced Cryptographic Provider, v1.0",
        "Microsoft AES Cryptographic Provider",
    }
)
"""Providers that the queuing system itself signs with: DMPR-3.1.1.12-68, MQMQ-2.2.20.6-10."""

_CODEC: Final = USER_MESSAGE.codec
_PR, _TR = masks(BASE_HEADER, "PR TR")
_RC, _JN, _JP = masks(USER_HEADER, "RC JN JP")
_DM, _DQ, _AQ, _RQ = (USER_HEADER.bits(f"Flags.{name}").shift for name in ("DM", "DQ", "AQ", "RQ"))
_RECOVERABLE: Final = DeliveryGuarantee.RECOVERABLE << _DM
(_MP,) = masks(USER_HEADER, "MP")
_FA, _FM, _LM = masks(TRANSACTION_HEADER, "FA FM LM")
_ID: Final = TRANSACTION_HEADER.bits("Flags.ID")
_ST: Final = SECURITY_HEADER.bits("Flags.ST").shift
_EB, _DE = masks(SECURITY_HEADER, "EB DE")
_SHORT_LABEL: Final = (LABEL_LENGTH_MAX - 1) // 2
"""Characters that fit a label, whatever their width."""

Values: TypeAlias = "tuple[object, ...]"
"""The content of a header: its fields that are not computed, in order."""


# -- the headers of a message: 3.1.7.1.30 --------------------------------------------------------------


def _transactional(message: Message) -> bool:
    return (
        message.transactional_message_sequence_identifier is not None  # DMPR-3.1.7.1.30-02
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
    # DMPR-3.1.7.1.30-05, DMPR-3.1.7.1.32-06, MQMQ-2.2.19.1-15
    return message.tracing_requested or message.tracing_queue_identifier.int != 0


def _headers(message: Message, session: Sequence[int] | None, *, stored: bool) -> Values:
    """Return the headers of a packet in their order, None for those that the message does not need.

    Presence bits, sizes, counts and padding follow from the schema.
    """
    transactional = _transactional(message)
    priority = 0 if transactional else message.priority  # DMPR-3.1.7.1.32-03 and -04
    traced = _TR if message.tracing_requested else 0  # DMPR-3.1.7.1.32-06, MQMQ-2.2.19.1-14
    envelope = compound = None
    body = message.body  # DMPR-3.1.7.1.32-08 and -23
    from_http = message.soap_envelope or message.soap_compound_message
    if stored and from_http:  # MQMQ-2.2.19.2-39
        data, offset = message.soap_compound_message, message.soap_compound_message.find(body)
        envelope = 0, 0, _text(message.soap_envelope)
        compound = 0, 0, len(body), max(0, offset), data
        if data and offset >= 0:
            body = b""  # once is enough, and a packet may not have room for two
    return (
        (
            VERSION,
            0,
            priority | traced,
            SIGNATURE,
            message.time_to_reach_queue,  # DMPR-3.1.7.1.32-16
        ),
        _user(message, transactional=transactional),
        _transaction(message) if transactional else None,  # DMPR-3.1.7.1.30-01
        _security(message) if _secured(message) else None,  # DMPR-3.1.7.1.30-01
        (  # DMPR-3.1.7.1.30-04: always there
            message.acknowledgements_requested,  # DMPR-3.1.7.1.32-20, DMPR-3.1.1.12-39
            message.message_class,  # DMPR-3.1.7.1.32-54, DMPR-3.1.1.12-06
            message.correlation_identifier,  # DMPR-3.1.7.1.32-19, MQMQ-2.2.19.3-10
            message.body_type,  # DMPR-3.1.7.1.32-17
            message.application_tag,  # DMPR-3.1.7.1.32-18, MQMQ-2.2.19.3-14
            message.privacy_level,  # DMPR-3.1.7.1.32-55
            message.hash_algorithm,  # DMPR-3.1.7.1.32-58, DMPR-3.1.1.12-50
            message.encryption_algorithm,  # DMPR-3.1.7.1.32-57, DMPR-3.1.1.12-51
            _text(message.label) if message.label else None,  # DMPR-3.1.7.1.32-07 and -22
            message.extension,  # DMPR-3.1.7.1.32-09 and -21
            body,
            b"",
        ),
        # DMPR-3.1.7.1.32-52 and -53, MQMQ-2.2.19.1-12, DMPR-3.1.1.12-20
        (0, 0, _unless_null(message.tracing_queue_identifier)) if _traced(message) else None,
        envelope,
        compound,
        _soap(message) if message.soap_header or message.soap_body else None,
        _multi_queue(message) if message.destinations else None,  # DMPR-3.1.7.1.30-06, MQMQ-2.2.20.1-01
        b"",
        None if session is None else (*session, 0),
    )


def _user(message: Message, *, transactional: bool) -> Values:
    destination, admin, response = queue_fields(message)
    word = _MP | message.hop_count  # MQMQ-2.2.19.2-10, MQMQ-2.2.19.2-34, DMPR-3.1.7.1.30-04
    # MQMQ-2.2.19.2-21, -23, -27
    word |= destination.kind << _DQ | admin.kind << _AQ | response.kind << _RQ  # DMPR-3.1.7.1.32-59 to -61
    if transactional or message.delivery_guarantee:  # MQMQ-2.2.19.2-33, DMPR-3.1.7.1.32-46
        word |= _RECOVERABLE  # MQMQ-2.2.19.2-11
    if message.negative_journaling_requested:
        word |= _JN  # DMPR-3.1.7.1.32-56, MQMQ-2.2.19.2-15
    if message.positive_journaling_requested:
        word |= _JP  # DMPR-3.1.7.1.32-56, MQMQ-2.2.19.2-19
    return (
        message.source_machine_identifier,  # DMPR-3.1.7.1.32-43
        message.queue_manager_address,  # DMPR-3.1.7.1.32-38, DMPR-3.1.1.12-52, MQMQ-2.2.19.2-02
        message.time_to_be_received,  # DMPR-3.1.7.1.32-41
        message.sent_time,  # DMPR-3.1.7.1.32-40
        message.identifier.uniquifier,  # DMPR-3.1.7.1.32-42
        word,
        destination.data,  # DMPR-3.1.7.1.32-45
        admin.data,  # DMPR-3.1.7.1.32-44, DMPR-3.1.1.12-30
        response.data,  # DMPR-3.1.7.1.32-47, DMPR-3.1.1.12-26
        # DMPR-3.1.7.1.32-39, DMPR-3.1.1.12-62
        _unless_null(message.connector_type_identifier),  # DMPR-3.1.7.1.32-39, MQMQ-2.2.19.2-45
    )


def _transaction(message: Message) -> Values:
    word = message.transaction_number << _ID.shift  # DMPR-3.1.7.1.32-31, MQMQ-2.2.20.5-09
    if message.final_ack_required:
        word |= _FA  # DMPR-3.1.7.1.32-30, MQMQ-2.2.20.5-05
    if message.first_in_transaction:
        word |= _FM  # DMPR-3.1.7.1.32-36, MQMQ-2.2.20.5-06
    if message.last_in_transaction:
        word |= _LM  # DMPR-3.1.7.1.32-37, MQMQ-2.2.20.5-07
    sequence = message.transactional_message_sequence_identifier or NO_SEQUENCE
    return (
        word,
        (sequence.ordinal, sequence.time_stamp),  # DMPR-3.1.7.1.32-34
        message.transaction_sequence_number,  # DMPR-3.1.7.1.32-32
        message.transaction_previous_sequence_number,  # DMPR-3.1.7.1.32-33
        # DMPR-3.1.7.1.32-35, DMPR-3.1.1.12-63
        _unless_null(message.connector_queue_manager_identifier),  # DMPR-3.1.7.1.32-35, MQMQ-2.2.20.5-16
    )


def _security(message: Message) -> Values:
    word = message.sender_identifier_type << _ST  # DMPR-3.1.7.1.32-62, MQMQ-2.2.20.6-02
    if message.privacy_level:
        word |= _EB  # DMPR-3.1.7.1.32-12, MQMQ-2.2.20.6-07
    name = message.authentication_provider_name  # DMPR-3.1.7.1.32-14 and -25
    kind = message.authentication_provider_type  # DMPR-3.1.7.1.32-24
    provider = None
    if _signed_by_system(message):  # MQMQ-2.2.20.6-08, MQMQ-2.2.20.6-09
        word |= _DE  # MQMQ-2.2.20.6-08
    # MQMQ-2.2.20.6-36
    elif name or kind:  # written for providers other than the system's: MQMQ-2.2.20.6-35
        provider = kind, _text(name)  # DMPR-3.1.7.1.32-14, -24 and -25, MQMQ-2.2.20.6-09, MQMQ-2.2.20.6-36
    # A bare SecurityID has AI clear: MQMQ-2.2.20.6-12
    return word, (  # AU and AS stay 0: DMPR-3.1.7.1.32-10, -11 and -62
        message.sender_identifier,  # DMPR-3.1.7.1.32-28
        message.symmetric_key,  # DMPR-3.1.7.1.32-27
        message.signature,  # DMPR-3.1.7.1.32-26
        message.sender_certificate,  # DMPR-3.1.7.1.32-13 and -29
        provider,
    )


def _signed_by_system(message: Message) -> bool:
    """SecurityHeader.Flags.DE: DMPR-3.1.7.1.32-15."""
    signed = message.signature or message.multiple_destination_signature
    return bool(signed) and message.authentication_provider_name in SYSTEM_PROVIDERS


def _soap(message: Message) -> Values:
    return (
        HEADER_SECTION_ID,
        0,
        _text(message.soap_header),
        BODY_SECTION_ID,
        0,
        _text(message.soap_body),
    )


def _multi_queue(message: Message) -> Values:
    lists = queue_lists(
        tuple(name.text for name in message.destinations),  # DMPR-3.1.7.1.32-48
        tuple(name.text for name in message.administrations),  # DMPR-3.1.7.1.32-49
        tuple(name.text for name in message.responses),  # DMPR-3.1.7.1.32-50
    )
    return (*lists, (SIGNATURE_ID, 0, message.multiple_destination_signature))  # DMPR-3.1.7.1.32-51


def _unless_null(identifier: UUID) -> UUID | None:
    return identifier if identifier.int else None


def _text(text: str) -> bytes:
    """Encode a text with its null. Lone surrogates, which received packets may contain, are preserved."""
    return (text + "\0").encode("utf-16-le", "surrogatepass")


# -- serialization: 3.1.7.1.32 -------------------------------------------------------------------------


def new_packet(message: Message, session: Sequence[int] | None = None, *, stored: bool = False) -> bytes:
    """Return a new UserMessage packet of a message: [MS-MQDMPR] 3.1.7.1.30 and 3.1.7.1.32.

    Args:
        message: the message.
        session: the fields of a SessionHeader in their order, without Reserved.
        stored: whether to add the headers for the SOAP envelope of a message that was received over HTTP;
            they are never sent.

    Raises InvalidValue for attributes that do not fit, InvalidName for queues that a packet can't name.
    """
    _check(message)
    # DMPR-3.1.7.1.32-01
    data = _CODEC.compose(*_headers(message, session, stored=stored))
    size = len(data) if session is None else len(data) - SESSION_HEADER_SIZE
    if size > PACKET_SIZE_MAX:  # MQMQ-2.2.20-01
        raise InvalidValue(f"{size} is more than {PACKET_SIZE_MAX}", path="BaseHeader.PacketSize")
    return data


def _check(message: Message) -> None:
    """Raise InvalidValue for a number that does not fit its bits, or a label that is too long."""
    if not 0 <= message.priority <= _PR and not _transactional(message):
        raise InvalidValue(f"{message.priority} is not in 0..{_PR}", path="BaseHeader.Flags.PR")
    if not 0 <= message.hop_count <= _RC:
        raise InvalidValue(f"{message.hop_count} is not in 0..{_RC}", path="UserHeader.Flags.RC")
    number = message.transaction_number
    if not 0 <= number << _ID.shift <= _ID.mask and _transactional(message):
        raise InvalidValue(f"{number} does not fit {_ID.width} bits", path="TransactionHeader.Flags.ID")
    if len(message.label) > _SHORT_LABEL and len(_text(message.label)) > 2 * LABEL_LENGTH_MAX:
        raise InvalidValue(
            f"more than {LABEL_LENGTH_MAX - 1} characters", path="MessagePropertiesHeader.Label"
        )


def packet_size(message: Message) -> int:
    """Return the size of the packet that `new_packet` builds, however large. Raises as it does."""
    _check(message)
    return len(_CODEC.compose(*_headers(message, None, stored=False)))
