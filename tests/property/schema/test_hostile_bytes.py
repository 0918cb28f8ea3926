"""Arbitrary bytes and JSON: only our own errors are raised, with an offset, and both readers agree."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz import invariants, strategies
from msmqwire.packets import Protocol
from msmqwire.schema import SCHEMAS, Record

PROTOCOLS: tuple[Protocol, ...] = ("session", "ping", "remote_read")
KEYS = [
    key
    for key, schema in strategies.SELF_CONTAINED.items()
    if not schema.variant and key not in strategies.NCP_STRUCTURES
]
EVERY_SCHEMA = pytest.mark.parametrize("key", KEYS)
# There are so many schemas that each gets only a share of the examples.
SOME = settings(max_examples=max(25, settings.default.max_examples // 10))
EVERY_PROTOCOL = pytest.mark.parametrize("protocol", PROTOCOLS)


@EVERY_SCHEMA
@SOME
@given(data=st.data(), before=st.binary(max_size=5))
def test_changed_bytes(key: str, data: st.DataObject, before: bytes) -> None:
    schema = SCHEMAS[key]
    built = strategies.values(schema).map(Record.to_bytes)
    changed = data.draw(strategies.mutated(built, schema))
    invariants.what_is_accepted_rebuilds(schema, changed)
    invariants.both_readers_agree(schema, changed)
    invariants.the_position_does_not_matter(schema, changed, before)


@EVERY_SCHEMA
@SOME
@given(data=st.binary(max_size=200))
def test_any_bytes(key: str, data: bytes) -> None:
    schema = SCHEMAS[key]
    invariants.what_is_accepted_rebuilds(schema, data)
    invariants.both_readers_agree(schema, data)


@EVERY_SCHEMA
@SOME
@given(data=st.data())
def test_bytes_that_break_off(key: str, data: st.DataObject) -> None:
    value = data.draw(strategies.values(SCHEMAS[key]))
    invariants.every_truncation_is_refused(value, data.draw(st.integers(0, len(value.to_bytes()))))


@EVERY_PROTOCOL
@given(data=st.data())
def test_packets_are_recognised(protocol: Protocol, data: st.DataObject) -> None:
    packet = data.draw(strategies.packets_of(protocol))
    invariants.is_recognised(packet, protocol)


@pytest.mark.parametrize("others", PROTOCOLS)
@EVERY_PROTOCOL
@given(data=st.data())
def test_changed_packets(protocol: Protocol, others: Protocol, data: st.DataObject) -> None:
    changed = data.draw(strategies.mutated(strategies.packet_bytes(others)))
    invariants.only_malformed_packet_is_raised(changed, protocol)


@EVERY_PROTOCOL
@given(data=st.binary(max_size=200))
def test_any_bytes_as_a_packet(protocol: Protocol, data: bytes) -> None:
    invariants.only_malformed_packet_is_raised(data, protocol)


@EVERY_PROTOCOL
@given(data=st.binary(max_size=200), flags=st.integers(0, 0xFFFF), size=st.integers(0, 240))
def test_any_bytes_behind_a_signature(protocol: Protocol, data: bytes, flags: int, size: int) -> None:
    base = b"\x10\0" + flags.to_bytes(2, "little") + b"LIOR" + size.to_bytes(4, "little")
    invariants.only_malformed_packet_is_raised(base + data, protocol)


@given(data=strategies.json_objects())
def test_any_json(data: Any) -> None:
    invariants.only_invalid_value_is_raised(data)
