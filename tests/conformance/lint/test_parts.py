"""What lint finds in the optional headers of a message: each case breaks one rule of a clean packet."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.capture.lint_packets import broken, check_broken

CASES = [
    broken(
        "message",
        {"DebugHeader": {"Flags": {"QT": 2}}},
        ("MQMQ-2.2.20.8-02", "MUST", "DebugHeader.Flags.QT", 180),
    ),
    broken("traced", {"DebugHeader.Flags.X2": 1}, ("MQMQ-2.2.20.8-03", "MUST", "DebugHeader.Flags.X2", 180)),
    broken(
        "traced", {"DebugHeader.Reserved": 1}, ("MQMQ-2.2.20.8-04", "SHOULD", "DebugHeader.Reserved", 182)
    ),
    broken("traced", {"DebugHeader.Flags.QT": 0}, ("MQMQ-2.2.20.8-05", "MUST", "DebugHeader.Flags.QT", 180)),
    broken(
        "soap",
        {"SoapHeader.HeaderSectionID": 0x321},
        ("MQMQ-2.2.20.7-01", "MUST", "SoapHeader.HeaderSectionID", 180),
    ),
    broken("soap", {"SoapHeader.Reserved": 1}, ("MQMQ-2.2.20.7-02", "SHOULD", "SoapHeader.Reserved", 182)),
    broken(
        "soap",
        {"SoapHeader.HeaderDataLength": 1},
        ("MQMQ-2.2.20.7-03", "MUST", "SoapHeader.HeaderDataLength", 184),
    ),
    broken(
        "soap",
        {"SoapHeader.Header": {"utf16le": "61006200"}},
        ("MQMQ-2.2.20.7-04", "MUST", "SoapHeader.Header", 188),
    ),
    broken(
        "soap",
        {"SoapHeader.BodySectionID": 0x385},
        ("MQMQ-2.2.20.7-05", "MUST", "SoapHeader.BodySectionID", 200),
    ),
    broken("soap", {"SoapHeader.Reserved1": 1}, ("MQMQ-2.2.20.7-06", "SHOULD", "SoapHeader.Reserved1", 202)),
    broken(
        "soap",
        {"SoapHeader.BodyDataLength": 1},
        ("MQMQ-2.2.20.7-07", "MUST", "SoapHeader.BodyDataLength", 204),
    ),
    broken(
        "soap",
        {"SoapHeader.Body": {"utf16le": "61006200"}},
        ("MQMQ-2.2.20.7-08", "MUST", "SoapHeader.Body", 208),
    ),
    broken(
        "soap",
        {"SoapHeader.Header": "ab", "SoapHeader.HeaderPadding": ""},
        ("MQMQ-2.2.20-11", "MUST", "SoapHeader.HeaderPadding", 194),
    ),
    broken(
        "several",
        {"MultiQueueFormatHeader.Destination": {}},
        ("MQMQ-2.2.20.1-03", "MUST", "MultiQueueFormatHeader.Destination.ElementCount", 188),
    ),
    broken(
        "several",
        {"MultiQueueFormatHeader.Response.HeaderSize": 16},
        ("MQMQ-2.2.20.2-01", "MUST", "MultiQueueFormatHeader.Response.HeaderSize", 240),
    ),
    broken(
        "several",
        {"MultiQueueFormatHeader.Response.HeaderID": 100},
        ("MQMQ-2.2.20.2-02", "MUST", "MultiQueueFormatHeader.Response.HeaderID", 244),
    ),
    broken(
        "several",
        {"MultiQueueFormatHeader.Administration.Reserved": 1},
        ("MQMQ-2.2.20.2-03", "SHOULD", "MultiQueueFormatHeader.Administration.Reserved", 234),
    ),
    broken(
        "several",
        {"MultiQueueFormatHeader.Destination.ElementCount": 2},
        ("MQMQ-2.2.20.2-05", "MUST", "MultiQueueFormatHeader.Destination.ElementCount", 188),
    ),
    broken(
        "several",
        {"MultiQueueFormatHeader.Signature.ID": 100},
        ("MQMQ-2.2.20.3-01", "MUST", "MultiQueueFormatHeader.Signature.ID", 252),
    ),
    broken(
        "several",
        {"MultiQueueFormatHeader.Signature.Reserved": 1},
        ("MQMQ-2.2.20.3-02", "SHOULD", "MultiQueueFormatHeader.Signature.Reserved", 254),
    ),
    broken(
        "several",
        {"MultiQueueFormatHeader.Signature.Size": 1},
        ("MQMQ-2.2.20.3-03", "MUST", "MultiQueueFormatHeader.Signature.Size", 256),
    ),
]


@pytest.mark.parametrize("name, changes, expected", CASES)
def test_each_rule_is_found_alone(name: str, changes: dict[str, Any], expected: list[Any]) -> None:
    check_broken(name, changes, expected)
