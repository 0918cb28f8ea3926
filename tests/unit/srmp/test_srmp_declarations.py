"""The declarations of elements: how often each stands, what it holds, and its attribute of Message."""

from __future__ import annotations

from typing import Any

import pytest

from msmqwire.srmp.elements import Element, Group
from msmqwire.srmp.schema import HEADER
from tests.support.srmp.srmp_envelopes import (
    EVERYTHING,
    GUID,
    MSMQ,
    PATH,
    PROPERTIES,
    SERVICES,
    STREAM,
    STREAM_ID,
    WITH_MSMQ,
    changed,
    refused,
    xml,
)

HTTP = ("http://", "https://")
_32, _16 = {"maximum": 2**32 - 1}, {"maximum": 2**16 - 1}


def declared(path: str) -> Element:
    element: Element = HEADER
    for name in path.split("."):
        assert isinstance(element, Group)
        element = element.child(name)
    return element


# The path, the kind of content, the least count, the attribute of Message, other properties, and the rows.
DECLARED: list[tuple[str, str, int, str, dict[str, Any], str]] = [
    ("stream.streamId", "stream identifier", 1, "transactional_message_sequence_identifier", {},
     "5.3.1-01 5.3.1-02 5.3.1-03 5.3.1-05"),
    ("stream.current", "number", 1, "transaction_sequence_number", _32, "5.3.2-01 5.3.2-03"),
    ("stream.previous", "number", 0, "transaction_previous_sequence_number", _32, "5.3.3-01 5.3.3-03"),
    ("stream.start.sendReceiptsTo", "URI", 1, "administration", {"starts": HTTP, "strip": True},
     "5.3.4-02 5.3.4-03 5.3.4-04"),
    ("deliveryReceipt.receivedAt", "date", 1, "", {}, "5.4-03"),
    ("deliveryReceipt.id", "identifier", 1, "", {"any_text": False}, "5.4-04"),
    ("commitmentReceipt.decidedAt", "date", 1, "", {}, "5.5-03"),
    ("commitmentReceipt.decision", "text", 1, "", {"one_of": ("negative", "positive"), "strip": True},
     "5.5-04"),
    ("commitmentReceipt.id", "identifier", 1, "", {"any_text": False}, "5.5-05"),
    ("streamReceipt.streamId", "stream identifier", 1, "", {}, "5.6-02"),
    ("streamReceipt.lastOrdinal", "number", 1, "", _32, "5.6-03"),
    ("Msmq.Class", "number", 1, "message_class", _16, "6.1-01 6-05"),
    ("Msmq.Priority", "number", 1, "priority", {"maximum": 7}, "6.2-01 6.2-02 6-05"),
    ("Msmq.Journal", "empty", 0, "positive_journaling_requested = True", {}, "6.3-01"),
    ("Msmq.DeadLetter", "empty", 0, "negative_journaling_requested = True", {}, "6.4-01"),
    ("Msmq.Correlation", "base64", 0, "correlation_identifier", {"length": 20}, "6.5-01 6.5-02"),
    ("Msmq.Trace", "empty", 0, "tracing_requested = True", {}, "6.6-01"),
    ("Msmq.ConnectorType", "GUID", 0, "connector_type_identifier", {}, "6.7-01"),
    ("Msmq.App", "number", 0, "application_tag", _32, "6.8-01"),
    ("Msmq.BodyType", "number", 1, "body_type", _32, "6.9-01 6-05"),
    ("Msmq.HashAlgorithm", "number", 0, "hash_algorithm", _32, "6.10-01"),
    ("Msmq.Eod.First", "empty", 0, "first_in_transaction = True", {}, "6.11-02"),
    ("Msmq.Eod.Last", "empty", 0, "last_in_transaction = True", {}, "6.11-03"),
    ("Msmq.Eod.ConnectorId", "GUID", 0, "connector_queue_manager_identifier", {}, "6.11-04"),
    ("Msmq.Provider.Type", "number", 0, "authentication_provider_type", _32, "6.12-02"),
    ("Msmq.Provider.Name", "text", 0, "authentication_provider_name", {}, "6.12-03"),
    ("Msmq.SourceQmGuid", "GUID", 1, "source_machine_identifier", {}, "6.13-01 6-05"),
    ("Msmq.DestinationMqf", "names", 0, "destinations", {}, "6.14-01 6.14-02"),
    ("Msmq.AdminMqf", "names", 0, "administrations", {}, "6.15-01 6.15-02"),
    ("Msmq.ResponseMqf", "names", 0, "responses", {}, "6.16-01 6.16-02"),
    ("Msmq.TTrq", "date", 1, "time_to_reach_queue", {}, "6.17-01 6-05"),
    ("Signature.SignedInfo.Reference.DigestValue", "base64", 1, "", {"length": None}, "7.1.2.2-01"),
    ("Signature.SignatureValue", "base64", 1, "", {"length": None}, "7.2-01"),
]  # fmt: skip


def _marks(rows: str) -> pytest.MarkDecorator:
    return pytest.mark.requirement(*(f"SRMP-2.2.{row}" for row in rows.split()))


@pytest.mark.parametrize(
    ("path", "kind", "least", "attribute", "other"),
    [pytest.param(*row[:-1], marks=_marks(row[-1]), id=row[0]) for row in DECLARED],
)
def test_what_each_element_holds_and_becomes(path, kind, least, attribute, other):
    element = declared(path)
    assert (element.kind, element.least, element.most) == (kind, least, 1)
    assert element.attribute == attribute
    assert {name: getattr(element, name) for name in other} == other


IN_STREAM = xml(PATH, PROPERTIES, SERVICES, STREAM, MSMQ)


@pytest.mark.parametrize(
    ("data", "text", "wrong", "path", "requirement"),
    [
        pytest.param(*case, marks=pytest.mark.requirement(case[-1]), id=f"{number}")
        for number, case in enumerate([
            (IN_STREAM, "<streamId>uid:", "<streamId>", "stream.streamId", "SRMP-2.2.5.3.1-05"),
            (IN_STREAM, "\\", "/", "stream.streamId", "SRMP-2.2.5.3.1-05"),
            (IN_STREAM, STREAM_ID, f"uid:{GUID}\\{2**64}", "stream.streamId", "SRMP-2.2.5.3.1-05"),
            (IN_STREAM, STREAM_ID, f"uid:{GUID}\\", "stream.streamId", "SRMP-2.2.5.3.1-05"),
            (IN_STREAM, STREAM_ID, f"uid:{{{GUID}}}\\1", "stream.streamId", "SRMP-2.2.5.3.1-05"),
            (WITH_MSMQ, "<BodyType>", "<Correlation>AAAA</Correlation><BodyType>", "Msmq.Correlation",
             "SRMP-2.2.6.5-02"),
            (WITH_MSMQ, "<BodyType>", f"<Correlation>{'AAAA' * 7}</Correlation><BodyType>",
             "Msmq.Correlation", "SRMP-2.2.6.5-02"),
            (WITH_MSMQ, "<BodyType>", f"<Correlation>{'*' * 28}</Correlation><BodyType>",
             "Msmq.Correlation", "SRMP-2.2.6.5-02"),
        ])
    ],
)  # fmt: skip
def test_the_place_and_the_rule_of_a_bad_text(data, text, wrong, path, requirement):
    exc = refused(changed(data, text, wrong))
    assert (exc.path, exc.requirement) == (f"Envelope.Header.{path}", requirement)


@pytest.mark.requirement("SRMP-2.2.6-01", "SRMP-2.2.6-02", "SRMP-2.2.6-04")
def test_the_children_of_msmq_in_their_order():
    group = declared("Msmq")
    assert isinstance(group, Group)
    assert group.namespace == "msmq.namespace.xml"
    assert [child.name for child in group.children] == [
        "Class", "Priority", "Journal", "DeadLetter", "Correlation", "Trace", "ConnectorType", "App",
        "BodyType", "HashAlgorithm", "Eod", "Provider", "SourceQmGuid", "DestinationMqf", "AdminMqf",
        "ResponseMqf", "TTrq",
    ]  # fmt: skip
    assert EVERYTHING.count(b'<Msmq xmlns="msmq.namespace.xml">') == 1
