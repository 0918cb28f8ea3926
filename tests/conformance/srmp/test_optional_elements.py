"""The elements that a message may or may not have: [MC-MQSRM] 2.2.4 to 2.2.6."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire.names import parse_format_name
from msmqwire.qm.model.enumerations import AcknowledgementsRequested, DeliveryGuarantee
from msmqwire.qm.model.message import NULL_GUID, Message
from msmqwire.srmp.message import parse_message
from tests.support.paths import VECTORS
from tests.support.qm.queue_contents import messages
from tests.support.srmp.srmp_harness import SrmpHarness
from tests.support.srmp.srmp_requests import ADMIN, SrmpPeer

GUID = "fd74b8eb-2af7-4ac5-9405-074e315df392"
FAR = "http://far/msmq/q"
NAMES = (parse_format_name(f"DIRECT={FAR}"),)
ARRIVAL = AcknowledgementsRequested.ACK_POS_ARRIVAL
POSITIVE = AcknowledgementsRequested.ACK_POS_RECEIVE
NEGATIVE = AcknowledgementsRequested.ACK_NEG_RECEIVE
NONE = AcknowledgementsRequested.NONE
DELIVERY = f"<deliveryReceiptRequest><sendTo>{ADMIN}</sendTo></deliveryReceiptRequest>"


def commitment(which: str) -> str:
    return f"<commitmentReceiptRequest><sendTo>{ADMIN}</sendTo>{which}</commitmentReceiptRequest>"


def received(**elements: str) -> Message:
    """The message in the queue after a request with these elements."""
    harness = SrmpHarness()
    queue = harness.queue("orders")
    assert SrmpPeer(harness).send(**elements) == 200
    (message,) = messages(queue)
    return message


@pytest.mark.parametrize(
    ("element", "attribute", "present", "absent"),
    [
        pytest.param(
            "<Journal/>", "positive_journaling_requested", True, False,
            marks=pytest.mark.requirement("SRMP-2.2.6.3-01"),
        ),
        pytest.param(
            "<DeadLetter/>", "negative_journaling_requested", True, False,
            marks=pytest.mark.requirement("SRMP-2.2.6.4-01"),
        ),
        pytest.param(
            "<Trace/>", "tracing_requested", True, False, marks=pytest.mark.requirement("SRMP-2.2.6.6-01")
        ),
        pytest.param(
            f"<ConnectorType>{GUID}</ConnectorType>", "connector_type_identifier", UUID(GUID), NULL_GUID,
            marks=pytest.mark.requirement("SRMP-2.2.6.7-01"),
        ),
        pytest.param(
            "<App>36</App>", "application_tag", 36, 0, marks=pytest.mark.requirement("SRMP-2.2.6.8-01")
        ),
        pytest.param(
            "<HashAlgorithm>32771</HashAlgorithm>", "hash_algorithm", 0x8003, 0x8004,
            marks=pytest.mark.requirement("SRMP-2.2.6.10-01"),
        ),
        pytest.param(
            "<Eod><First/></Eod>", "first_in_transaction", True, False,
            marks=pytest.mark.requirement("SRMP-2.2.6.11-02"),
        ),
        pytest.param(
            "<Eod><Last/></Eod>", "last_in_transaction", True, False,
            marks=pytest.mark.requirement("SRMP-2.2.6.11-03"),
        ),
        pytest.param(
            f"<Eod><ConnectorId>{GUID}</ConnectorId></Eod>", "connector_queue_manager_identifier",
            UUID(GUID), NULL_GUID, marks=pytest.mark.requirement("SRMP-2.2.6.11-04"),
        ),
        pytest.param(
            f"<DestinationMqf>{FAR}\n</DestinationMqf>", "destinations", NAMES, (),
            marks=pytest.mark.requirement("SRMP-2.2.6.14-01"),
        ),
        pytest.param(
            f"<AdminMqf>{FAR}\n</AdminMqf>", "administrations", NAMES, (),
            marks=pytest.mark.requirement("SRMP-2.2.6.15-01"),
        ),
        pytest.param(
            f"<ResponseMqf>{FAR}\n</ResponseMqf>", "responses", NAMES, (),
            marks=pytest.mark.requirement("SRMP-2.2.6.16-01"),
        ),
    ],
)  # fmt: skip
def test_elements_of_msmq(element, attribute, present, absent):
    assert getattr(received(msmq=element), attribute) == present
    assert getattr(received(), attribute) == absent


@pytest.mark.requirement("SRMP-2.2.5.2-01", "SRMP-2.2.5.2.1-06", "SRMP-2.2.5.2.2-04")
@pytest.mark.requirement("SRMP-2.2.5.2.3-05", "SRMP-2.2.5.2.3-06")
@pytest.mark.parametrize(
    ("services", "delivery", "asked"),
    [
        ("", DeliveryGuarantee.EXPRESS, NONE),
        ("<durable/>", DeliveryGuarantee.RECOVERABLE, NONE),
        (DELIVERY, DeliveryGuarantee.EXPRESS, ARRIVAL),
        (commitment("<positiveOnly/>"), DeliveryGuarantee.EXPRESS, POSITIVE),
        (commitment("<negativeOnly/>"), DeliveryGuarantee.EXPRESS, NEGATIVE),
        (commitment(""), DeliveryGuarantee.EXPRESS, NONE),
        (
            f"<durable/>{DELIVERY}{commitment('<positiveOnly/><negativeOnly/>')}",
            DeliveryGuarantee.RECOVERABLE,
            ARRIVAL | POSITIVE | NEGATIVE,
        ),
    ],
)
def test_services(services, delivery, asked):
    message = received(services=services)
    assert (message.delivery_guarantee, message.acknowledgements_requested) == (delivery, asked)
    wanted = parse_format_name(f"DIRECT={ADMIN}") if "sendTo" in services else None
    assert message.administration == wanted


@pytest.mark.requirement("SRMP-2.2.5.3-01", "SRMP-2.2.5.2.1-02")
def test_a_stream_makes_a_message_transactional_and_durable():
    """The message may have the element `durable` or not."""
    for services in ("<durable/>", ""):
        harness = SrmpHarness()
        queue = harness.queue("orders", transactional=True)
        assert SrmpPeer(harness).send_in_stream(1, services=services) == 200
        (message,) = messages(queue)
        assert (message.transactional, message.recoverable) == (True, True)
    assert not received().transactional
    sender = SrmpHarness()
    sender.send(b"m", transactional=True)
    sent = sender.take_one()
    assert "stream" in sent
    assert "services/durable" in sent


@pytest.mark.requirement("SRMP-2.2.4.1-02")
def test_labels():
    assert received(label="order 7").label == "order 7"
    assert received(label="").label == ""
    harness = SrmpHarness()
    queue = harness.queue("orders")
    peer = SrmpPeer(harness)
    request = peer.message(label="1234").replace(b"<action>MSMQ:1234</action>", b"<action>         </action>")
    assert harness.post(request) == 200
    assert [message.label for message in messages(queue)] == [""]
    harness.send(b"m", label="order 7")
    assert harness.take_one()["path/action"] == "MSMQ:order 7"


@pytest.mark.requirement("SRMP-2.2.4.2-02", "SRMP-2.2.4.2-04")
def test_the_transport_stands_in_the_destination():
    harness = SrmpHarness()
    harness.send(b"m", to="DIRECT=HTTP://there/msmq/private$/orders")
    sent = harness.take_one()
    assert (sent["path/to"], sent.url) == ("http://there/msmq/private$/orders",) * 2
    harness.send(b"m", to="MULTICAST=234.1.1.1:8001")
    sent = harness.take_one()
    assert (sent["path/to"], sent.url) == ("MSMQ:MULTICAST=234.1.1.1:8001", "234.1.1.1:8001")


@pytest.mark.requirement("SRMP-2.2.4.5-02", "SRMP-2.2.5.1.3-02", "SRMP-2.2.5.4-01", "SRMP-2.2.5.5-01")
@pytest.mark.requirement("SRMP-2.2.5.6-01")
@pytest.mark.requirement("SRMP-2.2.2-08")
def test_which_requests_have_receipts_and_what_none_has():
    harness = SrmpHarness(answers=lambda _: 200)
    queue = harness.queue("orders")
    peer = SrmpPeer(harness)
    harness.send(b"m")
    peer.send(services=DELIVERY + commitment("<positiveOnly/>"))
    harness.receive(queue)
    ledger = harness.queue("ledger", transactional=True)
    here = "http://here/msmq/private$/ledger"
    peer.send_in_stream(1, to=here, msmq="<DeadLetter/>")
    harness.advance(1_000)
    harness.receive(ledger)
    sent = harness.take()
    kinds = ("deliveryReceipt", "commitmentReceipt", "streamReceipt")
    assert [tuple(kind for kind in kinds if kind in request) for request in sent] == [
        (),
        ("deliveryReceipt",),
        ("commitmentReceipt",),
        ("streamReceipt",),
        ("commitmentReceipt", "streamReceipt"),
    ]
    assert [(request.fields["content-type"], request.body) for request in sent[1:]] == [
        ("text/xml", None)
    ] * 4
    never = ("path/fwd", "path/from", "path/relatesTo", "path/fault", "properties/inReplyTo")
    assert not [path for request in sent for path in never if path in request]


@pytest.mark.requirement("SRMP-2.2.5.2.2-06")
def test_a_delivery_receipt_says_that_everything_was_understood():
    harness = SrmpHarness()
    harness.queue("orders")
    peer = SrmpPeer(harness)
    assert peer.send(b"m", '<x xmlns="urn:x" se:mustUnderstand="1"/>', services=DELIVERY) == 400
    assert harness.take() == []
    assert peer.send(b"m", '<x xmlns="urn:x" se:mustUnderstand="0"/>', services=DELIVERY) == 200
    assert "deliveryReceipt" in harness.take_one()


# -- the published receipts


def published(name: str):
    message = parse_message(VECTORS.joinpath("srmp", f"{name}.http").read_bytes())
    assert message.envelope is not None
    return message.envelope


@pytest.mark.requirement("SRMP-4.3-03", "SRMP-4.3-04", "SRMP-4.3-05")
def test_the_receipts_of_4_3():
    delivery, commitment = published("4.3-3"), published("4.3-5")
    of_1 = (1, NULL_GUID)
    assert (delivery.path.id.uniquifier, delivery.Msmq.Class, delivery.Msmq.Priority) == (34826, 2, 3)
    assert tuple(delivery.deliveryReceipt.id) == of_1
    assert (commitment.path.id.uniquifier, commitment.Msmq.Class) == (34827, 16384)
    assert (commitment.commitmentReceipt.decision, tuple(commitment.commitmentReceipt.id)) == (
        "positive",
        of_1,
    )
    # The clocks of the two computers differ, and nobody minds.
    assert delivery.properties.sentAt < delivery.deliveryReceipt.receivedAt


@pytest.mark.requirement("SRMP-4.4-02")
def test_the_receipts_of_4_4():
    receipts = [published(f"4.4-{number}") for number in (2, 4, 6)]
    assert [receipt.path.id.uniquifier for receipt in receipts] == [26641, 26643, 26645]
    assert [receipt.streamReceipt.lastOrdinal for receipt in receipts] == [1, 2, 3]
    for receipt in receipts:
        assert receipt.path.action == "MSMQ:QM Ordering Ack"
        assert (receipt.Msmq.Class, receipt.Msmq.Priority) == (255, 0)
        assert not any(receipt.Msmq.Correlation)
        assert (receipt.Msmq.TTrq - receipt.properties.sentAt).days == 4
