"""The rules for text that all readers and writers share."""

from __future__ import annotations

from typing import Final

from msmqwire.names.printable import agreed, counted
from msmqwire.schema.nodes import OemText
from msmqwire.schema.utf16 import chosen_length

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
            raise ValueError(f"{counted(len(data), 'character')}, {length - 1} fit")
        return (bytes([len(data)]) + data if part.counted else data).ljust(length, b"\0")
    if length is not None and len(value) != length:
        raise ValueError(f"{counted(len(value), 'byte')}, {agreed(length, 'are')} there")
    return value


def encode_text(value: str | bytes | None) -> bytes:
    """Return the bytes of a text value: UTF-16 with its null, or the bytes it was parsed as."""
    if value is None:
        return b""
    if isinstance(value, str):
        return (value + "\0").encode("utf-16-le")  # MQMQ-2.2.18-01
    return value


def encode_padded(value: str | bytes, length: int) -> bytes:
    """Return the bytes of a fixed text field. Raises ValueError if it does not fit."""
    data = value.encode("utf-16-le").ljust(length, b"\0") if isinstance(value, str) else value
    if len(data) != length:
        raise ValueError(f"{counted(len(data), 'byte')}, {agreed(length, 'are')} there")
    return data


def text_units(data: bytes, name: str, per_unit: int, otherwise: int = 0) -> int:
    """Return the length, in units of `per_unit` bytes, for which readers take these bytes of a text.

    Args:
        name: the field of the length.
        otherwise: bytes of another unit that readers consider; 0 for none. It is used only if the first unit
            would give other bytes, as where half of the bytes are a text with its null.

    Raises ValueError if no length gives the bytes back: it would be wrong without notice.
    """
    size = len(data)
    for unit in (per_unit, otherwise or per_unit):
        count, rest = divmod(size, unit)
        if rest:
            continue
        if not otherwise or chosen_length(data, 0, (count * per_unit, count * otherwise), size) == size:
            return count
    raise ValueError(f"no {name} gives its {counted(size, 'byte')} back")
