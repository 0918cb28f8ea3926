"""Checks of the BaseHeader and of internal packets: [MS-MQMQ] 2.2.19.1, [MS-MQQB] 2.2.1 to 2.2.6."""

from __future__ import annotations

from typing import Any

from msmqwire.analysis.lint.registry import (
    FINAL_ACK,
    INTERNAL,
    ORDER_ACK,
    REMOTE,
    SENT,
    SESSION,
    USER,
    Problem,
    exactly,
    rule,
    unused,
    value,
    zero,
)
from msmqwire.headers.base import INFINITE, PACKET_SIZE_MAX, SIGNATURE, VERSION
from msmqwire.headers.internal import PT_CONNECTION_PARAMETERS, PT_ESTABLISH_CONNECTION, PT_SESSION_ACK

EC = frozenset({"EstablishConnection"})
CP = frozenset({"ConnectionParameters"})
ACK = frozenset({"SessionAck"})

value(
    "MQMQ-2.2.19.1-02",
    "VersionNumber is not 0x10",
    "BaseHeader.VersionNumber",
    SESSION,
    lambda number: number == VERSION,
    "{:#04x} is not 0x10",
)
value(
    "MQMQ-2.2.19.1-18",
    "Signature is not 0x524F494C",
    "BaseHeader.Signature",
    SESSION,
    lambda number: number == SIGNATURE,
    "{:#010x} is not 0x524f494c",
)
value(
    "MQMQ-2.2.19.1-21",
    "PacketSize is more than 4 MiB",
    "BaseHeader.PacketSize",
    SESSION,
    lambda number: number <= PACKET_SIZE_MAX,
    "{} is more than 0x00400000",
)
unused("MQMQ-2.2.19.1-16", "Reserved bits are set", "BaseHeader.Flags", 0xFEC0, SESSION, "SHOULD")


@rule("MQMQ-2.2.19.1-07", "A transactional message has a priority", "BaseHeader.Flags.PR", SENT | REMOTE)
def _priority(packet: Any) -> Problem:
    priority = packet.BaseHeader.Flags.PR
    if packet.UserHeader.Flags.TH and priority:
        return f"{priority} in a transactional message"
    return None


value(
    "MQMQ-2.2.19.1-09",
    "An internal packet has IN clear",
    "BaseHeader.Flags.IN",
    INTERNAL,
    bool,
    "clear in an internal packet",
)
value(
    "MQMQ-2.2.19.1-10",
    "An OrderAck or FinalAck has IN set",
    "BaseHeader.Flags.IN",
    ORDER_ACK | FINAL_ACK,
    lambda number: not number,
    "set in an acknowledgement",
)
value(
    "MQMQ-2.2.20-04",
    "A message has IN set",
    "BaseHeader.Flags.IN",
    USER | REMOTE,
    lambda number: not number,
    "set in a message",
)
value(
    "MQMQ-2.2.19.1-13",
    "DH is set in a packet that is not a UserMessage",
    "BaseHeader.Flags.DH",
    INTERNAL | ORDER_ACK | FINAL_ACK,
    lambda number: not number,
    "set in a packet that is not a UserMessage",
)


@rule("MQMQ-2.2.19.1-15", "TR is set without DH", "BaseHeader.Flags.TR", SESSION)
def _tracing(packet: Any) -> Problem:
    flags = packet.BaseHeader.Flags
    return "set, but DH is not" if flags.TR and not flags.DH else None


value(
    "MQMQ-2.2.19.1-11",
    "BaseHeader.Flags.SH does not say whether SessionHeader is there",
    "BaseHeader.Flags.SH",
    EC | CP,
    lambda number: not number,
    "set in a packet without a SessionHeader",
)
value(
    "MQMQ-2.2.19.1-24",
    "TimeToReachQueue is limited in a packet that is not a UserMessage",
    "BaseHeader.TimeToReachQueue",
    INTERNAL | ORDER_ACK | FINAL_ACK,
    lambda number: number == INFINITE,
    "{:#x} is not 0xffffffff",
)

# -- internal packets ----------------------------------------------------------------------------

for _id, _kind, _size in (
    ("MQQB-2.2.3-01", EC, 572),
    ("MQQB-2.2.2-01", CP, 32),
    ("MQQB-2.2.6-01", ACK, 36),
):
    exactly(_id, f"PacketSize is not {_size}", "BaseHeader.PacketSize", _kind, _size)
for _id, _kind, _type in (
    ("MQQB-2.2.3-02", EC, PT_ESTABLISH_CONNECTION),
    ("MQQB-2.2.2-02", CP, PT_CONNECTION_PARAMETERS),
    ("MQQB-2.2.6-02", ACK, PT_SESSION_ACK),
):
    exactly(_id, f"PT is not {_type}", "InternalHeader.Flags.PT", _kind, _type)
value(
    "MQQB-2.2.6-02-SH", "A SessionAck has SH clear", "BaseHeader.Flags.SH", ACK, bool, "clear in a SessionAck"
)
zero("MQQB-2.2.1-01", "Reserved is not 0", "InternalHeader.Reserved", INTERNAL)
value(
    "MQQB-2.2.1-07",
    "A SessionAck has CS set",
    "InternalHeader.Flags.CS",
    ACK,
    lambda number: not number,
    "set in a SessionAck",
)
unused("MQQB-2.2.1-11", "Reserved bits are set", "InternalHeader.Flags", 0xFFE0, INTERNAL, "SHOULD")

value(
    "MQQB-2.2.3.1-09",
    "RE is not 0x10",
    "EstablishConnectionHeader.OperatingSystem.RE",
    EC,
    lambda number: number == 0x10,
    "{:#04x} is not 0x10",
)
unused(
    "MQQB-2.2.3.1-15",
    "Unused bits are set",
    "EstablishConnectionHeader.OperatingSystem",
    0xF800,
    EC,
    "SHOULD",
)
zero("MQQB-2.2.3.1-16", "Reserved is not 0", "EstablishConnectionHeader.Reserved", EC)

value(
    "MQQB-2.2.2.1-02",
    "RecoverableAckTimeout is not 500 to 120000 ms",
    "ConnectionParametersHeader.RecoverableAckTimeout",
    CP,
    lambda number: 500 <= number <= 120_000,
    "{} is not in 500..120000",
)
value(
    "MQQB-2.2.2.1-04",
    "AckTimeout is not 20000 to 120000 ms",
    "ConnectionParametersHeader.AckTimeout",
    CP,
    lambda number: 20_000 <= number <= 120_000,
    "{} is not in 20000..120000",
)
zero("MQQB-2.2.2.1-05", "Reserved is not 0", "ConnectionParametersHeader.Reserved", CP)

# -- SessionHeader -------------------------------------------------------------------------------

_WITH_SESSION = SENT | REMOTE | ACK
value(
    "MQMQ-2.2.20.4-14",
    "WindowSize is 0",
    "SessionHeader.WindowSize",
    _WITH_SESSION,
    bool,
    "0 is not valid",
    "SHOULD",
)


@rule(
    "MQMQ-2.2.20.4-09",
    "RecoverableMsgAckFlags leaves out the message of RecoverableMsgAckSeqNumber",
    "SessionHeader.RecoverableMsgAckFlags",
    _WITH_SESSION,
)
def _lowest(packet: Any) -> Problem:
    header = packet.SessionHeader
    number, flags = header.RecoverableMsgAckSeqNumber, int(header.RecoverableMsgAckFlags)
    if number and not flags & 1:
        return f"{flags:#010x}: bit 0 is clear, but {number} is the lowest message that is acknowledged"
    return None
