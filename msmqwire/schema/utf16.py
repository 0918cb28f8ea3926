"""Rules for reading UTF-16, which all readers share. They compile, and take bytes only."""

from __future__ import annotations


def text_exact(data: bytes) -> str | bytes | None:
    """Decode UTF-16 that should end on its only null; return the text without it, or the bytes unchanged."""
    if not data:
        return None
    if data[-2:] == b"\0\0" and not len(data) & 1:
        try:
            text = data[:-2].decode("utf-16-le")  # MQMQ-2.2.18-01
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
