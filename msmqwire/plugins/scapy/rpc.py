"""Calls of DCE/RPC as layers, inside scapy's own: made from the procedures of an interface.

Each procedure has ``R_..._Request`` and ``R_..._Response``, with the parameters of the IDL as fields. They
are registered with scapy's DCE/RPC, so that its sessions and clients find them. Structures have the name of
the interface before their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from scapy.fields import (
    ByteField,
    ConditionalField,
    Field,
    FieldListField,
    IntField,
    LongField,
    PacketField,
    PacketListField,
    ShortField,
    SignedByteField,
    SignedIntField,
    SignedLongField,
    SignedShortField,
    StrField,
    StrFixedLenField,
    UUIDField,
)
from scapy.layers.dcerpc import (
    DCE_RPC_INTERFACES,
    DceRpc5,
    DceRpc5Request,
    DceRpcOp,
    NDRPacket,
    register_dcerpc_interface,
)
from scapy.layers.inet import TCP
from scapy.packet import Packet as ScapyPacket
from scapy.packet import bind_top_down
from scapy.volatile import RandRegExp

from msmqwire.errors import MalformedPacket
from msmqwire.plugins.scapy.binary import MSMQBaseHeader, is_whole_prefix
from msmqwire.plugins.scapy.fields import BodyField, TextField
from msmqwire.rpc.handles import ContextHandle
from msmqwire.rpc.interface import Interface
from msmqwire.rpc.ndr import (
    NDR20,
    NDR64,
    REQUIRED,
    ConformantArray,
    ConformantBytes,
    Declaration,
    Enum,
    FixedBytes,
    Guid,
    Handle,
    Integer,
    Member,
    Pointer,
    Reference,
    Structure,
    Stub,
    Syntax,
    Type,
    Union,
    WideString,
    Wire,
    build_stub,
    parse_stub,
)
from msmqwire.rpc.pdu import parse_header
from msmqwire.rpc.pdus import COMMON_HEADER_SIZE, RPC_VERSION
from msmqwire.rpc.rpc_packet import is_sent
from msmqwire.schema import NULL_GUID

_INTEGERS: Final[dict[tuple[int, bool], type[Field]]] = {
    (8, False): ByteField,
    (8, True): SignedByteField,
    (16, False): ShortField,
    (16, True): SignedShortField,
    (32, False): IntField,
    (32, True): SignedIntField,
    (64, False): LongField,
    (64, True): SignedLongField,
}


class StringField(TextField):
    """Text of a stub, whose null is never left out."""

    def randval(self) -> Any:
        return RandRegExp("[A-Za-z_$\\\\]{0,20}")


class ItemsField(PacketField):
    """An array of structures, or None for a null pointer."""

    islist = 1


class _Members:
    """A layer whose fields are the members of a declaration."""

    declaration: ClassVar[Declaration]
    layers: ClassVar[InterfaceLayers]
    __slots__ = ()

    def members(self: Any) -> dict[str, Any]:
        """Return the members, without those left to building."""
        fixed = self if self.explicit else next(iter(self))
        computed = _computed(self.declaration)
        members: dict[str, Any] = {}
        for member in self.declaration.members:
            if isinstance(member.type, Union):
                members.update(_arm(fixed, member, member.type, members))
                continue
            value = _value(fixed.getfieldval(member.name))
            if value is not None or not (member.name in computed or member.default is not REQUIRED):
                members[member.name] = value
        return members

    def take(self: Any, value: Any) -> None:
        """Set all fields to the members of a value."""
        for member in self.declaration.members:
            given = getattr(value, member.name)
            if isinstance(member.type, Union):
                chosen = member.type.arms[getattr(value, member.type.switch_is)]
                for arm in filter(None, member.type.arms.values()):
                    self.fields[arm.name] = self.layers.shown(arm.type, given) if arm is chosen else None
            else:
                self.fields[member.name] = self.layers.shown(member.type, given)
        self.explicit = 1


class _Declared(_Members, ScapyPacket):
    """A structure; it has bytes only in its stub."""

    def self_build(self) -> bytes:
        return b""


class _Stub(_Members, NDRPacket):
    """The parameters of one direction of a procedure.

    `wire` keeps the sender's other choices, so that unchanged parts are built as they came.
    """

    __slots__ = ["wire"]
    declaration: ClassVar[Stub]

    def __init__(self, *args: Any, **kargs: Any) -> None:
        self.wire: Wire | None = None
        super().__init__(*args, **kargs)

    def do_build(self) -> bytes:
        """Return the stub and the bytes after it. Raises InvalidValue."""
        value = _Values(self.members(), self.wire)
        return build_stub(self.declaration, value, self._syntax()) + bytes(self.do_build_payload())

    def do_dissect(self, s: bytes) -> bytes:
        """Take all parameters; bytes after them are kept. Raises MalformedPacket."""
        value = parse_stub(self.declaration, s, self._syntax())
        self.take(value)
        self.wire = value.wire
        return b""

    def _syntax(self) -> Syntax:
        return (NDR64 if self.ndr64 else NDR20).ordered(big_endian=self.ndrendian == "big")

    def copy(self) -> Any:
        """Return a deep copy."""
        clone = super().copy()
        clone.wire = self.wire
        return clone

    def clone_with(self, *args: Any, **kargs: Any) -> Any:
        """Return a copy with other fields."""
        clone = super().clone_with(*args, **kargs)
        clone.wire = self.wire
        return clone

    def setfieldval(self, attr: str, val: Any) -> None:
        """Set a field; the padding of another sender may not fit then."""
        self.wire = None
        super().setfieldval(attr, val)

    def mysummary(self) -> Any:
        return type(self).__name__, [TCP]


class _Values:
    """Members by name as attributes, and `wire`, for building."""

    def __init__(self, members: dict[str, Any], wire: Wire | None) -> None:
        self.__dict__.update(members, wire=wire)


class InterfaceLayers:
    """The layers of an interface.

    Attributes:
        stubs: the layers by their names.
        handle: that of a context handle, with the function `context_handle`; None if it has none.
    """

    def __init__(
        self, interface: Interface, space: dict[str, Any], handle: type[ScapyPacket] | None = None
    ) -> None:
        """`space` is that of the module of the layers, which gets them by their names."""
        self.interface, self.handle = interface, handle
        self.stubs: dict[str, type[ScapyPacket]] = {}
        self._space, self._begun = space, set[str]()
        self._operations = {
            int(opnum): DceRpcOp(
                self._stub(f"{procedure.name}_Request", procedure.request),
                self._stub(f"{procedure.name}_Response", procedure.response),
            )
            for opnum, procedure in interface.procedures.items()
            if is_sent(procedure)
        }

    def register(self) -> None:
        """Register the interface with scapy's DCE/RPC. If it is registered already, dissecting stays with the
        present one.
        """
        known = self.interface.identifier
        if (known.uuid, known.minor << 16 | known.major) not in DCE_RPC_INTERFACES:
            version = f"{known.major}.{known.minor}"
            register_dcerpc_interface(self.interface.name, known.uuid, version, self._operations)
            return
        for opnum, operation in self._operations.items():
            bind_top_down(DceRpc5Request, operation.request, opnum=opnum)

    def layer_of(self, structure: Structure) -> Any:
        """Return the layer of a structure, or one that makes it: structures may nest in themselves."""
        name = f"{self.interface.name}_{structure.name}"
        if name in self._begun and name not in self.stubs:
            return _Lazily(self.stubs, name)
        self._begun.add(name)
        return self.stubs[name] if name in self.stubs else self._make(name, _Declared, structure)

    def _stub(self, name: str, stub: Stub) -> type[ScapyPacket]:
        return self.stubs[name] if name in self.stubs else self._make(name, _Stub, stub)

    def _make(self, name: str, base: type[ScapyPacket], declaration: Declaration) -> type[ScapyPacket]:
        metaclass: Any = type(base)
        space = {
            "name": name.replace("_R", " r") if name.startswith("R_") else name.replace("_", " ", 1),
            "declaration": declaration,
            "layers": self,
            "fields_desc": [f for member in declaration.members for f in self._fields(member, declaration)],
            "__doc__": f"{declaration.meaning}\n\n{declaration.section}",
            "__module__": self._space["__name__"],
        }
        self.stubs[name] = self._space[name] = metaclass(name, (base,), space)
        return self.stubs[name]

    def _fields(self, member: Member, owner: Declaration) -> Iterator[Field]:
        """The field of a member; for a union one for each arm, shown if it is present."""
        if not isinstance(member.type, Union):
            is_computed = member.name in _computed(owner)
            default = None if is_computed or member.default is REQUIRED else member.default
            yield self._field(member.name, member.type, default, is_computed)
            return
        for arm in filter(None, member.type.arms.values()):
            field = self._field(arm.name, arm.type, None, True)
            yield ConditionalField(field, lambda pkt, name=arm.name: pkt.getfieldval(name) is not None)

    def _field(self, name: str, node: Type, default: Any, is_computed: bool) -> Field:
        may_be_null = isinstance(node, Pointer) or (
            isinstance(node, Reference) and isinstance(node.target, Pointer)
        )
        absent = is_computed or may_be_null
        match _target(node):
            case Integer() as number:
                return _INTEGERS[number.bits, number.signed](name, None if absent else default or 0)
            case Enum():
                return ShortField(name, None if absent else default or 0)
            case Guid():
                return UUIDField(name, None if absent else default or NULL_GUID)
            case Handle():
                assert self.handle is not None
                return PacketField(name, self.handle(), self.handle)
            case FixedBytes(size=size):
                return StrFixedLenField(name, bytes(size), size)
            case ConformantBytes() if may_be_null:
                return BodyField(name, None)
            case ConformantBytes():
                return StrField(name, b"")
            case WideString():
                return StringField(name, None if absent else "")
            case ConformantArray(element=Structure() as element):
                layer = self.layer_of(element)
                return ItemsField(name, None, layer) if absent else PacketListField(name, [], layer)
            case ConformantArray(element=element):
                return FieldListField(name, None if absent else [], self._field("", element, None, False))
            case Structure() as structure:
                layer = self.layer_of(structure)
                return PacketField(name, None if absent else layer(), layer)
        raise TypeError(node)

    def shown(self, node: Type, value: Any) -> Any:
        """A value of the declaration as a field."""
        target = _target(node)
        match value:
            case ContextHandle():
                assert self.handle is not None
                return self.handle(attributes=value.attributes, uuid=value.uuid)
            case bytes() if isinstance(target, ConformantBytes) and is_whole_prefix(value):
                return MSMQBaseHeader(value, _internal=1)
            case tuple() if isinstance(target, ConformantArray):
                return [self.shown(target.element, item) for item in value]
        if isinstance(target, Structure) and value is not None:
            layer = self.layer_of(target)(_internal=1)
            layer.take(value)
            return layer
        return value


class _Lazily:
    """A layer that is not made yet, for fields inside of it."""

    def __init__(self, stubs: Mapping[str, type[ScapyPacket]], name: str) -> None:
        self._stubs, self.__name__ = stubs, name

    def __call__(self, *args: Any, **kargs: Any) -> ScapyPacket:
        return self._stubs[self.__name__](*args, **kargs)


def _computed(owner: Declaration) -> set[str]:
    """The members that building computes: counts, and the discriminants of unions."""
    names: set[str] = set()
    for member in owner.members:
        match _target(member.type):
            case ConformantArray(size_is=name) | ConformantBytes(size_is=name) | Union(switch_is=name):
                names.add(name)
    return names


def _target(node: Type) -> Type:
    while isinstance(node, Pointer | Reference):
        node = node.target
    return node


def _arm(layer: ScapyPacket, member: Member, union: Union, members: dict[str, Any]) -> dict[str, Any]:
    """The value of a union, and its discriminant if it is left out: that of the first given arm, else 0 or
    the first.
    """
    arms = {number: arm for number, arm in union.arms.items() if arm is not None}
    given = (number for number, arm in arms.items() if layer.getfieldval(arm.name) is not None)
    otherwise = 0 if 0 in union.arms else min(union.arms)
    switch = {} if union.switch_is in members else {union.switch_is: next(given, otherwise)}
    arm = arms.get({**members, **switch}[union.switch_is])
    value = None if arm is None else _value(layer.getfieldval(arm.name))
    if value is None and arm is not None and arm.default is not REQUIRED:
        value = arm.default
    return {**switch, member.name: value}


def _value(value: Any) -> Any:
    """A field as a value of the declaration."""
    match value:
        case ScapyPacket() if (handle := getattr(value, "context_handle", None)) is not None:
            return handle()
        case _Declared():
            return value.members()
        case ScapyPacket():
            return bytes(value)
        case list():
            return tuple(map(_value, value))
    return value


def stream_layer(data: bytes) -> type[ScapyPacket] | None:
    """Return the layer of a stream that begins with these bytes; None if it is not DCE/RPC."""
    if data[:1] != RPC_VERSION.to_bytes() or len(data) < COMMON_HEADER_SIZE:
        return None
    try:
        parse_header(data)
    except MalformedPacket:
        return None
    layer: type[ScapyPacket] = DceRpc5
    return layer


def bind() -> None:
    """Bind nothing: scapy's DCE/RPC is bound, and interfaces are registered by their own modules."""
