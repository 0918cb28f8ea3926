"""Messages to packets and back: all that a packet can hold survives, and any packet is read or refused."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.leaves import BYTES, GUIDS, TEXT, integers
from fuzz.strategies import packet
from msmqwire.errors import MalformedPacket
from msmqwire.names import DirectName, DistributionListName, FormatName, PrivateName, PublicName
from msmqwire.packets import FINAL_ACK, ORDER_ACK, USER_MESSAGE, parse
from msmqwire.qm.model.enumerations import (
    AcknowledgementsRequested,
    AuthenticationLevel,
    DeliveryGuarantee,
    SenderIdentifierType,
)
from msmqwire.qm.model.message import NULL_GUID, Message, ObjectId, TxSequenceId
from msmqwire.qm.rules import serialization
from msmqwire.schema import Record

U32, BOOLEANS = integers(32, False), st.booleans()
HOSTS = st.sampled_from([UUID(int=number) for number in range(1, 5)])
NUMBERS = st.integers(0, 3) | U32
DIRECT = st.builds(
    DirectName,
    st.sampled_from(["TCP", "tcp"]),
    st.ip_addresses().map(str),
    st.sampled_from(["orders", "Orders", "o$"]),
    private=BOOLEANS,
)
NAMES: st.SearchStrategy[FormatName] = st.one_of(
    DIRECT, st.builds(PublicName, GUIDS), st.builds(PrivateName, HOSTS, NUMBERS)
)
LISTS = st.lists(NAMES | st.builds(DistributionListName, GUIDS), max_size=3).map(tuple)
TRANSACTION = {
    "transactional_message_sequence_identifier": st.builds(TxSequenceId, U32, U32),
    "transaction_sequence_number": U32,
    "transaction_previous_sequence_number": U32,
    "transaction_number": st.integers(0, 0xFFFFF),
    "connector_queue_manager_identifier": GUIDS,
    "final_ack_required": BOOLEANS,
    "first_in_transaction": BOOLEANS,
    "last_in_transaction": BOOLEANS,
    "priority": st.just(0),
    "delivery_guarantee": st.just(DeliveryGuarantee.RECOVERABLE),
}
SECURITY = {
    "sender_identifier": BYTES.filter(bool),
    "sender_identifier_type": st.sampled_from(SenderIdentifierType),
    "sender_certificate": BYTES,
    "signature": BYTES,
    "symmetric_key": BYTES,
    "privacy_level": st.sampled_from([0, 1, 3, 5]),
    "authentication_provider_name": TEXT.filter(bool),
    "authentication_provider_type": U32,
}
LISTED = {
    "destinations": LISTS.filter(bool),
    "administrations": LISTS,
    "responses": LISTS,
    "multiple_destination_signature": BYTES,
}
ALWAYS = {
    "body": BYTES | st.binary(max_size=2000),
    "label": TEXT,
    "message_class": integers(16, False),
    "delivery_guarantee": st.sampled_from(DeliveryGuarantee),
    "priority": st.integers(0, 7),
    "body_type": U32,
    "application_tag": U32,
    "extension": BYTES,
    "correlation_identifier": st.binary(min_size=20, max_size=20),
    "acknowledgements_requested": st.integers(0, 15).map(AcknowledgementsRequested),
    "sent_time": U32,
    "time_to_reach_queue": U32,
    "time_to_be_received": U32,
    "positive_journaling_requested": BOOLEANS,
    "negative_journaling_requested": BOOLEANS,
    "source_machine_identifier": HOSTS,
    "destination_queue_manager_identifier": HOSTS,
    "destination": NAMES,
    "administration": st.none() | NAMES,
    "response": st.none() | NAMES,
    "tracing_requested": BOOLEANS,
    "tracing_queue_identifier": GUIDS,
    "hop_count": st.integers(0, 31),
    "hash_algorithm": U32,
    "encryption_algorithm": U32,
    "connector_type_identifier": GUIDS,
    "soap_header": TEXT,
    "soap_body": TEXT,
}
# Never in a packet: what only this queue manager knows, and the parts of SRMP; or written by others only.
NOT_IN_PACKETS = {
    "allow_peek_when_locked", "application_deadletter_queue", "arrival_time", "authentication_level",
    "deliveries", "encrypted", "expires", "lookup_identifier", "move_reason",
    "origin", "packet", "peer", "signature_type", "soap_compound_message",
    "soap_envelope", "transaction_identifier", "transaction_status_queue",
}  # fmt: skip


@st.composite
def messages(draw: Any, *, everything: bool = False) -> Message:
    """Messages as packets can hold them."""
    strategies: dict[str, st.SearchStrategy[Any]] = dict(ALWAYS)
    for optional in (TRANSACTION, SECURITY, LISTED):
        if everything or draw(BOOLEANS):
            strategies.update(optional)
    attributes = draw(st.fixed_dictionaries(strategies))
    if isinstance(attributes["destination"], PrivateName):
        attributes["destination_queue_manager_identifier"] = attributes["destination"].guid
    identifier = ObjectId(attributes["source_machine_identifier"], draw(U32))
    return Message(**attributes, identifier=identifier)


def attributes(message: Message) -> dict[str, Any]:
    return {name: getattr(message, name) for name in Message.__annotations__ if name not in NOT_IN_PACKETS}


def test_every_attribute_is_generated() -> None:
    drawn = {*ALWAYS, *TRANSACTION, *SECURITY, *LISTED, "identifier"}
    assert drawn | NOT_IN_PACKETS == set(Message.__annotations__)


@pytest.mark.requirement("DMPR-3.1.1.12-27", "DMPR-3.1.1.12-31")
@given(messages() | messages(everything=True))
def test_a_message_comes_back_from_its_packet(message: Message) -> None:
    data = serialization.to_packet(message)
    assert serialization.packet_size(message) == len(data)
    record = parse(data)
    assert record.recomputed() == record  # building computes what the serialiser filled in
    for given_as in (data, record):
        restored = serialization.deserialize(given_as)
        assert attributes(restored) == attributes(message)
        assert restored.packet == data


@pytest.mark.requirement("DMPR-3.1.1.12-18")
@given(messages(), st.sampled_from(AuthenticationLevel), BOOLEANS)
def test_a_message_comes_back_from_a_store(
    message: Message, level: AuthenticationLevel, encrypted: bool
) -> None:
    message.authentication_level = message.signature_type = level
    message.encrypted = encrypted and bool(message.privacy_level)
    message.soap_envelope, message.soap_compound_message = "<e/>", b"POST"
    restored = serialization.from_stored(serialization.to_stored(message), NULL_GUID)
    assert attributes(restored) == attributes(message)
    assert restored.authentication_level is restored.signature_type is level
    assert restored.encrypted is message.encrypted
    assert (restored.soap_envelope, restored.soap_compound_message) == ("<e/>", b"POST")


@given(packet(USER_MESSAGE) | packet(ORDER_ACK) | packet(FINAL_ACK))
def test_any_packet_is_read_or_refused(record: Record) -> None:
    data = record.to_bytes()
    try:
        message = serialization.deserialize(data)
    except MalformedPacket:
        with pytest.raises(MalformedPacket):
            serialization.deserialize(record)
        return
    assert attributes(serialization.deserialize(record)) == attributes(message)
    again = serialization.deserialize(serialization.to_packet(message))
    assert attributes(again) == attributes(message)
    assert again.packet == message.packet
    rebuilt = serialization.deserialize(serialization.to_packet(message.copy(packet=None)))
    expected = {
        name: value for name, value in attributes(message).items() if name not in not_written(message)
    }
    assert {name: getattr(rebuilt, name) for name in expected} == expected


def not_written(message: Message) -> set[str]:
    """Attributes that a packet may carry although no other one requires their header."""
    names = set()
    if not message.destinations:
        names |= {"administrations", "responses", "multiple_destination_signature"}
    security = [name for name in SECURITY if name != "sender_identifier_type"]
    if not any(getattr(message, name) for name in security):
        names.add("sender_identifier_type")
    if message.signature or message.multiple_destination_signature:
        names |= {"authentication_provider_type"} if not message.authentication_provider_name else set()
    return names


@given(packet(USER_MESSAGE) | packet(ORDER_ACK) | packet(FINAL_ACK))
def test_what_is_stored_goes_out_as_it_came(record: Record) -> None:
    try:
        message = serialization.deserialize(record)
    except MalformedPacket:
        return  # `test_any_packet_is_read_or_refused` has these
    stored = parse(serialization.to_packet(message))
    assert stored.SessionHeader is None
    for name in record.schema.fields[1:]:
        if name not in ("SessionHeader", "SecurityHeader", "OrderAckBody", "FinalAckBody"):
            assert stored[name] == record[name]
    message.hop_count = (message.hop_count + 1) % 32
    forwarded = parse(serialization.to_packet(message))
    word = stored.UserHeader.Flags.replace(RC=message.hop_count)
    assert forwarded == stored.replace(UserHeader=stored.UserHeader.replace(Flags=word))
