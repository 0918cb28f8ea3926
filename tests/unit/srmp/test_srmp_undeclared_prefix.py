"""A prefix that no element declares is refused wherever it stands, by every reader of envelopes."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from threading import Thread

import pytest

from msmqwire.analysis.dissection import dissect
from msmqwire.errors import MalformedPacket
from msmqwire.srmp.envelope import parse_envelope
from tests.support import captures as c
from tests.support.capture import srmp_captures as s
from tests.support.engine_harness import PEER_ID
from tests.support.srmp import srmp_envelopes as e
from tests.support.srmp.srmp_harness import SrmpHarness
from tests.support.srmp.srmp_requests import SrmpPeer

DOCUMENTS = {
    **e.PUBLISHED,
    "small": e.xml(e.PATH, e.PROPERTIES, e.SERVICES, e.STREAM, e.MSMQ, e.SIGNATURE),
}
_TAG = re.compile(rb"<([A-Za-z:0-9]+)(?:[^<>\"']|\"[^\"]*\"|'[^']*')*?(/?)>")


def spoilt(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """An envelope with a prefix nobody declares at each tag, and the name that has it."""
    for tag in _TAG.finditer(data):
        for name in (b"zz:q", b"zz:mustUnderstand"):
            yield data[: tag.end(1)] + b" " + name + b'="1"' + data[tag.end(1) :], name
        if not tag[2]:
            yield data[: tag.end()] + b"<zz:q/>" + data[tag.end() :], b"zz:q"
            close = b"</" + tag[1] + b">"
            end = data.find(close, tag.end())
            name = b"zz:" + tag[1].rpartition(b":")[2]
            inside = data[tag.end(1) : end] + b"</" + name + b">"
            yield data[: tag.start() + 1] + name + inside + data[end + len(close) :], name


@pytest.mark.parametrize("name", DOCUMENTS)
def test_at_every_tag_and_again(name):
    """Also the second time, when the names of a document are known."""
    parse_envelope(DOCUMENTS[name])
    count = 0
    for data, _ in spoilt(DOCUMENTS[name]):
        for _ in range(2):
            with pytest.raises(MalformedPacket, match="prefix") as caught:
                parse_envelope(data)
            assert caught.value.path == "Envelope"
            assert caught.value.offset is not None
        count += 1
    assert count >= 40


def test_the_error_stands_at_the_element():
    data = e.xml(e.PATH, e.PROPERTIES, e.MSMQ.replace("<Priority>", '<Priority zz:q="1">'))
    for _ in range(2):
        error = e.refused(data)
        assert data.index(b"<Priority") <= error.offset <= data.index(b"3</Priority")


@pytest.mark.parametrize(
    "broken",
    [
        '<x xmlns:p=""/>',
        '<x xmlns:xml="urn:x"/>',
        '<x xmlns:xmlns="urn:x"/>',
        '<x xmlns:q="http://www.w3.org/XML/1998/namespace"/>',
        '<x xmlns="http://www.w3.org/2000/xmlns/"/>',
        '<x xmlns:p="urn:a" xmlns:q="urn:a" p:a="1" q:a="2"/>',
        "<se:a:b/>",
        "<:a/>",
        "<a:/>",
        "<?a:b c?>",
    ],
)
@pytest.mark.parametrize("place", ["<action>", "</Msmq>"])
def test_no_later_warning_hides_an_error_of_namespaces(broken, place):
    """The namespace of Msmq is not absolute, which is a warning: the last word on a document before it."""
    data = e.WITH_MSMQ.replace(place.encode(), broken.encode() + place.encode(), 1)
    for _ in range(2):
        error = e.refused(data)
        assert error.path == "Envelope"
        at = data.index(broken.encode())
        assert at <= error.offset <= at + len(broken) + len(place)


def test_many_warnings_do_not_hide_an_error():
    """The XML reader reports a hundred of a kind: what comes before and after the error is not it."""
    warnings = "".join(f'<x xmlns="r{number}"/>' for number in range(300))
    broken = f"{warnings}<se:a:b/>{warnings}<action>"
    assert e.refused(e.WITH_MSMQ.replace(b"<action>", broken.encode(), 1)).path == "Envelope"
    accepted = e.WITH_MSMQ.replace(b"<action>", f"{warnings}<action>".encode(), 1)
    assert parse_envelope(accepted).Msmq is not None


def test_threads_read_documents_of_their_own():
    """One reads what is broken, the other what is not, both with names that are known."""
    broken = e.WITH_MSMQ.replace(b"<action>", b"<se:a:b/><action>", 1)
    for _ in range(2):
        e.refused(broken)
        parse_envelope(e.WITH_MSMQ)
    wrong: list[bytes] = []

    def read(data: bytes) -> None:
        for _ in range(300):
            try:
                parse_envelope(data)
            except MalformedPacket:
                accepted = False
            else:
                accepted = True
            if accepted is (data is broken):
                wrong.append(data)

    threads = [Thread(target=read, args=(data,)) for data in (broken, e.WITH_MSMQ)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_declared_prefix_is_none_of_them():
    declared = e.PATH.replace("<to>", '<to xmlns:zz="urn:z" zz:q="1">')
    assert parse_envelope(e.xml(declared, e.PROPERTIES)).path.to == "http://h/q"


@pytest.mark.parametrize("place", [b"<Priority>", b"<current>", b"<durable/>"])
def test_engine_dissection_columns_and_lint_agree(place):
    request = s.published("4.4-1")
    place = place if place in request else b"<Priority>"
    bad = request.replace(place, place.rstrip(b"/>") + b' zz:q="1"' + place[len(place.rstrip(b"/>")) :], 1)
    bad = re.sub(
        rb"(Content-Length: )(\d+)", lambda found: found[1] + b"%d" % (int(found[2]) + 9), bad, count=2
    )
    capture = c.pcap_bytes(s.http().send(bad).frames)
    (item,) = dissect(io.BytesIO(capture))
    assert item.error is not None
    assert "prefix" in item.error.why
    assert any(finding.severity == "MUST" for finding in item.findings)
    harness = SrmpHarness()
    harness.queue("orders")
    peer = SrmpPeer(harness, PEER_ID)
    assert peer.send(b"m", services='<durable zz:q="1"/>') == 400
