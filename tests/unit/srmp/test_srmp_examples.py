"""The envelopes of [MC-MQSRM] chapter 4, with all in which they depart from chapter 2."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from uuid import UUID

import pytest

from msmqwire.errors import InvalidValue
from msmqwire.srmp.envelope import Envelope, build_envelope, envelope_from_json, parse_envelope
from msmqwire.srmp.identifiers import MessageIdentifier, StreamIdentifier
from msmqwire.srmp.request import make_request
from tests.support.srmp.srmp_envelopes import (
    PUBLISHED,
)


@pytest.mark.requirement("SRMP-2.2-01", "SRMP-2.2.3-05")
@pytest.mark.parametrize("name", ["4.2-MsmqElement", "4.5-Multicast"])
def test_what_msmq_sent_is_built_byte_for_byte(name):
    envelope = parse_envelope(PUBLISHED[name])
    assert not envelope.departures
    assert not envelope.kept
    assert build_envelope(Envelope(envelope.header)) == PUBLISHED[name]


@pytest.mark.requirement("SRMP-2.2-01")
def test_an_envelope_is_built_in_utf_8_without_declaration():
    envelope = parse_envelope(PUBLISHED["4.5-Multicast"])
    data = build_envelope(envelope.replace(path=envelope.path.replace(action="MSMQ:\u00e9\U0001f600")))
    assert data.startswith(b"<se:Envelope ")
    assert b"<action>MSMQ:\xc3\xa9\xf0\x9f\x98\x80</action>" in data
    made = make_request(data, "/q", "m", boundary=7, queue_manager=UUID(int=1), body=b"")
    assert b"Content-Type: text/xml; charset=UTF-8\r\n" in made.to_bytes()


@pytest.mark.requirement("SRMP-3.1.7.2.4-02")
def test_the_size_of_an_envelope_is_that_of_its_content_length():
    envelope = parse_envelope(PUBLISHED["4.5-Multicast"]).replace()
    assert len(build_envelope(envelope)) == 779


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_envelopes_come_back_unless_they_are_changed(name):
    envelope = parse_envelope(PUBLISHED[name])
    assert build_envelope(envelope) == PUBLISHED[name]
    assert envelope_from_json(envelope.to_json()) == envelope


@pytest.mark.requirement("SRMP-2.2.3-06")
def test_names_have_a_namespace_and_not_a_prefix():
    envelope = parse_envelope(PUBLISHED["4.3-ReceiptRequests"])
    assert envelope.path.action == "Generic label"
    assert envelope.path.rev.via == "http://machine1/MSMQ/private$/Q1"
    assert envelope.services.deliveryReceiptRequest.sendTo == "http://machine1/MSMQ/private$/receipts"
    assert list(envelope.services) == [
        "commitmentReceiptRequest",
        "deliveryReceiptRequest",
    ]  # as in the document
    assert list(envelope.services.commitmentReceiptRequest) == ["sendTo", "negativeOnly", "positiveOnly"]


DEPARTURES = {
    "4.1-SimpleMessage": [],
    "4.2-MsmqElement": [],
    "4.3-ReceiptRequests": [
        ("SRMP-3.1.7.2.4-13", "services.commitmentReceiptRequest.positiveOnly"),
        ("SRMP-3.1.7.2.4-11", "services.deliveryReceiptRequest"),
        ("SRMP-2.2.4.1-02", "path.action"),
    ],
    "4.3-DeliveryReceipt": [("SRMP-2.2.4-05", "path.id")],
    "4.3-CommitmentReceipt": [("SRMP-2.2.4-05", "path.id")],
    "4.4-Stream1": [
        ("SRMP-2.2.5.3-06", "stream"),
        ("SRMP-2.2.5.3-06", "stream.start.expiresAt"),
        ("SRMP-2.2.5.3-06", "stream.streamReceiptRequest"),
        ("SRMP-2.2.4.3-04", "path.id"),
        ("SRMP-2.2.5.2.1-02", "stream"),
    ],
    "4.4-Stream2": [
        ("SRMP-2.2.5.3-06", "stream"),
        ("SRMP-2.2.4.3-04", "path.id"),
        ("SRMP-2.2.5.2.1-02", "stream"),
    ],
    "4.4-Stream3": [
        ("SRMP-2.2.5.3-06", "stream"),
        ("SRMP-2.2.5.3-06", "stream.end"),
        ("SRMP-2.2.4.3-04", "path.id"),
        ("SRMP-2.2.5.2.1-02", "stream"),
    ],
    **{f"4.4-StreamReceipt{number}": [("SRMP-2.2.4-05", "path.id")] for number in (1, 2, 3)},
    "4.5-Multicast": [],
}


@pytest.mark.requirement("SRMP-2.2.5.3-06", "SRMP-2.2.4-05", "SRMP-2.2.3-07")
@pytest.mark.parametrize("name", DEPARTURES)
def test_where_an_example_departs_is_noted(name):
    found = [(item.requirement, item.path) for item in parse_envelope(PUBLISHED[name]).departures]
    assert found == [(req, f"Envelope.Header.{path}") for req, path in DEPARTURES[name]]


def test_every_vector_is_looked_at():
    assert PUBLISHED.keys() == DEPARTURES.keys()


def test_the_first_message_of_a_stream():
    envelope = parse_envelope(PUBLISHED["4.4-Stream1"])
    assert envelope.stream.streamId == StreamIdentifier(
        UUID("2744e4e1-2b48-43e8-b441-42745f280d53"), 0x432B164300000006
    )
    assert envelope.stream.current == 1
    assert envelope.stream.previous is None
    assert envelope.stream.start.sendReceiptsTo == "http://machine1/MSMQ/private$/receipts?SenderStream=XRntV"
    assert [(item.path, item.known) for item in envelope.kept] == [
        ("Envelope.Header.stream", True),
        ("Envelope.Header.stream.start", True),
    ]
    assert not envelope.unknown


@pytest.mark.requirement("SRMP-2.2.5.3-06")
def test_a_departure_is_never_built():
    envelope = parse_envelope(PUBLISHED["4.4-Stream1"])
    with pytest.raises(InvalidValue, match=r"SRMP-2\.2\.5\.2\.1-02"):
        build_envelope(envelope.replace())
    built = build_envelope(envelope.replace(services={"durable": True}))
    assert b"<stream se:mustUnderstand" in built
    assert b"Stream " not in built
    receipt = parse_envelope(PUBLISHED["4.3-DeliveryReceipt"]).replace()
    assert re.findall(b"<(action|to|id|rev)>", build_envelope(receipt)) == [
        b"action",
        b"to",
        b"id",
        b"rev",
        b"id",
    ]


@pytest.mark.requirement("SRMP-2.2.5.4-03", "SRMP-2.2.5.4-04")
def test_a_delivery_receipt():
    receipt = parse_envelope(PUBLISHED["4.3-DeliveryReceipt"]).deliveryReceipt
    assert receipt.receivedAt == datetime(2007, 7, 19, 3, 24, 54, tzinfo=UTC)
    assert receipt.id == MessageIdentifier(1, UUID(int=0))


@pytest.mark.requirement("SRMP-2.2.5.5-03", "SRMP-2.2.5.5-05")
def test_a_commitment_receipt():
    receipt = parse_envelope(PUBLISHED["4.3-CommitmentReceipt"]).commitmentReceipt
    assert receipt.decidedAt == datetime(2007, 7, 19, 3, 27, 21, tzinfo=UTC)
    assert receipt.decision == "positive"
    assert receipt.id == MessageIdentifier(1, UUID(int=0))


@pytest.mark.requirement("SRMP-2.2.5.6-02", "SRMP-2.2.5.6-03")
def test_a_stream_receipt():
    receipt = parse_envelope(PUBLISHED["4.4-StreamReceipt2"]).streamReceipt
    assert str(receipt.streamId) == r"uid:2744e4e1-2b48-43e8-b441-42745f280d53\4839986701558349830"
    assert receipt.lastOrdinal == 2
