"""A finder looks at a byte a bounded number of times, and copies it as often, whatever headers promise.

Both finders are fed with one stream, and the bytes are counted that go through their parts.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.support import handmade as h
from tests.support.capture.both_finders import Compiled, Entries, Portable, Work, run

LOOKED_AT_MAX: Final = 30
"""How often a byte may be looked at or copied, on average."""
MESSAGE: Final = h.user_message()
ACK: Final = h.session_ack()


def claims(size: int) -> bytes:
    """Return a header of so many bytes before the beginning of a message."""
    return h.base_header(size) + MESSAGE[16:76]


def among_packets(size: int) -> bytes:
    """Return the same before a packet that is well-formed."""
    return claims(size) + ACK


def of_many_sizes(size: int) -> bytes:
    """Return headers of sizes that are each half of the one before."""
    return b"".join(claims(size >> half) for half in range(size.bit_length() - 6))


def doubtful(size: int) -> bytes:
    """Return a message of this size with headers only at the end of what is behind its own."""
    message = MESSAGE[:8] + size.to_bytes(4, "little") + MESSAGE[12:]
    return message.ljust(size - 80, b"\0") + claims(size) * 3


STREAMS: Final = [claims, among_packets, of_many_sizes, doubtful]


@pytest.mark.parametrize("segment", [146, 1460])
@pytest.mark.parametrize("midstream", [False, True], ids=["in sync", "midstream"])
@pytest.mark.parametrize("block", STREAMS)
def test_a_byte_is_looked_at_a_bounded_number_of_times(block, midstream, segment, monkeypatch):
    """However large the packets are that headers promise, of which no more than two are buffered."""
    for size in (1 << 12, 1 << 15):
        pattern = block(size)
        data = pattern * (4 * size // len(pattern))
        results = []
        for make in (Compiled, Portable):
            with monkeypatch.context() as patched:
                work = Work(patched)
                results.append(run(make(work, 24 * size, midstream=midstream), data, segment))
                assert len(data) <= work.bytes + 2 * size, make
                assert work.bytes <= LOOKED_AT_MAX * len(data), (make, size)
        assert results[0] == results[1]
        assert sum(size for _, size, _, _ in results[0]) == len(data)


def test_so_is_a_segment(monkeypatch):
    """Each begins with a header of a packet that is cut off, in one that is cut off as well."""
    data = claims(1 << 17)[:60]
    for segments in (250, 500, 1000):
        finders = [make(Work(monkeypatch), 1 << 17, midstream=False) for make in (Compiled, Portable)]
        Entries.count = 0
        results = [run(finder, data * segments, len(data)) for finder in finders]
        assert results[0] == results[1]
        assert len(results[0]) >= segments - 1
        assert segments < Entries.count < 12 * segments
