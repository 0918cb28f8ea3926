"""What lint finds in whole messages of SRMP, each fault by itself, at its byte."""

from __future__ import annotations

import base64
import hashlib
import pickle
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import msmqwire.srmp
from msmqwire.analysis.lint import Finding, checks, lint, lint_srmp
from msmqwire.analysis.lint.srmp import DEPARTURES
from msmqwire.analysis.lint.srmp_attacks import NOT_CONFORMING, NOT_MIME, REFUSALS
from msmqwire.analysis.lint.srmp_bodies import SRMP
from msmqwire.analysis.lint.srmp_offsets import PartOffsets
from msmqwire.srmp.elements import Blank, Element, Group, Ignored
from msmqwire.srmp.fields import Field
from msmqwire.srmp.http_message import Chunking, HttpMessage
from msmqwire.srmp.message import SrmpMessage, parse_message
from msmqwire.srmp.multipart import Multipart, envelope_part
from msmqwire.srmp.schema import ENVELOPE
from tests.support.srmp.srmp_envelopes import EVERYTHING, GUID, PATH, PROPERTIES, xml
from tests.support.srmp.srmp_messages import MESSAGES, changed, relengthened

USER, STREAM, DELIVERY, COMMITMENT, ORDER, MULTICAST = "4.2", "4.4-1", "4.3-3", "4.3-5", "4.4-2", "4.5"
HEADER = "Envelope.Header"
MSMQ, MSMQ_PATH = "</Msmq>", f"{HEADER}.Msmq"
ROUTING = 'xmlns="http://schemas.xmlsoap.org/rp/"'
INFO = f"{HEADER}.Signature.SignedInfo"
QM = "caf195ea-615c-4264-ae08-11a4e60194c0"
BODY = parse_message(MESSAGES[USER]).body or b""
DSIG = "http://www.w3.org/2000/02/xmldsig#"
BODY_URI, EXTENSION_URI = f"cid:body@{QM}", f"cid:extension@{QM}"


def found(data: bytes) -> set[Finding]:
    return set(lint(data, protocol="srmp"))


def new(name: str, data: bytes) -> list[tuple[str, str, str, bytes]]:
    """The findings that the published message does not have, and the bytes that they point at."""
    before = {(f.id, f.path) for f in found(MESSAGES[name])}
    findings = [f for f in lint(data, protocol="srmp") if (f.id, f.path) not in before]
    assert [f.offset for f in findings] == sorted(f.offset for f in findings)
    return [(f.id, f.severity, f.path, data[f.offset : f.offset + 32]) for f in findings]


def check(name: str, data: bytes, *expected: tuple[str, str, str, str]) -> None:
    findings = new(name, data)
    assert [finding[:3] for finding in findings] == [finding[:3] for finding in expected]
    for (*_, place), (*_, text) in zip(findings, expected, strict=True):
        assert place.startswith(text.encode())


# --- envelopes ---------------------------------------------------------------------------------------------

AT_STREAM = f"{HEADER}.stream"
COMMIT = f"{HEADER}.services.commitmentReceiptRequest"
SERVICES = '<services se:mustUnderstand="1">{}</services>'


DECIDED = (
    "<commitmentReceipt><decidedAt>20070719T032721</decidedAt><decision>positive</decision>"
    "<id>uuid:1@00000000-0000-0000-0000-000000000000</id></commitmentReceipt>"
)


def services(inside: str) -> tuple[str, str]:
    return "<Msmq ", SERVICES.format(inside) + "<Msmq "


def commitment(inside: str, to: str = "http://m/q") -> str:
    return f"<commitmentReceiptRequest><sendTo>{to}</sendTo>{inside}</commitmentReceiptRequest>"


def stream(inside: str) -> tuple[str, str]:
    text = f'<stream se:mustUnderstand="1"><streamId>uid:{QM}\\1</streamId>{inside}</stream><Msmq '
    return "<Msmq ", SERVICES.format("<durable/>") + text


CASES: list[tuple[str, list[tuple[str, str]], list[tuple[str, str, str, str]]]] = [
    (USER, [("<se:Envelope ", '<?xml version="1.0"?><se:Envelope ')],
     [("SRMP-2.2-01", "SHOULD", "Envelope", "<se:Envelope ")]),
    (USER, [("<Msmq ", '<Msmq a=">" ')], []),
    (USER, [(MSMQ, "<a:New xmlns:a='urn:a'/></Msmq>")],
     [("SRMP-2.2.3-07", "SHOULD", MSMQ_PATH, "<Msmq ")]),
    (USER, [(f"<path {ROUTING}", f"<r:path {ROUTING.replace('=', ':r=', 1)}"),
            ("<action>MSMQ:</action>", "<r:action>MSMQ:</r:action>"),
            ("<to>", "<r:to>"), ("</to>", "</r:to>"), ("<id>", "<r:id>"), ("</id>", "</r:id>"),
            ("</path>", "</r:path>")],
     [("SRMP-2.2.4-02", "MUST", f"{HEADER}.path", "<r:path ")]),
    (USER, [("MSMQ:<", f"MSMQ:{'l' * 249}<")], []),
    (USER, [("MSMQ:<", f"MSMQ:{'l' * 250}<")],
     [("SRMP-2.2.4.1-07", "MUST", f"{HEADER}.path.action", "<action>")]),
    (USER, [("</id>", "</id><rev><via>DIRECT=OS:h\\q</via></rev>")],
     [("SRMP-2.2.4.4-03-URI", "SHOULD", f"{HEADER}.path.rev.via", "<via>DIRECT=")]),
    (USER, [("20380119T031407", "20070719T031139")],
     [("SRMP-3.1.7.2.1-02", "MUST", f"{HEADER}.properties.expiresAt", "<expiresAt>")]),
    (USER, [("20070723T031140", "20070719T031139")],
     [("SRMP-3.1.7.2.1-02", "MUST", f"{MSMQ_PATH}.TTrq", "<TTrq>")]),
    (USER, [("20070723T031140", "20070719T031140"), ("20380119T031407", "20070719T031140")], []),
    (USER, [services(commitment(""))],
     [("SRMP-2.2.5.2.3-09", "SHOULD", COMMIT, "<commitmentReceiptRequest>")]),
    (USER, [services(commitment("<negativeOnly/>"))], []),
    (USER, [services("<deliveryReceiptRequest><sendTo>http://m/a</sendTo></deliveryReceiptRequest>"
                     + commitment("<positiveOnly/>"))],
     [("SRMP-2.2.5.2.3-04-QUEUES", "SHOULD", f"{COMMIT}.sendTo", "<sendTo>http://m/q")]),
    (USER, [stream("<current>0</current>")],
     [("SRMP-2.2.5.3.2-02", "MUST", f"{AT_STREAM}.current", "<current>0")]),
    (USER, [stream("<current>3</current><previous>2</previous>")], []),
    (USER, [stream("<current>3</current><previous>1</previous>")], []),
    (USER, [stream("<current>3</current><previous>3</previous>")],
     [("SRMP-2.2.5.3.3-02", "MUST", f"{AT_STREAM}.previous", "<previous>3")]),
    (USER, [stream("<current>3</current><previous>0</previous>")],
     [("SRMP-3.1.7.2.4-18", "MUST", f"{AT_STREAM}.previous", "<previous>0")]),
    (USER, [stream("<current>2</current><start><sendReceiptsTo>http://m/q</sendReceiptsTo></start>")],
     [("SRMP-2.2.5.3.4-05", "MUST", f"{AT_STREAM}.start", "<start>")]),
    (USER, [stream("<current>1</current>")],
     [("SRMP-2.2.5.3.4-06", "MUST", f"{AT_STREAM}.start", "<stream ")]),
    (USER, [("<Class>0<", "<Class>2<")],
     [("SRMP-3.1.5.1.5-01", "MUST", f"{MSMQ_PATH}.Class", "<Class>2")]),
    (USER, [("<Class>0<", "<Class>256<")], []),  # of an application: SRMP-3.1.5.1.5-10
    (DELIVERY, [("<Class>2<", "<Class>0<")],
     [("SRMP-3.1.5.1.5-03", "MUST", f"{MSMQ_PATH}.Class", "<Class>0")]),
    (DELIVERY, [("<deliveryReceipt>", f"{DECIDED}<deliveryReceipt>")],
     [("SRMP-2.2.5-03", "SHOULD", f"{HEADER}.deliveryReceipt", "<deliveryReceipt>"),
      ("SRMP-3.1.5.1.5-01", "MUST", f"{HEADER}.deliveryReceipt", "<deliveryReceipt>")]),
    (DELIVERY, [("AAAAEAAAA=", "AAAAIAAAA=")],
     [("SRMP-2.2.5.4-07", "SHOULD", f"{MSMQ_PATH}.Correlation", "<Correlation>")]),
    (COMMITMENT, [("uuid:1@", "uuid:2@")],
     [("SRMP-2.2.5.4-07", "SHOULD", f"{MSMQ_PATH}.Correlation", "<Correlation>")]),
    (COMMITMENT, [("positive", "negative")],
     [("SRMP-3.1.5.1.5-06", "MUST", f"{MSMQ_PATH}.Class", "<Class>16384")]),
    (COMMITMENT, [("positive", "negative"), ("16384", "49156")], []),  # SRMP-3.1.5.1.5-09
    (ORDER, [("<Class>255<", "<Class>254<")],
     [("SRMP-3.1.5.1.5-04", "MUST", f"{MSMQ_PATH}.Class", "<Class>254")]),
    (ORDER, [("QM Ordering Ack", "qm ordering ack")],
     [("SRMP-2.2.4.1-06", "MUST", f"{HEADER}.path.action", "<action>MSMQ:qm")]),
    (MULTICAST, [("234.1.1.1:8001", "234.1.1.2:8001")],
     [("SRMP-2.1.2-03", "SHOULD", "RequestLine", "POST "),
      ("SRMP-2.1.2-03", "SHOULD", "HeaderFields.Host", "Host: ")]),
    (USER, [("http://machine2/", "http://machine3/")],
     [("SRMP-2.1.1-06-TO", "SHOULD", "HeaderFields.Host", "Host: machine2")]),
    (USER, [("http://machine2/", "http://MACHINE2:80/")], []),
    (USER, [("simpleQ", "other")], [("SRMP-2.1.1-04-TARGET", "SHOULD", "RequestLine", "POST ")]),
    (USER, [("private$/simpleQ", "private%24/SimpleQ")], []),
]  # fmt: skip


def rows_of(expected: list[tuple[str, str, str, str]]) -> pytest.MarkDecorator:
    """A rule has the id of its row, with a word after it if the row has several rules."""
    return pytest.mark.requirement(*(re.sub("-[A-Z]+$", "", id) for id, *_ in expected))


@pytest.mark.parametrize(
    "name, changes, expected",
    [pytest.param(*case, marks=[rows_of(case[2])] if case[2] else []) for case in CASES],
)
def test_each_rule_is_found_alone(name: str, changes: Any, expected: Any) -> None:
    check(name, changed(name, *changes), *expected)


@pytest.mark.requirement("SRMP-2.2.6-02")
def test_msmq_and_signature_declare_their_namespaces() -> None:
    """Not above them, nor as prefix."""
    text = parse_message(MESSAGES[USER]).envelope_bytes or b""
    msmq = text[text.index(b"<Msmq ") : text.index(b"</Msmq>")].split(b">", 1)[1].decode()
    prefixed = re.sub("<(/?)", r"<\1m:", msmq)
    data = changed(USER, (f'<Msmq xmlns="msmq.namespace.xml">{msmq}</Msmq>', f"<m:Msmq>{prefixed}</m:Msmq>"),
                   ("<se:Header>", '<se:Header xmlns:m="msmq.namespace.xml">'))  # fmt: skip
    check(USER, data, ("SRMP-2.2.6-02", "MUST", MSMQ_PATH, "<m:Msmq>"))
    signature = signed(
        info(reference(BODY_URI)),
        start=f'<s:Signature xmlns:s="{DSIG}" xmlns="{DSIG}">',
        end="</s:Signature>",
    )
    check(USER, signature, ("SRMP-2.2.7-02", "MUST", f"{HEADER}.Signature", "<s:Signature "))


@pytest.mark.requirement("SRMP-2.2.6-01")
def test_a_message_without_msmq() -> None:
    assert [(f.id, f.severity) for f in found(MESSAGES["4.1"])] == [("SRMP-2.2.6-01-ABSENT", "SHOULD")]


def test_many_unknown_elements_are_counted() -> None:
    for count, told in ((16, 16), (17, 17), (1000, 17)):
        data = changed(USER, (MSMQ, "".join(f"<New{n}/>" for n in range(count)) + MSMQ))
        findings = [f for f in found(data) if f.id == "SRMP-2.2.3-07"]
        assert len(findings) == told
        assert any(f"{count:,} elements" in f.message for f in findings) == (count > 16)


# --- parts and HTTP ----------------------------------------------------------------------------------------


def message(name: str) -> SrmpMessage:
    return parse_message(MESSAGES[name])


def with_part(name: str, content: bytes, content_id: str) -> bytes:
    """A message whose body is replaced."""
    parsed = message(name)
    assert isinstance(parsed.content, Multipart)
    envelope, body = parsed.content.parts
    fields = tuple(Field(f.name, content_id) if f.name == "Content-Id" else f for f in body.fields)
    parts = (envelope, replace(body, content=content, fields=fields))
    return relengthened(replace(parsed, content=replace(parsed.content, parts=parts)))


def test_parts_are_named_after_the_sender() -> None:
    path = "Multipart.Parts[1].HeaderFields.Content-Id"
    data = with_part(USER, b"x", f"body@{GUID}")
    check(USER, data, ("SRMP-2.2.2-11-SOURCE", "NOTE", path, f"Content-Id: body@{str(GUID)[:5]}"))
    data = with_part(USER, b"x", f"extension@{GUID}")
    check(USER, data, ("SRMP-2.2.2-12-SOURCE", "NOTE", path, "Content-Id: extension@"))
    check(USER, with_part(USER, b"x", f"<body@{QM.upper()}>"), (
        "SRMP-2.2.2-11", "SHOULD", path, "Content-Id: <body@"
    ))  # fmt: skip


@pytest.mark.requirement("SRMP-2.2.2-18", "SRMP-2.1.3.1-15")
def test_sizes() -> None:
    body = f"body@{QM}"
    check(USER, with_part(USER, bytes(0x40_0000), body))
    check(USER, with_part(USER, bytes(0x40_0001), body), (
        "SRMP-2.2.2-18", "SHOULD", "Multipart.Parts", "--MSMQ - SOAP"
    ))  # fmt: skip
    sender = "body@32221eda-9376-46df-b6ed-783091123831"
    room = 0x1_0000 - len(with_part(MULTICAST, bytes(60_000), sender)) + 60_000
    assert len(with_part(MULTICAST, bytes(room), sender)) == 0x1_0000
    check(MULTICAST, with_part(MULTICAST, bytes(room), sender))
    check(MULTICAST, with_part(MULTICAST, bytes(room + 1), sender), (
        "SRMP-2.1.3.1-15", "SHOULD", "", "POST "
    ))  # fmt: skip


@pytest.mark.requirement("SRMP-2.2.2-08")
def test_a_receipt_with_parts() -> None:
    parsed = message(DELIVERY)
    assert isinstance(parsed.content, bytes)
    boundary = "MSMQ - SOAP boundary, 1"
    fields = tuple(
        Field(f.name, f'multipart/related; boundary="{boundary}"; type=text/xml')
        if f.name == "Content-Type"
        else f
        for f in parsed.fields
    )
    content = Multipart(boundary, (envelope_part(parsed.content),))
    data = relengthened(replace(parsed, fields=fields, content=content))
    check(DELIVERY, data, ("SRMP-2.2.2-08", "MUST", "Multipart.Parts", "--MSMQ - SOAP"))


@pytest.mark.requirement("SRMP-2.1.1-12")
def test_a_response_with_an_entity() -> None:
    response = b"HTTP/1.1 %s\r\nContent-Length: 4\r\n\r\nbody"
    data = response % b"200 OK"
    assert [(f.id, f.path, data[f.offset :]) for f in found(data)] == [("SRMP-2.1.1-12", "Entity", b"body")]
    assert found(response % b"400 Bad Request") == found(MESSAGES["4.3-2"]) == set()


def test_places_in_chunks_are_those_of_the_message() -> None:
    parsed = message(USER)
    assert isinstance(parsed.content, Multipart)
    entity = parsed.content.to_bytes()
    fields = tuple(
        Field("Transfer-Encoding", "chunked") if f.name == "Content-Length" else f for f in parsed.fields
    )
    for sizes in ([len(entity)], [1] * 700 + [len(entity) - 700], [699, len(entity) - 699]):
        chunking = Chunking((*(f"{size:x};a=b" for size in sizes), "0"))
        chunked = replace(parsed, fields=fields, chunking=chunking)
        places = PartOffsets(chunked)
        http = HttpMessage(chunked.start, fields, entity, chunking)  # type: ignore[arg-type]
        data = chunked.to_bytes()
        for path, text in ((f"{HEADER}.properties", b"<properties "), ("Multipart.Parts[1]", b"--MSMQ")):
            at = entity.index(text, 1)
            assert places.of(path) == http.offset_of(at)
            assert data[places.of(path)] == text[0]
        assert {f.id for f in lint_srmp(chunked)} == {"SRMP-2.1.1-11"}


# --- signatures --------------------------------------------------------------------------------------------


def digest(content: bytes, name: str = "sha1") -> str:
    return base64.b64encode(hashlib.new(name, content).digest()).decode()


def reference(uri: str, value: str = "", method: str = "sha1") -> str:
    value = value or digest(BODY, method if method in ("sha1", "md5") else "sha1")
    return (
        f'<Reference URI="{uri}"><DigestMethod Algorithm="{DSIG}{method}"></DigestMethod>'
        f"<DigestValue>{value}</DigestValue></Reference>"
    )


def info(*references: str, method: str = f"{DSIG}dsa") -> str:
    signature_method = f'<SignatureMethod Algorithm="{method}"></SignatureMethod>'
    return f"<SignedInfo>{signature_method}{''.join(references)}</SignedInfo>"


def signed(inside: str, *, start: str = f'<Signature xmlns="{DSIG}">', end: str = "</Signature>") -> bytes:
    text = f"{start}{inside}<SignatureValue>AAAA</SignatureValue>{end}"
    return changed(USER, (MSMQ, MSMQ + text))


OTHER = digest(b"other")
SIGNATURES: list[tuple[str, list[tuple[str, str, str]]]] = [
    (info(reference(BODY_URI)), []),
    (info(reference(BODY_URI, method="md5")), []),
    (info(reference(BODY_URI), method="http://www.w3.org/2000/09/xmldsig#dsa"),
     [("SRMP-3.1.5.1.6.1-05", f"{INFO}.SignatureMethod", "<SignatureMethod ")]),
    (info(), [("SRMP-3.1.5.1.6.1-06", INFO, "<SignedInfo>"), ("SRMP-2.2.7.1.2-02", INFO, "<SignedInfo>")]),
    (info(reference(BODY_URI), reference(EXTENSION_URI)),
     [("SRMP-3.1.5.1.6.1-09", f"{INFO}.Reference[1]", "<Reference URI=\"cid:ext")]),
    (info(reference(BODY_URI), reference(BODY_URI)),
     [("SRMP-3.1.5.1.6.1-10", f"{INFO}.Reference[1]", "<Reference ")]),
    (info(reference(BODY_URI, method="sha256")),
     [("SRMP-3.1.5.1.6.1-13", f"{INFO}.Reference[0].DigestMethod", "<DigestMethod ")]),
    (info(reference(BODY_URI, OTHER)),
     [("SRMP-3.1.5.1.6.1-16", f"{INFO}.Reference[0].DigestValue", "<DigestValue>")]),
    (info(reference(BODY_URI, OTHER, "md5")),
     [("SRMP-3.1.5.1.6.1-15", f"{INFO}.Reference[0].DigestValue", "<DigestValue>")]),
]  # fmt: skip


@pytest.mark.parametrize("inside, expected", SIGNATURES)
def test_what_is_wrong_with_a_signature_without_its_key(inside: str, expected: Any) -> None:
    check(USER, signed(inside), *((id, "MUST", path, text) for id, path, text in expected))


def test_signatures_of_an_extension() -> None:
    def ids(inside: str) -> list[str]:
        parsed = parse_message(signed(inside))
        assert isinstance(parsed.content, Multipart)
        envelope, body = parsed.content.parts
        fields = tuple(Field(f.name, f"extension@{QM}") if f.name == "Content-Id" else f for f in body.fields)
        content = replace(parsed.content, parts=(envelope, replace(body, fields=fields)))
        return [f.id for f in lint_srmp(replace(parsed, content=content))]

    assert ids(info(reference(EXTENSION_URI))) == []
    assert ids(info(reference(EXTENSION_URI, OTHER))) == ["SRMP-3.1.5.1.6.1-18"]
    assert ids(info(reference(EXTENSION_URI, OTHER, "md5"))) == ["SRMP-3.1.5.1.6.1-17"]
    both = info(reference(EXTENSION_URI), reference(EXTENSION_URI))
    assert ids(both) == ["SRMP-3.1.5.1.6.1-11"]
    assert ids(info(reference(BODY_URI))) == ["SRMP-2.2.7.1.2-03", "SRMP-3.1.5.1.6.1-08"]


# --- the published messages, and the list of rules ---------------------------------------------------------


def test_what_windows_sends_has_no_finding() -> None:
    """4.2 and 4.5 are messages that it made; all others depart from the text, as the specification says."""
    assert [name for name in MESSAGES if not found(MESSAGES[name])] == [
        "4.2", "4.3-2", "4.3-4", "4.3-6", "4.5"
    ]  # fmt: skip
    for name in ("4.3-3", "4.3-5", "4.4-2", "4.4-4", "4.4-6"):
        assert [f.id for f in found(MESSAGES[name])] == ["SRMP-2.2.4-05"]
    assert {f.id for f in found(MESSAGES["4.3-1"])} == {
        "SRMP-2.2.4-02", "SRMP-2.2.4.1-02", "SRMP-2.2.5.2.3-04-QUEUES", "SRMP-2.2.6-01-ABSENT",
        "SRMP-3.1.7.2.4-11", "SRMP-3.1.7.2.4-13",
    }  # fmt: skip
    assert {f.id for f in found(MESSAGES["4.4-1"])} == {
        "SRMP-2.2.2-11-SOURCE", "SRMP-2.2.4.3-04", "SRMP-2.2.5.2.1-02", "SRMP-2.2.5.3-06"
    }  # fmt: skip


def test_an_envelope_alone() -> None:
    data = xml(PROPERTIES, PATH)
    assert {(f.id, data[f.offset : f.offset + 5]) for f in found(data)} == {
        ("SRMP-2.2.6-01-ABSENT", b"<se:H"), ("SRMP-2.2.5-03", b"<path")
    }  # fmt: skip


def elements(element: Element = ENVELOPE) -> Iterator[Element]:
    yield element
    for child in element.children if isinstance(element, Group) else ():
        yield from elements(child)


def test_every_departure_is_listed() -> None:
    told: set[str] = set()
    for element in elements():
        told |= {*element.also.values(), element.lenient}
        if isinstance(element, Ignored) and element.departure:
            told.add(element.req[0])
        if isinstance(element, Blank):
            told.add(element.req[1])
        if isinstance(element, Group):
            told |= {element.order_req, element.void_req}
    package = Path(msmqwire.srmp.__file__).parent
    for name in ("departures", "rules"):
        told |= set(re.findall(r'"(SRMP-[\d.]+-\d+)"', (package / f"{name}.py").read_text()))
    refused = {"SRMP-2.2.4.3-07", "SRMP-2.2.5.3-03"}
    assert told - {""} - refused == set(DEPARTURES)


@pytest.mark.parametrize(
    ("group", "first", "id"),
    [
        pytest.param(group, first, f"SRMP-{row}", marks=pytest.mark.requirement(f"SRMP-{row}"))
        for group, first, row in [
            ("properties", "expiresAt", "3.1.7.2.4-08"),
            ("services", "durable", "3.1.7.2.4-11"),
            ("commitmentReceiptRequest", "sendTo", "3.1.7.2.4-13"),
            ("stream", "streamId", "3.1.7.2.4-15"),
            ("deliveryReceipt", "receivedAt", "2.2.5.4-03"),
            ("commitmentReceipt", "decidedAt", "2.2.5.5-03"),
            ("streamReceipt", "streamId", "2.2.5.6-02"),
            ("Msmq", "Class", "2.2.6-04"),
            ("Eod", "First", "3.1.7.2.4-30"),
            ("Provider", "Type", "3.1.7.2.4-31"),
            ("SignedInfo", "SignatureMethod", "3.1.7.2.4-38"),
            ("Reference", "DigestMethod", "3.1.7.2.4-39"),
            ("Signature", "SignedInfo", "3.1.7.2.4-44"),
        ]
    ],
)
def test_elements_out_of_order_are_found(group: str, first: str, id: str) -> None:
    """The first element of a group stands last."""
    text = EVERYTHING.decode()
    assert not [finding for finding in found(EVERYTHING) if finding.id == id]
    (whole,) = [each[0] for each in re.finditer(rf"<{group}(?: [^>]*)?>.*?</{group}>", text, re.DOTALL)][:1]
    element = re.search(rf"<{first}(?: [^>]*)?(?:/>|>.*?</{first}>)", whole, re.DOTALL)
    assert element is not None
    end = f"</{group}>"
    moved = whole.replace(element[0], "", 1).replace(end, element[0] + end)
    findings = [f for f in found(text.replace(whole, moved, 1).encode()) if f.id == id]
    assert [finding.severity for finding in findings] == ["SHOULD" if id == "SRMP-2.2.6-04" else "MUST"]
    assert findings[0].path.split(".")[-2].startswith(group)


@pytest.mark.parametrize(
    ("name", "id"),
    [
        pytest.param(name, id, marks=pytest.mark.requirement(id))
        for name, id in [("Type", "SRMP-2.2.6.12-02"), ("Name", "SRMP-2.2.6.12-03")]
    ],
)
def test_a_provider_without_a_part_is_found(name: str, id: str) -> None:
    provider = re.search("<Provider>.*</Provider>", EVERYTHING.decode())
    assert provider is not None
    part = re.sub(f"<{name}>.*</{name}>", "", provider[0])
    data = EVERYTHING.replace(provider[0].encode(), part.encode())
    before = {finding.id for finding in found(EVERYTHING)}
    assert {f.id: f.severity for f in found(data) if f.id not in before} == {id: "MUST"}


def test_every_rule_has_a_case() -> None:
    """Departures have theirs in the tests of the codec."""
    elsewhere = {*DEPARTURES.values(), *REFUSALS.values(), NOT_CONFORMING, NOT_MIME}
    rules = {check.id for check in checks() if check.kinds == SRMP and check not in elsewhere}
    source = Path(__file__).read_text()
    assert {id for id in rules if not id.startswith("ATTACK") and f'"{id}"' not in source} == set()


def test_findings_of_a_parsed_and_a_made_message_are_the_same() -> None:
    for name, data in MESSAGES.items():
        parsed = parse_message(data)
        made = SrmpMessage(parsed.start, parsed.fields, parsed.content, parsed.chunking)
        assert lint_srmp(made) == lint(parsed) == lint(data, protocol="srmp"), name
        assert pickle.loads(pickle.dumps(lint_srmp(made))) == lint_srmp(made)
