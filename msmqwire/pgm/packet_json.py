"""PGM packets as JSON-ready data, in the names of RFC 3208."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from msmqwire.pgm.layouts import OptionType, PgmType
from msmqwire.pgm.values import Nla, Option, PgmPacket

_COUNTED: Final = ("E", "OptionLength")


def fields_to_json(packet: PgmPacket) -> dict[str, Any]:
    """Return the fields of a packet: numbers as they are, bytes as hex, addresses as text.

    `Type` and the types of options have their name beside them, null for one that RFC 3208 does not have. The
    fields of the body, which depend on the type, stand under ``Body``. ``TrailingData`` is there if any are.
    """
    trailing = {"TrailingData": packet.trailing.hex()} if packet.trailing else {}
    return {
        "SourcePort": packet.SourcePort,
        "DestinationPort": packet.DestinationPort,
        "Type": packet.Type,
        "TypeName": _name(PgmType, packet.Type),
        "Options": packet.Options,
        "Checksum": packet.Checksum,
        "GSI": packet.GSI.hex(),
        "TSDULength": packet.TSDULength,
        "Body": {field.name: _value(getattr(packet.body, field.name)) for field in fields(packet.body)},
        "OptionExtensions": [_option(option) for option in packet.options],
        "Data": packet.data.hex(),
        **trailing,
    }


def _option(option: Option) -> dict[str, Any]:
    head = {"OptionType": option.kind, "Name": _name(OptionType, option.kind)}
    names = [field.name for field in fields(option) if field.name not in (*_COUNTED, "kind")]
    return {**head, **{name: _value(getattr(option, name)) for name in (*_COUNTED, *names)}}


def _name(kinds: Any, number: int) -> str | None:
    return next((kind.name for kind in kinds if kind == number), None)


def _value(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Nla):
        return {"Address": str(value.Address), "Reserved": value.Reserved}
    return list(value) if isinstance(value, tuple) else value
