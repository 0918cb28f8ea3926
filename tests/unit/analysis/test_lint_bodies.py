"""What lint says of bodies that run over a careless receiver, and that it says nothing of ordinary ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import msmqwire
from msmqwire.analysis.lint import lint_srmp
from msmqwire.analysis.lint.bodies import document_type
from msmqwire.bodies.nrbf.records import Binary
from msmqwire.srmp.message import parse_message
from msmqwire.srmp.multipart import BODY_ID, Multipart
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.nrbf_streams import array, klass, order, stream
from tests.support.paths import EXAMPLES, ROOT
from tests.support.srmp.srmp_messages import MESSAGES, changed, relengthened

OURS = ("ATTACK-BODY-DTD", "ATTACK-BODY-BINARY", "ATTACK-BODY-GADGET")
DTD = b'<?xml version="1.0"?>\n<!-- a -->\n<!DOCTYPE order [<!ENTITY x SYSTEM "file:///etc/passwd">]><order>&x;</order>'
NRBF = b"\0\1\0\0\0\xff\xff\xff\xff\1\0\0\0\0\0\0\0\6\1\0\0\0\5hello\x0b"


def found(body: bytes, **more: bytes) -> list[tuple[str, str, str]]:
    """Id, path and message of the findings about the body of a message."""
    packet = h.user_message(properties=h.properties_header(body=body), **more)
    return [(one.id, one.path, one.message) for one in msmqwire.lint(packet) if one.id in OURS]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (DTD, "the document type 'order', with declarations in it"),
        (b'\xef\xbb\xbf<!DOCTYPE a SYSTEM "http://10.0.0.1/a.dtd"><a/>', "the document type 'a'"),
        ('<!DOCTYPE a PUBLIC "x" "y"><a/>'.encode("utf-16-le"), "the document type 'a'"),
        ("\ufeff<?xml version='1.0'?><!DOCTYPE a[]><a/>".encode("utf-16-le"),
         "the document type 'a', with declarations in it"),
    ],
)  # fmt: skip
def test_a_document_type(body: bytes, said: str) -> None:
    assert document_type(body) == said
    assert found(body) == [("ATTACK-BODY-DTD", "MessagePropertiesHeader.MessageBody", said)]


@pytest.mark.parametrize(
    "body",
    [
        b"", b"<", b"<a/>", b"<!DOCTYPE html><html></html>", b"<!doctype HTML >",
        b"<a>&lt;!DOCTYPE a&gt;</a>",
        b"<?xml version='1.0'?><!-- <!DOCTYPE a> --><a/>", b"<![CDATA[<!DOCTYPE a>]]>", b"text <!DOCTYPE a>",
        b"<!-- <!DOCTYPE a>", b"<!DOCTYPE", b'{"a": "<!DOCTYPE a>"}', NRBF,
    ],
)  # fmt: skip
def test_no_document_type(body: bytes) -> None:
    assert document_type(body) is None
    assert found(body) == []


GADGET = stream(klass(1, "System.Windows.Data.ObjectDataProvider", []))


def test_types_known_as_gadgets() -> None:
    said = "the type System.Windows.Data.ObjectDataProvider (ysoserial.net, gadget ObjectDataProvider)"
    assert found(GADGET) == [("ATTACK-BODY-GADGET", "MessagePropertiesHeader.MessageBody", said)]
    assert found(GADGET, security=h.security_header(flags=1 << 5)) == []
    assert found(order()) == found(GADGET[:-30]) == []
    over_http = [one for one in lint_srmp(parse_message(srmp(GADGET, 0x300))) if one.id in OURS]
    assert [(one.id, one.message) for one in over_http] == [("ATTACK-BODY-GADGET", said)]


def test_two_gadgets() -> None:
    several = stream(
        array(1, 0, [0], Binary.SYSTEM_CLASS, "System.IO.FileInfo, System.Resources.ResourceSet")
    )
    assert found(several)[0][2].endswith(", and 1 other type")


def test_an_encrypted_body_is_not_looked_at() -> None:
    assert found(DTD, security=h.security_header(flags=1 << 5)) == []


def test_the_length_of_a_prologue_takes_time_in_proportion() -> None:
    assert document_type(b"<!-- -->" * 500_000 + DTD[DTD.index(b"<!DOC") :]) is not None
    assert document_type(b"<!DOCTYPE a" + b" " * 4_000_000) is not None


def srmp(body: bytes, body_type: int = 0) -> bytes:
    """A request of SRMP with a body of a type."""
    name = next(name for name, data in MESSAGES.items() if b"<BodyType>" in data and b"body@" in data)
    data = changed(name, ("<BodyType>0</BodyType>", f"<BodyType>{body_type}</BodyType>"))
    message = parse_message(data)
    assert isinstance(message.content, Multipart)
    parts = [replace(part, content=body) if part.has_id(BODY_ID) else part for part in message.content.parts]
    return relengthened(replace(message, content=replace(message.content, parts=tuple(parts))))


@pytest.mark.parametrize("body", [DTD, b"<a/>"])
def test_a_document_type_over_http(body: bytes) -> None:
    data = srmp(body)
    findings = [one for one in lint_srmp(parse_message(data)) if one.id in OURS]
    assert [one.id for one in findings] == ["ATTACK-BODY-DTD"] * (body == DTD)
    for one in findings:
        assert one.path.startswith("Multipart.Parts[")
        assert 0 < one.offset <= data.index(body)


@pytest.mark.parametrize(
    ("address", "body", "body_type", "said"),
    [
        ("93.184.215.14", NRBF, 0x300, True), ("93.184.215.14", NRBF, 0, True),
        ("93.184.215.14", b"anything", 0x300, True), ("93.184.215.14", b"anything", 0, False),
        ("10.0.0.1", NRBF, 0x300, False), ("fd00::1", NRBF, 0x300, False), (None, NRBF, 0x300, False),
    ],
)  # fmt: skip
def test_objects_from_outside(address: str | None, body: bytes, body_type: int, said: bool) -> None:
    findings = lint_srmp(parse_message(srmp(body, body_type)), address)
    assert [one.id for one in findings if one.id in OURS] == ["ATTACK-BODY-BINARY"] * said


@pytest.mark.parametrize(("address", "said"), [("93.184.215.14", True), ("10.0.0.1", False)])
def test_objects_from_outside_in_a_capture(address: str, said: bool, tmp_path: Path) -> None:
    talk = c.TcpConversation(client=(address, 40_000), server=(c.SERVER, 80)).handshake()
    capture = tmp_path / "capture.pcap"
    capture.write_bytes(c.pcap_bytes(talk.send(srmp(NRBF, 0x300)).close().frames))
    ids = [one.id for item in msmqwire.dissect(capture) for one in item.findings]
    assert ids.count("ATTACK-BODY-BINARY") == said


def test_nothing_is_said_of_bodies_in_the_corpus() -> None:
    files = [*ROOT.glob("tests/vectors/**/*.hex"), *ROOT.glob("tests/vectors/**/*.xml")]
    assert len(files) > 50
    for file in files:
        data = file.read_bytes() if file.suffix == ".xml" else bytes.fromhex(_digits(file))
        assert not [one for one in found(data) if one[0] in OURS], file
    for capture in EXAMPLES.glob("*.pcap*"):
        for item in msmqwire.dissect(capture):
            assert not [one.id for one in item.findings if one.id in OURS], capture


def _digits(file: Path) -> str:
    return "".join(line.partition("#")[0] for line in file.read_text().splitlines())
