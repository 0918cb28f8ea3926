"""Findings of packets in Arrow arrays are those of `msmqwire.lint` for each value, whatever the bytes."""

from __future__ import annotations

from typing import Any
from unittest import mock

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

import msmqwire
from msmqwire.analysis.lint import lint
from msmqwire.packets import Protocol, build
from msmqwire.tables import packet_array, packet_findings
from msmqwire.tables.compiled import engine
from spark_udfs import functions as f
from tests.property.tables.test_items import FILES, acks, messages, opening
from tests.property.tables.test_read_packets import damaged, good
from tests.support import handmade as h


def one_by_one(values: list[bytes | None]) -> list[Any]:
    """The cells of ``msmq_lint`` by lint alone."""
    cells = []
    for data, kind in zip(values, f.kind_of_raw(pa.array(values, pa.binary())).to_pylist(), strict=True):
        protocol: Protocol = "ping" if kind == "Ping" else "session"
        found = None if data is None else [one.to_json() for one in lint(data, protocol=protocol)]
        cells.append(found)
    return cells


built = st.one_of(messages(), opening(), acks).map(build)
values = st.lists(st.one_of(built, built, good, damaged(), st.binary(max_size=40), st.none()), max_size=12)


@given(
    values, values, st.sampled_from([pa.binary(), pa.large_binary()]), st.sampled_from([1, 3, 1 << 13]),
    st.sampled_from([1, 2, 512]),
)  # fmt: skip
def test_findings_are_those_of_lint_value_by_value(
    before: list[bytes | None], middle: list[bytes | None], kind: Any, rows: int, sessions: int
) -> None:
    raw = pa.array([*before, *middle], kind).slice(len(before))
    with (
        mock.patch.object(packet_array, "ROWS", rows),
        mock.patch.object(packet_findings, "_BEFORE", sessions),
    ):
        assert f.lint_raw(raw).to_pylist() == one_by_one(middle)
        chunked = pa.chunked_array([raw, raw.slice(0, 0), raw])
        assert f.lint_raw(chunked).to_pylist() == 2 * one_by_one(middle)


@pytest.mark.parametrize("path", FILES, ids=[f"{path.parent.name}/{path.name}" for path in FILES])
def test_packets_of_the_captures_have_the_findings_of_lint(path: Any) -> None:
    items = msmqwire.dissect(path, lint=False)
    values: list[bytes | None] = [item.raw for item in items if item.transport != "pgm"]
    assert f.lint_raw(pa.array(values, pa.binary())).to_pylist() == one_by_one(values)


def test_packets_without_a_bit_are_not_given_to_lint():
    clean = build({"packet": "SessionAck", "fields": {}})
    assert lint(clean) == []
    wrong = h.user_message()
    assert lint(wrong)
    with mock.patch.object(packet_findings, "lint_packet", wraps=packet_findings.lint_packet) as judged:
        cells = f.lint_raw(pa.array([clean, wrong, None, clean])).to_pylist()
    assert [None if found is None else len(found) for found in cells] == [0, len(lint(wrong)), None, 0]
    if engine.chosen().name != engine.PORTABLE:
        assert [call.args[1] for call in judged.call_args_list] == [wrong]
