"""Strategies for JSON, valid for `msmqwire.from_json` or not."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from hypothesis import strategies as st

from fuzz.whole_packets import packets, pings, remote_read_messages
from msmqwire.schema import SCHEMAS, Packet

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
    """Return a strategy for any JSON value, at times with names of fields as keys."""
    names = sorted({name for schema in SCHEMAS.values() for name in schema.fields})
    keys = st.one_of(st.sampled_from(names), st.text(max_size=5))
    return st.recursive(
        _JSON_LEAVES,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=4)),
        max_leaves=8,
    )


@st.composite
def json_objects(draw: st.DrawFn) -> Any:
    """Draw an argument for `msmqwire.from_json`: anything, or a packet with parts replaced."""
    if draw(st.integers(0, 3)) == 0:
        kinds = [key for key, schema in SCHEMAS.items() if isinstance(schema, Packet)]
        named = st.fixed_dictionaries(
            {"packet": st.one_of(st.sampled_from(kinds), json_values()), "fields": json_values()}
        )
        return draw(st.one_of(named, json_values()))
    packet = draw(st.one_of(packets(), pings(), remote_read_messages())).to_json()
    for _ in range(draw(st.integers(1, 3))):
        _corrupt(draw, packet)
    return packet


def _corrupt(draw: st.DrawFn, tree: dict[str, Any]) -> None:
    """Replace, remove or add a value somewhere in a JSON tree."""
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
