"""Messages written into packets and read from them: [MS-MQDMPR] 3.1.7.1.30 to 3.1.7.1.32.

The expected bytes come from `tests.support.handmade`, which shares no code with the library.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any
from uuid import UUID

import pytest

from msmqwire.constants import EncryptionAlgorithm, HashAlgorithm, MessageClass, PrivacyLevel
from msmqwire.errors import InvalidName, InvalidValue, MalformedPacket
from msmqwire.names import (
    DistributionListName,
    FormatName,
    MultipleElementName,
    PrivateName,
    PublicName,
    parse_format_name,
)
from msmqwire.packets import parse
from msmqwire.qm.model.enumerations import (
    INFINITE,
    AcknowledgementsRequested,
    AuthenticationLevel,
    DeliveryGuarantee,
    QueueFormatType,
    SenderIdentifierType,
)
from msmqwire.qm.model.message import Message, ObjectId, TxSequenceId
from msmqwire.qm.rules import serialization
from msmqwire.schema import Record
from tests.support import handmade
from tests.support.handmade import base_header, direct_name, private_id, private_name
from tests.support.paths import VECTORS

VECTOR = VECTORS / "MS-MQQB-4.1.7-UserMessage.hex"
CLIENT, SERVER = UUID(bytes_le=handmade.CLIENT), UUID(bytes_le=handmade.SERVER)
OTHER = UUID("12345678-9abc-def0-0123-456789abcdef")
NULL = UUID(int=0)
SID = bytes.fromhex("01 05 00 00 00 00 00 05 15 00 00 00 AD 4A 9E BD 36 D9 FA 3D 63 A6 56 DA E8 03 00 00")
SEQUENCE = TxSequenceId(time_stamp=2, ordinal=1)
DIRECT = parse_format_name("DIRECT=OS:a04bm02\\q")

ENHANCED = "Microsoft Enhanced Cryptographic Provider, v1.0"

requirement = pytest.mark.requirement


def message(**attributes: Any) -> Message:
    """The message whose packet is `handmade.user_message()`, with some attributes changed."""
    return Message(
        **{
            "source_machine_identifier": CLIENT,
            "identifier": ObjectId(CLIENT, 1),
            "sent_time": 0x441105E6,
            "destination": PrivateName(NULL, 9),
            "time_to_reach_queue": INFINITE,
            "hash_algorithm": HashAlgorithm.CALG_SHA_512,
            "encryption_algorithm": EncryptionAlgorithm.CALG_AES_256,
            **attributes,
        }
    )


def transactional(**attributes: Any) -> Message:
    """The same message with `handmade.transaction_header()`."""
    return message(
        **{
            "transactional_message_sequence_identifier": SEQUENCE,
            "transaction_sequence_number": 1,
            "priority": 0,
            "delivery_guarantee": DeliveryGuarantee.RECOVERABLE,
            **attributes,
        }
    )


RECOVERABLE = 0x20 | handmade.MP


def transaction_packet(**fields: Any) -> bytes:
    header = handmade.transaction_header(**fields)
    return handmade.user_message(transaction=header, flags=0, user_flags=RECOVERABLE)


def user_packet(**fields: Any) -> bytes:
    return handmade.user_message(user=handmade.user_header(**fields))


def properties_packet(**fields: Any) -> bytes:
    return handmade.user_message(properties=handmade.properties_header(**fields))


def security_packet(**fields: Any) -> bytes:
    properties = fields.pop("properties", b"") or handmade.properties_header()
    return handmade.user_message(security=handmade.security_header(**fields), properties=properties)


def same(actual: Message, expected: Message) -> None:
    """Compare every attribute except the packet, and what is only known of a received one."""
    assert actual.encrypted == bool(actual.privacy_level)
    for name in Message.__annotations__:
        if name not in ("packet", "encrypted"):
            assert getattr(actual, name) == getattr(expected, name), name


# -- attributes and fields, one by one: 3.1.7.1.31 and 3.1.7.1.32 ----------------------------------------

MULTI = handmade.multi_queue_format_header(
    [handmade.mqf_public(OTHER.bytes_le), handmade.mqf_direct("OS:a04bm02\\q")],
    [handmade.mqf_private(OTHER.bytes_le, 5)],
    [handmade.mqf_list(OTHER.bytes_le)],
    b"seven ",
)
MULTI_ATTRIBUTES: dict[str, Any] = {
    "destinations": (PublicName(OTHER), DIRECT),
    "administrations": (PrivateName(OTHER, 5),),
    "responses": (DistributionListName(OTHER),),
    "multiple_destination_signature": b"seven ",
}
PROVIDER = handmade.provider_info(0x18, "Other Provider")
PROVIDER_ATTRIBUTES = {
    "authentication_provider_type": 0x18,
    "authentication_provider_name": "Other Provider",
}

# rows of 3.1.7.1.31, rows of 3.1.7.1.32, message, packet, attributes concerned
FIELDS: list[tuple[str, str, Message, bytes, str]] = [
    *(("04", "03", message(priority=number), handmade.user_message(flags=number), "priority")
      for number in range(8)),
    ("05 33", "46", message(), handmade.user_message(), "tracing_requested delivery_guarantee"),
    ("19 24 25", "30 36 37", transactional(), transaction_packet(),
     "final_ack_required first_in_transaction last_in_transaction"),
    ("06", "16", message(time_to_reach_queue=17), handmade.user_message(time_to_reach_queue=17),
     "time_to_reach_queue"),
    ("07", "17", message(body_type=8), properties_packet(body_type=8), "body_type"),
    ("08", "18", message(application_tag=99), properties_packet(application_tag=99), "application_tag"),
    ("09", "19", message(correlation_identifier=bytes(range(20))),
     properties_packet(correlation_id=bytes(range(20))), "correlation_identifier"),
    *(("10", "20", message(acknowledgements_requested=AcknowledgementsRequested[name]),
       properties_packet(flags=number), "acknowledgements_requested")
      for name, number in (
          ("NONE", 0), ("ACK_POS_ARRIVAL", 1), ("ACK_POS_RECEIVE", 2), ("ACK_NEG_ARRIVAL", 4),
          ("ACK_NEG_RECEIVE", 8), ("ACK_NACK_REACH_QUEUE", 0x04), ("ACK_FULL_REACH_QUEUE", 0x05),
          ("ACK_NACK_RECEIVE", 0x0C), ("ACK_FULL_RECEIVE", 0x0E),
      )),
    ("11", "09 21", message(extension=b"later"), properties_packet(extension=b"later"), "extension"),
    ("12", "07 22", message(label="Größe 𝄞"), properties_packet(label="Größe 𝄞"), "label"),
    ("13", "08 23", message(body=b"seventy"), properties_packet(body=b"seventy"), "body"),
    ("14 15", "14 24 25", message(**PROVIDER_ATTRIBUTES), security_packet(flags=0x81, provider=PROVIDER),
     "authentication_provider_type authentication_provider_name"),
    ("16", "27", message(symmetric_key=b"key"), security_packet(flags=0x81, encryption_key=b"key"),
     "symmetric_key"),
    ("17", "28", message(sender_identifier=SID), security_packet(flags=1, security_id=SID),
     "sender_identifier"),
    ("18", "13 29", message(sender_certificate=b"certificate"),
     security_packet(flags=0x81, certificate=b"certificate"), "sender_certificate"),
    ("40", "26", message(signature=b"signed"), security_packet(flags=0xC1, signature=b"signed"), "signature"),
    ("19", "30", transactional(final_ack_required=True), transaction_packet(flags=0x2), "final_ack_required"),
    ("20", "31", transactional(transaction_number=0xABCDE), transaction_packet(flags=0xABCDE0),
     "transaction_number"),
    ("21", "32", transactional(transaction_sequence_number=77), transaction_packet(number=77),
     "transaction_sequence_number"),
    ("40", "33", transactional(transaction_previous_sequence_number=76), transaction_packet(previous=76),
     "transaction_previous_sequence_number"),
    ("22", "34", transactional(transactional_message_sequence_identifier=TxSequenceId(8, 9)),
     transaction_packet(ordinal=9, time_stamp=8), "transactional_message_sequence_identifier"),
    ("23", "35", transactional(connector_queue_manager_identifier=OTHER),
     transaction_packet(flags=1, connector=OTHER.bytes_le), "connector_queue_manager_identifier"),
    ("24", "36", transactional(first_in_transaction=True), transaction_packet(flags=0x4),
     "first_in_transaction"),
    ("24", "36", transactional(first_in_transaction=False, last_in_transaction=True),
     transaction_packet(flags=0x8), "first_in_transaction"),
    ("25", "37", transactional(last_in_transaction=True), transaction_packet(flags=0x8),
     "last_in_transaction"),
    ("26", "38", message(destination=PrivateName(SERVER, 9), destination_queue_manager_identifier=SERVER),
     user_packet(address=handmade.SERVER), "destination_queue_manager_identifier"),
    ("40", "39", message(connector_type_identifier=OTHER), user_packet(connector_type=OTHER.bytes_le),
     "connector_type_identifier"),
    ("27", "40", message(sent_time=5), user_packet(sent_time=5), "sent_time"),
    ("28", "41", message(time_to_be_received=6), user_packet(time_to_be_received=6), "time_to_be_received"),
    ("29", "42", message(identifier=ObjectId(CLIENT, 70000)), user_packet(message_id=70000), "identifier"),
    ("30", "43", message(source_machine_identifier=SERVER, identifier=ObjectId(SERVER, 1)),
     user_packet(source=handmade.SERVER), "source_machine_identifier"),
    ("31", "44", message(administration=DIRECT), user_packet(admin=(7, direct_name("OS:a04bm02\\q"))),
     "administration"),
    ("32", "45", message(destination=DIRECT), user_packet(destination=(7, direct_name("OS:a04bm02\\q"))),
     "destination"),
    ("34", "47", message(response=PublicName(OTHER)), user_packet(response=(5, OTHER.bytes_le)), "response"),
    ("33", "46", message(delivery_guarantee=DeliveryGuarantee.RECOVERABLE),
     handmade.user_message(user_flags=RECOVERABLE), "delivery_guarantee"),
    ("35", "48", message(**MULTI_ATTRIBUTES), handmade.user_message(multi_queue=MULTI), "destinations"),
    ("36", "49", message(**MULTI_ATTRIBUTES), handmade.user_message(multi_queue=MULTI), "administrations"),
    ("37", "50", message(**MULTI_ATTRIBUTES), handmade.user_message(multi_queue=MULTI), "responses"),
    ("38", "51", message(**MULTI_ATTRIBUTES), handmade.user_message(multi_queue=MULTI),
     "multiple_destination_signature"),
    ("39", "52", message(tracing_queue_identifier=OTHER),
     handmade.user_message(debug=handmade.debug_header(OTHER.bytes_le)), "tracing_queue_identifier"),
    ("05", "06", message(tracing_requested=True),
     handmade.user_message(flags=3 | handmade.TR, debug=handmade.debug_header()), "tracing_requested"),
    ("44", "56", message(positive_journaling_requested=True),
     handmade.user_message(user_flags=handmade.MP | 0x200), "positive_journaling_requested"),
    ("44", "56", message(negative_journaling_requested=True),
     handmade.user_message(user_flags=handmade.MP | 0x100), "negative_journaling_requested"),
    *(("41", "54", message(message_class=number), properties_packet(message_class=number), "message_class")
      for number in (0x0000, 0x0001, 0x0002, 0x4000, *range(0x8000, 0x8008), 0x8009, 0x800A, 0x800B,
                     0xC000, 0xC001, 0xC002, 0xC004)),
    *(("41 42", "54", message(message_class=number), properties_packet(message_class=number), "message_class")
      for number in (0x00FF, 0x0100, 0x8008, 0xE1FF)),
    *(("43", "55", message(privacy_level=level, sender_identifier=SID),
       security_packet(flags=0x21 if level else 1, security_id=SID,
                       properties=handmade.properties_header(privacy_level=level)), "privacy_level")
      for level in (0, 1, 3, 5)),
    *(("45", "57", message(encryption_algorithm=number), properties_packet(encryption_algorithm=number),
       "encryption_algorithm") for number in (0x6602, 0x6801, 0x6610, 0x660E, 0x660F)),
    *(("46", "58", message(hash_algorithm=number), properties_packet(hash_algorithm=number),
       "hash_algorithm") for number in (0x8001, 0x8002, 0x8003, 0x8004, 0x800C, 0x800E)),
    *(("50", "62", message(sender_identifier=SID, sender_identifier_type=SenderIdentifierType(kind)),
       security_packet(flags=kind, security_id=SID), "sender_identifier_type") for kind in (0, 1, 2)),
]  # fmt: skip


# of attributes with the value of a field
FIELD_OF = {
    "time_to_reach_queue": "BaseHeader.TimeToReachQueue",
    "body_type": "MessagePropertiesHeader.BodyType",
    "application_tag": "MessagePropertiesHeader.ApplicationTag",
    "correlation_identifier": "MessagePropertiesHeader.CorrelationID",
    "extension": "MessagePropertiesHeader.ExtensionData",
    "label": "MessagePropertiesHeader.Label",
    "body": "MessagePropertiesHeader.MessageBody",
    "message_class": "MessagePropertiesHeader.MessageClass",
    "privacy_level": "MessagePropertiesHeader.PrivacyLevel",
    "hash_algorithm": "MessagePropertiesHeader.HashAlgorithm",
    "encryption_algorithm": "MessagePropertiesHeader.EncryptionAlgorithm",
    "authentication_provider_type": "SecurityHeader.SecurityData.ProviderInfo.ProviderType",
    "authentication_provider_name": "SecurityHeader.SecurityData.ProviderInfo.ProviderName",
    "symmetric_key": "SecurityHeader.SecurityData.EncryptionKey",
    "sender_identifier": "SecurityHeader.SecurityData.SecurityID",
    "sender_certificate": "SecurityHeader.SecurityData.SenderCert",
    "signature": "SecurityHeader.SecurityData.Signature",
    "transaction_sequence_number": "TransactionHeader.TxSequenceNumber",
    "transaction_previous_sequence_number": "TransactionHeader.PreviousTxSequenceNumber",
    "connector_queue_manager_identifier": "TransactionHeader.ConnectorQMGuid",
    "destination_queue_manager_identifier": "UserHeader.QueueManagerAddress",
    "connector_type_identifier": "UserHeader.ConnectorType",
    "sent_time": "UserHeader.SentTime",
    "time_to_be_received": "UserHeader.TimeToBeReceived",
    "source_machine_identifier": "UserHeader.SourceQueueManager",
    "tracing_queue_identifier": "DebugHeader.QueueIdentifier",
}
# of the fields, by the row of 3.1.7.1.32
ROWS_OF_FIELDS = {
    "06": "MQMQ-2.2.19.1-14", "30": "MQMQ-2.2.20.5-05", "31": "MQMQ-2.2.20.5-09", "36": "MQMQ-2.2.20.5-06",
    "37": "MQMQ-2.2.20.5-07", "38": "MQMQ-2.2.19.2-02", "44": "MQMQ-2.2.19.2-23", "45": "MQMQ-2.2.19.2-21",
    "46": "MQMQ-2.2.19.2-11", "47": "MQMQ-2.2.19.2-27", "55": "MQMQ-2.2.20.6-07", "62": "MQMQ-2.2.20.6-02",
}  # fmt: skip
ROWS_OF_ATTRIBUTES = {
    "positive_journaling_requested": "MQMQ-2.2.19.2-19",
    "negative_journaling_requested": "MQMQ-2.2.19.2-15",
    "sender_identifier_type": "DMPR-3.1.1.12-59",
}


def rows(section: str, numbers: str) -> list[str]:
    return [f"DMPR-3.1.7.1.{section}-{number}" for number in numbers.split()]


def cases(section: str) -> list[Any]:
    params = []
    for reading, writing, attributes, packet, names in FIELDS:
        numbers = reading if section == "31" else writing
        values = "-".join(f"{name}-{getattr(attributes, name)!s:.24}" for name in names.split())
        of_fields = [ROWS_OF_FIELDS[number] for number in writing.split() if number in ROWS_OF_FIELDS]
        of_fields += [ROWS_OF_ATTRIBUTES[name] for name in names.split() if name in ROWS_OF_ATTRIBUTES]
        marks = requirement(*rows(section, numbers), *of_fields)
        params.append(pytest.param(attributes, packet, names.split(), marks=marks, id=f"{numbers}-{values}"))
    return params


@pytest.mark.parametrize(("expected", "packet", "names"), cases("31"))
def test_an_attribute_is_read_from_its_field(expected: Message, packet: bytes, names: list[str]) -> None:
    for name in names:
        if name in ("delivery_guarantee", "sender_identifier_type", "acknowledgements_requested"):
            assert type(getattr(expected, name)) is type(getattr(serialization.deserialize(packet), name))
    same(serialization.deserialize(packet), expected)
    same(serialization.deserialize(parse(packet), packet), expected)


@pytest.mark.parametrize(("original", "packet", "names"), cases("32"))
def test_a_field_is_written_from_its_attribute(original: Message, packet: bytes, names: list[str]) -> None:
    assert serialization.to_packet(original) == packet
    assert serialization.packet_size(original) == len(packet)
    written = parse(serialization.to_packet(original))
    for name in names:
        if name in FIELD_OF:
            assert attrgetter(FIELD_OF[name])(written) == getattr(original, name)


@requirement("DMPR-3.1.7.1.32-01", "DMPR-3.1.7.1.31-01", "MQQB-3.1.7.10-01", "MQQB-3.1.7.11-01")
def test_the_captured_message_comes_back() -> None:
    data = bytes.fromhex(VECTOR.read_text())
    message = serialization.deserialize(data)
    assert (message.label, message.body_type, len(message.body)) == ("mqsender label", 8, 2000)
    assert message.destination == DIRECT
    assert message.sender_identifier == SID
    assert serialization.to_packet(message) is data
    assert serialization.to_packet(message.copy(packet=None)) == data
    second = serialization.deserialize(data)
    assert second is not message
    same(second, message)


@requirement("DMPR-3.1.7.1.31-41")
def test_classes_that_have_a_name_have_it() -> None:
    message_class = serialization.deserialize(properties_packet(message_class=0x8001)).message_class
    assert message_class is MessageClass.MQMSG_CLASS_NACK_DELETED


@requirement("MQMQ-2.2.19.2-10", "MQMQ-2.2.20.6-07", "MQMQ-2.2.20.6-08")
def test_all_at_once() -> None:
    original = transactional(
        **MULTI_ATTRIBUTES,
        **PROVIDER_ATTRIBUTES,
        label="all",
        body=b"body",
        extension=b"ext",
        administration=DIRECT,
        response=PrivateName(OTHER, 3),
        tracing_requested=True,
        tracing_queue_identifier=OTHER,
        hop_count=29,
        sender_identifier=SID,
        sender_certificate=b"certificate",
        signature=b"signature",
        privacy_level=5,
        symmetric_key=b"k",
        connector_type_identifier=OTHER,
        connector_queue_manager_identifier=SERVER,
        transaction_number=1,
        final_ack_required=True,
        first_in_transaction=True,
        last_in_transaction=True,
        soap_header="<h/>",
        soap_body="<b/>",
        positive_journaling_requested=True,
        negative_journaling_requested=True,
    )
    packet = handmade.user_message(
        user=handmade.user_header(
            flags=29 | RECOVERABLE | 0x300,
            admin=(7, direct_name("OS:a04bm02\\q")),
            response=(6, private_name(OTHER.bytes_le, 3)),
            connector_type=OTHER.bytes_le,
        ),
        transaction=handmade.transaction_header(flags=0x1F, connector=SERVER.bytes_le),
        security=handmade.security_header(
            flags=0xA1,
            security_id=SID,
            encryption_key=b"k",
            signature=b"signature",
            certificate=b"certificate",
            provider=PROVIDER,
        ),
        properties=handmade.properties_header(label="all", body=b"body", extension=b"ext", privacy_level=5),
        debug=handmade.debug_header(OTHER.bytes_le),
        soap=handmade.soap_header("<h/>", "<b/>"),
        multi_queue=MULTI,
        flags=handmade.TR,
    )
    assert serialization.to_packet(original) == packet
    assert serialization.packet_size(original) == len(packet)
    same(serialization.deserialize(packet), original)


# -- which headers: 3.1.7.1.30 ---------------------------------------------------------------------------

HEADERS = [
    ("02", "TransactionHeader", "TH", {"transaction_identifier": OTHER}),
    ("02", "TransactionHeader", "TH", {"transactional_message_sequence_identifier": SEQUENCE}),
    ("03", "SecurityHeader", "SH", {"authentication_level": AuthenticationLevel.SIG10}),
    ("03", "SecurityHeader", "SH", {"authentication_level": AuthenticationLevel.XML_SIG}),
    ("03", "SecurityHeader", "SH", {"sender_identifier": SID}),
    ("03", "SecurityHeader", "SH", {"privacy_level": 3}),
    ("03", "SecurityHeader", "SH", {"symmetric_key": b"k"}),
    ("03", "SecurityHeader", "SH", {"sender_certificate": b"c"}),
    ("03", "SecurityHeader", "SH", {"signature": b"s"}),
    ("03", "SecurityHeader", "SH", {"authentication_provider_type": 2}),
    ("06", "MultiQueueFormatHeader", "MQ", {"destinations": (PublicName(OTHER),)}),
]


def written(message: Message) -> Record:
    """The packet of a message, read by the schema."""
    return parse(serialization.to_packet(message))


@pytest.mark.parametrize(
    ("header", "flag", "attributes"),
    [
        pytest.param(
            header, flag, attributes, marks=requirement(*rows("30", row)), id=f"{row}-{[*attributes]}"
        )
        for row, header, flag, attributes in HEADERS
    ],
)
def test_a_header_is_there_if_an_attribute_wants_it(header: str, flag: str, attributes: Any) -> None:
    record = written(message(**attributes))
    assert record[header] is not None
    assert getattr(record.UserHeader.Flags, flag)
    without = written(message())
    assert without[header] is None
    assert not getattr(without.UserHeader.Flags, flag)


@requirement("DMPR-3.1.7.1.30-05", "MQMQ-2.2.19.1-12")
def test_a_debug_header_is_there_for_a_trace_queue() -> None:
    original = message(tracing_queue_identifier=OTHER)
    record = written(original)
    assert record.BaseHeader.Flags.DH
    assert record.DebugHeader is not None
    record = written(message())
    assert not record.BaseHeader.Flags.DH
    assert record.DebugHeader is None


@requirement("DMPR-3.1.7.1.30-04", "MQMQ-2.2.19.2-34")
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"correlation_identifier": bytes(range(20))},
        {"body_type": 8},
        {"application_tag": 1},
        {"body": b"b"},
        {"privacy_level": 1},
        {"hash_algorithm": 0x8004},
        {"encryption_algorithm": 0x6602},
        {"extension": b"e"},
        {"label": "l"},
    ],
    ids=lambda attributes: " ".join(attributes) or "nothing",
)
def test_properties_are_always_there(attributes: Any) -> None:
    record = written(message(**attributes))
    assert record.MessagePropertiesHeader is not None
    assert record.UserHeader.Flags.MP


@requirement("DMPR-3.1.7.1.30-01")
def test_what_is_built_is_a_user_message() -> None:
    original = message(destination=DIRECT)
    reparsed = written(original)
    assert reparsed.schema.name == "UserMessage"
    assert reparsed.to_bytes() == user_packet(destination=(7, direct_name("OS:a04bm02\\q")))
    assert reparsed.to_bytes() == serialization.to_packet(original)


# -- what the rows say in addition to the tables ---------------------------------------------------------


@requirement("DMPR-3.1.7.1.31-02")
def test_attributes_of_absent_headers_keep_their_defaults() -> None:
    parsed, default = serialization.deserialize(handmade.user_message()), Message()
    for name in (
        "authentication_level", "sender_identifier", "sender_identifier_type", "sender_certificate",
        "signature", "symmetric_key", "authentication_provider_type", "authentication_provider_name",
        "transactional_message_sequence_identifier", "transaction_sequence_number", "final_ack_required",
        "transaction_previous_sequence_number", "transaction_number", "first_in_transaction",
        "last_in_transaction", "connector_queue_manager_identifier", "tracing_queue_identifier",
        "destinations", "administrations", "responses", "multiple_destination_signature",
    ):  # fmt: skip
        assert getattr(parsed, name) == getattr(default, name), name


@requirement("DMPR-3.1.7.1.31-03", "DMPR-3.1.7.1.32-10", "DMPR-3.1.7.1.32-11")
@pytest.mark.parametrize("level", [0x0, 0x1, 0x3, 0x5])
def test_the_authentication_level_comes_from_the_store_alone(level: int) -> None:
    """A peer's packet cannot set it."""
    packet = security_packet(flags=1, security_id=SID)
    received = serialization.deserialize(packet)
    received.authentication_level = AuthenticationLevel(level)
    stored = serialization.to_stored(received)
    assert level == parse(stored).SecurityHeader.Flags.AS
    assert (level != 0) == parse(stored).SecurityHeader.Flags.AU
    restored = serialization.from_stored(stored, SERVER)
    assert restored.authentication_level is AuthenticationLevel(level)
    assert restored.packet == packet  # these bits are 0 on the wire
    hostile = serialization.deserialize(stored)
    assert hostile.authentication_level is AuthenticationLevel.NONE
    assert hostile.packet == packet


@requirement("DMPR-3.1.7.1.32-02")
@pytest.mark.parametrize("size", range(5))
def test_the_packet_size_is_that_of_the_whole_packet(size: int) -> None:
    packet = serialization.to_packet(
        message(body=bytes(size), label="l", extension=b"e", sender_identifier=SID[:size])
    )
    assert int.from_bytes(packet[8:12], "little") == len(packet)
    assert len(packet) % 4 == 0


@requirement("DMPR-3.1.7.1.32-04")
def test_transactional_messages_are_recoverable_at_priority_0() -> None:
    original = transactional(priority=5, delivery_guarantee=DeliveryGuarantee.EXPRESS)
    assert serialization.to_packet(original) == transaction_packet()


@requirement("DMPR-3.1.7.1.32-05")
def test_the_priority_of_a_transactional_message_is_ignored() -> None:
    header = handmade.transaction_header()
    same(serialization.deserialize(handmade.user_message(transaction=header, flags=6)), transactional())


@requirement("DMPR-3.1.7.1.32-06")
@pytest.mark.parametrize("queue", [NULL, OTHER])
def test_tr_and_dh_tell_that_tracing_is_requested(queue: UUID) -> None:
    packet = parse(serialization.to_packet(message(tracing_requested=True, tracing_queue_identifier=queue)))
    assert packet.BaseHeader.Flags.TR
    assert packet.BaseHeader.Flags.DH
    packet = parse(serialization.to_packet(message(priority=0)))
    assert not packet.BaseHeader.Flags.TR
    assert not packet.BaseHeader.Flags.DH
    assert packet.BaseHeader.Flags == 0


@requirement("DMPR-3.1.7.1.32-53")
@pytest.mark.parametrize("queue", [NULL, OTHER])
def test_qt_tells_that_there_is_a_trace_queue(queue: UUID) -> None:
    header = parse(
        serialization.to_packet(message(tracing_requested=True, tracing_queue_identifier=queue))
    ).DebugHeader
    assert (header.Flags.QT, header.QueueIdentifier) == ((1, queue) if queue.int else (0, None))


@requirement("DMPR-3.1.7.1.32-07")
@pytest.mark.parametrize(("label", "length"), [("", 0), ("a", 2), ("𝄞", 3), ("x" * 249, 250)])
def test_the_label_length_counts_the_null(label: str, length: int) -> None:
    packet = serialization.to_packet(message(label=label))
    assert parse(packet).MessagePropertiesHeader.LabelLength == length
    assert serialization.deserialize(packet).label == label


@requirement("DMPR-3.1.1.12-46")
def test_a_label_has_at_most_249_characters() -> None:
    assert Message().label == ""
    assert serialization.deserialize(serialization.to_packet(message(label="x" * 249))).label == "x" * 249
    with pytest.raises(InvalidValue) as caught:
        serialization.to_packet(message(label="x" * 250))
    assert caught.value.path == "MessagePropertiesHeader.Label"


@requirement("DMPR-3.1.7.1.32-10", "DMPR-3.1.7.1.32-11")
@pytest.mark.parametrize("level", AuthenticationLevel)
def test_au_and_as_are_zero_on_the_wire(level: AuthenticationLevel) -> None:
    original = message(authentication_level=level, signature=b"s", sender_identifier_type=2)
    flags = parse(serialization.to_packet(original)).SecurityHeader.Flags
    assert not flags.AU
    assert flags.AS == 0
    assert (flags.ST, flags.DE, flags.AI) == (2, 1, 1)  # and what they go with is there
    received = serialization.deserialize(serialization.to_packet(original))
    received.authentication_level = level
    assert serialization.to_packet(received) == serialization.to_packet(original)


@requirement("DMPR-3.1.7.1.32-12")
@pytest.mark.parametrize("level", PrivacyLevel)
def test_eb_tells_that_the_body_is_encrypted(level: PrivacyLevel) -> None:
    flags = parse(serialization.to_packet(message(privacy_level=level, signature=b"s"))).SecurityHeader.Flags
    assert (level != 0) == flags.EB


@requirement("DMPR-3.1.7.1.32-15")
@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"signature": b"s"}, True),
        ({"signature": b"s", "authentication_provider_name": ENHANCED}, True),
        ({"multiple_destination_signature": b"s", "sender_certificate": b"c"}, True),
        ({"signature": b"s", **PROVIDER_ATTRIBUTES}, False),
        ({"sender_identifier": SID}, False),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else None,
)
def test_de_tells_that_the_system_signed(attributes: Any, expected: bool) -> None:
    header = parse(serialization.to_packet(message(**attributes))).SecurityHeader
    assert expected == header.Flags.DE
    assert (header.SecurityData.ProviderInfo is None) == ("Other" not in str(attributes))


# -- names of queues -------------------------------------------------------------------------------------

PLACES: list[tuple[str, str, FormatName, int, bytes]] = [
    ("destination", "47 59 53", PrivateName(SERVER, 5), 3, private_id(5)),
    ("destination", "47 59 53", PublicName(OTHER), 5, OTHER.bytes_le),
    ("destination", "47 59 53", DIRECT, 7, direct_name("OS:a04bm02\\q")),
    *(
        (attribute, numbers, name, kind, data)
        for attribute, numbers in (("administration", "48 60 54"), ("response", "49 61 55"))
        for name, kind, data in (
            (None, 0, b""),
            (PrivateName(CLIENT, 5), 2, private_id(5)),
            (PrivateName(SERVER, 5), 3, private_id(5)),
            (PublicName(OTHER), 5, OTHER.bytes_le),
            (PrivateName(OTHER, 5), 6, private_name(OTHER.bytes_le, 5)),
            (DIRECT, 7, direct_name("OS:a04bm02\\q")),
        )
    ),
]


@pytest.mark.parametrize(
    ("attribute", "name", "kind", "data"),
    [
        pytest.param(
            attribute, name, kind, data, id=f"{attribute}-{kind}",
            marks=requirement(
                *(f"DMPR-{section}-{row}" for section, row in
                  zip(("3.1.7.1.31", "3.1.7.1.32", "3.1.1.12"), numbers.split(), strict=True))
            ),
        )
        for attribute, numbers, name, kind, data in PLACES
    ],
)  # fmt: skip
def test_the_type_of_a_queue(attribute: str, name: FormatName, kind: int, data: bytes) -> None:
    original = message(
        **{"destination": PublicName(SERVER), "destination_queue_manager_identifier": SERVER, attribute: name}
    )
    field = {"destination": "destination", "administration": "admin", "response": "response"}[attribute]
    packet = user_packet(
        **{"address": handmade.SERVER, "destination": (5, handmade.SERVER), field: (kind, data)}
    )
    assert serialization.to_packet(original) == packet
    parsed = serialization.deserialize(packet)
    same(parsed, original)
    assert getattr(parsed, f"{attribute}_queue_type") is QueueFormatType(kind)


@requirement("DMPR-3.1.7.1.31-49", "DMPR-3.1.7.1.32-61", "DMPR-3.1.1.12-55", "DMPR-3.1.1.12-56")
def test_a_response_queue_that_is_the_administration_queue() -> None:
    original = message(administration=DIRECT, response=parse_format_name(DIRECT.canonical))
    packet = user_packet(admin=(7, direct_name("OS:a04bm02\\q")), response=(1, b""))
    assert serialization.to_packet(original) == packet
    parsed = serialization.deserialize(packet)
    assert parsed.response_queue_type is QueueFormatType.SAME_AS_ADMINISTRATION_QUEUE
    assert parsed.response == parsed.administration == DIRECT


@requirement("DMPR-3.1.1.12-26", "DMPR-3.1.1.12-30")
@requirement("DMPR-3.1.7.1.31-49", "DMPR-3.1.7.1.32-61", "DMPR-3.1.1.12-55")
def test_a_response_queue_where_the_administration_queue_is() -> None:
    original = message(administration=PrivateName(OTHER, 5), response=PrivateName(OTHER, 6))
    packet = user_packet(admin=(6, private_name(OTHER.bytes_le, 5)), response=(4, private_id(6)))
    assert serialization.to_packet(original) == packet
    parsed = serialization.deserialize(packet)
    same(parsed, original)
    assert parsed.response_queue_type is QueueFormatType.PRIVATE_QUEUE_ON_ADMIN


def test_a_private_destination_tells_its_host() -> None:
    user_header = parse(serialization.to_packet(message(destination=PrivateName(SERVER, 9)))).UserHeader
    assert user_header.QueueManagerAddress == SERVER


@requirement("DMPR-3.1.1.12-29")
def test_no_list_of_queues_has_a_list() -> None:
    several = MultipleElementName((PublicName(OTHER), PublicName(SERVER)))
    with pytest.raises(InvalidName):
        serialization.to_packet(message(destinations=(several,)))


@requirement("DMPR-3.1.1.12-28")
def test_no_destination_is_a_list() -> None:
    with pytest.raises(InvalidName):
        serialization.to_packet(
            message(destination=MultipleElementName((PublicName(OTHER), PublicName(SERVER))))
        )


# -- defaults and values: 3.1.1.12 -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attribute", "default"),
    [
        pytest.param(attribute, default, marks=requirement(f"DMPR-3.1.1.12-{row}"), id=f"{row}-{attribute}")
        for row, attribute, default in [
            ("13", "privacy_level", 0),
            ("15", "authentication_level", AuthenticationLevel.NONE),
            ("17", "delivery_guarantee", DeliveryGuarantee.EXPRESS),
            ("19", "tracing_requested", False),
            ("20", "tracing_queue_identifier", NULL),
            ("21", "priority", 3),
            ("22", "positive_journaling_requested", False),
            ("24", "negative_journaling_requested", False),
            ("26", "response", None),
            ("27", "responses", ()),
            ("30", "administration", None),
            ("31", "administrations", ()),
            ("33", "multiple_destination_signature", b""),
            ("34", "application_tag", 0),
            ("36", "body", b""),
            ("37", "body_type", 0),
            ("38", "correlation_identifier", bytes(20)),
            ("39", "acknowledgements_requested", AcknowledgementsRequested.NONE),
            ("48", "time_to_reach_queue", 345_600),
            ("49", "time_to_be_received", 0xFFFF_FFFF),
            ("50", "hash_algorithm", 0x8004),
            ("51", "encryption_algorithm", 0x6801),
            ("54", "administration_queue_type", QueueFormatType.NONE),
            ("55", "response_queue_type", QueueFormatType.NONE),
            ("59", "sender_identifier_type", SenderIdentifierType.SID),
            ("61", "extension", b""),
            ("62", "connector_type_identifier", NULL),
        ]
    ],
)
def test_a_default(attribute: str, default: Any) -> None:
    assert getattr(Message(), attribute) == default


@pytest.mark.parametrize(
    ("attribute", "values"),
    [
        pytest.param("privacy_level", [0, 1, 3, 5], marks=requirement("DMPR-3.1.1.12-13")),
        pytest.param("priority", range(8), marks=requirement("DMPR-3.1.1.12-21")),
        pytest.param("application_tag", [0, 1, 0xFFFFFFFF], marks=requirement("DMPR-3.1.1.12-34")),
        pytest.param("body", [b"", b"\0", bytes(range(256))], marks=requirement("DMPR-3.1.1.12-36")),
        pytest.param("body_type", [0, 8, 0x7777], marks=requirement("DMPR-3.1.1.12-37", "MQMQ-2.2.12-17")),
        pytest.param("correlation_identifier", [b"\xff" * 20], marks=requirement("DMPR-3.1.1.12-38")),
        pytest.param(
            "acknowledgements_requested",
            list(AcknowledgementsRequested.__members__.values()),
            marks=requirement("DMPR-3.1.1.12-39"),
        ),
        pytest.param("hash_algorithm", list(HashAlgorithm), marks=requirement("DMPR-3.1.1.12-50")),
        pytest.param(
            "encryption_algorithm",
            [0x6602, 0x660E, 0x660F, 0x6610, 0x6801],
            marks=requirement("DMPR-3.1.1.12-51"),
        ),
        pytest.param("extension", [b"", b"\0", bytes(range(256))], marks=requirement("DMPR-3.1.1.12-61")),
        pytest.param("connector_type_identifier", [NULL, OTHER], marks=requirement("DMPR-3.1.1.12-62")),
    ],
)
def test_values_are_carried_unchanged(attribute: str, values: Any) -> None:
    for value in values:
        parsed = serialization.deserialize(serialization.to_packet(message(**{attribute: value})))
        assert getattr(parsed, attribute) == value


@requirement("DMPR-3.1.1.12-15")
def test_authentication_levels() -> None:
    assert [level.name for level in AuthenticationLevel] == ["NONE", "SIG10", "SIG20", "SIG30", "XML_SIG"]
    assert [*AuthenticationLevel] == [0, 1, 3, 5, 9]


@requirement("DMPR-3.1.1.12-41", "DMPR-3.1.1.12-43", "DMPR-3.1.1.12-44", "DMPR-3.1.1.12-45")
def test_names_of_several_acknowledgements() -> None:
    asked = AcknowledgementsRequested
    assert asked.ACK_NACK_REACH_QUEUE == asked.ACK_NEG_ARRIVAL
    assert asked.ACK_FULL_REACH_QUEUE == asked.ACK_POS_ARRIVAL | asked.ACK_NEG_ARRIVAL
    assert asked.ACK_NACK_RECEIVE == asked.ACK_NEG_ARRIVAL | asked.ACK_NEG_RECEIVE
    assert asked.ACK_FULL_RECEIVE == asked.ACK_NEG_ARRIVAL | asked.ACK_POS_RECEIVE | asked.ACK_NEG_RECEIVE


@requirement("DMPR-3.1.1.12-50", "DMPR-3.1.7.1.32-58")
def test_hash_algorithms() -> None:
    """SHA and SHA1 are one number."""
    names = [algorithm.name for algorithm in HashAlgorithm]
    assert names == [f"CALG_{name}" for name in ("MD2", "MD4", "MD5", "SHA1", "SHA_256", "SHA_512")]


@requirement("DMPR-3.1.1.12-51", "DMPR-3.1.7.1.32-57")
def test_encryption_algorithms() -> None:
    names = [cipher.name.removeprefix("CALG_").replace("_", "") for cipher in EncryptionAlgorithm]
    assert names == ["RC2", "AES128", "AES192", "AES256", "RC4"]


@requirement("DMPR-3.1.1.12-59")
def test_sender_identifier_types() -> None:
    assert [kind.name for kind in SenderIdentifierType] == ["NONE", "SID", "QUEUE_MANAGER_IDENTIFIER"]
    assert [*SenderIdentifierType] == [0, 1, 2]


# -- invalid values and packets --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attributes", "path"),
    [
        ({"priority": 8}, "BaseHeader.Flags.PR"),
        ({"hop_count": 32}, "UserHeader.Flags.RC"),
        ({"transaction_identifier": OTHER, "transaction_number": 1 << 20}, "TransactionHeader.Flags.ID"),
        ({"sent_time": 1 << 32}, "UserHeader.SentTime"),
        ({"correlation_identifier": b"short"}, "MessagePropertiesHeader.CorrelationID"),
        ({"body": bytes(0x400000)}, "BaseHeader.PacketSize"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_does_not_fit_is_refused(attributes: Any, path: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        serialization.to_packet(message(**attributes))
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("packet", "path"),
    [
        (handmade.user_message(user_flags=handmade.MP | 0x40), "UserHeader.Flags.DM"),
        (security_packet(flags=3, security_id=SID), "SecurityHeader.Flags.ST"),
        (user_packet(destination=(7, direct_name("q"))), "UserHeader.DestinationQueue.DirectFormatName"),
        (handmade.user_message()[:-1], "MessagePropertiesHeader.ExtensionSize"),
        (base_header(16), "UserHeader.SourceQueueManager"),
    ],
    ids=lambda value: str(value)[-20:],
)
def test_what_can_not_be_is_malformed(packet: bytes, path: str) -> None:
    with pytest.raises(MalformedPacket) as caught:
        serialization.deserialize(packet)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("field", "lists"),
    [
        pytest.param(field, lists, marks=requirement(f"DMPR-3.1.7.1.31-{row}"), id=field)
        for row, field, lists in (
            ("35", "Destination", ([handmade.mqf_direct("q")], [], [])),
            ("36", "Administration", ([], [handmade.mqf_direct("q")], [])),
            ("37", "Response", ([], [], [handmade.mqf_direct("q")])),
        )
    ],
)
def test_a_malformed_name_is_located_in_its_list(
    field: str, lists: tuple[list[tuple[int, bytes]], ...]
) -> None:
    packet = handmade.user_message(multi_queue=handmade.multi_queue_format_header(*lists))
    with pytest.raises(MalformedPacket) as caught:
        serialization.deserialize(packet)
    assert caught.value.path.startswith(f"MultiQueueFormatHeader.{field}.")


def test_a_malformed_label_is_read_as_far_as_possible() -> None:
    lone_surrogate = b"a\0\x00\xd8\0\0"
    parsed = serialization.deserialize(
        properties_packet(label_length=3, extension=lone_surrogate, extension_size=0)
    )
    assert parsed.label == "a\ud800"
    assert serialization.to_packet(parsed.copy(packet=None)) == properties_packet(
        label_length=3, extension=lone_surrogate, extension_size=0
    )
    cut_by_null = b"a\0\0\0b\0\0\0"
    assert (
        serialization.deserialize(
            properties_packet(label_length=4, extension=cut_by_null, extension_size=0)
        ).label
        == "a"
    )


# -- packets in transit ----------------------------------------------------------------------------------

HEADER = (1, 2, 3, 4, 5, 64)
SESSION = handmade.session_header(
    ack=1, recoverable_ack=2, recoverable_flags=3, sent=4, recoverable_sent=5, window=64
)
ODD = handmade.user_message(
    user=handmade.user_header(flags=RECOVERABLE | 0xED000080),
    properties=handmade.properties_header(flags=0xF0, body=b"body", slack=b"slack", fill=b"\xcd"),
    transaction=handmade.transaction_header(flags=0xFF000000),
    reserved=0x5A,
    flags=0xFEC0,
)


def test_a_packet_is_sent_with_a_session_header() -> None:
    original = message(body=b"body")
    assert serialization.session_packet(original) == properties_packet(body=b"body")
    properties = handmade.properties_header(body=b"body")
    assert serialization.session_packet(original, HEADER) == handmade.user_message(
        properties=properties, session=SESSION
    )


def test_a_stored_packet_has_no_session_header() -> None:
    received = serialization.deserialize(handmade.user_message(session=SESSION))
    assert received.packet == handmade.user_message()
    assert serialization.deserialize(parse(handmade.user_message(session=SESSION))).packet == received.packet
    assert serialization.deserialize(handmade.user_message(), keep=False).packet is None


def test_a_forwarded_packet_is_as_it_came_but_for_its_hop_count() -> None:
    received = serialization.deserialize(ODD)
    assert serialization.to_packet(received) is ODD
    received.hop_count += 1
    expected = bytearray(ODD)
    expected[60] += 1  # the lowest byte of UserHeader.Flags
    assert serialization.to_packet(received) == expected
    assert serialization.packet_size(received) == len(ODD)
    received.hop_count = 32
    with pytest.raises(InvalidValue):
        serialization.to_packet(received)


def test_a_stored_packet_gets_its_numbers() -> None:
    user = handmade.user_header(destination=(7, direct_name("OS:a04bm02\\q")))
    header = handmade.transaction_header()
    received = serialization.deserialize(handmade.user_message(user=user, transaction=header, flags=0))
    received.identifier = ObjectId(CLIENT, 99)
    received.sent_time = 7
    received.transactional_message_sequence_identifier = TxSequenceId(5, 6)
    received.transaction_sequence_number, received.transaction_previous_sequence_number = 9, 8
    user = handmade.user_header(destination=(7, direct_name("OS:a04bm02\\q")), message_id=99, sent_time=7)
    header = handmade.transaction_header(ordinal=6, time_stamp=5, number=9, previous=8)
    assert serialization.to_packet(received) == handmade.user_message(user=user, transaction=header, flags=0)
    received.identifier = ObjectId(CLIENT, 1 << 32)
    with pytest.raises(InvalidValue):
        serialization.to_packet(received)


def test_a_copy_with_other_attributes_is_built_anew() -> None:
    received = serialization.deserialize(ODD)
    assert received.copy(arrival_time=5).packet is ODD
    assert received.copy(body=b"other").packet is None
    assert serialization.deserialize(serialization.to_packet(received.copy(body=b"other"))).body == b"other"


def test_own_messages_of_the_store_are_built_anew() -> None:
    stored = serialization.to_stored(message(body=b"body"))
    sent, received = serialization.from_stored(stored, CLIENT), serialization.from_stored(stored, SERVER)
    assert (sent.packet, received.packet) == (None, stored)
    same(sent, received)


@pytest.mark.parametrize("proved", [AuthenticationLevel.SIG20, AuthenticationLevel.NONE])
def test_what_was_verified_survives_in_the_store(proved: AuthenticationLevel) -> None:
    original = message(authentication_level=proved, signature_type=AuthenticationLevel.SIG20, signature=b"s")
    same(serialization.from_stored(serialization.to_stored(original), CLIENT), original)


def test_a_message_that_came_over_http_survives_in_the_store() -> None:
    original = message(
        body=b"body", soap_envelope="<e/>", soap_compound_message=b"POST body", soap_header="h", soap_body="b"
    )
    stored = parse(serialization.to_stored(original))
    compound = stored.CompoundMessageHeader
    assert stored.UserHeader.Flags.AH
    assert (compound.MsgBodySize, compound.MsgBodyOffset) == (4, 5)
    restored = serialization.from_stored(stored.to_bytes(), SERVER)
    same(restored, original)
    assert restored.packet is None  # these headers never go over the wire: MQMQ-2.2.19.2-39
    assert not parse(serialization.to_packet(restored)).UserHeader.Flags.AH


# -- order and final acknowledgements --------------------------------------------------------------------


def acknowledgement(message_class: int, body: bytes, delivery: DeliveryGuarantee) -> Message:
    return message(
        message_class=message_class,
        body=body,
        label="QM Ordering Ack",
        priority=0,
        delivery_guarantee=delivery,
        destination=PrivateName(NULL, 4),
    )


def test_an_order_acknowledgement_is_recognised() -> None:
    body = serialization.order_ack_body(SEQUENCE, 9, 8)
    assert body == handmade.order_ack_body(number=9, previous=8)
    packet = serialization.to_packet(acknowledgement(0xFF, body, DeliveryGuarantee.EXPRESS))
    assert packet == handmade.order_ack(handmade.order_ack_body(number=9, previous=8))
    record = parse(packet)
    assert record.schema.name == "OrderAck"
    assert record.OrderAckBody.TxSequenceNumber == 9
    same(serialization.deserialize(record), acknowledgement(0xFF, body, DeliveryGuarantee.EXPRESS))


@pytest.mark.parametrize("message_class", [0x4000, 0x8005, 0xC000])
def test_a_final_acknowledgement_is_recognised(message_class: int) -> None:
    body = serialization.final_ack_body(SEQUENCE, 9, 7, SERVER, 42)
    assert body == handmade.final_ack_body(number=9, previous=7, source=handmade.SERVER, message_id=42)
    packet = serialization.to_packet(acknowledgement(message_class, body, DeliveryGuarantee.RECOVERABLE))
    assert packet == handmade.final_ack(body, message_class=message_class)
    record = parse(packet)
    assert record.schema.name == "FinalAck"
    assert record.FinalAckBody.MessageID == 42


def test_numbers_that_are_too_large_for_a_body() -> None:
    with pytest.raises(InvalidValue):
        serialization.order_ack_body(SEQUENCE, 0, -1)
