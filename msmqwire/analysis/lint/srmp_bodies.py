"""Checks of the contents of bodies that come by SRMP: see `msmqwire.analysis.lint.bodies`."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final

from msmqwire.analysis.lint.bodies import (
    BINARY_OBJECT,
    DTD_TITLE,
    GADGET_TITLE,
    NRBF,
    document_type,
    gadgets,
)
from msmqwire.analysis.lint.finding import Finding
from msmqwire.analysis.lint.registry import Check, listed
from msmqwire.analysis.lint.srmp_offsets import PartOffsets
from msmqwire.srmp.attributes import attribute
from msmqwire.srmp.http_message import StatusLine
from msmqwire.srmp.message import SrmpMessage
from msmqwire.srmp.multipart import PARTS, Multipart

SRMP: Final = frozenset({"srmp"})
"""The subject of the checks of SRMP: its messages, and bytes that are none."""

GADGET_OVER_HTTP: Final = listed("ATTACK-BODY-GADGET", GADGET_TITLE, "", SRMP, "ATTACK")
DTD_OVER_HTTP: Final = listed("ATTACK-BODY-DTD", DTD_TITLE, "", SRMP, "ATTACK")
BINARY_FROM_OUTSIDE: Final = listed(
    "ATTACK-BODY-BINARY", "Serialized objects come over HTTP from the Internet", "", SRMP, "ATTACK"
)


def lint_srmp_body(message: SrmpMessage, source: str | None = None) -> list[Finding]:
    """Return the findings about the body of an SRMP message.

    Args:
        message: the message.
        source: the address that it came from, None if that is unknown.
    """
    if isinstance(message.start, StatusLine) or not message.body:
        return []
    return [
        check.at(path, PartOffsets(message).of(path), text)
        for check, path, text in _problems(message, message.body, source)
    ]


def _problems(message: SrmpMessage, body: bytes, source: str | None) -> Iterator[tuple[Check, str, str]]:
    path = _path_of_body(message)
    if (said := document_type(body)) is not None:
        yield DTD_OVER_HTTP, path, said
    if (said := gadgets(body)) is not None:
        yield GADGET_OVER_HTTP, path, said
    is_binary = attribute("body_type", message) == BINARY_OBJECT or NRBF.match(body)
    if source is not None and is_binary and _is_outside(source):
        yield BINARY_FROM_OUTSIDE, path, f"BodyType 0x300 or its bytes, from {source}"


def _is_outside(address: str) -> bool:
    """Whether an address is one of the Internet, not of a network of one's own."""
    try:
        return ip_address(address).is_global
    except ValueError:
        return False


def _path_of_body(message: SrmpMessage) -> str:
    if not isinstance(message.content, Multipart):
        return PARTS
    places = (n for n, part in enumerate(message.content.parts) if part.content is message.body)
    return f"{PARTS}[{next(places, 0)}]"
