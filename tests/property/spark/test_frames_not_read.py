"""All readers count the same frames that were not read, however a capture is divided."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from msmqwire.analysis.dissection import Dissection
from msmqwire.capture.not_read import listed
from msmqwire.capture.splits import whole_file
from msmqwire.tables.datagrams import DatagramReader
from msmqwire.tables.exact_parts import exact_parts
from msmqwire.tables.part_reader import PartReader
from msmqwire.tables.parts import plan_parts, plan_windows
from spark_udfs.source.segment_reader import UNREAD, segment_batches
from tests.support import captures as c
from tests.support.capture import unread_frames as u
from tests.support.capture.both_readers import assert_same, columnar

FRAMES = [
    *((linktype, data) for linktype, data, _ in u.UNREAD.values()),
    *u.OTHERS.values(),
    (1, c.ethernet(u.INNER)),
    *((1, c.ethernet(part)) for part in c.fragments_4(c.udp_packet(u.INNER * 3, ident=4), 80)),
]

mixtures = st.lists(st.sampled_from(FRAMES), max_size=40)


def wrong(data: bytes, places: list[tuple[float, int]]) -> bytes:
    """A frame with other bytes in some places."""
    changed = bytearray(data)
    for place, value in places:
        changed[int(place * (len(data) - 1))] = value
    return bytes(changed)


damages = st.lists(
    st.tuples(st.floats(0, 1), st.sampled_from([0, 1, 4, 6, 8, 17, 0x45, 0x60, 0xFF])), max_size=3
)
lengths = st.one_of(st.just(1000), st.integers(1, 120))
damaged = st.lists(st.tuples(st.sampled_from(FRAMES), damages, lengths), max_size=20)


@given(damaged, st.sampled_from([400, 4000]))
def test_both_readers_count_the_same(arriving, chunk):
    frames = [(link, wrong(data, places)[:length]) for (link, data), places, length in arriving]
    assert_same([u.capture_of(frames), u.capture_of(frames[:5])], CHUNK=chunk, ARENA=3000, ROWS=7)


@given(damaged, st.integers(20, 200))
def test_datagram_readers_count_the_same(arriving, snaplen):
    frames = [wrong(data, places) for (link, data), places, _ in arriving if link == 1]
    with TemporaryDirectory() as folder:
        path = Path(folder, "capture.pcap")
        path.write_bytes(c.pcap_bytes(frames, snaplen=snaplen))
        assert datagram_counts(path) == expected(path)


def expected(path: Path) -> Counter[str]:
    dissection = Dissection(path, lint=False)
    for _ in dissection:
        pass
    return dissection.decoder.frames_not_read()


def datagram_counts(path: Path) -> Counter[str]:
    reader = DatagramReader()
    with path.open("rb") as stream:
        for _ in reader.read(stream, 0):
            pass
    return reader.frames_not_read(at_end=True)


@settings(max_examples=30)
@given(mixtures, st.sampled_from([1, 500, 3000]), st.randoms(use_true_random=False))
def test_parts_add_up(mixture, size, rng: random.Random):
    """Parts of every kind, in any order: packets, exact packets, and segments of Spark."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "capture.pcapng")
        path.write_bytes(u.capture_of(mixture))
        alone = expected(path)
        parts = plan_parts(plan_windows([str(path)], size, search=False, overlap=1 << 20), size, 1 << 20)
        exact = list(exact_parts([whole_file(str(path))], size))
        for divided in (parts, exact):
            counts = Counter[str]()
            for part in rng.sample(divided, len(divided)):
                for _ in PartReader().batches(part, ["kind"], not_read=counts):
                    pass
            assert counts == alone
        counts = Counter[str]()
        for part in parts:
            for batch in segment_batches(part, columns=["transport", "error", "size"], not_read=True):
                for row in batch.to_pylist():
                    if row["transport"] == UNREAD:
                        counts[row["error"]] += row["size"]
        assert counts == alone
        assert sum(one.frames for one in listed(alone)) == alone.total()


@pytest.mark.parametrize("linktype", [0, 1, 12, 101, 104, 113, 228, 276, 9999])
def test_records_without_a_byte_are_counted_by_the_compiled_scan(linktype):
    empty, other = [(linktype, b"")] * 50, [(1, b"x" * 13)] * 3
    data = u.capture_of([*empty, *other, *empty])
    assert_same([data, data], CHUNK=400)
    dissection, _ = columnar([data])
    assert dissection.handed <= 5
    assert sum(unread.frames for unread in dissection.frames_not_read) == 103
