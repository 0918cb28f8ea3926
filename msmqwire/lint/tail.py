"""Checks of the bytes that PacketSize counts behind the last header of a message.

[MS-MQMQ] 2.2.20. Real senders put an ExtensionHeader of [MS-MQRR] 2.2.5.2 there, and receivers take it; any
other bytes mean that PacketSize is wrong.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.errors import MalformedPacket
from msmqwire.headers import EXTENSION_HEADER
from msmqwire.lint.registry import MESSAGES, Problem, rule


def is_extension(data: bytes) -> bool:
    """Return whether bytes begin with an ExtensionHeader that counts them all."""
    try:
        header, size = EXTENSION_HEADER.read(data)
    except MalformedPacket:
        return False
    return bool(header.HeaderSize == size and header.RemainingHeadersSize == len(data) - size)


@rule("MQMQ-2.2.20-12", "PacketSize is the sum of the headers", "TrailingData", MESSAGES)
def _trailing(packet: Any) -> Problem:
    data = packet.TrailingData
    if not data:
        return None
    kind = "an ExtensionHeader" if is_extension(data) else "no ExtensionHeader"
    return f"{len(data)} bytes behind the last header, {kind} of [MS-MQRR] 2.2.5.2"


def _lies(packet: Any) -> Problem:
    data = packet.TrailingData
    if not data or is_extension(data):
        return None
    return f"{packet.BaseHeader.PacketSize} counts {len(data)} bytes that are in no header"


_TITLE: Final = "PacketSize counts nothing but headers"
rule("ATTACK-PACKET-SIZE", _TITLE, "BaseHeader.PacketSize", MESSAGES, "ATTACK")(_lies)
rule("MQMQ-2.2.19.1-19", _TITLE, "BaseHeader.PacketSize", MESSAGES)(_lies)
