"""Bodies of WCF: framing, records, dictionaries, and the encodings of text."""

from __future__ import annotations

import csv
from xml.etree import ElementTree

import pytest

from msmqwire.bodies import decode, wcf
from msmqwire.bodies.limits import DEFAULT, Budget
from msmqwire.bodies.wcf import framing, nbfx, records
from msmqwire.bodies.wcf.fault import build_size, read_size
from msmqwire.bodies.wcf.words import NUMBERS, WORDS
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
    found = nbfx.Problems()
    session = nbfx.Session()
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


@pytest.mark.parametrize("row", NBFX_RECORDS, ids=lambda row: row["record"])
def test_each_record_of_the_text_is_read_and_written_back(row):
    data = bytes.fromhex(row["bytes"])
    assert characters_of(data, agreed=True) == row["xml"]
    found = list(records.records(data))
    assert row["record"] in [record.name for record in found]
    assert records.NAMES[int(row["type"], 16)] == row["record"]
    assert records.build(found) == data


def test_the_text_has_an_example_of_each_kind_of_record():
    assert len(NBFX_RECORDS) == 83
    # Of the 26 letters of a prefix it has two or three.
    kinds = {int(row["type"], 16) for row in NBFX_RECORDS}
    missing = {name for kind, name in records.NAMES.items() if kind not in kinds}
    assert all(name.startswith("Prefix") for name in missing), missing


@pytest.mark.parametrize("row", table("nbfx_chapter2.tsv"), ids=lambda row: row["record"])
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


def test_an_envelope_with_its_own_strings_says_the_same():
    data = vector("nbfse_envelope.hex")
    assert bytes.fromhex(table("nbfse_envelope.tsv")[-1]["bytes"]) == data
    plain = read(vector("nbfs_envelope.hex"))
    content = read(data)
    assert content.value == {**plain.value, "encoding": 8}
    assert content.problems == ()


def test_the_static_dictionary_is_whole():
    assert len(WORDS) == 487
    assert list(WORDS) == list(range(0, 2 * 487, 2))
    assert len(NUMBERS) == 487
    some = {0: "mustUnderstand", 2: "Envelope", 0x84: "s", 0xA2: "-", 0x256: "xmlns", 0x3CC: "detail"}
    assert {number: WORDS[number] for number in some} == some
    assert WORDS[0x372] == "http://www.w3.org/2001/XMLSchema-instance"


# -- [MC-NMF] --

NMF_RECORDS = table("nmf_records.tsv")


def test_the_table_of_framing_is_whole():
    assert len(NMF_RECORDS) == 33


@pytest.mark.parametrize("row", NMF_RECORDS, ids=lambda row: row["record"])
def test_each_record_of_the_framing_is_read_and_written_back(row):
    data = bytes.fromhex(row["bytes"])
    if row["record"].startswith("size "):
        value = int(row["record"].removeprefix("size "), 16)
        assert read_size(data, 0, framing.SIZE_MAX) == (value, len(data))
        assert build_size(value) == data
        return
    record, end = framing.read_record(data, 0)
    assert end == len(data)
    assert record.kind.record == row["record"].split(" ")[0]
    assert framing.build_record(record) == data


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
