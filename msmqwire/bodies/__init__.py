"""Message bodies read for people and programs.

The protocols carry a body as bytes with a type, MessagePropertiesHeader.BodyType, that only applications
look at ([MS-MQDMPR] 3.1.1.12). `decode_body` reads it as its type says, and by its content where the type
says bytes or nothing. The bytes are always there too, and nothing is ever run or deserialized.
"""

from __future__ import annotations

from msmqwire.bodies.body import Body
from msmqwire.bodies.content import read_content
from msmqwire.bodies.nmf import NmfMessage, read_nmf
from msmqwire.bodies.typed import BYTES_TYPES, read_typed

__all__ = ["Body", "NmfMessage", "decode_body", "read_nmf"]


def decode_body(body: bytes, body_type: int = 0) -> Body:
    """Read a message body.

    Args:
        body: MessagePropertiesHeader.MessageBody, decrypted.
        body_type: MessagePropertiesHeader.BodyType, 0 when it is not known.

    Returns:
        What the bytes say. A body that is not what its type says is read by its content, and `note` tells
        why. Nothing is raised, whatever the bytes.
    """
    body = bytes(body)
    if body_type in BYTES_TYPES:
        return read_content(body) if body else Body("empty", None, "", body)
    return read_typed(body, body_type)
