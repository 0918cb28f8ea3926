"""What composers write of plain values is what completing makes of them, for every structure they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz import strategies
from msmqwire.errors import InvalidValue
from msmqwire.packets import ORDER_ACK, REMOTE_READ_MESSAGE, USER_MESSAGE
from msmqwire.schema import SCHEMAS, Header, Record
from msmqwire.schema.codec import _REFUSALS
from msmqwire.schema.codec_given import mapping
from msmqwire.schema.record import FlagsValue
from tests.support.composed_values import has_composer, spoilt, values_of

KEYS = [
    key
    for key, schema in strategies.SELF_CONTAINED.items()
    if has_composer(schema) and not schema.variant and key not in strategies.NCP_STRUCTURES
]
MANY = settings(max_examples=max(25, settings.default.max_examples // 10))


def completed(schema: Header, values: tuple[Any, ...]) -> bytes:
    return schema.build(schema.make(mapping(schema, values)))


def outcome(write: Callable[..., bytes], *values: Any) -> bytes | None:
    """What a writer returns; None if it refuses."""
    try:
        return write(*values)
    except _REFUSALS:
        return None


@pytest.mark.parametrize("key", KEYS)
@MANY
@given(data=st.data())
def test_composing_is_completing(key: str, data: st.DataObject) -> None:
    schema = SCHEMAS[key]
    record = data.draw(strategies.values(schema))
    values = values_of(record)
    composed = outcome(schema.codec.compose_trusted, *values)
    assert composed == outcome(completed, schema, values)
    if is_recomputed(record):
        assert composed is not None
        assert holds(values, values_of(schema.parse(composed)))


def holds(given: Any, found: Any) -> bool:
    """Whether values are those that were given, apart from bits that presence has set in flag words."""
    if isinstance(given, FlagsValue):
        return int(given) & int(found) == given
    if isinstance(given, tuple) and isinstance(found, tuple):
        return len(given) == len(found) and all(map(holds, given, found))
    return bool(given == found)


def is_recomputed(record: Record) -> bool:
    """Whether all that is computed is what computing makes it."""
    try:
        return record.recomputed() == record
    except InvalidValue:
        return False


@given(message=strategies.packet(USER_MESSAGE))
def test_a_message_is_composed_as_it_is_completed(message: Record) -> None:
    values = values_of(message)
    composed = outcome(USER_MESSAGE.codec.compose_trusted, *values)
    assert composed == outcome(completed, USER_MESSAGE, values)
    if is_recomputed(message):
        assert composed is not None
        assert holds(values, values_of(USER_MESSAGE.parse(composed)))


@pytest.mark.parametrize("key", KEYS)
@MANY
@given(data=st.data())
def test_composers_take_no_more_than_completing(key: str, data: st.DataObject) -> None:
    schema = SCHEMAS[key]
    values = data.draw(spoilt(schema, values_of(data.draw(strategies.values(schema)))))
    composed = outcome(schema.codec.compose_trusted, *values)
    expected = outcome(completed, schema, values)
    assert composed in (None, expected)
    assert outcome(schema.codec.compose, *values) == expected


def test_most_structures_have_composers() -> None:
    assert len(KEYS) > 60
    assert not has_composer(ORDER_ACK)
    assert not has_composer(REMOTE_READ_MESSAGE)
    with pytest.raises(TypeError, match="OrderAck has lists"):
        ORDER_ACK.codec.compose()


def test_a_refusal_has_a_path() -> None:
    with pytest.raises(InvalidValue) as refused:
        SCHEMAS["BaseHeader"].codec.compose(16, 0, 1 << 16, 0, 0)
    assert (refused.value.path, refused.value.offset) == ("BaseHeader.Flags", 2)
    with pytest.raises(InvalidValue, match="4 values for the parts VersionNumber, Reserved, Flags"):
        SCHEMAS["BaseHeader"].codec.compose(16, 0, 3, 0)
    user = SCHEMAS["UserHeader"].codec
    with pytest.raises(InvalidValue, match="no DirectQueueFormatName") as refused:
        user.compose(None, None, 0, 0, 0, 7 << 10, b"", b"", b"", None)
    assert refused.value.path == "DestinationQueue"
