"""NetWare's structures: complete, partial, wrong and hostile values, through both readers and both builders.

A structure is drawn as well as its value: there are too many of them for a share of the examples each.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz import invariants, strategies
from msmqwire.schema import SCHEMAS, Record

STRUCTURES = st.sampled_from(strategies.NCP_STRUCTURES)
WITH_INTEGERS = st.sampled_from(
    [key for key in strategies.NCP_STRUCTURES if strategies.has_integers(SCHEMAS[key])]
)
# Several for each structure.
MANY = settings(max_examples=max(200, settings.default.max_examples))


@pytest.mark.parametrize("key", strategies.NCP_STRUCTURES)
def test_one_value_of_each_comes_back(key: str) -> None:
    value = SCHEMAS[key].make()
    invariants.what_is_built_parses(value)
    invariants.survives_json(value)


@MANY
@given(key=STRUCTURES, data=st.data())
def test_complete_values_come_back(key: str, data: st.DataObject) -> None:
    value = data.draw(strategies.values(SCHEMAS[key]))
    invariants.what_is_built_parses(value)
    invariants.layout_has_no_gap(value)
    invariants.survives_json(value)
    invariants.survives_pickling(value)


@MANY
@given(key=STRUCTURES, data=st.data())
def test_what_is_left_out_is_computed(key: str, data: st.DataObject) -> None:
    schema = SCHEMAS[key]
    invariants.what_is_left_out_is_computed(schema, data.draw(strategies.partial(schema)))


@MANY
@given(key=WITH_INTEGERS, data=st.data())
def test_wrong_values_stay(key: str, data: st.DataObject) -> None:
    invariants.wrong_values_stay(*data.draw(strategies.misfits(SCHEMAS[key])))


@MANY
@given(key=STRUCTURES, data=st.data(), before=st.binary(max_size=5))
def test_changed_bytes(key: str, data: st.DataObject, before: bytes) -> None:
    schema = SCHEMAS[key]
    built = strategies.values(schema).map(Record.to_bytes)
    changed = data.draw(strategies.mutated(built, schema))
    invariants.what_is_accepted_rebuilds(schema, changed)
    invariants.both_readers_agree(schema, changed)
    invariants.the_position_does_not_matter(schema, changed, before)


@MANY
@given(key=STRUCTURES, data=st.data())
def test_bytes_that_break_off(key: str, data: st.DataObject) -> None:
    value = data.draw(strategies.values(SCHEMAS[key]))
    invariants.every_truncation_is_refused(value, data.draw(st.integers(0, len(value.to_bytes()))))
