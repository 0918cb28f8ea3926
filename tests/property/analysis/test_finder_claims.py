"""Of streams of headers that promise more or less than there is both finders find the same, at once."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tests.support import handmade as h
from tests.support.capture.both_finders import Compiled, Portable, Work, run

ACK = h.session_ack()
MESSAGE = h.user_message()
BROKEN = h.user_message(user=h.user_header(destination=(1, h.private_id(9))))
sizes = st.one_of(st.integers(16, 4500), st.sampled_from([16, 63, 64, 100, 1023, 1024, 4000, 4096]))


def resized(packet: bytes, size: int) -> bytes:
    return packet[:8] + size.to_bytes(4, "little") + packet[12:]


promises = st.one_of(
    sizes.map(h.base_header),
    st.builds(resized, st.sampled_from([MESSAGE, BROKEN, BROKEN[:76]]), sizes),
    st.builds(lambda size: resized(MESSAGE, size).ljust(size - 40, b"\0"), sizes),
)
others = st.lists(st.sampled_from([ACK, ACK, MESSAGE, b"x", b"\x10", bytes(12), bytes(70)]), max_size=2)
blocks = st.builds(lambda promise, after: b"".join([promise, *after]), promises, others)
streams = st.builds(
    lambda parts, times: b"".join(parts) * times, st.lists(blocks, min_size=1, max_size=4), st.integers(1, 60)
)


@given(
    data=streams,
    segment=st.sampled_from([7, 40, 146, 1460, 9000]),
    midstream=st.booleans(),
)
@settings(deadline=None)
def test_both_finders_find_the_same(data: bytes, segment: int, midstream: bool) -> None:
    data = data[: 2000 * segment]
    with pytest.MonkeyPatch.context() as patched:
        results = [
            run(make(Work(patched), 1 << 18, midstream=midstream), data, segment)
            for make in (Compiled, Portable)
        ]
    assert results[0] == results[1]
    assert sum(size for _, size, _, _ in results[0]) == len(data)
