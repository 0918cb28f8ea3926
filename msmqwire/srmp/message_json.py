"""SRMP messages as JSON-ready data and back, in the form of all packets: ``{"packet", "size", "fields"}``.

Header fields are lists, as their order and repetition count. The value of a Content-Length may be left out;
it is then counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.srmp.envelope import build_envelope, envelope_from_json, parse_envelope
from msmqwire.srmp.fields import CONTENT_LENGTH, Field
from msmqwire.srmp.http_message import (
    HEADER_FIELDS,
    HTTP_1_1,
    REQUEST_LINE,
    STATUS_LINE,
    Chunking,
    RequestLine,
    StartLine,
    StatusLine,
)
from msmqwire.srmp.message import SrmpMessage
from msmqwire.srmp.multipart import Multipart, Part

PACKET: Final = "SrmpMessage"
_CHUNKING: Final = "Chunking"
_CONTENT: Final = "Content"
_ENVELOPE: Final = "Envelope"
_SOURCE: Final = "EnvelopeBytes"
_MULTIPART: Final = "Multipart"


def to_json(message: SrmpMessage) -> dict[str, Any]:
    """Return a message as an object: heads as text, the envelope as its own object, other content as hex.

    Raises MalformedPacket if the message was made with an envelope that can't be parsed.
    """
    fields: dict[str, Any] = {}
    if isinstance(message.start, RequestLine):
        line = message.start
        fields[REQUEST_LINE] = {"Method": line.method, "Target": line.target, "Version": line.version}
    elif message.start is not None:
        status = message.start
        fields[STATUS_LINE] = {"Version": status.version, "Status": status.status, "Reason": status.reason}
    if message.start is not None:
        fields[HEADER_FIELDS] = _fields_to_json(message.fields)
    if message.chunking is not None:
        trailer = _fields_to_json(message.chunking.trailer_fields)
        fields[_CHUNKING] = {"Lines": list(message.chunking.lines), "TrailerFields": trailer}
    if isinstance(message.content, Multipart):
        fields[_MULTIPART] = _multipart_to_json(message.content)
    elif isinstance(message.start, StatusLine):
        fields[_CONTENT] = message.content.hex()
    else:
        fields.update(_envelope_to_json(message.content))
    return {"packet": PACKET, "size": len(message.to_bytes()), "fields": fields}


def from_json(data: Mapping[str, Any]) -> SrmpMessage:
    """Return the message of such an object. Raises InvalidValue with the path."""
    if not isinstance(data, Mapping) or data.get("packet") != PACKET:
        raise InvalidValue(f"not the object of an {PACKET}", path="packet")
    reader = _Reader(data.get("fields"), "")
    start = _start_line(reader)
    chunking = None
    if (chunks := reader.optional(_CHUNKING)) is not None:
        lines = [line if isinstance(line, str) else chunks.bad("Lines") for line in chunks.items("Lines")]
        chunking = Chunking(tuple(lines), _fields_from_json(chunks, "TrailerFields", 0))
    content: Multipart | bytes
    if (multipart := reader.optional(_MULTIPART)) is not None:
        content = _multipart_from_json(multipart)
    elif isinstance(start, StatusLine):
        content = reader.hex(_CONTENT)
    else:
        content = _envelope_from_json(reader)
    size = len(content.to_bytes() if isinstance(content, Multipart) else content)
    fields = () if start is None else _fields_from_json(reader, HEADER_FIELDS, size)
    return SrmpMessage(start, fields, content, chunking)


def _envelope_to_json(data: bytes) -> dict[str, Any]:
    """Return an envelope as its object, with its bytes where they do not follow from that."""
    envelope = parse_envelope(data).to_json()
    try:
        exact = build_envelope(envelope_from_json(envelope)) == data
    except InvalidValue:  # accepted from a peer, not to be built
        exact = False
    return {_ENVELOPE: envelope} if exact else {_ENVELOPE: envelope, _SOURCE: data.hex()}


def _envelope_from_json(reader: _Reader) -> bytes:
    """Return the bytes of an envelope; those that are given count while they say the same as the object."""
    envelope = envelope_from_json(reader.get(_ENVELOPE))
    if reader.has(_SOURCE):
        data = reader.hex(_SOURCE)
        try:
            if parse_envelope(data) == envelope:
                return data
        except MalformedPacket:
            pass
    return build_envelope(envelope)


def _fields_to_json(fields: Sequence[Field]) -> list[dict[str, str]]:
    raw = [{"Raw": field.raw.hex()} if field.raw else {} for field in fields]
    return [{"Name": f.name, "Value": f.value, **exact} for f, exact in zip(fields, raw, strict=True)]


def _multipart_to_json(content: Multipart) -> dict[str, Any]:
    parts = []
    for number, part in enumerate(content.parts):
        item: dict[str, Any] = {HEADER_FIELDS: _fields_to_json(part.fields)}
        if number == content.envelope_number:
            item.update(_envelope_to_json(part.content))
        else:
            item[_CONTENT] = part.content.hex()
        parts.append({**item, "LineBreak": part.line_break})
    return {
        "Boundary": content.boundary,
        "LeadingLineBreak": content.leading_line_break,
        "Parts": parts,
        "FinalLineBreak": content.final_line_break,
    }


class _Reader:
    """Takes the values out of one JSON object; a fault becomes InvalidValue with its path."""

    def __init__(self, data: Any, path: str) -> None:
        self._data, self._path = data, path
        if not isinstance(data, Mapping):
            raise InvalidValue("not an object", path=path or "fields")

    def path(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def bad(self, name: str, why: str = "not text") -> NoReturn:
        raise InvalidValue(why, path=self.path(name))

    def get(self, name: str) -> Any:
        return self._data[name] if name in self._data else self.bad(name, "missing")

    def has(self, name: str) -> bool:
        return self._data.get(name) is not None

    def optional(self, name: str) -> _Reader | None:
        return _Reader(self._data[name], self.path(name)) if self.has(name) else None

    def text(self, name: str, default: str | None = None) -> str:
        value = self._data.get(name, default)
        return value if isinstance(value, str) else self.bad(name)

    def boolean(self, name: str, default: bool) -> bool:
        value = self._data.get(name, default)
        return value if isinstance(value, bool) else self.bad(name, "neither true nor false")

    def items(self, name: str) -> list[Any]:
        value = self._data.get(name, [])
        return value if isinstance(value, list) else self.bad(name, "not a list")

    def objects(self, name: str) -> list[_Reader]:
        return [_Reader(item, f"{self.path(name)}[{n}]") for n, item in enumerate(self.items(name))]

    def hex(self, name: str) -> bytes:
        text = self.text(name)
        try:
            data = bytes.fromhex(text)
        except ValueError:
            self.bad(name, "not hex")
        return data


def _start_line(reader: _Reader) -> StartLine | None:
    line, status = reader.optional(REQUEST_LINE), reader.optional(STATUS_LINE)
    if line is not None and status is not None:
        reader.bad(STATUS_LINE, f"together with {REQUEST_LINE}")
    if line is not None:
        version = line.text("Version", HTTP_1_1)
        return RequestLine(line.text("Method", "POST"), line.text("Target"), version)
    if status is None:
        return None
    code = status.get("Status")
    if not isinstance(code, int) or not 100 <= code <= 599:
        status.bad("Status", "not a status code")
    reason = status.text("Reason") if status.has("Reason") else None
    return StatusLine(code, reason, status.text("Version", HTTP_1_1))


def _fields_from_json(reader: _Reader, name: str, length: int) -> tuple[Field, ...]:
    """Return header fields; `length` is that of a Content-Length without a value."""
    fields = []
    for item in reader.objects(name):
        field_name = item.text("Name")
        if not item.has("Value") and field_name.lower() == CONTENT_LENGTH.lower():
            fields.append(Field(field_name, str(length)))
        else:
            raw = item.hex("Raw") if item.has("Raw") else b""
            fields.append(Field(field_name, item.text("Value"), raw))
    return tuple(fields)


def _multipart_from_json(reader: _Reader) -> Multipart:
    parts = []
    for item in reader.objects("Parts"):
        if item.has(_ENVELOPE):
            content = _envelope_from_json(item)
        else:
            content = item.hex(_CONTENT)
        fields = _fields_from_json(item, HEADER_FIELDS, len(content))
        parts.append(Part(fields, content, item.boolean("LineBreak", False)))
    leading, final = reader.boolean("LeadingLineBreak", False), reader.boolean("FinalLineBreak", True)
    return Multipart(reader.text("Boundary"), tuple(parts), leading, final)
