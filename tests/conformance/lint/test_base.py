"""What lint finds in BaseHeader, SessionHeader and internal packets.

Each case breaks one rule of a clean packet.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.capture.lint_packets import broken, check_broken

CASES = [
    broken(
        "message",
        {"BaseHeader.VersionNumber": 17},
        ("MQMQ-2.2.19.1-02", "MUST", "BaseHeader.VersionNumber", 0),
    ),
    broken(
        "ack", {"BaseHeader.VersionNumber": 0}, ("MQMQ-2.2.19.1-02", "MUST", "BaseHeader.VersionNumber", 0)
    ),
    broken(
        "parameters",
        {"BaseHeader.Signature": 0x4C494F52},
        ("MQMQ-2.2.19.1-18", "MUST", "BaseHeader.Signature", 4),
    ),
    broken(
        "message",
        {"BaseHeader.Flags.X8": 1, "BaseHeader.Flags.X0": 1},
        ("MQMQ-2.2.19.1-16", "SHOULD", "BaseHeader.Flags.X8", 2),
    ),
    broken("ack", {"BaseHeader.Flags.X5": 1}, ("MQMQ-2.2.19.1-16", "SHOULD", "BaseHeader.Flags.X5", 2)),
    broken(
        "transactional", {"BaseHeader.Flags.PR": 4}, ("MQMQ-2.2.19.1-07", "MUST", "BaseHeader.Flags.PR", 2)
    ),
    broken("establish", {"BaseHeader.Flags.IN": 0}, ("MQMQ-2.2.19.1-09", "MUST", "BaseHeader.Flags.IN", 2)),
    broken("parameters", {"BaseHeader.Flags.IN": 0}, ("MQMQ-2.2.19.1-09", "MUST", "BaseHeader.Flags.IN", 2)),
    broken("ack", {"BaseHeader.Flags.IN": 0}, ("MQMQ-2.2.19.1-09", "MUST", "BaseHeader.Flags.IN", 2)),
    broken("message", {"BaseHeader.Flags.IN": 1}, ("MQMQ-2.2.20-04", "MUST", "BaseHeader.Flags.IN", 2)),
    broken(
        "order",
        {"BaseHeader.Flags.IN": 1},
        ("MQQB-2.2.4-02", "MUST", "BaseHeader.Flags", 2),
        ("MQMQ-2.2.19.1-10", "MUST", "BaseHeader.Flags.IN", 2),
    ),
    broken(
        "final",
        {"BaseHeader.Flags.IN": 1},
        ("MQQB-2.2.5-03", "MUST", "BaseHeader.Flags", 2),
        ("MQMQ-2.2.19.1-10", "MUST", "BaseHeader.Flags.IN", 2),
    ),
    broken("ack", {"BaseHeader.Flags.DH": 1}, ("MQMQ-2.2.19.1-13", "MUST", "BaseHeader.Flags.DH", 2)),
    broken("message", {"BaseHeader.Flags.TR": 1}, ("MQMQ-2.2.19.1-15", "MUST", "BaseHeader.Flags.TR", 2)),
    broken("establish", {"BaseHeader.Flags.SH": 1}, ("MQMQ-2.2.19.1-11", "MUST", "BaseHeader.Flags.SH", 2)),
    broken("message", {"BaseHeader.Flags.SH": 1}, ("MQMQ-2.2.19.1-11", "MUST", "BaseHeader.Flags.SH", 2)),
    broken("message", {"BaseHeader.Flags.DH": 1}, ("MQMQ-2.2.19.1-12", "MUST", "BaseHeader.Flags.DH", 2)),
    broken("traced", {"BaseHeader.Flags.DH": 0}, ("MQMQ-2.2.19.1-12", "MUST", "BaseHeader.Flags.DH", 2)),
    broken(
        "message", {"BaseHeader.PacketSize": 17}, ("MQMQ-2.2.19.1-19", "MUST", "BaseHeader.PacketSize", 8)
    ),
    broken(
        "acknowledged",
        {"BaseHeader.PacketSize": 196},
        ("MQMQ-2.2.19.1-20", "MUST", "BaseHeader.PacketSize", 8),
    ),
    broken(
        "message",
        {"BaseHeader.PacketSize": 0x400001},
        ("MQMQ-2.2.19.1-21", "MUST", "BaseHeader.PacketSize", 8),
    ),
    broken(
        "establish",
        {"BaseHeader.TimeToReachQueue": 60},
        ("MQMQ-2.2.19.1-24", "MUST", "BaseHeader.TimeToReachQueue", 12),
    ),
    broken(
        "parameters",
        {"BaseHeader.TimeToReachQueue": 60},
        ("MQMQ-2.2.19.1-24", "MUST", "BaseHeader.TimeToReachQueue", 12),
    ),
    broken(
        "ack",
        {"BaseHeader.TimeToReachQueue": 60},
        ("MQMQ-2.2.19.1-24", "MUST", "BaseHeader.TimeToReachQueue", 12),
    ),
    broken(
        "order",
        {"BaseHeader.TimeToReachQueue": 60},
        ("MQMQ-2.2.19.1-24", "MUST", "BaseHeader.TimeToReachQueue", 12),
    ),
    broken(
        "establish", {"BaseHeader.PacketSize": 0x23D}, ("MQQB-2.2.3-01", "MUST", "BaseHeader.PacketSize", 8)
    ),
    broken(
        "parameters", {"BaseHeader.PacketSize": 31}, ("MQQB-2.2.2-01", "MUST", "BaseHeader.PacketSize", 8)
    ),
    broken("ack", {"BaseHeader.PacketSize": 20}, ("MQQB-2.2.6-01", "MUST", "BaseHeader.PacketSize", 8)),
    broken(
        "establish", {"InternalHeader.Flags.PT": 3}, ("MQQB-2.2.3-02", "MUST", "InternalHeader.Flags.PT", 18)
    ),
    broken(
        "parameters", {"InternalHeader.Flags.PT": 1}, ("MQQB-2.2.2-02", "MUST", "InternalHeader.Flags.PT", 18)
    ),
    broken("ack", {"InternalHeader.Flags.PT": 2}, ("MQQB-2.2.6-02", "MUST", "InternalHeader.Flags.PT", 18)),
    broken("ack", {"BaseHeader.Flags.SH": 0}, ("MQQB-2.2.6-02-SH", "MUST", "BaseHeader.Flags.SH", 2)),
    broken(
        "establish", {"InternalHeader.Reserved": 1}, ("MQQB-2.2.1-01", "MUST", "InternalHeader.Reserved", 16)
    ),
    broken("ack", {"InternalHeader.Flags.CS": 1}, ("MQQB-2.2.1-07", "MUST", "InternalHeader.Flags.CS", 18)),
    broken(
        "parameters",
        {"InternalHeader.Flags.X5": 1},
        ("MQQB-2.2.1-11", "SHOULD", "InternalHeader.Flags.X5", 18),
    ),
    broken(
        "establish",
        {"EstablishConnectionHeader.OperatingSystem.RE": 17},
        ("MQQB-2.2.3.1-09", "MUST", "EstablishConnectionHeader.OperatingSystem.RE", 56),
    ),
    broken(
        "establish",
        {"EstablishConnectionHeader.OperatingSystem.X15": 1},
        ("MQQB-2.2.3.1-15", "SHOULD", "EstablishConnectionHeader.OperatingSystem.X15", 56),
    ),
    broken(
        "establish",
        {"EstablishConnectionHeader.Reserved": 1},
        ("MQQB-2.2.3.1-16", "MUST", "EstablishConnectionHeader.Reserved", 58),
    ),
    broken(
        "parameters",
        {"ConnectionParametersHeader.RecoverableAckTimeout": 0x1F3},
        ("MQQB-2.2.2.1-02", "MUST", "ConnectionParametersHeader.RecoverableAckTimeout", 20),
    ),
    broken(
        "parameters",
        {"ConnectionParametersHeader.RecoverableAckTimeout": 0x1D4C1},
        ("MQQB-2.2.2.1-02", "MUST", "ConnectionParametersHeader.RecoverableAckTimeout", 20),
    ),
    broken(
        "parameters",
        {"ConnectionParametersHeader.AckTimeout": 0x4E1F},
        ("MQQB-2.2.2.1-04", "MUST", "ConnectionParametersHeader.AckTimeout", 24),
    ),
    broken(
        "parameters",
        {"ConnectionParametersHeader.AckTimeout": 0x1D4C1},
        ("MQQB-2.2.2.1-04", "MUST", "ConnectionParametersHeader.AckTimeout", 24),
    ),
    broken(
        "parameters",
        {"ConnectionParametersHeader.Reserved": 1},
        ("MQQB-2.2.2.1-05", "MUST", "ConnectionParametersHeader.Reserved", 28),
    ),
    broken(
        "ack", {"SessionHeader.WindowSize": 0}, ("MQMQ-2.2.20.4-14", "SHOULD", "SessionHeader.WindowSize", 32)
    ),
    broken(
        "ack",
        {"SessionHeader.RecoverableMsgAckSeqNumber": 4, "SessionHeader.RecoverableMsgAckFlags": 2},
        ("MQMQ-2.2.20.4-09", "MUST", "SessionHeader.RecoverableMsgAckFlags", 24),
    ),
    broken("ping", {"Signature": 0x4855}, ("MQQB-2.2.7-08", "MUST", "Signature", 2)),
]


@pytest.mark.parametrize("name, changes, expected", CASES)
def test_each_rule_is_found_alone(name: str, changes: dict[str, Any], expected: list[Any]) -> None:
    check_broken(name, changes, expected)
