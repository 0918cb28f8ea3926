"""Attributes of a new Message: [MS-MQDMPR] 3.1.1.12."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

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
