"""The rules for text that all readers and writers share."""

from __future__ import annotations

from typing import Final

from msmqwire.schema.nodes import OemText

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
