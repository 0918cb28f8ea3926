"""Messages of [MC-MQSRM] chapter 4, and changes of them with lengths that fit again."""

from __future__ import annotations

from dataclasses import replace

from msmqwire.srmp.fields import CONTENT_LENGTH, Field
from msmqwire.srmp.message import SrmpMessage, build_message, parse_message
from msmqwire.srmp.multipart import Multipart, Part
from tests.support.paths import VECTORS

MESSAGES = {path.stem: path.read_bytes() for path in sorted(VECTORS.glob("srmp/*.http"))}


def with_length(fields: tuple[Field, ...], length: int) -> tuple[Field, ...]:
    """Header fields with another Content-Length."""
    return tuple(Field(CONTENT_LENGTH, str(length)) if f.name == CONTENT_LENGTH else f for f in fields)


def relengthened(message: SrmpMessage) -> bytes:
    """The bytes of a message with every Content-Length made right."""
    content = message.content
    if isinstance(content, Multipart):
        parts = tuple(
            Part(with_length(p.fields, len(p.content)), p.content, p.line_break) for p in content.parts
        )
        content = replace(content, parts=parts)
    size = len(content.to_bytes() if isinstance(content, Multipart) else content)
    return build_message(replace(message, content=content, fields=with_length(message.fields, size)))


def with_envelope(name: str, envelope: bytes) -> bytes:
    """A message with another envelope."""
    message = parse_message(MESSAGES[name])
    content: Multipart | bytes = envelope
    if isinstance(message.content, Multipart):
        first, *others = message.content.parts
        content = replace(message.content, parts=(replace(first, content=envelope), *others))
    return relengthened(replace(message, content=content))


def changed(name: str, *changes: tuple[str, str]) -> bytes:
    """A message with texts of its envelope replaced, each of which occurs once."""
    envelope = parse_message(MESSAGES[name]).envelope_bytes or b""
    for old, new in changes:
        assert envelope.count(old.encode()) == 1, old
        envelope = envelope.replace(old.encode(), new.encode())
    return with_envelope(name, envelope)
