"""Decoding of message bodies.

The protocols carry a body as bytes with a type, MessagePropertiesHeader.BodyType, that only applications
interpret ([MS-MQDMPR] 3.1.1.12). `decode_body` decodes it by that type, and by its content if the type is
bytes or unknown. The bytes are always returned too, and nothing is ever executed or deserialized.
"""

from __future__ import annotations

from msmqwire.bodies.body import Body
from msmqwire.bodies.content import read_content
from msmqwire.bodies.nmf import NmfMessage, read_nmf
from msmqwire.bodies.typed import BYTES_TYPES, read_typed

__all__ = ["Body", "NmfMessage", "decode_body", "read_nmf"]


def decode_body(body: bytes, body_type: int = 0) -> Body:
    """Decode a message body.

    Args:
        body: MessagePropertiesHeader.MessageBody, decrypted.
        body_type: MessagePropertiesHeader.BodyType, 0 if unknown.

    Returns:
        The decoded body. One that does not match its type is decoded by its content, and `note` has the
        reason. No bytes make this raise.
    """
    body = bytes(body)
    if body_type in BYTES_TYPES:
        return read_content(body) if body else Body("empty", None, "", body)
    return read_typed(body, body_type)
