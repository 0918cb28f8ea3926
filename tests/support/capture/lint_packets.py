"""Clean packets of every kind for the tests of lint, and a way to break one field of them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import pytest

import msmqwire
from msmqwire.analysis.lint import Finding, checks, lint_packet
from msmqwire.crypto.certificates import create_self_signed
from msmqwire.schema import Record
from tests.support.message_keys import private_key

SOURCE = "557358d1-9150-9595-4997-b6e611ea26c6"
TARGET = "43cd8907-394c-8f11-4445-9078909ea0fc"
OTHER = "3c3a6aeb-f567-4143-87d3-85cf4d68ceb4"
SID = "010500000000000515000000ad4a9ebd36d9fa3d63a656dae8030000"
KEY = "010200001066000000a40000" + "17" * 128
CERTIFICATE = create_self_signed(private_key(512), "a sender", 0, 1, 1).hex()
DIRECT = {"DirectFormatName": "OS:host\\private$\\q"}
SAID_BY = {"ProviderType": 1, "ProviderName": "Microsoft Base Cryptographic Provider v1.0"}
OVERLAY = "00010004-0000-0000-0a00-000000000000"

MESSAGE: dict[str, Any] = {
    "UserHeader": {"SourceQueueManager": SOURCE, "MessageID": 1, "DestinationQueue": DIRECT},
    "MessagePropertiesHeader": {"Label": "a label", "MessageBody": "61006200", "BodyType": 31},
}
PRIVATE = {
    "UserHeader": {
        "SourceQueueManager": SOURCE,
        "QueueManagerAddress": TARGET,
        "DestinationQueue": {"PrivateQueueIdentifier": 7},
    }
}
ACK_QUEUE = {**PRIVATE["UserHeader"], "DestinationQueue": {"PrivateQueueIdentifier": 4}}
SEQUENCE = {"Ordinal": 1, "TimeStamp": 5}
REMOTE_TAIL: dict[str, Any] = {
    "ExtensionHeader": {},
    "SubqueueHeader": {"SubqueueName": "sub"},
    "ExtendedAddressHeader": {"AddressLength": 4, "AddressType": 1, "Address": "0a000001" + "00" * 12},
}
SEVERAL = {
    "Destination": {
        "FormatNameList": [{"FormatType": 3, "FormatName": {"DirectFormatName": "OS:a\\private$\\q"}}]
    }
}
HTTP = {
    "SRMPEnvelopeHeader": {"Data": "<se:Envelope/>"},
    "CompoundMessageHeader": {"Data": "00" * 40, "MsgBodySize": 8, "MsgBodyOffset": 32},
}

DONE_ELSEWHERE = frozenset(
    {
        "MQMQ-2.2.19.1-15", "MQMQ-2.2.19.2-03", "MQMQ-2.2.19.2-26", "MQMQ-2.2.19.2-33",
        "MQMQ-2.2.19.3-29", "MQMQ-2.2.19.3-30", "MQMQ-2.2.19.3-38", "MQMQ-2.2.19.3-39",
        "MQMQ-2.2.20.6-09", "MQMQ-2.2.20.6-20", "MQQB-2.2.3.1-05", "MQQB-3.1.5.8.3-16", "MQQB-3.1.7.1.5-01",
        "MQMQ-2.2.19.3-40", "MQQB-3.1.5.8.3-03", "MQQB-3.1.5.8.3-05", "MQQB-3.1.7.1.4-02",
        "MQQB-3.1.7.1.4-03", "MQQB-3.1.7.1.5-06", "MQRR-2.2.5.1-07", "MQRR-2.2.5.1-08", "MQRR-2.2.5.1-09",
    }
)  # fmt: skip
"""Rows that a sender or a receiver keeps: a finding about a packet does not prove that it does."""

# name: kind, fields
CLEAN: dict[str, tuple[str, dict[str, Any]]] = {
    "message": ("UserMessage", MESSAGE),
    "private": ("UserMessage", PRIVATE),
    "acknowledged": ("UserMessage", {**MESSAGE, "SessionHeader": {"UserMsgSequenceNumber": 1}}),
    "transactional": ("UserMessage", {**MESSAGE, "TransactionHeader": {"TxSequenceID": SEQUENCE}}),
    "secured": (
        "UserMessage",
        {**MESSAGE, "SecurityHeader": {"Flags": {"ST": 1}, "SecurityData": {"SecurityID": SID}}},
    ),
    "signed": (
        "UserMessage",
        {
            **MESSAGE,
            "SecurityHeader": {
                "Flags": {"ST": 1},
                "SecurityData": {
                    "SecurityID": SID,
                    "Signature": "5a" * 64,
                    "SenderCert": CERTIFICATE,
                    "ProviderInfo": SAID_BY,
                },
            },
        },
    ),
    "encrypted": (
        "UserMessage",
        {
            **PRIVATE,
            "SecurityHeader": {"Flags": {"EB": 1}, "SecurityData": {"EncryptionKey": KEY}},
            "MessagePropertiesHeader": {"MessageBody": "77" * 16, "PrivacyLevel": 5},
        },
    ),
    "signed for several": (
        "UserMessage",
        {
            **MESSAGE,
            "SecurityHeader": {
                "Flags": {"ST": 1, "DE": 1},
                "SecurityData": {"SecurityID": SID, "SenderCert": CERTIFICATE},
            },
            "MultiQueueFormatHeader": {**SEVERAL, "Signature": {"Signature": "5a" * 64}},
            "MessagePropertiesHeader": {**MESSAGE["MessagePropertiesHeader"], "HashAlgorithm": 0x800E},
        },
    ),
    "traced": ("UserMessage", {**MESSAGE, "DebugHeader": {"QueueIdentifier": OTHER}}),
    "soap": ("UserMessage", {**MESSAGE, "SoapHeader": {"Header": "<h/>", "Body": "<b/>"}}),
    "several": ("UserMessage", {**MESSAGE, "MultiQueueFormatHeader": SEVERAL}),
    "order": (
        "OrderAck",
        {
            "UserHeader": ACK_QUEUE,
            "OrderAckBody": {"TxSequenceID": SEQUENCE, "TxSequenceNumber": 3, "TxPreviousSequenceNumber": 2},
        },
    ),
    "order direct": (
        "OrderAck",
        {
            "UserHeader": {
                "SourceQueueManager": SOURCE,
                "DestinationQueue": {"DirectFormatName": "TCP:10.0.0.1\\PRIVATE$\\order_queue$"},
            },
            "OrderAckBody": {"TxSequenceID": SEQUENCE, "TxSequenceNumber": 3, "TxPreviousSequenceNumber": 2},
        },
    ),
    "final": (
        "FinalAck",
        {
            "UserHeader": {**ACK_QUEUE, "Flags": {"DM": 1}},
            "FinalAckBody": {
                "TxSequenceID": SEQUENCE,
                "TxSequenceNumber": 3,
                "TxPreviousSequenceNumber": 1,
                "SourceGUID": SOURCE,
                "MessageID": 9,
            },
        },
    ),
    "final direct": (
        "FinalAck",
        {
            "UserHeader": {
                "SourceQueueManager": SOURCE,
                "DestinationQueue": {"DirectFormatName": "TCP:fe80::1\\PRIVATE$\\order_queue$"},
                "Flags": {"DM": 1},
            },
            "FinalAckBody": {"TxSequenceID": SEQUENCE, "TxSequenceNumber": 3, "TxPreviousSequenceNumber": 1},
        },
    ),
    "meant as order": (
        "UserMessage",
        {
            "BaseHeader": {"Flags": {"PR": 0}},
            "UserHeader": {**ACK_QUEUE, "Flags": {"DM": 1}},
            "MessagePropertiesHeader": {
                "Label": "QM Ordering Ack",
                "MessageClass": 0x00FF,
                "MessageBody": "00" * 36,
            },
        },
    ),
    "meant as final": (
        "UserMessage",
        {
            "BaseHeader": {"Flags": {"PR": 0}},
            "UserHeader": {**ACK_QUEUE, "Flags": {"DM": 1}},
            "MessagePropertiesHeader": {
                "Label": "QM Ordering Ack",
                "MessageClass": 0x8000,
                "MessageBody": "00" * 36,
            },
        },
    ),
    "ack": ("SessionAck", {}),
    "establish": (
        "EstablishConnection",
        {"EstablishConnectionHeader": {"ClientGuid": SOURCE, "ServerGuid": TARGET, "TimeStamp": 77}},
    ),
    "parameters": ("ConnectionParameters", {}),
    "ping": ("Ping", {"Cookie": 4, "QMGuid": SOURCE}),
    "remote": ("RemoteReadMessage", {**PRIVATE, **REMOTE_TAIL}),
    "remote direct": (
        "RemoteReadMessage",
        {"UserHeader": {**MESSAGE["UserHeader"], "QueueManagerAddress": OVERLAY}, **REMOTE_TAIL},
    ),
    "remote http": ("RemoteReadMessage", {**PRIVATE, **HTTP}),
    "remote dead": (
        "RemoteReadMessage",
        {**PRIVATE, **REMOTE_TAIL, "DeadLetterHeader": {"DeadLetterPathName": "host\\private$\\dead"}},
    ),
    "http": ("UserMessage", {**MESSAGE, **HTTP}),
}


def make(name: str, changes: Mapping[str, Any] | None = None) -> Record:
    """Build a clean packet with some fields changed by path; dependent fields are computed."""
    kind, fields = CLEAN[name]
    fields = deepcopy(fields)
    for path, value in (changes or {}).items():
        *above, last = path.split(".")
        at: Any = fields
        for step in above:
            at = at.setdefault(step, {}) if not isinstance(at, list) else at[int(step)]
        at[last] = value
    return msmqwire.from_json({"packet": kind, "fields": fields})


def brief(findings: list[Finding]) -> list[tuple[str, str, str, int]]:
    """Findings without their messages."""
    return [(finding.id, finding.severity, finding.path, finding.offset) for finding in findings]


def broken(name: str, changes: dict[str, Any], *expected: tuple[str, str, str, int]) -> Any:
    """Return a case: a clean packet, the changes that break it, and all findings.

    It proves their ids, except for those that are DONE_ELSEWHERE.
    """
    requirements = {check.id: check.requirement for check in checks()}
    ids = [requirements[id] for id, *_ in expected if not id.startswith("ATTACK")]
    fields = [path.rpartition(".")[2] for path in changes] if len(changes) > 1 else changes
    title = f"{ids[0]} {name} {', '.join(fields)}"
    proved = [id for id in ids if id not in DONE_ELSEWHERE]
    marks = [pytest.mark.requirement(*proved)] if proved else []
    return pytest.param(name, changes, list(expected), marks=marks, id=title)


def check_broken(name: str, changes: dict[str, Any], expected: list[tuple[str, str, str, int]]) -> None:
    """Check that a clean packet has no findings, and the broken one and its bytes just those expected."""
    assert lint_packet(make(name)) == []
    packet = make(name, changes)
    findings = lint_packet(packet)
    assert brief(findings) == expected
    assert all(finding.message for finding in findings)
    read = parsed(packet)
    if read is not None and read == packet:
        assert lint_packet(read, packet.to_bytes()) == findings


def parsed(packet: Record) -> Record | None:
    """Parse the bytes of a packet; return None if they are malformed."""
    protocols: dict[str, Any] = {"Ping": "ping", "RemoteReadMessage": "remote_read"}
    try:
        return msmqwire.parse(packet.to_bytes(), protocol=protocols.get(packet.schema.name, "session"))
    except msmqwire.MalformedPacket:
        return None
