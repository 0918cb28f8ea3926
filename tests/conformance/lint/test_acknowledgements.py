"""What lint finds in OrderAck and FinalAck: each case breaks one rule of a clean packet."""

from __future__ import annotations

from typing import Any

import pytest

from msmqwire.analysis.lint import lint_packet
from tests.support.capture.lint_packets import broken, check_broken, make
from tests.support.codec_checks import proving

CASES = [
    broken("order", {"BaseHeader.Flags.PR": 3}, ("MQQB-2.2.4-02", "MUST", "BaseHeader.Flags", 2)),
    broken("order", {"UserHeader.Flags.JN": 1}, ("MQQB-2.2.4-03", "MUST", "UserHeader.Flags.JN", 60)),
    broken(
        "order",
        {
            "UserHeader.Flags.DQ": 5,
            "UserHeader.DestinationQueue": {"PublicQueueIdentifier": "43cd8907-394c-8f11-4445-9078909ea0fc"},
        },
        ("MQQB-2.2.4-03", "MUST", "UserHeader.Flags.DQ", 60),
    ),
    broken(
        "order",
        {"UserHeader.DestinationQueue.PrivateQueueIdentifier": 5},
        ("MQQB-2.2.4-04", "MUST", "UserHeader.DestinationQueue.PrivateQueueIdentifier", 64),
    ),
    broken(
        "order direct",
        {"UserHeader.DestinationQueue.DirectFormatName": "OS:host\\PRIVATE$\\order_queue$"},
        ("MQQB-2.2.4-05", "MUST", "UserHeader.DestinationQueue.DirectFormatName", 66),
    ),
    broken(
        "order direct",
        {"UserHeader.DestinationQueue.DirectFormatName": "TCP:10.0.0.1\\PRIVATE$\\orders"},
        ("MQQB-2.2.4-05", "MUST", "UserHeader.DestinationQueue.DirectFormatName", 66),
    ),
    broken(
        "order direct",
        {"UserHeader.DestinationQueue.DirectFormatName": "TCP:10.0.0.256\\PRIVATE$\\order_queue$"},
        ("MQQB-2.2.4-06", "MUST", "UserHeader.DestinationQueue.DirectFormatName", 66),
    ),
    broken(
        "order direct",
        {"UserHeader.DestinationQueue.DirectFormatName": "SPX:0000000A.00000000001\\PRIVATE$\\order_queue$"},
        ("MQQB-2.2.4-06", "MUST", "UserHeader.DestinationQueue.DirectFormatName", 66),
    ),
    broken(
        "order direct",
        {"UserHeader.DestinationQueue.DirectFormatName": "SPX:0000000a.00000000001b\\PRIVATE$\\order_queue$"},
        ("MQQB-2.2.4-06", "MUST", "UserHeader.DestinationQueue.DirectFormatName", 66),
    ),
    broken(
        "order",
        {"MessagePropertiesHeader.Label": "QM Ordering Nack"},
        ("MQQB-2.2.4-07", "MUST", "MessagePropertiesHeader.Label", 124),
    ),
    broken(
        "meant as order",
        {"MessagePropertiesHeader.MessageBody": "00" * 32},
        ("MQQB-2.2.4-08", "MUST", "MessagePropertiesHeader.MessageSize", 100),
    ),
    broken(
        "meant as order",
        {"MessagePropertiesHeader.Label": "QM"},
        ("MQQB-2.2.4-07", "MUST", "MessagePropertiesHeader.Label", 124),
    ),
    broken(
        "order",
        {"MessagePropertiesHeader.Flags.PA": 1},
        ("MQQB-2.2.4-09", "MUST", "MessagePropertiesHeader.Flags", 68),
    ),
    broken(
        "order",
        {"MessagePropertiesHeader.MessageClass": 1},
        ("MQQB-2.2.4-10", "MUST", "MessagePropertiesHeader.MessageClass", 70),
    ),
    broken(
        "order",
        {"MessagePropertiesHeader.BodyType": 31},
        ("MQQB-2.2.4-11", "MUST", "MessagePropertiesHeader.BodyType", 92),
    ),
    broken(
        "order",
        {"OrderAckBody.TxSequenceNumber": 0, "OrderAckBody.TxPreviousSequenceNumber": 0},
        ("MQQB-2.2.4.1-03", "MUST", "OrderAckBody.TxSequenceNumber", 164),
    ),
    broken(
        "order",
        {"OrderAckBody.TxPreviousSequenceNumber": 1},
        ("MQQB-2.2.4.1-04", "MUST", "OrderAckBody.TxPreviousSequenceNumber", 168),
    ),
    broken(
        "order",
        {"OrderAckBody.Reserved": "0000000000000000000000000000000000000001"},
        ("MQQB-2.2.4.1-05", "SHOULD", "OrderAckBody.Reserved", 172),
    ),
    broken("final", {"BaseHeader.Flags.PR": 3}, ("MQQB-2.2.5-03", "MUST", "BaseHeader.Flags", 2)),
    broken("final", {"UserHeader.Flags.DM": 0}, ("MQQB-2.2.5-04", "MUST", "UserHeader.Flags.DM", 60)),
    broken("final", {"UserHeader.Flags.JP": 1}, ("MQQB-2.2.5-04", "MUST", "UserHeader.Flags.JP", 60)),
    broken(
        "final",
        {"UserHeader.DestinationQueue.PrivateQueueIdentifier": 5},
        ("MQQB-2.2.5-05", "MUST", "UserHeader.DestinationQueue.PrivateQueueIdentifier", 64),
    ),
    broken(
        "final direct",
        {"UserHeader.DestinationQueue.DirectFormatName": "OS:host\\PRIVATE$\\order_queue$"},
        ("MQQB-2.2.5-06", "MUST", "UserHeader.DestinationQueue.DirectFormatName", 66),
    ),
    broken(
        "final direct",
        {"UserHeader.DestinationQueue.DirectFormatName": "TCP:host\\PRIVATE$\\order_queue$"},
        ("MQQB-2.2.5-06-ADDRESS", "MUST", "UserHeader.DestinationQueue.DirectFormatName", 66),
    ),
    broken(
        "final",
        {"MessagePropertiesHeader.Label": "QM Ordering Nack"},
        ("MQQB-2.2.5-07", "MUST", "MessagePropertiesHeader.Label", 124),
    ),
    broken(
        "final",
        {"MessagePropertiesHeader.Flags.NR": 1},
        ("MQQB-2.2.5-07-FLAGS", "MUST", "MessagePropertiesHeader.Flags", 68),
    ),
    broken(
        "meant as final",
        {"MessagePropertiesHeader.Label": "QM"},
        ("MQQB-2.2.5-07", "MUST", "MessagePropertiesHeader.Label", 124),
    ),
    broken("meant as final", {"BaseHeader.Flags.PR": 1}, ("MQQB-2.2.5-03", "MUST", "BaseHeader.Flags", 2)),
    broken(
        "final",
        {"MessagePropertiesHeader.MessageClass": 0x8008},
        ("MQQB-2.2.5-09", "MUST", "MessagePropertiesHeader.MessageClass", 70),
    ),
    broken(
        "final",
        {"MessagePropertiesHeader.BodyType": 31},
        ("MQQB-2.2.5-10", "MUST", "MessagePropertiesHeader.BodyType", 92),
    ),
    broken(
        "final",
        {"FinalAckBody.TxSequenceNumber": 0},
        ("MQQB-2.2.5.1-03", "MUST", "FinalAckBody.TxSequenceNumber", 164),
    ),
    broken(
        "final",
        {"FinalAckBody.TxPreviousSequenceNumber": 3},
        ("MQQB-2.2.5.1-04", "MUST", "FinalAckBody.TxPreviousSequenceNumber", 168),
    ),
]


@pytest.mark.parametrize("name, changes, expected", CASES)
def test_each_rule_is_found_alone(name: str, changes: dict[str, Any], expected: list[Any]) -> None:
    check_broken(name, changes, expected)


@pytest.mark.parametrize("address", ["TCP:10.0.0.2", "TCP:fe80::1", "SPX:0000000A.00000000001B"])
@pytest.mark.parametrize(
    "name",
    [
        proving("order direct", ids=("MQQB-2.2.4-05", "MQQB-2.2.4-06")),
        proving("final direct", ids="MQQB-2.2.5-06"),
    ],
)
def test_each_form_of_an_address_is_allowed(name: str, address: str) -> None:
    queue = f"{address}\\PRIVATE$\\order_queue$"
    assert lint_packet(make(name, {"UserHeader.DestinationQueue.DirectFormatName": queue})) == []


@pytest.mark.parametrize("name", ["order", "final"])
def test_the_hop_count_of_a_relayed_acknowledgement_is_allowed(name: str) -> None:
    assert lint_packet(make(name, {"UserHeader.Flags.RC": 2})) == []
