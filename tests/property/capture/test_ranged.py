"""Files read by ranges: the same bytes as the file's, and no more requests than promised."""

from __future__ import annotations

import io
import random
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire.capture import ranged
from msmqwire.capture.ranged import RangedFile
from tests.support.running import until

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(0, 300)),
        st.tuples(st.just("seek"), st.integers(0, 1200)),
        st.tuples(st.just("back"), st.integers(0, 40)),
    ),
    max_size=30,
)


class Server:
    """Serves ranges of some bytes, and counts."""

    def __init__(self, data: bytes, wait: float = 0) -> None:
        self.data, self.wait = data, wait
        self.ranges: list[tuple[int, int]] = []
        self.running = self.most = 0
        self._lock = threading.Lock()

    def fetch(self, offset: int, count: int) -> bytes:
        with self._lock:
            self.ranges.append((offset, offset + count))
            self.running += 1
            self.most = max(self.most, self.running)
        time.sleep(self.wait)  # the latency of a network, so that requests overlap
        with self._lock:
            self.running -= 1
        return self.data[offset : offset + count]

    def file(self, stop: int | None = None) -> RangedFile:
        return RangedFile("memory:///a", len(self.data), "1", self.fetch, stop=stop)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("FIRST_SIZE", 16), ("BLOCK_SIZE", 100)):
        monkeypatch.setattr(ranged, name, size)


@pytest.mark.usefixtures("small_blocks")
@given(steps=STEPS, stop=st.none() | st.integers(0, 1000))
def test_any_reads_give_the_bytes_of_the_file(steps: list[tuple[str, int]], stop: int | None) -> None:
    data = random.Random(1).randbytes(1000)
    server, plain = Server(data), io.BytesIO(data)
    with server.file(stop) as file:
        for step, number in steps:
            if step == "read":
                assert file.read(number) == plain.read(number)
            else:
                at = number if step == "seek" else max(0, plain.tell() - number)
                assert file.seek(at) == plain.seek(at)
            assert file.tell() == plain.tell()
    assert all(0 <= start < end <= len(data) for start, end in server.ranges)


@pytest.mark.usefixtures("small_blocks")
def test_a_file_read_in_order_is_fetched_once_in_growing_blocks() -> None:
    server = Server(random.Random(1).randbytes(1000))
    with server.file() as file:
        assert b"".join(iter(lambda: file.read(10), b"")) == server.data
    ranges = sorted(server.ranges)
    assert [end - start for start, end in ranges][:3] == [16, 64, 100]
    assert [end for _, end in ranges[:-1]] == [start for start, _ in ranges[1:]]
    assert sum(end - start for start, end in ranges) == 1000


@pytest.mark.usefixtures("small_blocks")
def test_who_looks_at_a_few_places_fetches_little() -> None:
    server = Server(bytes(1000))
    with server.file() as file:
        for at in (0, 700, 300):
            file.seek(at)
            file.read(4)
            file.read(4)
    assert server.ranges == [(0, 16), (700, 716), (300, 316)]


@pytest.mark.usefixtures("small_blocks")
def test_nothing_is_read_ahead_beyond_the_stop() -> None:
    server = Server(bytes(1000))
    with server.file(stop=430) as file:
        file.seek(100)
        assert len(file.read(330)) == 330
        assert max(end for _, end in server.ranges) == 430
        assert len(file.read(100)) == 100  # needed all the same


@pytest.mark.usefixtures("small_blocks")
def test_requests_under_way_are_bounded_and_overlap() -> None:
    server = Server(bytes(5000), wait=0.01)
    with server.file() as file:
        while file.read(50):
            pass
    assert 2 <= server.most <= ranged.AHEAD + 1


@pytest.mark.usefixtures("small_blocks")
def test_a_step_back_over_a_block_end_fetches_nothing_again() -> None:
    server = Server(bytes(range(250)) * 4)
    with server.file() as file:
        for at in range(0, 960, 10):  # so that some reads begin shortly before the end of each block
            file.seek(at)
            assert file.read(50) == server.data[at : at + 50]
    assert sum(end - start for start, end in server.ranges) == 1000


@pytest.mark.usefixtures("small_blocks")
def test_blocks_are_requested_long_before_they_are_needed() -> None:
    server = Server(bytes(5000))
    with server.file() as file:
        for at in range(200, 4000, 50):
            file.read(at - file.tell())
            ahead = at + (ranged.AHEAD - 1) * 100
            until(
                lambda ahead=ahead: max(end for _, end in server.ranges) >= ahead,
                f"{ahead} is requested while {at} is read",
            )


@pytest.mark.usefixtures("small_blocks")
def test_a_file_that_was_read_to_its_end_keeps_nothing() -> None:
    server = Server(bytes(1000))
    with server.file() as file:
        file.read(1000)
        requests = len(server.ranges)
        file.seek(995)
        file.read(5)
        assert server.ranges[requests:] == [(995, 1000)]


@pytest.mark.usefixtures("small_blocks")
def test_an_error_ahead_is_raised_where_its_bytes_are_read() -> None:
    server = Server(bytes(1000))

    def fetch(offset: int, count: int) -> bytes:
        if offset + count > 400:
            raise OSError(5, "broken", "memory:///a")
        return server.fetch(offset, count)

    with RangedFile("memory:///a", 1000, "1", fetch) as file:
        assert len(file.read(100)) == 100
        with pytest.raises(OSError, match="broken"):
            file.read(900)


def test_positions_that_do_not_exist_and_a_closed_file() -> None:
    file = Server(b"abc").file()
    assert file.seek(-1, io.SEEK_END) == 2
    assert file.read() == b"c"
    for arguments in ((-1,), (0, 9), (-4, io.SEEK_END)):
        with pytest.raises(ValueError, match="no such position"):
            file.seek(*arguments)
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.read(1)
