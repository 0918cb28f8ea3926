"""A message as a record says what it says as JSON, property by property."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire.constants import EncryptionAlgorithm
from msmqwire.errors import MalformedPacket
from msmqwire.names import parse_format_name
from msmqwire.qm.client import ReceivedMessage
from msmqwire.qm.model.enumerations import (
    AcknowledgementsRequested,
    AuthenticationLevel,
    DeliveryGuarantee,
    MoveReason,
    SenderIdentifierType,
)
from msmqwire.qm.model.message import Message, ObjectId, TxSequenceId
from msmqwire.qm.runtime import message_record
from msmqwire.qm.runtime.message_json import message_json
from msmqwire.qm.runtime.message_record import check_record, read_record, write_record

TEXTS = st.text(st.characters(exclude_categories=()), max_size=40)
UINT32 = st.integers(0, 0xFFFFFFFF) | st.sampled_from([0, 0xFFFFFFFF])
TIMES = st.integers(0, 0xFFFFFFFF) | st.just(0)
NAMES = st.sampled_from(
    [
        None,
        *map(
            parse_format_name,
            (
                r"DIRECT=OS:alpha\private$\orders",
                r"DIRECT=TCP:10.0.0.5\private$\orders;poison",
                r"DIRECT=HTTP://host:8080/msmq/private$/ab%20c",
                "PUBLIC=629d266e-11e0-40fb-b8c0-a27078dc2fb7",
                "PRIVATE=629d266e-11e0-40fb-b8c0-a27078dc2fb7\\00000005",
                "DL=629d266e-11e0-40fb-b8c0-a27078dc2fb7@example",
                "MACHINE=629d266e-11e0-40fb-b8c0-a27078dc2fb7;DEADXACT",
                "MULTICAST=234.1.1.1:8001",
            ),
        ),
    ]
)
SID = bytes.fromhex("010500000000000515000000") + bytes(range(16))
SENDERS = st.sampled_from([b"", SID, SID[:-1], bytes(range(16))]) | st.binary(max_size=70)
MESSAGES = st.builds(
    Message,
    body=st.binary(max_size=200),
    label=TEXTS,
    identifier=st.builds(ObjectId, st.uuids(), UINT32),
    lookup_identifier=st.integers(0, (1 << 64) - 1),
    message_class=st.sampled_from([0, 1, 0x0002, 0x4000, 0x8000, 0xFFFF]) | st.integers(0, 0xFFFF),
    delivery_guarantee=st.sampled_from(DeliveryGuarantee),
    priority=st.integers(0, 7),
    body_type=UINT32,
    application_tag=UINT32,
    extension=st.binary(max_size=50),
    correlation_identifier=st.just(bytes(20)) | st.binary(min_size=20, max_size=20),
    acknowledgements_requested=st.integers(0, 15).map(AcknowledgementsRequested),
    sent_time=TIMES,
    arrival_time=TIMES,
    time_to_reach_queue=UINT32,
    time_to_be_received=UINT32,
    positive_journaling_requested=st.booleans(),
    negative_journaling_requested=st.booleans(),
    source_machine_identifier=st.just(UUID(int=0)) | st.uuids(),
    destination=NAMES,
    administration=NAMES,
    response=NAMES,
    hop_count=st.integers(0, 31),
    deliveries=UINT32,
    move_reason=st.sampled_from(MoveReason),
    sender_identifier=SENDERS,
    sender_identifier_type=st.sampled_from(SenderIdentifierType),
    sender_certificate=st.binary(max_size=50),
    authentication_level=st.sampled_from(AuthenticationLevel),
    signature_type=st.sampled_from(AuthenticationLevel),
    privacy_level=st.sampled_from([0, 1, 3, 5]),
    encryption_algorithm=st.sampled_from(EncryptionAlgorithm),
    symmetric_key=st.sampled_from([b"", b"key"]),
    encrypted=st.booleans(),
    transactional_message_sequence_identifier=st.sampled_from([None, TxSequenceId(1, 2)]),
    transaction_identifier=st.none() | st.uuids(),
    soap_envelope=st.sampled_from(["", "<se:Envelope/>"]),
)


@given(MESSAGES)
def test_a_record_says_what_json_says(message: Message) -> None:
    record = write_record(message)
    check_record(record)
    received = ReceivedMessage.from_record(record)
    assert received.body == message.body
    said = json.loads(json.dumps(message_json(message)))
    assert received.to_json() == said
    assert received == ReceivedMessage.from_json(said)


@given(MESSAGES)
def test_a_message_of_a_record_is_a_value_like_any_other(message: Message) -> None:
    record = write_record(message)
    plain = ReceivedMessage.from_json(message_json(message))
    assert hash(ReceivedMessage.from_record(record)) == hash(plain)
    assert repr(ReceivedMessage.from_record(record)) == repr(plain)
    assert copy.copy(ReceivedMessage.from_record(record)) == plain
    assert pickle.loads(pickle.dumps(ReceivedMessage.from_record(record))) == plain
    assert dataclasses.replace(ReceivedMessage.from_record(record), label="x").label == "x"
    for field in dataclasses.fields(ReceivedMessage):
        assert getattr(ReceivedMessage.from_record(record), field.name) == getattr(plain, field.name)


def test_a_missing_attribute_of_a_record_raises_attribute_error() -> None:
    received = ReceivedMessage.from_record(write_record(Message(body=b"1")))
    plain = ReceivedMessage.from_json(message_json(Message(body=b"1")))
    for message in (received, plain):
        with pytest.raises(AttributeError, match="'ReceivedMessage' object has no attribute 'nothing'"):
            message.nothing  # type: ignore[attr-defined]  # noqa: B018
        with pytest.raises(dataclasses.FrozenInstanceError):
            message.body = b"2"  # type: ignore[misc]


@given(MESSAGES, st.data())
def test_a_record_of_another_length_is_refused(message: Message, data: st.DataObject) -> None:
    record = write_record(message)
    cut = data.draw(st.integers(0, len(record) - 1))
    for wrong in (record[:cut], record + b"\0"):
        with pytest.raises(MalformedPacket, match="a record"):
            check_record(wrong)


@given(st.binary(min_size=128, max_size=128).map(lambda data: data[:96] + bytes(32)))
def test_any_fixed_part_is_read_or_refused(record: bytes) -> None:
    if record[message_record._FLAGS_AT] & message_record._WITH_HISTORY:
        record += bytes(message_record._HISTORY.size)
    check_record(record)
    try:
        values = read_record(record)
    except MalformedPacket:
        return
    assert values["lookup_identifier"] == int.from_bytes(record[:8], "little")


@pytest.mark.parametrize("at", [94, 95])
def test_a_record_with_an_unknown_signature_or_cipher_is_refused(at: int) -> None:
    record = bytearray(write_record(Message()))
    record[at] = 6
    with pytest.raises(MalformedPacket, match="a record is not a valid message"):
        read_record(bytes(record))
