"""From a message to an envelope: [MC-MQSRM] 3.1.7.2.4."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

import pytest

from msmqwire.constants import MessageClass
from msmqwire.errors import InvalidValue
from msmqwire.names import DirectName, FormatName, MulticastName, parse_format_name
from msmqwire.qm.model.enumerations import INFINITE, AcknowledgementsRequested, DeliveryGuarantee
from msmqwire.qm.model.message import NO_SEQUENCE, NULL_GUID, Message, ObjectId, TxSequenceId
from msmqwire.qm.protocols.srmp.deserializing import deserialize
from msmqwire.qm.protocols.srmp.serializing import serialize
from msmqwire.srmp.envelope import build_envelope, parse_envelope
from msmqwire.srmp.message import SrmpMessage, parse_message
from msmqwire.srmp.request import make_request, request_address
from tests.support.codec_checks import proving
from tests.support.paths import VECTORS
from tests.support.srmp.srmp_envelopes import GUID, PUBLISHED
from tests.support.srmp.srmp_mapping import DAY, SENT

A = AcknowledgementsRequested
OTHER = UUID("dc1cd9a6-8130-4504-88d2-851707fe4632")
RECEIPTS = "http://own/MSMQ/PRIVATE$/order_queue$"
START = '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" xmlns="http://schemas.xmlsoap.org/srmp/">'
PATH = '<se:Header><path xmlns="http://schemas.xmlsoap.org/rp/" se:mustUnderstand="1">'
END = "</se:Header><se:Body></se:Body></se:Envelope>"
SEQUENCE = TxSequenceId(0x432B1643, 6)


def a_message(**changes: object) -> Message:
    return Message(
        label="mqsender label",
        identifier=ObjectId(GUID, 26626),
        source_machine_identifier=GUID,
        destination=parse_format_name("DIRECT=http://h/msmq/q"),
        sent_time=SENT,
    ).copy(**changes)


def text(receipts_url: str = RECEIPTS, **changes: object) -> str:
    """The envelope of such a message."""
    serialized = serialize(a_message(**changes), queue_manager=OTHER, receipts_url=receipts_url)
    return build_envelope(serialized.envelope).decode()


def inside(envelope: str, element: str) -> str | None:
    """What an element holds, as it is written; None if it is not there."""
    found = re.search(f"<{element}(?: [^>]*)?>(.*)</{element}>", envelope, re.DOTALL)
    return found and found[1]


def refused(path: str, **changes: object) -> None:
    with pytest.raises(InvalidValue) as caught:
        text(**changes)
    assert caught.value.path == path


def queue(name: str) -> FormatName:
    return parse_format_name(name)


# -- whole envelopes --------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "SRMP-3.1.7.2.4-01",
    "SRMP-3.1.7.2.4-02",
    "SRMP-3.1.7.2.4-03",
    "SRMP-3.1.7.2.4-06",
    "SRMP-3.1.7.2.4-09",
    "SRMP-3.1.7.2.4-23",
    "SRMP-3.1.7.2.4-24",
    "SRMP-3.1.7.2.4-32",
    "SRMP-3.1.7.2.4-34",
    "SRMP-3.1.7.2.4-45",
    "SRMP-2.2.4.3-04",
    "SRMP-2.2.4.3-06",
    "SRMP-2.2.5.1.2-03",
)
@pytest.mark.requirement("SRMP-2.2.6-01", "SRMP-2.2.6.8-01")
def test_the_least() -> None:
    assert text() == (
        f"{START}{PATH}<action>MSMQ:mqsender label</action><to>http://h/msmq/q</to>"
        f"<id>uuid:26626@{GUID}</id></path>"
        '<properties se:mustUnderstand="1"><expiresAt>20380119T031407</expiresAt>'
        "<sentAt>20070618T210654</sentAt></properties>"
        '<Msmq xmlns="msmq.namespace.xml"><Class>0</Class><Priority>3</Priority>'
        "<Correlation>AAAAAAAAAAAAAAAAAAAAAAAAAAA=</Correlation><App>0</App><BodyType>0</BodyType>"
        f"<HashAlgorithm>32772</HashAlgorithm><SourceQmGuid>{GUID}</SourceQmGuid>"
        f"<TTrq>20070622T210654</TTrq></Msmq>{END}"
    )


@pytest.mark.parametrize("name", ["4.2-MsmqElement", "4.5-Multicast"])
def test_examples_of_windows(name: str) -> None:
    message = deserialize(SrmpMessage(None, (), PUBLISHED[name]), 0)
    envelope = serialize(message, queue_manager=message.source_machine_identifier).envelope
    assert build_envelope(envelope) == PUBLISHED[name]


def test_the_request_of_4_5() -> None:
    """Its 779 bytes of envelope, and the request that carries it, through a message."""
    data = (VECTORS / "srmp" / "4.5.http").read_bytes()
    received = parse_message(data)
    message = deserialize(received, 0)
    envelope, body, extension = serialize(message, queue_manager=message.source_machine_identifier)
    assert len(build_envelope(envelope)) == 779
    target, host = request_address(envelope.path.to)
    request = make_request(
        envelope, target, host, boundary=18467, queue_manager=GUID, body=body, extension=extension
    )
    again = deserialize(parse_message(request.to_bytes()), 0)
    assert (again.body, again.soap_envelope) == (message.body, message.soap_envelope)


# -- path -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("SRMP-2.2.4.1-07", "SRMP-3.1.7.2.4-04")
def test_label() -> None:
    longest = "x" * 247 + "\U0001f600"
    for label in ("", " a  label ", "MSMQ:x", longest):
        data = text(label=label).encode()
        assert inside(data.decode(), "action") == f"MSMQ:{label}"
        assert deserialize(SrmpMessage(None, (), data), 0).label == label
    refused("label", label=f"x{longest}")
    refused("Envelope.Header.path.action", label="\0")
    refused("Envelope.Header.path.action", label="\ud800")


@pytest.mark.requirement("SRMP-3.1.7.2.4-36")
def test_markup_in_texts() -> None:
    assert inside(text(label="a <&> b"), "action") == "MSMQ:a &lt;&amp;&gt; b"
    data = text(label="a <&> b", destination=queue("DIRECT=http://h/msmq/q?a=1&b")).encode()
    assert parse_envelope(data).path.to == "http://h/msmq/q?a=1&b"


@pytest.mark.requirement("SRMP-3.1.7.2.4-05", "SRMP-2.2.4.2-05")
@pytest.mark.parametrize(
    ("name", "to"),
    [
        (queue("DIRECT=http://h/msmq/private$/q"), "http://h/msmq/private$/q"),
        (queue("direct=HTTPS://h:8443/msmq/private$\\q"), "https://h:8443/msmq/private$/q"),
        (DirectName("HTTP", "h", "q", private=True), "http://h/MSMQ/PRIVATE$/q"),
        (queue("MULTICAST=234.1.1.1:8001"), "MSMQ:MULTICAST=234.1.1.1:8001"),
        (MulticastName("234.1.1.1", 8001), "MSMQ:MULTICAST=234.1.1.1:8001"),
    ],
)
def test_destination(name: FormatName, to: str) -> None:
    data = text(destination=name)
    assert inside(data, "to") == to
    assert deserialize(SrmpMessage(None, (), data.encode()), 0).destination == name


@pytest.mark.requirement("SRMP-3.1.7.2.4-05")
@pytest.mark.parametrize(
    "name",
    [None, queue("DIRECT=OS:h\\q"), queue(f"PUBLIC={GUID}"), queue("DIRECT=http://h/msmq/q,DIRECT=OS:h\\q")],
)
def test_destinations_beyond_srmp(name: FormatName | None) -> None:
    refused("destination", destination=name)


@pytest.mark.requirement("SRMP-3.1.7.2.4-07")
@pytest.mark.parametrize(
    ("name", "via"),
    [
        (None, None),
        (queue("DIRECT=http://h/msmq/private$/q"), "http://h/msmq/private$/q"),
        (queue("DIRECT=OS:h\\private$\\q"), "MSMQ:DIRECT=OS:h\\private$\\q"),
        (queue(f"PUBLIC={GUID}"), f"MSMQ:PUBLIC={GUID}"),
    ],
)
@pytest.mark.requirement("SRMP-2.2.4.4-03", "SRMP-2.2.4.4-06")
def test_response_queue(name: FormatName | None, via: str | None) -> None:
    data = text(response=name)
    assert inside(data, "rev") == (via and f"<via>{via}</via>")
    assert deserialize(SrmpMessage(None, (), data.encode()), 0).response == name


@pytest.mark.requirement("SRMP-3.1.7.2.4-07")
def test_several_response_queues_in_one_name() -> None:
    refused("response", response=queue("DIRECT=OS:a\\q,DIRECT=OS:b\\q"))


# -- times ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("to_be_received", "to_reach_queue", "expires", "limit"),
    [
        (INFINITE, 4 * DAY, "20380119T031407", "20070622T210654"),
        (DAY, 2 * DAY, "20070619T210654", "20070620T210654"),
        (0, INFINITE, "20070618T210654", "20380119T031407"),
        (INFINITE - 1, 0x7FFFFFFF - SENT, "20380119T031407", "20380119T031407"),
    ],
)
@pytest.mark.requirement("SRMP-2.2.5.1.1-04", "SRMP-3.1.7.2.4-08", "SRMP-3.1.7.2.4-34", "SRMP-2.2.6.17-01")
def test_limits(to_be_received: int, to_reach_queue: int, expires: str, limit: str) -> None:
    data = text(time_to_be_received=to_be_received, time_to_reach_queue=to_reach_queue)
    assert inside(data, "expiresAt") == expires
    assert inside(data, "TTrq") == limit


@pytest.mark.parametrize(
    "attribute",
    [
        proving("sent_time", ids="SRMP-3.1.7.2.4-09"),
        proving("time_to_be_received", ids="SRMP-3.1.7.2.4-08"),
        proving("time_to_reach_queue", ids="SRMP-3.1.7.2.4-34"),
    ],
)
@pytest.mark.parametrize("value", [-1, 1 << 32, 1 << 99])
def test_times_beyond_32_bits(attribute: str, value: int) -> None:
    refused(attribute, **{attribute: value})


# -- services ---------------------------------------------------------------------------------------------

ADMIN = "<sendTo>http://a/msmq/admin</sendTo>"
DELIVERY = f"<deliveryReceiptRequest>{ADMIN}</deliveryReceiptRequest>"


def commitment(inner: str) -> str:
    return f"<commitmentReceiptRequest>{ADMIN}{inner}</commitmentReceiptRequest>"


@pytest.mark.requirement(
    "SRMP-3.1.7.2.4-10",
    "SRMP-3.1.7.2.4-11",
    "SRMP-3.1.7.2.4-12",
    "SRMP-3.1.7.2.4-13",
    "SRMP-3.1.7.2.4-14",
)
@pytest.mark.parametrize(
    ("recoverable", "requested", "final", "services"),
    [
        proving(False, A.NONE, False, None, ids=("SRMP-2.2.5.2-01", "SRMP-2.2.5.2.1-06"), name="none"),
        proving(True, A.NONE, False, "<durable/>", ids="SRMP-2.2.5.2.1-06", name="durable"),
        proving(False, A.ACK_NEG_ARRIVAL, False, None, ids="SRMP-2.2.5.2.2-04", name="negative arrival"),
        proving(
            True,
            A.ACK_FULL_REACH_QUEUE,
            False,
            f"<durable/>{DELIVERY}",
            ids=("SRMP-2.2.5.2.1-06", "SRMP-2.2.5.2.2-04"),
            name="arrival",
        ),
        proving(False, A.NONE, True, commitment(""), ids="SRMP-2.2.5.2.3-03", name="final"),
        proving(
            False,
            A.ACK_POS_RECEIVE,
            True,
            commitment("<positiveOnly/>"),
            ids=("SRMP-2.2.5.2.3-03", "SRMP-2.2.5.2.3-05", "SRMP-2.2.5.2.3-06"),
            name="final, positive",
        ),
        proving(
            False,
            A.ACK_POS_RECEIVE,
            False,
            commitment("<positiveOnly/>"),
            ids=("SRMP-2.2.5.2.3-03", "SRMP-2.2.5.2.3-05", "SRMP-2.2.5.2.3-06"),
            name="positive",
        ),
        proving(
            False,
            A.ACK_NEG_RECEIVE,
            False,
            commitment("<negativeOnly/>"),
            ids=("SRMP-2.2.5.2.3-03", "SRMP-2.2.5.2.3-05", "SRMP-2.2.5.2.3-06"),
            name="negative",
        ),
        proving(
            False,
            A.ACK_FULL_RECEIVE | A.ACK_POS_ARRIVAL,
            True,
            f"{DELIVERY}{commitment('<positiveOnly/><negativeOnly/>')}",
            ids=("SRMP-2.2.5.2.2-04", "SRMP-2.2.5.2.3-03", "SRMP-2.2.5.2.3-05", "SRMP-2.2.5.2.3-06"),
            name="all",
        ),
    ],
)
def test_services(
    recoverable: bool, requested: AcknowledgementsRequested, final: bool, services: str | None
) -> None:
    data = text(
        delivery_guarantee=DeliveryGuarantee.RECOVERABLE if recoverable else DeliveryGuarantee.EXPRESS,
        acknowledgements_requested=requested,
        final_ack_required=final,
        administration=queue("DIRECT=http://a/msmq/admin"),
    )
    assert inside(data, "services") == services


def test_receipts_that_nobody_could_get() -> None:
    requested = A.ACK_POS_ARRIVAL | A.ACK_POS_RECEIVE
    assert inside(text(acknowledgements_requested=requested, final_ack_required=True), "services") is None
    elsewhere = queue("DIRECT=OS:h\\q")
    refused("administration", administration=elsewhere, acknowledgements_requested=A.ACK_POS_ARRIVAL)
    refused("administration", administration=elsewhere, acknowledgements_requested=A.ACK_NEG_RECEIVE)


# -- stream -----------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "SRMP-3.1.7.2.4-15",
    "SRMP-3.1.7.2.4-16",
    "SRMP-3.1.7.2.4-17",
    "SRMP-3.1.7.2.4-18",
    "SRMP-3.1.7.2.4-19",
    "SRMP-2.2.5.3.1-03",
    "SRMP-2.2.5.3.2-03",
    "SRMP-2.2.5.3.3-03",
    "SRMP-2.2.5.3.4-05",
)
@pytest.mark.parametrize(
    ("current", "previous", "rest"),
    [
        (1, 0, f"<start><sendReceiptsTo>{RECEIPTS}</sendReceiptsTo></start>"),
        (42, 40, "<previous>40</previous>"),
        (2, 0, ""),
    ],
)
def test_stream(current: int, previous: int, rest: str) -> None:
    data = text(
        transactional_message_sequence_identifier=SEQUENCE,
        transaction_sequence_number=current,
        transaction_previous_sequence_number=previous,
    )
    identifier = rf"<streamId>uid:{OTHER}\4839986701558349830</streamId>"
    assert inside(data, "stream") == f"{identifier}<current>{current}</current>{rest}"
    assert '<stream se:mustUnderstand="1">' in data
    assert inside(data, "services") == "<durable/>"  # SRMP-2.2.5.2.1-02


@pytest.mark.parametrize("sequence", [None, NO_SEQUENCE])
@pytest.mark.requirement("SRMP-3.1.7.2.4-15")
def test_messages_outside_streams(sequence: TxSequenceId | None) -> None:
    data = text(transactional_message_sequence_identifier=sequence, transaction_sequence_number=1)
    assert inside(data, "stream") is None


@pytest.mark.parametrize(
    ("url", "path"),
    [("", "receipts_url"), ("DIRECT=http://h/msmq/q", "Envelope.Header.stream.start.sendReceiptsTo")],
)
@pytest.mark.requirement("SRMP-3.1.7.2.4-19")
def test_a_stream_starts_with_the_address_of_its_receipts(url: str, path: str) -> None:
    changes = {"transactional_message_sequence_identifier": SEQUENCE, "transaction_sequence_number": 1}
    refused(path, receipts_url=url, **changes)


# -- Msmq -------------------------------------------------------------------------------------------------

CORRELATION = "<Correlation>AAAAAAAAAAAAAAAAAAAAAAAAAAA=</Correlation>"


def written(changes: dict[str, object], text: str, *rows: str) -> Any:
    """A case of the children of Msmq, with their rows."""
    return proving(changes, text, ids=tuple(f"SRMP-2.2.6.{row}" for row in rows), name=" ".join(rows))


@pytest.mark.requirement(
    "SRMP-3.1.7.2.4-24",
    "SRMP-3.1.7.2.4-25",
    "SRMP-3.1.7.2.4-26",
    "SRMP-3.1.7.2.4-27",
    "SRMP-3.1.7.2.4-28",
    "SRMP-3.1.7.2.4-29",
    "SRMP-3.1.7.2.4-30",
    "SRMP-3.1.7.2.4-31",
    "SRMP-3.1.7.2.4-33",
)
@pytest.mark.parametrize(
    ("changes", "written"),
    [
        written({"message_class": MessageClass.MQMSG_CLASS_ORDER_ACK}, "<Class>255</Class>", "1-01"),
        written({"priority": 7}, "<Priority>7</Priority>", "2-01"),
        written(
            {"positive_journaling_requested": True, "negative_journaling_requested": True},
            f"<Journal/><DeadLetter/>{CORRELATION}",
            "3-01",
            "4-01",
        ),
        written(
            {"positive_journaling_requested": True},
            f"</Priority><Journal/>{CORRELATION}",
            "3-01",
            "4-01",
        ),
        written(
            {"negative_journaling_requested": True},
            f"</Priority><DeadLetter/>{CORRELATION}",
            "3-01",
            "4-01",
        ),
        written(
            {"correlation_identifier": bytes(ObjectId(NULL_GUID, 1))},
            "<Correlation>AAAAAAAAAAAAAAAAAAAAAAEAAAA=</Correlation><App>",
            "5-01",
            "6-01",
        ),
        written({"tracing_requested": True}, f"{CORRELATION}<Trace/><App>", "5-01", "6-01"),
        written(
            {"connector_type_identifier": OTHER},
            f"{CORRELATION}<ConnectorType>{OTHER}</ConnectorType><App>",
            "7-01",
        ),
        written({"application_tag": 36}, "<App>36</App><BodyType>", "8-01"),
        written({"body_type": 8}, "<BodyType>8</BodyType><HashAlgorithm>", "9-01"),
        written({"hash_algorithm": 0}, "<HashAlgorithm>0</HashAlgorithm><SourceQmGuid>", "10-01"),
        written(
            {"hash_algorithm": 0x8003},
            "<HashAlgorithm>32771</HashAlgorithm><SourceQmGuid>",
            "10-01",
        ),
        written(
            {"first_in_transaction": True, "last_in_transaction": True},
            "</HashAlgorithm><Eod><First/><Last/></Eod><SourceQmGuid>",
            "11-01",
            "11-02",
            "11-03",
        ),
        written({"first_in_transaction": True}, "<Eod><First/></Eod>", "11-01", "11-02", "11-03"),
        written({"last_in_transaction": True}, "<Eod><Last/></Eod>", "11-01", "11-02", "11-03"),
        written(
            {"connector_queue_manager_identifier": OTHER},
            f"<Eod><ConnectorId>{OTHER}</ConnectorId></Eod>",
            "11-01",
            "11-04",
        ),
        written(
            {"authentication_provider_type": 1234, "authentication_provider_name": "P"},
            "</HashAlgorithm><Provider><Type>1234</Type><Name>P</Name></Provider><SourceQmGuid>",
            "12-01",
            "12-02",
            "12-03",
        ),
        written(
            {"authentication_provider_type": 1234},
            "<Provider><Type>1234</Type></Provider>",
            "12-02",
        ),
        written({"authentication_provider_name": "P"}, "<Provider><Name>P</Name></Provider>", "12-03"),
        written(
            {"source_machine_identifier": OTHER},
            f"<SourceQmGuid>{OTHER}</SourceQmGuid><TTrq>",
            "13-01",
        ),
        written(
            {
                "destinations": (queue("DIRECT=http://a/msmq/q"), queue("MULTICAST=234.1.1.1:8001")),
                "administrations": (queue("DIRECT=https://a/msmq/q"),),
                "responses": (queue(f"PUBLIC={GUID}"), queue("DIRECT=http://b/msmq/q")),
            },
            "</SourceQmGuid><DestinationMqf>http://a/msmq/q\nMSMQ:MULTICAST=234.1.1.1:8001\n</DestinationMqf>"
            "<AdminMqf>https://a/msmq/q\n</AdminMqf>"
            f"<ResponseMqf>MSMQ:PUBLIC={GUID}\nhttp://b/msmq/q\n</ResponseMqf><TTrq>",
            "14-01",
            "14-02",
            "15-01",
            "15-02",
            "16-01",
            "16-02",
        ),
    ],
)
def test_children_of_msmq(changes: dict[str, object], written: str) -> None:
    assert written in text(**changes)


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"correlation_identifier": bytes(19)}, "Envelope.Header.Msmq.Correlation"),
        ({"priority": 8}, "Envelope.Header.Msmq.Priority"),
        ({"application_tag": 1 << 32}, "Envelope.Header.Msmq.App"),
        ({"identifier": ObjectId(GUID, 1 << 32)}, "Envelope.Header.path.id"),
        ({"privacy_level": 5}, "privacy_level"),
        ({"encrypted": True}, "privacy_level"),
        ({"signature": b"s"}, "authentication_level"),
        ({"multiple_destination_signature": b"s"}, "authentication_level"),
    ],
)
def test_what_does_not_fit(changes: dict[str, object], path: str) -> None:
    refused(path, **changes)


def test_payloads() -> None:
    message = a_message(body=b"b", extension=b"e")
    assert serialize(message, queue_manager=GUID)[1:] == (b"b", b"e")
    assert serialize(a_message(), queue_manager=GUID)[1:] == (None, None)
