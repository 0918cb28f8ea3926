"""Messages as JSON: messages in a queue, for commands and programs, and messages to send."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from socket import gethostname
from typing import Any, Final
from uuid import UUID

from msmqwire.constants import class_name, is_legal_class
from msmqwire.errors import InvalidName, InvalidValue, MalformedPacket
from msmqwire.headers.security_descriptor import sid_text
from msmqwire.names import FormatName
from msmqwire.names.meant import wanted_format_name
from msmqwire.names.uris import http_uri
from msmqwire.qm.model.enumerations import (
    INFINITE,
    AcknowledgementsRequested,
    DeliveryGuarantee,
    MoveReason,
    SenderIdentifierType,
)
from msmqwire.qm.model.message import LABEL_MAX, NULL_GUID, Message, ObjectId
from msmqwire.qm.rules.queue_states import is_http
from msmqwire.qm.runtime.deliveries import DELIVERIES, EXPRESS, RECOVERABLE, TRANSACTIONAL
from msmqwire.qm.runtime.message_protection import PROPERTIES, protection_json

_SINGLE_BITS: Final = {
    flag: str(flag.name).removeprefix("ACK_").lower()
    for flag in (
        AcknowledgementsRequested.ACK_POS_ARRIVAL,
        AcknowledgementsRequested.ACK_POS_RECEIVE,
        AcknowledgementsRequested.ACK_NEG_ARRIVAL,
        AcknowledgementsRequested.ACK_NEG_RECEIVE,
    )
}
ACKNOWLEDGEMENTS: Final = {
    name.removeprefix("ACK_").lower(): flag for name, flag in AcknowledgementsRequested.__members__.items()
}
"""The acknowledgements that can be requested, by name: ``full_receive`` and the like."""
_UINT32_MAX: Final = 0xFFFFFFFF


# -- out ------------------------------------------------------------------------------------------------


def identifier_text(identifier: ObjectId) -> str:
    r"""Return a message identifier in the form that MSMQ shows, ``guid\number``."""
    return f"{_guid_text(identifier.lineage)}\\{identifier.uniquifier}"


_guid_text: Final = lru_cache(maxsize=1024)(str)
"""The text of a GUID; GUIDs of queue managers recur."""


def message_json(message: Message, body_max: int | None = None) -> dict[str, Any]:
    """Return a message as one JSON object.

    Bytes are base64, times ISO 8601 in UTC, durations seconds, names of queues format names; missing values
    are null, as is the source of a message by HTTP that does not name it. With `body_max`, ``body`` has that
    many bytes at most, and ``body_size`` counts all of them. ``deliveries`` counts the times that a program
    has received it and did not end it; ``reason`` is why a policy moved it to its queue.
    """
    correlation = message.correlation_identifier
    return {
        "identifier": identifier_text(message.identifier),
        "lookup_identifier": message.lookup_identifier,
        "label": message.label,
        "body": b64encode(message.body if body_max is None else message.body[:body_max]).decode(),
        **({} if body_max is None else {"body_size": len(message.body)}),
        "body_type": message.body_type,
        "class": message.message_class,
        "class_name": class_name(message.message_class),
        "delivery": delivery(message),
        "priority": message.priority,
        "sent": time_text(message.sent_time),
        "arrived": time_text(message.arrival_time),
        "time_to_reach_queue": seconds_or_none(message.time_to_reach_queue),
        "time_to_be_received": seconds_or_none(message.time_to_be_received),
        "source": _source(message),
        "sender": sender_text(
            message.sender_identifier, is_sid=message.sender_identifier_type is SenderIdentifierType.SID
        ),
        "acknowledge": acknowledgement_names(message.acknowledgements_requested),
        "admin_queue": name_text(message.administration),
        "response_queue": name_text(message.response),
        "destination": name_text(message.destination),
        "correlation": identifier_text(ObjectId.from_bytes(correlation)) if any(correlation) else None,
        "application": message.application_tag,
        "extension": b64encode(message.extension).decode() if message.extension else None,
        "journal": message.positive_journaling_requested,
        "dead_letter": message.negative_journaling_requested,
        "hops": message.hop_count,
        "deliveries": message.deliveries,
        "reason": reason_text(message.move_reason),
        **protection_json(message),
    }


_REASONS: Final = {MoveReason.DELIVERY_LIMIT: "delivery_limit", MoveReason.QUOTA: "quota"}


def reason_text(reason: MoveReason) -> str | None:
    """Return why the queue manager moved a message: ``delivery_limit``, ``quota``; None if it did not."""
    return _REASONS.get(reason)


def delivery(message: Message) -> str:
    """Return ``express``, ``recoverable`` or ``transactional``."""
    if message.transactional or message.transaction_identifier is not None:
        return TRANSACTIONAL
    return RECOVERABLE if message.recoverable else EXPRESS


def not_transactional(properties: Mapping[str, Any]) -> str:
    """Return the delivery of a message in a queue that takes no transactional ones."""
    return EXPRESS if properties["delivery"] == EXPRESS else RECOVERABLE


def sender_text(identifier: bytes, *, is_sid: bool) -> str | None:
    """Return the sender that a message claims: a SID as S-1-..., a queue manager as a GUID, else hex."""
    if not identifier:
        return None
    if is_sid:
        try:
            return sid_text(identifier)
        except MalformedPacket:
            return identifier.hex()
    return str(UUID(bytes_le=identifier)) if len(identifier) == 16 else identifier.hex()


def acknowledgement_names(flags: AcknowledgementsRequested) -> list[str]:
    """Return the names of the acknowledgements that a sender asks for."""
    return [name for flag, name in _SINGLE_BITS.items() if flags & flag] if flags else []


def time_of(seconds: int) -> datetime | None:
    """Return a time of a message; None for 0, which means none."""
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


def time_text(seconds: int) -> str | None:
    """Return a time, given in seconds since 1970-01-01 UTC, as ISO 8601; None for 0."""
    time = time_of(seconds)
    return None if time is None else time.isoformat().replace("+00:00", "Z")


def seconds_or_none(value: int) -> int | None:
    """Return a limit of a message in seconds; None for no limit."""
    return None if value == INFINITE else value


def _source(message: Message) -> str | None:
    return str(message.source_machine_identifier) if names_source(message) else None


def names_source(message: Message) -> bool:
    """Return whether a message names the queue manager that sent it: a message by HTTP need not."""
    return not message.soap_envelope or message.source_machine_identifier != NULL_GUID


def name_text(name: FormatName | None) -> str | None:
    """Return the name of a queue as programs use it."""
    if name is None or not is_http(name):
        return None if name is None else str(name)
    return f"DIRECT={http_uri(name)}"


# -- in -------------------------------------------------------------------------------------------------


def message_from(properties: Mapping[str, Any]) -> Message:
    """Return a message to be sent, from properties with the names that `message_json` uses.

    ``body``, ``body_type``, ``label``, ``priority``, ``delivery``, ``class``, ``correlation`` (an identifier
    as text, or 20 bytes in hex), ``application``, ``extension``, ``acknowledge`` (names of
    `ACKNOWLEDGEMENTS`), ``admin_queue``, ``response_queue``, ``journal``, ``dead_letter``,
    ``time_to_reach_queue`` and ``time_to_be_received`` are all optional. Its protection is left to
    `message_protection.protect`.

    Raises InvalidValue and InvalidName with the name of the property as the path.
    """
    message = Message()
    for name, value in properties.items():
        if name in PROPERTIES:
            continue
        reader = _READERS.get(name)
        if reader is None:
            raise InvalidValue("not a property of a message that is sent", path=name)
        if value is not None:
            attribute, read = reader
            setattr(message, attribute, read(value, name))
    return message


def identifier_from(text: str, path: str = "identifier") -> ObjectId:
    r"""Parse a message identifier, ``guid\number``. Raises InvalidValue."""
    lineage, _, number = text.partition("\\")
    try:
        identifier = ObjectId(UUID(lineage), int(number))
    except ValueError:
        identifier = ObjectId(uniquifier=-1)
    if not 0 <= identifier.uniquifier <= _UINT32_MAX:
        raise InvalidValue(f"{text[:100]!r} is not an identifier: guid\\number", path=path)
    return identifier


def _text(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise InvalidValue(f"{value!r:.100} is not a text", path=path)
    return value


def _label(value: object, path: str) -> str:
    text = _text(value, path)
    if len(text.encode("utf-16-le", "surrogatepass")) // 2 > LABEL_MAX:
        raise InvalidValue(f"a label has {LABEL_MAX} characters at most", path=path)
    return text


def _bytes(value: object, path: str) -> bytes:
    try:
        return b64decode(_text(value, path), validate=True)
    except ValueError:
        raise InvalidValue("not base64, as aGVsbG8= for hello", path=path) from None


def flag(value: object, path: str) -> bool:
    """Return a value if it is true or false. Raises InvalidValue."""
    if not isinstance(value, bool):
        raise InvalidValue(f"{value!r:.100} is neither true nor false", path=path)
    return value


def number(value: object, path: str, most: int = _UINT32_MAX, least: int = 0) -> int:
    """Return a value if it is a whole number within bounds. Raises InvalidValue."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidValue(f"{value!r:.100} is not a whole number from {least} to {most}", path=path)
    return value


def _priority(value: object, path: str) -> int:
    return number(value, path, 7)


def _class(value: object, path: str) -> int:
    message_class = number(value, path, 0xFFFF)
    if not is_legal_class(message_class):
        raise InvalidValue(f"0x{message_class:04X} is not a class that a message may have", path=path)
    return message_class


def _correlation(value: object, path: str) -> bytes:
    text = _text(value, path)
    if "\\" in text:
        return bytes(identifier_from(text, path))
    try:
        correlation = bytes.fromhex(text)
    except ValueError:
        correlation = b""
    if len(correlation) != 20:
        raise InvalidValue("neither an identifier (guid\\number) nor 20 bytes in hex", path=path)
    return correlation


def _acknowledgements(value: object, path: str) -> AcknowledgementsRequested:
    names = value if isinstance(value, list) else [value]
    flags = AcknowledgementsRequested.NONE
    for name in names:
        if not isinstance(name, str) or name not in ACKNOWLEDGEMENTS:
            raise InvalidValue(f"{name!r:.100} is none of {', '.join(ACKNOWLEDGEMENTS)}", path=path)
        flags |= ACKNOWLEDGEMENTS[name]
    return flags


def _delivery(value: object, path: str) -> DeliveryGuarantee:
    if value not in DELIVERIES:
        raise InvalidValue(f"{value!r:.100} is none of {', '.join(DELIVERIES)}", path=path)
    return DeliveryGuarantee.EXPRESS if value == EXPRESS else DeliveryGuarantee.RECOVERABLE


def _format_name(value: object, path: str) -> FormatName:
    try:
        # Other computers read the name: the proposal has the name of this computer.
        return wanted_format_name(_text(value, path), gethostname().partition(".")[0] or ".")
    except InvalidName as exc:
        raise InvalidName(exc.why, path=path, offset=exc.offset, hresult=exc.hresult, near=exc.near) from None


_READERS: Final[Mapping[str, tuple[str, Callable[[object, str], object]]]] = {
    "acknowledge": ("acknowledgements_requested", _acknowledgements),
    "admin_queue": ("administration", _format_name),
    "application": ("application_tag", number),
    "body": ("body", _bytes),
    "body_type": ("body_type", number),
    "class": ("message_class", _class),
    "correlation": ("correlation_identifier", _correlation),
    "dead_letter": ("negative_journaling_requested", flag),
    "delivery": ("delivery_guarantee", _delivery),
    "extension": ("extension", _bytes),
    "journal": ("positive_journaling_requested", flag),
    "label": ("label", _label),
    "priority": ("priority", _priority),
    "response_queue": ("response", _format_name),
    "time_to_be_received": ("time_to_be_received", number),
    "time_to_reach_queue": ("time_to_reach_queue", number),
}
"""By property: the attribute of a message and the function that reads the value."""
SENDABLE: Final = tuple(_READERS)
"""The properties that `message_from` takes."""
