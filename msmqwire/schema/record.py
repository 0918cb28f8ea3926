"""Parsed values: records and flag words, and the text rules shared by all readers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from msmqwire.schema.nodes import SCHEMAS, Bits, Flags, Header, Maybe, OemText, Packet, Part, Sub


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
        from msmqwire.display import to_html
        from msmqwire.schema.showing import record_view

        return to_html(record_view(self))

    def __rich__(self) -> Any:
        """Return a table for rich: each field beside its bytes."""
        from msmqwire.display import to_rich
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
    """Return what `help` says of a field: its meaning, that of the structure in it, its unit."""
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


_DECLARING: Final = ("msmqwire.packets", "msmqwire.netware.packets", "msmqwire.netware.print_record")
"""The modules that declare, by themselves or by what they import, all structures with records."""


def _declared(name: str) -> Any:
    """Return a structure; in a process that reads a pickle first, what declares it is not imported yet."""
    if name not in SCHEMAS:
        for module in _DECLARING:
            import_module(module)
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


# -- text: the same rules for every reader -----------------------------------------------------


OEM_CODE_PAGE: Final = "cp437"


def oem_exact(data: bytes) -> str:
    """Decode text of one byte a character."""
    return data.decode(OEM_CODE_PAGE)


def oem_padded(data: bytes) -> str | bytes:
    """Decode a field filled up with nulls; return the text before them, or the bytes unchanged."""
    end = data.find(b"\0")
    return data[:end].decode(OEM_CODE_PAGE) if end >= 0 and not any(data[end:]) else data


def oem_counted(data: bytes) -> str | bytes:
    """Decode a field that begins with a count of characters; return the text, or the bytes unchanged."""
    end = 1 + data[0]
    text = data[1:end]
    if end > len(data) or any(data[end:]) or b"\0" in text:
        return data
    return text.decode(OEM_CODE_PAGE)


def oem_value(part: OemText, data: bytes) -> str | bytes:
    """Decode the bytes of a part."""
    if not isinstance(part.length, int):
        return oem_exact(data)
    return oem_counted(data) if part.counted else oem_padded(data)


def encode_oem(part: OemText, value: str | bytes) -> bytes:
    """Return the bytes of text of one byte a character.

    Raises ValueError for a character that the code page lacks, or if the text does not fit.
    """
    length = part.length if isinstance(part.length, int) else None
    if isinstance(value, str):
        try:
            data = value.encode(OEM_CODE_PAGE)
        except UnicodeEncodeError as exc:
            raise ValueError(f"{value[exc.start]!r} is not in code page 437") from None
        if length is None:
            return data
        if b"\0" in data:
            raise ValueError("a null inside the text")
        if len(data) >= length:
            raise ValueError(f"{len(data)} characters, {length - 1} fit")
        return (bytes([len(data)]) + data if part.counted else data).ljust(length, b"\0")
    if length is not None and len(value) != length:
        raise ValueError(f"{len(value)} bytes, {length} are there")
    return value


def text_exact(data: bytes) -> str | bytes | None:
    """Decode UTF-16 that should end on its only null; return the text without it, or the bytes unchanged."""
    if not data:
        return None
    if data[-2:] == b"\0\0" and not len(data) & 1:
        try:
            text = data[:-2].decode("utf-16-le")
        except UnicodeDecodeError:
            return data
        if "\0" not in text:
            return text
    return data


def text_padded(data: bytes) -> str | bytes:
    """Decode a field padded with nulls; return the text before them, or the bytes unchanged."""
    end = find_null(data, 0, len(data))
    if end >= 0 and not any(data[end:]):
        try:
            return data[:end].decode("utf-16-le")
        except UnicodeDecodeError:
            return data
    return data


def find_null(data: bytes, start: int, end: int) -> int:
    """Return the offset of the first null character, on a character boundary from `start`; -1 for none."""
    at = data.find(b"\0\0", start, end)
    while at >= 0 and (at - start) & 1:
        at = data.find(b"\0\0", at + 1, end)
    return at


def ends_on_null(data: bytes, start: int, length: int, end: int) -> bool:
    """Return whether `length` bytes fit before `end` and their last character is a null."""
    stop = start + length
    return length >= 2 and not length & 1 and stop <= end and data[stop - 2 : stop] == b"\0\0"


def chosen_length(data: bytes, start: int, lengths: tuple[int, ...], end: int) -> int:
    """Choose among possible lengths of a text.

    The first that makes it well-formed, else the first that ends it on a null, else the first.
    """
    ending = [length for length in lengths if ends_on_null(data, start, length, end)]
    for length in ending:
        if isinstance(text_exact(data[start : start + length]), str):
            return length
    return ending[0] if ending else lengths[0]


def encode_text(value: str | bytes | None) -> bytes:
    """Return the bytes of a text value: UTF-16 with its null, or the bytes it was parsed as."""
    if value is None:
        return b""
    if isinstance(value, str):
        return (value + "\0").encode("utf-16-le")
    return value


def encode_padded(value: str | bytes, length: int) -> bytes:
    """Return the bytes of a fixed text field. Raises ValueError if it does not fit."""
    data = value.encode("utf-16-le").ljust(length, b"\0") if isinstance(value, str) else value
    if len(data) != length:
        raise ValueError(f"{len(data)} bytes, {length} are there")
    return data
