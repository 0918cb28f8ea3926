"""Names in XML of unauthenticated peers do not stay in memory."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from msmqwire.errors import MalformedPacket
from msmqwire.srmp import xml_reader
from msmqwire.srmp.envelope import parse_envelope
from msmqwire.srmp.message import parse_message
from tests.support.paths import ROOT, VECTORS
from tests.support.patience import limit

WINDOWS = parse_message(VECTORS.joinpath("srmp", "4.2.http").read_bytes()).envelope_bytes or b""
GROWTH = """
from msmqwire.srmp.envelope import parse_envelope
from tests.unit.srmp.test_srmp_xml_reader import WINDOWS, from_peer

def megabytes():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 >> 20

def send(number):
    parse_envelope(from_peer(number, names))

names = {names}
for number in range(15_000 // names):
    send(number)
before = megabytes()
for number in range(15_000 // names, 200_000 // names):
    send(number)
print(megabytes() - before)
"""


def from_peer(number: int, names: int) -> bytes:
    """An envelope with names that no other one has."""
    own = b"".join(b"<n%d.%d a%d.%d=''/>" % (number, one, number, one) for one in range(names))
    return WINDOWS.replace(b"<se:Header>", b"<se:Header><x>" + own + b"</x>")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("names", [3000, 200])
def test_new_names_are_forgotten(names):
    program = GROWTH.replace("{names}", str(names))
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=limit(120),
    )
    assert int(run.stdout) < 5, run.stdout


@pytest.mark.parametrize(
    ("change", "known", "learned"),
    [
        (lambda data: data, True, True),
        (lambda data: data.replace(b"20503", b"1"), True, True),
        (lambda data: data.replace(b"<action>MSMQ:", b"<action>MSMQ:a &gt; b > c"), True, True),
        (lambda data: data.replace(b"<to>", b"<too>"), False, True),
        (lambda data: data.replace(b"</to>", b"</too>"), False, True),
        (lambda data: data.replace(b"<to>", b"<to x='1'>"), False, True),
        (lambda data: data.replace(b"<to>", b"<to x='\"'>"), False, True),
        (lambda data: data.replace(b"<to>", b"<to x='>'>"), False, False),
        (lambda data: data.replace(b"<to>", b"<to x=\">\" y='1'>"), False, False),
        (lambda data: data.replace(b"xmlns:se=", b"xmlns:sf=").replace(b"se:", b"sf:"), False, True),
        (lambda data: data.replace(b"srmp/", b"srmp/2"), False, True),
        (lambda data: data.replace(b"<to>", b" \t" * 8 + b"<to>"), False, True),
        (lambda data: data.replace(b"<to>", b" " * 16 + b"text<to>"), True, True),
        (lambda data: data.replace(b"<to>", b"\r\n   <to>"), True, True),
        (lambda data: data.replace(b" xmlns", b"\r\n  xmlns"), True, True),
        (lambda data: data.replace(b"<to>", b"<!-- --><to>"), False, False),
        (lambda data: data.replace(b"<to>", b"<![CDATA[ ]]><to>"), False, False),
        (lambda data: data + b"<?a?>", False, False),
        (lambda data: b'<?xml version="1.0"?>\n' + data, False, True),
        (lambda data: data.replace(b"<se:Body>", b"<durable/><positiveOnly /><se:Body>"), True, True),
        (lambda data: data.replace(b"<se:Body>", b"<a/><se:Body>"), False, True),
        (lambda data: data.replace(b"<se:Body>", b"<durable/a/><se:Body>"), False, True),
        (lambda data: data.replace(b"<se:Body>", b"</durable/><se:Body>"), False, True),
        (lambda data: data.replace(b"<se:Body>", b"<a/>" * 3000 + b"<se:Body>"), False, False),
    ],
)
def test_what_is_read_in_a_thread_of_its_own(change, known, learned, monkeypatch):
    """Without room for new names only what is known is not, with room whatever shows all its names."""
    data = change(WINDOWS)
    monkeypatch.setattr(xml_reader, "_LEARNED", xml_reader._LearnedTags(0))
    assert xml_reader.has_known_names(xml_reader.tags_of(data)) is known
    monkeypatch.setattr(xml_reader, "_LEARNED", xml_reader._LearnedTags(10_000))
    assert xml_reader.has_known_names(xml_reader.tags_of(data)) is learned


def test_names_are_learned_as_long_as_there_is_room(monkeypatch):
    monkeypatch.setattr(xml_reader, "_LEARNED", xml_reader._LearnedTags(10_000))
    changed = (WINDOWS.replace(b"<to>", b"<to%d>" % number) for number in range(100))
    documents = [*map(xml_reader.tags_of, changed)]
    learned = sum(map(xml_reader.has_known_names, documents))
    assert 5 < learned < 20
    assert all(map(xml_reader.has_known_names, documents[:learned] * 2)), "they take no more room"
    assert not any(map(xml_reader.has_known_names, documents[learned:]))


def test_errors_there_are_reported_here():
    with pytest.raises(MalformedPacket):
        parse_envelope(b"<n><m></n>")
    before = threading.active_count()
    assert xml_reader.parse_xml(b"<n/>").tag == "n"
    assert threading.active_count() == before
