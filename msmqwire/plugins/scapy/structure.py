"""A structure of the schemas as a layer of scapy: its values, its bytes, and the conversion between them."""

from __future__ import annotations

from typing import Any, ClassVar, Final
from uuid import UUID

from scapy.base_classes import Packet_metaclass
from scapy.fields import RawVal
from scapy.packet import NoPayload
from scapy.packet import Packet as ScapyPacket
from scapy.volatile import VolatileValue

from msmqwire.errors import MalformedPacket
from msmqwire.plugins.scapy.fields import may_be_omitted, scapy_fields
from msmqwire.schema import (
    Choice,
    Close,
    Each,
    Flags,
    Header,
    Maybe,
    Part,
    Raw,
    Record,
    Repeat,
    Sub,
    Text,
    View,
    fixed_size,
)
from msmqwire.schema.layout import layout
from msmqwire.schema.references import stands_alone

LAYERS: Final[dict[str, type[Structure]]] = {}
"""The layers of structures, by the keys of their schemas."""


OWNERS: Final[dict[str, str]] = {}
"""The modules of layers outside MSMQ, by the prefixes of their structures' names."""


class _FromSchema(Packet_metaclass):
    """Makes the name and the fields of a layer from its schema.

    A class may have the fields of a structure without being its layer.
    """

    def __new__(
        mcs, name: str, bases: tuple[type, ...], space: dict[str, Any], is_layer_of_schema: bool = True
    ) -> Any:
        schema = space.get("schema")
        if isinstance(schema, Header):
            space.setdefault("name", schema.key if owner_of(schema) else f"MSMQ {schema.key}")
            space["fields_desc"] = scapy_fields(schema, layer)
            space.setdefault("__doc__", f"{schema.meaning}\n\n{schema.section}")
        created = super().__new__(mcs, name, bases, space)
        if isinstance(schema, Header) and is_layer_of_schema:
            LAYERS[schema.key] = created
        return created


class Structure(ScapyPacket, metaclass=_FromSchema):
    """The base of all layers that are declared as a schema.

    Fields have the names of the specification; bits of a flag word are separate fields. A field that is None
    is computed when the packet is built, like omitted values of a record; any other value is kept.
    """

    schema: ClassVar[Header]
    show_summary = False

    def self_build(self) -> bytes:
        """Return the bytes of this layer alone. Raises InvalidValue."""
        if stands_alone(self.schema):
            return with_raw_values(self, self.schema.make(partial(self)))
        data = b""
        for field in self.fields_desc:
            data = field.addfield(self, data, self.getfieldval(field.name))
        return data

    def do_dissect(self, s: bytes) -> bytes:
        """Take the fields from the bytes, and return the bytes after them.

        Raises MalformedPacket; a refused value in a structure of fixed size is still shown.
        """
        try:
            record, end = self.schema.read(s)
        except MalformedPacket:
            size = fixed_size(self.schema)
            if size is None or len(s) < size:
                raise
            rest: bytes = super().do_dissect(s)
            self.raw_packet_cache = None
            return rest
        take(self, record)
        return s[end:]

    def _command(self, json: bool = False) -> list[tuple[str, Any]]:
        """Make `json()` write GUIDs, too."""
        return [
            (name, str(value) if json and isinstance(value, UUID) else value)
            for name, value in super()._command(json=json)
        ]

    def mysummary(self) -> str:
        return "" if isinstance(self.underlayer, Structure) else type(self).__name__


def owner_of(schema: Header) -> str | None:
    """Return the module of a structure's layer; None for MSMQ."""
    return next((module for start, module in OWNERS.items() if schema.name.startswith(start)), None)


def layer(schema: Header) -> type[Structure]:
    """Return the layer of a structure, made if there is none.

    Its name is ``MSMQ`` and the name in the specification, or that alone for those of `OWNERS`.
    """
    known = LAYERS.get(schema.key)
    if known is not None:
        return known
    owner = owner_of(schema)
    name = schema.key if owner else "MSMQ" + schema.key.replace(" ", "_")
    space = {"schema": schema, "__module__": owner or "msmqwire.plugins.scapy.headers"}
    return _FromSchema(name, (Structure,), space)  # type: ignore[no-any-return]


def given_fields(structure: Structure) -> dict[str, Any]:
    """Return the fields given by the user or by the dissected bytes.

    scapy's `fuzz` puts random structures among the defaults, which copies of the usual ones hide.
    """
    given = {**structure.overloaded_fields, **structure.fields}
    for field in structure.packetfields:
        default = structure.default_fields[field.name]
        if (
            isinstance(default, Structure)
            and _is_random(default)
            and given.get(field.name) == type(default)()
        ):
            given[field.name] = default
    return given


def _is_random(structure: Structure) -> bool:
    return any(isinstance(value, VolatileValue) for value in structure.default_fields.values())


def with_raw_values(structure: Structure, record: Record) -> bytes:
    """Return the bytes of a complete record, each RawVal of its layer in the place of the field's own.

    With RawVal, users of scapy put any bytes into a field. Raises InvalidValue.
    """
    data: bytes = record.to_bytes()
    injected = {name: value for name, value in given_fields(structure).items() if isinstance(value, RawVal)}
    if not injected:
        return data
    pieces = dict.fromkeys(record.schema.fields, b"")
    for field in layout(record):
        name = field.path.removeprefix(f"{record.schema.name}.").partition(".")[0].partition("[")[0]
        pieces[name] += data[field.offset : field.offset + field.size]
    return b"".join(bytes(injected.get(name, piece)) for name, piece in pieces.items())


def partial(structure: Structure) -> Record:
    """Return a record of the given fields: fields that are None or unset are omitted."""
    if not structure.explicit:
        structure = next(iter(structure))  # random values become fixed ones
    given = {name: value for name, value in given_fields(structure).items() if not isinstance(value, RawVal)}
    record: Record = structure.schema.record()
    for part in structure.schema.parts:
        if isinstance(part, Flags):
            bits = {bit.name: given[bit.name] for bit in part.parts if given.get(bit.name) is not None}
            if bits:
                setattr(record, part.name, bits)
        elif isinstance(part, Text) and part.name in given:
            if given[part.name] is not None or not may_be_omitted(part):
                setattr(record, part.name, given[part.name])
        elif not isinstance(part, Close | View) and given.get(part.name) is not None:
            value = _value(given[part.name])
            is_body = isinstance(part, Raw) and isinstance(value, Record)
            setattr(record, part.name, value.to_bytes() if is_body else value)
    return record


def _value(value: Any) -> Any:
    match value:
        case NoPayload():
            return None
        case Structure():
            return partial(value)
        case ScapyPacket():
            return bytes(value)
        case list():
            return [_value(item) for item in value]
    return value


def take(structure: Structure, record: Record) -> None:
    """Set all fields of a layer to those of a complete record."""
    fields: dict[str, Any] = {}
    for part in record.schema.parts:
        if isinstance(part, Flags):
            fields.update({name: int(value) for name, value in record[part.name].bits().items()})
        elif not isinstance(part, Close | View):
            fields[part.name] = _field(part, record[part.name], structure)
    structure.fields = fields
    structure.explicit = 1


def _field(part: Part, value: Any, parent: Structure) -> Any:
    match part:
        case Sub() | Maybe() | Choice() if isinstance(value, Record):
            return of_record(value, parent)
        case Repeat() | Each():
            return [NoPayload() if item is None else of_record(item, parent) for item in value]
    return value


def of_record(record: Record, parent: Structure | None = None) -> Structure:
    """Return a complete record as a layer."""
    structure = layer(record.schema)(_internal=1, _parent=parent)
    take(structure, record)
    return structure
