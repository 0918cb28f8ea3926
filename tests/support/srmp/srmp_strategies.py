"""Hypothesis strategies for envelopes of SRMP, made from the declarations of their elements."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from hypothesis import strategies as st

from msmqwire.srmp.content import Content, UndeclaredElement
from msmqwire.srmp.elements import (
    SPACE,
    UINT32_MAX,
    UINT64_MAX,
    Base64,
    Blank,
    Date,
    Element,
    Flag,
    Group,
    Guid,
    Identifier,
    Ignored,
    MessageIdentifier,
    Names,
    Number,
    StreamId,
    StreamIdentifier,
    Text,
)
from msmqwire.srmp.envelope import Envelope
from msmqwire.srmp.schema import HEADER

# Characters with a meaning in XML, and white space that is not white space in XML.
CHARACTERS = st.sampled_from("<&>\"'\r\n\t \u0085\u00a0\u2028") | st.characters(
    codec="utf-8", exclude_characters="\ufffe\uffff"
).filter(lambda character: character >= " " or character in "\t\r\n")
TEXT = st.text(CHARACTERS, max_size=20)
WORDS = TEXT.map(lambda text: text.strip(SPACE))
NAMES = st.text(CHARACTERS, min_size=1, max_size=20).filter(lambda text: not set(text) & set(SPACE))
DATES = st.datetimes(timezones=st.just(UTC)).map(lambda date: date.replace(microsecond=0))
IDENTIFIERS = st.builds(MessageIdentifier, st.integers(0, UINT32_MAX), st.uuids())
# Of a namespace that nobody declares, one without a namespace, one that SRMP has elsewhere, and text inside.
UNKNOWN = st.sampled_from(
    [
        '<x xmlns="urn:a"></x>',
        '<y xmlns=""> <z a="&lt;&quot;">t</z>&gt;</y>',
        '<to xmlns="http://schemas.xmlsoap.org/srmp/" xmlns:n0="urn:b" n0:c="1">\u00e9</to>',
        '<x xmlns="urn:a"><Msmq xmlns="msmq.namespace.xml"></Msmq></x>',
    ]
)


def values_of(element: Element) -> st.SearchStrategy[Any]:
    """The values that an element can have."""
    match element:
        case Group(most=1):
            return contents(element)
        case Group():
            return st.lists(contents(element), min_size=1, max_size=element.most).map(tuple)
        case Flag():
            return st.just(True)
        case Text(one_of=one_of) if one_of:
            return st.sampled_from(one_of)
        case Text(starts=starts) if starts:
            return st.builds(lambda start, rest: (start + rest).rstrip(SPACE), st.sampled_from(starts), WORDS)
        case Text(name="via"):
            return WORDS.filter(bool)
        case Text(name="action"):
            return st.just("") | TEXT.map("MSMQ:".__add__)
        case Text(strip=True):
            return WORDS
        case Text():
            return TEXT
        case Number():
            return st.integers(0, element.maximum)
        case Guid():
            return st.uuids()
        case Date():
            return DATES
        case Base64(length=int(length)):
            return st.binary(min_size=length, max_size=length)
        case Base64():
            return st.binary(max_size=64)
        case Names():
            return st.lists(NAMES, min_size=1, max_size=3).map(tuple)
        case Identifier():
            return IDENTIFIERS
        case StreamId():
            return st.builds(StreamIdentifier, st.uuids(), st.integers(0, UINT64_MAX))
    raise AssertionError(element)


@st.composite
def contents(draw: st.DrawFn, group: Group) -> Content:
    """The possible contents of a group."""
    values: dict[str, Any] = {name: draw(TEXT) for name in group.attributes}
    for child in group.children:
        if not isinstance(child, Ignored | Blank) and (child.least or draw(st.booleans())):
            values[child.name] = draw(values_of(child))
    return Content(group, values)


@st.composite
def envelopes(draw: st.DrawFn) -> Envelope:
    """Envelopes that can be built: `contents` that also keep the rules between groups."""
    header = draw(contents(HEADER))
    if header.Msmq is None:
        header = header.replace(stream=None)
        if draw(st.booleans()):  # nothing looks at it
            text = draw(WORDS.filter(lambda text: not text.startswith("uuid:")))
            header = header.replace(path=header.path.replace(id=text))
    if header.stream is not None:
        services = header.services or Content(HEADER.child("services"), {})
        header = header.replace(services=services.replace(durable=True))
    kept = []
    for path, content in [("Envelope.Header", header), ("Envelope.Header.path", header.path)]:
        texts = draw(st.lists(UNKNOWN, max_size=2))
        places = st.lists(
            st.integers(0, len(content) + len(texts) - 1),
            min_size=len(texts),
            max_size=len(texts),
            unique=True,
        )
        kept += [
            UndeclaredElement(path, at, xml)
            for at, xml in zip(draw(places) if texts else [], texts, strict=True)
        ]
    return Envelope(header, tuple(kept))
