"""The HTTP message inside the CompoundMessageHeader of a binary packet: [MS-MQRR] 2.2.5.1.2.2."""

from __future__ import annotations

from typing import Any

from msmqwire.errors import MalformedPacket
from msmqwire.srmp.http_framer import HttpFramer
from msmqwire.srmp.message import SrmpMessage, from_http, parse_message
from msmqwire.srmp.message_json import to_json


def parse_compound(data: bytes) -> tuple[SrmpMessage, bytes]:
    """Return the message in CompoundMessageHeader.Data, and the bytes that real senders leave after it.

    Raises MalformedPacket, with offsets in Data.
    """
    framer = HttpFramer()
    messages = () if data.startswith(b"<") else (framer.feed(data) or framer.close())
    if not messages:
        return parse_message(data), b""
    http = messages[0]
    return from_http(http), data[len(http.to_bytes()) :]


def compound_to_json(packet: object) -> dict[str, Any] | None:
    """Return the message inside a packet as an object; None for a packet without CompoundMessageHeader.

    It has ``fields`` as an SRMP message has them, and in ``behind`` the bytes after it in hex, if any; or
    ``error``, ``path`` and ``offset`` if it can't be read.
    """
    header = getattr(packet, "CompoundMessageHeader", None)
    if header is None:
        return None
    try:
        message, behind = parse_compound(header.Data)
    except MalformedPacket as exc:
        return exc.to_json()
    result: dict[str, Any] = {"fields": to_json(message)["fields"]}
    return {**result, "behind": behind.hex()} if behind else result
