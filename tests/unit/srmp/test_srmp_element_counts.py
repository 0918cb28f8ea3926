"""How often each element stands in its group, and the attribute of Message that it becomes."""

from __future__ import annotations

import pytest

from msmqwire.srmp.schema import ENVELOPE
from tests.support.codec_checks import proving

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
