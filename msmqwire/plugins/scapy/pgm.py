"""Pragmatic General Multicast, the transport of multicast messages, as layers: RFC 3208, [MC-MQSRM] 2.1.3.

`PGM` is the common header. Its payload is the body of its type with the option extensions, followed by the
content of the packet: an SRMP message, or a part of one. Names are those of the RFC.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from ipaddress import IPv4Address, ip_address
from typing import Any, ClassVar, Final

from scapy.base_classes import Packet_metaclass
from scapy.config import conf
from scapy.fields import (
    ByteEnumField,
    ByteField,
    Field,
    FieldListField,
    FlagsField,
    IntField,
    PacketField,
    PacketListField,
    ShortField,
    StrField,
    StrFixedLenField,
)
from scapy.layers.http import HTTP
from scapy.layers.inet import IP
from scapy.layers.inet6 import IPv6
from scapy.packet import Packet as ScapyPacket
from scapy.packet import bind_layers
from scapy.volatile import RandBin, RandNum

from msmqwire.errors import MalformedPacket
from msmqwire.pgm import values
from msmqwire.pgm.layouts import (
    COMMON_HEADER,
    GSI_SIZE,
    OPTION_END,
    OPTION_HEAD_SIZE,
    OPTIONS,
    OptionFlags,
    PgmType,
)
from msmqwire.pgm.options import build_options, complete_options
from msmqwire.pgm.packets import NLAS, build_body, build_nla, build_pgm, read_pgm
from msmqwire.pgm.values import BODIES, Nla, Opaque, PgmPacket
from msmqwire.plugins.scapy.guessing import guess
from msmqwire.schema import UInt

PGM_PROTOCOL: Final = 113
"""The protocol number of IP."""
_INTEGERS: Final[dict[int, type[Field]]] = {8: ByteField, 16: ShortField, 32: IntField}
_NAMED: Final[dict[str, Callable[[str], Field]]] = {
    "Address": lambda name: AddressField(name, IPv4Address(0)),
    "E": lambda name: ByteField(name, None),
    "OptionLength": lambda name: ByteField(name, None),
    "TotalLength": lambda name: ShortField(name, None),
    "SequenceNumbers": lambda name: FieldListField(name, [], IntField("", 0)),
    "kind": lambda name: KindField(name, 0),
    "content": lambda name: ContentField(name, b""),
}
"""Fields that are not plain integers of a layout, or are computed."""


class ContentField(StrField):
    """The content of an option of a type that is not read."""

    def randval(self) -> Any:
        return RandBin(RandNum(0, 0xFF - OPTION_HEAD_SIZE))


class KindField(ByteField):
    """The type of an option, without the bit E."""

    def randval(self) -> Any:
        return RandNum(0, OPTION_END - 1)


class AddressField(Field):
    """An IPv4 or IPv6 address: a value of `ipaddress`."""

    def any2i(self, pkt: ScapyPacket | None, x: Any) -> Any:
        return ip_address(x) if isinstance(x, str) else x

    def i2repr(self, pkt: ScapyPacket | None, x: Any) -> str:
        return str(x)

    def randval(self) -> None:
        """Leave the address as it is when fuzzing."""


class _FromValue(Packet_metaclass):
    """Makes the fields of a layer from the class of its values."""

    def __new__(mcs, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> Any:
        if "value_class" in space:
            own = [_field(field.name, space["value_class"]) for field in fields(space["value_class"])]
            space["fields_desc"] = own + space.get("fields_desc", [])
            space["__doc__"] = space["value_class"].__doc__
        return super().__new__(mcs, name, bases, space)


def _field(name: str, owner: Any) -> Field:
    if name in _NAMED:
        return _NAMED[name](name)
    if name in NLAS:
        return PacketField(name, PGMNla(), PGMNla)
    layout = getattr(owner, "layout", None) or OPTIONS.get(getattr(owner, "kind", -1))
    if layout is None or name not in layout.fields:
        return (ByteField if issubclass(owner, values.PgmOption) else ShortField)(name, 0)
    part = layout.part(name)
    assert isinstance(part, UInt)
    return _INTEGERS[part.bits](name, 0)


class _Value(ScapyPacket, metaclass=_FromValue):
    """A layer with the fields of a value of `msmqwire.pgm`."""

    value_class: ClassVar[Any]

    def value(self) -> Any:
        """Return the value that the fields make."""
        fixed = self if self.explicit else next(iter(self))
        return self.value_class(
            **{field.name: _plain(fixed.getfieldval(field.name)) for field in fields(self.value_class)}
        )

    def take(self, value: Any) -> None:
        """Set the fields to those of a value."""
        self.fields.update({field.name: _shown(getattr(value, field.name)) for field in fields(value)})
        self.explicit = 1


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_plain, value))
    return value.value() if isinstance(value, _Value) else value


def _shown(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return _layer_of(value) if isinstance(value, Nla) else value


def _layer_of(value: Any) -> Any:
    layer = _LAYERS[type(value)](_internal=1)
    layer.take(value)
    return layer


class PGMNla(_Value):
    name = "PGM NLA"
    value_class = Nla

    def self_build(self) -> bytes:
        return build_nla(self.value())


class _Option(_Value):
    def self_build(self) -> bytes:
        return build_options((self.value(),))


class PGMOptLength(_Option):
    name = "PGM OPT_LENGTH"
    value_class = values.OptLength


class PGMOptFragment(_Option):
    name = "PGM OPT_FRAGMENT"
    value_class = values.OptFragment


class PGMOptNakList(_Option):
    name = "PGM OPT_NAK_LIST"
    value_class = values.OptNakList


class PGMOptJoin(_Option):
    name = "PGM OPT_JOIN"
    value_class = values.OptJoin


class PGMOptSyn(_Option):
    name = "PGM OPT_SYN"
    value_class = values.OptSyn


class PGMOptFin(_Option):
    name = "PGM OPT_FIN"
    value_class = values.OptFin


class PGMOptRst(_Option):
    name = "PGM OPT_RST"
    value_class = values.OptRst


class PGMUnknownOption(_Option):
    name = "PGM option"
    value_class = values.UnknownOption


class _Body(_Value):
    """The part after the common header."""

    def options(self) -> tuple[values.Option, ...]:
        """Return the option extensions."""
        return tuple(option.value() for option in self.OptionExtensions)

    def self_build(self) -> bytes:
        return build_body(self.value()) + build_options(complete_options(self.options()))


_EXTENSIONS: Final = PacketListField("OptionExtensions", [], PGMUnknownOption)


class PGMSpm(_Body):
    name = "PGM SPM"
    value_class = values.Spm
    fields_desc = [_EXTENSIONS]


class PGMData(_Body):
    name = "PGM DATA"
    value_class = values.Data
    fields_desc = [_EXTENSIONS]


class PGMNak(_Body):
    name = "PGM NAK"
    value_class = values.Nak
    fields_desc = [_EXTENSIONS]


class PGMPoll(_Body):
    name = "PGM POLL"
    value_class = values.Poll
    fields_desc = [_EXTENSIONS]


class PGMPolr(_Body):
    name = "PGM POLR"
    value_class = values.Polr
    fields_desc = [_EXTENSIONS]


_LAYERS: Final = {
    layer.value_class: layer
    for base in (_Value, _Option, _Body)
    for layer in base.__subclasses__()
    if hasattr(layer, "value_class")
}


class PGM(ScapyPacket):
    """The common header of every packet: RFC 3208 section 8."""

    name = "PGM"
    fields_desc = [
        {
            "Type": lambda name: ByteEnumField(name, None, PgmType),
            "Options": lambda name: FlagsField(
                name, None, 8, {flag.value: flag.name for flag in OptionFlags}
            ),
            "GSI": lambda name: StrFixedLenField(name, bytes(GSI_SIZE), GSI_SIZE),
            "Checksum": lambda name: ShortField(name, None),
            "TSDULength": lambda name: ShortField(name, None),
        }.get(name, lambda name: ShortField(name, 0))(name)
        for name in COMMON_HEADER.fields
    ]

    @classmethod
    def dispatch_hook(cls, _pkt: bytes = b"", *args: Any, **kargs: Any) -> type[ScapyPacket]:
        """Return this layer; raw bytes for a datagram that is not a PGM packet."""
        if kargs.get("_underlayer") is not None:
            try:
                read_pgm(_pkt)
            except MalformedPacket:
                return conf.raw_layer  # type: ignore[no-any-return]
        return cls

    def do_build(self) -> bytes:
        """Return the bytes of the whole packet. Raises InvalidValue."""
        fixed = self if self.explicit else next(iter(self))
        body, data = fixed.payload, b""
        if isinstance(body, _Body):
            data = body.payload.do_build()
        head = {name: fixed.getfieldval(name) for name in COMMON_HEADER.fields}
        kinds = (kind for kind, shape in BODIES.items() if isinstance(body, _LAYERS[shape]))
        if head["Type"] is None:
            head["Type"] = PgmType.ODATA if isinstance(body, PGMData) else next(kinds, PgmType.SPM)
        if head["Options"] is not None:
            head["Options"] = OptionFlags(int(head["Options"]))
        packet = PgmPacket(
            **head,
            body=body.value() if isinstance(body, _Body) else Opaque(body.do_build()),
            options=body.options() if isinstance(body, _Body) else (),
            data=data,
        )
        return build_pgm(packet)

    def dissect(self, s: bytes) -> None:
        """Take all layers of a packet. Raises MalformedPacket.

        Bytes beyond TSDULength count as data, as do unreadable options.
        """
        packet, _ = read_pgm(s)
        self.fields = {name: getattr(packet, name) for name in COMMON_HEADER.fields}
        self.fields["Options"] = self.get_field("Options").any2i(self, int(packet.Options or 0))
        self.explicit = 1
        if isinstance(packet.body, Opaque):
            if packet.body.content:
                self.add_payload(conf.raw_layer(packet.body.content, _internal=1))
            return
        body = _layer_of(packet.body)
        body.fields["OptionExtensions"] = [_layer_of(option) for option in packet.options]
        self.add_payload(body)
        body.do_dissect_payload(packet.data + packet.trailing)

    def mysummary(self) -> str:
        kind = self.getfieldval("Type")
        shown = kind if kind is None else next((k.name for k in PgmType if k == kind), hex(kind))
        return f"PGM {shown} {self.SourcePort} > {self.DestinationPort}"


def stream_layer(_data: bytes) -> type[ScapyPacket] | None:
    """Return None: PGM is over IP and UDP alone."""
    return None


def bind() -> None:
    """Bind the layers to their protocol of IP, and HTTP to what PGM carries."""
    bind_layers(IP, PGM, proto=PGM_PROTOCOL)
    bind_layers(IPv6, PGM, nh=PGM_PROTOCOL)
    guess(PGMData, lambda payload: HTTP if payload.startswith(b"POST ") else None)
