"""What must hold for every structure, each sentence one function.

Hypothesis, a coverage-guided fuzzer and a saved crash all call the same ones. They raise AssertionError when
the sentence does not hold; any other exception is a bug as well. None of them knows a layout.
"""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import msmqwire
from msmqwire.errors import InvalidValue, LocatedError, MalformedPacket
from msmqwire.packets import Protocol
from msmqwire.schema import Align, Fill, Header, Packet, Record, plain, reference
from msmqwire.schema.layout import Field, layout
from msmqwire.schema.record import FlagsValue

# -- of any bytes -----------------------------------------------------------------------------------


def what_is_accepted_rebuilds(schema: Header, data: bytes) -> None:
    """What a schema accepts is built again byte by byte; what it refuses, it refuses with a place."""
    try:
        value = schema.parse(data)
    except MalformedPacket as refusal:
        refused_with_a_place(refusal, data)
        return
    assert schema.build(value) == data
    assert schema.construct.build(value) == data
    assert schema.parse(schema.build(value)) == value


def refused_with_a_place(refusal: MalformedPacket, data: bytes) -> None:
    """A refusal names a field, a byte that is there (or the end) and a reason."""
    assert isinstance(refusal.path, str)
    assert refusal.path
    assert ".." not in f".{refusal.path}."
    assert isinstance(refusal.offset, int)
    assert 0 <= refusal.offset <= len(data)
    assert refusal.why
    assert json.loads(json.dumps(refusal.to_json())) == refusal.to_json()


def both_readers_agree(schema: Header, data: bytes) -> None:
    """The generated codec and the construct reader give the same values and end, or the same refusal."""
    fast, slow = _read(schema.codec.read, data), _read(lambda d: reference.read(schema, d), data)
    assert fast == slow


def _read(read: Any, data: bytes) -> Any:
    try:
        value, end = read(data)
    except MalformedPacket as refusal:
        return "refused", refusal.path, refusal.offset, refusal.why
    return "read", plain(value), end


def the_place_does_not_matter(schema: Header, data: bytes, before: bytes) -> None:
    """What a structure is does not depend on where in a buffer it stands."""
    here, there = _read(schema.read, data), _read(lambda d: schema.read(d, len(before)), before + data)
    if here[0] == "read":
        assert there == (*here[:2], here[2] + len(before))
    else:
        assert there == here


def only_malformed_packet_is_raised(data: bytes, protocol: Protocol = "session") -> None:
    """`msmqwire.parse` refuses with MalformedPacket and a place, or gives what builds to the same bytes."""
    try:
        packet = msmqwire.parse(data, protocol=protocol)
    except MalformedPacket as refusal:
        refused_with_a_place(refusal, data)
        return
    assert msmqwire.build(packet) == data
    assert msmqwire.parse(memoryview(data), protocol=protocol) == packet  # type: ignore[arg-type]
    survives_json(packet)
    layout_has_no_hole(packet)


def is_recognised(packet: Record, protocol: Protocol = "session") -> None:
    """`msmqwire.parse` gives a packet back from its bytes, as the kind that it is."""
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
    found, end = reference.read(schema, data)
    assert (plain(found), end) == (plain(value), len(data))


def types_of(value: Any) -> Any:
    """The types within a value: text kept as bytes, or odd padding, is not the same as what equals it."""
    match value:
        case Record():
            return type(value), {name: types_of(value[name]) for name in value.keys()}  # noqa: SIM118
        case list():
            return [types_of(item) for item in value]
        case _:
            return type(value)


def every_cut_is_refused_with_a_place(value: Record, cut: int) -> None:
    """Bytes that end too early are refused with a place, unless nothing but padding is missing."""
    data = value.schema.build(value)[:cut]
    what_is_accepted_rebuilds(value.schema, data)
    both_readers_agree(value.schema, data)


def survives_json(value: Record) -> None:
    """A value comes back from its JSON text, and so do its bytes."""
    schema, data = value.schema, value.to_bytes()
    text = json.dumps(value.to_json(), allow_nan=False)
    if isinstance(schema, Packet):
        back = msmqwire.from_json(json.loads(text))
        assert json.loads(text)["size"] == len(data)
    else:
        back = schema.make(json.loads(text))
    assert back == value
    assert types_of(back) == types_of(value)
    assert back.to_bytes() == data


def survives_pickling(value: Record) -> None:
    """A value comes back from every pickle protocol and from a deep copy."""
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        back = pickle.loads(pickle.dumps(value, protocol))
        assert back == value
        assert types_of(back) == types_of(value)
    assert copy.deepcopy(value) == value


def layout_has_no_hole(value: Record) -> None:
    """The fields of the layout follow one another and cover the bytes.

    Where it says, integers stand least significant byte first, GUIDs in packet form, text as UTF-16LE.
    """
    data, at = value.to_bytes(), 0
    for field in layout(value):
        assert field.offset == at, field.path
        at += field.size
        _stands_there(field, data)
    assert at == len(data)


def _stands_there(field: Field, data: bytes) -> None:
    there = data[field.offset : field.offset + field.size]
    if isinstance(field.value, int):
        assert int.from_bytes(there, "little", signed=field.value < 0) == field.value, field.path
    elif isinstance(field.value, UUID):
        assert there == field.value.bytes_le, field.path
    elif isinstance(field.value, bytes):
        assert there == field.value, field.path
    elif isinstance(field.value, str):
        text = field.value.encode("utf-16-le")
        assert there[: len(text)] == text, field.path
        assert not any(there[len(text) :]), field.path


def padding_may_hold_anything(value: Record, seed: bytes) -> None:
    """Other bytes in the padding are read as other padding, and change nothing else."""
    data = bytearray(value.to_bytes())
    paddings = [field for field in layout(value) if isinstance(field.node, Align | Fill)]
    for field in paddings:
        data[field.offset : field.offset + field.size] = (seed * field.size)[: field.size]
    read, _ = value.schema.read(bytes(data))
    for before, after in zip(layout(value), layout(read), strict=True):
        assert (before.path, before.offset, before.size) == (after.path, after.offset, after.size)
        if before not in paddings:
            assert before.value == after.value, before.path
    assert value.schema.build(read) == data


# -- of values that are not whole, or wrong ---------------------------------------------------------


def what_is_left_out_is_computed(schema: Header, given: Any) -> None:
    """A partial value can be completed and built, what was given stays, and the bytes parse to the whole."""
    whole = schema.make(given)
    data = schema.build(given)
    assert schema.build(whole) == data
    assert schema.construct.build(given) == data
    parsed, end = schema.read(data)
    assert (parsed, end) == (whole, len(data))
    assert schema.make(whole) == whole
    _stays(given, whole)


def _stays(given: Any, whole: Any) -> None:
    if isinstance(given, Record | Mapping) and isinstance(whole, FlagsValue):
        for name, bits in dict(given).items():
            assert getattr(whole, name) == bits, name
    elif isinstance(given, Record | Mapping) and isinstance(whole, Record):
        for name, value in dict(given).items():
            _stays(value, whole[name])
    elif isinstance(given, list):
        assert len(given) == len(whole)
        for one, other in zip(given, whole, strict=True):
            _stays(one, other)
    else:
        assert _from_json(given, whole) == whole


def _from_json(given: Any, whole: Any) -> Any:
    if isinstance(given, dict):
        return bytes.fromhex(given["utf16le"])
    if isinstance(given, str) and isinstance(whole, UUID):
        return UUID(given)
    if isinstance(given, str) and isinstance(whole, bytes):
        return bytes.fromhex(given)
    return given


def wrong_values_stay(value: Record, field: Field, number: int) -> None:
    """A number that somebody sets is what is built, wrong or not, and nothing else changes."""
    data = bytearray(value.to_bytes())
    signed = number < 0
    data[field.offset : field.offset + field.size] = number.to_bytes(field.size, "little", signed=signed)
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
    """`from_json` and `build` refuse JSON with InvalidValue, or what they make of it can be built."""
    try:
        packet = msmqwire.from_json(data)
    except InvalidValue as refusal:
        _told(refusal)
        return
    built = packet.to_bytes()
    assert msmqwire.build(data) == built
    assert isinstance(packet.schema, Packet)
    try:
        packet.schema.parse(built)
    except MalformedPacket as refusal:
        refused_with_a_place(refusal, built)


def _told(refusal: LocatedError) -> None:
    assert refusal.why
    assert isinstance(refusal.path, str)
    assert refusal.offset is None or refusal.offset >= 0
