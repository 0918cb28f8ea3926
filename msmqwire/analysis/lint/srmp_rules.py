"""Rules about a whole SRMP message: the consistency of its elements with each other and with the request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, TypeAlias
from urllib.parse import unquote
from uuid import UUID

from msmqwire.analysis.lint.finding import Severity
from msmqwire.analysis.lint.registry import Check, listed
from msmqwire.analysis.lint.srmp_bodies import SRMP
from msmqwire.constants import MessageClass
from msmqwire.constants.message_class import class_name
from msmqwire.errors import InvalidValue
from msmqwire.names.printable import counted
from msmqwire.srmp.elements import Guid
from msmqwire.srmp.envelope import Envelope
from msmqwire.srmp.fields import find_all, value_of
from msmqwire.srmp.http_framer import ENTITY
from msmqwire.srmp.http_message import HEADER_FIELDS, HOST, REQUEST_LINE, RequestLine, StatusLine
from msmqwire.srmp.identifiers import MessageIdentifier
from msmqwire.srmp.kinds import DECISIONS, STREAM_RECEIPT_LABEL, kind_of
from msmqwire.srmp.message import SrmpMessage
from msmqwire.srmp.multipart import BODY_ID, CONTENT_ID, EXTENSION_ID, PARTS, Multipart
from msmqwire.srmp.request import request_address
from msmqwire.srmp.scan import BOM, start_tag
from msmqwire.srmp.schema_names import HTTP, MSMQ, ROUTING, SIGNATURE

Broken: TypeAlias = tuple[Check, str, str]
"""A rule that is broken, the path of the place, and the fault."""

HEADER: Final = "Envelope.Header"
LABEL_MAX: Final = 249  # characters, [MS-MQDMPR] 3.1.1.12
BODY_SIZE_MAX: Final = 0x0040_0000  # SRMP-2.2.2-18
MULTICAST_SIZE_MAX: Final = 0x1_0000  # SRMP-2.1.3.1-15

_DECLARATION: Final = re.compile(rb"<\?xml[ \t\r\n]")
_XMLNS: Final = re.compile(rb"""[ \t\r\n]xmlns[ \t\r\n]*=[ \t\r\n]*(?:"([^"]*)"|'([^']*)')""")
_MULTICAST: Final = "MSMQ:MULTICAST="
_GUID: Final = Guid(name="GUID", meaning="", req=(), section="2.2.1.1")
_UNKNOWN_SHOWN: Final = 16


def _rule(id: str, title: str, path: str = "", severity: Severity = "MUST") -> Check:
    return listed(id, title, path, SRMP, severity)


def broken_rules(message: SrmpMessage) -> Iterator[Broken]:
    """Yield the rules that a message breaks beside its departures. Raises MalformedPacket as `envelope`."""
    if isinstance(message.start, StatusLine):
        yield from _response(message, message.start)
    envelope = message.envelope
    if envelope is None:
        return
    if isinstance(message.start, RequestLine):
        yield from _request(message, message.start, envelope.path.to)
    if envelope.Msmq is not None and isinstance(message.content, Multipart):
        yield from _names_of_parts(message.content, envelope.Msmq.SourceQmGuid)
    yield from _sizes(message, envelope)
    yield from _document(envelope)
    yield from _routing(envelope)
    yield from _times(envelope)
    yield from _services(envelope)
    yield from _stream(envelope)
    yield from _receipts(message, envelope)


# --- HTTP and MIME -----------------------------------------------------------------------------------------

EMPTY: Final = _rule("SRMP-2.1.1-12", "A response of 200 has an entity", ENTITY, "SHOULD")
TARGET: Final = _rule(
    "SRMP-2.1.1-04-TARGET", "The request target is another than in to", REQUEST_LINE, "SHOULD"
)
HOST_OF_TO: Final = _rule(
    "SRMP-2.1.1-06-TO", "Host is another than in to", f"{HEADER_FIELDS}.{HOST}", "SHOULD"
)
MULTICAST_HEAD: Final = _rule(
    "SRMP-2.1.2-03", "Request target or Host is not address and port of the multicast", "", "SHOULD"
)
BODY_OF: Final = _rule(
    "SRMP-2.2.2-11-SOURCE", "The Content-Id of the body has another GUID than SourceQmGuid", "", "NOTE"
)
EXTENSION_OF: Final = _rule(
    "SRMP-2.2.2-12-SOURCE", "The Content-Id of the extension has another GUID than SourceQmGuid", "", "NOTE"
)
LARGE: Final = _rule("SRMP-2.2.2-18", "Body and extension have more than 4 MiB", PARTS, "SHOULD")
LARGE_MULTICAST: Final = _rule("SRMP-2.1.3.1-15", "The multicast message has more than 64 KiB", "", "SHOULD")


def _response(message: SrmpMessage, start: StatusLine) -> Iterator[Broken]:
    if start.status == 200 and isinstance(message.content, bytes) and message.content:
        yield EMPTY, EMPTY.path, counted(len(message.content), "byte")


def _request(message: SrmpMessage, start: RequestLine, to: str) -> Iterator[Broken]:
    try:
        target, host = request_address(to)
    except InvalidValue:
        return  # no host
    multicast = to.startswith(_MULTICAST)
    if _comparable(start.target) != _comparable(target):
        check = MULTICAST_HEAD if multicast else TARGET
        yield check, REQUEST_LINE, f"{start.target:.200} instead of {target:.200}"
    # Without Host, or with two, the departure says so.
    if len(find_all(message.fields, HOST)) == 1:
        value = value_of(message.fields, HOST) or ""
        if _without_port(value) != _without_port(host):
            check = MULTICAST_HEAD if multicast else HOST_OF_TO
            yield check, HOST_OF_TO.path, f"{value:.200} instead of {host:.200}"


def _comparable(target: str) -> str:
    """Return a target so that those of equal meaning are equal: SRMP-2.1.1-04."""
    if target.lower().startswith(HTTP):
        rest = target.partition("://")[2]
        target = f"/{rest.partition('/')[2]}"
    return unquote(target).casefold()


def _without_port(host: str) -> str:
    """Return a host without the port of HTTP or HTTPS, which need not be said."""
    return host.lower().removesuffix(":80").removesuffix(":443")


def _names_of_parts(content: Multipart, source: UUID) -> Iterator[Broken]:
    for number, part in enumerate(content.parts):
        for check, prefix in ((BODY_OF, BODY_ID), (EXTENSION_OF, EXTENSION_ID)):
            name = part.content_id[len(prefix) :]
            if part.has_id(prefix) and _other_guid(name, source):
                path = f"{PARTS}[{number}].{HEADER_FIELDS}.{CONTENT_ID}"
                yield check, path, f"{name} instead of {source}"


def _other_guid(name: str, source: UUID) -> bool:
    """Whether a text is another GUID; if it is none, the departure says so."""
    try:
        return bool(_GUID.read(name) != source)
    except ValueError:
        return False


def _sizes(message: SrmpMessage, envelope: Envelope) -> Iterator[Broken]:
    size = len(message.body or b"") + len(message.extension or b"")
    if size > BODY_SIZE_MAX:
        yield LARGE, LARGE.path, f"{counted(size, 'byte')}, more than {BODY_SIZE_MAX:,}"
    if envelope.path.to.startswith(_MULTICAST):
        size = len(message.to_bytes())
        if size > MULTICAST_SIZE_MAX:
            yield LARGE_MULTICAST, "", f"{counted(size, 'byte')}, more than {MULTICAST_SIZE_MAX:,}"


# --- the document ------------------------------------------------------------------------------------------

DECLARATION: Final = _rule("SRMP-2.2-01", "The envelope has an XML declaration", "Envelope", "SHOULD")
UNKNOWN: Final = _rule("SRMP-2.2.3-07", "An element is not in the specification", "", "SHOULD")
NAMESPACES: Final = {
    "path": (_rule("SRMP-2.2.4-02", "path does not declare its namespace", f"{HEADER}.path"), ROUTING),
    "Msmq": (_rule("SRMP-2.2.6-02", "Msmq does not declare its namespace", f"{HEADER}.Msmq"), MSMQ),
    "Signature": (
        _rule("SRMP-2.2.7-02", "Signature does not declare its namespace", f"{HEADER}.Signature"),
        SIGNATURE,
    ),
}
NO_MSMQ: Final = _rule("SRMP-2.2.6-01-ABSENT", "The message has no Msmq", f"{HEADER}.Msmq", "SHOULD")


def _document(envelope: Envelope) -> Iterator[Broken]:
    data = envelope.source or b""
    if data.startswith(BOM) or _DECLARATION.match(data):
        yield DECLARATION, DECLARATION.path, "a declaration, or the mark of an encoding, before it"
    for name, (check, namespace) in NAMESPACES.items():
        at = envelope.offsets.get(f"{HEADER}.{name}")
        if at is not None:
            tag = start_tag(data, at)
            if not tag.startswith(f"<{name}".encode()) or _default_namespace(tag) != namespace:
                yield check, check.path, "not as default namespace in its own tag"
    for item in envelope.unknown[:_UNKNOWN_SHOWN]:
        yield UNKNOWN, item.path, f"{item.xml:.80} is not in the specification"
    if len(envelope.unknown) > _UNKNOWN_SHOWN:
        yield UNKNOWN, HEADER, f"{counted(len(envelope.unknown), 'element', 'are')} not in the specification"
    if envelope.Msmq is None:
        yield NO_MSMQ, NO_MSMQ.path, "it has the defaults of everything that Msmq says"


def _default_namespace(tag: bytes) -> str | None:
    found = _XMLNS.search(tag)
    return None if found is None else (found[1] or found[2] or b"").decode("utf-8", "replace")


# --- path and properties -----------------------------------------------------------------------------------

LABEL: Final = _rule("SRMP-2.2.4.1-07", "The label has more than 249 characters", f"{HEADER}.path.action")
VIA: Final = _rule(
    "SRMP-2.2.4.4-03-URI",
    "via is neither an HTTP URI nor MSMQ: and a name",
    f"{HEADER}.path.rev.via",
    "SHOULD",
)
EXPIRED: Final = _rule("SRMP-3.1.7.2.1-02", "The message was sent after it expired")


def _routing(envelope: Envelope) -> Iterator[Broken]:
    prefix, colon, label = envelope.path.action.partition(":")
    size = len(label.encode("utf-16-le", "surrogatepass")) // 2
    if size > LABEL_MAX and prefix + colon == "MSMQ:":
        yield LABEL, LABEL.path, f"{counted(size, 'character')}, more than {LABEL_MAX:,}"
    rev = envelope.path.rev
    if rev is not None and not rev.via.startswith((*HTTP, "MSMQ:")):
        yield VIA, VIA.path, f"{rev.via!r:.200} begins with none of {', '.join(HTTP)}, MSMQ:"


def _times(envelope: Envelope) -> Iterator[Broken]:
    sent = envelope.properties.sentAt
    limits = {f"{HEADER}.properties.expiresAt": envelope.properties.expiresAt}
    if envelope.Msmq is not None:
        limits[f"{HEADER}.Msmq.TTrq"] = envelope.Msmq.TTrq
    for path, limit in limits.items():
        if sent is not None and limit < sent:
            yield EXPIRED, path, f"it expired {limit:%Y-%m-%dT%H:%M:%SZ}, before {sent:%Y-%m-%dT%H:%M:%SZ}"


# --- services and stream -----------------------------------------------------------------------------------

_COMMITMENT: Final = f"{HEADER}.services.commitmentReceiptRequest"
_NUMBERS: Final = f"{HEADER}.stream"
NO_OUTCOME: Final = _rule(
    "SRMP-2.2.5.2.3-09", "commitmentReceiptRequest asks for no outcome", _COMMITMENT, "SHOULD"
)
TWO_QUEUES: Final = _rule(
    "SRMP-2.2.5.2.3-04-QUEUES", "The two receipts go to different queues", f"{_COMMITMENT}.sendTo", "SHOULD"
)
FROM_ONE: Final = _rule("SRMP-2.2.5.3.2-02", "The number in the stream is 0", f"{_NUMBERS}.current")
BEFORE: Final = _rule("SRMP-2.2.5.3.3-02", "previous is not less than current", f"{_NUMBERS}.previous")
NO_ZERO: Final = _rule("SRMP-3.1.7.2.4-18", "previous is 0", f"{_NUMBERS}.previous")
FIRST_ONLY: Final = _rule(
    "SRMP-2.2.5.3.4-05", "start is in a message that is not the first", f"{_NUMBERS}.start"
)
NO_START: Final = _rule("SRMP-2.2.5.3.4-06", "The first message has no start", f"{_NUMBERS}.start")


def _services(envelope: Envelope) -> Iterator[Broken]:
    services = envelope.services
    commitment = services and services.commitmentReceiptRequest
    if not commitment:
        return
    if not (commitment.positiveOnly or commitment.negativeOnly):
        yield NO_OUTCOME, NO_OUTCOME.path, "neither positiveOnly nor negativeOnly: no receipt will come"
    delivery = services.deliveryReceiptRequest
    if delivery is not None and delivery.sendTo != commitment.sendTo:
        yield TWO_QUEUES, TWO_QUEUES.path, f"not {delivery.sendTo:.200}, and only the last one counts"


def _stream(envelope: Envelope) -> Iterator[Broken]:
    stream = envelope.stream
    if stream is None:
        return
    current, previous = stream.current, stream.previous
    if current == 0:
        yield FROM_ONE, FROM_ONE.path, "0"
    if previous == 0:
        yield NO_ZERO, NO_ZERO.path, "0"
    elif previous is not None and previous >= current:  # SRMP-2.2.5.3.3-02
        yield BEFORE, BEFORE.path, f"{previous}, and current is {current}"
    if stream.start is not None and current != 1:
        yield FIRST_ONLY, FIRST_ONLY.path, f"in message {current}"
    if stream.start is None and current == 1:  # SRMP-2.2.5.3.4-06
        yield NO_START, NO_START.path, "missing: no receiver takes the message"


# --- receipts ----------------------------------------------------------------------------------------------

_CLASS: Final = f"{HEADER}.Msmq.Class"
PAYLOAD: Final = _rule("SRMP-2.2.2-08", "The receipt has parts", PARTS)
STREAM_ACTION: Final = _rule(
    "SRMP-2.2.4.1-06",
    f"The label of the stream receipt is not {STREAM_RECEIPT_LABEL}",
    f"{HEADER}.path.action",
)
NO_KIND: Final = _rule("SRMP-3.1.5.1.5-01", "The message is neither a user message nor one kind of receipt")
DELIVERY_CLASS: Final = _rule("SRMP-3.1.5.1.5-03", "The Class of the delivery receipt is not 2", _CLASS)
STREAM_CLASS: Final = _rule("SRMP-3.1.5.1.5-04", "The Class of the stream receipt is not 255", _CLASS)
DECISION: Final = _rule(
    "SRMP-3.1.5.1.5-06", "Class and decision of the receipt contradict each other", _CLASS
)
CORRELATION: Final = _rule(
    "SRMP-2.2.5.4-07",
    "Correlation of the receipt is not the id in it",
    f"{HEADER}.Msmq.Correlation",
    "SHOULD",
)


def _receipts(message: SrmpMessage, envelope: Envelope) -> Iterator[Broken]:
    delivery, commitment = envelope.deliveryReceipt, envelope.commitmentReceipt
    stream = envelope.streamReceipt
    if kind_of(envelope) is None:
        yield from _no_kind(envelope)
    if (delivery or commitment or stream) is None:
        return
    if isinstance(message.content, Multipart):
        yield PAYLOAD, PAYLOAD.path, f"{counted(len(message.content.parts), 'part')} in a receipt"
    # Final stream receipts are distinguished by streamId and lastOrdinal: SRMP-2.2.5.6-02.
    receipt = delivery or (commitment if stream is None else None)
    correlation = None if envelope.Msmq is None else envelope.Msmq.Correlation
    if receipt is not None and correlation is not None and _object_id(receipt.id) != correlation:
        yield CORRELATION, CORRELATION.path, f"{correlation.hex()} is not {receipt.id}"


def _object_id(identifier: MessageIdentifier) -> bytes:
    return identifier.lineage.bytes_le + identifier.uniquifier.to_bytes(4, "little")


def _no_kind(envelope: Envelope) -> Iterator[Broken]:
    """Yield why receivers ignore the message."""
    delivery, commitment = envelope.deliveryReceipt, envelope.commitmentReceipt
    stream = envelope.streamReceipt
    number = MessageClass.MQMSG_CLASS_NORMAL.value if envelope.Msmq is None else envelope.Msmq.Class
    name = class_name(number)
    if delivery is not None:
        if stream is not None or commitment is not None:
            yield NO_KIND, f"{HEADER}.deliveryReceipt", "together with another receipt"
        else:
            yield DELIVERY_CLASS, DELIVERY_CLASS.path, f"{number} ({name})"
        return
    if stream is not None and envelope.path.action != f"MSMQ:{STREAM_RECEIPT_LABEL}":
        yield STREAM_ACTION, STREAM_ACTION.path, f"{envelope.path.action:.200}"
    if commitment is not None:
        if DECISIONS.get(number) != commitment.decision:
            yield DECISION, DECISION.path, f"{number} ({name}) and {commitment.decision}"
    elif stream is None:
        yield NO_KIND, _CLASS, f"{number} ({name}) without the element of a receipt"
    elif number != MessageClass.MQMSG_CLASS_ORDER_ACK:
        yield STREAM_CLASS, STREAM_CLASS.path, f"{number} ({name})"
