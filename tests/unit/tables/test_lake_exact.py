"""Exact lakes: the rows of one reader of all captures, in whatever parts and runs they are read."""

from __future__ import annotations

import json
import pickle
import random
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import msmqwire
from msmqwire.errors import LakeMismatch
from msmqwire.tables.exact_parts import ExactPart
from msmqwire.tables.lake.part_writer import PartFiles, PartWriter
from tests.support import captures as c
from tests.support.capture.busy import busy_capture
from tests.support.capture.lakes import delta_rows, state_file, traffic, write_capture

SMALL = 4000


def rows_of(table: pa.Table) -> Counter[str]:
    """All rows, with the numbers of frames and streams."""
    times = table.column("time").cast(pa.int64(), safe=False)
    if "time_ns" not in table.column_names:
        table = table.append_column("time_ns", times)
    names = [name for name in sorted(table.column_names) if name not in ("date", "time", "part")]
    return Counter(repr(row) for row in table.select(names).to_pylist())


def one_reader(paths: Iterable[Path]) -> Counter[str]:
    return rows_of(msmqwire.read_capture([str(path) for path in paths]))


def lake_rows(lake: Path) -> Counter[str]:
    return rows_of(msmqwire.read_lake(lake).to_table())


class Writing:
    """Writes parts as other processes do: pickled, in any order.

    Attributes:
        read: the names of the files, and where in each a part begins.
        parts: how many.
    """

    def __init__(self) -> None:
        self.read: list[tuple[str, int]] = []
        self.parts = 0

    def __call__(self, writer: PartWriter, parts: Sequence[Any]) -> Iterator[tuple[int, PartFiles]]:
        self.parts += len(parts)
        assert [part.is_last for _, part in parts] == [False] * (len(parts) - 1) + [True]
        for number in random.Random(1).sample(range(len(parts)), len(parts)):
            numbered = pickle.loads(pickle.dumps(parts[number]))
            part = numbered[1]
            assert isinstance(part, ExactPart)
            self.read += [(Path(window.path).name, window.start) for window in part.windows]
            yield number, writer.write(numbered)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Parts can begin where a chunk ends."""
    monkeypatch.setattr("msmqwire.tables.scanning.row_buffer.CHUNK", 500)


def write(captures: Sequence[Path], lake: Path, **options: Any) -> Writing:
    writing = Writing()
    done = msmqwire.write_lake(
        captures, lake, splits="exact", write=writing, **{"split_size": SMALL, **options}
    )
    assert done.captures_read == len({name for name, _ in writing.read})
    return writing


def test_the_pass_before_reports_how_far_it_is(tmp_path):
    planned = list[int]()
    path = write_capture(tmp_path / "0.pcap", busy_capture(0.0))
    write([path], tmp_path / "lake", planned=planned.append)
    assert len(planned) > 10
    assert sum(planned) == path.stat().st_size


def test_surveys_by_processes_find_the_same_parts(tmp_path, monkeypatch):
    monkeypatch.setattr("msmqwire.tables.lake.workers.SURVEYORS_MIN", 2)
    frames = busy_capture(0.1)
    paths = [write_capture(tmp_path / f"{number}.pcap", frames, pcapng=number == 1) for number in range(3)]
    done = msmqwire.write_lake(paths, tmp_path / "lake", splits="exact", workers=2, split_size=20_000)
    assert done.captures_read == 3
    assert lake_rows(tmp_path / "lake") == one_reader(paths)


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_the_rows_are_those_of_one_reader_with_its_numbers(tmp_path, form):
    frames, lake = busy_capture(0.1), tmp_path / "lake"
    paths = [tmp_path / f"{number}.pcap" for number in range(3)]
    for number, path in enumerate(paths):
        write_capture(path, frames[number::1][:40] if number == 2 else frames, pcapng=form == "pcapng")
    assert write(paths, lake).parts > 10
    assert lake_rows(lake) == one_reader(paths)
    assert sum(delta_rows(lake).values()) == sum(one_reader(paths).values())


def test_a_second_run_reads_nothing_until_a_capture_is_added(tmp_path):
    """Then it reads the last part only."""
    frames, lake = busy_capture(0.1), tmp_path / "lake"
    third = len(frames) // 3
    paths = [write_capture(tmp_path / "0.pcap", frames[:third])]
    first = write(paths, lake)
    assert write(paths, lake).parts == 0
    paths.append(write_capture(tmp_path / "1.pcap", frames[third:]))
    second = write(paths, lake)
    assert lake_rows(lake) == one_reader(paths)
    assert second.read[0] != ("0.pcap", 0)
    assert {name for name, start in second.read if start == 0} == {"1.pcap"}
    assert {start for name, start in second.read if name == "0.pcap"} == {max(s for _, s in first.read)}


def test_an_inserted_capture_replaces_all_later_rows(tmp_path):
    frames, lake = busy_capture(0.0), tmp_path / "lake"
    third = len(frames) // 3
    paths = [write_capture(tmp_path / f"{n}.pcap", frames[n * third : (n + 1) * third]) for n in range(3)]
    write([paths[0], paths[2]], lake)
    middle = write(paths, lake)
    assert {name for name, _ in middle.read} >= {"1.pcap", "2.pcap"}
    assert ("0.pcap", 0) not in middle.read
    assert lake_rows(lake) == one_reader(paths)


@pytest.mark.parametrize("seed", range(3))
def test_captures_that_come_grow_and_are_cut_anywhere(tmp_path, seed):
    rng, lake = random.Random(seed), tmp_path / "lake"
    frames = busy_capture(0.1)
    cuts = sorted(rng.sample(range(len(frames)), 2))
    contents = [
        (c.pcapng_bytes if rng.random() < 0.5 else c.pcap_bytes)(frames[start:stop])
        for start, stop in zip([0, *cuts], [*cuts, len(frames)], strict=True)
    ]
    paths = [tmp_path / f"{n}.pcap" for n in range(len(contents))]
    sizes = [0] * len(paths)
    while any(size < len(content) for size, content in zip(sizes, contents, strict=True)):
        for number in rng.sample(range(len(paths)), rng.choice([1, 2])):
            step = rng.choice([len(contents[number]), rng.randrange(1, 30_000)])
            sizes[number] = min(sizes[number] + step, len(contents[number]))
            paths[number].write_bytes(contents[number][: sizes[number]])
        present = [path for path in paths if path.exists()]
        write(present, lake, split_size=rng.choice([SMALL, 4 * SMALL, 1 << 30]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # files that are cut off
            assert lake_rows(lake) == one_reader(present)


def test_a_replaced_capture_is_read_again_with_later_ones(tmp_path):
    lake = tmp_path / "lake"
    paths = [write_capture(tmp_path / f"{n}.pcap", traffic(20, port=50_000 + n)) for n in range(2)]
    write(paths, lake)
    write_capture(paths[0], traffic(25, port=50_007))
    assert {name for name, _ in write(paths, lake).read} == {"0.pcap", "1.pcap"}
    assert lake_rows(lake) == one_reader(paths)


def test_all_captures_of_the_lake_must_be_named(tmp_path):
    lake = tmp_path / "lake"
    paths = [write_capture(tmp_path / f"{n}.pcap", traffic(3, port=50_000 + n)) for n in range(2)]
    write(paths, lake)
    with pytest.raises(LakeMismatch, match="name all of it") as refused:
        write(paths[1:], lake)
    assert refused.value.file == str(paths[0])


def test_a_lake_is_exact_or_not(tmp_path):
    """Without splits that of the lake is meant."""
    capture = write_capture(tmp_path / "one.pcap", traffic(3))
    write([capture], tmp_path / "exact")
    with pytest.raises(LakeMismatch, match='begun with splits "exact", not walked or searched'):
        msmqwire.write_lake(capture, tmp_path / "exact", splits="walked")
    assert msmqwire.write_lake(capture, tmp_path / "exact").captures_unchanged == 1
    write_capture(capture, traffic(9))
    assert msmqwire.write_lake(capture, tmp_path / "exact").rows
    assert lake_rows(tmp_path / "exact") == one_reader([capture])
    msmqwire.write_lake(capture, tmp_path / "walked")
    with pytest.raises(LakeMismatch, match="splits"):
        write([capture], tmp_path / "walked")
    msmqwire.write_lake(capture, tmp_path / "walked", splits="searched")
    with pytest.raises(ValueError, match="walked, searched and exact"):
        msmqwire.write_lake(capture, tmp_path / "other", splits="guessed")  # type: ignore[arg-type]


def test_a_state_with_a_part_that_ends_inside_a_record(tmp_path):
    frames, lake = busy_capture(0.0), tmp_path / "lake"
    paths = [write_capture(tmp_path / "0.pcap", frames)]
    write(paths, lake)
    file = state_file(lake)
    data = json.loads(file.read_text())
    windows = sorted((part["windows"][0] for part in data["parts"]), key=lambda window: window["start"])
    windows[-2]["end"] -= 5
    windows[-1]["start"] -= 5
    file.write_text(json.dumps(data))
    paths.append(write_capture(tmp_path / "1.pcap", frames))
    assert ("0.pcap", 0) in write(paths, lake).read
    assert lake_rows(lake) == one_reader(paths)
