"""Bodies of BinaryMessageFormatter against the package nrbf: both find the same structure.

It drops the ids of objects and the assemblies of classes, makes lists of List`1 and numbers of
enumerations, and leaves times as their 64 bits; runs of nulls, references and classes are what is compared.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire.bodies import nrbf
from msmqwire.bodies.limits import DEFAULT, Budget
from tests.support.nrbf_streams import order

peer = pytest.importorskip("nrbf")

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
NUMBERS = st.integers(-(1 << 31), (1 << 31) - 1)
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=5),
    max_leaves=20,
).filter(lambda value: isinstance(value, list))


def reduced(value):
    """A value as the peer has it."""
    if isinstance(value, list):
        return [reduced(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$decimal" in value:
        return value["$decimal"]
    if "value__" in value:
        return value["value__"]
    if "_items" in value:
        return [reduced(item) for item in value["_items"][: value["_size"]]]
    name = value["$type"].partition(",")[0]
    members = {key: reduced(item) for key, item in value.items() if not key.startswith("$")}
    return members | {"__class__": name}


def read(body):
    return nrbf.read(body, Budget(DEFAULT, len(body))).value


@pytest.mark.parametrize("items", [0, 1, 5, 80])
def test_an_order(items):
    body = order(items)
    ours, theirs = reduced({**read(body), "Created": 0}), peer.loads(body)
    assert ours == {**theirs, "Created": 0}


@given(ANYTHING)
def test_arrays_of_anything(value):
    body = nrbf.write(value, "System.Object[]")
    assert peer.loads(body) == reduced(read(body)) == value


@given(st.lists(st.none() | TEXTS))
def test_texts(value):
    assert peer.loads(nrbf.write(value, "System.String[]")) == value
    assert peer.loads(nrbf.write(value, "System.Collections.Generic.List`1[[System.String]]")) == value


@given(st.lists(NUMBERS))
def test_numbers(value):
    assert peer.loads(nrbf.write(value, "System.Int32[]")) == value
    assert peer.loads(nrbf.write(value, "System.Collections.Generic.List`1[[System.Int32]]")) == value
