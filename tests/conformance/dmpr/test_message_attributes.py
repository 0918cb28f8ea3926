"""Attributes of a new Message: [MS-MQDMPR] 3.1.1.12."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from msmqwire.constants import MessageClass
from msmqwire.constants.message_class import LEGAL_CLASS_BITS, is_legal_class
from msmqwire.qm.model.message import NULL_GUID, Message
from msmqwire.qm.rules import serialization

GUID = UUID("43cd8907-394c-8f11-4445-9078909ea0fc")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("allow_peek_when_locked", False, marks=pytest.mark.requirement("DMPR-3.1.1.12-03")),
        pytest.param("sender_certificate", b"", marks=pytest.mark.requirement("DMPR-3.1.1.12-58")),
    ],
)
def test_defaults(name: str, value: Any) -> None:
    assert getattr(Message(), name) == value


@pytest.mark.requirement("DMPR-3.1.1.12-52")
def test_the_destination_is_a_queue_manager_by_its_identifier() -> None:
    packet = serialization.to_packet(Message(destination_queue_manager_identifier=GUID))
    assert serialization.deserialize(packet).destination_queue_manager_identifier == GUID


@pytest.mark.requirement("DMPR-3.1.1.12-63")
def test_transactional_messages_name_their_connector_manager() -> None:
    message = Message(connector_queue_manager_identifier=GUID, transaction_identifier=GUID)
    assert (
        serialization.deserialize(serialization.to_packet(message)).connector_queue_manager_identifier == GUID
    )
    assert Message().connector_queue_manager_identifier == NULL_GUID


CLASSES = {
    "Normal": 0, "Report": 1, "AckReachQueue": 2, "OrderAck": 0xFF, "AckReceive": 0x4000,
    "NackBadDestQueue": 0x8000, "NackPurged": 0x8001, "NackReachQueueTimeout": 0x8002,
    "NackQueueExceedQuota": 0x8003, "NackAccessDenied": 0x8004, "NackHopCountExceeded": 0x8005,
    "NackBadSignature": 0x8006, "NackBadEncryption": 0x8007, "NackNotTransactionalQueue": 0x8009,
    "NackNotTransactionalMessage": 0x800A, "NackUnsupportedCryptoProvider": 0x800B,
    "NackQueueDeleted": 0xC000, "NackQueuePurged": 0xC001, "NackReceiveTimeout": 0xC002,
    "NackReceiveRejected": 0xC004,
}  # fmt: skip
"""The classes that [MS-MQMQ] 2.2.18.1.6 has a number for."""


@pytest.mark.requirement("DMPR-3.1.1.12-06")
def test_the_classes_are_those_of_the_text_and_no_others() -> None:
    assert {int(member) for member in MessageClass} == set(CLASSES.values())
    assert Message().message_class == CLASSES["Normal"]


@pytest.mark.requirement("DMPR-3.1.1.12-06")
@pytest.mark.parametrize("value", [*CLASSES.values(), 0x0100, 0x1234 & LEGAL_CLASS_BITS, 0xE1FF])
def test_each_class_and_that_of_an_application_is_kept(value: int) -> None:
    assert is_legal_class(value)
    packet = serialization.to_packet(Message(message_class=value))
    assert serialization.deserialize(packet).message_class == value


@pytest.mark.requirement("DMPR-3.1.1.12-06")
@pytest.mark.parametrize("value", [0x0200, 0x0800, 0x1000, 0x10000, -1])
def test_bits_that_no_class_has(value: int) -> None:
    assert not is_legal_class(value)
