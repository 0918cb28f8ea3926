"""Message bodies: what is inside of a message.

The protocols carry a body as bytes with a type, MessagePropertiesHeader.BodyType, that only applications
interpret ([MS-MQDMPR] 3.1.1.12). `decode` decodes it by that type, or by its content where the type says no
more than bytes, together with the headers that frameworks put into the extension; `encode` makes such bodies.
Nothing is ever executed, imported or resolved by the name of a type.
"""

from __future__ import annotations

from msmqwire.bodies.body import Body, Problem
from msmqwire.bodies.content import read_content
from msmqwire.bodies.decoded_body import DecodedBody
from msmqwire.bodies.decoding import FORMATS, HEADERS_FORMATS, decode
from msmqwire.bodies.limits import Limits
from msmqwire.bodies.nmf import NmfMessage, read_nmf
from msmqwire.bodies.typed import BYTES_TYPES, read_typed

__all__ = [
    "FORMATS",
    "HEADERS_FORMATS",
    "Body",
    "DecodedBody",
    "Limits",
    "NmfMessage",
    "Problem",
    "decode",
    "decode_body",
    "read_nmf",
]


def decode_body(body: bytes, body_type: int = 0) -> DecodedBody:
    """Decode a message body; deprecated, `decode` reads more.

    Args:
        body: MessagePropertiesHeader.MessageBody, decrypted.
        body_type: MessagePropertiesHeader.BodyType, 0 if unknown.

    Returns:
        The decoded body. One that does not match its type is decoded by its content, and `note` has the
        reason. No bytes make this raise.
    """
    body = bytes(body)
    if body_type in BYTES_TYPES:
        return read_content(body) if body else DecodedBody("empty", None, "", body)
    return read_typed(body, body_type)
