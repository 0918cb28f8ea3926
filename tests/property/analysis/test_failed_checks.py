"""Failed checks of a stream: both readers admit the same ranges, whatever the order of the checks."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from msmqwire.analysis.dissection.failed_checks import FAILED_MAX, OVERLAPS_MAX, FailedChecks, size_class
from msmqwire.headers.base import PACKET_SIZE_MAX
from msmqwire.headers.session import SESSION_HEADER_SIZE
from msmqwire.tables.compiled.failed_checks import add_failed, admits, any_failed
from msmqwire.tables.compiled.flow_table import FAILED, FLOW_FIELDS

SIZE_MAX = PACKET_SIZE_MAX + SESSION_HEADER_SIZE
sizes = st.one_of(st.integers(1, 300), st.integers(1, 1 << 12), st.integers(1, SIZE_MAX))
ranges = st.tuples(st.one_of(st.integers(0, 600), st.integers(0, 1 << 23)), sizes)


def is_admitted(failed: list[tuple[int, int]], start: int, size: int) -> bool:
    """The rule itself, with all ranges remembered."""
    ends = [first + length for first, length in failed if size_class(length) == size_class(size)]
    return sum(end > start for end in ends) < OVERLAPS_MAX


@given(failed=st.lists(ranges, max_size=60), asked=st.lists(ranges, min_size=1, max_size=10))
def test_the_order_of_checks_does_not_matter(failed, asked):
    checks, flow = FailedChecks(), np.zeros(FLOW_FIELDS, np.int64)
    for number, (start, size) in enumerate(failed, 1):
        checks.add(start, start + size)
        add_failed(flow, start, size)
        for first, length in asked:
            expected = is_admitted(failed[:number], first, length)
            assert checks.admit(first, first + length) == admits(flow, first, length) == expected
            assert any_failed(flow, first) == (checks.end > first)
    assert not flow[:FAILED].any()


@given(asked=st.lists(ranges, min_size=100, max_size=200))
def test_no_byte_is_checked_in_vain_too_often(asked):
    """In any order, and with a bounded number of ranges remembered."""
    checks, failed = FailedChecks(), []
    for start, size in asked:
        if checks.admit(start, start + size):
            checks.add(start, start + size)
            failed.append((start, start + size))
    for at in {start for start, _ in failed}:
        covering = [size_class(end - start) for start, end in failed if start <= at < end]
        assert all(covering.count(size) <= OVERLAPS_MAX for size in covering)
    assert sum(map(len, checks._ends.values())) <= FAILED_MAX
