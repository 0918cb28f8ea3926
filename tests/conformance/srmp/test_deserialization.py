"""From an envelope to a message: [MC-MQSRM] 3.1.5.1.1."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.constants import HashAlgorithm, MessageClass
from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.names import parse_format_name
from msmqwire.qm.model.enumerations import (
    INFINITE,
    AcknowledgementsRequested,
    AuthenticationLevel,
    DeliveryGuarantee,
)
from msmqwire.qm.model.message import NULL_GUID, ObjectId, TxSequenceId
from msmqwire.qm.protocols.srmp.deserializing import deserialize, stream_of
from msmqwire.qm.rules.serialization import from_stored, to_stored
from msmqwire.srmp.attributes import attribute
from msmqwire.srmp.identifiers import StreamIdentifier
from msmqwire.srmp.message import parse_message
from tests.support.paths import VECTORS
from tests.support.srmp.srmp_envelopes import GUID, SIGNATURE
from tests.support.srmp.srmp_mapping import (
    ARRIVAL,
    DAY,
    SENT,
    commitment_request,
    delivery_request,
    message,
    msmq,
    path,
    properties,
    request,
    services,
    stream,
    via,
)

OTHER = UUID("dc1cd9a6-8130-4504-88d2-851707fe4632")
A = AcknowledgementsRequested


def example(name: str) -> bytes:
    return (VECTORS / "srmp" / name).read_bytes()


# -- the message as it was received -----------------------------------------------------------------------


@pytest.mark.requirement(
    "SRMP-3.1.5.1.1-01",
    "SRMP-3.1.5.1.1-02",
    "SRMP-3.1.5.1.1-03",
    "SRMP-3.1.5.1.1-04",
    "SRMP-3.1.5.1.1-05",
    "DMPR-3.1.1.12-75",
)
@pytest.mark.parametrize("name", ["4.1.http", "4.2.http", "4.3-1.http", "4.4-1.http", "4.5.http"])
def test_soap_attributes(name: str) -> None:
    data = example(name)
    received = parse_message(data)
    first, second = deserialize(received, ARRIVAL), deserialize(received, ARRIVAL)
    assert first is not second
    assert first.soap_compound_message == data
    assert received.envelope_bytes is not None
    assert first.soap_envelope == received.envelope_bytes.decode()
    assert first.soap_header.startswith("<se:Header>")
    assert first.soap_header.endswith("</se:Header>")
    assert first.soap_header in first.soap_envelope
    assert first.soap_body == "<se:Body></se:Body>"


@pytest.mark.requirement("SRMP-3.1.5.1.1-06")
def test_arrival_time() -> None:
    assert message().arrival_time == ARRIVAL


@pytest.mark.requirement("SRMP-3.1.5.1.1-07")
def test_payloads() -> None:
    received = parse_message(example("4.5.http"))
    assert received.body
    assert deserialize(received, ARRIVAL).body == received.body
    assert (message().body, message().extension) == (b"", b"")


def test_a_response_carries_no_message() -> None:
    with pytest.raises(InvalidValue):
        deserialize(parse_message(example("4.3-2.http")), ARRIVAL)


# -- path -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("SRMP-3.1.5.1.1-08", "SRMP-3.1.5.1.1-09", "SRMP-2.2.4.1-03")
@pytest.mark.parametrize(
    ("action", "label"),
    [
        ("MSMQ:mqsender label", "mqsender label"),
        ("MSMQ: MSMQ:x ", " MSMQ:x "),
        ("MSMQ:", ""),
        ("", ""),
        ("Generic label", ""),
        ("msmq:x", ""),
        ("MSMQ:" + "x" * 250, "x" * 249),
        ("MSMQ:" + "x" * 248 + "\U0001f600", "x" * 248),
    ],
)
def test_label(action: str, label: str) -> None:
    assert message(path(action)).label == label


@pytest.mark.requirement("SRMP-3.1.5.1.1-10", "SRMP-3.1.5.1.1-11")
@pytest.mark.parametrize(
    ("to", "name"),
    [
        ("http://machine2/msmq/private$/simpleq", "DIRECT=http://machine2/msmq/private$/simpleq"),
        ("https://h:8443/msmq/q", "DIRECT=https://h:8443/msmq/q"),
        ("MSMQ:MULTICAST=234.1.1.1:8001", "MULTICAST=234.1.1.1:8001"),
    ],
)
def test_destination(to: str, name: str) -> None:
    destination = message(path(to=to)).destination
    assert destination is not None
    assert destination.text == name


@pytest.mark.parametrize(
    "to",
    [
        "http://h/elsewhere/q",
        "http://",
        "http://h/msmq/q,DIRECT=OS:other\\q",
        "MSMQ:MULTICAST=234.1.1.1:8001,DIRECT=OS:h\\q",
        "MSMQ:MULTICAST=10.0.0.1",
    ],
)
def test_destinations_that_are_no_name(to: str) -> None:
    with pytest.raises(MalformedPacket) as caught:
        message(path(to=to))
    assert caught.value.path == "Envelope.Header.path.to"


@pytest.mark.requirement("SRMP-3.1.5.1.1-12", "SRMP-2.2.4.3-05", "SRMP-2.2.4.3-06")
def test_identifier() -> None:
    assert message(path(identifier=f"uuid:20503@{GUID}"), msmq()).identifier == ObjectId(GUID, 20503)
    assert message(path(identifier=f"uuid:1@{GUID}"), msmq(source=OTHER)).identifier == ObjectId(OTHER, 1)


@pytest.mark.requirement("SRMP-3.1.5.1.1-13", "SRMP-2.2.4.3-03", "SRMP-2.2.6-03")
@pytest.mark.parametrize("identifier", [f"uuid:7@{GUID}", "anything"])
def test_defaults_without_msmq(identifier: str) -> None:
    read = message(path(identifier=identifier))
    assert read.identifier == ObjectId(NULL_GUID, 1)
    assert read.source_machine_identifier == NULL_GUID
    assert (read.message_class, read.priority) == (MessageClass.MQMSG_CLASS_NORMAL, 3)
    assert (read.body_type, read.application_tag) == (0, 0)
    assert not read.positive_journaling_requested
    assert not read.negative_journaling_requested


@pytest.mark.requirement("SRMP-3.1.5.1.1-14", "SRMP-3.1.5.1.1-15", "SRMP-2.2.4.4-06")
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("http://machine1/MSMQ/private$/Q1", "DIRECT=http://machine1/MSMQ/private$/Q1"),
        ("https://h/msmq/q", "DIRECT=https://h/msmq/q"),
        (f"MSMQ:PUBLIC={GUID}", f"PUBLIC={GUID}"),
        ("MSMQ:DIRECT=OS:h\\private$\\q", "DIRECT=OS:h\\private$\\q"),
    ],
)
@pytest.mark.requirement("SRMP-2.2.4.4-03")
def test_response_queue(text: str, name: str) -> None:
    response = message(via(text)).response
    assert response is not None
    assert response == parse_format_name(name)


@pytest.mark.requirement("SRMP-2.2.4.4-04")
def test_no_response_queue() -> None:
    assert message(path(rev="<rev><via/></rev>")).response is None
    assert message(via("h\\q")).response is None


@pytest.mark.parametrize("text", ["http://h/q", "MSMQ:q", "MSMQ:DIRECT=OS:a\\q,DIRECT=OS:b\\q"])
def test_malformed_response_queue(text: str) -> None:
    with pytest.raises(MalformedPacket) as caught:
        message(via(text))
    assert caught.value.path == "Envelope.Header.path.rev.via"


# -- times ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("SRMP-3.1.5.1.1-16", "SRMP-3.1.5.1.1-17", "SRMP-2.2.5.1.1-03", "SRMP-2.2.5.1.2-03")
def test_times_without_msmq() -> None:
    read = message()
    assert (read.sent_time, read.time_to_reach_queue) == (SENT, DAY)
    assert read.time_to_be_received == INFINITE


@pytest.mark.requirement(
    "SRMP-3.1.5.1.1-46", "SRMP-3.1.5.1.1-48", "SRMP-3.1.5.1.4-01", "SRMP-2.2.6.17-03", "SRMP-2.2.5.1.1-04"
)
@pytest.mark.parametrize(
    ("expires", "limit", "to_be_received", "to_reach_queue"),
    [
        ("20380119T031407", "20070622T210654", INFINITE, 4 * DAY),
        ("20070619T210654", "20070622T210654", DAY, 4 * DAY),
        ("20380119T031406", "20380119T031407", 0x7FFFFFFE - SENT, INFINITE),
        ("20070618T210653", "20070617T210654", 0, 0),
        ("99991231T235959", "00010101T000000", INFINITE, 0),
    ],
)
@pytest.mark.requirement("SRMP-2.2.5.1.1-03", "SRMP-2.2.6.17-01")
def test_times_with_msmq(expires: str, limit: str, to_be_received: int, to_reach_queue: int) -> None:
    read = message(properties(expires), msmq(limit=limit))
    assert read.sent_time == SENT
    assert read.time_to_be_received == to_be_received
    assert read.time_to_reach_queue == to_reach_queue


@pytest.mark.requirement("SRMP-2.2.5.1.2-04")
def test_without_sent_at_the_limit_counts_from_arrival() -> None:
    read = message(properties("20070621T004000", sent=None))
    assert (read.sent_time, read.time_to_reach_queue) == (ARRIVAL, DAY)
    over = message(properties("20070620T003959", sent=None))
    assert ARRIVAL - over.sent_time > over.time_to_reach_queue
    assert message(properties("00010101T000000", sent=None)).sent_time == 0


@pytest.mark.parametrize("sent", ["19691231T235959", "21060207T062816"])
def test_sent_at_beyond_32_bits(sent: str) -> None:
    with pytest.raises(MalformedPacket) as caught:
        message(properties(sent=sent))
    assert caught.value.path == "Envelope.Header.properties.sentAt"


# -- services ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("SRMP-3.1.5.1.1-18")
def test_delivery_guarantee() -> None:
    assert message(services("<durable/>")).delivery_guarantee is DeliveryGuarantee.RECOVERABLE
    assert message(services(delivery_request())).delivery_guarantee is DeliveryGuarantee.EXPRESS
    assert message().delivery_guarantee is DeliveryGuarantee.EXPRESS


@pytest.mark.requirement("SRMP-3.1.5.1.1-19", "SRMP-3.1.5.1.1-21", "SRMP-3.1.5.1.1-23", "SRMP-3.1.5.1.1-24")
@pytest.mark.parametrize(
    ("inner", "requested", "final"),
    [
        ("", A.NONE, False),
        (delivery_request(), A.ACK_POS_ARRIVAL, False),
        (commitment_request(), A.NONE, True),
        (commitment_request("<positiveOnly/>"), A.ACK_POS_RECEIVE, True),
        (commitment_request("<negativeOnly/>"), A.ACK_NEG_RECEIVE, True),
        (
            commitment_request("<negativeOnly/><positiveOnly/>") + delivery_request(),
            A.ACK_POS_ARRIVAL | A.ACK_POS_RECEIVE | A.ACK_NEG_RECEIVE,
            True,
        ),
    ],
)
def test_requested_receipts(inner: str, requested: AcknowledgementsRequested, final: bool) -> None:
    read = message(services(inner))
    assert read.acknowledgements_requested == requested
    assert read.final_ack_required is final


@pytest.mark.requirement("SRMP-3.1.5.1.1-20", "SRMP-3.1.5.1.1-22")
@pytest.mark.parametrize(
    ("inner", "queue"),
    [
        ("", None),
        (delivery_request(), "DIRECT=http://a/msmq/arrived"),
        (commitment_request(), "DIRECT=http://a/msmq/decided"),
        (delivery_request() + commitment_request(), "DIRECT=http://a/msmq/decided"),
        (commitment_request() + delivery_request(), "DIRECT=http://a/msmq/arrived"),
        (delivery_request("https://a/msmq/q"), "DIRECT=https://a/msmq/q"),
        (commitment_request(uri="https://a/msmq/q"), "DIRECT=https://a/msmq/q"),
    ],
)
def test_administration_queue(inner: str, queue: str | None) -> None:
    administration = message(services(inner)).administration
    assert (administration and administration.text) == queue


@pytest.mark.parametrize(
    "inner", [delivery_request("http://h/q"), commitment_request("", "http://h/msmq/q,DIRECT=OS:o\\q")]
)
def test_malformed_administration_queue(inner: str) -> None:
    with pytest.raises(MalformedPacket) as caught:
        message(services(inner))
    assert caught.value.path.endswith("Request.sendTo")


# -- stream -----------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "SRMP-3.1.5.1.1-25", "SRMP-3.1.5.1.1-26", "SRMP-3.1.5.1.1-27", "SRMP-2.2.5.3.1-03", "SRMP-2.2.5.3.2-03"
)
@pytest.mark.requirement("SRMP-2.2.5.3.3-03")
def test_stream() -> None:
    read = message(services("<durable/>"), stream(42, "<previous>40</previous>"), msmq())
    assert read.transactional_message_sequence_identifier == TxSequenceId(0x432B1643, 6)
    assert (read.transaction_sequence_number, read.transaction_previous_sequence_number) == (42, 40)
    without = message(services("<durable/>"), stream(42), msmq())
    assert without.transaction_previous_sequence_number == 0
    assert not message(msmq()).transactional


@pytest.mark.requirement("SRMP-3.1.5.1.1-28", "SRMP-2.2.5.3.4-04")
@pytest.mark.parametrize("inner", ["", delivery_request()], ids=["alone", "with sendTo"])
def test_receipts_of_a_first_message_go_to_the_start_queue(inner: str) -> None:
    start = "<start><sendReceiptsTo>\n https://a/msmq/order </sendReceiptsTo></start>"
    read = message(services(f"<durable/>{inner}"), stream(1, start), msmq())
    assert read.administration is not None
    assert read.administration.text == "DIRECT=https://a/msmq/order"
    received = request(path(), properties(), services(f"<durable/>{inner}"), stream(1, start), msmq())
    assert attribute("admin_queue", received) == read.administration.text  # the column


def test_receipts_of_a_later_message_go_where_it_says() -> None:
    read = message(services(f"<durable/>{delivery_request()}"), stream(2), msmq())
    assert read.administration is not None
    assert read.administration.text == "DIRECT=http://a/msmq/arrived"


def test_messages_of_streams_are_stored() -> None:
    read = deserialize(parse_message(example("4.4-1.http")), ARRIVAL)  # it has no durable
    assert read.recoverable


def test_the_stream_identifier_is_that_of_the_envelope() -> None:
    """That of 4.4 has another GUID than SourceQmGuid."""
    read = deserialize(parse_message(example("4.4-1.http")), ARRIVAL)
    queue_manager = UUID("2744e4e1-2b48-43e8-b441-42745f280d53")
    assert stream_of(read) == StreamIdentifier(queue_manager, 4839986701558349830)
    assert stream_of(from_stored(to_stored(read), GUID)) == stream_of(read)
    read.soap_envelope = ""
    assert stream_of(read) == StreamIdentifier(read.source_machine_identifier, 4839986701558349830)
    assert stream_of(message(msmq())) is None


# -- Msmq -------------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "SRMP-3.1.5.1.1-29", "SRMP-3.1.5.1.1-30", "SRMP-3.1.5.1.1-31", "SRMP-3.1.5.1.1-42", "SRMP-2.2.6.1-01"
)
@pytest.mark.requirement("SRMP-2.2.6.2-01", "SRMP-2.2.6.9-01", "SRMP-2.2.6.13-01")
def test_required_children() -> None:
    read = message(msmq("", 0xC002, 7, 8, OTHER))
    assert read.message_class is MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT
    assert (read.priority, read.body_type, read.source_machine_identifier) == (7, 8, OTHER)
    assert message(msmq("", 3)).message_class == 3, "one of an application"


@pytest.mark.requirement("SRMP-3.1.5.1.1-32", "SRMP-3.1.5.1.1-33", "SRMP-3.1.5.1.1-34")
@pytest.mark.parametrize(
    ("element", "attribute"),
    [
        ("Journal", "positive_journaling_requested"),
        ("DeadLetter", "negative_journaling_requested"),
        ("Trace", "tracing_requested"),
    ],
)
def test_flags(element: str, attribute: str) -> None:
    names = ("positive_journaling_requested", "negative_journaling_requested", "tracing_requested")
    read = message(msmq(f"<{element}/>"))
    assert {name: getattr(read, name) for name in names} == {name: name == attribute for name in names}


@pytest.mark.requirement(
    "SRMP-3.1.5.1.1-35",
    "SRMP-3.1.5.1.1-36",
    "SRMP-3.1.5.1.1-37",
    "SRMP-3.1.5.1.1-38",
    "SRMP-3.1.5.1.1-40",
    "SRMP-3.1.5.1.1-41",
)
@pytest.mark.parametrize(
    ("inner", "attribute", "value", "default"),
    [
        pytest.param(
            "<Correlation>AAAAAAAAAAAAAAAAAAAAAAEAAAA=</Correlation>",
            "correlation_identifier",
            bytes(ObjectId(NULL_GUID, 1)),
            bytes(20),
            id="Correlation",
        ),
        (f"<ConnectorType>{OTHER}</ConnectorType>", "connector_type_identifier", OTHER, NULL_GUID),
        ("<App>36</App>", "application_tag", 36, 0),
        (
            "<HashAlgorithm>32771</HashAlgorithm>",
            "hash_algorithm",
            HashAlgorithm.CALG_MD5,
            HashAlgorithm.CALG_SHA1,
        ),
        ("<HashAlgorithm>0</HashAlgorithm>", "hash_algorithm", 0, HashAlgorithm.CALG_SHA1),
        (
            f"<Eod><ConnectorId>{OTHER}</ConnectorId></Eod>",
            "connector_queue_manager_identifier",
            OTHER,
            NULL_GUID,
        ),
        (
            "<Provider><Type>1234</Type><Name>P</Name></Provider>",
            "authentication_provider_type",
            1234,
            0,
        ),
        (
            "<Provider><Type>1234</Type><Name>P</Name></Provider>",
            "authentication_provider_name",
            "P",
            "",
        ),
    ],
)
def test_optional_children(inner: str, attribute: str, value: object, default: object) -> None:
    assert getattr(message(msmq(inner)), attribute) == value
    assert getattr(message(msmq()), attribute) == default


@pytest.mark.requirement("SRMP-3.1.5.1.1-39")
@pytest.mark.parametrize(
    ("inner", "first", "last"),
    [
        ("", False, False),
        ("<Eod></Eod>", False, False),
        ("<Eod><First/></Eod>", True, False),
        ("<Eod><Last/></Eod>", False, True),
        ("<Eod><First/><Last/></Eod>", True, True),
    ],
)
def test_end_of_transaction(inner: str, first: bool, last: bool) -> None:
    read = message(msmq(inner))
    assert (read.first_in_transaction, read.last_in_transaction) == (first, last)


@pytest.mark.requirement("SRMP-3.1.5.1.1-43", "SRMP-3.1.5.1.1-44", "SRMP-3.1.5.1.1-45")
@pytest.mark.parametrize(
    ("element", "attribute"),
    [("DestinationMqf", "destinations"), ("AdminMqf", "administrations"), ("ResponseMqf", "responses")],
)
def test_lists_of_queues(element: str, attribute: str) -> None:
    names = "\nhttp://b/msmq/q https://a/msmq/private$/q\r\n\tMSMQ:MULTICAST=234.1.1.1:8001\thttp://b/msmq/q "
    read = message(msmq(f"<{element}>{names}</{element}>"))
    lists = {
        name: [queue.text for queue in getattr(read, name)]
        for name in ("destinations", "administrations", "responses")
    }
    wanted = ["http://b/msmq/q", "https://a/msmq/private$/q", "http://b/msmq/q"]
    assert lists.pop(attribute) == [f"DIRECT={uri}" for uri in wanted]
    assert not any(lists.values())


def test_malformed_list_of_queues() -> None:
    with pytest.raises(MalformedPacket) as caught:
        message(msmq("<AdminMqf>http://h/q</AdminMqf>"))
    assert caught.value.path == "Envelope.Header.Msmq.AdminMqf"


def test_a_signature_authenticates_nobody_before_it_is_verified() -> None:
    received = request(path(), properties(), msmq(), SIGNATURE)
    assert received.envelope is not None
    assert received.envelope.Signature is not None
    assert deserialize(received, ARRIVAL).authentication_level is AuthenticationLevel.NONE
