"""What lint finds in remotely read messages: each case breaks one rule of a clean packet."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.capture.lint_packets import broken, check_broken

CASES = [
    broken(
        "remote direct",
        {"UserHeader.QueueManagerAddress": "00010010-0000-0000-0a00-000000000000"},
        ("MQRR-2.2.5.1-07", "MUST", "UserHeader.QueueManagerAddress", 32),
    ),
    broken(
        "remote direct",
        {"UserHeader.QueueManagerAddress": "00030004-0000-0000-0a00-000000000000"},
        ("MQRR-2.2.5.1-08", "MUST", "UserHeader.QueueManagerAddress", 32),
    ),
    broken(
        "remote direct",
        {"UserHeader.QueueManagerAddress": "00010004-0001-0000-0a00-000000000000"},
        ("MQRR-2.2.5.1-09", "MUST", "UserHeader.QueueManagerAddress", 32),
    ),
    broken(
        "remote",
        {"ExtensionHeader.Padding": "00000000"},
        ("MQRR-2.2.5.2-01", "MUST", "ExtensionHeader.HeaderSize", 124),
    ),
    broken(
        "remote",
        {"ExtensionHeader.RemainingHeadersSize": 175},
        ("MQRR-2.2.5.2-02", "MUST", "ExtensionHeader.RemainingHeadersSize", 128),
    ),
    broken(
        "remote",
        {"ExtensionHeader.Flags.DL": 1},
        ("MQRR-2.2.5.2-04", "MUST", "ExtensionHeader.Flags.DL", 132),
    ),
    broken("remote", {"SubqueueHeader": None}, ("MQRR-2.2.5.2-05", "MUST", "ExtensionHeader.Flags.SQ", 132)),
    broken(
        "remote",
        {"ExtendedAddressHeader": None},
        ("MQRR-2.2.5.2-08", "MUST", "ExtensionHeader.Flags.EA", 132),
    ),
    broken(
        "remote",
        {"SubqueueHeader.Padding": "00000000"},
        ("MQRR-2.2.5.3-01", "MUST", "SubqueueHeader.HeaderSize", 136),
    ),
    broken(
        "remote", {"SubqueueHeader.Flags.TM": 1}, ("MQRR-2.2.5.3-03", "MUST", "SubqueueHeader.Flags.TM", 140)
    ),
    broken(
        "remote",
        {"SubqueueHeader.Flags.AcknowledgementClass": 0x1000},
        ("MQRR-2.2.5.3-04", "MUST", "SubqueueHeader.Flags.AcknowledgementClass", 140),
    ),
    broken(
        "remote",
        {"SubqueueHeader.SubqueueName": {"utf16le": "6100" * 32}},
        ("MQRR-2.2.5.3-09", "MUST", "SubqueueHeader.SubqueueName", 156),
    ),
    broken(
        "remote",
        {"SubqueueHeader.TargetSubqueueName": {"utf16le": "61000000" + "6100" * 30}},
        ("MQRR-2.2.5.3-10", "MUST", "SubqueueHeader.TargetSubqueueName", 220),
    ),
    broken(
        "remote dead",
        {"DeadLetterHeader.HeaderSize": 43},
        ("MQRR-2.2.5.4-01", "MUST", "DeadLetterHeader.HeaderSize", 284),
    ),
    broken(
        "remote dead",
        {"DeadLetterHeader.DeadLetterPathName": {"utf16le": "00d80000"}},
        ("MQRR-2.2.5.4-02", "MUST", "DeadLetterHeader.DeadLetterPathName", 288),
    ),
    broken(
        "remote",
        {"ExtendedAddressHeader.Padding": "00000000"},
        ("MQRR-2.2.5.5-01", "MUST", "ExtendedAddressHeader.HeaderSize", 284),
    ),
    broken(
        "remote",
        {"ExtendedAddressHeader.AddressLength": 16},
        ("MQRR-2.2.5.5-02", "MUST", "ExtendedAddressHeader.AddressLength", 288),
    ),
    broken(
        "remote",
        {"ExtendedAddressHeader.AddressType": 3},
        ("MQRR-2.2.5.5-03", "MUST", "ExtendedAddressHeader.AddressType", 290),
    ),
    broken(
        "remote",
        {"ExtendedAddressHeader.AddressScope": 1},
        ("MQRR-2.2.5.5-05", "MUST", "ExtendedAddressHeader.AddressScope", 292),
    ),
    broken(
        "remote http",
        {"UserHeader.Flags.AH": 0},
        ("MQRR-2.2.5.1.2.1-01", "MUST", "UserHeader.Flags.AH", 60),
        ("MQRR-2.2.5.1.2.2-01", "MUST", "UserHeader.Flags.AH", 60),
    ),
    broken(
        "remote http",
        {"SRMPEnvelopeHeader.HeaderId": 0x320},
        ("MQRR-2.2.5.1.2.1-02", "SHOULD", "SRMPEnvelopeHeader.HeaderId", 124),
    ),
    broken(
        "remote http",
        {"CompoundMessageHeader.HeaderId": 100},
        ("MQRR-2.2.5.1.2.2-02", "SHOULD", "CompoundMessageHeader.HeaderId", 164),
    ),
    broken(
        "remote http",
        {"SRMPEnvelopeHeader.DataLength": 29},
        ("MQRR-2.2.5.1.2.1-04", "MUST", "SRMPEnvelopeHeader.DataLength", 128),
    ),
    broken(
        "remote http",
        {"SRMPEnvelopeHeader.DataLength": 30},
        ("MQRR-2.2.5.1.2.1-04-UNIT", "SHOULD", "SRMPEnvelopeHeader.DataLength", 128),
    ),
    broken(
        "remote http",
        {"SRMPEnvelopeHeader.Data": {"utf16le": "61006200"}},
        ("MQRR-2.2.5.1.2.1-05", "MUST", "SRMPEnvelopeHeader.Data", 132),
    ),
    broken(
        "remote http",
        {"CompoundMessageHeader.HTTPBodySize": 41},
        ("MQRR-2.2.5.1.2.2-04", "MUST", "CompoundMessageHeader.HTTPBodySize", 168),
    ),
    broken(
        "remote http",
        {"CompoundMessageHeader.MsgBodySize": 9},
        ("MQRR-2.2.5.1.2.2-06", "MUST", "CompoundMessageHeader.MsgBodyOffset", 176),
        ("ATTACK-BODY-RANGE", "ATTACK", "CompoundMessageHeader.MsgBodyOffset", 176),
    ),
    broken(
        "remote http",
        {"CompoundMessageHeader.MsgBodySize": 0xFFFFFFFF},
        ("MQRR-2.2.5.1.2.2-06", "MUST", "CompoundMessageHeader.MsgBodyOffset", 176),
        ("ATTACK-BODY-RANGE", "ATTACK", "CompoundMessageHeader.MsgBodyOffset", 176),
    ),
]


@pytest.mark.parametrize("name, changes, expected", CASES)
def test_each_rule_is_found_alone(name: str, changes: dict[str, Any], expected: list[Any]) -> None:
    check_broken(name, changes, expected)
