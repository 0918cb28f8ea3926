"""Strategies for what is not whole: parts left out, values that do not fit, mutated bytes, spoilt JSON."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final
from uuid import UUID

from hypothesis import assume
from hypothesis import strategies as st

from fuzz.drawing import values
from fuzz.leaves import Fixed, integers
from fuzz.references import deciding
from fuzz.whole_packets import packets, pings, remote_read_messages
from msmqwire.schema import (
    SCHEMAS,
    Align,
    Choice,
    Close,
    Each,
    Fill,
    Flags,
    Header,
    Maybe,
    Packet,
    Part,
    Record,
    Repeat,
    Text,
    UInt,
    View,
)
from msmqwire.schema.layout import Field, layout
from msmqwire.schema.record import FlagsValue

# -- values that are not whole ----------------------------------------------------------------------


def partial(schema: Header, fixed: Fixed | None = None) -> st.SearchStrategy[Any]:
    """Records, mappings and JSON data from which something was left out, and that can be completed.

    Either only what can be computed is left out, any part of it; or all of that and any of the rest.
    """
    return _partial(values(schema, fixed))


@st.composite
def _partial(draw: st.DrawFn, whole: st.SearchStrategy[Record]) -> Any:
    record = draw(whole)
    return _Leaving(draw, draw(st.booleans()), draw(st.booleans())).structure(record, frozenset())


class _Leaving:
    """Makes partial values of complete ones."""

    def __init__(self, draw: st.DrawFn, all_computed: bool, json: bool) -> None:
        self.draw, self.all_computed, self.json = draw, all_computed, json

    def gone(self, computed: bool, optional: bool) -> bool:
        """Whether to leave out something that is computed, or may be missing."""
        if computed:
            return self.all_computed or self.draw(st.booleans())
        return optional and self.all_computed and self.draw(st.integers(0, 3)) == 0

    def structure(self, record: Record, referred: frozenset[str]) -> Any:
        schema = record.schema
        referred |= deciding(schema)
        kept: dict[str, Any] = {}
        stay, unknown = _unambiguous(schema), set(_of_unknown_unit(record))
        for part in schema.parts:
            if isinstance(part, Close) or (part.name in unknown and self.all_computed):
                continue
            if part.name not in stay | unknown and self.leaves(part, schema, referred, kept):
                continue
            kept[part.name] = self.value(part, record[part.name], referred)
            if isinstance(part, View) and self.all_computed:  # what it lacks is not looked for there
                kept = _without(kept, part.of)
        if self.json or self.draw(st.booleans()):
            return kept
        whole = {p.name for p in schema.parts if isinstance(p, Flags) and isinstance(kept.get(p.name), dict)}
        return kept if whole else schema.record(**kept)

    def leaves(self, part: Part, schema: Header, referred: frozenset[str], kept: dict[str, Any]) -> bool:
        match part:
            case UInt(same_as=copied) if copied in schema.fields and copied not in kept:
                return True
            case UInt():
                computed = part.size_of or part.same_as or part.name in referred | _counting()
                return self.gone(bool(computed), True)
            case Align() | Fill():
                return self.all_computed
            case Text(strict=True) | Choice() if _has_no_empty_form(part):
                return False
            case Maybe(when=str(when)) if when.partition(".")[0] in schema.fields:
                decided_by = schema.part(when.partition(".")[0])
                if isinstance(decided_by, Maybe) and kept.get(decided_by.name) is None:
                    return True
                twin = next(p for p in schema.parts if isinstance(p, Maybe) and p.when == when)
                return twin.name not in kept if twin is not part else self.gone(False, True)
            case _:
                return self.gone(False, True)

    def value(self, part: Part, value: Any, referred: frozenset[str]) -> Any:
        match value:
            case FlagsValue():
                assert isinstance(part, Flags)
                return self.word(part, value, referred)
            case Record():
                return self.structure(value, referred)
            case list():
                return [item and self.structure(item, referred) for item in value]
            case UUID() if self.json:
                return str(value)
            case bytes() if self.json:
                return {"utf16le": value.hex()} if isinstance(part, Text) else value.hex()
        return value

    def word(self, part: Flags, value: FlagsValue, referred: frozenset[str]) -> Any:
        names = {path.rpartition(".")[2] for path in referred if f"{part.name}." in path}
        bits = {name: held for name, held in value.bits().items() if not self.gone(name in names, True)}
        whole = len(bits) == len(part.parts) and not self.json and self.draw(st.booleans())
        return value if whole else bits


def misfits(schema: Header) -> st.SearchStrategy[tuple[Record, Field, int]]:
    """A complete record, one of its integers or flag words, and another value for that one.

    The field is one that other parts depend on, more often than not. For schemas that `has_integers`.
    """
    return _misfits(values(schema))


def _without(kept: dict[str, Any], path: str) -> dict[str, Any]:
    name, _, inner = path.partition(".")
    if name not in kept:
        return kept
    if not inner:
        return {key: value for key, value in kept.items() if key != name}
    return {**kept, name: _without(dict(kept[name]), inner)}


def _of_unknown_unit(record: Record) -> Iterator[str]:
    """Texts that are kept as bytes, with their lengths: other bytes around have them read in another unit."""
    for part in record.schema.parts:
        if isinstance(part, Text) and part.otherwise and isinstance(record[part.name], bytes):
            yield from (part.name, part.otherwise.path)


@cache
def _counting() -> frozenset[str]:
    """The names of fields of elements that count what is deferred for them."""
    return frozenset(
        count.rpartition(".")[2]
        for schema in SCHEMAS.values()
        for part in schema.parts
        if isinstance(part, Each)
        for _, _, count in part.arms.values()
    )


@cache
def _unambiguous(schema: Header) -> frozenset[str]:
    """The fields that must stay, lest two forms look alike or two lists do not match."""
    names: set[str] = set()
    for part in schema.parts:
        if isinstance(part, Each):
            names |= {part.name, part.of}
        elif isinstance(part, Choice):
            arms = {arm for arm in part.arms.values() if arm}
            if len({frozenset(arm.fields) for arm in arms}) < len(arms):
                names |= {part.by, part.name}
    return frozenset(names)


def _has_no_empty_form(part: Text | Choice) -> bool:
    return isinstance(part, Text) or None not in part.arms.values()


@st.composite
def _misfits(draw: st.DrawFn, whole: st.SearchStrategy[Record]) -> tuple[Record, Field, int]:
    record: Record = draw(whole)
    numbers = [
        found
        for found in layout(record)
        if isinstance(found.node, UInt | Flags)
        and (found.header, found.node.name) not in _refused_when_wrong()
    ]
    assume(numbers)
    leading = [found for found in numbers if _decides(found)]
    prefer = draw(st.booleans())
    chosen = draw(st.sampled_from(leading if leading and prefer else numbers))
    assert isinstance(chosen.node, UInt | Flags)
    signed = isinstance(chosen.node, UInt) and chosen.node.signed
    return record, chosen, draw(integers(chosen.node.bits, signed))


@cache
def _refused_when_wrong() -> frozenset[tuple[Header, str]]:
    """What tells what is deferred for an element: wrong, it may ask for nothing where there is something."""
    return frozenset(
        (repeated.item, part.by)
        for schema in SCHEMAS.values()
        for part in schema.parts
        if isinstance(part, Each) and isinstance(repeated := schema.part(part.of), Repeat)
    )


def _decides(found: Field) -> bool:
    return bool(isinstance(found.node, UInt) and found.node.size_of) or any(
        path.partition(".")[0] == found.node.name for path in deciding(found.header)
    )


# -- bytes that are wrong ---------------------------------------------------------------------------

_EXTREMES: Final = (
    0,
    1,
    2,
    3,
    127,
    128,
    255,
    2**15 - 1,
    2**15,
    2**16 - 1,
    2**22,
    2**31 - 1,
    2**31,
    2**32 - 1,
)
_EDITS: Final = ("flip", "set", "cut", "insert", "remove", "repeat", "number", "field", "field", "splice")


def mutated(
    bases: st.SearchStrategy[bytes], schema: Header | None = None, edits_max: int = 3
) -> st.SearchStrategy[bytes]:
    """Bytes that were well-formed, after a few edits.

    The edits: bits turned, bytes set, put in, taken out or repeated, cut ends, numbers replaced by extremes
    (with `schema`, those that stand where it has integers) and the splice of two.
    """
    return _mutated(bases, schema.key if schema else None, edits_max)


@st.composite
def _mutated(draw: st.DrawFn, bases: st.SearchStrategy[bytes], key: str | None, edits_max: int) -> bytes:
    data, schema = draw(bases), SCHEMAS[key] if key else None
    for _ in range(draw(st.integers(1, edits_max))):
        data = _edit(draw, data, bases, schema)
    return data


def _edit(draw: st.DrawFn, data: bytes, bases: st.SearchStrategy[bytes], schema: Header | None) -> bytes:
    kind = draw(st.sampled_from(_EDITS))
    at = draw(st.integers(0, len(data)))
    if kind == "cut":
        return data[:at]
    if kind == "insert":
        return data[:at] + draw(st.binary(min_size=1, max_size=8)) + data[at:]
    if kind == "splice":
        other = draw(bases)
        return data[:at] + other[draw(st.integers(0, len(other))) :]
    if kind in ("remove", "repeat"):
        stop = min(len(data), at + draw(st.integers(1, 8)))
        return data[:at] + (data[at:stop] * 2 if kind == "repeat" else b"") + data[stop:]
    if not data:
        return data
    at = min(at, len(data) - 1)
    if kind == "flip":
        return data[:at] + bytes([data[at] ^ 1 << draw(st.integers(0, 7))]) + data[at + 1 :]
    if kind == "set":
        return data[:at] + draw(st.sampled_from([b"\0", b"\x01", b"\x7f", b"\x80", b"\xff"])) + data[at + 1 :]
    width = draw(st.sampled_from([1, 2, 4]))
    at -= at % width
    places = _places(schema, data) if kind == "field" and schema else []
    if places:
        at, width = draw(st.sampled_from(places))
    old = int.from_bytes(data[at : at + width], "little")
    near = (old - 1, old + 1, old * 2, old + 4, old - 4, len(data), len(data) - at, len(data) + 1)
    number: int = draw(st.sampled_from(near + _EXTREMES)) % (1 << 8 * width)
    return (data[:at] + number.to_bytes(width, "little") + data[at + width :])[: len(data)]


def _places(schema: Header, data: bytes) -> list[tuple[int, int]]:
    from msmqwire.errors import MalformedPacket

    try:
        value, _ = schema.read(data)
    except MalformedPacket:
        return []
    return [(found.offset, found.size) for found in layout(value) if isinstance(found.node, UInt | Flags)]


# -- JSON -------------------------------------------------------------------------------------------

_JSON_INTEGERS: Final = st.one_of(
    st.integers(-3, 300), st.sampled_from([-(2**63), 2**15, 2**16, 2**31, 2**32 - 1, 2**32, 2**64, 10**30])
)
_JSON_LEAVES: Final = st.one_of(
    st.none(),
    st.booleans(),
    _JSON_INTEGERS,
    st.floats(allow_nan=False),
    st.text(max_size=8),
    st.binary(max_size=8).map(bytes.hex),
    st.uuids().map(str),
    st.fixed_dictionaries({"utf16le": st.one_of(st.binary(max_size=8).map(bytes.hex), st.text(max_size=3))}),
)


@cache
def json_values() -> st.SearchStrategy[Any]:
    """Anything that JSON can say, with the names of fields as keys now and then."""
    names = sorted({name for schema in SCHEMAS.values() for name in schema.fields})
    keys = st.one_of(st.sampled_from(names), st.text(max_size=5))
    return st.recursive(
        _JSON_LEAVES,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=4)),
        max_leaves=8,
    )


@st.composite
def json_objects(draw: st.DrawFn) -> Any:
    """What somebody may hand to `msmqwire.from_json`: anything, or a packet with some of it replaced."""
    if draw(st.integers(0, 3)) == 0:
        kinds = [key for key, schema in SCHEMAS.items() if isinstance(schema, Packet)]
        named = st.fixed_dictionaries(
            {"packet": st.one_of(st.sampled_from(kinds), json_values()), "fields": json_values()}
        )
        return draw(st.one_of(named, json_values()))
    made = draw(st.one_of(packets(), pings(), remote_read_messages())).to_json()
    for _ in range(draw(st.integers(1, 3))):
        _spoil(draw, made)
    return made


def _spoil(draw: st.DrawFn, tree: dict[str, Any]) -> None:
    holder: Any = tree
    while True:
        keys = sorted(holder) if isinstance(holder, dict) else range(len(holder))
        if not keys:
            return
        key = draw(st.sampled_from(keys))
        if isinstance(holder[key], dict | list) and draw(st.integers(0, 5)):
            holder = holder[key]
            continue
        match draw(st.sampled_from(["replace", "replace", "remove", "add"])):
            case "replace":
                holder[key] = draw(json_values())
            case "remove":
                del holder[key]
            case "add" if isinstance(holder, dict):
                holder[draw(st.text(max_size=5))] = draw(json_values())
            case "add":
                holder.append(draw(json_values()))
        return
