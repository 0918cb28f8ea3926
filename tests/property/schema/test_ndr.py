"""PROPVARIANT, the counted arrays and QUEUE_FORMAT: round trips, two readers that agree, hostile bytes."""

from __future__ import annotations

import struct
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from msmqwire import MalformedPacket
from msmqwire.headers import (
    BLOB,
    CACLSID,
    CAL,
    CALPWSTR,
    CAPROPVARIANT,
    CAUB,
    CAUH,
    CAUI,
    CAUL,
    DL_ID,
    MULTICAST_ID,
    PROPVARIANT,
    QUEUE_FORMAT,
    ULARGE_INTEGER,
)
from msmqwire.headers.propvariant import VARIANT_DEPTH_MAX
from msmqwire.schema import Header, plain
from msmqwire.schema.reference import read

SCHEMAS = [
    PROPVARIANT,
    QUEUE_FORMAT,
    CAPROPVARIANT,
    CALPWSTR,
    CAUH,
    CAUB,
    CAUI,
    CAL,
    CAUL,
    CACLSID,
    BLOB,
    DL_ID,
    MULTICAST_ID,
    ULARGE_INTEGER,
]

# -- values as `build` takes them --------------------------------------------------------------------

u8, u16, u32, u64 = (st.integers(0, (1 << bits) - 1) for bits in (8, 16, 32, 64))
i8, i16, i32, i64 = (st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32, 64))
referents = st.integers(1, 0xFFFFFFFF)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
strings = st.fixed_dictionaries({"String": texts})
guids = st.fixed_dictionaries({"Value": st.uuids()})

SCALARS = {
    16: ("cVal", i8),
    17: ("bVal", u8),
    2: ("iVal", i16),
    18: ("uiVal", u16),
    3: ("lVal", i32),
    19: ("ulVal", u32),
    20: ("hVal", i64),
    21: ("uhVal", u64),
    11: ("boolVal", i16),
}


def lists(item: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"Elements": st.lists(item, max_size=4)})


def deferring(
    name: str, elements: st.SearchStrategy[tuple[dict[str, Any], Any]]
) -> st.SearchStrategy[dict[str, Any]]:
    """An array of elements, followed by everything their pointers point to; from pairs of both."""
    return st.lists(elements, max_size=4).map(
        lambda pairs: {"Elements": [element for element, _ in pairs], name: [target for _, target in pairs]}
    )


@st.composite
def string_pointers(draw: st.DrawFn) -> tuple[dict[str, Any], Any]:
    if draw(st.booleans()):
        return {"pwszVal": draw(referents)}, draw(strings)
    return {"pwszVal": 0}, None


def targets(levels: int) -> dict[int, tuple[str, str, st.SearchStrategy[Any]]]:
    """By vt: the pointer, the field of its target, and values of the target."""
    targets_by_vt = {
        31: ("pwszVal", "String", strings),
        72: ("puuid", "Guid", guids),
        65: ("pBlobData", "Elements", st.fixed_dictionaries({"Elements": st.binary(max_size=9)})),
        0x1011: ("pElems", "Elements", st.fixed_dictionaries({"Elements": st.binary(max_size=9)})),
        0x1012: ("pElems", "Elements", lists(st.fixed_dictionaries({"Value": u16}))),
        0x1003: ("pElems", "Elements", lists(st.fixed_dictionaries({"Value": i32}))),
        0x1013: ("pElems", "Elements", lists(st.fixed_dictionaries({"Value": u32}))),
        0x1015: ("pElems", "Elements", lists(st.fixed_dictionaries({"QuadPart": u64}))),
        0x1048: ("pElems", "Elements", lists(guids)),
        0x101F: ("pElems", "Elements", deferring("Strings", string_pointers())),
    }
    if levels:
        targets_by_vt[0x100C] = ("pElems", "Elements", deferring("Pointees", elements(levels - 1)))
    return targets_by_vt


@st.composite
def elements(draw: st.DrawFn, levels: int) -> tuple[dict[str, Any], Any]:
    """A PROPVARIANT without the target of its pointer, and the target."""
    pointed = targets(levels)
    nested = [0x100C] * 8 if levels else []  # so that the limit is reached
    vt = draw(st.sampled_from([0, 1, *SCALARS, *pointed, *nested]))
    value = {"vt": vt, "wReserved1": draw(u8), "wReserved2": draw(u8), "wReserved3": draw(u32)}
    if vt in SCALARS:
        member, of = SCALARS[vt]
        return {**value, "_varUnion": {member: draw(of)}}, None
    if vt not in pointed:
        return value, None
    pointer, _, of = pointed[vt]
    if draw(st.integers(0, 4)) == 0:
        return {**value, "_varUnion": {pointer: 0}}, None
    return {**value, "_varUnion": {pointer: draw(referents)}}, draw(of)


def whole(levels: int) -> st.SearchStrategy[dict[str, Any]]:
    """A PROPVARIANT with the target of its pointer."""

    def join(pair: tuple[dict[str, Any], Any]) -> dict[str, Any]:
        value, target = pair
        if target is None:
            return value
        _, name, _ = targets(levels)[value["vt"]]
        return {**value, "_varUnion": {**value["_varUnion"], name: target}}

    return elements(levels).map(join)


def arrays(vt: int) -> st.SearchStrategy[dict[str, Any]]:
    """A counted array by itself, or a BLOB."""
    pointer, name, of = targets(VARIANT_DEPTH_MAX)[vt]
    return st.fixed_dictionaries({pointer: referents, name: of}) | st.just({pointer: 0})


names = strings.map(lambda name: {"Name": name}) | st.just({})
dl_ids = st.fixed_dictionaries({"m_DlGuid": st.uuids()}, optional={"Domain": strings})
multicast_ids = st.fixed_dictionaries({"m_address": u32, "m_port": u32})
MEMBERS: dict[int, st.SearchStrategy[Any]] = {
    0: st.none(),
    1: st.fixed_dictionaries({"m_gPublicID": st.uuids()}),
    2: st.fixed_dictionaries(
        {"m_oPrivateID": st.fixed_dictionaries({"Lineage": st.uuids(), "Uniquifier": u32})}
    ),
    3: names,
    4: st.fixed_dictionaries({"m_gMachineID": st.uuids()}),
    5: st.fixed_dictionaries({"m_GConnectorID": st.uuids()}),
    6: st.fixed_dictionaries({"m_DlID": dl_ids}),
    7: st.fixed_dictionaries({"m_MulticastID": multicast_ids}),
    8: names,
}
queue_formats = st.sampled_from(sorted(MEMBERS)).flatmap(
    lambda kind: st.fixed_dictionaries(
        {
            "m_qft": st.just(kind),
            "m_SuffixAndFlags": u8,
            "m_reserved": u16,
            "_varUnion": MEMBERS[kind],
        }
    )
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "PROPVARIANT": whole(VARIANT_DEPTH_MAX),
    "QUEUE_FORMAT": queue_formats,
    "CAPROPVARIANT": arrays(0x100C),
    "CALPWSTR": arrays(0x101F),
    "CAUH": arrays(0x1015),
    "CAUB": arrays(0x1011),
    "CAUI": arrays(0x1012),
    "CAL": arrays(0x1003),
    "CAUL": arrays(0x1013),
    "CACLSID": arrays(0x1048),
    "BLOB": arrays(65),
    "DL_ID": dl_ids,
    "MULTICAST_ID": multicast_ids,
    "ULARGE_INTEGER": st.fixed_dictionaries({"QuadPart": u64}),
}
values = st.sampled_from(SCHEMAS).flatmap(lambda schema: st.tuples(st.just(schema), VALUES[schema.name]))
variants = st.tuples(st.just(PROPVARIANT), VALUES["PROPVARIANT"])

# -- properties --------------------------------------------------------------------------------------


def check_readers(schema: Header, data: bytes) -> bool:
    """Check that both readers return the same or refuse at the same offset; return whether they accept."""
    try:
        record, end = schema.read(data)
    except MalformedPacket as refused:
        check_refusal(schema, data, refused)
        path_and_offset = refused.path, refused.offset
        with pytest.raises(MalformedPacket) as caught:
            read(schema, data)
        check_same(caught.value, path_and_offset)
        return False
    container, other_end = read(schema, data)
    assert plain(container) == plain(record)
    assert other_end == end
    assert schema.build(record) == data[:end]
    return True


def check_same(refused: MalformedPacket, path_and_offset: tuple[str, int | None]) -> None:
    assert (refused.path, refused.offset) == path_and_offset


def check_refusal(schema: Header, data: bytes, refused: MalformedPacket) -> None:
    assert refused.path == schema.name or refused.path.startswith(f"{schema.name}.")
    assert refused.offset is not None
    assert 0 <= refused.offset <= len(data)


def contains(left: Any, right: Any) -> bool:
    """Whether everything in the partial value `left` is in `right`."""
    if isinstance(left, dict):
        return right is not None and all(contains(value, right[name]) for name, value in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(contains, left, right))
    return bool(left == right)


@given(variants | values)
def test_round_trip(pair: tuple[Header, Any]) -> None:
    """Every given value comes back, and the record, its JSON and the construct reader agree."""
    schema, value = pair
    data = schema.build(value)
    record = schema.parse(data)
    assert contains(value, record)
    assert record == schema.make(value)
    assert schema.build(record) == data
    assert schema.build(record.to_json()) == data
    assert schema.construct.build(record) == data
    assert plain(schema.construct.parse(data)) == plain(record)
    assert check_readers(schema, data)


@given(variants | values, st.data())
def test_every_cut_is_refused(pair: tuple[Header, Any], data: st.DataObject) -> None:
    """Unless only padding is missing, at the end of a structure without a member."""
    schema, value = pair
    built = schema.build(value)
    cut = data.draw(st.integers(0, len(built) - 1))
    if check_readers(schema, built[:cut]):
        assert built[cut:] == bytes(len(built) - cut)
        assert len(built) - cut < 8


interesting = st.sampled_from(
    [0, 1, 2, 31, 65, 72, 0x100C, 0x1015, 0x101F, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
)
changes = st.lists(
    st.tuples(st.integers(0, 400), st.sampled_from([1, 2, 4]), interesting | u32, st.booleans()),
    min_size=1,
    max_size=3,
)


def mutated(data: bytes, edits: list[tuple[int, int, int, bool]]) -> bytes:
    """Each edit overwrites bytes with a number of 1, 2 or 4 bytes, or inserts it."""
    for position, size, number, insert in edits:
        at = position % (len(data) + 1)
        word = (number & (1 << 8 * size) - 1).to_bytes(size, "little")
        data = data[:at] + word + data[at if insert else at + size :]
    return data


@given(variants | values, changes)
def test_readers_agree_on_mutated_bytes(
    pair: tuple[Header, Any], edits: list[tuple[int, int, int, bool]]
) -> None:
    schema, value = pair
    data = mutated(schema.build(value), edits)
    check_readers(schema, data)
    try:
        schema.parse(data)
    except MalformedPacket as refused:
        check_refusal(schema, data, refused)


heads = st.sampled_from([0, 1, 2, 3, 11, 20, 31, 65, 72, 0x100C, 0x1011, 0x1013, 0x1015, 0x101F, 0x1048]).map(
    lambda vt: struct.pack("<HBBLH6x", vt, 0, 0, 0, vt)
)
words = st.lists(st.integers(0, 4) | interesting, max_size=24).map(
    lambda numbers: struct.pack(f"<{len(numbers)}L", *numbers)
)
chunks = st.lists(heads | words | st.binary(max_size=24), max_size=6).map(b"".join)


@given(st.sampled_from(SCHEMAS), st.binary(max_size=120) | chunks)
@example(PROPVARIANT, b"")
@example(CAPROPVARIANT, struct.pack("<LLL", 0xFFFFFFFF, 1, 0xFFFFFFFF))
def test_any_bytes(schema: Header, data: bytes) -> None:
    """Nothing but MalformedPacket is raised, with a path and an offset in the data."""
    check_readers(schema, data)
    try:
        schema.construct.parse(data)
    except MalformedPacket as refused:
        check_refusal(schema, data, refused)


# -- bounds --------------------------------------------------------------------------------------------


def vector(count: int, declared: int, element: bytes) -> bytes:
    return struct.pack("<LLL4x", declared, 1, declared) + element * count


EMPTY = bytes(16)
STRING = struct.pack("<HBBLH6xL4x", 31, 0, 0, 0, 31, 0)
ARRAY = struct.pack("<HBBLH6xLL", 0x1011, 0, 0, 0, 0x1011, 0, 1)


@pytest.mark.parametrize("element", [EMPTY, STRING, ARRAY], ids=["empty", "string", "array"])
@pytest.mark.parametrize("count", [10, 1000])
def test_memory_is_bounded_by_the_data(element: bytes, count: int) -> None:
    """Memory is in proportion to the data, whether it is accepted or refused at its very end."""
    good = vector(count, count, element) + (bytes(4) * count if element is ARRAY else b"")
    for data, accepted in ((good, True), (good[:-20], False), (vector(count, 0xFFFFFFFF, element), False)):
        check_readers(CAPROPVARIANT, data)  # the codecs are loaded once
        tracemalloc.start()
        try:
            assert check_readers(CAPROPVARIANT, data) == accepted
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 200_000 + 400 * len(data)


@given(variants | values, changes)
def test_memory_of_mutated_bytes(pair: tuple[Header, Any], edits: list[tuple[int, int, int, bool]]) -> None:
    schema, value = pair
    data = mutated(schema.build(value), edits)
    with suppress(MalformedPacket):
        schema.read(data)  # the generated code is compiled once
    tracemalloc.start()
    try:
        with suppress(MalformedPacket):
            schema.read(data)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 500_000 + 400 * len(data)
