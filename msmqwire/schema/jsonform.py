"""Records as JSON-ready data and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from msmqwire.errors import InvalidValue
from msmqwire.schema.codec_support import Refused
from msmqwire.schema.nodes import (
    SCHEMAS,
    Align,
    Choice,
    Close,
    Each,
    Fill,
    Maybe,
    OemText,
    Packet,
    Part,
    Raw,
    Ref,
    Repeat,
    Sub,
    Text,
    View,
)
from msmqwire.schema.record import FlagsValue, OddPadding, Record
from msmqwire.schema.texts import OEM_CODE_PAGE


def to_json(record: Record) -> dict[str, Any]:
    """Return the fields of a record: GUIDs and bytes as text, flag words as their bits.

    Zero padding of the right length is omitted; an absent header has no key.
    """
    result: dict[str, Any] = {}
    packet = isinstance(record.schema, Packet)
    for part in record.schema.parts:
        if isinstance(part, Close) or not hasattr(record, part.name):
            continue
        value = getattr(record, part.name)
        if isinstance(part, (Align, Fill)) and not isinstance(value, OddPadding) and not any(value):
            continue
        if isinstance(part, Raw) and isinstance(part.length, Ref) and part.length.over and not value:
            continue
        if packet and not value and isinstance(part, Raw):
            continue  # nothing is left after the headers
        if value is None and packet and isinstance(part, Maybe):
            continue
        result[part.name] = _value(part, value)
    return result


def _value(part: Part, value: Any) -> Any:
    if isinstance(value, FlagsValue):
        return value.bits()
    if value is None or isinstance(value, (int, str)):
        return value
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bytes):
        if isinstance(part, OemText):
            return {OEM_CODE_PAGE: value.hex()}
        return {"utf16le": value.hex()} if isinstance(part, Text) else value.hex()
    if isinstance(part, (Repeat, Each)):
        return [None if item is None else to_json(item) for item in value]
    assert isinstance(part, (Sub, Maybe, Choice, View))
    return to_json(value)


def json_text(record: Record) -> str:
    """Return `to_json` of a record as JSON text in ASCII, many times faster than by way of it."""
    try:
        return record.schema.codec.json_trusted(record)
    except (Refused, AttributeError):
        from msmqwire.json_text import dumps

        return dumps(to_json(record))  # a value that no bytes have, or a field that is not set


def packet_to_json(packet: Record) -> dict[str, Any]:
    """Return ``{"packet": name, "size": bytes on the stream, "fields": {...}}``."""
    return {"packet": packet.schema.name, "size": len(packet.to_bytes()), "fields": to_json(packet)}


def from_json(data: Mapping[str, Any]) -> Record:
    """Return the packet of such an object; computable fields may be omitted. Raises InvalidValue."""
    if not isinstance(data, Mapping):
        raise InvalidValue("not an object", path="")
    name = data.get("packet")
    schema = SCHEMAS.get(name) if isinstance(name, str) else None
    if not isinstance(schema, Packet):
        raise InvalidValue(f"{name!r} is not a packet", path="packet")
    fields = data.get("fields", {})
    if not isinstance(fields, Mapping):
        raise InvalidValue("not an object", path="fields")
    return schema.make(fields)  # type: ignore[no-any-return]
