"""Parts found from surveys that tasks make have the rows of one reader."""

from __future__ import annotations

import gzip
import pickle
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import hypothesis.strategies as st
import pytest
from hypothesis import given

from msmqwire.capture.splits import divide, whole_file
from msmqwire.capture.window import Window
from msmqwire.errors import CaptureError
from msmqwire.tables import exact_parts as module
from msmqwire.tables import part_survey
from msmqwire.tables.exact_parts import ExactPart, exact_parts
from msmqwire.tables.part_survey import Move, PartSurvey
from msmqwire.tables.scanning import courses, row_buffer
from msmqwire.tables.survey_joining import SurveyJoiner
from tests.property.spark import test_spark_reassembly
from tests.property.tables import test_columnar
from tests.property.tables.test_exact_parts import (
    NAMES,
    assert_rows_of_end,
    busy_capture,
    few,
    fragmented,
    joined,
    whole,
)
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture import tunnelled_frames as t
from tests.support.nightly import nightly
from tests.support.paths import EXAMPLES

CHUNKS = st.sampled_from([64, 300, 2000])
SIZES = st.sampled_from([1, 300, 1000, 5000])


def walked(file: Window, size: int, **_: object) -> list[Window]:
    """Divide a file at its records, also where it is too small for a search."""
    return divide(file, size)


class Tasks:
    """Makes surveys in any order, as other processes would; counts the bytes that were read again."""

    last: Sequence[PartSurvey] = ()

    def __init__(self, seed: int, change: Callable[[PartSurvey], PartSurvey] = lambda survey: survey) -> None:
        self.rng, self.change = random.Random(seed), change

    def __call__(
        self, survey: Callable[[Window], PartSurvey], windows: Sequence[Window]
    ) -> Iterator[PartSurvey]:
        made = {}
        for number in self.rng.sample(range(len(windows)), len(windows)):
            made[number] = self.change(pickle.loads(pickle.dumps(survey(windows[number]))))
        Tasks.last = [made[number] for number in range(len(windows))]
        return iter(Tasks.last)


def assert_same(
    files: Sequence[bytes],
    chunk: int,
    part_size: int,
    seed: int = 1,
    *,
    by_offset: bool = False,
    change: Callable[[PartSurvey], PartSurvey] = lambda survey: survey,
) -> tuple[list[ExactPart], int]:
    """Check the rows of parts; return the parts, and the bytes that had to be read again."""
    again, read = [0], SurveyJoiner._pass

    def counting(self: SurveyJoiner, *arguments: object) -> None:
        before = self.read_again
        read(self, *arguments)  # type: ignore[arg-type]
        again[0] += self.read_again - before

    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.pcap" for number in range(len(files))]
        for path, data in zip(paths, files, strict=True):
            path.write_bytes(data)
        expected = whole(paths)
        with (
            mock.patch.multiple(row_buffer, CHUNK=chunk, ARENA=3000),
            mock.patch.multiple(part_survey, CHUNK_MIN=chunk),
            mock.patch.object(SurveyJoiner, "_pass", counting),
            mock.patch.object(module, "divide", walked),
        ):
            windows = [whole_file(str(path)) for path in paths]
            found = exact_parts(windows, part_size, by_offset=by_offset, map_windows=Tasks(seed, change))
            parts = [pickle.loads(pickle.dumps(part)) for part in found]
            actual = joined(parts, random.Random(seed))
            if by_offset:  # of which frames are numbered otherwise
                expected = joined(list(exact_parts(windows, part_size, by_offset=True)), random.Random(seed))
    assert actual[1] == expected[1]
    for name in NAMES:
        assert actual[0][name].to_pylist() == expected[0][name].to_pylist(), name
    return parts, again[0]


@given(frames=test_columnar.captures(), data=st.data(), chunk=CHUNKS, size=SIZES, seed=st.integers(0, 99))
@few
def test_any_capture(frames: list[c.Frame], data: st.DataObject, chunk: int, size: int, seed: int) -> None:
    cut = data.draw(st.integers(0, len(frames)))
    files = [test_columnar.file_of(data, part) for part in (frames[:cut], frames[cut:])]
    assert_same(files, chunk, size, seed)


@given(files=test_spark_reassembly.captures(), chunk=CHUNKS, size=SIZES)
@few
def test_connections_with_disorder_pauses_and_reused_ports(files: list[bytes], chunk: int, size: int) -> None:
    assert_same(files, chunk, size)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("form", ["pcap", "pcapng"])
@pytest.mark.parametrize("size", [pytest.param(1, marks=nightly), 3000, 20_000])
def test_a_busy_capture(share: float, form: str, size: int) -> None:
    frames = busy_capture(share)
    data = c.pcap_bytes(frames) if form == "pcap" else c.pcapng_bytes(frames, byteorder=">")
    parts, _ = assert_same([data], 300, size)
    assert len(parts) > 2


def test_fragments_and_multicast_sessions_cross_parts() -> None:
    assert_same([c.pcap_bytes(fragmented())], 64, 1)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.pcap*")), ids=lambda path: path.name)
def test_examples(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        parts, _ = assert_same([path.read_bytes()] * 2, 100, 700)
    assert len(parts) > 2


def long_capture() -> list[c.Frame]:
    """Connections that last from the first frame to the last, of MSMQ and of what is not recognised."""
    rng, talks = random.Random(7), []
    for number in range(6):
        talk = c.TcpConversation(
            (c.CLIENT, 50_000 + number), (c.SERVER, 1801 if number % 3 else 8443), mss=600,
            client_isn=number * 7919, start_ns=c.START_NS + number * 7_000_000,
        )  # fmt: skip
        if number:
            talk.handshake()
        for at in range(60):
            body = h.properties_header(label=f"{number} {at}", body=rng.randbytes(rng.randrange(900)))
            data = h.user_message(properties=body) if number % 3 else rng.randbytes(700)
            talk.send(data, by_client=at % 4 > 0)
        talks.append(talk.frames)
    return c.merged(*talks)


@pytest.mark.parametrize("by_offset", [False, True])
@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_long_connections_are_surveyed_little_and_read_once(form: str, by_offset: bool) -> None:
    frames = long_capture()
    write, half = c.pcap_bytes if form == "pcap" else c.pcapng_bytes, len(frames) // 2
    files = [write(frames[:half]), write(frames[half:])]
    with mock.patch.object(courses, "_GAP_SEGMENTS", 2):
        parts, again = assert_same(files, 2000, 50_000, by_offset=by_offset)
    assert len(parts) >= 4
    assert again == 0
    assert sum(len(survey.data) for survey in Tasks.last) < 0.5 * sum(map(len, files))


def test_connections_in_tunnels_keep_the_tunnel_of_their_frames() -> None:
    frames = [
        replace(frame, data=t.frame(t.vxlan(frame.data, 5000 + number // 200)))
        for number, frame in enumerate(long_capture())
    ]
    with mock.patch.object(courses, "_GAP_SEGMENTS", 2):
        parts, again = assert_same([c.pcap_bytes(frames)], 2000, 50_000)
    assert len(parts) >= 4
    assert again < 100_000


def test_a_survey_that_is_wrong_is_not_believed() -> None:
    """Whatever a survey says of a connection: where it is elsewhere, the part is read instead."""
    data = c.pcap_bytes(long_capture())

    def wrong(survey: PartSurvey) -> PartSurvey:
        def changed(move: Move) -> Move:
            one, other = move.before
            return move._replace(before=(one._replace(next_seq=one.next_seq + 1), other))

        moves = tuple(tuple(map(changed, of_place)) for of_place in survey.moves)
        return replace(survey, moves=moves)

    with mock.patch.object(courses, "_GAP_SEGMENTS", 2):
        parts, again = assert_same([data], 2000, 100_000, change=wrong)
    assert len(parts) >= 2
    assert again > 0.8 * len(data)


@pytest.mark.parametrize("limit", ["STREAMS_MAX", "STRETCHES_MAX"])
def test_a_part_with_too_many_connections_is_read_instead(limit: str) -> None:
    data = c.pcap_bytes(long_capture())
    with mock.patch.object(courses, "_GAP_SEGMENTS", 2), mock.patch.object(part_survey, limit, 3):
        _, again = assert_same([data], 2000, 100_000)
    assert {survey.why_not for survey in Tasks.last} == {"it has too many connections"}
    assert again == len(data)


def test_damage_is_read_by_one_reader() -> None:
    frames = long_capture()
    data = bytearray(c.pcap_bytes(frames))
    at = len(c.pcap_bytes(frames[: len(frames) // 2]))
    data[at + 8 : at + 12] = b"\xff" * 4  # bytes of a record
    assert_same([bytes(data), bytes(data[:-20])], 2000, 50_000)
    # What one reader reads of a damaged file leaves nothing for the file after it.
    section = c.pcapng_bytes(frames[:3])
    assert_same([section[:4] + b"\x1d" + section[5:], c.pcap_bytes(frames[:60])], 64, 1)


def test_compressed_files_are_surveyed_as_a_whole() -> None:
    frames = long_capture()
    thirds = [frames[at : at + len(frames) // 3 + 1] for at in range(0, len(frames), len(frames) // 3 + 1)]
    parts, again = assert_same([gzip.compress(c.pcap_bytes(third)) for third in thirds], 2000, 10_000)
    assert (len(parts), again) == (3, 0)


@nightly
def test_parts_can_begin_at_any_record_that_is_named(tmp_path: Path) -> None:
    frames = busy_capture(0.1)
    paths = [tmp_path / f"{number}.pcap" for number in range(2)]
    paths[0].write_bytes(c.pcap_bytes(frames[:200]))
    paths[1].write_bytes(c.pcapng_bytes(frames[200:]))
    files = [whole_file(str(path)) for path in paths]
    with (
        mock.patch.multiple(row_buffer, CHUNK=64, ARENA=3000),
        mock.patch.multiple(part_survey, CHUNK_MIN=300),
        mock.patch.object(module, "divide", walked),
    ):
        parts = list(exact_parts(files, 1))
        for number in (1, len(parts) // 3, len(parts) * 2 // 3):
            window = parts[number].windows[0]
            place = (paths.index(Path(window.path)), window.start)
            again = list(exact_parts(files, 3000, start=place, map_windows=Tasks(1)))
            assert again[0].windows[0].start == place[1]
            assert_rows_of_end(parts, number, again)
        with pytest.raises(CaptureError, match="no record starts there"):
            list(exact_parts(files, 3000, start=(0, parts[9].windows[0].start + 3), map_windows=Tasks(1)))


@given(
    size=st.integers(1, 40_000),
    chunk=st.integers(100, 3000),
    share=st.sampled_from([0.0, 0.02]),
    seed=st.integers(0, 1000),
)
@few
def test_connections_that_cross_parts_anywhere(size: int, chunk: int, share: float, seed: int) -> None:
    rng = random.Random(seed)
    frames = c.disorder(
        long_capture(), rng, reorder=share, duplicate=share / 2, overlap=share / 2, drop=share / 5
    )
    with mock.patch.object(courses, "_GAP_SEGMENTS", rng.choice([0, 2, 33])):
        assert_same([c.pcap_bytes(frames)], chunk, 20_000 + size, seed)
