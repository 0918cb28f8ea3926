"""What lint finds behind the last header of a message, and in where its body stands in an HTTP request."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.capture.lint_packets import broken, check_broken

EXTENSION = "0c000000" + "00" * 8
SUBQUEUE = "94000000" + "00" * 144
REQUEST = b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody".hex()
COMPOUND = "CompoundMessageHeader"
LIES = (
    ("ATTACK-PACKET-SIZE", "ATTACK", "BaseHeader.PacketSize", 8),
    ("MQMQ-2.2.19.1-19", "MUST", "BaseHeader.PacketSize", 8),
)
BEHIND = ("MQMQ-2.2.20-12", "MUST", "TrailingData", 180)


def http(**fields: Any) -> dict[str, Any]:
    return {f"{COMPOUND}.{name}": value for name, value in fields.items()}


CASES = [
    broken("message", {"TrailingData": "00"}, *LIES, BEHIND),
    broken("message", {"TrailingData": EXTENSION[:-2]}, *LIES, BEHIND),
    broken("message", {"TrailingData": "0c000000" + "04000000" + "00" * 4}, *LIES, BEHIND),
    broken("message", {"TrailingData": EXTENSION + "00" * 4}, *LIES, BEHIND),
    broken(
        "remote http",
        http(Data=REQUEST, MsgBodySize=4, MsgBodyOffset=5),
        ("MQRR-2.2.5.1.2.2-06-PLACE", "NOTE", f"{COMPOUND}.MsgBodyOffset", 176),
    ),
    broken(
        "remote http",
        http(Data=REQUEST, MsgBodySize=3, MsgBodyOffset=38),
        ("MQRR-2.2.5.1.2.2-05", "NOTE", f"{COMPOUND}.MsgBodySize", 172),
    ),
]


@pytest.mark.parametrize("name, changes, expected", CASES)
def test_each_rule_is_found_alone(name: str, changes: dict[str, Any], expected: list[Any]) -> None:
    check_broken(name, changes, expected)


@pytest.mark.parametrize(
    "name, changes",
    [
        ("message", {"TrailingData": EXTENSION}),
        ("message", {"TrailingData": "0c000000" + "94000000" + "00" * 4 + SUBQUEUE}),
        ("remote http", http(Data="00" * 41, Padding="010000")),
        ("remote http", {"SRMPEnvelopeHeader.Padding": "6400"}),
    ],
)
def test_what_windows_sends_is_no_finding(name: str, changes: dict[str, Any]) -> None:
    """An ExtensionHeader at the end of a message of a session, and anything as padding."""
    check_broken(name, changes, [])


def test_a_request_that_is_right() -> None:
    check_broken("remote http", http(Data=REQUEST, MsgBodySize=4, MsgBodyOffset=38), [])
