"""The parts of a SOAP envelope as text, as a message keeps them: [MS-MQDMPR] 3.1.1.12."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from msmqwire.srmp.scan import scan

_NAME: Final = re.compile(rb"[^\s/>]+")


class SoapText(NamedTuple):
    """An envelope, and its Header and Body with their tags."""

    envelope: str
    header: str
    body: str


def soap_text(data: bytes) -> SoapText:
    """Return the texts of an envelope that `parse_envelope` accepts."""
    places = _plain_places(data) or _places(data)
    texts = (data, *(data[start:end] for start, end in places))
    return SoapText(*(text.decode("utf-8-sig") for text in texts))


def _places(data: bytes) -> list[tuple[int, int]]:
    """Return where Header and Body begin and end."""
    _, header, *others = scan(data)  # Header and Body stand first, in this order: SRMP-2.2.2-06
    body = next(place for place in others if place.start >= header.end)
    return [(header.start, header.end), (body.start, body.end)]


def _plain_places(data: bytes) -> list[tuple[int, int]] | None:
    """Return the same for an envelope whose every ``<`` begins a tag; None if only a scan can tell."""
    root = data.find(b"<")
    if data.startswith(b"<?", root):  # the declaration
        root = data.find(b"<", data.find(b"?>", root))
    if b"<!" in data or data.find(b"<?", root) >= 0:
        return None
    header = data.find(b"<", root + 1)
    header_end = _end(data, header)
    if header_end is None:
        return None
    body = data.find(b"<", header_end)
    body_end = _end(data, body)
    return None if body_end is None else [(header, header_end), (body, body_end)]


def _end(data: bytes, start: int) -> int | None:
    """Return the end of an element whose name no other one has; None if only a scan can tell."""
    name = _NAME.match(data, start + 1)
    if name is None or data.count(b"<" + name[0]) != 1:
        return None
    end_tag = b"</" + name[0]
    ends = data.count(end_tag)
    if ends == 1:
        return data.index(b">", data.index(end_tag)) + 1
    end = data.index(b">", start) + 1
    # In quotes there may be another ``>``.
    return end if not ends and data[end - 2] == ord("/") and not {*b"\"'"} & {*data[start:end]} else None
