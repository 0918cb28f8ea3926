"""The attributes that an envelope gives a message, by the names of columns: [MC-MQSRM] 3.1.5.1.1.

A response, which carries no message, has its status alone. Attributes that only Msmq can set have their
defaults without it, if every message has them. Names of queues are not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any, Final

from msmqwire.constants import class_name
from msmqwire.schema.record import first_of
from msmqwire.srmp.content import Content
from msmqwire.srmp.envelope import Envelope
from msmqwire.srmp.http_message import StatusLine
from msmqwire.srmp.kinds import EnvelopeKind, kind_of
from msmqwire.srmp.message import SrmpMessage
from msmqwire.srmp.times import NO_LIMIT, span_of, time_of

_MSMQ: Final = "MSMQ:"
_HTTP: Final = ("http://", "https://")
_PRIORITY: Final = 3
_POSITIVE_ARRIVAL, _POSITIVE_RECEIVE, _NEGATIVE_RECEIVE = 1, 2, 8  # MessagePropertiesHeader.Flags


def attribute(name: str, message: SrmpMessage) -> Any:
    """Return an attribute of a message; None if it does not have it.

    Raises MalformedPacket for a message that was made with an envelope that can't be parsed.
    """
    getter = attributes(message).get(name)
    return None if getter is None else getter(message)


def attributes(message: SrmpMessage) -> Mapping[str, Callable[[SrmpMessage], Any]]:
    """Return the attributes that messages like this one can have, each with the function that finds it.

    The function returns None if a message does not have it. All messages that are alike share one object.
    Raises MalformedPacket as `attribute` does.
    """
    if isinstance(message.start, StatusLine):
        return _OF_RESPONSE
    return _OF_NOTHING if message.envelope is None else _OF_MESSAGE


def _of_envelope(value: Callable[[Envelope], Any]) -> Callable[[SrmpMessage], Any]:
    return lambda message: value(message.envelope)  # type: ignore[arg-type]


def _of_msmq(element: str, default: Any) -> Callable[[SrmpMessage], Any]:
    """Return the function that finds an element of Msmq, which has a default."""
    found = first_of([f"envelope.Msmq.{element}"])

    def value(message: SrmpMessage) -> Any:
        return default if (own := found(message)) is None else own

    return value


def _queue(uri: str) -> str | None:
    if uri.startswith(_HTTP):
        return f"DIRECT={uri}"
    return uri.removeprefix(_MSMQ) if uri.startswith(_MSMQ) else None


def _label(envelope: Envelope) -> str | None:
    action: str = envelope.path.action
    return action.removeprefix(_MSMQ) or None if action.startswith(_MSMQ) else None


def _admin_queue(envelope: Envelope) -> str | None:
    """The queue of the last request for receipts: SRMP-2.2.5.2.3-04.

    That of a stream that begins has precedence, if it is one of HTTP: SRMP-3.1.5.1.1-28.
    """
    if envelope.stream is not None and envelope.stream.start is not None:
        receipts: str = envelope.stream.start.sendReceiptsTo
        if receipts.startswith(_HTTP):
            return _queue(receipts)
    requests = [] if envelope.services is None else envelope.services.values()
    uris = [request.sendTo for request in requests if isinstance(request, Content)]
    return _queue(uris[-1]) if uris else None


def _response_queue(envelope: Envelope) -> str | None:
    rev = envelope.path.rev
    return _queue(rev.via) if rev is not None and rev.via else None


def _ack_flags(envelope: Envelope) -> int:
    services, flags = envelope.services, 0
    if services is not None and services.deliveryReceiptRequest is not None:
        flags |= _POSITIVE_ARRIVAL
    if services is not None and services.commitmentReceiptRequest is not None:
        flags |= _POSITIVE_RECEIVE if services.commitmentReceiptRequest.positiveOnly else 0
        flags |= _NEGATIVE_RECEIVE if services.commitmentReceiptRequest.negativeOnly else 0
    return flags


def _span(limit: datetime, envelope: Envelope) -> int | None:
    """Seconds from when it was sent to a limit; None for an unknown number."""
    sent_at = envelope.properties.sentAt
    if sent_at is None and time_of(limit) < NO_LIMIT:
        return None
    return span_of(limit, 0 if sent_at is None else time_of(sent_at))


def _reach_queue(envelope: Envelope) -> int | None:
    limit = envelope.properties.expiresAt if envelope.Msmq is None else envelope.Msmq.TTrq
    return _span(limit, envelope)


def _be_received(envelope: Envelope) -> int | None:
    return None if envelope.Msmq is None else _span(envelope.properties.expiresAt, envelope)


def _sent_time(envelope: Envelope) -> int | None:
    sent_at = envelope.properties.sentAt
    return None if sent_at is None else time_of(sent_at)


def _is_recoverable(envelope: Envelope) -> bool:
    services = envelope.services
    return envelope.stream is not None or (services is not None and services.durable)


def _in_transaction(name: str) -> Callable[[Envelope], bool | None]:
    def value(envelope: Envelope) -> bool | None:
        if envelope.stream is None:
            return None
        eod = envelope.Msmq.Eod
        return eod is not None and bool(getattr(eod, name))

    return value


def _of_stream(value: Callable[[Content], Any]) -> Callable[[Envelope], Any]:
    return lambda envelope: None if envelope.stream is None else value(envelope.stream)


def _stream(envelope: Envelope) -> str | None:
    stream = envelope.stream or envelope.streamReceipt
    return None if stream is None else str(stream.streamId)


def _receipt(envelope: Envelope) -> str | None:
    kind = kind_of(envelope)
    return None if kind is None or kind is EnvelopeKind.USER_MESSAGE else kind.value


def _receipt_id(envelope: Envelope) -> str | None:
    receipt = envelope.deliveryReceipt or envelope.commitmentReceipt
    return None if receipt is None else str(receipt.id)


_OF_ENVELOPE: Final[dict[str, Callable[[Envelope], Any]]] = {
    "time_to_reach_queue": _reach_queue,
    "source_qm": lambda envelope: None if envelope.Msmq is None else str(envelope.Msmq.SourceQmGuid),
    "time_to_be_received": _be_received,
    "sent_time": _sent_time,
    "message_id": lambda envelope: None if envelope.Msmq is None else envelope.path.id.uniquifier,
    "recoverable": _is_recoverable,
    "destination": lambda envelope: _queue(envelope.path.to),
    "admin_queue": _admin_queue,
    "response_queue": _response_queue,
    "connector_type": lambda envelope: (
        None
        if envelope.Msmq is None or envelope.Msmq.ConnectorType is None
        else str(envelope.Msmq.ConnectorType)
    ),
    "tx_sequence_ordinal": _of_stream(lambda stream: stream.streamId.ordinal),
    "tx_sequence_timestamp": _of_stream(lambda stream: stream.streamId.time_stamp),
    "tx_number": _of_stream(lambda stream: stream.current),
    "tx_previous": _of_stream(lambda stream: stream.previous or 0),
    "tx_first": _in_transaction("First"),
    "tx_last": _in_transaction("Last"),
    "final_ack_wanted": lambda envelope: (
        envelope.services is not None and envelope.services.commitmentReceiptRequest is not None
    ),
    "signed": lambda envelope: envelope.Signature is not None,
    "provider": lambda envelope: (
        None if envelope.Msmq is None or envelope.Msmq.Provider is None else envelope.Msmq.Provider.Name
    ),
    "ack_flags": _ack_flags,
    "label": _label,
    "class_name": lambda envelope: class_name(0 if envelope.Msmq is None else envelope.Msmq.Class),
    "srmp_id": lambda envelope: str(envelope.path.id),
    "receipt": _receipt,
    "receipt_id": _receipt_id,
    "srmp_stream": _stream,
    "receipt_ordinal": lambda envelope: (
        None if envelope.streamReceipt is None else envelope.streamReceipt.lastOrdinal
    ),
}
_OF_MSMQ: Final[dict[str, tuple[str, Any]]] = {
    "priority": ("Priority", _PRIORITY),
    "trace": ("Trace", False),
    "journal_negative": ("DeadLetter", False),
    "journal_positive": ("Journal", False),
    "message_class": ("Class", 0),
    "correlation_id": ("Correlation", bytes(20)),
    "body_type": ("BodyType", 0),
    "app_tag": ("App", 0),
    "hash_algorithm": ("HashAlgorithm", None),
}
"""Elements of Msmq, and the values of a message without them."""
_OF_RESPONSE: Final[dict[str, Callable[[SrmpMessage], Any]]] = {"http_status": attrgetter("start.status")}
_OF_NOTHING: Final[dict[str, Callable[[SrmpMessage], Any]]] = {}
_OF_MESSAGE: Final[dict[str, Callable[[SrmpMessage], Any]]] = {
    "body": lambda message: message.body or b"",
    "body_size": lambda message: len(message.body or b""),
    "extension": lambda message: message.extension or b"",
    **{name: _of_envelope(value) for name, value in _OF_ENVELOPE.items()},
    **{name: _of_msmq(*element) for name, element in _OF_MSMQ.items()},
}
