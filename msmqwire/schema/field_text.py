"""The value of a field as text, for people."""

from __future__ import annotations

from typing import Any

from msmqwire.names.printable import counted, safe
from msmqwire.schema import FlagsValue
from msmqwire.schema.layout import Field


def field_text(field: Field) -> str:
    """Return the value of a field: the names of bits that are set, the unit of a number."""
    value: Any = field.value
    if isinstance(value, FlagsValue):
        bits = [
            p.name if p.width == 1 else f"{p.name} {(int(value) & p.mask) >> p.shift}"
            for p in value.schema.parts
            if int(value) & p.mask
        ]
        return f"{int(value):#x} {', '.join(bits)}".rstrip()
    if isinstance(value, bytes):
        return counted(len(value), "byte")
    if isinstance(value, str):
        return f'"{safe(value)}"'
    if isinstance(value, int):
        unit = getattr(field.node, "unit", "")
        return f"{value} ({value:#x}){' ' + unit if unit else ''}"
    return str(value)
