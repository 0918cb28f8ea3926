"""Bodies of WCF: framing, records, dictionaries, and the encodings of text."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import struct
import zlib
from xml.etree import ElementTree
from xml.parsers import expat

import pytest

from msmqwire.bodies import Limits, decode, wcf
from msmqwire.bodies.limits import DEFAULT, Budget
from msmqwire.bodies.wcf import characters, framing, nbfx, records
from msmqwire.bodies.wcf.fault import Fault, build_size, read_size
from msmqwire.bodies.wcf.problems import PROBLEMS_MAX, Problems
from msmqwire.bodies.wcf.session import Session
from msmqwire.bodies.wcf.words import NUMBERS, WORDS
from msmqwire.bodies.wcf.writing import SessionWriter, text_record, write_document
from msmqwire.errors import InvalidValue, MalformedBody
from tests.support.codec_checks import proving
from tests.support.paths import VECTORS

VIA = "net.msmq://localhost/private/orders"


def vector(name):
    return bytes.fromhex((VECTORS / "bodies" / name).read_text())


def table(name):
    with (VECTORS / "bodies" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


class Agreed(dict):
    """The dictionary of the examples: 14 is ``str14``."""

    def get(self, number, default=None):
        return f"str{number}"


def characters_of(data, *, problems=None, limits=DEFAULT, agreed=False, words=None):
    """Return a document as XML, without problems unless they are asked for."""
    found = Problems()
    session = Session()
    session.words = words or {}
    kwargs = {}
    if agreed:
        session.words, kwargs["dictionary"] = Agreed({1: ""}), Agreed()
        kwargs["fragment"] = True
    xml = nbfx.read_document(bytes(data), session, Budget(limits, len(data)), found, **kwargs)
    if problems is None:
        assert found.all() == ()
    else:
        problems += found.all()
    return xml


def read(body, limits=DEFAULT):
    return wcf.read(body, Budget(limits, len(body)))


# -- [MC-NBFX] --

NBFX_RECORDS = table("nbfx_records.tsv")


OF_ALL_RECORDS = ("NBFX-2-01", "NBFX-2.1-02", "NBFX-2.1.1-01", "NBFX-2.2.1-01")
OF_RECORDS = {
    "Comment": ["NBFX-2.3.2-01"],
    "Array": ["NBFX-2.3.3-01", "NBFX-2.1-01"],
    "ShortAttribute": ["NBFX-2.2.2.2-02"],
    "Attribute": ["NBFX-2.2.2.2-02"],
    "ShortDictionaryAttribute": ["NBFX-2.1.4-01"],
    "ShortXmlnsAttribute": ["NBFX-2.2.2.5-01"],
    "XmlnsAttribute": ["NBFX-2.2.2.5-01", "NBFX-2.1.3-01"],
    "ShortDictionaryXmlnsAttribute": ["NBFX-2.2.2.5-01"],
    "DictionaryXmlnsAttribute": ["NBFX-2.2.2.5-01"],
    "ZeroText": ["NBFX-2.2.3.1-01", "NBFX-2.1.4-01"],
    "OneText": ["NBFX-2.2.3.2-01"],
    "FalseText": ["NBFX-2.2.3.3-01", "NBFX-2.2-01"],
    "TrueText": ["NBFX-2.2.3.4-01", "NBFX-2.2-01"],
    "Int16Text": ["NBFX-2.1-01"],
    "Int32Text": ["NBFX-2.1-01"],
    "Int64Text": ["NBFX-2.1-01"],
    "PrefixDictionaryAttributeF": ["NBFX-2.2.3.13-01"],
    "Chars8Text": ["NBFX-2.2.3.13-01"],
    "Chars16Text": ["NBFX-2.2.3.14-01"],
    "Chars32Text": ["NBFX-2.2.3.15-01"],
    "Bytes16Text": ["NBFX-2.2.3.17-01"],
    "Bytes32Text": ["NBFX-2.2.3.18-01"],
    "StartListText": ["NBFX-2.2.3.19-01", "NBFX-2.2.3.19-03"],
    "EmptyText": ["NBFX-2.2.3.20-01"],
    "DictionaryText": ["NBFX-2.2.3.21-01"],
    "UniqueIdText": ["NBFX-2.2.3.22-01", "NBFX-2.2-01"],
    "TimeSpanText": ["NBFX-2.2.3.23-01"],
    "UuidText": ["NBFX-2.2.3.24-01"],
    "UInt64Text": ["NBFX-2.2.3.25-01"],
    "BoolTextWithEndElement": ["NBFX-2.2.3.26-02"],
    "UnicodeChars8Text": ["NBFX-2.2.3.27-01"],
    "UnicodeChars16Text": ["NBFX-2.2.3.28-01"],
    "UnicodeChars32Text": ["NBFX-2.2.3.29-01"],
    "QNameDictionaryText": ["NBFX-2.2.3.30-01"],
}


def rows_of_records():
    for row in NBFX_RECORDS:
        ended = ["NBFX-2.2.3.31-01"] if row["record"].endswith("WithEndElement") else []
        rows = [*OF_ALL_RECORDS, *OF_RECORDS.get(row["record"], []), *ended]
        yield pytest.param(row, marks=pytest.mark.requirement(*rows), id=row["record"])


@pytest.mark.parametrize("row", list(rows_of_records()))
def test_each_record_of_the_text_is_read_and_written_back(row):
    data = bytes.fromhex(row["bytes"])
    assert characters_of(data, agreed=True) == row["xml"]
    found = list(records.records(data))
    assert row["record"] in [record.name for record in found]
    assert records.NAMES[int(row["type"], 16)] == row["record"]
    assert records.build(found) == data


@pytest.mark.requirement("NBFX-2.1.1-01", "NBFX-2.2.1.5-01", "NBFX-2.2.2.9-01", "NBFX-2.2.1-01")
@pytest.mark.parametrize("number, letter", list(enumerate("abcdefghijklmnopqrstuvwxyz")))
def test_a_prefix_of_one_letter_is_in_the_type(number, letter):
    """The type of the record and its name: a string of the dictionary, or the text n."""
    declared = b"\x09\x01" + letter.encode() + b"\x01u"
    for first, kind in (
        (0x0C, "PrefixDictionaryAttribute"), (0x26, "PrefixAttribute"), (0x44, "PrefixDictionaryElement"),
        (0x5E, "PrefixElement"),
    ):  # fmt: skip
        assert records.NAMES[first + number] == kind + letter.upper()
    for first, name, local in ((0x44, b"\x0a", "str10"), (0x5E, b"\x01n", "n")):
        data = bytes([first + number]) + name + declared + b"\x01"
        assert characters_of(data, agreed=True) == f'<{letter}:{local} xmlns:{letter}="u"></{letter}:{local}>'
        within = b"\x40\x01r" + declared + bytes([first + number]) + name + b"\x01\x01"
        inner = f"<{letter}:{local}></{letter}:{local}>"
        assert characters_of(within, agreed=True) == f'<r xmlns:{letter}="u">{inner}</r>'
        assert records.build(list(records.records(data))) == data
    for first, name, local in ((0x0C, b"\x0a", "str10"), (0x26, b"\x01n", "n")):
        data = b"\x40\x01r" + declared + bytes([first + number]) + name + b"\x86\x01"
        assert characters_of(data, agreed=True) == f'<r xmlns:{letter}="u" {letter}:{local}="true"></r>'
        assert records.build(list(records.records(data))) == data


@pytest.mark.requirement("NBFX-2.2.1.5-01")
def test_prefixes_that_are_all_in_scope():
    letters = "abcdefghijklmnopqrstuvwxyz"
    declared = b"".join(b"\x09\x01" + letter.encode() + b"\x01u" for letter in letters)
    inner = b"".join(bytes([0x5E + n]) + b"\x01n\x01" for n in range(26) for _ in (1, 2))
    words = b"".join(bytes([0x44 + n]) + b"\x0a\x01" for n in range(26) for _ in (1, 2))
    data = b"\x40\x01r" + declared + inner + words + 2 * b"\x40\x01n\x01" + b"\x01"
    written = "".join(
        f"<{letter}:{name}></{letter}:{name}>" * 2 for name in ("n", "str10") for letter in letters
    )
    names = "".join(f' xmlns:{letter}="u"' for letter in letters)
    assert characters_of(data, agreed=True) == f"<r{names}>{written}<n></n><n></n></r>"


@pytest.mark.requirement("NBFX-2-01")
def test_a_document_has_any_number_of_records():
    assert characters_of(b"", agreed=True) == ""
    assert characters_of(b"\x02\x01c\x40\x01a\x01\x40\x01b\x01", agreed=True) == "<!--c--><a></a><b></b>"


@pytest.mark.requirement("NBFX-2.1.3-01")
def test_the_length_of_a_string_counts_its_bytes():
    uri = "\u00e9" * 200
    data = b"\x40\x02\xc3\xa9\x08\x90\x03" + uri.encode() + b"\x01"
    assert characters_of(data) == f'<\u00e9 xmlns="{uri}"></\u00e9>'
    assert records.build(list(records.records(data))) == data


@pytest.mark.requirement("NBFX-2.1.1-01")
def test_the_text_has_an_example_of_each_kind_of_record():
    assert len(NBFX_RECORDS) == 83
    assert sorted(records.NAMES) == [*range(0x01, 0x78), *sorted({*range(0x80, 0xBE)} - {0xA5, 0xA7})]
    assert len(records.NAMES) == 179
    # Of the 26 letters of a prefix it has two or three.
    kinds = {int(row["type"], 16) for row in NBFX_RECORDS}
    missing = {name for kind, name in records.NAMES.items() if kind not in kinds}
    assert all(name.startswith("Prefix") for name in missing), missing


OF_SECTIONS = {
    "2.2.3.5": ["NBFX-2.2.3.5-01"],
    "2.2.3.6": ["NBFX-2.2.3.6-01"],
    "2.2.3.7": ["NBFX-2.2.3.7-01"],
    "2.2.3.8": ["NBFX-2.2.3.8-01"],
    "2.2.3.13.1": ["NBFX-2.2.3.13.1-01", "NBFX-2.2.3.13.1-03"],
    "2.2.3.16": ["NBFX-2.2.3.16-01"],
}


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, marks=[pytest.mark.requirement(id_) for id_ in OF_SECTIONS.get(row["section"], ())])
        for row in table("nbfx_chapter2.tsv")
    ],
    ids=lambda row: row["record"],
)
def test_single_records_are_read(row):
    data = bytes.fromhex(row["bytes"])
    if row["record"] == "String":
        data = b"\x98" + data
    if data[0] > 0x7F:
        # One text record as the content of an element.
        assert characters_of(b"\x40\x01e" + data + b"\x01") == f"<e>{row['characters']}</e>"
    else:
        wrapped = b"\x40\x01e" + data + b"\x01"
        assert characters_of(wrapped) == f"<e>{row['characters']}</e>"
        assert records.build(records.records(wrapped)) == wrapped


@pytest.mark.requirement(
    "NBFX-NBFS-2.1-01",
)
def test_an_envelope_of_the_static_dictionary():
    data = vector("nbfs_envelope.hex")
    rows = table("nbfs_envelope.tsv")
    assert b"".join(bytes.fromhex(row["bytes"]) for row in rows) == data
    xml = " ".join(row["xml"] for row in rows[:3]) + "".join(row["xml"] for row in rows[3:5])
    xml += " " + "".join(row["xml"] for row in rows[5:])
    content = read(data)
    assert content.value == {"via": None, "encoding": 7, "xml": xml}
    assert content.text == "action  Inventory: 0"
    assert content.problems == ()
    assert wcf.write(content.value, None) == data


@pytest.mark.requirement(
    "NBFX-NBFSE-2-01",
    "NBFX-NBFSE-2.1-03",
    "NBFX-NBFSE-2.2-01",
    "NBFX-NBFSE-2.2-02",
)
def test_an_envelope_with_its_own_strings_says_the_same():
    data = vector("nbfse_envelope.hex")
    assert bytes.fromhex(table("nbfse_envelope.tsv")[-1]["bytes"]) == data
    plain = read(vector("nbfs_envelope.hex"))
    content = read(data)
    assert content.value == {**plain.value, "encoding": 8}
    assert content.problems == ()


@pytest.mark.requirement(
    "NBFX-NBFS-2.1-02",
)
def test_the_static_dictionary_is_whole():
    assert len(WORDS) == 487
    assert list(WORDS) == list(range(0, 2 * 487, 2))
    assert len(NUMBERS) == 487
    some = {0: "mustUnderstand", 2: "Envelope", 0x84: "s", 0xA2: "-", 0x256: "xmlns", 0x3CC: "detail"}
    assert {number: WORDS[number] for number in some} == some
    assert WORDS[0x372] == "http://www.w3.org/2001/XMLSchema-instance"
    lines = "\n".join(f"{number:03X} {word}" for number, word in WORDS.items())  # the table of the text
    digest = "5e60a7fbf5a69ca1132bfb20175de17fe4fc78e8e18064ce3302730e45bbf2d1"
    assert hashlib.sha256(lines.encode()).hexdigest() == digest


# -- [MC-NMF] --

NMF_RECORDS = table("nmf_records.tsv")


def test_the_table_of_framing_is_whole():
    assert len(NMF_RECORDS) == 33


FRAMING = {
    "VersionRecord": ("NMF-2.2.3.1-01", (1, 0)),
    "ModeRecord": ("NMF-2.2.3.2-01", None),
    "ViaRecord": ("NMF-2.2.3.3-01", "net.tcp://SampleServer/SampleApp/"),
    "KnownEncodingRecord": ("NMF-2.2.3.4.1-01", None),
    "ExtensibleEncodingRecord": ("NMF-2.2.3.4.2-01", "application/soap+msbin1"),
    "UpgradeRequestRecord": ("NMF-2.2.3.5-01", "application/ssl-tls"),
    "UpgradeResponseRecord": ("NMF-2.2.3.6-01", None),
    "PreambleEndRecord": ("NMF-2.2.3.7-01", None),
    "PreambleAckRecord": ("NMF-2.2.3.8-01", None),
    "EndRecord": ("NMF-2.2.3.9-01", None),
    "SizedEnvelopeRecord": ("NMF-2.2.4.1-01", b"abc"),
    "UnsizedEnvelopeRecord": (("NMF-2.2.4.2-01", "NMF-2.2.4.3-01"), (b"ab", b"c")),
    "FaultRecord": ("NMF-2.2.5-01", "http://schemas.microsoft.com/ws/2006/05/framing/faults/UnsupportedMode"),
    "size": (("NMF-2.2.2-01", "NMF-2.2.2-02"), None),
}
"""The rows of a record, and its value if the record has one name alone."""


@pytest.mark.parametrize(
    "row",
    [proving(row, ids=FRAMING[row["record"].split(" ")[0]][0], name=row["record"]) for row in NMF_RECORDS],
)
def test_each_record_of_the_framing_is_read_and_written_back(row):
    data = bytes.fromhex(row["bytes"])
    name, _, what = row["record"].partition(" ")
    if name == "size":
        value = int(what, 16)
        assert read_size(data, 0, framing.SIZE_MAX) == (value, len(data))
        assert build_size(value) == data
        return
    expected = FRAMING[name][1]
    if name == "ModeRecord":
        expected = [*framing.MODES.values()].index(what.replace("-", "")) + 1
    elif name == "KnownEncodingRecord":
        expected = int(what)
    record, end = framing.read_record(data, 0)
    assert end == len(data)
    assert (record.kind.record, record.value) == (name, expected)
    assert framing.build_record(record) == data


def faulty(data):
    """Return why a record is none."""
    with pytest.raises(Fault) as caught:
        framing.read_record(data, 0)
    return caught.value.why


@pytest.mark.requirement("NMF-2.2.3.1-01")
def test_the_major_version_comes_first():
    assert framing.read_record(b"\x00\x02\x05", 0) == (framing.Record(framing.Kind.VERSION, (2, 5)), 3)


@pytest.mark.requirement("NMF-2.2.2-01")
def test_no_size_is_more_than_four_bytes_hold():
    with pytest.raises(Fault):
        read_size(bytes.fromhex("8080808010"), 0, framing.SIZE_MAX)


@pytest.mark.requirement("NMF-2.2.1-01")
def test_there_are_thirteen_types_of_records_of_the_framing():
    assert {kind.record: int(kind) for kind in framing.Kind} == {
        "VersionRecord": 0, "ModeRecord": 1, "ViaRecord": 2, "KnownEncodingRecord": 3,
        "ExtensibleEncodingRecord": 4, "UnsizedEnvelopeRecord": 5, "SizedEnvelopeRecord": 6, "EndRecord": 7,
        "FaultRecord": 8, "UpgradeRequestRecord": 9, "UpgradeResponseRecord": 10, "PreambleAckRecord": 11,
        "PreambleEndRecord": 12,
    }  # fmt: skip
    for kind in range(0x0D, 0x100):
        assert faulty(bytes([kind, 1, 1, 0])) == f"0x{kind:02X} is the type of no record"


@pytest.mark.parametrize(
    "data",
    [
        proving(b"\x02\x00", ids="NMF-2.2.3.3-01"),
        proving(b"\x04\x00", ids="NMF-2.2.3.4.2-01"),
        proving(b"\x09\x00", ids="NMF-2.2.3.5-01"),
        proving(b"\x06\x00", ids="NMF-2.2.4.1-01"),
        proving(b"\x05\x80\x00\x00", ids="NMF-2.2.4.2-01"),
        proving(b"\x08\x00", ids="NMF-2.2.5-01"),
    ],
)
def test_no_size_is_zero(data):
    assert faulty(data) == "a size of zero, or with a zero after it"


@pytest.mark.parametrize(
    "kind",
    [
        proving(0x02, ids="NMF-2.2.3.3-02"),
        proving(0x04, ids="NMF-2.2.3.4.2-01"),
        proving(0x08, ids="NMF-2.2.5-01"),
    ],
)
def test_texts_of_the_framing_are_utf8(kind):
    assert faulty(bytes([kind, 1, 0xFF])) == "the text is not UTF-8"
    record, end = framing.read_record(bytes([kind, 2, 0xC3, 0xA9]), 0)
    assert (record.value, end) == ("\u00e9", 4)
    assert framing.build_record(record) == bytes([kind, 2, 0xC3, 0xA9])


@pytest.mark.requirement(
    "NMF-2.2.6-01",
    "NMF-3.1.1.2-01",
    "NMF-3.2.4.2-01",
    "NMF-3.2.4.3-01",
    "NMF-3.3.4.2-01",
    "NMF-3.3.4.4-01",
)
@pytest.mark.parametrize("name", ["wcf_body_netmsmq.hex", "wcf_body_netmsmq_empty.hex"])
def test_bodies_of_net_msmq_are_read_and_written_back(name):
    body = vector(name)
    assert wcf.recognises(body)
    content = read(body)
    assert content.problems == ()
    assert list(content.value) == ["via", "encoding", "xml"]
    assert content.value["via"] == "net.msmq://localhost/private/wcfQueue"
    assert content.value["encoding"] == 7
    named = "name: TestMessage" if "empty" not in name else "name"
    assert content.text == f"http://tempuri.org/ITestContract/Create  Create{{{named}}}"
    envelope = ElementTree.fromstring(content.value["xml"])
    found = envelope.find(".//{http://tempuri.org/}name")
    assert (found.text or "") == ("TestMessage" if "empty" not in name else "")
    assert wcf.write(content.value, None) == body


def test_decode_reads_bodies_of_net_msmq():
    body = decode(vector("wcf_body_netmsmq.hex"))
    assert body.format == "wcf"
    assert body.value["encoding"] == 7


# -- Values --


def element(record):
    """Return what one text record stands for, and the errors of its problems."""
    found = []
    xml = characters_of(b"\x40\x01e" + record + b"\x01", problems=found)
    assert xml.startswith("<e>")
    return xml.removeprefix("<e>").removesuffix("</e>"), [problem.error for problem in found]


@pytest.mark.requirement("NBFX-2.2.3.10-01", "NBFX-2.2.3.10-02", "NBFX-2.2.3.10-03")
@pytest.mark.parametrize(
    "value, text",
    [
        (1.5, "1.5"), (0.1, "0.1"), (100.0, "100"), (-2.0, "-2"), (1e14, "100000000000000"), (1e15, "1E+15"),
        (1234567890123456.0, "1234567890123456"), (12345678901234567.0, "12345678901234568"),
        (1.5e300, "1.5E+300"), (0.0001, "0.0001"), (0.00001, "1E-05"), (-1.5e-7, "-1.5E-07"),
        (5e-324, "5E-324"), (0.0, "0"), (-0.0, "-0"),
        pytest.param(float("inf"), "INF", marks=pytest.mark.requirement("NBFX-2.2-01")),
        (float("-inf"), "-INF"), (float("nan"), "NaN"),
    ],
)  # fmt: skip
def test_doubles_have_the_fewest_digits(value, text):
    assert element(b"\x92" + struct.pack("<d", value)) == (text, [])


@pytest.mark.requirement("NBFX-2.2.3.9-01", "NBFX-2.2.3.9-02", "NBFX-2.2.3.9-03")
@pytest.mark.parametrize(
    "value, text",
    [
        (1.1, "1.1"), (16777216.0, "16777216"), (1e6, "1000000"), (1e7, "1E+07"), (0.0001, "0.0001"),
        (0.00001, "1E-05"),
        (3.4028234663852886e38, "3.4028235E+38"), (1e-45, "1E-45"), (-0.0, "-0"), (float("inf"), "INF"),
        (float("-inf"), "-INF"), (float("nan"), "NaN"), (33554436.0, "33554436"),
    ],
)  # fmt: skip
def test_floats_have_the_fewest_digits(value, text):
    read, problems = element(b"\x90" + struct.pack("<f", value))
    assert problems == []
    if text == "1E-45":
        # The smallest of them has one digit that counts, whichever is near enough.
        assert struct.pack("<f", float(read)) == struct.pack("<f", value)
    else:
        assert read == text


@pytest.mark.requirement("NBFX-2.2.3.11-01")
@pytest.mark.parametrize(
    "data, text",
    [
        ("00000000 00000000 9600000000000000", "150"), ("00000200 00000000 9600000000000000", "1.50"),
        ("00000280 00000000 0500000000000000", "-0.05"), ("00001c00 ffffffff ffffffffffffffff",
        "7.9228162514264337593543950335"), ("00000280 00000000 0000000000000000", "0.00"),
    ],
)  # fmt: skip
def test_decimals_keep_the_zeros_of_their_scale(data, text):
    assert element(b"\x94" + bytes.fromhex(data)) == (text, [])


def test_a_decimal_beyond_its_scale_is_reported():
    text, problems = element(b"\x94" + bytes.fromhex("00001d00 00000000 0100000000000000"))
    assert text == "0." + "1".rjust(29, "0")
    assert problems == ["a decimal of 29 digits after the point, above 28"]
    _, problems = element(b"\x94" + bytes.fromhex("01000000 00000000 0100000000000000"))
    assert problems == ["a decimal with reserved bits set"]


def ticks(value, kind=0):
    return b"\x96" + (value | kind << 62).to_bytes(8, "little")


@pytest.mark.requirement("NBFX-2.2.3.12-04", "NBFX-2.2.3.12-05", "NBFX-2.2.3.12-06", "NBFX-2.2.3.12-07")
@pytest.mark.requirement("NBFX-2.2.3.12-01", "NBFX-2.2.3.12-02")
@pytest.mark.parametrize(
    "value, kind, text",
    [
        (0, 0, "0001-01-01T00:00:00"),
        (638000000001234000, 1, "2022-09-28T22:13:20.1234Z"),
        (638000000000000001, 0, "2022-09-28T22:13:20.0000001"),
        (638000000000000000, 2, "2022-09-28T22:13:20+00:00"),
        (3155378975999999999, 0, "9999-12-31T23:59:59.9999999"),
    ],
)
def test_dates(value, kind, text):
    assert element(ticks(value, kind)) == (text, [])


@pytest.mark.requirement("NBFX-2.2.3.12-01", "NBFX-2.2.3.12-02")
def test_a_date_out_of_range_or_of_no_kind_is_reported():
    assert element(ticks(3155378976000000000)) == (
        "9999-12-31T23:59:59.9999999",
        ["a date after the year 9999"],
    )
    assert element(ticks(0, 3)) == ("0001-01-01T00:00:00", ["a date of the kind 3"])


@pytest.mark.requirement("NBFX-2.2.3.23-01")
@pytest.mark.parametrize(
    "value, text",
    [(0, "PT0S"), (1, "PT0.0000001S"), (864_000_000_000, "P1D"), (-(1 << 63), "-P10675199DT2H48M5.4775808S"),
     (36_610_000_000, "PT1H1M1S"), (12_000_000, "PT1.2S")],
)  # fmt: skip
def test_durations(value, text):
    assert element(b"\xae" + value.to_bytes(8, "little", signed=True)) == (text, [])


@pytest.mark.requirement("NBFX-2.2.3.26-01", "NBFX-2.2.3.26-02")
def test_a_boolean_beyond_one_is_reported():
    assert [element(bytes([0xB4, value])) for value in (0, 1)] == [("false", []), ("true", [])]
    assert element(b"\xb4\x02") == ("true", ["a Boolean of 2"])


# -- Texts --


@pytest.mark.requirement("NBFX-2.1.3-02", "NBFX-2.2.3.13-02")
def test_text_that_is_no_utf8_is_reported_and_read_on():
    assert element(b"\x98\x02a\xc3") == ("a\ufffd", ["the text is not UTF-8"])
    found = []
    assert characters_of(b"\x40\x02a\xff\x01", problems=found) == "<a\ufffd></a\ufffd>"
    assert [(problem.error, problem.offset) for problem in found] == [("the text is not UTF-8", 3)]
    # Also when it is met again.
    assert characters_of(b"\x40\x02a\xff\x01", problems=found)
    assert len(found) == 2


@pytest.mark.requirement("NBFX-2.2.3.13-03")
def test_half_of_a_pair_of_surrogates_is_reported():
    assert element(b"\xb6\x04a\0\x00\xd8") == ("a&#55296;", ["half of a pair of surrogates"])
    assert element(b"\x98\x03\xed\xa0\x80")[1] == ["the text is not UTF-8"]
    assert element(b"\xb6\x03a\0b") == ("a", ["UTF-16 of an odd number of bytes"])
    assert element(b"\xb6\x04" + "😀".encode("utf-16-le")) == ("😀", [])


@pytest.mark.requirement("NBFX-2.2.3.13.1-02", "NBFX-2.2.3.21-01")
def test_markup_is_escaped_where_it_would_be_markup():
    assert element(b"\x98\x06\"&<>'\x1f") == ("\"&amp;&lt;&gt;'&#31;", [])
    assert element(b"\x98\x03\t\n\r") == ("\t\n&#13;", [])
    attribute = b"\x40\x01e\x04\x01a\x98\x08\"&<>'\t\n\r\x01"
    assert characters_of(attribute) == '<e a="&quot;&amp;&lt;&gt;\'&#9;&#10;&#13;"></e>'
    words = {1: "<&>"}
    assert characters_of(b"\x40\x01e\xab\x01", words=words) == "<e>&lt;&amp;&gt;</e>"
    assert element(b"\x98\x03\xef\xbf\xbf") == ("&#65535;", [])


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(0x9C, marks=pytest.mark.requirement("NBFX-2.2.3.15-01")),
        pytest.param(0xA2, marks=pytest.mark.requirement("NBFX-2.2.3.18-01")),
        0xBA,
    ],
)
def test_a_length_of_four_bytes_has_a_sign(kind):
    text, problems = element(bytes([kind]) + b"\xff\xff\xff\xff")
    assert text == ""
    assert problems == ["-1 bytes are announced and 1 is left"]


def test_text_may_be_split_over_records():
    data = b"\x40\x01e" + b"\x98\x02ab" + b"\x9a\x02\0cd" + b"\x88\x05" + b"\x9f\x01\xff"
    assert characters_of(data) == "<e>abcd5/w==</e>"


def test_a_long_text_is_read_in_pieces():
    text = ("x&" * 100_000).encode()
    data = b"\x40\x01e\x04\x01a\x9c" + len(text).to_bytes(4, "little") + text
    data += b"\x9d" + len(text).to_bytes(4, "little") + text
    escaped = "x&amp;" * 100_000
    assert characters_of(data) == f'<e a="{escaped}">{escaped}</e>'


# -- Structure --


def broken(data, limits=DEFAULT, words=None):
    """Return what is read before a fault, and the fault: offset, path, reason."""
    found = []
    xml = characters_of(data, problems=found, limits=limits, words=words)
    last = found[-1]
    return xml, last.offset, last.path, last.error


@pytest.mark.requirement("NBFX-2.1.1-01", "NBFX-2.2.1-01")
@pytest.mark.parametrize("kind", [0x00, *range(0x78, 0x80), 0xA5, 0xA7, *range(0xBE, 0x100)])
def test_reserved_types_end_the_reading(kind):
    xml, offset, path, _ = broken(b"\x40\x01a\x40\x01b" + bytes([kind]) + b"\x01\x01")
    assert (xml, offset, path) == ("<a><b></b></a>", 6, "a.b")


@pytest.mark.parametrize(
    "data",
    [
        proving(b"\x40\0\x01", ids="NBFX-2.2.1.1-01"), proving(b"\x41\0\x01a\x01", ids="NBFX-2.2.1.2-01"),
        proving(b"\x41\x01a\0\x01", ids="NBFX-2.2.1.1-01"), proving(b"\x42\x01\x01", ids="NBFX-2.2.1.3-01"),
        proving(b"\x43\x01p\x01\x01", ids="NBFX-2.2.1.3-01"),
    ],
)  # fmt: skip
def test_a_name_has_characters(data):
    assert broken(b"\x40\x01r" + data, words={1: ""})[3] == "a name of no characters"


@pytest.mark.parametrize(
    "data",
    [
        proving(b"\x40\x05xmlns\x01", ids="NBFX-2.2.1.1-01"),
        proving(b"\x41\x05xmlns\x01a\x01", ids="NBFX-2.2.1.2-01"),
        proving(b"\x42\xd6\x04\x01", ids="NBFX-2.2.1.3-01"),
        proving(b"\x43\x01p\xd6\x04\x01", ids="NBFX-2.2.1.3-01"),
        proving(b"\x40\x01a\x04\x05xmlns\x80\x01", ids="NBFX-2.2.2.1-01"),
        proving(b"\x40\x01a\x05\x05xmlns\x01a\x80\x01", ids="NBFX-2.2.2.2-01"),
        proving(b"\x40\x01a\x09\x05xmlns\x01u\x01", ids="NBFX-2.2.2.6-01"),
    ],
)  # fmt: skip
def test_no_name_is_xmlns(data):
    found = []
    characters_of(data, problems=found)
    assert found[0].error in ("'xmlns' can't be a name",)


@pytest.mark.parametrize(
    "data",
    [
        proving(b"\x04\0\x80", ids="NBFX-2.2.2.1-01"), proving(b"\x05\0\x01a\x80", ids="NBFX-2.2.2.2-01"),
        proving(b"\x09\0\x01u", ids="NBFX-2.2.2.6-01"),
    ],
)  # fmt: skip
def test_an_attribute_has_a_name(data):
    xml, _, _, error = broken(b"\x40\x01r" + data + b"\x01")
    assert (xml, error) == ("<r></r>", "a name of no characters")


@pytest.mark.requirement("NBFX-2.2.2-01")
def test_an_attribute_follows_an_element():
    assert broken(b"\x40\x01r\x80\x04\x01a\x80\x01")[1:] == (4, "r", "an attribute that follows no element")


@pytest.mark.requirement("NBFX-2.2.3.31-02", "NBFX-2.2.2.2-02")
@pytest.mark.parametrize("kind", [0x81, 0x99, 0x40, 0x01])
def test_the_value_of_an_attribute_is_a_text_without_an_end(kind):
    xml, offset, _, error = broken(b"\x40\x01r\x04\x01a" + bytes([kind]) + b"\x01a\x01")
    assert (xml, offset) == ("<r></r>", 6)
    assert error == f"a record of the type 0x{kind:02X} where a text should be"


@pytest.mark.requirement("NBFX-2.2.3.19-02", "NBFX-2.2.3.19-03")
@pytest.mark.parametrize("inner", [b"\xa4\xa6", b"\x81", b"\x40\x01a\x01", b"\x01"])
def test_a_list_has_texts_alone(inner):
    error = broken(b"\x40\x01r\xa4\x80" + inner + b"\xa6\x01")[3]
    assert error == f"a record of the type 0x{inner[0]:02X} in a list"


@pytest.mark.requirement("NBFX-2.2.3.19-03")
def test_an_end_of_a_list_needs_its_start():
    assert "reserved" in broken(b"\x40\x01r\xa6\x01")[3]
    assert broken(b"\x40\x01r\xa4\x80")[3] == "the bytes end within a record"


@pytest.mark.requirement("NBFX-2.3.1-01")
def test_an_end_needs_its_element():
    assert broken(b"\x40\x01r\x01\x01") == (
        "<r></r>", 4, "", "the end of an element that was not opened",
    )  # fmt: skip
    assert broken(b"\x40\x01r\x40\x01a\x01")[3] == "the bytes end within an element"


@pytest.mark.requirement("NBFX-2.3.3-02", "NBFX-2.3.3-03")
def test_arrays_that_are_none():
    array = b"\x40\x01r\x03\x40\x01a\x01"
    assert broken(array + b"\x8d\0\x01")[3] == "an array of no values"
    assert broken(array + b"\x89\x01\x05\x01")[3] == "an array of records of the type 0x89"
    assert broken(array + b"\x8d\x02\0\0\0\0\x01")[3] == "2 values are announced and 5 bytes are left"
    assert broken(b"\x40\x01r\x03\x80")[3] == "an array without an element"
    assert broken(b"\x40\x01r\x03\x40\x01a\x80")[3] == "the element of an array does not end"
    kinds = (0x8B, 0x8D, 0x8F, 0x91, 0x93, 0x95, 0x97, 0xAF, 0xB1, 0xB5)
    for kind in {*range(0x100)} - {*kinds}:
        assert (
            broken(array + bytes([kind, 1]) + bytes(17))[3] == f"an array of records of the type 0x{kind:02X}"
        )
    for kind in kinds:
        size = characters.FIXED[kind - 1][0].size
        xml = characters_of(array + bytes([kind, 2]) + bytes(2 * size) + b"\x01")
        assert xml.count("<a>") == 2


@pytest.mark.requirement("NBFX-2.1.2-01")
@pytest.mark.parametrize(
    "number, data",
    [(17, "11"), (145, "9101"), (5521, "912b"), (16384, "808001"), (268435456, "8080808001"),
     (0x7FFFFFFF, "ffffffff07")],
)  # fmt: skip
def test_numbers_of_31_bits(number, data):
    assert read_size(bytes.fromhex(data), 0) == (number, len(data) // 2)
    assert build_size(number) == bytes.fromhex(data)


@pytest.mark.requirement("NBFX-2.1.2-01")
def test_numbers_beyond_31_bits_are_refused():
    for data in (b"\xff\xff\xff\xff\x08", b"\x80\x80\x80\x80\x80\x01"):
        with pytest.raises(Fault):
            read_size(data, 0)
    with pytest.raises(Fault):
        read_size(b"\x80\x80", 0)


@pytest.mark.requirement("NBFX-2.2.3.30-01")
def test_the_prefix_of_a_name_is_one_of_26_letters():
    assert element(b"\xbc\x00\x02") == ("a:Envelope", [])
    assert element(b"\xbc\x19\x02") == ("z:Envelope", [])
    assert broken(b"\x40\x01r\xbc\x1a\x02\x01")[3] == "26 is the prefix of no name"


@pytest.mark.requirement("NBFX-NBFS-2.1-01", "NBFX-NBFS-2.1-03", "NBFX-NBFSE-2.2-02")
def test_numbers_of_no_string():
    assert broken(b"\x40\x01r\xab\x01")[3] == "1 is not a string of the session"  # there is none
    assert broken(b"\x40\x01r\xab\xce\x07")[3] == "974 is not a string of the static dictionary"
    assert broken(b"\x40\x01r\xab\x03", words={1: "a"})[3] == "3 is not a string of the session"


def test_comments_of_xml():
    found = []
    assert (
        characters_of(b"\x40\x01r\x02\x05a--b-\x01", problems=found) == "<r><!--a\u2010\u2010b\u2010--></r>"
    )
    assert len(found) == 1


def test_names_can_hold_no_markup():
    found = []
    xml = characters_of(b'\x40\x0ca b="<x y=\'"\x01', problems=found)
    assert ElementTree.fromstring(xml).tag == "a_x0020_b_x003D__x0022__x003C_x_x0020_y_x003D__x0027__x0022_"
    assert len(found) == 1


def test_prefixes_are_declared_and_attributes_stand_once():
    errors = [
        (b"\x5e\x01a\x01", "the prefix 'a' is not declared"),
        (b"\x41\x03pre\x01a\x01", "the prefix 'pre' is not declared"),
        (b"\x40\x01r\x26\x01b\x80\x01", "the prefix 'a' is not declared"),
        (b"\x40\x01r\x04\x01a\x80\x04\x01a\x80\x01", "the attribute 'a' stands twice"),
        (
            b"\x40\x01r\x09\x01a\x01u\x09\x01b\x01u\x26\x01x\x80\x27\x01x\x80\x01",
            "the attribute 'x' stands twice",
        ),
        (b"\x40\x01r\x09\x01a\x01u\x09\x01a\x01v\x01", "the prefix 'a' is declared twice"),
        (b"\x40\x01r\x09\x01a\0\x01", "the prefix 'a' can't be declared as ''"),
        (b"\x40\x01r\x09\x03xml\x01u\x01", "the prefix 'xml' can't be declared as 'u'"),
    ]
    for data, error in errors:
        found = []
        characters_of(data, problems=found)
        assert [problem.error for problem in found] == [error]
    # A declaration ends with its element.
    found = []
    data = b"\x40\x01r\x40\x01b\x09\x01a\x01u\x01\x5e\x01c\x01\x01"
    characters_of(data, problems=found)
    assert [problem.path for problem in found] == ["r.a:c"]


def test_bytes_after_the_envelope_are_reported():
    body = vector("nbfs_envelope.hex")
    assert read(body + b"\x40\x01a\x01").problems[0].offset == len(body)
    assert "text outside" in read(body + b"\x80").problems[0].error


@pytest.mark.parametrize("name", ["wcf_body_netmsmq.hex", "nbfs_envelope.hex", "nbfse_envelope.hex"])
def test_each_cut_is_reported_and_keeps_what_was_read(name):
    body = vector(name)
    whole = read(body).value["xml"]
    first = 46 + 2 if "netmsmq" in name else 3 + 19
    for cut in range(first, len(body)):
        content = read(body[:cut]) if wcf.recognises(body[:cut]) else None
        if content is None:
            continue
        assert content.problems
        xml = content.value["xml"]
        if xml:
            expat.ParserCreate().Parse(xml, True)  # prefixes may not be declared yet
            assert whole.startswith(xml[: xml.index("</")].rstrip(">"))


# -- Sessions and modes --

XML = (
    '<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" '
    'xmlns:a="http://www.w3.org/2005/08/addressing"><s:Header>'
    '<a:Action s:mustUnderstand="1">http://tempuri.org/IOrders/Submit</a:Action></s:Header>'
    '<s:Body><Submit xmlns="http://tempuri.org/"><Id>5</Id><Name>Jos\u00e9 &amp; Co</Name></Submit></s:Body>'
    "</s:Envelope>"
)


@pytest.mark.parametrize("encoding", [*range(6), 7, 8, "application/soap+msbin1"])
def test_what_is_written_is_read(encoding):
    value = {"via": VIA, "encoding": encoding, "xml": XML}
    content = read(wcf.write(value, None))
    assert content.value == value
    assert content.problems == ()
    assert content.text == "http://tempuri.org/IOrders/Submit  Submit{Id: 5, Name: José & Co}"


def test_the_encoding_of_net_msmq_is_the_usual_one():
    assert read(wcf.write({"via": VIA, "xml": XML}, None)).value["encoding"] == 7


@pytest.mark.requirement(
    "NMF-3.1.1.2-02", "NMF-3.1.1.2-03", "NMF-3.2.4.2-01", "NMF-3.2.4.3-01", "NMF-3.3.4.2-01",
    "NMF-3.3.4.4-01", "NMF-3.1.4.12-01", "NBFX-NBFSE-2.1-04",
)  # fmt: skip
@pytest.mark.parametrize("mode, more", [("Simplex", 2), ("Duplex", 1), ("SingletonUnsized", 0)])
def test_sessions(mode, more):
    value = {"via": VIA, "encoding": 8, "mode": mode, "xml": XML}
    if more:
        value["more"] = [XML.replace("Name", f"Name{number}") for number in range(more)]
    body = wcf.write(value, None)
    content = read(body)
    assert content.value == value
    assert content.problems == ()
    if more:
        # The strings of the first envelope are not told again.
        assert body.count(b"\x13http://tempuri.org/") == 1


@pytest.mark.parametrize("mode", ["Simplex", "Duplex"])
def test_a_session_without_envelopes(mode):
    value = {"via": VIA, "encoding": 8, "mode": mode, "xml": None}
    content = read(wcf.write(value, None))
    assert (content.value, content.problems) == (value, ())
    for wrong in ({"mode": "SingletonUnsized"}, {"mode": "SingletonSized"}, {"more": [XML]}, {"via": None}):
        with pytest.raises(InvalidValue, match="the envelope, a text of XML"):
            wcf.write(value | wrong, None)


def test_a_session_of_one_envelope_without_it():
    content = read(b"\x00\x01\x00\x01\x01\x02\x01u\x03\x07\x0c\x07")
    assert [problem.error for problem in content.problems] == ["a session of one envelope has none"]
    assert content.value["xml"] is None


@pytest.mark.requirement("NMF-3.1.1.2-03", "NMF-2.2.4.3-01", "NMF-3.1.4.12-01")
def test_an_unsized_envelope_in_chunks():
    data = write_document(XML)
    body = b"\x00\x01\x00\x01\x01\x02\x01u\x03\x07\x0c\x05"
    body += b"".join(b"\x05" + data[at : at + 5] for at in range(0, len(data) - 5, 5))
    rest = data[(len(data) - 1) // 5 * 5 :]
    content = read(body + bytes([len(rest)]) + rest + b"\x00\x07")
    assert (content.value["xml"], content.problems) == (XML, ())
    none = read(b"\x00\x01\x00\x01\x01\x02\x01u\x03\x07\x0c\x05\x00\x07")
    assert none.problems[0].error == "an envelope of no chunks"


SIMPLEX = b"\x00\x01\x00\x01\x03\x02\x01u\x03\x07"


@pytest.mark.parametrize(
    "data, error",
    [
        (b"", "the session has no end record"),
        (b"\x0c", "the session has no end record"),
        proving(b"\x0c\x0d", "0x0D is the type of no record", ids="NMF-2.2.1-01"),
        proving(b"\x0c\x06\x00", "a size of zero, or with a zero after it", ids="NMF-3.1.4.1-01"),
        proving(b"\x0c\x06\x81\x00a", "a size of zero, or with a zero after it", ids="NMF-3.1.1.2-05"),
        (b"\x0c\x06\x05a", "5 bytes are announced and 1 is left"),
        proving(b"\x0c\x0c", "PreambleEndRecord can't stand here", ids=("NMF-3.1.4.2-01", "NMF-3.3.4.2-01")),
        proving(b"\x07", "EndRecord can't stand here", ids=("NMF-3.1.4.2-01", "NMF-3.3.4.2-01")),
        proving(b"\x0c\x05\x01a\x00\x07", "UnsizedEnvelopeRecord can't stand here", ids="NMF-3.1.4.2-01"),
        proving(b"\x09\x01t", "UpgradeRequestRecord can't stand here", ids="NMF-3.1.4.2-01"),
        proving(b"\x0c\x08\x01f", "FaultRecord can't stand here", ids="NMF-3.1.4.2-01"),
        (b"\x0c\x07more", "4 bytes are after the end record"),
    ],
)
def test_records_that_can_not_stand_where_they_stand(data, error):
    content = read(SIMPLEX + data)
    assert content.problems[-1].error == error
    assert content.problems[-1].offset >= len(SIMPLEX)
    assert content.value["via"] == "u"


@pytest.mark.requirement("NMF-3.1.1.2-04", "NMF-3.1.4.7-01")
@pytest.mark.parametrize("number, mode", [(1, "SingletonUnsized"), (2, "Duplex")])
def test_an_upgrade_is_reported(number, mode):
    preamble = SIMPLEX[:4] + bytes([number]) + SIMPLEX[5:]
    late = read(preamble + b"\x0c\x09\x01t")
    assert late.problems[-1].error == "UpgradeRequestRecord can't stand here"
    for name, count in (("application/ssl-tls", 1), ("x" * 256, 1), ("x" * 257, 2)):
        raw = name.encode()
        content = read(preamble + b"\x09" + build_size(len(raw)) + raw + b"\x16\x03")
        assert content.value == {"via": "u", "encoding": 7, "mode": mode, "upgrade": name, "xml": None}
        assert len(content.problems) == count
        assert (
            content.problems[-1].error
            == "the bytes after an upgrade are a protocol of their own, and not read"
        )


@pytest.mark.requirement(
    "NMF-2.2.3.1-02", "NMF-3.1.4.3-01", "NMF-3.1.4.4-01", "NMF-2.2.6-01", "NMF-2.2.3.3-02"
)
@pytest.mark.parametrize(
    "body, path, offset",
    [
        (b"\x00\x00\x00\x01\x04\x02\x01u\x03\x07", "VersionRecord.MajorVersion", 1),
        (b"\x00\x02\x00\x01\x04\x02\x01u\x03\x07", "VersionRecord.MajorVersion", 1),
        (b"\x00\xff\x00\x01\x04\x02\x01u\x03\x07", "VersionRecord.MajorVersion", 1),
        proving(b"\x00\x01\x00\x01\x05\x02\x01u\x03\x07", "ModeRecord.Mode", 4, ids="NMF-2.2.3.2-01"),
        proving(b"\x00\x01\x00\x01\x00\x02\x01u\x03\x07", "ModeRecord.Mode", 4, ids="NMF-2.2.3.2-01"),
        (b"\x00\x01\x00\x02\x01u\x01\x04\x03\x07", "", 3),
        (b"\x00\x01\x00\x01\x04\x02\x01\xff\x03\x07", "ViaRecord", 7),
        (b"\x00\x01\x00\x01\x04\x02\x00\x03\x07", "ViaRecord.Size", 6),
        (b"\x00\x01\x00\x01\x04\x02\x05u", "ViaRecord.Size", 6),
        (b"\x00\x01\x00\x01\x04\x02\x01u\x07", "", 8),
        (b"\x00\x01\x00\x01\x04\x02\x01u\x03", "KnownEncodingRecord", 9),
        (b"\x00\x01\x00\x01\x04\x02\x01u", "", 8),
        (b"abc", "", 0),
    ],
)
def test_a_preamble_that_is_none_is_refused(body, path, offset):
    with pytest.raises(MalformedBody) as caught:
        read(body)
    assert (caught.value.path, caught.value.offset) == (path, offset)


@pytest.mark.requirement("NMF-2.2.3.1-02", "NMF-2.2.3.1-03")
def test_the_minor_version_is_written_as_zero_and_not_looked_at():
    body = wcf.write({"via": VIA, "xml": XML}, None)
    assert body[:3] == b"\x00\x01\x00"
    assert read(body[:2] + b"\x05" + body[3:]).problems == ()


@pytest.mark.requirement("NMF-3.1.4.5-01", "NMF-3.1.4.5-02", "NMF-3.1.4.6-01")
def test_a_preamble_that_wcf_would_refuse_is_reported():
    long = b"v" * 2049
    envelope = write_document("<a></a>")
    content = read(b"\x00\x01\x00\x01\x04\x02\x81\x10" + long + b"\x03\x07" + envelope)
    assert [problem.path for problem in content.problems] == ["ViaRecord.Via"]
    assert content.value["xml"] == "<a></a>"
    longest = b"\x00\x01\x00\x01\x04\x02\x80\x10" + long[1:] + b"\x03\x07" + envelope
    assert read(longest).problems == ()
    kind = b"application/soap+msbin1;" + b"x" * (256 - 24)
    content = read(b"\x00\x01\x00\x01\x04\x02\x01u\x04" + build_size(len(kind)) + kind + envelope)
    assert content.problems == ()
    kind += b"x"
    content = read(b"\x00\x01\x00\x01\x04\x02\x01u\x04" + build_size(len(kind)) + kind + envelope)
    assert [problem.path for problem in content.problems] == ["ExtensibleEncodingRecord"]
    with pytest.raises(InvalidValue):
        wcf.write({"via": "v" * 2049, "xml": XML}, None)


@pytest.mark.requirement("NMF-3.1.4.6-02")
@pytest.mark.parametrize(
    "record",
    [
        proving(b"\x03\x09", ids="NMF-2.2.3.4.1-01"),
        proving(b"\x04\x03a/b", ids="NMF-2.2.3.4.2-02"),
        proving(b"\x04\x04junk", ids="NMF-2.2.3.4.2-02"),
    ],
)
def test_an_encoding_that_is_not_known_leaves_the_bytes(record):
    content = read(b"\x00\x01\x00\x01\x04\x02\x01u" + record + b"rest")
    assert content.value["message"] == {"$bytes": b"rest".hex()}
    assert content.value["xml"] is None
    assert "is not known" in content.problems[0].error
    assert content.text.startswith("u  (")


@pytest.mark.requirement("NBFX-NBFSE-2.1-01", "NBFX-NBFSE-2.1-02")
def test_tables_that_are_none():
    preamble = b"\x00\x01\x00\x01\x04\x02\x01u\x03\x08"
    content = read(preamble + b"\x03\x05ab\x40\x01r\x01")
    assert content.value["xml"] is None
    assert [(problem.path, problem.offset) for problem in content.problems] == [("StringTable.Strings", 11)]
    assert read(preamble + b"\x20a").problems[0].path == "StringTable.Size"
    content = read(preamble + b"\x04\x01a\x01a\x42\x03\x01")
    assert content.value["xml"] == "<a></a>"
    assert [problem.error for problem in content.problems] == ["a string that the session has already"]


@pytest.mark.requirement("NMF-3.1.4.11-01")
def test_limits():
    flat = b"\x40\x01r" + b"\x40\x01a\x01" * 5000 + b"\x01"
    assert "records" in broken(flat, Limits(records=100))[3]
    assert "characters" in broken(flat, Limits(text=100))[3]
    assert "memory" in broken(flat, Limits(memory=100))[3]
    deep = b"\x40\x01a" * 100_000
    xml, _, path, error = broken(deep, Limits(depth=50))
    assert error == "more than 50 elements within each other"
    assert xml == "<a>" * 50 + "</a>" * 50
    assert path.count("a") == 50
    assert broken(b"\x40\x81\x80\x02" + b"a" * 32769 + b"\x01")[3] == "a name of 32,769 bytes"
    many = b"\x40\x01r" + b"\x06\x00\x80" * 10_001
    assert broken(many + b"\x01")[3] == "more than 10000 attributes of one element"
    xml, *_ = broken(b"\x40\x01r" + b"\x5e\x01a\x01" * 50 + b"\x01")
    assert xml.count("<a:a>") == 50


def test_many_problems_are_counted():
    content = read(b"\x00\x01\x00\x01\x04\x02\x01u\x03\x07\x40\x01r" + b"\x5e\x01a\x01" * 50 + b"\x01")
    assert len(content.problems) == PROBLEMS_MAX + 1
    assert content.problems[-1].error == "18 more problems of this kind are not reported"


# -- Other encodings --


def framed(record, message):
    return b"\x00\x01\x00\x01\x04\x02\x01u" + record + message


@pytest.mark.parametrize(
    "number, encoding",
    [(0, "utf-8"), (3, "utf-8")]
    + [(number, mark) for number in range(6) for mark in ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be")],
)
def test_the_bytes_tell_how_a_text_is_encoded(number, encoding):
    content = read(framed(bytes([3, number]), XML.encode(encoding)))
    assert content.value["xml"] == XML
    assert content.problems == ()


@pytest.mark.parametrize(
    "text",
    [
        "<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>",
        "<a>",
        "<a></b>",
        "<a/><b/>",
        "a",
        "",
        "<a b='1' b='2'/>",
        "<p:a/>",
        "<a p:b='1'/>",
        "<?pi x?><a/>",
        "<a>&x;</a>",
        "<a>&#1114112;</a>",
        "<a b=<></a>",
        "<a>]]></a>",
        "<!-- a -- b --><a/>",
        "<a xmlns:xml='u'/>",
        "<a\x01/>",
        "<1/>",
        "</a>",
        "<a b/>",
        "<a><![CDATA[x</a>",
    ],
)
def test_a_text_that_is_no_message_stays_and_is_reported(text):
    content = read(framed(b"\x03\x03", text.encode()))
    assert content.value["xml"] == text
    assert len(content.problems) == 1
    with pytest.raises(InvalidValue) as caught:
        wcf.write({"via": "u", "xml": text}, None)
    assert caught.value.path == "xml"


def test_bytes_in_another_encoding_are_reported():
    content = read(framed(b"\x03\x03", b"<a>\xff</a>"))
    assert content.value["xml"] == "<a>\ufffd</a>"
    assert content.problems[0].offset == 13
    content = read(framed(b"\x04\x1etext/xml; charset=shift_jis;;;", b"<a/>"))
    assert content.value["xml"] is None
    assert "'shift_jis' is not read" in content.problems[0].error


@pytest.mark.requirement("NMF-2.2.3.4.2-02")
@pytest.mark.parametrize("kind", ["text/xml; charset=utf-8", "application/soap+xml;charset=iso-8859-1"])
def test_a_content_type_may_name_a_text(kind):
    raw = kind.encode()
    text = "<a>\xe9</a>"
    content = read(framed(b"\x04" + bytes([len(raw)]) + raw, text.encode(kind.partition("=")[2])))
    assert content.value == {"via": "u", "encoding": kind, "xml": text}
    assert content.problems == ()


@pytest.mark.parametrize(
    "kind", ["msbin1+gzip", "msbin1+deflate", "msbinsession1+gzip", "msbinsession1+deflate"]
)
def test_compressed_messages(kind):
    data = write_document(XML, SessionWriter() if "session" in kind else None)
    if "gzip" in kind:
        packed = gzip.compress(data)
    else:
        packer = zlib.compressobj(wbits=-15)
        packed = packer.compress(data) + packer.flush()
    raw = f"application/soap+{kind}".encode()
    preamble = framed(b"\x04" + bytes([len(raw)]) + raw, b"")
    content = read(preamble + packed)
    assert (content.value["xml"], content.problems) == (XML, ())
    assert read(preamble + packed[:-9]).problems[0].error == "the compressed message ends early"
    assert "not compressed" in read(preamble + b"junk, junk").problems[0].error


def test_a_message_that_is_unpacked_has_a_limit():
    packed = gzip.compress(b"\x40\x01r" + b"\x80" * 30_000_000 + b"\x01")
    content = read(framed(b"\x04\x1capplication/soap+msbin1+gzip", packed))
    assert "when it is unpacked" in content.problems[0].error


INCLUDE = (
    '<xop:Include href="cid:http%3A%2F%2Ftempuri.org%2F1" xmlns:xop="http://www.w3.org/2004/08/xop/include"/>'
)
MTOM = f"""MIME-Version: 1.0
Content-Type: multipart/related;type="application/xop+xml";start="<http://tempuri.org/0>";boundary="uuid:1+id=1"

--uuid:1+id=1
Content-ID: <http://tempuri.org/0>
Content-Transfer-Encoding: 8bit
Content-Type: application/xop+xml;charset=utf-8;type="application/soap+xml"

<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Body><D>{INCLUDE}</D></s:Body></s:Envelope>
--uuid:1+id=1
Content-ID: <http://tempuri.org/1>
Content-Transfer-Encoding: binary
Content-Type: application/octet-stream

"""


def mtom(data, text=MTOM):
    return text.replace("\n", "\r\n").encode() + data + b"\r\n--uuid:1+id=1--\r\n"


def test_parts_of_mtom_are_put_where_they_belong():
    data = bytes(range(256))
    expected = MTOM.split("\n")[8].replace(INCLUDE, base64.b64encode(data).decode())
    for message in (mtom(data), mtom(data, MTOM.partition("\n\n")[2])):
        content = read(framed(b"\x03\x06", message))
        assert content.problems == ()
        assert content.value == {"via": "u", "encoding": 6, "xml": expected}


def test_parts_of_mtom_that_are_not_there():
    content = read(framed(b"\x03\x06", mtom(b"x", MTOM.replace("org/1>", "org/2>"))))
    assert INCLUDE in content.value["xml"]
    assert "a part that is not there" in content.problems[0].error
    for message, error in (
        (b"junk", "neither headers nor a boundary"),
        (b"Content-Type: a/b\r\n\r\n", "no boundary"),
        (b"--b\r\nx", "headers of a part do not end"),
        (b"--b\r\n\r\n", "does not end"),
        (mtom(b"x")[:-20], "does not end"),
    ):
        content = read(framed(b"\x03\x06", message))
        assert any(error in problem.error for problem in content.problems), content


# -- Writing --


@pytest.mark.parametrize(
    "text, record",
    [
        ("", "a8"), ("0", "80"), ("1", "82"), ("ab", "98026162"), ("é", "9802c3a9"), ("日本", "b604e5652c67"),
        ("😀", "9804f09f9880"), ("\ud800", "b60200d8"),
    ],
)  # fmt: skip
def test_texts_are_written_as_wcf_does(text, record):
    assert records.build([text_record(text)]).hex() == record


@pytest.mark.parametrize("size, kind", [(255, 0x98), (256, 0x9A), (65535, 0x9A), (65536, 0x9C)])
def test_long_texts_have_long_lengths(size, kind):
    assert text_record("x" * size).kind == kind


def test_characters_that_xml_forbids_are_written_back():
    data = b"\x40\x02el\x99\x03a\0\x1f"
    xml = characters_of(data)
    assert xml == "<el>a&#0;&#31;</el>"
    assert write_document(xml) == data


@pytest.mark.parametrize(
    "value, path",
    [
        ("text", ""),
        ({"via": VIA}, "xml"),
        ({"via": 5, "xml": XML}, "via"),
        ({"xml": XML, "encoding": 3}, "via"),
        ({"via": VIA, "xml": XML, "encoding": 9}, "encoding"),
        ({"via": VIA, "xml": XML, "encoding": 6}, "encoding"),
        ({"via": VIA, "xml": XML, "encoding": True}, "encoding"),
        ({"via": VIA, "xml": XML, "encoding": "a/b"}, "encoding"),
        ({"via": VIA, "xml": XML, "mode": 4}, "mode"),
        ({"via": VIA, "xml": XML, "more": [XML]}, "more"),
        ({"via": VIA, "xml": XML, "more": 5}, "more"),
        ({"via": VIA, "xml": XML, "mode": "Simplex", "more": ["<a>"]}, "more[0]"),
        ({"via": VIA, "xml": XML, "mode": "SingletonUnsized", "more": [XML]}, "more"),
        ({"via": VIA, "xml": XML, "note": 1}, "note"),
        ({"via": "\ud800", "xml": XML}, "via"),
    ],
)
def test_values_that_can_not_be_written(value, path):
    with pytest.raises(InvalidValue) as caught:
        wcf.write(value, None)
    assert caught.value.path == path


def test_a_message_has_no_type():
    with pytest.raises(InvalidValue):
        wcf.write({"via": VIA, "xml": XML}, "Order")


def test_lines_for_people():
    def line(inside):
        return read(wcf.write({"via": "u", "xml": f"<E><Body>{inside}</Body></E>"}, None)).text

    assert line("<a/>") == "a"
    assert line("<a><b/><c>1 &lt; 2</c><d><e>x</e></d></a>") == "a{b, c: 1 < 2, d{e: x}}"
    assert line("") == "u  (SOAP 1.2, binary)"
    long = line("<a>" + "".join(f"<b>{n}</b>" for n in range(500)) + "</a>")
    assert len(long) <= 161
    assert long.endswith("…")
    text = read(
        framed(b"\x03\x03", b"<E><Header><Action>urn:x</Action></Header><Body><a/><b>1</b></Body></E>")
    )
    assert text.text == "urn:x  a"
