"""SRMP messages: an HTTP request, its response, or an envelope alone. [MC-MQSRM] 2.1.1, 2.2.2."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from msmqwire.errors import MalformedPacket
from msmqwire.names.printable import counted, cut, safe
from msmqwire.srmp.content import Departure
from msmqwire.srmp.departures import departures
from msmqwire.srmp.envelope import Envelope, parse_envelope
from msmqwire.srmp.fields import (
    CONTENT_TYPE,
    CRLF,
    Field,
    find_all,
    parse_media_type,
    read_block,
    value_of,
)
from msmqwire.srmp.http_framer import ENTITY, parse_http
from msmqwire.srmp.http_message import (
    HEADER_FIELDS,
    Chunking,
    HttpMessage,
    RequestLine,
    StartLine,
    StatusLine,
    parse_start_line,
)
from msmqwire.srmp.limits import ENTITY_SIZE_MAX
from msmqwire.srmp.multipart import (
    BODY_ID,
    EXTENSION_ID,
    HYPHENS,
    MULTIPART_TYPE,
    PARTS,
    TEXT_XML,
    Multipart,
    Part,
    parse_multipart,
)

_START_MAX: Final = 160
"""Characters of the first line in a ``repr``."""
_CONTENT_TYPE_PATH: Final = f"{HEADER_FIELDS}.{CONTENT_TYPE}"


@dataclass(frozen=True, repr=False)
class SrmpMessage:
    """One message.

    Attributes:
        start: the first line; None for an envelope without HTTP.
        fields: the header fields of the request or response.
        content: the parts; or the entity as it is, which in a request is the envelope.
        chunking: the chunks of the entity, or None.
    """

    start: StartLine | None
    fields: tuple[Field, ...]
    content: Multipart | bytes
    chunking: Chunking | None = None

    def __repr__(self) -> str:
        match self.start:
            case None:
                start = "envelope"
            case RequestLine(method, target):
                start = f"{method} {target}"
            case StatusLine(status, reason):
                start = f"{status} {reason or ''}".rstrip()
        if isinstance(self.content, Multipart):
            content = counted(len(self.content.parts), "part")
        else:
            content = counted(len(self.content), "byte")
        return f"<SrmpMessage {cut(safe(start), _START_MAX)}, {content}>"

    def to_bytes(self) -> bytes:
        """Return the bytes of the message. Raises InvalidValue."""
        entity = self.content.to_bytes() if isinstance(self.content, Multipart) else self.content
        if self.start is None:
            return entity
        return HttpMessage(self.start, self.fields, entity, self.chunking).to_bytes()

    @property
    def envelope_bytes(self) -> bytes | None:
        """The bytes of the envelope; None in a response, which has none (SRMP-2.1.1-12)."""
        if isinstance(self.content, bytes):
            return self.content if self.start is None or isinstance(self.start, RequestLine) else None
        number = self.content.envelope_number
        return None if number is None else self.content.parts[number].content

    @cached_property
    def envelope(self) -> Envelope | None:
        """The SOAP envelope, or None. Raises MalformedPacket, with offsets in the envelope."""
        data = self.envelope_bytes
        return None if data is None else parse_envelope(data)

    @property
    def departures(self) -> list[Departure]:
        """Accepted departures from Windows or the specification.

        Raises MalformedPacket for a message that was made with an envelope that can't be parsed.
        """
        envelope = self.envelope
        found = departures(self.start, self.fields, self.content)
        return found if envelope is None else [*found, *envelope.departures]

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

    Raises MalformedPacket with path and offset for requests that a receiver answers with status 400:
    SRMP-3.1.5.1.2-01.
    """
    if data.startswith(b"<"):
        envelope = SrmpMessage(None, (), data)
        _check_envelope(envelope)
        return envelope
    return from_http(parse_http(data, entity_size_max))


def from_http(http: HttpMessage) -> SrmpMessage:
    """Return the message that an HTTP request or response carries. Raises MalformedPacket."""
    if not isinstance(http.start, RequestLine):
        return SrmpMessage(http.start, http.fields, http.entity, http.chunking)
    content: Multipart | bytes = http.entity
    boundary = _boundary(http)
    try:
        if boundary is not None:
            content = parse_multipart(http.entity, boundary)
            _check_parts(content)
        message = SrmpMessage(http.start, http.fields, content, http.chunking)
        _check_envelope(message)
    except MalformedPacket as exc:
        offset = http.offset_of(exc.offset or 0)
        raise MalformedPacket(exc.why, path=exc.path, offset=offset, requirement=exc.requirement) from None
    return message


def parse_multicast(apdu: bytes, entity_size_max: int = ENTITY_SIZE_MAX) -> SrmpMessage:
    """Parse an APDU that came over PGM: an HTTP header, whose contents do not matter, and its entity.

    Neither request line nor fields are looked at, so none of them can be wrong; the boundary is that of the
    first delimiter. They are kept if they are those of a request.
    Raises MalformedPacket with path and offset for an entity that would be refused over HTTP too.
    """
    head, blank, entity = apdu.partition(CRLF + CRLF)  # SRMP-2.1.2-01 and SRMP-2.1.2-05
    if not blank:
        raise MalformedPacket("no empty line after the header", path=HEADER_FIELDS, offset=len(apdu))
    if len(entity) > entity_size_max:
        why = f"{counted(len(entity), 'byte')}, more than {entity_size_max:,}"
        raise MalformedPacket(why, path=ENTITY, offset=len(apdu) - len(entity))
    start, fields = _head_of(head + blank)  # SRMP-2.1.2-03 and SRMP-2.1.2-04
    content: Multipart | bytes = entity
    delimiter = entity.removeprefix(CRLF)
    try:
        if delimiter.startswith(HYPHENS):  # SRMP-2.1.2-04
            line = delimiter[len(HYPHENS) :].partition(CRLF)[0]
            # SRMP-4.5-02
            content = parse_multipart(entity, line.decode("latin-1"))  # SRMP-2.1.2-01 and SRMP-2.1.2-05
            _check_parts(content)
        message = SrmpMessage(start, fields, content)
        _check_envelope(message)
    except MalformedPacket as exc:
        offset = len(apdu) - len(entity) + (exc.offset or 0)
        raise MalformedPacket(exc.why, path=exc.path, offset=offset, requirement=exc.requirement) from None
    return message


def _head_of(head: bytes) -> tuple[RequestLine | None, tuple[Field, ...]]:
    """Return request line and fields of a header; none of both if it is not that of a request."""
    line, _, _ = head.partition(CRLF)
    try:
        start = parse_start_line(line)
        block, _ = read_block(head, len(line) + len(CRLF), HEADER_FIELDS)
    except MalformedPacket:
        return None, ()  # SRMP-2.1.2-04
    # SRMP-2.1.2-03 and SRMP-2.1.2-04
    return (start, block.fields()) if isinstance(start, RequestLine) else (None, ())


def _check_envelope(message: SrmpMessage) -> None:
    """Raise MalformedPacket for an invalid envelope, with the offset in the entity."""
    try:
        _ = message.envelope
    except MalformedPacket as exc:
        offset = exc.offset or 0
        if isinstance(message.content, Multipart):
            offset += message.content.content_offset(message.content.envelope_number or 0)
        raise MalformedPacket(exc.why, path=exc.path, offset=offset, requirement=exc.requirement) from None


def _boundary(message: HttpMessage) -> str | None:
    """Return the boundary that the Content-Type gives, None for an envelope alone. Raises MalformedPacket."""
    value = value_of(message.fields, CONTENT_TYPE)
    if value is None:
        raise _content_type_refused(message, "missing")
    if value == TEXT_XML:
        return None
    media_type = parse_media_type(value)
    if media_type is None or media_type[0] not in (TEXT_XML, MULTIPART_TYPE):
        why = f"{value!r} is neither {MULTIPART_TYPE} nor {TEXT_XML}"
        raise _content_type_refused(message, why)
    if media_type[0] == TEXT_XML:
        return None
    boundary = media_type[1].get("boundary")
    if not boundary:
        raise _content_type_refused(message, "without a boundary")
    return boundary


def _content_type_refused(message: HttpMessage, why: str) -> MalformedPacket:
    """Return the error, with the place of the field, or where it should be."""
    number = next(iter(find_all(message.fields, CONTENT_TYPE)), len(message.fields))
    return MalformedPacket(why, path=_CONTENT_TYPE_PATH, offset=message.field_offset(number))


def _check_parts(content: Multipart) -> None:
    """Raise MalformedPacket unless there is an envelope, and at most one body and extension."""
    if content.envelope_number is None:
        raise MalformedPacket(f"no part is {TEXT_XML}", path=PARTS, offset=0)
    ids = [part.content_id for part in content.parts]
    for prefix in (BODY_ID, EXTENSION_ID):
        numbers = [number for number, content_id in enumerate(ids) if content_id.startswith(prefix)]
        if len(numbers) > 1:  # readers would differ in which one they deliver
            offset = content.content_offset(numbers[1])
            raise MalformedPacket(f"a second part {prefix}", path=f"{PARTS}[{numbers[1]}]", offset=offset)


def build_message(message: SrmpMessage) -> bytes:
    """Return the bytes of a message; lengths are respected, even if wrong. Raises InvalidValue."""
    return message.to_bytes()
