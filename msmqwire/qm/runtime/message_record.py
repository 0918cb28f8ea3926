"""Messages as records of bytes: the content of `message_json`, without base64 and fast to make.

A record is `_FIXED`, then the body and the other parts of any length, in the order of their lengths. All
numbers are little-endian. docs/control-channel.md describes every byte.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final
from uuid import UUID

from msmqwire.errors import MalformedPacket
from msmqwire.names import FormatName
from msmqwire.names.printable import counted
from msmqwire.qm.model.enumerations import AcknowledgementsRequested, MoveReason, SenderIdentifierType
from msmqwire.qm.model.message import Message, ObjectId
from msmqwire.qm.runtime.deliveries import EXPRESS, RECOVERABLE, TRANSACTIONAL
from msmqwire.qm.runtime.message_json import (
    acknowledgement_names,
    delivery,
    identifier_text,
    name_text,
    names_source,
    reason_text,
    seconds_or_none,
    sender_text,
    time_of,
)
from msmqwire.qm.runtime.message_protection import CIPHERS, VERSIONS, cipher_of, signature_of

# lookup identifier, lineage and uniquifier of the identifier, source, correlation, sent, arrived, time to
# reach the queue, time to be received, application, body type, class, flags, priority, acknowledgements,
# hops, signature, cipher; then the lengths of body, extension, sender certificate, label, sender,
# destination, administration queue and response queue
_FIXED: Final = Struct("<Q16sI16s20sIIIIIIHBBBBBB8I")
_LENGTHS: Final = Struct("<8I")
# at the end, with _WITH_HISTORY: deliveries, reason
_HISTORY: Final = Struct("<IB")
_FLAGS_AT: Final = 90
_LENGTHS_AT: Final = _FIXED.size - _LENGTHS.size
_BODY_SIZE: Final = Struct("<I")

_RECOVERABLE: Final = 0x01
_TRANSACTIONAL: Final = 0x02
_JOURNAL: Final = 0x04
_DEAD_LETTER: Final = 0x08
_AUTHENTICATED: Final = 0x10
_NO_SOURCE: Final = 0x20
_SID: Final = 0x40
_WITH_HISTORY: Final = 0x80
_DELIVERIES: Final = {EXPRESS: 0, RECOVERABLE: _RECOVERABLE, TRANSACTIONAL: _RECOVERABLE | _TRANSACTIONAL}
_SIGNATURES: Final = (None, *VERSIONS)
_CIPHERS: Final = (None, *CIPHERS)
_SURROGATES: Final = "surrogatepass"
"""Labels of hostile senders may have lone surrogates; they pass as in JSON."""


def write_record(message: Message) -> bytes:
    """Return the record of a message."""
    body, extension, certificate = message.body, message.extension, message.sender_certificate
    label, sender = message.label.encode("utf-8", _SURROGATES), message.sender_identifier
    destination, admin, response = (
        _name(message.destination),
        _name(message.administration),
        _name(message.response),
    )
    flags = _DELIVERIES[delivery(message)]
    if message.positive_journaling_requested:
        flags |= _JOURNAL
    if message.negative_journaling_requested:
        flags |= _DEAD_LETTER
    if message.authentication_level:
        flags |= _AUTHENTICATED
    if not names_source(message):
        flags |= _NO_SOURCE
    if message.sender_identifier_type is SenderIdentifierType.SID:
        flags |= _SID
    history = b""
    if message.deliveries or message.move_reason:
        flags |= _WITH_HISTORY
        history = _HISTORY.pack(message.deliveries, message.move_reason)
    signature, cipher = signature_of(message), cipher_of(message)
    identifier = message.identifier
    fixed = _FIXED.pack(
        message.lookup_identifier,
        identifier.lineage.bytes,
        identifier.uniquifier,
        message.source_machine_identifier.bytes,
        message.correlation_identifier,
        message.sent_time,
        message.arrival_time,
        message.time_to_reach_queue,
        message.time_to_be_received,
        message.application_tag,
        message.body_type,
        message.message_class,
        flags,
        message.priority,
        message.acknowledgements_requested,
        message.hop_count,
        0 if signature is None else _SIGNATURES.index(signature),
        0 if cipher is None else _CIPHERS.index(cipher),
        len(body),
        len(extension),
        len(certificate),
        len(label),
        len(sender),
        len(destination),
        len(admin),
        len(response),
    )
    return b"".join(
        (fixed, body, extension, certificate, label, sender, destination, admin, response, history)
    )


def _name(name: FormatName | None) -> bytes:
    text = name_text(name)
    return b"" if text is None else text.encode("utf-8", _SURROGATES)


def check_record(record: bytes) -> None:
    """Raise MalformedPacket if the length can't be that of a record."""
    if len(record) < _FIXED.size:
        raise MalformedPacket(
            f"{counted(len(record), 'byte')} of a record, which has {_FIXED.size:,} at least"
        )
    size = _FIXED.size + sum(_LENGTHS.unpack_from(record, _LENGTHS_AT))
    if record[_FLAGS_AT] & _WITH_HISTORY:
        size += _HISTORY.size
    if size != len(record):
        raise MalformedPacket(f"a record has {counted(len(record), 'byte')}, and {size} by its lengths")


def body_of(record: bytes) -> bytes:
    """Return the body of a record that was checked."""
    return record[_FIXED.size : _FIXED.size + _BODY_SIZE.unpack_from(record, _LENGTHS_AT)[0]]


def read_record(record: bytes) -> dict[str, Any]:
    """Return the content of a checked record besides the body: the properties of a `ReceivedMessage`.

    Raises MalformedPacket.
    """
    (
        lookup_identifier, lineage, uniquifier, source, correlation, sent, arrived, reach, received,
        application, body_type, message_class, flags, priority, acknowledge, hops, signature, cipher,
        *lengths,
    ) = _FIXED.unpack_from(record)  # fmt: skip
    at = _FIXED.size + lengths[0]
    parts = []
    for length in lengths[1:]:
        parts.append(record[at : at + length])
        at += length
    extension, certificate, label, sender, destination, admin, response = parts
    deliveries, reason = _HISTORY.unpack_from(record, at) if flags & _WITH_HISTORY else (0, 0)
    try:
        return {  # by name, in the form of a message
            "identifier": identifier_text(ObjectId(UUID(bytes=lineage), uniquifier)),
            "lookup_identifier": lookup_identifier,
            "label": label.decode("utf-8", _SURROGATES),
            "body_type": body_type,
            "message_class": message_class,
            "recoverable": bool(flags & _RECOVERABLE),
            "transactional": bool(flags & _TRANSACTIONAL),
            "priority": priority,
            "sent": time_of(sent),
            "arrived": time_of(arrived),
            "time_to_reach_queue": seconds_or_none(reach),
            "time_to_be_received": seconds_or_none(received),
            "source": None if flags & _NO_SOURCE else UUID(bytes=source),
            "sender": sender_text(sender, is_sid=bool(flags & _SID)),
            "acknowledge": tuple(acknowledgement_names(AcknowledgementsRequested(acknowledge))),
            "admin_queue": admin.decode("utf-8", _SURROGATES) or None,
            "response_queue": response.decode("utf-8", _SURROGATES) or None,
            "destination": destination.decode("utf-8", _SURROGATES) or None,
            "correlation": identifier_text(ObjectId.from_bytes(correlation)) if any(correlation) else None,
            "application": application,
            "extension": extension,
            "journal": bool(flags & _JOURNAL),
            "dead_letter": bool(flags & _DEAD_LETTER),
            "hops": hops,
            "deliveries": deliveries,
            "reason": reason_text(MoveReason(reason)),
            "authenticated": bool(flags & _AUTHENTICATED),
            "signature": _SIGNATURES[signature],
            "sender_certificate": certificate or None,
            "encrypted": _CIPHERS[cipher],
        }
    except (ValueError, IndexError) as exc:
        raise MalformedPacket(f"a record is not a valid message: {exc}") from None
