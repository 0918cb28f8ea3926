"""The JSON text of every structure is that of its JSON object, byte by byte, for values of any kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from enum import IntEnum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz import strategies
from msmqwire.errors import MalformedPacket
from msmqwire.headers import BASE_HEADER
from msmqwire.json_text import dumps
from msmqwire.packets import USER_MESSAGE
from msmqwire.schema import SCHEMAS, OddPadding, Record, json_text, to_json
from msmqwire.schema.json_support import WORDS_MAX, FlagTexts
from tests.support import handmade as h

KEYS = sorted(strategies.SELF_CONTAINED)
EVERY_SCHEMA = pytest.mark.parametrize("key", KEYS)
SOME = settings(max_examples=max(20, settings.default.max_examples // 20))


class Number(IntEnum):
    """Integers that JSON writes as integers, by another way."""

    SEVEN = 7


def records_in(value: Any) -> Iterator[Record]:
    """A record and all records in it."""
    if isinstance(value, Record):
        yield value
        for name in value.schema.fields:
            yield from records_in(value.get(name))
    elif isinstance(value, list):
        for item in value:
            yield from records_in(item)


def assert_same(record: Record) -> None:
    """The text, or the kind of the error, is that of the object."""
    try:
        expected = dumps(to_json(record))
    except (AssertionError, AttributeError, TypeError) as exc:
        with pytest.raises(type(exc)):
            json_text(record)
    else:
        assert json_text(record) == expected


@EVERY_SCHEMA
@SOME
@given(data=st.data())
def test_complete_values_have_the_text_of_their_object(key: str, data: st.DataObject) -> None:
    value = data.draw(strategies.values(SCHEMAS[key]))
    for record in records_in(value):
        expected = dumps(to_json(record))
        assert json_text(record) == expected
        assert record.schema.codec.json_trusted(record) == expected  # without the object in between


@EVERY_SCHEMA
@SOME
@given(data=st.data())
def test_what_is_read_of_wrong_bytes_has_the_same_text(key: str, data: st.DataObject) -> None:
    schema = SCHEMAS[key]
    wrong = data.draw(strategies.mutated(strategies.values(schema).map(Record.to_bytes), schema))
    with suppress(MalformedPacket):
        record, _ = schema.read(wrong)
        assert schema.codec.json_trusted(record) == json_text(record) == dumps(to_json(record))


ODD = st.sampled_from(
    [
        None, True, False, 0, -1, 1 << 70, 1.5, Number.SEVEN, "", "7", 'a"\\\x7f\x1f\u20ac\U0001f600\ud800',
        b"", b"\0", b"\0\0\0", b"\x01", OddPadding(b""), OddPadding(b"\0"), UUID(int=7), [], [None], [1],
        BASE_HEADER.make(), USER_MESSAGE.make().BaseHeader.Flags, h,
    ]
)  # fmt: skip


@EVERY_SCHEMA
@SOME
@given(data=st.data())
def test_values_of_other_kinds_have_the_same_text(key: str, data: st.DataObject) -> None:
    value = data.draw(strategies.values(SCHEMAS[key]))
    records = [record for record in records_in(value) if record.schema.fields]
    for record in data.draw(st.lists(st.sampled_from(records), max_size=2)) if records else ():
        name = data.draw(st.sampled_from(record.schema.fields))
        if data.draw(st.booleans()):
            setattr(record, name, data.draw(ODD))
        elif hasattr(record, name):
            delattr(record, name)
    assert_same(value)


def test_a_few_texts_of_flag_words_are_kept() -> None:
    texts = FlagTexts("BaseHeader", "Flags")
    for word in range(WORDS_MAX + 3):
        assert texts[word] == dumps(texts.kind(word).bits())
    assert len(texts) == 3
