"""The fields of a packet of PGM, each with the bytes that it stands in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from msmqwire.names.printable import counted, cut
from msmqwire.pgm import PgmPacket
from msmqwire.pgm.layouts import COMMON_HEADER, COMMON_HEADER_SIZE
from msmqwire.pgm.options import build_options
from msmqwire.pgm.packet_json import fields_to_json
from msmqwire.pgm.packets import NLAS, build_nla
from msmqwire.pgm.values import Opaque
from msmqwire.schema import Header, Raw, UInt
from msmqwire.schema.display import PlacedField
from msmqwire.schema.showing import TEXT_MAX


def placed_fields(packet: PgmPacket, _raw: bytes) -> Iterator[PlacedField]:
    """Yield the fields of a packet."""
    values = fields_to_json(packet)
    at = 0
    for name in COMMON_HEADER.fields:
        size = _size_of(COMMON_HEADER, name)
        text = f"{values[name]} {values['TypeName'] or ''}".rstrip() if name == "Type" else str(values[name])
        yield PlacedField(name, at, size, text)
        at += size
    at = COMMON_HEADER_SIZE
    if isinstance(packet.body, Opaque):
        yield PlacedField("body", at, len(packet.body.content), counted(len(packet.body.content), "byte"))
        return
    for field in fields(packet.body):
        value = getattr(packet.body, field.name)
        size = len(build_nla(value)) if field.name in NLAS else _size_of(packet.body.layout, field.name)
        shown = str(value.Address) if field.name in NLAS else str(value)
        yield PlacedField(f"body.{field.name}", at, size, shown)
        at += size
    for option, shown in zip(packet.options, values["OptionExtensions"], strict=True):
        size = len(build_options((option,)))
        yield PlacedField(f"options.{shown['Name'] or shown['OptionType']}", at, size, _option_text(shown))
        at += size
    if packet.data:
        yield PlacedField("data", at, len(packet.data), counted(len(packet.data), "byte"))
        at += len(packet.data)
    if packet.trailing:
        yield PlacedField("TrailingData", at, len(packet.trailing), counted(len(packet.trailing), "byte"))


def _size_of(header: Header, name: str) -> int:
    """Return the bytes of a field of fixed size."""
    part = header.part(name)
    assert isinstance(part, UInt | Raw)
    size = part.size if isinstance(part, UInt) else part.length
    assert isinstance(size, int)
    return size


def _option_text(option: dict[str, Any]) -> str:
    left_out = ("OptionType", "Name", "E", "Reserved")
    return cut(
        ", ".join(f"{name} {value}" for name, value in option.items() if name not in left_out), TEXT_MAX
    )
