"""Expressions over columns: one item at a time or a batch at once, the same is wanted."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import msmqwire
from msmqwire.tables import COLUMNS, expression_parser
from msmqwire.tables.arrow.rows import batches, value_of
from msmqwire.tables.columns import BINARY, BOOL, TEXT, Column
from msmqwire.tables.expression_parser import InvalidExpression, parse_expression
from msmqwire.tables.filters import Filter
from msmqwire.tables.possible_values import POSSIBLE
from tests.support.paths import ROOT

CAPTURES = [
    ROOT / "examples" / name
    for name in ("session.pcap", "hostile.pcapng", "netware.pcap", "remote_read.pcap")
]
ITEMS = [item for capture in CAPTURES for item in msmqwire.dissect(capture)]
BATCH = next(batches(ITEMS, COLUMNS, batch_rows=len(ITEMS)))
VALUES: dict[str, list[Any]] = {
    column.name: list(dict.fromkeys(value for item in ITEMS if (value := value_of(column, item)) is not None))
    for column in COLUMNS
}


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _literal(column: Column, value: Any) -> str:
    if pa.types.is_timestamp(column.type):
        if column.type.unit == "ns":
            return f"{_quoted(f'{value // 10**9}.{value % 10**9:09d}')}"
        return str(int(value.timestamp()) if hasattr(value, "timestamp") else value)
    if column.type == TEXT:
        return _quoted(value)
    if column.type == BINARY:
        return f"x'{value.hex()}'"
    return str(value).lower() if column.type == BOOL else str(value)


@st.composite
def column_tests(draw: st.DrawFn) -> str:
    column = draw(st.sampled_from([column for column in COLUMNS if VALUES[column.name]]))
    values = st.sampled_from(VALUES[column.name])
    literals = values.map(lambda value: _literal(column, value))
    ways = ["{0} is null", "{0} is not null"]
    if column.type == BOOL:
        ways += ["{0}", "{0} == {1}", "{0} != {1}"]
    else:
        ways += [f"{{0}} {sign} {{1}}" for sign in ("==", "=", "!=", "<>", "<", "<=", ">", ">=")]
        ways += ["{0} in ({1}, {2})", "{0} not in ({1})"]
    if column.type == TEXT:
        pieces = st.tuples(values, st.integers(0, 20), st.integers(0, 20)).map(
            lambda cut: cut[0][cut[1] : cut[2]]
        )
        ways += [
            f"{{0}} {keyword} {{3}}" for keyword in ("contains", "like", "ilike", "not like", "not contains")
        ]
        sides = st.sampled_from(["", "%", "_"])
        literals_of_parts = st.builds(lambda piece, side: _quoted(side + piece + side), pieces, sides)
    elif column.type == BINARY:
        ways += ["{0} contains {3}", "{0} not contains {3}"]
        parts = values.map(lambda value: value[1:3])
        hexadecimal = parts.map(lambda part: f"x'{part.hex()}'")
        literals_of_parts = st.one_of(hexadecimal, st.sampled_from(["'o'", "'order'", "''"]))
    else:
        literals_of_parts = st.just("")
    way = draw(st.sampled_from(ways))
    return way.format(column.name, draw(literals), draw(literals), draw(literals_of_parts))


def is_possible(text: str) -> bool:
    try:
        parse_expression(text)
    except InvalidExpression:
        return False
    return True


EXPRESSIONS = st.recursive(
    column_tests().filter(is_possible),
    lambda inner: st.one_of(
        st.builds("({}) {} {}".format, inner, st.sampled_from(["and", "or", "AND", "||", "&&"]), inner),
        inner.map(lambda text: f"not ({text})"),
    ),
    max_leaves=6,
)


@given(column_tests())
def test_what_is_refused_is_wanted_of_no_item(text: str) -> None:
    """Every value that a reader gives is possible; a pattern that is refused matches none of them."""
    if is_possible(text):
        return
    column, word, *_ = text.replace(" not ", " ").split(" ")
    assert column in POSSIBLE, text
    assert word in ("like", "ilike", "contains"), text
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expression_parser, "refuse_impossible_pattern", lambda pattern: None)
        expression = parse_expression(text.replace(" not ", " "))
    assert not any(expression.accepts(lambda column, item=item: value_of(column, item)) for item in ITEMS)


@given(EXPRESSIONS)
def test_items_and_batches_agree(text: str) -> None:
    expression = parse_expression(text)
    wanted = [expression.accepts(lambda column, item=item: value_of(column, item)) for item in ITEMS]
    assert expression.mask(BATCH).to_pylist() == wanted
    # In a query, the conditions on where-columns are applied before the others.
    query = Filter(text)
    passed = [item for item in ITEMS if query.lets_through(item)]
    rows = next(batches(passed, COLUMNS, batch_rows=len(ITEMS)), BATCH.slice(0, 0))
    assert query.rest(rows).num_rows == sum(wanted)


@given(st.text(alphabet="kind size label='\"x0 1and or not()<>!&|,%é\n", max_size=40))
def test_any_text_is_read_or_refused_at_its_place(text: str) -> None:
    try:
        parse_expression(text)
        position = 0
    except InvalidExpression as error:
        position = error.position
    assert 0 <= position <= len(text)


def test_a_query_gives_the_same_rows_with_both_readers() -> None:
    capture = ROOT / "examples/session.pcap"
    text = "kind == 'UserMessage' and label like 'mq%' and body_size > 0 or ping_cookie is not null"
    expression = parse_expression(text)
    items = [
        item
        for item in msmqwire.dissect(capture)
        if expression.accepts(lambda column, item=item: value_of(column, item))
    ]
    table = msmqwire.read_capture(capture, columns=["frame"], where=text)
    assert table.column("frame").to_pylist() == [item.frames[-1] for item in items] != []


@pytest.mark.parametrize("nested", ["(" * 5000 + "size = 1" + ")" * 5000, "not " * 5000 + "size = 1"])
def test_nesting_is_limited(nested: str) -> None:
    with pytest.raises(InvalidExpression, match="levels"):
        parse_expression(nested)


def test_many_terms_in_a_row() -> None:
    text = " or ".join(f"size == {number}" for number in range(20_000))
    assert parse_expression(text).mask(BATCH).to_pylist() == [item.size < 20_000 for item in ITEMS]
