"""Parts found from surveys that tasks make have the rows of one reader."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import hypothesis.strategies as st
import pytest
from hypothesis import given

from msmqwire.capture.splits import divide, whole_file
from msmqwire.capture.window import Window
from msmqwire.columnar import exact_parts as module
from msmqwire.columnar import part_survey
from msmqwire.columnar.exact_parts import ExactPart, exact_parts
from msmqwire.columnar.part_survey import PartSurvey
from msmqwire.columnar.scanning import row_buffer
from msmqwire.columnar.survey_joining import SurveyJoiner
from tests.property import test_columnar, test_spark_reassembly
from tests.property.test_exact_parts import (
    NAMES,
    busy_capture,
    few,
    fragmented,
    joined,
    whole,
)
from tests.support import captures as c

CHUNKS = st.sampled_from([64, 300, 2000])
SIZES = st.sampled_from([1, 300, 1000, 5000])


def walked(file: Window, size: int, **_: object) -> list[Window]:
    """Divide a file at its records, also where it is too small for a search."""
    return divide(file, size)


class Tasks:
    """Makes surveys in any order, as other processes would; counts the bytes that were read again."""

    def __init__(self, seed: int) -> None:
        self.rng, self.surveys = random.Random(seed), list[PartSurvey]()

    def __call__(
        self, survey: Callable[[Window], PartSurvey], windows: Sequence[Window]
    ) -> Iterator[PartSurvey]:
        made = {}
        for number in self.rng.sample(range(len(windows)), len(windows)):
            made[number] = pickle.loads(pickle.dumps(survey(windows[number])))
        self.surveys = [made[number] for number in range(len(windows))]
        return iter(self.surveys)


def assert_same(
    files: Sequence[bytes], chunk: int, part_size: int, seed: int = 1
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
            tasks = Tasks(seed)
            found = exact_parts([whole_file(str(path)) for path in paths], part_size, map_windows=tasks)
            parts = [pickle.loads(pickle.dumps(part)) for part in found]
            actual = joined(parts, random.Random(seed))
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
@pytest.mark.parametrize("size", [1, 3000, 20_000])
def test_a_busy_capture(share: float, form: str, size: int) -> None:
    frames = busy_capture(share)
    data = c.pcap_bytes(frames) if form == "pcap" else c.pcapng_bytes(frames, byteorder=">")
    parts, again = assert_same([data], 300, size)
    print(len(parts), len(data), again)


def test_fragments_and_multicast_sessions_cross_parts() -> None:
    assert_same([c.pcap_bytes(fragmented())], 64, 1)
