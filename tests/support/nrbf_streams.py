"""Streams of [MS-NRBF] put together record by record, as .NET's BinaryFormatter writes them or wrongly."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from msmqwire.bodies.nrbf.records import Binary, Primitive, Record

END = bytes([Record.MESSAGE_END])
NULL = bytes([Record.OBJECT_NULL])
SHOP = "Shop, Version=1.0.0.0, Culture=neutral, PublicKeyToken=null"
_CODES = {
    Primitive.BOOLEAN: "?", Primitive.BYTE: "B", Primitive.DOUBLE: "d", Primitive.INT16: "h",
    Primitive.INT32: "i", Primitive.INT64: "q", Primitive.SBYTE: "b", Primitive.SINGLE: "f",
    Primitive.TIME_SPAN: "q", Primitive.DATE_TIME: "Q", Primitive.UINT16: "H", Primitive.UINT32: "I",
    Primitive.UINT64: "Q",
}  # fmt: skip

Member = tuple[str, Binary] | tuple[str, Binary, Primitive | str] | tuple[str, Binary, str, int]
"""A name, its type, and further data of the type: a primitive type, or a class, and the id of its library."""


def int32(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)


def text(value: str | bytes) -> bytes:
    """A LengthPrefixedString."""
    data = value.encode() if isinstance(value, str) else value
    size, rest = b"", len(data)
    while rest > 0x7F:
        size, rest = size + bytes([rest & 0x7F | 0x80]), rest >> 7
    return size + bytes([rest]) + data


def header(root: int = 1, head: int = -1, major: int = 1, minor: int = 0) -> bytes:
    return b"\0" + int32(root, head, major, minor)


def stream(*records: bytes, root: int = 1) -> bytes:
    return header(root) + b"".join(records) + END


def library(number: int, name: str = SHOP) -> bytes:
    return bytes([Record.BINARY_LIBRARY]) + int32(number) + text(name)


def primitive(kind: Primitive, value: int | float | str | bool) -> bytes:
    """A primitive value without its type."""
    if kind == Primitive.CHAR:
        return str(value).encode()
    if kind in (Primitive.DECIMAL, Primitive.STRING):
        return text(str(value))
    return struct.pack("<" + _CODES[kind], value)


def typed(kind: Primitive, value: int | float | str | bool) -> bytes:
    """A MemberPrimitiveTyped."""
    return bytes([Record.MEMBER_PRIMITIVE_TYPED, kind]) + primitive(kind, value)


def with_code(kind: Primitive, value: int | float | str | bool | None = None) -> bytes:
    """A ValueWithCode."""
    return bytes([kind]) + (b"" if kind == Primitive.NULL or value is None else primitive(kind, value))


def additional(more: Iterable[Primitive | str | int]) -> bytes:
    parts = []
    for one in more:
        if isinstance(one, Primitive):
            parts.append(bytes([one]))
        else:
            parts.append(text(one) if isinstance(one, str) else int32(one))
    return b"".join(parts)


def klass(number: int, name: str, members: Sequence[Member], of: int | None = None) -> bytes:
    """A class with members and types, a system class without a library; the values follow it."""
    kind = Record.SYSTEM_CLASS_WITH_MEMBERS_AND_TYPES if of is None else Record.CLASS_WITH_MEMBERS_AND_TYPES
    return b"".join(
        (
            bytes([kind]),
            int32(number),
            text(name),
            int32(len(members)),
            *(text(member[0]) for member in members),
            bytes(member[1] for member in members),
            *(additional(member[2:]) for member in members),
            b"" if of is None else int32(of),
        )
    )


def untyped(number: int, name: str, members: Sequence[str], of: int | None = None) -> bytes:
    """A class with members but without types."""
    kind = Record.SYSTEM_CLASS_WITH_MEMBERS if of is None else Record.CLASS_WITH_MEMBERS
    names = b"".join(text(member) for member in members)
    return (
        bytes([kind]) + int32(number) + text(name) + int32(len(members)) + names
        + (b"" if of is None else int32(of))
    )  # fmt: skip


def same(number: int, of: int) -> bytes:
    """A ClassWithId."""
    return bytes([Record.CLASS_WITH_ID]) + int32(number, of)


def string(number: int, value: str | bytes) -> bytes:
    return bytes([Record.BINARY_OBJECT_STRING]) + int32(number) + text(value)


def ref(number: int) -> bytes:
    return bytes([Record.MEMBER_REFERENCE]) + int32(number)


def nulls(count: int) -> bytes:
    if count < 256:
        return bytes([Record.OBJECT_NULL_MULTIPLE_256, count])
    return bytes([Record.OBJECT_NULL_MULTIPLE]) + int32(count)


def objects(number: int, count: int) -> bytes:
    return bytes([Record.ARRAY_SINGLE_OBJECT]) + int32(number, count)


def strings(number: int, count: int) -> bytes:
    return bytes([Record.ARRAY_SINGLE_STRING]) + int32(number, count)


def primitives(number: int, kind: Primitive, values: Sequence[int | float | str | bool]) -> bytes:
    items = b"".join(primitive(kind, value) for value in values)
    return bytes([Record.ARRAY_SINGLE_PRIMITIVE]) + int32(number, len(values)) + bytes([kind]) + items


def array(
    number: int,
    kind: int,
    lengths: Sequence[int],
    type_: Binary,
    *more: Primitive | str | int,
    lower: Sequence[int] = (),
) -> bytes:
    """A BinaryArray without its items."""
    return (
        bytes([Record.BINARY_ARRAY]) + int32(number) + bytes([kind]) + int32(len(lengths), *lengths, *lower)
        + bytes([type_]) + additional(more)
    )  # fmt: skip


def order(items: int = 4) -> bytes:
    """An order of ten members with a list of items, as .NET writes it: about 1 KiB."""
    item = f"Shop.Item, {SHOP}"
    of_list = f"System.Collections.Generic.List`1[[{item}]]"
    members: list[Member] = [
        ("Id", Binary.PRIMITIVE, Primitive.INT32),
        ("Customer", Binary.STRING),
        ("Created", Binary.PRIMITIVE, Primitive.DATE_TIME),
        ("Total", Binary.PRIMITIVE, Primitive.DECIMAL),
        ("Paid", Binary.PRIMITIVE, Primitive.BOOLEAN),
        ("Weight", Binary.PRIMITIVE, Primitive.DOUBLE),
        ("Currency", Binary.STRING),
        ("Comment", Binary.STRING),
        ("Status", Binary.CLASS, "Shop.Status", 2),
        ("Items", Binary.SYSTEM_CLASS, of_list),
    ]
    records = [
        library(2),
        klass(1, "Shop.Order", members, 2),
        primitive(Primitive.INT32, 4711),
        string(3, "ACME GmbH & Co. KG"),
        primitive(Primitive.DATE_TIME, 639_187_344_001_234_567 | 2 << 62),
        primitive(Primitive.DECIMAL, "1299.50"),
        primitive(Primitive.BOOLEAN, True),
        primitive(Primitive.DOUBLE, 12.75),
        string(4, "EUR"),
        string(5, "Please ring twice; the bell of the yard is broken."),
        klass(-6, "Shop.Status", [("value__", Binary.PRIMITIVE, Primitive.INT32)], 2),
        int32(2),
        ref(7),
        klass(
            7,
            of_list,
            [
                ("_items", Binary.CLASS, "Shop.Item[]", 2),
                ("_size", Binary.PRIMITIVE, Primitive.INT32),
                ("_version", Binary.PRIMITIVE, Primitive.INT32),
            ],
        ),
        ref(8),
        int32(items, items),
        array(8, 0, [items], Binary.CLASS, "Shop.Item", 2),
        *(ref(9 + number) for number in range(items)),
    ]
    for number in range(items):
        records += [
            same(9 + number, 9) if number else klass(
                9,
                "Shop.Item",
                [
                    ("Article", Binary.STRING),
                    ("Quantity", Binary.PRIMITIVE, Primitive.INT32),
                    ("Price", Binary.PRIMITIVE, Primitive.DECIMAL),
                ],
                2,
            ),
            string(100 + number, f"A-{1000 + number} screws, box of 100"),
            int32(number + 1),
            primitive(Primitive.DECIMAL, f"{number}.95"),
        ]  # fmt: skip
    return stream(*records)
