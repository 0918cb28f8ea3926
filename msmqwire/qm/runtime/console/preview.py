"""A message for people: its properties, and the first part of its body as text and as bytes."""

from __future__ import annotations

from base64 import b64decode
from typing import Any, Final

from msmqwire.bodies import DecodedBody, decode_body
from msmqwire.constants import variant_name
from msmqwire.names.printable import counted

HEX_BYTES: Final = 4096
"""Bytes of a body that are shown as such."""
TEXT_BYTES: Final = 64 << 10
"""Bytes of a body that are decoded: more would take long."""
_CHARACTER_MAX: Final = 4


def with_preview(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with ``preview`` instead of its body, which has `TEXT_BYTES` at most.

    ``preview`` has ``kind`` and ``text`` (null for none), as `decode_body` finds them, ``note`` (why this is
    less than the whole, or null), and ``hex``: the first `HEX_BYTES` bytes.
    """
    body, size = b64decode(message["body"]), message["body_size"]
    decoded = decode_body(body, message["body_type"])
    note = decoded.note
    if len(body) < size:
        decoded = _without_cut_character(decoded, message["body_type"])
        note = f"the first {len(body):,} of {counted(size, 'byte')}"
    preview = {"kind": decoded.kind, "text": decoded.text, "note": note, "hex": body[:HEX_BYTES].hex()}
    shown = {key: value for key, value in message.items() if key != "body"}
    return {**shown, "body_type_name": variant_name(message["body_type"]), "preview": preview}


def _without_cut_character(decoded: DecodedBody, body_type: int) -> DecodedBody:
    """Return the beginning of a body as text, if it is text but for a character that is cut."""
    for _ in range(_CHARACTER_MAX - 1):
        if decoded.text is not None:
            break
        decoded = decode_body(decoded.raw[:-1], body_type)
    return decoded
