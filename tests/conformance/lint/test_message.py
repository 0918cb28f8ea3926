"""What lint finds in UserHeader, MessagePropertiesHeader and TransactionHeader.

Each case breaks one rule of a clean packet.
"""

from __future__ import annotations

from typing import Any

import pytest

import msmqwire
from msmqwire.analysis.lint import lint_packet
from tests.support.capture.lint_packets import DIRECT, OTHER, broken, check_broken, make

CASES = [
    broken(
        "encrypted",
        {"MessagePropertiesHeader.MessageBody": "77" * 17},
        ("MQMQ-2.2.19.3-40", "MUST", "MessagePropertiesHeader.MessageBody", 280),
    ),
    broken(
        "encrypted",
        {"MessagePropertiesHeader.MessageBody": ""},
        ("MQMQ-2.2.19.3-40", "MUST", "MessagePropertiesHeader.MessageBody", 280),
    ),
    broken(
        "encrypted",
        {
            "MessagePropertiesHeader.MessageBody": "77" * 7,
            "MessagePropertiesHeader.EncryptionAlgorithm": 0x6602,
            "MessagePropertiesHeader.PrivacyLevel": 1,
            "SecurityHeader.SecurityData.EncryptionKey": "010200000266000000a40000" + "17" * 64,
        },
        ("MQQB-3.1.7.1.5-06", "SHOULD", "MessagePropertiesHeader.EncryptionAlgorithm", 208),
        ("MQMQ-2.2.19.3-40", "MUST", "MessagePropertiesHeader.MessageBody", 216),
    ),
    broken(
        "encrypted",
        {
            "MessagePropertiesHeader.MessageBody": "77" * 7,
            "MessagePropertiesHeader.EncryptionAlgorithm": 0x6801,
            "MessagePropertiesHeader.PrivacyLevel": 3,
            "SecurityHeader.SecurityData.EncryptionKey": "010200000168000000a40000" + "17" * 64,
        },
        ("MQQB-3.1.7.1.5-06", "SHOULD", "MessagePropertiesHeader.EncryptionAlgorithm", 208),
    ),
    broken(
        "message",
        {"UserHeader.QueueManagerAddress": "43cd8907-394c-8f11-4445-9078909ea0fc"},
        ("MQMQ-2.2.19.2-03", "MUST", "UserHeader.QueueManagerAddress", 32),
    ),
    broken(
        "private",
        {"UserHeader.QueueManagerAddress": "00000000-0000-0000-0000-000000000000"},
        ("MQMQ-2.2.19.2-03", "MUST", "UserHeader.QueueManagerAddress", 32),
    ),
    broken("message", {"UserHeader.Flags.RC": 30}, ("MQMQ-2.2.19.2-10", "MUST", "UserHeader.Flags.RC", 60)),
    broken("message", {"UserHeader.Flags.DM": 2}, ("MQMQ-2.2.19.2-11", "MUST", "UserHeader.Flags.DM", 60)),
    broken("message", {"UserHeader.Flags.DM": 3}, ("MQMQ-2.2.19.2-11", "MUST", "UserHeader.Flags.DM", 60)),
    broken("message", {"UserHeader.Flags.X1": 1}, ("MQMQ-2.2.19.2-14", "SHOULD", "UserHeader.Flags.X1", 60)),
    broken("message", {"UserHeader.Flags.X2": 1}, ("MQMQ-2.2.19.2-37", "SHOULD", "UserHeader.Flags.X2", 60)),
    broken("message", {"UserHeader.Flags.X3": 2}, ("MQMQ-2.2.19.2-40", "SHOULD", "UserHeader.Flags.X3", 60)),
    broken("message", {"UserHeader.Flags.X4": 4}, ("MQMQ-2.2.19.2-42", "SHOULD", "UserHeader.Flags.X4", 60)),
    broken("message", {"UserHeader.Flags.DQ": 0}, ("MQMQ-2.2.19.2-21", "MUST", "UserHeader.Flags.DQ", 60)),
    broken("message", {"UserHeader.Flags.DQ": 4}, ("MQMQ-2.2.19.2-22", "MUST", "UserHeader.Flags.DQ", 60)),
    broken(
        "message",
        {"UserHeader.Flags.AQ": 4, "MessagePropertiesHeader.Flags.PA": 1},
        ("MQMQ-2.2.19.2-24", "MUST", "UserHeader.Flags.AQ", 60),
    ),
    broken(
        "message",
        {"UserHeader.Flags.AQ": 5, "MessagePropertiesHeader.Flags.PA": 1},
        ("MQMQ-2.2.19.2-25", "MUST", "UserHeader.Flags.AQ", 60),
    ),
    broken(
        "message",
        {"MessagePropertiesHeader.Flags.NA": 1},
        ("MQMQ-2.2.19.2-26", "NOTE", "UserHeader.Flags.AQ", 60),
    ),
    broken(
        "message",
        {"UserHeader.AdminQueue": {"PrivateQueueIdentifier": 5}},
        ("MQMQ-2.2.19.2-26", "NOTE", "UserHeader.Flags.AQ", 60),
    ),
    broken("message", {"UserHeader.Flags.RQ": 5}, ("MQMQ-2.2.19.2-28", "MUST", "UserHeader.Flags.RQ", 60)),
    broken(
        "message",
        {"UserHeader.Flags.RQ": 4, "UserHeader.ResponseQueue": {"PrivateQueueIdentifier": 5}},
        ("MQMQ-2.2.19.2-30", "MUST", "UserHeader.Flags.RQ", 60),
    ),
    broken("message", {"UserHeader.Flags.SH": 1}, ("MQMQ-2.2.19.2-31", "MUST", "UserHeader.Flags.SH", 60)),
    broken("secured", {"UserHeader.Flags.SH": 0}, ("MQMQ-2.2.19.2-31", "MUST", "UserHeader.Flags.SH", 60)),
    broken(
        "transactional", {"UserHeader.Flags.TH": 0}, ("MQMQ-2.2.19.2-32", "MUST", "UserHeader.Flags.TH", 60)
    ),
    broken(
        "transactional", {"UserHeader.Flags.DM": 0}, ("MQMQ-2.2.19.2-33", "MUST", "UserHeader.Flags.DM", 60)
    ),
    broken("message", {"UserHeader.Flags.MP": 0}, ("MQMQ-2.2.19.2-34", "MUST", "UserHeader.Flags.MP", 60)),
    broken("message", {"UserHeader.Flags.CQ": 1}, ("MQMQ-2.2.19.2-35", "MUST", "UserHeader.Flags.CQ", 60)),
    broken("several", {"UserHeader.Flags.MQ": 0}, ("MQMQ-2.2.19.2-36", "MUST", "UserHeader.Flags.MQ", 60)),
    broken(
        "message",
        {"SRMPEnvelopeHeader": {"Data": "<a/>"}, "CompoundMessageHeader": {}},
        ("MQMQ-2.2.19.2-39", "MUST", "UserHeader.Flags.AH", 60),
    ),
    broken("soap", {"UserHeader.Flags.HH": 0}, ("MQMQ-2.2.19.2-41", "MUST", "UserHeader.Flags.HH", 60)),
    broken(
        "message",
        {"UserHeader.DestinationQueue.Count": 8},
        ("MQMQ-2.2.18.1.5.2-01", "MUST", "UserHeader.DestinationQueue.Count", 64),
    ),
    broken(
        "private",
        {
            "UserHeader.Flags.DQ": 7,
            "UserHeader.QueueManagerAddress": "00000000-0000-0000-0000-000000000000",
            "UserHeader.DestinationQueue": {"DirectFormatName": "OS:abc\\q", "Padding": "000000000000"},
        },
        ("MQMQ-2.2.18.1.5.2-03", "MUST", "UserHeader.DestinationQueue.Padding", 84),
    ),
    broken(
        "message",
        {"MessagePropertiesHeader.Flags.X7": 1},
        ("MQMQ-2.2.19.3-06", "MUST", "MessagePropertiesHeader.Flags.X7", 104),
    ),
    broken(
        "message",
        {"MessagePropertiesHeader.LabelLength": 9},
        ("MQMQ-2.2.19.3-07-SIZE", "MUST", "MessagePropertiesHeader.LabelLength", 105),
    ),
    broken(
        "message",
        {"MessagePropertiesHeader.Label": "ll" * 125, "MessagePropertiesHeader.LabelLength": 251},
        ("MQMQ-2.2.19.3-07", "MUST", "MessagePropertiesHeader.LabelLength", 105),
    ),
    broken(
        "message",
        {"MessagePropertiesHeader.MessageClass": 0x200},
        ("MQMQ-2.2.18.1.6-22", "MUST", "MessagePropertiesHeader.MessageClass", 106),
    ),
    broken(
        "message",
        {"MessagePropertiesHeader.BodyType": 0x3011},
        ("MQMQ-2.2.19.3-12", "NOTE", "MessagePropertiesHeader.BodyType", 128),
    ),
    broken(
        "message",
        {"MessagePropertiesHeader.BodyType": 0x10000},
        ("MQMQ-2.2.19.3-12", "NOTE", "MessagePropertiesHeader.BodyType", 128),
    ),
    broken(
        "message",
        {"MessagePropertiesHeader.BodyType": 12},
        ("MQMQ-2.2.12-06", "NOTE", "MessagePropertiesHeader.BodyType", 128),
    ),
    broken(
        "message",
        {"MessagePropertiesHeader.MessageSize": 3, "MessagePropertiesHeader.AllocationBodySize": 4},
        ("MQMQ-2.2.19.3-15", "MUST", "MessagePropertiesHeader.MessageSize", 136),
    ),
    broken(
        "message",
        {"MessagePropertiesHeader.AllocationBodySize": 3},
        ("MQMQ-2.2.19.3-16", "MUST", "MessagePropertiesHeader.AllocationBodySize", 140),
    ),
    broken(
        "message",
        {"MessagePropertiesHeader.PrivacyLevel": 2},
        ("MQMQ-2.2.19.3-19", "MUST", "MessagePropertiesHeader.PrivacyLevel", 144),
    ),
    broken(
        "signed",
        {"MessagePropertiesHeader.HashAlgorithm": 0x800D},
        ("MQMQ-2.2.19.3-29", "MUST", "MessagePropertiesHeader.HashAlgorithm", 628),
    ),
    broken(
        "signed",
        {"MessagePropertiesHeader.HashAlgorithm": 0x8003},
        ("MQMQ-2.2.19.3-30", "SHOULD", "MessagePropertiesHeader.HashAlgorithm", 628),
    ),
    broken(
        "encrypted",
        {"MessagePropertiesHeader.EncryptionAlgorithm": 0x6601},
        ("MQMQ-2.2.19.3-38", "MUST", "MessagePropertiesHeader.EncryptionAlgorithm", 272),
    ),
    broken(
        "encrypted",
        {"MessagePropertiesHeader.PrivacyLevel": 3},
        ("MQMQ-2.2.19.3-39", "MUST", "MessagePropertiesHeader.EncryptionAlgorithm", 272),
    ),
    broken(
        "encrypted",
        {"MessagePropertiesHeader.PrivacyLevel": 0},
        ("MQQB-3.1.5.8.3-16", "MUST", "MessagePropertiesHeader.PrivacyLevel", 264),
    ),
    broken(
        "message",
        {"MessagePropertiesHeader.PrivacyLevel": 5},
        ("MQQB-3.1.7.1.5-01", "MUST", "MessagePropertiesHeader.PrivacyLevel", 144),
    ),
    broken(
        "message",
        {"MessagePropertiesHeader.ExtensionSize": 4},
        ("MQMQ-2.2.19.3-41", "MUST", "MessagePropertiesHeader.ExtensionSize", 156),
    ),
    broken(
        "message",
        {"MessagePropertiesHeader.Label": {"utf16le": "61006200"}},
        ("MQMQ-2.2.19.3-43", "MUST", "MessagePropertiesHeader.Label", 160),
    ),
    broken(
        "message",
        {"MessagePropertiesHeader.Label": {"utf16le": "6100000062000000"}},
        ("MQMQ-2.2.19.3-43", "MUST", "MessagePropertiesHeader.Label", 160),
    ),
    broken(
        "message",
        {"MessagePropertiesHeader.MessageBody": "61", "MessagePropertiesHeader.Padding": ""},
        ("MQMQ-2.2.19.3-46", "MUST", "MessagePropertiesHeader.Padding", 177),
    ),
    broken(
        "transactional",
        {"TransactionHeader.Flags.X8": 1},
        ("MQMQ-2.2.20.5-11", "MUST", "TransactionHeader.Flags.X8", 104),
    ),
    broken(
        "transactional",
        {"TransactionHeader.TxSequenceNumber": 0},
        ("MQMQ-2.2.20.5-13", "MUST", "TransactionHeader.TxSequenceNumber", 116),
    ),
    broken(
        "transactional",
        {"TransactionHeader.TxSequenceNumber": 4, "TransactionHeader.PreviousTxSequenceNumber": 4},
        ("MQMQ-2.2.20.5-14", "MUST", "TransactionHeader.PreviousTxSequenceNumber", 120),
    ),
    broken(
        "transactional",
        {"TransactionHeader.Flags.CG": 1},
        ("MQMQ-2.2.20.5-04", "MUST", "TransactionHeader.Flags.CG", 104),
    ),
]


@pytest.mark.parametrize("name, changes, expected", CASES)
def test_each_rule_is_found_alone(name: str, changes: dict[str, Any], expected: list[Any]) -> None:
    check_broken(name, changes, expected)


@pytest.mark.requirement("MQMQ-2.2.19.2-27", "MQMQ-2.2.19.2-30")
@pytest.mark.parametrize(
    "admin",
    [
        {"PrivateQueueIdentifier": 5},
        {"PublicQueueIdentifier": OTHER},
        {"SourceQueueManager": OTHER, "PrivateQueueIdentifier": 5},
        DIRECT,
    ],
)
def test_a_response_queue_fits_any_administration_queue(admin: dict[str, Any]) -> None:
    """RQ 4: every queue is on some host, even where its name does not say on which."""
    changes = {
        "UserHeader.AdminQueue": admin,
        "UserHeader.Flags.RQ": 4,
        "UserHeader.ResponseQueue": {"PrivateQueueIdentifier": 6},
        "MessagePropertiesHeader.Flags.PA": 1,
    }
    packet = make("message", changes)
    assert packet.UserHeader.Flags.RQ == 4
    assert lint_packet(packet) == lint_packet(msmqwire.parse(packet.to_bytes())) == []


# COM and ActiveXMessageFormatter (types of a VARIANT, arrays, 31 for text, 68 and 69 for objects),
# BinaryMessageFormatter (0x300), XmlMessageFormatter (0), MQSendMessage with the type of any PROPVARIANT.
SENT_TYPES = (
    *range(0, 9), 10, 11, 14, *range(16, 24), 0x1E, 0x1F, 64, *range(65, 70), 72, 0x300, 0x1011,
    0x101F, 0x100C, 0x2002, 0x2003, 0x2008, 0x200C, 0x2011, 0x4008,
)  # fmt: skip


@pytest.mark.parametrize("kind", SENT_TYPES, ids=hex)
def test_body_types_of_real_senders_are_no_finding(kind: int) -> None:
    assert lint_packet(make("message", {"MessagePropertiesHeader.BodyType": kind})) == []


@pytest.mark.parametrize(
    "kind", [15, 24, 0x7F, 0x301, 0x3011, 0x8008, 0x9999, 0x1_0008, 0xFFFF_FFFF], ids=hex
)
def test_other_body_types_are_a_note(kind: int) -> None:
    (finding,) = lint_packet(make("message", {"MessagePropertiesHeader.BodyType": kind}))
    assert (finding.id, finding.severity) == ("MQMQ-2.2.19.3-12", "NOTE")
    assert finding.message == f"BodyType {kind:#06x} is not a VARIANT type"
