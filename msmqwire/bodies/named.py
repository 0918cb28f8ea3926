"""Facts about a message that frameworks give under names of their own, each under one name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msmqwire.bodies import dates, plain

if TYPE_CHECKING:
    from msmqwire.bodies.body import Body, Plain

_MESSAGES: Final = {"masstransit": "message", "shuttle": "Message"}
"""The member of an envelope that has the message, by format."""
_NO_SAGAS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Named:
    """Facts that a framework gives about a message; None where it says nothing.

    Attributes:
        content_type: the content type of the body.
        message_types: names of the types that the body has, the most specific first.
        message_id: the framework's own identifier of the message.
        correlation_id: that of the conversation or the request.
        reply_to: the address that answers go to.
        time_sent: the time with nine digits and its zone, as in a ``$date``; as it is where it is not a time.
        sagas: identifiers of sagas, by the name of the header.
    """

    content_type: str | None = None
    message_types: tuple[str, ...] = ()
    message_id: str | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    time_sent: str | None = None
    sagas: Mapping[str, str] = field(default_factory=lambda: _NO_SAGAS)


_NSERVICEBUS_TIME: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}) ([0-9]{2}:[0-9]{2}:[0-9]{2}):([0-9]{1,9}) Z"
)


def summary(body: Body) -> str | None:
    """Return the text of an envelope: the type and the message inside, without the envelope."""
    value = body.value
    if not isinstance(value, dict) or body.format not in _MESSAGES:
        return None
    kind = (*named(body).message_types, "")[0].removeprefix("urn:message:").split(",", 1)[0]
    return plain.one_line(f"{kind} {plain.line(value.get(_MESSAGES[body.format]))}".lstrip())


def named(body: Body) -> Named:
    """Return the facts in the headers or the envelope of a message."""
    if body.headers_format == "nservicebus":
        return _nservicebus(body.headers)
    if body.headers_format == "rebus":
        return _rebus(body.headers)
    value = body.value
    if isinstance(value, dict) and body.format == "masstransit":
        return _masstransit(value)
    if isinstance(value, dict) and body.format == "shuttle":
        return _shuttle(value)
    return Named()


def nservicebus_time(text: str) -> str:
    """Return a time of NServiceBus, which has a colon before the fraction, as other times are written."""
    parts = _NSERVICEBUS_TIME.fullmatch(text)
    return _time(f"{parts[1]}T{parts[2]}.{parts[3]}Z" if parts else text)


def _time(text: str) -> str:
    return dates.of_text(text) or text


def _nservicebus(headers: Mapping[str, str]) -> Named:
    get = headers.get
    sent = get("NServiceBus.TimeSent")
    return Named(
        get("NServiceBus.ContentType") or None,
        _list(get("NServiceBus.EnclosedMessageTypes")),
        get("NServiceBus.MessageId") or None,
        get("NServiceBus.CorrelationId") or get("CorrId") or None,
        get("NServiceBus.ReplyToAddress") or None,
        nservicebus_time(sent) if sent else None,
        {name: value for name, value in headers.items() if name.endswith("SagaId") and value},
    )


def _rebus(headers: Mapping[str, str]) -> Named:
    get = headers.get
    sent = get("rbs2-senttime")
    return Named(
        get("rbs2-content-type") or None,
        tuple(filter(None, (get("rbs2-msg-type") or "",))),
        get("rbs2-msg-id") or get("rebus-msg-id") or None,
        get("rbs2-corr-id") or None,
        get("rbs2-return-address") or get("rebus-return-address") or None,
        _time(sent) if sent else None,
        {name: value for name, value in headers.items() if "saga" in name.lower() and value},
    )


def _list(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(";") if part.strip())


def _masstransit(value: dict[str, Plain]) -> Named:
    types = value.get("messageType")
    kinds = types if isinstance(types, list) else [types]
    sent = _text(value, "sentTime")
    return Named(
        None,
        tuple(kind for kind in kinds if isinstance(kind, str)),
        _text(value, "messageId"),
        _text(value, "correlationId"),
        _text(value, "responseAddress"),
        _time(sent) if sent else None,
    )


def _shuttle(value: dict[str, Plain]) -> Named:
    kind = _text(value, "AssemblyQualifiedName") or _text(value, "MessageType")
    sent = _text(value, "SendDate")
    return Named(
        None,
        (kind,) if kind else (),
        _text(value, "MessageId"),
        _text(value, "CorrelationId"),
        _text(value, "SenderInboxWorkQueueUri"),
        _time(sent) if sent else None,
    )


def _text(value: dict[str, Plain], name: str) -> str | None:
    text = value.get(name)
    return text if isinstance(text, str) and text else None
