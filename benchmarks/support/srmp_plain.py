"""SRMP requests read and made plainly with lxml and `email`, without checks, for benchmarks/srmp.py.

`email` can't divide the parts of such a request, whose delimiters have no line end before them: it reads the
header blocks, and each part is cut by its Content-Length.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from email.message import Message as Headers
from email.parser import BytesHeaderParser
from typing import Any, Final
from uuid import UUID

from lxml import etree

from msmqwire.qm.model.enumerations import AcknowledgementsRequested
from msmqwire.qm.model.message import Message

HEADERS: Final = BytesHeaderParser()
XML: Final = etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False)

SOAP: Final = "http://schemas.xmlsoap.org/soap/envelope/"
ROUTING: Final = "http://schemas.xmlsoap.org/rp/"
SRMP: Final = "http://schemas.xmlsoap.org/srmp/"
MSMQ: Final = "msmq.namespace.xml"


def date(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def identifier(text: str) -> tuple[int, UUID]:
    number, _, guid = text.removeprefix("uuid:").partition("@")
    return int(number), UUID(guid)


def stream_identifier(text: str) -> tuple[UUID, int]:
    guid, _, number = text.removeprefix("uid:").partition("\\")
    return UUID(guid), int(number)


def there(_text: str) -> bool:
    return True


LEAVES: Final[dict[str, Callable[[str], Any]]] = {
    **{f"{{{ROUTING}}}{name}": str for name in ("action", "to", "via")},
    f"{{{ROUTING}}}id": identifier,
    **{f"{{{SRMP}}}{name}": date for name in ("expiresAt", "sentAt", "receivedAt", "decidedAt")},
    **{f"{{{SRMP}}}{name}": there for name in ("durable", "positiveOnly", "negativeOnly")},
    **{f"{{{SRMP}}}{name}": str for name in ("sendTo", "sendReceiptsTo", "decision")},
    **{f"{{{SRMP}}}{name}": int for name in ("current", "previous", "lastOrdinal")},
    f"{{{SRMP}}}streamId": stream_identifier,
    f"{{{SRMP}}}id": identifier,
    **{
        f"{{{MSMQ}}}{name}": int for name in ("Class", "Priority", "App", "BodyType", "HashAlgorithm", "Type")
    },
    **{f"{{{MSMQ}}}{name}": there for name in ("Journal", "DeadLetter", "Trace", "First", "Last")},
    **{f"{{{MSMQ}}}{name}": UUID for name in ("ConnectorType", "ConnectorId", "SourceQmGuid")},
    **{f"{{{MSMQ}}}{name}": str.split for name in ("DestinationMqf", "AdminMqf", "ResponseMqf")},
    f"{{{MSMQ}}}Correlation": base64.b64decode,
    f"{{{MSMQ}}}Name": str,
    f"{{{MSMQ}}}TTrq": date,
}


def read(data: bytes) -> dict[str, Any]:
    """Return the values of a request: the envelope's by name, ``body`` and ``extension``."""
    head, _, entity = data.partition(b"\r\n\r\n")
    _, _, block = head.partition(b"\r\n")
    headers = HEADERS.parsebytes(block)
    if headers.get_content_type() != "multipart/related":
        return read_envelope(entity)
    found: dict[str, Any] = {}
    for part, content in parts(entity, str(headers.get_boundary())):
        if part.get_content_type() == "text/xml":
            found |= read_envelope(content)
        else:
            found[part["Content-Id"].partition("@")[0]] = content
    return found


def parts(entity: bytes, boundary: str) -> list[tuple[Headers, bytes]]:
    delimiter = b"--" + boundary.encode()
    found = []
    at = len(delimiter) + 2
    while True:
        start = entity.index(b"\r\n\r\n", at) + 4
        headers = HEADERS.parsebytes(entity[at:start])
        end = start + int(headers["Content-Length"])
        found.append((headers, entity[start:end]))
        at = end + len(delimiter) + 2
        if entity[at - 2 : at] == b"--":
            return found


def read_envelope(data: bytes) -> dict[str, Any]:
    return read_group(etree.fromstring(data, XML)[0])


def read_group(group: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for element in group:
        tag = element.tag
        if leaf := LEAVES.get(tag):
            values[tag.partition("}")[2]] = leaf(element.text or "")
        else:
            values[tag.partition("}")[2]] = read_group(element)
    return values


def write(message: Message, queue_manager: UUID, boundary: int) -> bytes:
    """Return the request for a message outside a stream."""
    envelope = write_envelope(message)
    uri = message.destination.text.removeprefix("DIRECT=") if message.destination else ""
    parts = [part(envelope, {"Content-Type": "text/xml; charset=UTF-8"})]
    for name, payload in (("body", message.body), ("extension", message.extension)):
        if payload:
            fields = {"Content-Type": "application/octet-stream", "Content-Id": f"{name}@{queue_manager}"}
            parts.append(part(payload, fields))
    delimiter = f"--MSMQ - SOAP boundary, {boundary}".encode()
    content_type = f'multipart/related; boundary="MSMQ - SOAP boundary, {boundary}"; type=text/xml'
    entity = b"".join(delimiter + b"\r\n" + item for item in parts) + delimiter + b"--\r\n"
    if len(parts) == 1:
        entity, content_type = envelope, "text/xml"
    host, _, path = uri.partition("://")[2].partition("/")
    fields = {"Host": host, "Content-Type": content_type, "Content-Length": str(len(entity))}
    fields |= {"SOAPAction": '"MSMQMessage"', "Proxy-Accept": "NonInteractiveClient"}
    return f"POST /{path} HTTP/1.1\r\n".encode() + header_block(fields) + entity


def part(content: bytes, fields: dict[str, str]) -> bytes:
    return header_block({**fields, "Content-Length": str(len(content))}) + content


def header_block(fields: dict[str, str]) -> bytes:
    headers = Headers()
    for name, value in fields.items():
        headers[name] = value
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    return "".join(lines).encode() + b"\r\n"


def write_envelope(message: Message) -> bytes:
    envelope = etree.Element(f"{{{SOAP}}}Envelope", nsmap={"se": SOAP, None: SRMP})
    header = etree.SubElement(envelope, f"{{{SOAP}}}Header")
    path = group(header, ROUTING, "path", {None: ROUTING})
    path.set(f"{{{SOAP}}}mustUnderstand", "1")
    text(path, ROUTING, "action", f"MSMQ:{message.label}")
    text(path, ROUTING, "to", uri_of(message.destination))
    text(path, ROUTING, "id", f"uuid:{message.identifier.uniquifier}@{message.identifier.lineage}")
    if message.response:
        text(group(path, ROUTING, "rev"), ROUTING, "via", uri_of(message.response))
    properties = group(header, SRMP, "properties")
    properties.set(f"{{{SOAP}}}mustUnderstand", "1")
    text(properties, SRMP, "expiresAt", date_text(message.sent_time, message.time_to_be_received))
    text(properties, SRMP, "sentAt", date_text(message.sent_time, 0))
    write_services(header, message)
    write_msmq(group(header, MSMQ, "Msmq", {None: MSMQ}), message)
    etree.SubElement(envelope, f"{{{SOAP}}}Body")
    return etree.tostring(envelope)  # type: ignore[no-any-return]


def write_services(header: Any, message: Message) -> None:
    requested = message.acknowledgements_requested
    if not (message.recoverable or message.administration):
        return
    services = group(header, SRMP, "services")
    services.set(f"{{{SOAP}}}mustUnderstand", "1")
    if message.recoverable:
        group(services, SRMP, "durable")
    if requested & AcknowledgementsRequested.ACK_POS_ARRIVAL:
        request = group(services, SRMP, "deliveryReceiptRequest")
        text(request, SRMP, "sendTo", uri_of(message.administration))
    if message.final_ack_required:
        request = group(services, SRMP, "commitmentReceiptRequest")
        text(request, SRMP, "sendTo", uri_of(message.administration))
        if requested & AcknowledgementsRequested.ACK_POS_RECEIVE:
            group(request, SRMP, "positiveOnly")
        if requested & AcknowledgementsRequested.ACK_NEG_RECEIVE:
            group(request, SRMP, "negativeOnly")


def write_msmq(msmq: Any, message: Message) -> None:
    text(msmq, MSMQ, "Class", str(int(message.message_class)))
    text(msmq, MSMQ, "Priority", str(message.priority))
    if message.positive_journaling_requested:
        group(msmq, MSMQ, "Journal")
    if message.negative_journaling_requested:
        group(msmq, MSMQ, "DeadLetter")
    text(msmq, MSMQ, "Correlation", base64.b64encode(message.correlation_identifier).decode())
    text(msmq, MSMQ, "App", str(message.application_tag))
    text(msmq, MSMQ, "BodyType", str(message.body_type))
    text(msmq, MSMQ, "HashAlgorithm", str(int(message.hash_algorithm)))
    text(msmq, MSMQ, "SourceQmGuid", str(message.source_machine_identifier))
    for name, queues in (
        ("DestinationMqf", message.destinations),
        ("AdminMqf", message.administrations),
        ("ResponseMqf", message.responses),
    ):
        if queues:
            text(msmq, MSMQ, name, "".join(f"{uri_of(queue)}\n" for queue in queues))
    text(msmq, MSMQ, "TTrq", date_text(message.sent_time, message.time_to_reach_queue))


def group(parent: Any, namespace: str, name: str, nsmap: Any = None) -> Any:
    return etree.SubElement(parent, f"{{{namespace}}}{name}", nsmap=nsmap)


def text(parent: Any, namespace: str, name: str, value: str) -> None:
    etree.SubElement(parent, f"{{{namespace}}}{name}").text = value


def uri_of(name: Any) -> str:
    return str(name.text.removeprefix("DIRECT=").replace("\\", "/"))


def date_text(sent: int, span: int) -> str:
    return f"{datetime.fromtimestamp(min(sent + span, 0x7FFF_FFFF), UTC):%Y%m%dT%H%M%S}"
