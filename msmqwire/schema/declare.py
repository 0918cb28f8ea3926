"""Short forms for declaring the parts of headers: one function for each kind of node."""

from __future__ import annotations

from collections.abc import Mapping

from msmqwire.schema.nodes import (
    Align,
    Bits,
    Choice,
    Flags,
    Guid,
    Header,
    Length,
    Mark,
    Maybe,
    OemText,
    Raw,
    Ref,
    Repeat,
    Sub,
    Text,
    UInt,
    Values,
)


def _ids(req: str | tuple[str, ...]) -> tuple[str, ...]:
    return (req,) if isinstance(req, str) and req else tuple(req)


def uint(
    bits: int,
    name: str,
    meaning: str = "",
    *,
    req: str | tuple[str, ...] = (),
    default: int = 0,
    unit: str = "",
    must: Values = None,
    size_of: str = "",
    same_as: str = "",
    signed: bool = False,
    big_endian: bool = False,
) -> UInt:
    """A `UInt` in short form."""
    return UInt(
        name,
        bits,
        signed,
        default,
        unit,
        must,
        size_of,
        same_as,
        big_endian,
        req=_ids(req),
        meaning=meaning,
    )


def bit(
    name: str,
    shift: int,
    meaning: str = "",
    *,
    width: int = 1,
    default: int = 0,
    req: str | tuple[str, ...] = (),
) -> Bits:
    """A `Bits` in short form."""
    return Bits(name, shift, width, default, _ids(req), meaning)


def reserved(names: str, shift: int, *, width: int = 1, req: str | tuple[str, ...] = ()) -> tuple[Bits, ...]:
    """Consecutive reserved bits from bit `shift` up; their names are separated by blanks."""
    return tuple(
        Bits(name, shift + i * width, width, 0, _ids(req), "Reserved: sent as 0, ignored on receipt.", True)
        for i, name in enumerate(names.split())
    )


def flags(
    bits: int,
    name: str,
    *parts: Bits | tuple[Bits, ...],
    meaning: str = "",
    req: str | tuple[str, ...] = (),
    big_endian: bool = False,
) -> Flags:
    """A `Flags` in short form."""
    flat: list[Bits] = []
    for part in parts:
        flat.extend((part,) if isinstance(part, Bits) else part)
    in_order = tuple(sorted(flat, key=lambda p: p.shift))
    return Flags(name, bits, in_order, big_endian, req=_ids(req), meaning=meaning)


def guid(name: str, meaning: str = "", *, req: str | tuple[str, ...] = ()) -> Guid:
    """A `Guid` in short form."""
    return Guid(name, req=_ids(req), meaning=meaning)


def raw(
    name: str,
    length: Length,
    meaning: str = "",
    *,
    req: str | tuple[str, ...] = (),
    default: bytes = b"",
    marks: str = "",
) -> Raw:
    """A `Raw` in short form."""
    if isinstance(length, int) and not default:
        default = bytes(length)
    return Raw(name, length, default, marks, req=_ids(req), meaning=meaning)


def text(
    name: str,
    length: Length,
    meaning: str = "",
    *,
    req: str | tuple[str, ...] = (),
    otherwise: Ref | None = None,
    strict: bool = False,
    padded: bool = False,
) -> Text:
    """A `Text` in short form."""
    return Text(name, length, otherwise, strict, padded, req=_ids(req), meaning=meaning)


def oem_text(
    name: str,
    length: Length,
    meaning: str = "",
    *,
    req: str | tuple[str, ...] = (),
    counted: bool = False,
) -> OemText:
    """An `OemText` in short form."""
    return OemText(name, length, counted, req=_ids(req), meaning=meaning)


def align(
    name: str, to: int = 4, *, of: str = "", marker: bytes = b"", req: str | tuple[str, ...] = ()
) -> Align:
    """An `Align` in short form."""
    return Align(name, to, of, marker, req=_ids(req), meaning=f"Padding up to a multiple of {to} bytes.")


def maybe(
    when: str | Mark,
    node: Guid | Sub | Raw,
    *,
    equals: int | None = None,
    mark: int | None = None,
    marks: str = "",
    req: str | tuple[str, ...] = (),
) -> Maybe:
    """A `Maybe` in short form."""
    return Maybe(when, node, equals, mark, marks, req=_ids(req), meaning=node.meaning)


def sub(
    header: Header,
    name: str = "",
    *,
    within: Ref | None = None,
    meaning: str = "",
    req: str | tuple[str, ...] = (),
) -> Sub:
    """A `Sub` in short form, named after the header by default."""
    return Sub(name or header.name, header, within, req=_ids(req), meaning=meaning or header.meaning)


def choice(
    name: str,
    by: str,
    arms: Mapping[int, Header | None],
    meaning: str = "",
    *,
    within: Ref | None = None,
    req: str | tuple[str, ...] = (),
) -> Choice:
    """A `Choice` in short form."""
    return Choice(name, by, arms, within, req=_ids(req), meaning=meaning)


def repeat(
    name: str, count: str, item: Header, meaning: str = "", *, req: str | tuple[str, ...] = ()
) -> Repeat:
    """A `Repeat` in short form."""
    return Repeat(name, count, item, req=_ids(req), meaning=meaning)
