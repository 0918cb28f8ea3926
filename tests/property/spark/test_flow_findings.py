"""Findings of segments shuffled by flow are those of a tracker that judges each flow."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import ExitStack
from typing import Any
from unittest import mock

import hypothesis.strategies as st
from hypothesis import given

from msmqwire.tables.arrow.rows import value_of
from msmqwire.tables.columns import BY_NAME
from msmqwire.tables.scanning import row_buffer
from spark_udfs.jobs.findings import FINDING_SCHEMA, finding_rows
from spark_udfs.reassembly import flow_findings
from spark_udfs.source.schema import row_batches
from tests.property.spark.test_spark_reassembly import (
    SIZES,
    any_segments,
    batch_of,
    captures,
    shuffled_shares,
)
from tests.property.tables.test_items import sessions
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.flow_items import flow_items

OF_PACKET = ("time", "file", "transport", "src", "src_port", "dst", "dst_port", "kind", "size")


def by_trackers(share: list[Any], end: int) -> list[dict[str, Any]]:
    """The rows of the job by a tracker for each flow."""
    rows, packets, sizes = list[dict[str, Any]](), Counter[str](), Counter[str]()
    for flow, item in flow_items(share, lint=True, end_ns=end):
        packets[item.kind] += 1
        sizes[item.kind] += item.size
        cells = {name: value_of(BY_NAME[name], item) for name in OF_PACKET}
        cells |= {"stream": flow if item.transport == "tcp" else None, "frame_offset": item.frames[-1]}
        rows += [cells | finding.to_json() for finding in item.findings]
    return rows + [{"kind": kind, "offset": packets[kind], "size": sizes[kind]} for kind in sorted(packets)]


def assert_same(share: list[Any], end: int, **sizes: int) -> int:
    """Check the rows of the job; return the number of findings."""
    with ExitStack() as stack:
        for name, size in sizes.items():
            stack.enter_context(mock.patch.object(row_buffer, name, size))
        stack.enter_context(mock.patch.object(flow_findings, "FRAMES", sizes.get("ROWS", 1)))
        rows = list(finding_rows(share, end_ns=end))
    expected = by_trackers(share, end)
    assert rows == expected
    assert [*row_batches(iter(rows), FINDING_SCHEMA)] == [*row_batches(iter(expected), FINDING_SCHEMA)]
    return sum("id" in row for row in rows)


@given(captures(), st.sampled_from([1, 2, 7, 1 << 30]), SIZES, st.randoms())
def test_any_capture_has_the_findings_of_trackers(files, flows, sizes, rng):
    (share,), end = shuffled_shares(files, flows=flows, tasks=1, rng=rng)
    assert_same(share, end, **sizes)


@given(any_segments(), st.integers(1, 20), st.integers(0, 2**63 - 1), SIZES)
def test_any_segments_have_the_findings_of_trackers(rows, size, end, sizes):
    share = [batch_of(rows[at : at + size]) for at in range(0, len(rows), size)]
    assert_same(share, end, **sizes)


@given(st.lists(sessions(), min_size=1, max_size=4), st.sampled_from([1, 1 << 30]), SIZES, st.randoms())
def test_any_sessions_have_the_findings_of_trackers(talks, flows, sizes, rng):
    (share,), end = shuffled_shares([c.pcapng_bytes(c.merged(*talks))], flows=flows, tasks=1, rng=rng)
    assert_same(share, end, **sizes)


def test_connections_between_the_same_ends_are_judged_apart():
    """The second one says that it accepts what was asked on the first."""
    first = c.TcpConversation().handshake().send(h.establish_connection()).close()
    second = c.TcpConversation(client_isn=70_000, server_isn=90_000, start_ns=c.START_NS + 10**9).handshake()
    second.send(h.establish_connection(), by_client=False).close()
    shares, end = shuffled_shares(
        [c.pcapng_bytes([*first.frames, *second.frames])], flows=1, tasks=1, rng=random.Random(1)
    )
    assert assert_same([*shares[0]], end)
