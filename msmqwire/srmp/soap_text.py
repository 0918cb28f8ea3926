"""The parts of a SOAP envelope as text, as a message keeps them: [MS-MQDMPR] 3.1.1.12."""

from __future__ import annotations

from typing import NamedTuple

from msmqwire.srmp.scan import scan


class SoapText(NamedTuple):
    """An envelope, and its Header and Body with their tags."""

    envelope: str
    header: str
    body: str


def soap_text(data: bytes) -> SoapText:
    """Return the texts of an envelope that `parse_envelope` accepts."""
    _, header, *others = scan(data)  # Header and Body stand first, in this order: SRMP-2.2.2-06
    body = next(place for place in others if place.start >= header.end)
    texts = (data, data[header.start : header.end], data[body.start : body.end])
    return SoapText(*(text.decode("utf-8-sig") for text in texts))
