"""The elements of an SRMP envelope: [MC-MQSRM] 2.2."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest

from msmqwire.errors import InvalidValue
from msmqwire.srmp.content import Departure
from msmqwire.srmp.envelope import Envelope, build_envelope, envelope_from_json, parse_envelope
from msmqwire.srmp.identifiers import MessageIdentifier
from tests.support.srmp.srmp_envelopes import (
    DATE,
    EVERYTHING,
    GUID,
    MSMQ,
    PATH,
    PROPERTIES,
    PUBLISHED,
    SERVICES,
    SIGNATURE,
    SMALL,
    SOAP,
    STREAM,
    STREAM_ID,
    WITH_MSMQ,
    changed,
    refused,
    without_and_twice,
    xml,
)


@pytest.mark.requirement("SRMP-2.2.5.3.1-03", "SRMP-2.2.5.3.1-04")
def test_the_halves_of_a_stream_identifier():
    stream = parse_envelope(xml(PATH, PROPERTIES, SERVICES, STREAM, MSMQ)).stream.streamId
    assert (stream.time_stamp, stream.ordinal) == (1126897219, 6)
    assert datetime.fromtimestamp(stream.time_stamp, UTC) == datetime(2005, 9, 16, 19, 0, 19, tzinfo=UTC)


@pytest.mark.requirement("SRMP-2.2.1.1-01")
def test_a_guid_is_read_in_either_case_and_written_in_lower_case():
    envelope = parse_envelope(WITH_MSMQ.replace(str(GUID).encode(), str(GUID).upper().encode()))
    assert envelope.Msmq.SourceQmGuid == GUID
    assert build_envelope(envelope.replace()) == WITH_MSMQ
    for wrong in (f"{{{GUID}}}", str(GUID)[:-1], str(GUID).replace("-", ""), str(GUID)[:-1] + "g"):
        assert refused(changed(WITH_MSMQ, f"<SourceQmGuid>{GUID}", f"<SourceQmGuid>{wrong}"))


@pytest.mark.requirement("SRMP-2.2.1.2-01")
@pytest.mark.parametrize(
    "wrong",
    [
        *("2007-06-19T210654", "20070619T210654Z", "20070619T2106", "20070619 210654", "", "20070230T000000"),
        *("20070619T240000", "20070619T210660", "20071301T000000", "00000101T000000", "\uff120070619T210654"),
    ],
)
@pytest.mark.requirement("SRMP-2.2.1.2-02")
def test_a_date_of_another_form(wrong):
    exc = refused(changed(SMALL, "20070619T210654", wrong))
    assert exc.path == "Envelope.Header.properties.expiresAt"
    assert exc.offset == SMALL.index(b"<expiresAt>")
    assert parse_envelope(SMALL).properties.expiresAt == DATE


@pytest.mark.requirement("SRMP-2.2.1.3-01")
@pytest.mark.parametrize(
    "wrong", ["", "-1", "+1", "1.0", "0x1", "1 2", "18446744073709551616", "9" * 5000, "\uff11"]
)
def test_a_number_of_another_form(wrong):
    data = xml(PATH, PROPERTIES, SERVICES, STREAM, MSMQ)
    assert refused(changed(data, "<current>42", f"<current>{wrong}")).path == "Envelope.Header.stream.current"
    assert refused(changed(data, "<current>42", "<current>4294967296"))  # the attribute has 32 bits
    assert (
        refused(changed(data, "\\4839986701558349830", f"\\{wrong}")).path
        == "Envelope.Header.stream.streamId"
    )


@pytest.mark.requirement("SRMP-2.2.1.3-01")
def test_a_number_may_have_leading_zeros_and_white_space():
    data = xml(PATH, PROPERTIES, SERVICES, STREAM, MSMQ)
    assert (
        parse_envelope(changed(data, "<current>42", "<current> \n" + "0" * 30 + "42\t")).stream.current == 42
    )
    largest = changed(data, "\\4839986701558349830", "\\18446744073709551615")
    assert parse_envelope(largest).stream.streamId.number == 2**64 - 1


@pytest.mark.requirement("SRMP-2.2.6.2-02")
def test_priority():
    for priority in range(8):
        data = changed(WITH_MSMQ, "<Priority>3", f"<Priority>{priority}")
        assert parse_envelope(data).Msmq.Priority == priority
    assert refused(changed(WITH_MSMQ, "<Priority>3", "<Priority>8")).path == "Envelope.Header.Msmq.Priority"


@pytest.mark.requirement("SRMP-2.2.4.3-02", "SRMP-2.2.4.3-06")
@pytest.mark.parametrize(
    "wrong", ["7@{}", "uuid:7", "uuid:@{}", "uuid:-7@{}", "uuid:4294967296@{}", "uuid:7@{}0", ""]
)
@pytest.mark.requirement("SRMP-2.2.4.3-07")
def test_an_identifier_of_another_form(wrong):
    text = wrong.format(GUID)
    data = changed(WITH_MSMQ, f"uuid:7@{GUID}", text)
    exc = refused(data)
    assert (exc.path, exc.offset) == ("Envelope.Header.path.id", data.index(b"<id>"))
    without = parse_envelope(changed(SMALL, f"uuid:7@{GUID}", text))
    assert without.path.id == text  # nothing looks at it
    assert build_envelope(without.replace()) == without.source
    assert parse_envelope(WITH_MSMQ).path.id == MessageIdentifier(7, GUID)


@pytest.mark.requirement("SRMP-2.2.5.5-04")
def test_decision_is_one_of_two():
    data = PUBLISHED["4.3-CommitmentReceipt"]
    negative = parse_envelope(changed(data, "positive", "negative"))
    assert negative.commitmentReceipt.decision == "negative"
    for wrong in ("Positive", "", "maybe"):
        path = refused(changed(data, "positive", wrong)).path
        assert path == "Envelope.Header.commitmentReceipt.decision"


@pytest.mark.requirement("SRMP-2.2.6.5-01")
def test_correlation_is_20_bytes_of_base64():
    data = changed(
        WITH_MSMQ, "<BodyType>", "<Correlation>AAECAwQFBgcICQoLDA0ODxAREhM=</Correlation><BodyType>"
    )
    assert parse_envelope(data).Msmq.Correlation == bytes(range(20))
    for wrong in (
        "",
        "AAECAwQFBgcICQoLDA0ODxAREhM",
        "AAEC",
        "-AECAwQFBgcICQoLDA0ODxAREhM=",
        "AAECAwQFBgcI\u00a0CQoLDA0ODxAREhM=",
        "é",
    ):
        exc = refused(changed(data, "AAECAwQFBgcICQoLDA0ODxAREhM=", wrong))
        assert exc.path == "Envelope.Header.Msmq.Correlation"


@pytest.mark.requirement("SRMP-2.2.6.14-02", "SRMP-2.2.6.15-02", "SRMP-2.2.6.16-02")
@pytest.mark.parametrize("name", ["DestinationMqf", "AdminMqf", "ResponseMqf"])
def test_names_are_split_at_white_space(name):
    data = changed(WITH_MSMQ, "<TTrq>", f"<{name}>\r\n http://a/q\thttp://b/q\nhttp://c/q </{name}><TTrq>")
    assert parse_envelope(data).Msmq[name] == ("http://a/q", "http://b/q", "http://c/q")
    other = parse_envelope(changed(data, "http://b/q", "http://b\u00a0/q\u2028"))  # no white space in XML
    assert other.Msmq[name] == ("http://a/q", "http://b\u00a0/q\u2028", "http://c/q")
    assert envelope_from_json(other.to_json()) == other
    assert refused(changed(WITH_MSMQ, "<TTrq>", f"<{name}> </{name}><TTrq>")).path.endswith(name)


@pytest.mark.requirement("SRMP-2.2.5.3.4-02")
def test_stream_receipts_go_to_http_only():
    start = "<start><sendReceiptsTo>{}</sendReceiptsTo></start></stream>"
    for uri in ("http://h/r", "https://h/r", "MSMQ:DIRECT=OS:h\\r", "ftp://h/r"):
        data = xml(PATH, PROPERTIES, SERVICES, STREAM.replace("</stream>", start.format(uri)), MSMQ)
        if uri.startswith("http"):
            assert parse_envelope(data).stream.start.sendReceiptsTo == uri
        else:
            assert refused(data).path == "Envelope.Header.stream.start.sendReceiptsTo"


@pytest.mark.requirement("SRMP-2.2.5.3.4-03")
def test_white_space_around_a_uri():
    start = "<start><sendReceiptsTo>\n\thttp://h/r \r\n</sendReceiptsTo></start></stream>"
    data = xml(PATH, PROPERTIES, SERVICES, STREAM.replace("</stream>", start), MSMQ)
    assert parse_envelope(data).stream.start.sendReceiptsTo == "http://h/r"


@pytest.mark.parametrize("scheme", ["http://", "https://", "MSMQ:MULTICAST="])
@pytest.mark.requirement("SRMP-2.2.4.2-02", "SRMP-2.2.4.2-03", "SRMP-2.2.4.2-04")
def test_what_to_begins_with(scheme):
    assert parse_envelope(changed(SMALL, "http://h", f"{scheme}h")).path.to == f"{scheme}h/q"
    assert refused(changed(SMALL, "http://h", "ftp://h")).path == "Envelope.Header.path.to"


@pytest.mark.requirement("SRMP-2.2.5.2.2-03")
@pytest.mark.requirement("SRMP-2.2.5.2.3-02")
def test_receipts_go_to_http_only():
    asked = '<services se:mustUnderstand="1"><{0}><sendTo>{1}</sendTo></{0}></services>'
    for name in ("deliveryReceiptRequest", "commitmentReceiptRequest"):
        for uri in ("http://h/q", "https://h/q"):
            services = parse_envelope(xml(PATH, PROPERTIES, asked.format(name, uri))).services
            assert services[name].sendTo == uri
        exc = refused(xml(PATH, PROPERTIES, asked.format(name, "MSMQ:DIRECT=OS:h\\q")))
        assert exc.path == f"Envelope.Header.services.{name}.sendTo"


REQUIRED = [
    ("path", PATH, "SRMP-2.2.4-01"),
    ("path.action", "<action>MSMQ:l</action>", "SRMP-2.2.4.1-01"),
    ("path.to", "<to>http://h/q</to>", "SRMP-2.2.4.2-01"),
    ("path.id", f"<id>uuid:7@{GUID}</id>", "SRMP-2.2.4.3-01"),
    ("properties", PROPERTIES, "SRMP-2.2.5.1-01"),
    ("properties.expiresAt", "<expiresAt>20070619T210654</expiresAt>", "SRMP-2.2.5.1.1-01"),
    ("stream.streamId", f"<streamId>{STREAM_ID}</streamId>", "SRMP-2.2.5.3.1-01"),
    ("stream.current", "<current>42</current>", "SRMP-2.2.5.3.2-01"),
    ("Msmq.Class", "<Class>0</Class>", "SRMP-2.2.6.1-01"),
    ("Msmq.Priority", "<Priority>3</Priority>", "SRMP-2.2.6.2-01"),
    ("Msmq.BodyType", "<BodyType>0</BodyType>", "SRMP-2.2.6.9-01"),
    ("Msmq.SourceQmGuid", f"<SourceQmGuid>{GUID}</SourceQmGuid>", "SRMP-2.2.6.13-01"),
    ("Msmq.TTrq", "<TTrq>20070619T210654</TTrq>", "SRMP-2.2.6.17-01"),
    ("Signature.SignedInfo", re.search("<SignedInfo>.*</SignedInfo>", SIGNATURE)[0], "SRMP-2.2.7.1-01"),
    ("Signature.SignatureValue", re.search("<SignatureValue>.*Value>", SIGNATURE)[0], "SRMP-2.2.7.2-01"),
    (
        "Signature.SignedInfo.SignatureMethod",
        re.search("<SignatureMethod .*</SignatureMethod>", SIGNATURE)[0],
        "SRMP-2.2.7.1.1-01",
    ),
    (
        "Signature.SignedInfo.Reference[0].DigestMethod",
        re.search("<DigestMethod .*</DigestMethod>", SIGNATURE)[0],
        "SRMP-2.2.7.1.2.1-01",
    ),
    (
        "Signature.SignedInfo.Reference[0].DigestValue",
        re.search("<DigestValue>.*</DigestValue>", SIGNATURE)[0],
        "SRMP-2.2.7.1.2.2-01",
    ),
]


@pytest.mark.parametrize(
    "path, text, requirement",
    [pytest.param(*row, marks=pytest.mark.requirement(row[2]), id=row[0]) for row in REQUIRED],
)
def test_what_has_to_be_there_once(path, text, requirement):
    data = xml(PATH, PROPERTIES, SERVICES, STREAM, MSMQ, SIGNATURE)
    assert not parse_envelope(data).departures
    for wrong in (changed(data, text, ""), changed(data, text, text + text)):
        exc = refused(wrong)
        assert exc.path == f"Envelope.Header.{path}"
        assert f"({requirement})" in exc.why
        assert exc.offset is not None


@pytest.mark.parametrize(
    "path, requirement",
    [
        pytest.param(path, requirement, marks=pytest.mark.requirement(requirement))
        for path, requirement in [
            ("services.deliveryReceiptRequest.sendTo", "SRMP-2.2.5.2.2-02"),
            ("services.commitmentReceiptRequest.sendTo", "SRMP-2.2.5.2.3-02"),
            ("stream.start.sendReceiptsTo", "SRMP-2.2.5.3.4-02"),
            ("deliveryReceipt.receivedAt", "SRMP-2.2.5.4-03"),
            ("deliveryReceipt.id", "SRMP-2.2.5.4-04"),
            ("commitmentReceipt.decidedAt", "SRMP-2.2.5.5-03"),
            ("commitmentReceipt.decision", "SRMP-2.2.5.5-04"),
            ("commitmentReceipt.id", "SRMP-2.2.5.5-05"),
            ("streamReceipt.streamId", "SRMP-2.2.5.6-02"),
            ("streamReceipt.lastOrdinal", "SRMP-2.2.5.6-03"),
        ]
    ],
)
def test_what_has_to_be_in_a_receipt_or_a_request_for_one(path, requirement):
    for wrong in without_and_twice(path):
        exc = refused(wrong)
        assert exc.path == f"Envelope.Header.{path}"
        assert f"({requirement})" in exc.why


@pytest.mark.parametrize(
    "path, requirement",
    [
        pytest.param(path, requirement, marks=pytest.mark.requirement(requirement))
        for path, requirement in [
            ("properties.sentAt", "SRMP-2.2.5.1.2-01"),
            ("services.durable", "SRMP-2.2.5.2.1-01"),
            ("services.deliveryReceiptRequest", "SRMP-2.2.5.2.2-01"),
            ("services.commitmentReceiptRequest", "SRMP-2.2.5.2.3-01"),
            ("stream.previous", "SRMP-2.2.5.3.3-01"),
            ("stream.start", "SRMP-2.2.5.3.4-01"),
            ("Msmq.Eod", "SRMP-2.2.6.11-01"),
            ("Signature", "SRMP-2.2.7-01"),
        ]
    ],
)
def test_what_may_be_there_once(path, requirement):
    without, twice = without_and_twice(path)
    *groups, last = path.split(".")
    for data, there in [(EVERYTHING, True), (without, False)]:
        content = parse_envelope(data).header
        for group in groups:
            content = content[group]
        assert (last in content) is there
        assert bool(getattr(content, last)) is there
    exc = refused(twice)
    assert exc.path == f"Envelope.Header.{path}"
    assert f"({requirement})" in exc.why


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.requirement(f"SRMP-2.2.{row}"))
        for path, row in [
            ("path.rev", "4.4-01"),
            ("services", "5.2-01"),
            ("services.commitmentReceiptRequest.positiveOnly", "5.2.3-05"),
            ("services.commitmentReceiptRequest.negativeOnly", "5.2.3-06"),
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
            ("Msmq.Eod.First", "6.11-02"),
            ("Msmq.Eod.Last", "6.11-03"),
            ("Msmq.Eod.ConnectorId", "6.11-04"),
            ("Msmq.Provider", "6.12-01"),
            ("Msmq.DestinationMqf", "6.14-01"),
            ("Msmq.AdminMqf", "6.15-01"),
            ("Msmq.ResponseMqf", "6.16-01"),
        ]
    ],
)
def test_other_elements_that_may_be_there_once(path):
    without, twice = without_and_twice(path)
    key = f'"{path.split(".")[-1]}":'
    assert key in json.dumps(parse_envelope(EVERYTHING).to_json())
    assert key not in json.dumps(parse_envelope(without).to_json())
    assert refused(twice).path == f"Envelope.Header.{path}"


@pytest.mark.requirement("SRMP-2.2.2-01", "SRMP-2.2.2-02", "SRMP-2.2.2-03")
@pytest.mark.parametrize(
    "old, new, path",
    [
        (f"{SOAP}", f"{SOAP[:-1]}", "Envelope"),
        ("<se:Header>", "<x/><se:Header>", "Envelope.x"),
        ("<se:Body>", "<x/><se:Body>", "Envelope.x"),
        ("<se:Body></se:Body>", "", "Envelope.Body"),
        ("</se:Header>", "</se:Header><se:Header/>", "Envelope.Header"),
        ("<se:Body></se:Body>", "<se:Body/><se:Body/>", "Envelope.Body"),
        ("<se:Body></se:Body>", "<Body/>", "Envelope.Body"),
    ],
)
def test_header_and_body_stand_first_and_in_this_order(old, new, path):
    assert refused(changed(SMALL, old, new)).path == path
    assert refused(SMALL.replace(b"se:Envelope", b"se:Message")).path == "Envelope"


@pytest.mark.requirement("SRMP-2.2.3-01", "SRMP-2.2.3-02", "SRMP-2.2.3-03", "SRMP-2.2.3-04", "SRMP-2.2.3-08")
def test_namespaces_are_exact():
    assert refused(changed(SMALL, "soap.org/rp/", "soap.org/rp")).path == "Envelope.Header.path"
    assert refused(changed(SMALL, "soap.org/srmp/", "soap.org/srmp")).path == "Envelope.Header.properties"
    assert refused(changed(SMALL, "soap/envelope/", "soap/envelope")).path == "Envelope"
    other = parse_envelope(changed(WITH_MSMQ, "msmq.namespace.xml", "msmq.namespace.XML"))
    assert other.Msmq is None
    assert [item.path for item in other.unknown] == ["Envelope.Header"]


@pytest.mark.requirement("SRMP-2.2.5-02")
def test_the_namespace_of_srmp_may_be_declared_in_other_places():
    """On each element, or on Header."""
    on_srmp = 'xmlns="http://schemas.xmlsoap.org/srmp/"'
    declared = PROPERTIES.replace("<properties", f"<properties {on_srmp}")
    undeclared = f'="{SOAP}" {on_srmp}', f'="{SOAP}"'
    data = changed(xml(PATH, declared), *undeclared)
    assert parse_envelope(data) == parse_envelope(SMALL)
    data = changed(changed(SMALL, *undeclared), "<se:Header>", f"<se:Header {on_srmp}>")
    assert parse_envelope(data) == parse_envelope(SMALL)


@pytest.mark.requirement("SRMP-2.2.5.1-02", "SRMP-2.2.5.3-02", "SRMP-2.2.5.2-02", "SRMP-2.2.4-03")
@pytest.mark.parametrize("name", ["path", "properties", "services", "stream"])
@pytest.mark.parametrize(
    "mark", ["", ' se:mustUnderstand="0"', ' mustUnderstand="1"', ' se:mustUnderstand=""']
)
def test_groups_that_have_to_be_understood_say_so(name, mark):
    data = xml(PATH, PROPERTIES, SERVICES, STREAM, MSMQ).decode()
    wrong = re.sub(rf'(<{name}\b[^>]*) se:mustUnderstand="1"', rf"\1{mark}", data)
    exc = refused(wrong.encode())
    assert exc.path == f"Envelope.Header.{name}"
    assert "mustUnderstand" in exc.why


@pytest.mark.requirement("SRMP-2.2.6-01")
def test_msmq_may_be_there_once():
    assert parse_envelope(SMALL).Msmq is None
    assert refused(xml(PATH, PROPERTIES, MSMQ, MSMQ)).path == "Envelope.Header.Msmq"


@pytest.mark.requirement("SRMP-2.2.5.3-03")
def test_a_stream_needs_msmq():
    data = xml(PATH, PROPERTIES, SERVICES, STREAM)
    exc = refused(data)
    assert (exc.path, exc.offset) == ("Envelope.Header.stream", data.index(b"<stream "))


@pytest.mark.requirement("SRMP-2.2.4.4-01", "SRMP-2.2.4.4-02", "SRMP-2.2.4.4-03")
def test_rev_has_one_via():
    def with_rev(inner: str) -> bytes:
        return changed(SMALL, "</path>", f"<rev>{inner}</rev></path>")

    for uri in ("http://h/r", "https://h/r", "MSMQ:DIRECT=OS:h\\r"):
        assert parse_envelope(with_rev(f"<via>{uri}</via>")).path.rev.via == uri
    assert parse_envelope(SMALL).path.rev is None
    for wrong in ("", "<via>http://h/r</via><via>http://h/s</via>", "<via/><via/>"):
        assert refused(with_rev(wrong)).path == "Envelope.Header.path.rev.via"


@pytest.mark.requirement("SRMP-2.2.4.4-04", "SRMP-2.2.4.4-05")
@pytest.mark.parametrize(
    "form, departs", [("<via/>", False), ("<via />", False), ("<via></via>", True), ("<via> </via>", True)]
)
def test_an_empty_via_is_no_rev(form, departs):
    envelope = parse_envelope(changed(SMALL, "</path>", f"<rev>{form}</rev></path>"))
    assert envelope.path.rev is None
    assert [item.requirement for item in envelope.departures] == ["SRMP-2.2.4.4-05"] * departs
    assert build_envelope(envelope.replace()) == SMALL
    with pytest.raises(InvalidValue):
        build_envelope(envelope.replace(path=envelope.path.replace(rev={"via": ""})))


@pytest.mark.requirement("SRMP-2.2.5-03", "SRMP-2.2.6-04")
def test_children_in_another_order():
    envelope = parse_envelope(xml(MSMQ, SERVICES, PROPERTIES, PATH))
    assert envelope == parse_envelope(xml(PATH, PROPERTIES, SERVICES, MSMQ))
    assert {item.requirement for item in envelope.departures} == {"SRMP-2.2.5-03"}
    swapped = changed(
        WITH_MSMQ, "<Class>0</Class><Priority>3</Priority>", "<Priority>3</Priority><Class>0</Class>"
    )
    assert parse_envelope(swapped).departures == (
        Departure("SRMP-2.2.6-04", "Envelope.Header.Msmq.Class", "after Priority"),
    )


@pytest.mark.requirement("SRMP-2.2.6.12-01", "SRMP-2.2.6.12-02", "SRMP-2.2.6.12-03")
def test_a_provider_may_lack_one_of_its_parts():
    def with_provider(inner: str) -> Envelope:
        return parse_envelope(changed(WITH_MSMQ, "<SourceQm", f"<Provider>{inner}</Provider><SourceQm"))

    whole = with_provider("<Type>1234</Type><Name>N</Name>")
    assert (whole.Msmq.Provider.Type, whole.Msmq.Provider.Name, whole.departures) == (1234, "N", ())
    for inner, lacks in [("<Type>1</Type>", "SRMP-2.2.6.12-03"), ("<Name>N</Name>", "SRMP-2.2.6.12-02")]:
        part = with_provider(inner)
        assert [item.requirement for item in part.departures] == [lacks]
        assert build_envelope(part.replace()) == part.source


@pytest.mark.requirement("SRMP-2.2.7.1.2-01")
def test_a_signature_has_up_to_two_references():
    reference = re.search("<Reference.*</Reference>", SIGNATURE)[0]
    for count in range(3):
        data = xml(PATH, PROPERTIES, SIGNATURE.replace(reference, reference * count))
        references = parse_envelope(data).Signature.SignedInfo.Reference
        assert [item.URI for item in references] == [f"cid:body@{GUID}"] * count
    exc = refused(xml(PATH, PROPERTIES, SIGNATURE.replace(reference, reference * 3)))
    assert exc.path == "Envelope.Header.Signature.SignedInfo.Reference[2]"


@pytest.mark.requirement("SRMP-2.2.2-05")
def test_the_content_of_the_soap_body_is_ignored():
    envelope = parse_envelope(changed(SMALL, "<se:Body></se:Body>", "<se:Body><a>b</a>c</se:Body>"))
    assert envelope == parse_envelope(SMALL)
    assert [item.requirement for item in envelope.departures] == ["SRMP-2.2.2-04"]
    assert build_envelope(envelope.replace()) == SMALL
    blank = parse_envelope(changed(SMALL, "<se:Body></se:Body>", "<se:Body>\n</se:Body>"))
    assert not blank.departures


@pytest.mark.parametrize("place", ["</path>", "<to>", "</se:Header>", "</se:Envelope>", "</Msmq>"])
def test_text_between_elements(place):
    assert "text between" in refused(changed(WITH_MSMQ, place, f"x{place}")).why
    assert parse_envelope(changed(WITH_MSMQ, place, f" \r\n\t{place}")) == parse_envelope(WITH_MSMQ)


def test_elements_inside_a_text():
    assert refused(changed(SMALL, "http://h/q", "http://h/<b/>q")).path == "Envelope.Header.path.to"
    assert refused(changed(WITH_MSMQ, "<BodyType>", "<Journal>x</Journal><BodyType>")).path.endswith(
        ".Journal"
    )


def test_comments_and_sections_are_part_of_the_text():
    data = changed(SMALL, "MSMQ:l", "MS<!-- -->MQ:<?a b?><![CDATA[<l>]]>&#x41;")
    assert parse_envelope(data).path.action == "MSMQ:<l>A"
