"""How often each element stands in its group, and the attribute of Message that it becomes."""

from __future__ import annotations

from typing import Any

import pytest

from msmqwire.errors import InvalidValue
from msmqwire.srmp.envelope import Envelope, build_envelope
from msmqwire.srmp.schema import ENVELOPE
from tests.support.codec_checks import proving
from tests.support.srmp.srmp_envelopes import EVERYTHING, everything, span, without_and_twice

PATH, SERVICES = "Header.path", "Header.services"
DELIVERY, COMMITMENT = f"{SERVICES}.deliveryReceiptRequest", f"{SERVICES}.commitmentReceiptRequest"


def rows(*numbers: str) -> tuple[str, ...]:
    return tuple(f"SRMP-2.2.{number}" for number in numbers)


@pytest.mark.parametrize(
    ("path", "least", "most", "attribute"),
    [
        proving("", 1, 1, "", ids=rows("2-01", "2-06", "3-01")),
        proving("Header", 1, 1, "", ids=rows("2-02", "2-06")),
        proving("Body", 1, 1, "", ids=rows("2-03", "2-04", "2-05")),
        proving(PATH, 1, 1, "", ids=rows("4-01", "4-02", "3-02", "4-04", "4-05")),
        proving(f"{PATH}.action", 1, 1, "label", ids=rows("4.1-01", "4.1-02", "4.1-03", "4.1-07")),
        proving(f"{PATH}.to", 1, 1, "destination", ids=rows("4.2-01", "4.2-06")),
        proving(f"{PATH}.id", 1, 1, "identifier", ids=rows("4.3-01", "4.3-02", "4.3-06")),
        proving(f"{PATH}.rev", 0, 1, "", ids=rows("4.4-01")),
        proving(f"{PATH}.rev.via", 1, 1, "response", ids=rows("4.4-02", "4.4-03", "4.4-06")),
        proving("Header.properties", 1, 1, "", ids=rows("5.1-01", "5.1-02")),
        proving("Header.properties.expiresAt", 1, 1, "time_to_be_received", ids=rows("5.1.1-01")),
        proving("Header.properties.sentAt", 0, 1, "sent_time", ids=rows("5.1.2-01", "5.1.2-03")),
        proving(SERVICES, 0, 1, "", ids=rows("5.2-01", "5.2-02")),
        proving(f"{SERVICES}.durable", 0, 1, "delivery_guarantee = Recoverable", ids=rows("5.2.1-01")),
        proving(DELIVERY, 0, 1, "acknowledgements_requested += AckPosArrival", ids=rows("5.2.2-01")),
        proving(f"{DELIVERY}.sendTo", 1, 1, "administration", ids=rows("5.2.2-02", "5.2.2-03")),
        proving(COMMITMENT, 0, 1, "final_ack_required = True", ids=rows("5.2.3-01")),
        proving(f"{COMMITMENT}.sendTo", 1, 1, "administration", ids=rows("5.2.3-02", "5.2.3-03", "5.2.3-04")),
        proving(
            f"{COMMITMENT}.positiveOnly",
            *(0, 1, "acknowledgements_requested += AckPosReceive"),
            ids=rows("5.2.3-05"),
        ),
        proving(
            f"{COMMITMENT}.negativeOnly",
            *(0, 1, "acknowledgements_requested += AckNegReceive"),
            ids=rows("5.2.3-06"),
        ),
        proving("Header.stream", 0, 1, "", ids=rows("5.3-01", "5.3-02")),
        proving(
            "Header.stream.streamId",
            *(1, 1, "transactional_message_sequence_identifier"),
            ids=rows("5.3.1-01"),
        ),
        proving("Header.Msmq", 0, 1, "", ids=rows("3-04")),
    ],
)
def test_an_element_in_its_group(path: str, least: int, most: int, attribute: str) -> None:
    element = ENVELOPE
    for name in filter(None, path.split(".")):
        element = element.child(name)
    assert (element.least, element.most, element.attribute) == (least, most, attribute)


def holder_of(header: Any, path: str) -> tuple[Any, str]:
    """The mapping in a header that has the value of an element, and its name there."""
    *groups, last = path.split(".")
    for name in groups:
        header = header[name.removesuffix("[0]")]
        if name.endswith("[0]"):
            header = header[0]
    return header, last


@pytest.mark.parametrize(
    ("path", "requirement"),
    [
        pytest.param(path, f"SRMP-2.2.{row}", marks=pytest.mark.requirement(f"SRMP-2.2.{row}"), id=path)
        for path, row in [
            ("path", "4-01"),
            ("path.action", "4.1-01"),
            ("path.to", "4.2-01"),
            ("path.id", "4.3-01"),
            ("path.rev.via", "4.4-02"),
            ("properties", "5.1-01"),
            ("properties.expiresAt", "5.1.1-01"),
            ("services.deliveryReceiptRequest.sendTo", "5.2.2-02"),
            ("services.commitmentReceiptRequest.sendTo", "5.2.3-02"),
            ("stream.streamId", "5.3.1-01"),
            ("stream.current", "5.3.2-01"),
            ("stream.start.sendReceiptsTo", "5.3.4-02"),
            ("deliveryReceipt.receivedAt", "5.4-03"),
            ("deliveryReceipt.id", "5.4-04"),
            ("commitmentReceipt.decidedAt", "5.5-03"),
            ("commitmentReceipt.decision", "5.5-04"),
            ("commitmentReceipt.id", "5.5-05"),
            ("streamReceipt.streamId", "5.6-02"),
            ("streamReceipt.lastOrdinal", "5.6-03"),
            ("Msmq.Class", "6.1-01"),
            ("Msmq.Priority", "6.2-01"),
            ("Msmq.BodyType", "6.9-01"),
            ("Msmq.SourceQmGuid", "6.13-01"),
            ("Msmq.TTrq", "6.17-01"),
            ("Signature.SignedInfo", "7.1-01"),
            ("Signature.SignedInfo.SignatureMethod", "7.1.1-01"),
            ("Signature.SignedInfo.Reference[0].DigestMethod", "7.1.2.1-01"),
            ("Signature.SignedInfo.Reference[0].DigestValue", "7.1.2.2-01"),
            ("Signature.SignatureValue", "7.2-01"),
        ]
    ],
)
def test_nothing_is_built_without_an_element_that_is_required(path: str, requirement: str) -> None:
    header = everything()
    assert build_envelope(Envelope(header)) == EVERYTHING
    holder, name = holder_of(header, path)
    del holder[name]
    with pytest.raises(InvalidValue) as caught:
        build_envelope(Envelope(header))
    assert caught.value.path == f"Envelope.Header.{path}"
    assert f"({requirement})" in caught.value.why


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.requirement(*rows(*numbers)), id=path)
        for path, *numbers in [
            ("path.rev", "4.4-01"),
            ("properties.sentAt", "5.1.2-01"),
            ("services", "5.2-01"),
            ("services.durable", "5.2.1-01"),
            ("services.deliveryReceiptRequest", "5.2.2-01"),
            ("services.commitmentReceiptRequest", "5.2.3-01"),
            ("services.commitmentReceiptRequest.positiveOnly", "5.2.3-05"),
            ("services.commitmentReceiptRequest.negativeOnly", "5.2.3-06"),
            ("stream", "5.3-01"),
            ("stream.previous", "5.3.3-01"),
            ("stream.start", "5.3.4-01"),
            ("deliveryReceipt", "5.4-01"),
            ("commitmentReceipt", "5.5-01"),
            ("streamReceipt", "5.6-01"),
            ("Msmq.Journal", "6.3-01"),
            ("Msmq.DeadLetter", "6.4-01"),
            ("Msmq.Correlation", "6.5-01"),
            ("Msmq.Trace", "6.6-01"),
            ("Msmq.ConnectorType", "6.7-01"),
            ("Msmq.App", "6.8-01"),
            ("Msmq.HashAlgorithm", "6.10-01"),
            ("Msmq.Eod", "6.11-01"),
            ("Msmq.Eod.First", "6.11-02"),
            ("Msmq.Eod.Last", "6.11-03"),
            ("Msmq.Eod.ConnectorId", "6.11-04"),
            ("Msmq.Provider", "6.12-01"),
            ("Msmq.DestinationMqf", "6.14-01", "6.14-02"),
            ("Msmq.AdminMqf", "6.15-01", "6.15-02"),
            ("Msmq.ResponseMqf", "6.16-01", "6.16-02"),
            ("Signature", "7-01"),
        ]
    ],
)
def test_an_optional_element_is_written_if_it_has_a_value(path: str) -> None:
    header = everything()
    holder, name = holder_of(header, path)
    assert build_envelope(Envelope(header)) == EVERYTHING
    del holder[name]
    without, _ = without_and_twice(path)
    if path in ("services", "services.durable"):  # without it there is no stream: SRMP-2.2.5.2.1-02
        del header["stream"]
        start, end = span("stream")
        without = without.replace(EVERYTHING[start:end], b"")
    assert build_envelope(Envelope(header)) == without
