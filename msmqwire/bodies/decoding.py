"""`decode`: which reader reads a body."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from msmqwire.bodies import plain
from msmqwire.bodies.body import Body, Content, Plain, Problem
from msmqwire.bodies.content import read_content
from msmqwire.bodies.limits import DEFAULT, Budget, Limits
from msmqwire.bodies.typed import BYTES_TYPES, read_typed

FORMATS: Final = (
    "activex", "xml", "nrbf", "wcf", "json", "text", "gzip", "masstransit", "shuttle", "bytes",
)  # fmt: skip
"""Formats of bodies, as `Body.format` names them."""
HEADERS_FORMATS: Final = ("nservicebus", "rebus")


def decode(body: bytes, *, body_type: int = 0, extension: bytes = b"", limits: Limits = DEFAULT) -> Body:
    """Return what is inside of a message.

    The type decides the format; where it says no more than bytes, the content does. Nothing is executed,
    imported or resolved by the name of a type, and no bytes make this take more than its limits.

    Args:
        body: MessagePropertiesHeader.MessageBody, decrypted.
        body_type: MessagePropertiesHeader.BodyType, 0 if unknown.
        extension: MessagePropertiesHeader.ExtensionData, where NServiceBus and Rebus have their headers.
        limits: how much is decoded; the rest is a problem.

    Raises:
        MalformedBody: the body can't be of the format that its type names. A fault further on is a problem,
            and what was read before it is in the value.
    """
    body, extension = bytes(body), bytes(extension)
    content = _content(body, body_type, Budget(limits, len(body)))
    return Body(content.format, content.value, content.text, problems=content.problems)


def _content(body: bytes, body_type: int, budget: Budget) -> Content:
    read = read_content(body) if body_type in BYTES_TYPES else read_typed(body, body_type)
    name = {"xml": "xml", "utf-16 text": "text", "utf-8 text": "text"}.get(read.kind, "bytes")
    if read.kind.startswith("VT_"):
        name = "activex"
    problems = (Problem(read.note),) if read.note else ()
    value = _plain(read.value)
    return replace(Content(name, value, plain.line(value)), problems=problems)


def _plain(value: object) -> Plain:
    match value:
        case None | bool() | str():
            return value
        case int():
            return plain.integer(value)
        case float():
            return plain.floating(value)
        case Decimal():
            return plain.decimal(value)
        case bytes():
            return plain.raw(value)
        case UUID():
            return {plain.GUID: str(value)}
        case datetime():
            return {plain.DATE: value.isoformat()}
        case list():
            return [_plain(item) for item in value]
    return str(value)
