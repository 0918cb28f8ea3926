"""Messages that programs read."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import UUID

from msmqwire.constants import class_name
from msmqwire.names.printable import counted, cut
from msmqwire.qm.runtime.deliveries import EXPRESS, RECOVERABLE, TRANSACTIONAL

if TYPE_CHECKING:
    from msmqwire.bodies import Body
    from msmqwire.schema.display import View


class _Recorded:
    """The attribute with the record from which properties are read on first access."""

    __slots__ = ("_record",)
    _record: bytes


@dataclass(frozen=True, slots=True, repr=False)
class ReceivedMessage(_Recorded):
    r"""A message that was received or peeked at, as an application sees it.

    It is a value: changing the queue does not change it. Names of queues are format names, as `connect` and
    the property ``response_queue`` take them. Identifiers are texts, ``guid\number``.

    Attributes:
        body: its bytes; `text` has them as text.
        label: up to 249 characters.
        body_type: VARENUM of the body, 0 if the sender did not say.
        identifier: identifies it in the whole system.
        lookup_identifier: identifies it in its present queue.
        correlation: the identifier of the message that it answers or reports on; None if it has none.
        message_class: 0 for an ordinary message, else the class of the report: MESSAGE_CLASS_VALUES.
        priority: 0 to 7, higher ones are read first.
        recoverable: whether it survives failures; all transactional ones do.
        transactional: whether it was sent in a transaction.
        sent: when it was sent, by the clock of the sender, in UTC; None if that is unknown.
        arrived: when it was put into its present queue, in UTC.
        time_to_reach_queue, time_to_be_received: limits in seconds after `sent`; None for no limit.
        source: the identifier of the queue manager that sent it; None if a message by HTTP has none.
        sender: the claimed sender: a SID as ``S-1-...``, a GUID, else hex; None for nobody. It is proved only
            if `authenticated` is true.
        acknowledge: the acknowledgements that its sender asks for: ``pos_arrival``, ``pos_receive``,
            ``neg_arrival``, ``neg_receive``.
        admin_queue: the queue for them; None for none.
        response_queue: the queue for answers; None for none.
        destination: the queue that it was sent to.
        application: a number of the application.
        extension: further bytes besides the body.
        journal: whether its sender keeps a copy in a journal.
        dead_letter: whether its sender keeps it in a dead-letter queue if it can't be delivered.
        hops: the number of routing servers that it has passed.
        deliveries: times that a program has received it in this queue and did not end it, but gave it back or
            ended itself; of a queue of another computer its AbortCounter.
        reason: why a policy moved it to this queue: ``delivery_limit``, ``quota``; None if none did.
        authenticated: whether the queue manager of the queue has proved that it is from `sender`.
        signature: the version of MSMQ, ``1.0``, ``2.0`` or ``3.0``, of the signature that fits it and
            `sender_certificate`, whoever owns that certificate; None for none.
        sender_certificate: the certificate that came with it, in DER; None for none.
        encrypted: the cipher of its body on arrival: ``rc2``, ``rc4``, ``aes128``, ``aes192``, ``aes256``;
            None if it came in clear.
    """

    body: bytes
    label: str
    body_type: int
    identifier: str
    lookup_identifier: int
    correlation: str | None
    message_class: int
    priority: int
    recoverable: bool
    transactional: bool
    sent: datetime | None
    arrived: datetime | None
    time_to_reach_queue: int | None
    time_to_be_received: int | None
    source: UUID | None
    sender: str | None
    acknowledge: tuple[str, ...]
    admin_queue: str | None
    response_queue: str | None
    destination: str | None
    application: int
    extension: bytes
    journal: bool
    dead_letter: bool
    hops: int
    deliveries: int
    reason: str | None
    authenticated: bool
    signature: str | None
    sender_certificate: bytes | None
    encrypted: str | None

    def __repr__(self) -> str:
        parts = [f"{cut(self.label, 80)!r}", counted(len(self.body), "byte"), self.identifier]
        parts += [self.class_name] * bool(self.message_class)
        return f"<ReceivedMessage {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: its properties, and its body as far as it is text."""
        from msmqwire.schema.display import to_html

        return to_html(self._view())

    def __rich__(self) -> Any:
        """Return the same as a table for rich."""
        from msmqwire.schema.display import to_rich

        return to_rich(self._view())

    @staticmethod
    def _table_head() -> tuple[str, tuple[str, ...]]:
        return "message", ("sent", "class", "label", "bytes", "body", "identifier")

    def _table_row(self) -> tuple[str, ...]:
        return (
            "" if self.sent is None else self.sent.isoformat(),
            self.class_name,
            self.label,
            f"{len(self.body):,}",
            self.text or "",
            self.identifier,
        )

    def _view(self) -> View:
        from msmqwire.schema.display import view_of

        properties = {"class": self.class_name, **{one.name: getattr(self, one.name) for one in fields(self)}}
        properties["body"] = self.text or self.body
        del properties["message_class"]
        nothing: tuple[Any, ...] = (None, False, "", b"", ())
        return view_of(
            f"Message {self.label!r}, {counted(len(self.body), 'byte')}",
            properties=((name, _shown(value)) for name, value in properties.items() if value not in nothing),
        )

    def __getattr__(self, name: str) -> Any:
        """Read the record of a message on the first access to a property."""
        if name not in _FIELDS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        from msmqwire.qm.runtime.message_record import body_of, read_record  # not from remote read

        if name == "body":
            _set(self, name, body_of(self._record))
        else:
            for field, value in read_record(self._record).items():
                _set(self, field, value)
        return object.__getattribute__(self, name)

    @classmethod
    def from_record(cls, record: bytes) -> Self:
        """Return the message of a record of `msmqwire.qm.runtime.message_record`, of the right length.

        Its properties are read when they are used.
        """
        message = cls.__new__(cls)
        _set(message, "_record", record)
        return message

    @property
    def text(self) -> str | None:
        """The body as text: by its type, and by its content if the type is bytes or unknown.

        Strings and numbers as they are, XML and JSON whole, else one line; None if it is not text. `decoded`
        has the value.
        """
        from msmqwire.bodies import inspect_body, whole_text

        body = self.body
        return whole_text(body, inspect_body(body, body_type=self.body_type))

    def decoded(self) -> Body:
        """Return the decoded content of the message: format, value, text, and headers of NServiceBus or
        Rebus.

        Raises:
            MalformedBody: the body can't be of the format that its type names.
        """
        from msmqwire.bodies import decode

        return decode(self.body, body_type=self.body_type, extension=self.extension)

    @property
    def class_name(self) -> str:
        """The name of its class without prefix: ``NORMAL``, ``ACK_RECEIVE``, ``NACK_BAD_DST_Q``."""
        return class_name(self.message_class)

    @classmethod
    def from_json(cls, message: Mapping[str, Any]) -> Self:
        """Return the message that `msmqwire.qm.runtime.message_json.message_json` has written."""
        extension, source = message["extension"], message["source"]
        certificate = message["sender_certificate"]
        return cls(
            body=b64decode(message["body"]),
            label=message["label"],
            body_type=message["body_type"],
            identifier=message["identifier"],
            lookup_identifier=message["lookup_identifier"],
            correlation=message["correlation"],
            message_class=int(message["class"]),
            priority=message["priority"],
            recoverable=message["delivery"] != EXPRESS,
            transactional=message["delivery"] == TRANSACTIONAL,
            sent=_time(message["sent"]),
            arrived=_time(message["arrived"]),
            time_to_reach_queue=message["time_to_reach_queue"],
            time_to_be_received=message["time_to_be_received"],
            source=None if source is None else UUID(source),
            sender=message["sender"],
            acknowledge=tuple(message["acknowledge"]),
            admin_queue=message["admin_queue"],
            response_queue=message["response_queue"],
            destination=message["destination"],
            application=message["application"],
            extension=b"" if extension is None else b64decode(extension),
            journal=message["journal"],
            dead_letter=message["dead_letter"],
            hops=message["hops"],
            deliveries=message["deliveries"],
            reason=message["reason"],
            authenticated=message["authenticated"],
            signature=message["signature"],
            sender_certificate=None if certificate is None else b64decode(certificate),
            encrypted=message["encrypted"],
        )

    def to_json(self) -> dict[str, Any]:
        """Return the message as `msmqwire.qm.runtime.message_json.message_json` writes it."""
        delivery = RECOVERABLE if self.recoverable else EXPRESS
        certificate = self.sender_certificate
        return {
            "identifier": self.identifier,
            "lookup_identifier": self.lookup_identifier,
            "label": self.label,
            "body": b64encode(self.body).decode(),
            "body_type": self.body_type,
            "class": self.message_class,
            "class_name": self.class_name,
            "delivery": TRANSACTIONAL if self.transactional else delivery,
            "priority": self.priority,
            "sent": _time_text(self.sent),
            "arrived": _time_text(self.arrived),
            "time_to_reach_queue": self.time_to_reach_queue,
            "time_to_be_received": self.time_to_be_received,
            "source": None if self.source is None else str(self.source),
            "sender": self.sender,
            "acknowledge": list(self.acknowledge),
            "admin_queue": self.admin_queue,
            "response_queue": self.response_queue,
            "destination": self.destination,
            "correlation": self.correlation,
            "application": self.application,
            "extension": b64encode(self.extension).decode() if self.extension else None,
            "journal": self.journal,
            "dead_letter": self.dead_letter,
            "hops": self.hops,
            "deliveries": self.deliveries,
            "reason": self.reason,
            "authenticated": self.authenticated,
            "signature": self.signature,
            "sender_certificate": None if certificate is None else b64encode(certificate).decode(),
            "encrypted": self.encrypted,
        }


_set: Final = object.__setattr__
_FIELDS: Final = frozenset(field.name for field in fields(ReceivedMessage))


def _shown(value: Any) -> str:
    if isinstance(value, bytes):
        return counted(len(value), "byte")
    if isinstance(value, tuple):
        return ", ".join(value)
    return "yes" if value is True else str(value)


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _time_text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat().replace("+00:00", "Z")
