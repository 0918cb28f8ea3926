"""Checks of the bytes that PacketSize counts after the last header of a message.

[MS-MQMQ] 2.2.20. Real senders put an ExtensionHeader of [MS-MQRR] 2.2.5.2 there, and receivers take it; any
other bytes mean that PacketSize is wrong.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.analysis.lint.registry import MESSAGES, Problem, rule
from msmqwire.framing import find_header
from msmqwire.names.printable import agreeing, counted
from msmqwire.packets import unexplained_tail


@rule("MQMQ-2.2.20-12", "Bytes follow the last header", "TrailingData", MESSAGES)
def _trailing(packet: Any) -> Problem:
    data = packet.TrailingData
    if not unexplained_tail(packet):
        return None
    inside = find_header(data)
    packet_inside = f"; a packet seems to begin at byte {inside} of them" if inside >= 0 else ""
    those = f"{counted(len(data), 'byte')} that {agreeing(len(data), 'are')}"
    return f"{those} no ExtensionHeader of [MS-MQRR] 2.2.5.2{packet_inside}"


def _lies(packet: Any) -> Problem:
    count = unexplained_tail(packet)
    those = f"{counted(count, 'byte')} that {agreeing(count, 'are')}"
    return f"{packet.BaseHeader.PacketSize} counts {those} in no header" if count else None


_TITLE: Final = "PacketSize is not the size of the packet"
rule("ATTACK-PACKET-SIZE", _TITLE, "BaseHeader.PacketSize", MESSAGES, "ATTACK")(_lies)
rule("MQMQ-2.2.19.1-19", _TITLE, "BaseHeader.PacketSize", MESSAGES)(_lies)
