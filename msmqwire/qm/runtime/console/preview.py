"""A message for people: its properties, and the first part of its body as text and as bytes."""

from __future__ import annotations

from base64 import b64decode
from typing import Any, Final

from msmqwire.bodies import Body, inspect_body, plain, whole_text
from msmqwire.constants import variant_name
from msmqwire.names.printable import counted

HEX_BYTES: Final = 4096
"""Bytes of a body that are shown in hexadecimal."""
TEXT_BYTES: Final = 64 << 10
"""Bytes of a body that are decoded: more would take long."""
_CHARACTER_MAX: Final = 4
_PROBLEMS: Final = 8


def with_preview(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with ``preview`` instead of its body, which has `TEXT_BYTES` at most.

    ``preview`` has ``format``, ``headers_format`` and ``headers`` as `decode` returns them; ``text`` (null
    for none) and ``value`` (JSON for people, null if the text is enough), truncated; ``note`` (why this is
    less than the whole, or null), and ``hex``: the first `HEX_BYTES` bytes.
    """
    body, size, body_type = b64decode(message["body"]), message["body_size"], message["body_type"]
    extension = b64decode(message["extension"] or "")
    found, shown = inspect_body(body, body_type=body_type, extension=extension), body
    notes = [str(problem) for problem in found.problems[:_PROBLEMS]]
    if len(body) < size:
        found, shown = _without_cut_character(found, body, body_type, extension)
        notes = [f"the first {len(body):,} of {counted(size, 'byte')}"]
    text = whole_text(shown, found)
    value = plain.beginning(found.value, TEXT_BYTES) if plain.has_parts(found.value) else None
    preview = {
        "format": found.format,
        "headers_format": found.headers_format,
        "headers": dict(found.headers),
        "text": text,
        "value": None if value is None or _is_same(value, text) else value,
        "note": "; ".join(notes) or None,
        "hex": body[:HEX_BYTES].hex(),
    }
    rest = {key: item for key, item in message.items() if key != "body"}
    return {**rest, "body_type_name": variant_name(body_type), "preview": preview}


def _is_same(value: str, text: str | None) -> bool:
    """Return whether a text equals that of a value, apart from spaces."""
    return text is not None and "".join(value.split()) == "".join(text.split())


def _without_cut_character(found: Body, body: bytes, body_type: int, extension: bytes) -> tuple[Body, bytes]:
    """Return the beginning of a text, and its bytes, if a body is text apart from a truncated last
    character.
    """
    for length in range(len(body) - 1, len(body) - _CHARACTER_MAX, -1):
        if found.format != "bytes":
            break
        again = inspect_body(body[:length], body_type=body_type, extension=extension)
        if again.format != "bytes":
            return again, body[:length]
    return found, body
