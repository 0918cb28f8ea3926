"""Envelopes of SRMP: what can be built is read again, and any bytes raise nothing but errors of msmqwire."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fuzz.readers.srmp import envelopes as is_whole
from msmqwire.errors import InvalidValue
from msmqwire.srmp.envelope import Envelope, build_envelope, envelope_from_json, parse_envelope
from msmqwire.srmp.xml_reader import has_known_names, tags_of
from tests.support.paths import VECTORS
from tests.support.srmp.srmp_strategies import envelopes

PUBLISHED = [path.read_bytes() for path in sorted(VECTORS.glob("srmp/*.xml"))]
# A SHOULD, and what 3.1.7.2.4 itself writes.
SENT = {"SRMP-2.2.4.3-04", "SRMP-2.2.6.12-02", "SRMP-2.2.6.12-03"}
PIECES = [
    *(
        b"<",
        b">",
        b"/",
        b'"',
        b"'",
        b"=",
        b"&",
        b";",
        b":",
        b"<!--",
        b"-->",
        b"<![CDATA[",
        b"]]>",
        b"<?",
        b"?>",
    ),
    *(
        b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
        b"&b;",
        b"&#0;",
        b"&#x41;",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\r\n",
    ),
    *(b'<?xml version="1.0" encoding="utf-16"?>', b"<a>", b"</a>", b"<x:y/>", b' xmlns:x="urn:x"', b"<via/>"),
    *(
        b"<se:Header>",
        b"</se:Header>",
        b"<se:Body/>",
        b'se:mustUnderstand="1"',
        b"9" * 40,
        b"Stream",
        b"uuid:",
    ),
]


@given(envelopes())
def test_what_is_built_is_read_again(envelope):
    data = build_envelope(envelope)
    again = parse_envelope(data)
    assert again == envelope
    assert again.source == data
    assert {departure.requirement for departure in again.departures} <= SENT
    assert build_envelope(again.replace()) == data  # built anew


@given(envelopes())
def test_what_is_built_has_known_names(envelope):
    """It is read where it is needed, in no thread of its own; signatures are too rare to matter."""
    plain = Envelope(envelope.header.replace(Signature=None))
    assert has_known_names(tags_of(build_envelope(plain)))


@given(envelopes())
def test_json_and_back(envelope):
    assert envelope_from_json(json.loads(json.dumps(envelope.to_json()))) == envelope


@given(st.binary(max_size=200))
@example(b"")
@example(b"<")
@example(b"<!--><a/>-->")
@example(b"\xef\xbb\xbf")
def test_any_bytes(data):
    is_whole(data)


@given(
    st.sampled_from(PUBLISHED),
    st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 12), st.sampled_from(PIECES) | st.binary(max_size=4)),
        min_size=1,
        max_size=4,
    ),
)
def test_published_envelopes_with_pieces_replaced(data, changes):
    for place, length, piece in changes:
        at = int(place * len(data))
        data = data[:at] + piece + data[at + length :]
    is_whole(data)


@given(st.sampled_from(PUBLISHED), st.data())
def test_published_envelopes_with_elements_moved(data, draw):
    pieces = data.replace(b"><", b">\0<").replace(b">\n<", b">\0<").split(b"\0")
    at, to = draw.draw(st.tuples(*[st.integers(0, len(pieces) - 1)] * 2))
    pieces.insert(to, pieces.pop(at) if draw.draw(st.booleans()) else pieces[at])
    is_whole(b"".join(pieces))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["Header", "kept", "path", "to", "id", "rev", "via", "Msmq", "Class", "Eod"])
                | st.text(max_size=3),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_any_json(obj):
    try:
        envelope = envelope_from_json(obj)
    except InvalidValue:
        return
    with pytest.raises(InvalidValue):  # hardly ever all that has to be there
        build_envelope(envelope)
