"""Checks that the conformance tests of the codec share: fields, bits and refusals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from msmqwire import InvalidValue, MalformedPacket
from msmqwire.schema import Header, Packet, Record
from msmqwire.schema.layout import layout
from msmqwire.schema.record import FlagsValue
from tests.support.short_ids import short_id

requirement = pytest.mark.requirement


def proving(*values: Any, ids: str | tuple[str, ...] = (), name: str | None = None) -> Any:
    """One row of a parametrization, with the requirements that it proves."""
    requirements = (ids,) if isinstance(ids, str) else ids
    first = values[0]
    shortened = short_id(first) if isinstance(first, str | bytes) else None
    marks = requirement(*requirements) if requirements else ()
    return pytest.param(*values, marks=marks, id=name or shortened or str(first))


def nested(value: Any) -> Any:
    """A record as plain dicts and lists, flag words by their bits."""
    if isinstance(value, FlagsValue):
        return value.bits()
    if isinstance(value, Record):
        return {name: nested(value[name]) for name in value.keys()}  # noqa: SIM118 - a record is not a dict
    return [nested(item) for item in value] if isinstance(value, list) else value


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """The leaves of `nested` by path."""
    value = nested(value)
    if isinstance(value, dict):
        parts = {f"{path}.{name}".lstrip("."): part for name, part in value.items()}
    elif isinstance(value, list):
        parts = {f"{path}[{i}]": part for i, part in enumerate(value)}
    else:
        return {path: value}
    return {leaf: item for name, part in parts.items() for leaf, item in flat(part, name).items()}


def at(value: Any, path: str) -> Any:
    """The attribute at the end of a path of names."""
    for name in path.split("."):
        value = getattr(value, name)
    return value


def changed(value: dict[str, Any], path: str, to: Any) -> dict[str, Any]:
    """A copy of nested dicts with one leaf changed."""
    head, _, rest = path.partition(".")
    return {**value, head: changed(value[head], rest, to) if rest else to}


def assert_same(schema: Header, data: bytes) -> Any:
    """Check that bytes are built again from their record, its parts and its JSON; return the record."""
    record = schema.parse(data)
    assert schema.build(record) == data
    assert schema.build(nested(record)) == data
    as_json = record.to_json()
    assert schema.build(as_json["fields"] if "packet" in as_json else as_json) == data
    return record


def assert_field(schema: Header, base: bytes, path: str, offset: int, data: bytes, value: Any) -> None:
    """`data` at `offset` of `base` is exactly the field `path`, with `value`, in both directions.

    A number has no bit more than the field.
    """
    poked = base[:offset] + data + base[offset + len(data) :]
    assert len(poked) == len(base)
    assert poked != base
    start, size = placed(schema, poked).get(path, (-1, -1))
    assert start == offset
    assert size >= len(data) if isinstance(value, str) else size == len(data)  # a text has nulls after it
    before, record = schema.parse(base), assert_same(schema, poked)
    assert at(record, path) == value
    assert differences(before, record) == {path}
    assert schema.build(changed(nested(before), path, value)) == poked
    if type(value) is int:
        with pytest.raises(InvalidValue):
            schema.build(changed(nested(before), path, 1 << 8 * len(data)))


def placed(schema: Header, data: bytes) -> dict[str, tuple[int, int]]:
    """The offset and size of each field of a structure, by its path in it."""
    start = 0 if isinstance(schema, Packet) else len(f"{schema.name}.")
    return {field.path[start:]: (field.offset, field.size) for field in layout(schema.parse(data))}


def differences(before: Any, after: Any) -> set[str]:
    """The paths at which two records differ."""
    a, b = flat(before), flat(after)
    return {path for path in a.keys() | b.keys() if a.get(path, "missing") != b.get(path, "missing")}


def assert_bits(
    schema: Header, base: bytes, path: str, offset: int, size: int, mask: int, value: int = 0
) -> None:
    """The bits of `mask`, in the word of `size` bytes at `offset`, are exactly the named bits `path`.

    `value` is the value of those bits, all ones by default. The word has no bit beyond its size.
    """
    word = int.from_bytes(base[offset : offset + size], "little")
    assert word & mask == 0, "the base has some of the bits set already"
    low = (mask & -mask).bit_length() - 1
    number = value or mask >> low
    poked = base[:offset] + (word | number << low).to_bytes(size, "little") + base[offset + size :]
    before, record = schema.parse(base), assert_same(schema, poked)
    assert differences(before, record) == {path}
    assert at(record, path) == number
    assert isinstance(at(record, path), bool) == (mask == mask & -mask)
    assert int(at(record, path.rpartition(".")[0])) == word | number << low
    assert schema.build(changed(nested(before), path, number)) == poked
    with pytest.raises(InvalidValue):
        schema.build(changed(nested(before), path.rpartition(".")[0], 1 << 8 * size))


def assert_refused(parse: Callable[[bytes], Any] | Header, data: bytes, path: str, offset: int) -> None:
    """The bytes are refused, at exactly this path and offset."""
    with pytest.raises(MalformedPacket) as caught:
        (parse.parse if isinstance(parse, Header) else parse)(data)
    assert (caught.value.path, caught.value.offset) == (path, offset)


def assert_values(schema: Header, data: bytes, expected: Mapping[str, Any]) -> Any:
    """All of the fields have these values, none is left out, and they give the bytes back. The record."""
    record = assert_same(schema, data)
    assert flat(record) == dict(expected)
    return record
