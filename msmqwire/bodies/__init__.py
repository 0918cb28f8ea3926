"""Message bodies: their formats, values, text and headers.

The protocols carry a body as bytes with a type, MessagePropertiesHeader.BodyType, that only applications
interpret ([MS-MQDMPR] 3.1.1.12). `decode` decodes it by that type, or by its content where the type says no
more than bytes, together with the headers that frameworks put into the extension; `encode` makes such bodies.
Nothing is ever executed, imported or resolved by the name of a type.
"""

from __future__ import annotations

from msmqwire.bodies.body import Body, Problem
from msmqwire.bodies.decoded_body import DecodedBody, decode_body
from msmqwire.bodies.decoding import BYTES_TYPES, FORMATS, HEADERS_FORMATS, decode
from msmqwire.bodies.encoding import encode
from msmqwire.bodies.inspecting import inspect_body
from msmqwire.bodies.limits import Limits
from msmqwire.bodies.named import Named
from msmqwire.bodies.wcf.framing import NmfMessage, read_nmf
from msmqwire.bodies.whole_text import whole_text

__all__ = [
    "BYTES_TYPES",
    "FORMATS",
    "HEADERS_FORMATS",
    "Body",
    "DecodedBody",
    "Limits",
    "Named",
    "NmfMessage",
    "Problem",
    "decode",
    "decode_body",
    "encode",
    "inspect_body",
    "read_nmf",
    "whole_text",
]
