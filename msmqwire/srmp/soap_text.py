"""The parts of a SOAP envelope as text, as a message keeps them: [MS-MQDMPR] 3.1.1.12."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from msmqwire.srmp.scan import is_within_limits, scan

_START: Final = re.compile(rb"<([^\s<>/]+)")
_BARE_START_TAG: Final = re.compile(rb"<([^\s<>/]+)>")


class SoapText(NamedTuple):
    """An envelope, and its Header and Body with their tags."""

    envelope: str
    header: str
    body: str


def soap_text(data: bytes) -> SoapText:
    """Return the texts of an envelope that `parse_envelope` accepts."""
    header, body = _usual_places(data) or _places(data)
    texts = (data, data[slice(*header)], data[slice(*body)])
    return SoapText(*(text.decode("utf-8-sig") for text in texts))


def _places(data: bytes) -> tuple[tuple[int, int], tuple[int, int]]:
    _, header, *others = scan(data)  # Header and Body stand first, in this order: SRMP-2.2.2-06
    body = next(place for place in others if place.start >= header.end)
    return (header.start, header.end), (body.start, body.end)


def _usual_places(data: bytes) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return the places in an envelope where every < begins a tag, if the two end tags are the only ones."""
    if not is_within_limits(data):
        return None
    start = data.index(b"<", data.index(b"<") + 1)
    end = _only_end(data, _START.match(data, start))
    if end is None:
        return None
    body_start = data.index(b"<", end)
    body_end = _only_end(data, _BARE_START_TAG.match(data, body_start))
    return None if body_end is None else ((start, end), (body_start, body_end))


def _only_end(data: bytes, start_tag: re.Match[bytes] | None) -> int | None:
    """Return the end of an element whose end tag is the only one that begins so; else None."""
    if start_tag is None or data.count(end_tag := b"</" + start_tag[1]) != 1:
        return None
    return data.index(b">", data.index(end_tag)) + 1
