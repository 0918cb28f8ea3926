"""Parsed values: records and flag words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from msmqwire.schema.nodes import SCHEMAS, Bits, Flags, Header, Maybe, Packet, Part, Sub


class OddPadding(bytes):
    """Padding of another length than the alignment requires."""

    __slots__ = ()


class FlagsValue(int):
    """A flag word: an integer whose named bits are attributes (single bits bool, wider ones int)."""

    schema: ClassVar[Flags]
    owner: ClassVar[str]
    __slots__ = ()

    def bits(self) -> dict[str, int | bool]:
        """Return every named bit, reserved ones included, lowest first."""
        return {p.name: _bit_value(self, p) for p in self.schema.parts}

    def replace(self, **bits: int) -> Self:
        """Return the word with some bits changed. Raises KeyError for an unknown name."""
        parts = {p.name: p for p in self.schema.parts}
        value = int(self)
        for name, bit in bits.items():
            part = parts[name]
            value = (value & ~part.mask) | ((int(bit) << part.shift) & part.mask)
        return type(self)(value)

    def __repr__(self) -> str:
        shown = [
            p.name if p.width == 1 else f"{p.name}={_bit_value(self, p)}"
            for p in self.schema.parts
            if int(self) & p.mask
        ]
        return f"<{self.owner}.{self.schema.name} {int(self):#x}{' ' if shown else ''}{' '.join(shown)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_flags, (self.owner, self.schema.name, int(self))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class Record:
    """The value of a structure: one attribute for each field, under the specification's name.

    An attribute that is not set (``del record.PacketSize``) counts as omitted: building computes it.
    Records compare by value and can be read as mappings (``record["Label"]``, ``dict(record)``).
    """

    schema: ClassVar[Header]
    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, **fields: Any) -> None:
        for name, value in fields.items():
            if name not in self.schema.fields:
                raise TypeError(f"{self.schema.name} has no field {name}")
            setattr(self, name, value)

    def __iter__(self) -> Iterator[str]:
        return self.keys()

    def keys(self) -> Iterator[str]:
        """Return the names of the fields that are set."""
        return (name for name in self.schema.fields if hasattr(self, name))

    def __getitem__(self, name: str) -> Any:
        if name not in self.schema.fields or not hasattr(self, name):
            raise KeyError(name)
        return getattr(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the field, or `default` if it is not set."""
        return getattr(self, name, default) if name in self.schema.fields else default

    def replace(self, **fields: Any) -> Self:
        """Return a copy with other values."""
        return type(self)(**{**dict(self), **fields})

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return dict(self) == dict(other)

    def __repr__(self) -> str:
        from msmqwire.schema.showing import one_line

        return one_line(self)

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: each field beside its bytes."""
        from msmqwire.schema.display import to_html
        from msmqwire.schema.showing import record_view

        return to_html(record_view(self))

    def __rich__(self) -> Any:
        """Return a table for rich: each field beside its bytes."""
        from msmqwire.schema.display import to_rich
        from msmqwire.schema.showing import record_view

        return to_rich(record_view(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_record, (self.schema.key, dict(self))

    def to_json(self) -> dict[str, Any]:
        """Return JSON-ready data: a packet as ``msmqwire parse`` prints it, any other as its fields."""
        from msmqwire.schema.jsonform import packet_to_json, to_json

        return packet_to_json(self) if isinstance(self.schema, Packet) else to_json(self)

    def recomputed(self) -> Self:
        """Return a copy with sizes, counts, presence bits and padding recomputed, after a change.

        Raises InvalidValue.
        """
        from msmqwire.schema.recompute import recomputed

        return recomputed(self)  # type: ignore[return-value]

    def to_bytes(self) -> bytes:
        """Return the bytes; omitted fields are computed. Raises InvalidValue."""
        return self.schema.build(self)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

        def __setattr__(self, name: str, value: Any) -> None: ...


def record_class(header: Header) -> type[Record]:
    """Create the record class of a structure."""
    slots = {part.name: _field_doc(part) for part in header.parts if part.name in header.fields}
    return type(header.name, (Record,), {"__slots__": slots, "schema": header, "__doc__": _doc(header)})


_FLAG_CLASSES: Final[dict[tuple[str, str], type[FlagsValue]]] = {}


def flags_class(owner: str, node: Flags) -> type[FlagsValue]:
    """Return the class of a flag word; each structure and field has one."""
    cached = _FLAG_CLASSES.get((owner, node.name))
    if cached is not None and cached.schema == node:
        return cached
    space: dict[str, Any] = {"__slots__": (), "schema": node, "owner": owner}
    for part in node.parts:
        space[part.name] = property(_getter(part), doc=part.meaning)
    cls = type(f"{owner}{node.name}", (FlagsValue,), space)
    return _FLAG_CLASSES.setdefault((owner, node.name), cls)


def _getter(part: Bits) -> Any:
    mask, shift = part.mask, part.shift
    if part.width == 1:
        return lambda self: int(self) & mask != 0
    return lambda self: (int(self) & mask) >> shift


def _bit_value(value: int, part: Bits) -> int | bool:
    bits = (int(value) & part.mask) >> part.shift
    return bits != 0 if part.width == 1 else bits


def _doc(header: Header) -> str:
    return f"{header.meaning or f'The structure {header.name}.'}\n\n{header.section}"


def _field_doc(part: Part) -> str:
    """Return the text of `help` for a field: its meaning, that of the structure in it, its unit."""
    inner = part.node if isinstance(part, Maybe) else part
    structure = inner.header if isinstance(inner, Sub) else None
    meaning: str = getattr(part, "meaning", "") or getattr(inner, "meaning", "")
    if not meaning and structure is not None:
        meaning = structure.meaning
    if not meaning and isinstance(inner, Flags):
        meaning = f"Bits: {', '.join(bits.name for bits in inner.parts)}."
    unit = getattr(inner, "unit", "")
    absent = "None if it is absent." if isinstance(part, Maybe) else ""
    return " ".join(filter(None, [meaning, f"Unit: {unit}." if unit else "", absent]))


class_of: Final[Callable[[object], Any]] = type
"""The class of a value, in place of the value, as some can't be hashed."""


def paths_in(kind: type, paths: Sequence[str], at: str = "") -> list[str]:
    """Return those of some paths that begin with a field of a class of records, which stands at a path."""
    fields = kind.schema.fields if issubclass(kind, Record) else ()
    return [f"{at}{path}" for path in paths if path.partition(".")[0] in fields]


def first_of(paths: Sequence[str], convert: Callable[[Any], Any] | None = None) -> Callable[[Any], Any]:
    """Return the function that finds the first of some fields that a value has, and converts it.

    It returns None where there is none.
    """
    steps = [path.split(".") for path in paths]

    def value(owner: Any) -> Any:
        for names in steps:
            found = owner
            for name in names:
                found = getattr(found, name, None)
                if found is None:
                    break
            else:
                return found if convert is None else convert(found)
        return None

    return value


_DECLARING: Final = (
    "msmqwire.packets", "msmqwire.pgm.layouts", "msmqwire.ncp.packets", "msmqwire.ncp.print_record",
)  # fmt: skip
"""The modules that declare, by themselves or by their imports, all structures with records."""


def _declared(name: str) -> Any:
    """Return a structure; a process that reads a pickle first has not imported its module yet."""
    if name not in SCHEMAS:
        for module in _DECLARING:
            import_module(module)
            if name in SCHEMAS:
                break
    return SCHEMAS[name]


def _restore_record(name: str, fields: dict[str, Any]) -> Record:
    record: Record = _declared(name).record(**fields)
    return record


def _restore_flags(owner: str, name: str, value: int) -> FlagsValue:
    part = _declared(owner).part(name)
    assert isinstance(part, Flags)
    return flags_class(owner, part)(value)


def plain(value: Any) -> Any:
    """Return records, containers and flag words as dicts, lists and leaves, to compare two readers by."""
    if isinstance(value, FlagsValue):
        return value.bits()
    if isinstance(value, Record):
        return {name: plain(value[name]) for name in value}
    if isinstance(value, Mapping):
        return {name: plain(v) for name, v in value.items() if name != "_io"}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value
