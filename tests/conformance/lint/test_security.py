"""What lint finds in SecurityHeader: each case breaks one rule of a clean packet."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.capture.lint_packets import broken, check_broken
from tests.support.message_keys import elliptic_certificate

MESSAGE_KEY = "SecurityHeader.SecurityData.EncryptionKey"
SIGNATURE = "SecurityHeader.SecurityData.Signature"
SEVERAL_SIGNATURE = "MultiQueueFormatHeader.Signature.Signature"
SENDER_CERT = "SecurityHeader.SecurityData.SenderCert"
EC_CERTIFICATE = elliptic_certificate().hex()

CASES = [
    broken(
        "encrypted",
        {MESSAGE_KEY: "010200001066000000a40000" + "17" * 47},
        ("MQQB-2.4.2-03", "MUST", MESSAGE_KEY, 84),
    ),
    broken(
        "encrypted",
        {MESSAGE_KEY: "010200001066000000a40000" + "17" * 2049},
        ("MQQB-2.4.2-03", "MUST", MESSAGE_KEY, 84),
    ),
    broken("signed", {SENDER_CERT: "30" * 280}, ("MQMQ-2.2.20.6-29", "MUST", SENDER_CERT, 212)),
    broken("signed", {SENDER_CERT: EC_CERTIFICATE}, ("MQMQ-2.2.20.6-29", "MUST", SENDER_CERT, 212)),
    broken("signed", {SENDER_CERT: ""}, ("MQQB-3.1.5.8.3-03", "MUST", "SecurityHeader.SenderCertSize", 112)),
    broken("signed", {SIGNATURE: "5a" * 63}, ("MQQB-3.1.7.1.4-03", "MUST", SIGNATURE, 148)),
    broken("signed for several", {SENDER_CERT: ""}, ("MQQB-3.1.5.8.3-05", "MUST", SEVERAL_SIGNATURE, 304)),
    broken(
        "signed for several",
        {SEVERAL_SIGNATURE: "5a" * 65},
        ("MQQB-3.1.7.1.4-02", "MUST", SEVERAL_SIGNATURE, 584),
    ),
    broken(
        "secured",
        {"SecurityHeader.Flags.ST": 3},
        ("MQMQ-2.2.20.6-02", "MUST", "SecurityHeader.Flags.ST", 104),
    ),
    broken(
        "secured",
        {"SecurityHeader.Flags.ST": 0},
        ("MQMQ-2.2.20.6-03", "MUST", "SecurityHeader.SenderIdSize", 106),
    ),
    broken(
        "secured",
        {"SecurityHeader.SecurityData.SecurityID": "01"},
        ("MQMQ-2.2.20.6-04", "MUST", "SecurityHeader.SecurityData.SecurityID", 120),
    ),
    broken(
        "secured",
        {"SecurityHeader.SecurityData.SecurityID": "0205000000000005" + "00" * 20},
        ("MQMQ-2.2.20.6-04", "MUST", "SecurityHeader.SecurityData.SecurityID", 120),
    ),
    broken(
        "secured",
        {"SecurityHeader.SecurityData.SecurityID": "0110000000000005" + "00" * 64},
        ("MQMQ-2.2.20.6-04", "MUST", "SecurityHeader.SecurityData.SecurityID", 120),
    ),
    broken(
        "secured",
        {"SecurityHeader.SecurityData.SecurityID": "0104000000000005" + "00" * 20},
        ("MQMQ-2.2.20.6-04", "MUST", "SecurityHeader.SecurityData.SecurityID", 120),
    ),
    broken(
        "secured",
        {"SecurityHeader.Flags.ST": 2},
        ("MQMQ-2.2.20.6-05", "MUST", "SecurityHeader.SecurityData.SecurityID", 120),
    ),
    broken(
        "secured",
        {"SecurityHeader.Flags.AU": 1},
        ("MQMQ-2.2.20.6-06", "MUST", "SecurityHeader.Flags.AU", 104),
    ),
    broken(
        "secured",
        {"SecurityHeader.Flags.AS": 3},
        ("MQMQ-2.2.20.6-13", "MUST", "SecurityHeader.Flags.AS", 104),
    ),
    broken(
        "secured",
        {"SecurityHeader.Flags.X12": 1},
        ("MQMQ-2.2.20.6-14", "MUST", "SecurityHeader.Flags.X12", 104),
    ),
    broken(
        "secured",
        {
            "SecurityHeader.Flags.EB": 1,
            "MessagePropertiesHeader.PrivacyLevel": 5,
            "MessagePropertiesHeader.MessageBody": "77" * 16,
        },
        ("MQMQ-2.2.20.6-07", "MUST", "SecurityHeader.EncryptionKeySize", 108),
    ),
    broken(
        "encrypted",
        {"SecurityHeader.SecurityData.EncryptionKey": "020200001066000000a40000" + "17" * 64},
        ("MQQB-2.4.2-01", "MUST", "SecurityHeader.SecurityData.EncryptionKey", 84),
    ),
    broken(
        "encrypted",
        {"SecurityHeader.SecurityData.EncryptionKey": "010200000166000000a40000" + "17" * 64},
        ("MQQB-2.4.2-02", "MUST", "SecurityHeader.SecurityData.EncryptionKey", 84),
    ),
    broken(
        "encrypted",
        {"SecurityHeader.SecurityData.EncryptionKey": "010200000e66000000a40000" + "17" * 64},
        ("MQQB-2.4.2-02", "MUST", "SecurityHeader.SecurityData.EncryptionKey", 84),
    ),
    broken(
        "signed",
        {"SecurityHeader.SecurityData.ProviderInfo": None},
        ("MQMQ-2.2.20.6-09", "MUST", "SecurityHeader.ProviderInfoSize", 116),
    ),
    broken(
        "signed",
        {"SecurityHeader.Flags.DE": 1},
        ("MQMQ-2.2.20.6-35", "MUST", "SecurityHeader.ProviderInfoSize", 116),
    ),
    broken(
        "signed",
        {"SecurityHeader.SecurityData.ProviderInfo.ProviderName": {"utf16le": "6100"}},
        ("MQMQ-2.2.20.6-38", "MUST", "SecurityHeader.SecurityData.ProviderInfo.ProviderName", 496),
    ),
    broken(
        "signed", {"SecurityHeader.Flags.AI": 0}, ("MQMQ-2.2.20.6-11", "MUST", "SecurityHeader.Flags.AI", 104)
    ),
    broken(
        "encrypted",
        {"SecurityHeader.Flags.AI": 0},
        ("MQMQ-2.2.20.6-11", "MUST", "SecurityHeader.Flags.AI", 68),
    ),
    broken(
        "signed",
        {"SecurityHeader.SecurityData.SenderCert": "30" * 65536},
        ("MQMQ-2.2.20.6-18", "MUST", "SecurityHeader.SenderCertSize", 112),
    ),
    broken(
        "secured",
        {"SecurityHeader.Flags.ST": 0, "SecurityHeader.SecurityData": {}},
        ("MQMQ-2.2.20.6-20", "MUST", "SecurityHeader.SenderIdSize", 106),
    ),
    broken(
        "secured",
        {"SecurityHeader.SecurityData.SecurityIDPadding": "00"},
        ("MQMQ-2.2.20.6-21", "MUST", "SecurityHeader.SecurityData.SecurityIDPadding", 148),
    ),
    broken(
        "secured",
        {"SecurityHeader.SenderIdSize": 27},
        ("MQMQ-2.2.20.6-15", "MUST", "SecurityHeader.SenderIdSize", 106),
    ),
    broken(
        "encrypted",
        {"SecurityHeader.EncryptionKeySize": 1},
        ("MQMQ-2.2.20.6-16", "MUST", "SecurityHeader.EncryptionKeySize", 72),
    ),
    broken(
        "signed",
        {"SecurityHeader.SignatureSize": 1},
        ("MQMQ-2.2.20.6-17", "MUST", "SecurityHeader.SignatureSize", 110),
    ),
    broken(
        "signed",
        {"SecurityHeader.SenderCertSize": 1},
        ("MQMQ-2.2.20.6-18-SIZE", "MUST", "SecurityHeader.SenderCertSize", 112),
    ),
    broken(
        "signed",
        {"SecurityHeader.ProviderInfoSize": 8},
        ("MQMQ-2.2.20.6-19", "MUST", "SecurityHeader.ProviderInfoSize", 116),
    ),
]


@pytest.mark.parametrize("name, changes, expected", CASES)
def test_each_rule_is_found_alone(name: str, changes: dict[str, Any], expected: list[Any]) -> None:
    check_broken(name, changes, expected)
