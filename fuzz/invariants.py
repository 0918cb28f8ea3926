"""The invariants of every structure, one function each.

Property tests, coverage-guided fuzzers and regression tests of crashes call the same functions. They raise
AssertionError when the invariant does not hold; any other exception is a bug as well. None of them depends
on a layout.
"""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Mapping
from typing import Any, Literal
from uuid import UUID

import msmqwire
from msmqwire.errors import InvalidValue, LocatedError, MalformedPacket
from msmqwire.packets import Protocol
from msmqwire.schema import Align, Fill, Flags, Header, OemText, Packet, Record, Text, UInt, plain, reference
from msmqwire.schema.layout import Field, layout
from msmqwire.schema.record import FlagsValue
from msmqwire.schema.texts import OEM_CODE_PAGE, encode_oem

# -- of any bytes -----------------------------------------------------------------------------------


def what_is_accepted_rebuilds(schema: Header, data: bytes) -> None:
    """Bytes that a schema accepts are rebuilt exactly; other bytes are refused with a position."""
    try:
        value = schema.parse(data)
    except MalformedPacket as refusal:
        refusal_has_a_position(refusal, data)
        return
    assert schema.build(value) == data
    assert schema.construct.build(value) == data
    assert schema.parse(schema.build(value)) == value


def refusal_has_a_position(refusal: MalformedPacket, data: bytes) -> None:
    """A refusal names a field, the offset of a byte (or the end) and a reason."""
    assert isinstance(refusal.path, str)
    assert refusal.path
    assert ".." not in f".{refusal.path}."
    assert isinstance(refusal.offset, int)
    assert 0 <= refusal.offset <= len(data)
    assert refusal.why
    assert json.loads(json.dumps(refusal.to_json())) == refusal.to_json()


def both_readers_agree(schema: Header, data: bytes) -> None:
    """The generated codec and the construct reader give the same values and end, or the same refusal."""
    generated, construct = _read(schema.codec.read, data), _read(lambda d: reference.read(schema, d), data)
    assert generated == construct


def _read(read: Any, data: bytes) -> Any:
    try:
        value, end = read(data)
    except MalformedPacket as refusal:
        return "refused", refusal.path, refusal.offset, refusal.why
    return "read", plain(value), end


def the_position_does_not_matter(schema: Header, data: bytes, before: bytes) -> None:
    """A structure does not depend on its position in a buffer."""
    at_start = _read(schema.read, data)
    shifted = _read(lambda d: schema.read(d, len(before)), before + data)
    if at_start[0] == "read":
        assert shifted == (*at_start[:2], at_start[2] + len(before))
    else:
        assert shifted == at_start


def only_malformed_packet_is_raised(data: bytes, protocol: Protocol = "session") -> None:
    """`msmqwire.parse` refuses with a located MalformedPacket, or returns a value that builds to the same
    bytes.
    """
    try:
        packet = msmqwire.parse(data, protocol=protocol)
    except MalformedPacket as refusal:
        refusal_has_a_position(refusal, data)
        return
    assert msmqwire.build(packet) == data
    assert msmqwire.parse(memoryview(data), protocol=protocol) == packet  # type: ignore[arg-type]
    survives_json(packet)
    layout_has_no_gap(packet)


def is_recognised(packet: Record, protocol: Protocol = "session") -> None:
    """`msmqwire.parse` returns a packet from its bytes, as the same kind."""
    assert msmqwire.parse(msmqwire.build(packet), protocol=protocol) == packet


# -- of complete values -----------------------------------------------------------------------------


def what_is_built_parses(value: Record) -> None:
    """A complete, consistent value comes back from its bytes, by either reader and either builder."""
    schema = value.schema
    data = schema.build(value)
    assert schema.construct.build(value) == data
    assert schema.build(dict(value)) == data
    parsed, end = schema.read(data)
    assert (parsed, end) == (value, len(data))
    assert types_of(parsed) == types_of(value)
    reference_value, end = reference.read(schema, data)
    assert (plain(reference_value), end) == (plain(value), len(data))


def types_of(value: Any) -> Any:
    """Return the types within a value, as raw text or odd padding may equal values of another type."""
    match value:
        case Record():
            return type(value), {name: types_of(value[name]) for name in value.keys()}  # noqa: SIM118
        case list():
            return [types_of(item) for item in value]
        case _:
            return type(value)


def every_truncation_is_refused(value: Record, size: int) -> None:
    """Truncated bytes are refused with a position, unless only padding is missing."""
    data = value.schema.build(value)[:size]
    what_is_accepted_rebuilds(value.schema, data)
    both_readers_agree(value.schema, data)


def survives_json(value: Record) -> None:
    """A value comes back from its JSON text, and so do its bytes."""
    schema, data = value.schema, value.to_bytes()
    text = json.dumps(value.to_json(), allow_nan=False)
    if isinstance(schema, Packet):
        restored = msmqwire.from_json(json.loads(text))
        assert json.loads(text)["size"] == len(data)
    else:
        restored = schema.make(json.loads(text))
    assert restored == value
    assert types_of(restored) == types_of(value)
    assert restored.to_bytes() == data


def survives_pickling(value: Record) -> None:
    """A value comes back from every pickle protocol and from a deep copy."""
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        restored = pickle.loads(pickle.dumps(value, protocol))
        assert restored == value
        assert types_of(restored) == types_of(value)
    assert copy.deepcopy(value) == value


def layout_has_no_gap(value: Record) -> None:
    """The fields of the layout follow one another and cover the bytes.

    At their offsets, integers have their byte order, GUIDs are in packet form, and text is in its encoding.
    """
    data, end = value.to_bytes(), 0
    for field in layout(value):
        assert field.offset == end, field.path
        end += field.size
        _has_bytes_of(field, data)
    assert end == len(data)


def _has_bytes_of(field: Field, data: bytes) -> None:
    encoded = data[field.offset : field.offset + field.size]
    if isinstance(field.value, int):
        order = byte_order(field)
        assert int.from_bytes(encoded, order, signed=field.value < 0) == field.value, field.path
    elif isinstance(field.value, UUID):
        assert encoded == field.value.bytes_le, field.path
    elif isinstance(field.value, bytes):
        assert encoded == field.value, field.path
    elif isinstance(field.value, str) and isinstance(field.node, OemText):
        assert encoded == encode_oem(field.node, field.value), field.path
        assert field.value.encode(OEM_CODE_PAGE) in encoded, field.path
    elif isinstance(field.value, str):
        text = field.value.encode("utf-16-le")
        assert encoded[: len(text)] == text, field.path
        assert not any(encoded[len(text) :]), field.path


def byte_order(field: Field) -> Literal["little", "big"]:
    """Return the byte order of an integer or a flag word."""
    assert isinstance(field.node, UInt | Flags)
    return "big" if field.node.big_endian else "little"


def padding_may_hold_anything(value: Record, seed: bytes) -> None:
    """Different bytes in the padding are read as different padding, and change nothing else.

    But for padding at the end of the longer reading of a text whose length has no stated unit: a null there
    decides which reading it is.
    """
    data = bytearray(value.to_bytes())
    fields = layout(value)
    texts = [field for field in fields if isinstance(field.node, Text) and field.node.otherwise]
    ends = [field.offset + 2 * field.size for field in texts]
    paddings = [
        field
        for field in fields
        if isinstance(field.node, Align | Fill)
        and not any(field.offset < end and end - 2 < field.offset + field.size for end in ends)
    ]
    for field in paddings:
        data[field.offset : field.offset + field.size] = (seed * field.size)[: field.size]
    read, _ = value.schema.read(bytes(data))
    for before, after in zip(layout(value), layout(read), strict=True):
        assert (before.path, before.offset, before.size) == (after.path, after.offset, after.size)
        if before not in paddings:
            assert before.value == after.value, before.path
    assert value.schema.build(read) == data


# -- of partial and wrong values --------------------------------------------------------------------


def what_is_left_out_is_computed(schema: Header, partial: Any) -> None:
    """A partial value can be completed and built; it keeps its fields, and its bytes parse to the whole."""
    complete = schema.make(partial)
    data = schema.build(partial)
    assert schema.build(complete) == data
    assert schema.construct.build(partial) == data
    parsed, end = schema.read(data)
    assert (parsed, end) == (complete, len(data))
    assert schema.make(complete) == complete
    _is_part_of(partial, complete)


def _is_part_of(partial: Any, complete: Any) -> None:
    if isinstance(partial, Record | Mapping) and isinstance(complete, FlagsValue):
        for name, bits in dict(partial).items():
            assert getattr(complete, name) == bits, name
    elif isinstance(partial, Record | Mapping) and isinstance(complete, Record):
        for name, value in dict(partial).items():
            _is_part_of(value, complete[name])
    elif isinstance(partial, list):
        assert len(partial) == len(complete)
        for partial_item, item in zip(partial, complete, strict=True):
            _is_part_of(partial_item, item)
    else:
        assert _from_json(partial, complete) == complete


def _from_json(value: Any, complete: Any) -> Any:
    """A value in the type that JSON may not have."""
    if isinstance(value, dict):
        (text,) = value.values()
        return bytes.fromhex(text)
    if isinstance(value, str) and isinstance(complete, UUID):
        return UUID(value)
    if isinstance(value, str) and isinstance(complete, bytes):
        return bytes.fromhex(value)
    return value


def wrong_values_stay(value: Record, field: Field, number: int) -> None:
    """A number set by the caller is built as it is, wrong or not, and nothing else changes."""
    data = bytearray(value.to_bytes())
    signed = number < 0
    data[field.offset : field.offset + field.size] = number.to_bytes(
        field.size, byte_order(field), signed=signed
    )
    changed = copy.deepcopy(value)
    owner, name = _owner(changed, field.path)
    old = getattr(owner, name)
    setattr(owner, name, type(old)(number))
    assert changed.to_bytes() == data
    assert changed.schema.construct.build(changed) == data
    both_readers_agree(value.schema, bytes(data))


def _owner(value: Record, path: str) -> tuple[Record, str]:
    if not isinstance(value.schema, Packet):
        path = path.removeprefix(value.schema.name + ".")
    *names, last = path.split(".")
    for step in names:
        name, _, index = step.partition("[")
        value = getattr(value, name)[int(index.rstrip("]"))] if index else getattr(value, name)
    return value, last


def only_invalid_value_is_raised(data: Any) -> None:
    """`from_json` and `build` refuse JSON with InvalidValue, or return a value that can be built."""
    try:
        packet = msmqwire.from_json(data)
    except InvalidValue as refusal:
        _is_explained(refusal)
        return
    built = packet.to_bytes()
    assert msmqwire.build(data) == built
    assert isinstance(packet.schema, Packet)
    try:
        packet.schema.parse(built)
    except MalformedPacket as refusal:
        refusal_has_a_position(refusal, built)


def _is_explained(refusal: LocatedError) -> None:
    assert refusal.why
    assert isinstance(refusal.path, str)
    assert refusal.offset is None or refusal.offset >= 0
