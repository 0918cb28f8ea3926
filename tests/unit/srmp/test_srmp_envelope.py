"""Envelopes of SRMP as values: what is kept, built in the strings of [MC-MQSRM] 3.1.7.2.4, and JSON."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from datetime import datetime, timedelta, timezone

import pytest

from msmqwire.errors import InvalidValue
from msmqwire.srmp.content import Content, UndeclaredElement
from msmqwire.srmp.elements import Group, Ignored
from msmqwire.srmp.envelope import Envelope, build_envelope, envelope_from_json, parse_envelope
from msmqwire.srmp.identifiers import MessageIdentifier, StreamIdentifier
from msmqwire.srmp.scan import SIZE_MAX
from msmqwire.srmp.schema import ENVELOPE
from msmqwire.srmp.schema_names import SRMP
from tests.support.codec_checks import proving
from tests.support.paths import ROOT
from tests.support.srmp.srmp_envelopes import (
    DATE,
    EVERYTHING,
    GUID,
    MSMQ,
    PATH,
    PROPERTIES,
    SMALL,
    WITH_MSMQ,
    changed,
    everything,
    refused,
    xml,
)


@pytest.mark.requirement(
    *("SRMP-3.1.7.2.4-01", "SRMP-3.1.7.2.4-03", "SRMP-3.1.7.2.4-36", "SRMP-3.1.7.2.4-45", "SRMP-2.2.2-04"),
    *("SRMP-2.2.4-02", "SRMP-2.2.4-03", "SRMP-2.2.6-02", "SRMP-2.2.6-04", "SRMP-2.2.7-02"),
)
@pytest.mark.requirement("SRMP-2.2.4-05", "SRMP-2.2.5-02", "SRMP-2.2.5-03")
@pytest.mark.requirement("SRMP-2.2.5.1-02", "SRMP-2.2.5.2-02", "SRMP-2.2.5.3-02")
@pytest.mark.requirement("SRMP-2.2.2-01", "SRMP-2.2.2-02", "SRMP-2.2.2-03")
@pytest.mark.requirement("SRMP-2.2.1.2-01", "SRMP-2.2.1.3-01", "SRMP-2.2.4.3-02", "SRMP-2.2.5.3.1-02")
def test_elements_are_written_in_the_order_of_the_specification():
    envelope = Envelope(everything())
    assert build_envelope(envelope) == EVERYTHING
    assert parse_envelope(EVERYTHING) == envelope


def elements(group: Group, path: str = "") -> set[str]:
    """The paths of all declared elements with a value, and of attributes."""
    inside = f"{path}{group.name}."
    paths = {f"{path}{group.name}", *(f"{inside}{name}" for name in group.attributes)}
    for child in group.children:
        if not isinstance(child, Ignored):
            paths |= elements(child, inside) if isinstance(child, Group) else {f"{inside}{child.name}"}
    return paths


def named(value: object, path: str = "") -> set[str]:
    """The paths of all names in mappings of mappings."""
    if isinstance(value, list):
        return {name for item in value for name in named(item, path)}
    if not isinstance(value, dict):
        return set()
    return {f"{path}{name}" for name in value} | {
        inner for name, item in value.items() for inner in named(item, f"{path}{name}.")
    }


@pytest.mark.requirement("SRMP-2.2.5-01")
def test_which_elements_there_are():
    header = ENVELOPE.child("Header")
    assert elements(header) == named({"Header": everything()})
    assert {child.name for child in header.children if child.namespace == SRMP} == {
        *("properties", "services", "stream", "deliveryReceipt", "commitmentReceipt", "streamReceipt")
    }


def test_each_declaration_names_requirements_that_exist():
    table = (ROOT / "docs/conformance/SRMP.tsv").read_text(encoding="utf-8")
    known = {line.split("\t", 1)[0] for line in table.splitlines()}

    def ids_of(group: Group) -> set[str]:
        ids = {
            *group.req,
            group.must_understand,
            group.order_req,
            group.refuses,
            group.void_req,
            group.lenient,
        }
        for child in group.children:
            ids |= {*child.req, child.lenient, *child.also.values()}
            ids |= ids_of(child) if isinstance(child, Group) else set()
        return ids - {""}

    assert ids_of(ENVELOPE) <= known


@pytest.mark.requirement("SRMP-2.2.4.5-01", "SRMP-2.2.5.1.3-01")
@pytest.mark.parametrize("name", ["fwd", "from", "relatesTo", "fault"])
def test_elements_that_are_ignored(name):
    data = changed(SMALL, "<to>", f"<{name}><a/></{name}><to>")
    data = changed(data, "</properties>", "<inReplyTo>x</inReplyTo></properties>")
    envelope = parse_envelope(data)
    assert envelope.header == parse_envelope(SMALL).header
    assert not envelope.departures
    assert not envelope.unknown
    assert [(item.path, item.position, item.known) for item in envelope.kept] == [
        ("Envelope.Header.path", 1, True),
        ("Envelope.Header.properties", 1, True),
    ]
    again = build_envelope(envelope.replace())
    assert parse_envelope(again) == envelope
    assert again.index(f"<{name}".encode()) < again.index(b"<to>")


@pytest.mark.requirement("SRMP-2.2.3-07")
def test_unknown_elements_are_kept_and_built_back():
    data = changed(SMALL, "<to>", '<v:x xmlns:v="urn:v" v:a="&quot;"><b/>t<v:c/></v:x><to>')
    data = changed(data, "</path>", "<z/></path>")
    data = changed(data, "</se:Envelope>", "<late/></se:Envelope>")
    envelope = parse_envelope(data)
    assert envelope.unknown == (
        UndeclaredElement("Envelope", 2, '<late xmlns="http://schemas.xmlsoap.org/srmp/"></late>'),
        UndeclaredElement(
            "Envelope.Header.path",
            1,
            '<x xmlns="urn:v" xmlns:n0="urn:v" n0:a="&quot;">'
            '<b xmlns="http://schemas.xmlsoap.org/rp/"></b>t<c></c></x>',
        ),
        UndeclaredElement("Envelope.Header.path", 4, '<z xmlns="http://schemas.xmlsoap.org/rp/"></z>'),
    )
    built = build_envelope(envelope.replace())
    assert parse_envelope(built) == envelope
    assert build_envelope(parse_envelope(built).replace()) == built


def test_an_unknown_header_that_has_to_be_understood():
    entry = '<x xmlns="urn:x" se:mustUnderstand="{}"/>'
    assert parse_envelope(xml(PATH, PROPERTIES, entry.format(0))).unknown
    exc = refused(xml(PATH, PROPERTIES, entry.format(1)))
    assert (exc.path, exc.offset) == ("Envelope.Header.x", xml(PATH, PROPERTIES).index(b"</se:Header>"))
    deeper = changed(SMALL, "</path>", entry.format(1) + "</path>")
    assert parse_envelope(deeper).unknown  # it is not an entry of the header


@pytest.mark.parametrize(
    "kept",
    [
        UndeclaredElement("Envelope.Header", 0, "<a></b>"),
        UndeclaredElement("Envelope.Header", 9, '<x xmlns="urn:x"></x>'),  # not that far
        UndeclaredElement("Envelope.Header", 0, MSMQ),  # it is known
        UndeclaredElement("Envelope.Header", 0, '<x xmlns="urn:x"/>'),  # not in the form that is kept
        UndeclaredElement("Envelope.Header", 0, "text"),
        UndeclaredElement("Envelope.Header", 0, "\ud800"),
        UndeclaredElement("Envelope.Header.stream", 0, '<x xmlns="urn:x"></x>'),
        UndeclaredElement("", 0, '<x xmlns="urn:x"></x>'),
        UndeclaredElement("Envelope.Header", 0, '<x xmlns="urn:x"></x></se:Header><se:Header>'),
    ],
)
def test_what_is_kept_can_say_nothing_else(kept):
    header = parse_envelope(SMALL).header
    assert build_envelope(
        Envelope(header, (UndeclaredElement("Envelope.Header", 0, '<x xmlns="urn:x"></x>'),))
    )
    with pytest.raises(InvalidValue):
        build_envelope(Envelope(header, (kept,)))


REFERENCE = {"URI": "u", "DigestMethod": {"Algorithm": "a"}, "DigestValue": b"1"}


@pytest.mark.parametrize(
    "path, value",
    [
        ("path", None),
        ("path.to", None),
        proving("path.to", "ftp://h", ids="SRMP-2.2.4.2-06"),
        ("path.to", " http://h"),
        ("path.to", b"http://h"),
        ("path.action", "label"),
        ("path.action", "MSMQ:\0"),
        ("path.action", "MSMQ:\ud800"),
        ("path.id", "anything"),
        proving("path.id", MessageIdentifier(2**32, GUID), ids="SRMP-2.2.4.3-06"),
        ("path.id", MessageIdentifier(-1, GUID)),
        ("path.id", MessageIdentifier(1, str(GUID))),
        proving("properties.expiresAt", datetime(2007, 6, 19), ids="SRMP-2.2.1.2-01"),
        proving("properties.expiresAt", DATE.replace(microsecond=1), ids="SRMP-2.2.1.2-01"),
        ("properties.expiresAt", datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))),
        ("properties.expiresAt", "20070619T210654"),
        ("services.durable", "yes"),
        ("services.deliveryReceiptRequest", {}),
        proving("services.deliveryReceiptRequest.sendTo", "MSMQ:DIRECT=OS:h\\q", ids="SRMP-2.2.5.2.2-03"),
        proving("services.commitmentReceiptRequest.sendTo", "MSMQ:DIRECT=OS:h\\q", ids="SRMP-2.2.5.2.3-02"),
        proving("stream.start.sendReceiptsTo", "MSMQ:DIRECT=OS:h\\q", ids="SRMP-2.2.5.3.4-02"),
        ("stream.streamId", StreamIdentifier(GUID, 2**64)),
        ("stream.current", 2**32),
        proving("stream.current", -1, ids="SRMP-2.2.1.3-01"),
        ("stream.current", "1"),
        ("stream.current", True),
        ("Msmq", None),
        proving("Msmq.Priority", 8, ids="SRMP-2.2.6.2-02"),
        proving("Msmq.Priority", -1, ids="SRMP-2.2.6.2-02"),
        ("Msmq.Class", 0x10000),
        proving("Msmq.Correlation", bytes(19), ids="SRMP-2.2.6.5-02"),
        ("Msmq.SourceQmGuid", str(GUID)),
        proving("Msmq.DestinationMqf", ("a b",), ids="SRMP-2.2.6.14-02"),
        ("Msmq.DestinationMqf", "http://h/q"),
        proving("Msmq.AdminMqf", ("",), ids="SRMP-2.2.6.15-02"),
        proving("Msmq.ResponseMqf", ("",), ids="SRMP-2.2.6.16-02"),
        proving("commitmentReceipt.decision", "perhaps", ids="SRMP-2.2.5.5-04"),
        ("Signature.SignatureValue", "Mw=="),
        ("Signature.SignedInfo", {"SignatureMethod": {}}),
        ("Signature.SignedInfo", {"SignatureMethod": {"Algorithm": "a"}, "Reference": [REFERENCE] * 3}),
        ("services", {"durable": False}),
    ],
)
def test_what_can_not_be_built(path, value):
    header = everything()
    *groups, last = path.split(".")
    inner = header
    for group in groups:
        inner = inner[group]
    inner[last] = value
    with pytest.raises(InvalidValue) as caught:
        build_envelope(Envelope(header))
    assert caught.value.path.startswith("Envelope.Header.")


@pytest.mark.parametrize(
    "header", [{"Path": {}}, {"path": {"To": "x"}}, {"path": "x"}, {"path": {"rev": 1}}, 7]
)
def test_not_a_header(header):
    with pytest.raises(InvalidValue) as caught:
        Envelope(header)
    assert caught.value.path.startswith("Envelope.Header")


@pytest.mark.requirement("SRMP-3.1.7.2.4-36")
@pytest.mark.parametrize(
    "label", ["<&>]]>", "\r\n\r", "\ta\n", " ", "\"'", "&lt;", "\u00e9\ud7ff\ufffd\U0010ffff"]
)
def test_a_label_of_any_characters_is_read_again(label):
    envelope = parse_envelope(SMALL)
    other = envelope.replace(path=envelope.path.replace(action=f"MSMQ:{label}"))
    assert parse_envelope(build_envelope(other)).path.action == f"MSMQ:{label}"
    assert build_envelope(other).count(b"<") == SMALL.count(b"<")


def test_an_envelope_that_is_too_large_is_not_built():
    envelope = parse_envelope(SMALL)
    room = SIZE_MAX - len(SMALL) + 1
    fits = envelope.replace(path=envelope.path.replace(action="MSMQ:" + "l" * room))
    assert len(build_envelope(fits)) == SIZE_MAX
    with pytest.raises(InvalidValue):
        build_envelope(envelope.replace(path=envelope.path.replace(action="MSMQ:" + "l" * (room + 1))))


def test_a_group_is_no_header():
    with pytest.raises(InvalidValue):
        Envelope(parse_envelope(SMALL).path)


@pytest.mark.requirement("SRMP-2.2.6.5-01")
def test_a_correlation_is_written_in_standard_base64():
    header = everything()
    header["Msmq"]["Correlation"] = b"\xfb\xff" * 10
    assert b"<Correlation>+//7//v/+//7//v/+//7//v/+/8=</Correlation>" in build_envelope(Envelope(header))


@pytest.mark.requirement("SRMP-2.2.1.2-01")
def test_a_date_with_another_zone_is_written_in_utc():
    date = DATE.astimezone(timezone(timedelta(hours=-7)))
    envelope = parse_envelope(SMALL).replace(properties={"expiresAt": date})
    assert build_envelope(envelope) == SMALL


def test_values_do_not_change_and_copies_are_equal():
    envelope = parse_envelope(WITH_MSMQ)
    with pytest.raises(AttributeError):
        envelope.path.to = "http://other/q"
    with pytest.raises(AttributeError):
        envelope.source = b""
    other = envelope.replace(path=envelope.path.replace(to="http://other/q"))
    assert b"http://other/q" in build_envelope(other)
    assert build_envelope(envelope) == WITH_MSMQ
    for same in (copy.deepcopy(envelope), pickle.loads(pickle.dumps(envelope))):
        assert same == envelope
        assert build_envelope(same) == WITH_MSMQ


def test_what_is_not_there():
    envelope = parse_envelope(WITH_MSMQ)
    assert envelope.stream is None
    assert envelope.Msmq.Journal is False
    assert envelope.Msmq.App is None
    assert isinstance(envelope.Msmq, Content)
    with pytest.raises(AttributeError):
        _ = envelope.msmq
    with pytest.raises(AttributeError):
        _ = envelope.path.sentAt


def test_json():
    assert parse_envelope(changed(WITH_MSMQ, "<BodyType>", "<Journal/><BodyType>")).to_json() == {
        "Header": {
            "path": {"action": "MSMQ:l", "to": "http://h/q", "id": f"uuid:7@{GUID}"},
            "properties": {"expiresAt": "20070619T210654"},
            "Msmq": {
                "Class": 0,
                "Priority": 3,
                "Journal": True,
                "BodyType": 0,
                "SourceQmGuid": str(GUID),
                "TTrq": "20070619T210654",
            },
        },
        "kept": [],
        "departures": [],
    }


def test_json_of_everything_and_back():
    envelope = parse_envelope(EVERYTHING)
    obj = envelope.to_json()
    assert obj["Header"]["Msmq"]["Correlation"] == bytes(range(20)).hex()
    assert obj["Header"]["Signature"]["SignedInfo"]["Reference"][1]["URI"] == f"cid:extension@{GUID}"
    assert build_envelope(envelope_from_json(obj)) == EVERYTHING


@pytest.mark.parametrize(
    "obj",
    [
        None,
        [],
        {},
        {"Header": []},
        {"Header": {}, "other": 1},
        {"Header": {}, "kept": {}},
        {"Header": {}, "kept": [{"path": "Envelope", "position": -1, "xml": ""}]},
        {"Header": {}, "kept": [{"path": "Envelope", "position": 1, "xml": "", "more": 1}]},
        {"Header": {"path": []}},
        {"Header": {"path": {"to": 7}}},
        {"Header": {"Msmq": {"Class": "7"}}},
        {"Header": {"Msmq": {"Journal": 1}}},
        {"Header": {"Msmq": {"Correlation": "zz"}}},
        {"Header": {"Msmq": {"AdminMqf": "a"}}},
        {"Header": {"Signature": {"SignedInfo": {"Reference": {}}}}},
    ],
)
def test_json_that_is_no_envelope(obj):
    with pytest.raises(InvalidValue) as caught:
        envelope_from_json(obj)
    assert caught.value.path.startswith("Envelope")


def test_lxml_is_loaded_when_an_envelope_is_parsed():
    program = (
        "import sys, msmqwire.srmp.envelope as e; assert 'lxml' not in sys.modules; "
        f"e.parse_envelope({SMALL!r}); assert 'lxml' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
