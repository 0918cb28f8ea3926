"""SRMP messages: an HTTP request, its response, or an envelope alone. [MC-MQSRM] 2.1.1, 2.2.2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.srmp.fields import CONTENT_LENGTH, CONTENT_TYPE, Field, find_all, parse_media_type
from msmqwire.srmp.http_framer import ENTITY_SIZE_MAX, parse_http
from msmqwire.srmp.http_message import HEADER_FIELDS, Chunking, HttpMessage, RequestLine, StartLine
from msmqwire.srmp.multipart import (
    BODY_ID,
    EXTENSION_ID,
    PARTS,
    TEXT_XML,
    Multipart,
    Part,
    boundary_of,
    envelope_part,
    parse_multipart,
    payload_part,
)

MULTIPART_TYPE: Final = "multipart/related"
HOST: Final = "Host"
SOAP_ACTION: Final = ("SOAPAction", '"MSMQMessage"')  # SRMP-2.1.1-07
PROXY_ACCEPT: Final = ("Proxy-Accept", "NonInteractiveClient")  # SRMP-2.1.1-08

_CONTENT_TYPE_PATH: Final = f"{HEADER_FIELDS}.{CONTENT_TYPE}"
_MULTICAST: Final = "msmq:multicast="


@dataclass(frozen=True, slots=True)
class SrmpMessage:
    """One message.

    Attributes:
        start: the first line; None for an envelope without HTTP.
        fields: the header fields of the request or response.
        content: the parts; or the entity as it is, which in a request is the envelope.
        chunking: how the entity was cut into chunks, or None.
    """

    start: StartLine | None
    fields: tuple[Field, ...]
    content: Multipart | bytes
    chunking: Chunking | None = None

    def to_bytes(self) -> bytes:
        """Return the bytes of the message. Raises InvalidValue."""
        entity = self.content.to_bytes() if isinstance(self.content, Multipart) else self.content
        if self.start is None:
            return entity
        return HttpMessage(self.start, self.fields, entity, self.chunking).to_bytes()

    @property
    def envelope(self) -> bytes | None:
        """The SOAP envelope; None in a response, which has none (SRMP-2.1.1-12)."""
        if isinstance(self.content, bytes):
            return self.content if self.start is None or isinstance(self.start, RequestLine) else None
        number = self.content.envelope_number
        return None if number is None else self.content.parts[number].content

    @property
    def body(self) -> bytes | None:
        """The payload of the application, or None: SRMP-2.2.2-11."""
        return self._payload(BODY_ID)

    @property
    def extension(self) -> bytes | None:
        """The extension of the application, or None: SRMP-2.2.2-12."""
        return self._payload(EXTENSION_ID)

    @property
    def other_parts(self) -> tuple[Part, ...]:
        """The parts that are neither envelope nor body nor extension."""
        if isinstance(self.content, bytes):
            return ()
        envelope = self.content.envelope_number
        numbered = enumerate(self.content.parts)
        return tuple(part for number, part in numbered if number != envelope and not part.is_payload)

    def _payload(self, prefix: str) -> bytes | None:
        parts = () if isinstance(self.content, bytes) else self.content.parts
        return next((part.content for part in parts if part.has_id(prefix)), None)


def parse_message(data: bytes, entity_size_max: int = ENTITY_SIZE_MAX) -> SrmpMessage:
    """Parse one message: a request, a response, or an envelope, which starts with ``<``.

    Raises MalformedPacket with path and offset for what a receiver answers with status 400:
    SRMP-3.1.5.1.2-01.
    """
    if data.startswith(b"<"):
        if len(data) > entity_size_max:
            raise MalformedPacket(
                f"more than {entity_size_max} bytes", path="Envelope", offset=entity_size_max
            )
        return SrmpMessage(None, (), data)
    return from_http(parse_http(data, entity_size_max))


def from_http(message: HttpMessage) -> SrmpMessage:
    """Return the message that an HTTP request or response carries. Raises MalformedPacket."""
    if not isinstance(message.start, RequestLine):
        return SrmpMessage(message.start, message.fields, message.entity, message.chunking)
    boundary = _boundary(message)
    if boundary is None:
        return SrmpMessage(message.start, message.fields, message.entity, message.chunking)
    try:
        content = parse_multipart(message.entity, boundary)
        _check_parts(content)
    except MalformedPacket as exc:
        offset = message.offset_of(exc.offset or 0)
        raise MalformedPacket(exc.why, path=exc.path, offset=offset) from None
    return SrmpMessage(message.start, message.fields, content, message.chunking)


def _boundary(message: HttpMessage) -> str | None:
    """Return the boundary that the Content-Type gives, None for an envelope alone. Raises MalformedPacket."""
    numbers = find_all(message.fields, CONTENT_TYPE)
    if not numbers:
        offset = message.field_offset(len(message.fields))
        raise MalformedPacket("missing", path=_CONTENT_TYPE_PATH, offset=offset)
    value, offset = message.fields[numbers[0]].value, message.field_offset(numbers[0])
    media_type = parse_media_type(value)
    if media_type is None or media_type[0] not in (TEXT_XML, MULTIPART_TYPE):
        why = f"{value!r} is neither {MULTIPART_TYPE} nor {TEXT_XML}"
        raise MalformedPacket(why, path=_CONTENT_TYPE_PATH, offset=offset)
    if media_type[0] == TEXT_XML:
        return None
    boundary = media_type[1].get("boundary")
    if not boundary:
        raise MalformedPacket("without a boundary", path=_CONTENT_TYPE_PATH, offset=offset)
    return boundary


def _check_parts(content: Multipart) -> None:
    """Raise MalformedPacket unless there is an envelope, and at most one body and extension."""
    if content.envelope_number is None:
        raise MalformedPacket(f"no part is {TEXT_XML}", path=PARTS, offset=0)
    for prefix in (BODY_ID, EXTENSION_ID):
        numbers = [number for number, part in enumerate(content.parts) if part.has_id(prefix)]
        if len(numbers) > 1:  # readers would differ in which one they deliver
            offset = content.content_offset(numbers[1])
            raise MalformedPacket(f"a second part {prefix}", path=f"{PARTS}[{numbers[1]}]", offset=offset)


def request_address(to: str) -> tuple[str, str]:
    """Return request target and Host for the ``to`` of an envelope: SRMP-2.1.1-04, SRMP-2.1.1-06.

    Raises InvalidValue for what is neither an HTTP URL nor a multicast address.
    """
    if to.lower().startswith(_MULTICAST):
        address = to[len(_MULTICAST) :]
        return address, address
    scheme, separator, rest = to.partition("://")
    host, slash, path = rest.partition("/")
    if not separator or scheme.lower() not in ("http", "https") or not host:
        raise InvalidValue(f"{to!r} is no address of an HTTP request", path="to")
    return f"{slash or '/'}{path}".lower(), host


def make_request(
    envelope: bytes,
    target: str,
    host: str,
    *,
    boundary: int,
    queue_manager: UUID,
    body: bytes | None = None,
    extension: bytes | None = None,
) -> SrmpMessage:
    """Return the request that Windows would send, in its order of fields and parts: SRMP-2.1.1-05.

    Without body and extension it is plain ``text/xml``, as every receipt is (SRMP-2.1.1-10). `boundary` is
    the number in the boundary, `queue_manager` the sender, after which the parts are named.
    """
    content: Multipart | bytes = envelope
    content_type = TEXT_XML
    payloads = ((BODY_ID, body), (EXTENSION_ID, extension))
    parts = [payload_part(data, prefix, queue_manager) for prefix, data in payloads if data is not None]
    if parts:
        content = Multipart(boundary_of(boundary), (envelope_part(envelope), *parts))
        content_type = multipart_type(content.boundary)
    size = len(content.to_bytes() if isinstance(content, Multipart) else content)
    fields = (
        Field(HOST, host),
        Field(CONTENT_TYPE, content_type),
        Field(CONTENT_LENGTH, str(size)),
        Field(*SOAP_ACTION),
        Field(*PROXY_ACCEPT),
    )
    return SrmpMessage(RequestLine("POST", target), fields, content)


def multipart_type(boundary: str) -> str:
    """Return the Content-Type of a request with parts as Windows writes it: SRMP-2.1.1-09."""
    return f'{MULTIPART_TYPE}; boundary="{boundary}"; type={TEXT_XML}'


def build_message(message: SrmpMessage) -> bytes:
    """Return the bytes of a message; lengths are respected, even if wrong. Raises InvalidValue."""
    return message.to_bytes()
