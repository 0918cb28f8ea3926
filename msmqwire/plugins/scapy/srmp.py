"""SRMP messages as layers, inside scapy's HTTP: [MC-MQSRM] 2.1.1, 2.2.2.

The entity of a request is an envelope, or a multipart entity with the envelope and the payloads as its parts.
The elements of an envelope are layers too, with fields from the declarations in `msmqwire.srmp.schema`, whose
values are those of its JSON: text, numbers, true for an empty element. None leaves an element out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from scapy.base_classes import Packet_metaclass
from scapy.config import conf
from scapy.fields import ByteField, PacketField, PacketListField, StrField
from scapy.fields import Field as ScapyField
from scapy.layers.http import HTTP, HTTPRequest
from scapy.packet import Packet as ScapyPacket

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.plugins.scapy.fields import BodyField
from msmqwire.plugins.scapy.guessing import guess
from msmqwire.schema import NULL_GUID
from msmqwire.srmp.elements import Blank, Element, Group, Ignored, Names
from msmqwire.srmp.envelope import Envelope, build_envelope, envelope_from_json, parse_envelope
from msmqwire.srmp.fields import CRLF, Field, build_block, read_block
from msmqwire.srmp.http_message import HEADER_FIELDS, HOST, PROXY_ACCEPT, SOAP_ACTION, RequestLine
from msmqwire.srmp.multipart import (
    BODY_ID,
    HYPHENS,
    TEXT_XML,
    Multipart,
    Part,
    boundary_of,
    envelope_part,
    multipart_type,
    parse_multipart,
    payload_part,
)
from msmqwire.srmp.recognition import begins_srmp, has_envelope
from msmqwire.srmp.request import request_address
from msmqwire.srmp.schema import HEADER

ELEMENTS: Final[dict[str, type[_Element]]] = {}
"""The layers of elements that hold other elements, by their names."""

_METHOD: Final = b"POST"


class ValueField(ScapyField):
    """An element with a value; None leaves it out."""

    def __init__(self, name: str) -> None:
        super().__init__(name, None)

    def addfield(self, pkt: ScapyPacket, s: bytes, val: Any) -> bytes:
        return s  # an element has bytes only in its envelope


class ValuesField(ValueField):
    """A list of values, or None."""

    islist = 1


class _FromGroup(Packet_metaclass):
    """Makes the fields of a layer from the declaration of an element."""

    def __new__(mcs, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> Any:
        group = space.get("group")
        if isinstance(group, Group):
            own = [_field(child) for child in group.children if not isinstance(child, Ignored | Blank)]
            attributes = [ValueField(attribute) for attribute in group.attributes]
            space["fields_desc"] = [*attributes, *own, *space.get("fields_desc", [])]
            space.setdefault("__doc__", f"{group.meaning}\n\n[MC-MQSRM] {group.section}")
        return super().__new__(mcs, name, bases, space)


def _field(element: Element) -> ScapyField:
    if not isinstance(element, Group):
        return ValuesField(element.name) if isinstance(element, Names) else ValueField(element.name)
    layer = _element_layer(element)
    if element.most > 1:
        return PacketListField(element.name, [], layer)
    return PacketField(element.name, None, layer)


def _element_layer(group: Group) -> type[_Element]:
    name = f"MSMQSRMP_{group.name}"
    if name not in ELEMENTS:
        space = {"name": f"MSMQ SRMP {group.name}", "group": group, "__module__": __name__}
        ELEMENTS[name] = globals()[name] = _FromGroup(name, (_Element,), space)
    return ELEMENTS[name]


class _Element(ScapyPacket, metaclass=_FromGroup):
    """An element that holds other elements; it has bytes only in its envelope."""

    group: ClassVar[Group]

    def to_json(self) -> dict[str, Any]:
        """Return the values that are there."""
        fixed = self if self.explicit else next(iter(self))
        values = {name: _to_json(fixed.getfieldval(name)) for name in _names(self.group)}
        return {name: value for name, value in values.items() if value not in (None, [])}

    def take(self, values: Mapping[str, Any]) -> None:
        """Set all fields."""
        for name, element in _names(self.group).items():
            value = values.get(name)
            if isinstance(element, Group) and element.most > 1:
                self.fields[name] = [_taken(element, item) for item in value or []]
            else:
                self.fields[name] = (
                    _taken(element, value) if isinstance(element, Group) and value is not None else value
                )
        self.explicit = 1


def _names(group: Group) -> dict[str, Element | None]:
    """The fields of an element, with their declarations; None for an attribute."""
    children = {c.name: c for c in group.children if not isinstance(c, Ignored | Blank)}
    return {**dict.fromkeys(group.attributes), **children}


def _taken(element: Any, values: Mapping[str, Any]) -> _Element:
    layer = _element_layer(element)(_internal=1)
    layer.take(values)
    return layer


def _to_json(value: Any) -> Any:
    if isinstance(value, list):
        return [_to_json(item) for item in value]
    return value.to_json() if isinstance(value, _Element) else value


class MSMQSRMPEnvelope(_Element):
    """The SOAP envelope of a message; `kept` are the elements without a value.

    [MC-MQSRM] 2.2.2
    """

    name = "MSMQ SRMP Envelope"
    group = HEADER
    fields_desc = [ValuesField("kept")]

    @classmethod
    def dispatch_hook(cls, _pkt: bytes = b"", *args: Any, **kargs: Any) -> type[ScapyPacket]:
        """Return this layer; raw bytes for a payload that is not an envelope."""
        return conf.raw_layer if kargs.get("_underlayer") and not _reads(parse_envelope, _pkt) else cls

    def envelope(self) -> Envelope:
        """Return the envelope that the fields make. Raises InvalidValue."""
        return envelope_from_json({"Header": self.to_json(), "kept": self.getfieldval("kept") or []})

    def self_build(self) -> bytes:
        """Return the bytes: the dissected ones while its content is the same. Raises InvalidValue."""
        source: bytes | None = self.raw_packet_cache
        if source is not None and parse_envelope(source) == self.envelope():
            return source
        self._keep(None)
        return build_envelope(self.envelope())

    def do_dissect(self, s: bytes) -> bytes:
        """Take all elements. Raises MalformedPacket."""
        json = parse_envelope(s).to_json()
        self.take(json["Header"])
        self.fields["kept"] = json["kept"]
        self._keep(s)
        return b""

    def _keep(self, source: bytes | None) -> None:
        """Keep the source bytes of the fields in scapy's usual place."""
        object.__setattr__(self, "raw_packet_cache", source)

    def add_underlayer(self, underlayer: ScapyPacket) -> None:
        self.overload_fields = {HTTPRequest: _request_fields(self, TEXT_XML)}
        super().add_underlayer(underlayer)

    def mysummary(self) -> str:
        path = self.getfieldval("path")
        return "MSMQ SRMP" if path is None else f"MSMQ SRMP {path.action} > {path.to}"


class MSMQSRMPPart(ScapyPacket):
    """A part of a multipart entity; HeaderFields that are None default to those of an envelope or a body.

    [MC-MQSRM] 2.2.2
    """

    name = "MSMQ SRMP part"
    fields_desc = [StrField("HeaderFields", None), BodyField("Content", b""), ByteField("LineBreak", 0)]

    def part(self) -> Part:
        """Return the part. Raises InvalidValue."""
        fixed = self if self.explicit else next(iter(self))
        content, head = fixed.getfieldval("Content"), fixed.getfieldval("HeaderFields")
        data = bytes(content or b"")
        if head is None:
            is_envelope = isinstance(content, MSMQSRMPEnvelope)
            return envelope_part(data) if is_envelope else payload_part(data, BODY_ID, NULL_GUID)
        try:
            block, _ = read_block(head + CRLF, 0, HEADER_FIELDS)
        except MalformedPacket as exc:
            raise InvalidValue(exc.why, path=HEADER_FIELDS) from None
        return Part(tuple(block.fields()), data, bool(fixed.getfieldval("LineBreak")))

    def self_build(self) -> bytes:
        """Return the bytes between two delimiters. Raises InvalidValue."""
        part = self.part()
        return build_block(part.fields, HEADER_FIELDS) + part.content + CRLF * part.line_break


class MSMQSRMPMultipart(ScapyPacket):
    """A message with a payload: envelope, body and extension as the parts of an entity.

    [MC-MQSRM] 2.2.2
    """

    name = "MSMQ SRMP multipart"
    fields_desc = [
        StrField("Boundary", None),
        ByteField("LeadingLineBreak", 0),
        PacketListField("Parts", [], MSMQSRMPPart),
        ByteField("FinalLineBreak", 1),
    ]

    @classmethod
    def dispatch_hook(cls, _pkt: bytes = b"", *args: Any, **kargs: Any) -> type[ScapyPacket]:
        """Return this layer; raw bytes for a payload that is not such an entity."""
        return conf.raw_layer if kargs.get("_underlayer") and not _reads(_multipart, _pkt) else cls

    def self_build(self) -> bytes:
        """Return the bytes of the entity. Raises InvalidValue."""
        fixed = self if self.explicit else next(iter(self))
        return Multipart(
            fixed._boundary(),
            tuple(part.part() for part in fixed.getfieldval("Parts")),
            bool(fixed.getfieldval("LeadingLineBreak")),
            bool(fixed.getfieldval("FinalLineBreak")),
        ).to_bytes()

    def _boundary(self) -> str:
        given = self.getfieldval("Boundary")
        return boundary_of(0) if given is None else given.decode("latin-1")

    def do_dissect(self, s: bytes) -> bytes:
        """Take all parts. Raises MalformedPacket."""
        entity = _multipart(s)
        parts = []
        for number, part in enumerate(entity.parts):
            content: Any = part.content
            if number == entity.envelope_number and _reads(parse_envelope, content):
                content = MSMQSRMPEnvelope(content, _internal=1)
            layer = MSMQSRMPPart(_internal=1, _parent=self)
            head = build_block(part.fields, HEADER_FIELDS).removesuffix(CRLF)
            layer.fields = {"HeaderFields": head, "Content": content, "LineBreak": int(part.line_break)}
            layer.explicit = 1
            parts.append(layer)
        self.fields = {
            "Boundary": entity.boundary.encode("latin-1"),
            "LeadingLineBreak": int(entity.leading_line_break),
            "Parts": parts,
            "FinalLineBreak": int(entity.final_line_break),
        }
        self.explicit = 1
        return b""

    def add_underlayer(self, underlayer: ScapyPacket) -> None:
        content_type = multipart_type(self._boundary())
        self.overload_fields = {HTTPRequest: _request_fields(self.getlayer(MSMQSRMPEnvelope), content_type)}
        super().add_underlayer(underlayer)

    def mysummary(self) -> str:
        envelope = self.getlayer(MSMQSRMPEnvelope)
        return "MSMQ SRMP multipart" if envelope is None else str(envelope.mysummary())


def _request_fields(envelope: ScapyPacket | None, content_type: str) -> dict[str, Any]:
    """Default header fields of a request with such an entity."""
    known: dict[str, Any] = {
        "Method": _METHOD,
        "Content_Type": content_type.encode("latin-1"),
        "Unknown_Headers": {name.encode(): value.encode() for name, value in (SOAP_ACTION, PROXY_ACCEPT)},
    }
    path = None if envelope is None else envelope.getfieldval("path")
    try:
        target, host = request_address(str(path and path.getfieldval("to")))
        RequestLine(_METHOD.decode(), target).to_bytes()
        Field(HOST, host).to_bytes(HEADER_FIELDS)
    except InvalidValue:  # an address that no request can have
        return known
    return {**known, "Path": target.encode("latin-1"), "Host": host.encode("latin-1")}


def _multipart(data: bytes) -> Multipart:
    """Return an entity whose boundary is that of its first delimiter. Raises MalformedPacket."""
    line = data.removeprefix(CRLF).removeprefix(HYPHENS).partition(CRLF)[0]
    return parse_multipart(data, line.decode("latin-1"))


def _reads(parse: Any, data: bytes) -> bool:
    try:
        parse(data)
    except MalformedPacket:
        return False
    return True


def entity_layer(data: bytes) -> type[ScapyPacket] | None:
    """Return the layer of the entity of a request, recognised by an SRMP envelope; None for any other."""
    if not has_envelope(data):
        return None
    if data.startswith(b"<"):
        return MSMQSRMPEnvelope
    return MSMQSRMPMultipart if data.removeprefix(CRLF).startswith(HYPHENS) else None


def stream_layer(data: bytes) -> type[ScapyPacket] | None:
    """Return the layer of a stream that begins with these bytes; None if it is not SRMP."""
    return HTTP if begins_srmp(data) else None


def bind() -> None:
    """Bind the layers to the requests that have them."""
    guess(HTTPRequest, entity_layer)
