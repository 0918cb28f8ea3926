"""Lakes: the rows of captures in Parquet files, and what a later run adds."""

from __future__ import annotations

import os
import random
import shutil
import threading
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import msmqwire
from msmqwire.capture.window import Window
from msmqwire.errors import LakeDamaged, LakeMismatch, LakeMissing
from msmqwire.tables import chosen_columns
from msmqwire.tables.lake import LakeCommit, captures, partitions, settings, sorted_files
from msmqwire.tables.lake.state import CaptureEntry
from msmqwire.tables.part_reader import PartReader
from msmqwire.tables.parts import Part
from tests.support import captures as c
from tests.support.capture.lakes import (
    DAY_NS,
    MIDNIGHT_NS,
    all_files,
    delta_rows,
    expected_rows,
    files_of,
    named_rows,
    rows_of,
    state_file,
    traffic,
    write_capture,
)
from tests.support.installed import library
from tests.support.patience import limit

SMALL = 4000
"""Bytes of a part, so that a capture has several."""


@pytest.mark.parametrize("by", [None, "kind", "destination"])
@pytest.mark.parametrize("split_size", [1 << 30, SMALL], ids=["whole", "split"])
def test_a_lake_has_the_rows_of_its_captures(tmp_path, by, split_size):
    frames = traffic(40, disordered=True, queues=[r"OS:a\b", "TCP:1.2.3.4\\q;?*=%~"])
    capture = write_capture(tmp_path / "one.pcap", frames)
    lake = tmp_path / "lake"
    done = msmqwire.write_lake(capture, lake, by=by, split_size=split_size)
    assert done.rows == sum(expected_rows([capture]).values())
    assert named_rows(lake) == expected_rows([capture])
    assert delta_rows(lake) == expected_rows([capture])
    for file in files_of(lake):
        times = pq.read_table(lake / file.path, columns=["time_ns"], partitioning=None).column(0).to_pylist()
        assert times == sorted(times)
        assert len(times) == file.rows
        assert (lake / file.path).stat().st_size == file.size


def test_readers_of_the_whole_folder_find_the_same(tmp_path):
    capture = write_capture(tmp_path / "one.pcap", traffic(20))
    lake = tmp_path / "lake"
    msmqwire.write_lake(capture, lake, by="kind")
    expected = Counter(msmqwire.read_capture(str(capture)).column("kind").to_pylist())
    frame = library("pandas").read_parquet(lake)
    assert Counter(frame["kind"]) == expected
    assert set(frame["date"].astype(str)) == {"2023-11-14"}
    assert Counter(ds.dataset(lake, partitioning="hive").to_table().column("kind").to_pylist()) == expected


def test_partitions_are_utc_days_and_conditions_skip_files(tmp_path):
    frames = c.merged(
        traffic(3, start_ns=MIDNIGHT_NS - 6 * c.STEP_NS),
        traffic(3, port=50_001, start_ns=MIDNIGHT_NS + DAY_NS),
    )
    lake = tmp_path / "lake"
    msmqwire.write_lake(write_capture(tmp_path / "one.pcap", frames), lake, by="kind")
    days = {"date=2023-11-13", "date=2023-11-14", "date=2023-11-15"}
    assert {path.name for path in lake.glob("date=*")} == days
    data = msmqwire.read_lake(lake)
    day = pa.scalar("2023-11-15").cast(pa.date32())
    wanted = (ds.field("date") == day) & (ds.field("kind") == "UserMessage")
    assert len(list(data.get_fragments(wanted))) == 1
    assert data.to_table(filter=wanted).num_rows == 3
    late = ds.field("time") >= pa.scalar((MIDNIGHT_NS + DAY_NS) // 1000, pa.timestamp("us", "UTC"))
    assert {fragment.path.split("/")[-3] for fragment in data.get_fragments(late)} == {"date=2023-11-15"}


def test_columns_conditions_and_the_limit_of_bodies(tmp_path):
    capture = write_capture(tmp_path / "one.pcap", traffic(5))
    lake = tmp_path / "lake"
    options = {"columns": ["label", "body", "src"], "where": [("kind", "==", "UserMessage")], "body_limit": 7}
    msmqwire.write_lake(capture, lake, **options)
    table = msmqwire.read_lake(lake).to_table()
    assert table.column_names == ["label", "body", "src", "part", "date"]
    assert {len(body) for body in table.column("body").to_pylist()} == {7}
    assert sorted(table.column("label").to_pylist()) == list("01234")
    with pytest.raises(LakeMismatch, match="body_limit"):
        msmqwire.write_lake(capture, lake, **{**options, "body_limit": 8})
    with pytest.raises(ValueError, match="'colour' is not a column"):
        msmqwire.write_lake(capture, lake, columns=["colour"])
    with pytest.raises(ValueError, match="'src' is not a key of partitions"):
        msmqwire.write_lake(capture, lake, by="src")


def test_a_lake_keeps_its_columns_unless_others_are_asked_for(tmp_path):
    """So that a lake goes on where a later version has more columns by default."""
    first = write_capture(tmp_path / "one.pcap", traffic(5))
    second = write_capture(tmp_path / "two.pcap", traffic(5, port=50_001))
    lake = tmp_path / "lake"
    msmqwire.write_lake(first, lake, columns=["label", "src"])
    msmqwire.write_lake([first, second], lake)
    table = msmqwire.read_lake(lake).to_table()
    assert table.column_names == ["label", "src", "part", "date"]
    assert table["label"].to_pylist().count("0") == 2
    with pytest.raises(LakeMismatch, match=r'begun with columns \["label", "src"\], not \["label"\]'):
        msmqwire.write_lake(first, lake, columns=["label"])
    with pytest.raises(
        LakeMismatch, match=r'begun with where \[\], not \[(\["label", "==", "x"\], ){7}.* and 2 more\]'
    ):
        msmqwire.write_lake(first, lake, where=[("label", "==", "x")] * 10)


def run_without_reading(captures: list[Path], lake: Path) -> LakeCommit:
    """A run that fails if it reads packets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PartReader, "batches", lambda *_, **__: pytest.fail("a capture is read"))
        return msmqwire.write_lake(captures, lake)


def read_windows(captures: list[Path], lake: Path, **options: Any) -> list[tuple[str, int]]:
    """Run; return the names of the files that were read, and where in each reading began."""
    read = []
    batches = PartReader.batches

    def noting(self: PartReader, part: Part, *arguments: Any, **more: Any) -> Any:
        read.extend((Path(window.path).name, window.start) for window in part.windows)
        return batches(self, part, *arguments, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PartReader, "batches", noting)
        msmqwire.write_lake(captures, lake, **options)
    return read


def test_a_second_run_reads_nothing(tmp_path):
    captures = [write_capture(tmp_path / f"{n}.pcap", traffic(3, port=50_000 + n)) for n in range(3)]
    lake = tmp_path / "lake"
    assert msmqwire.write_lake(captures, lake).captures_read == 3
    before = all_files(lake)
    done = run_without_reading(captures, lake)
    assert (done.captures_read, done.captures_unchanged, done.rows, done.number) == (0, 3, 0, 1)
    copy = tmp_path / "copy"
    shutil.copy2(captures[0], copy)
    copy.replace(captures[0])  # another inode, the same bytes and time
    assert run_without_reading(captures, lake).captures_read == 0
    assert all_files(lake) == before


def test_only_what_is_new_is_read(tmp_path):
    """A file that follows is read alone, but for the one before it: its connections had been ended."""
    lake = tmp_path / "lake"
    frames = traffic(60)
    cuts = [0, 40, 80, 120, len(frames)]
    captures = [
        write_capture(tmp_path / f"{n}.pcap", frames[start:stop])
        for n, (start, stop) in enumerate(pairwise(cuts))
    ]
    assert read_windows(captures[:3], lake) == [("0.pcap", 0), ("1.pcap", 0), ("2.pcap", 0)]
    assert read_windows(captures, lake) == [("2.pcap", 0), ("3.pcap", 0)]
    assert named_rows(lake) == delta_rows(lake) == expected_rows(captures)


@pytest.mark.parametrize("pcapng", [False, True], ids=["pcap", "pcapng"])
def test_of_a_file_that_has_grown_the_end_is_read(tmp_path, pcapng):
    lake, capture = tmp_path / "lake", tmp_path / "one"
    content = write_capture(capture, traffic(60), pcapng=pcapng).read_bytes()
    capture.write_bytes(content[: len(content) // 2 + 1])  # within a record
    done = msmqwire.write_lake(capture, lake, split_size=SMALL)
    assert [damage.cut for damage in done.damages] == [True]
    capture.write_bytes(content)
    starts = [start for _, start in read_windows([capture], lake, split_size=SMALL)]
    assert starts[0] >= len(content) // 2 - 2 * SMALL
    assert starts[-1] > len(content) - 2 * SMALL
    assert named_rows(lake) == delta_rows(lake) == expected_rows([capture])


def test_a_capture_replaced_by_another_of_the_same_name(tmp_path):
    lake, other = tmp_path / "lake", write_capture(tmp_path / "0.pcap", traffic(4, port=50_001))
    capture = write_capture(tmp_path / "1.pcap", traffic(30))
    captures = [other, capture]
    msmqwire.write_lake(captures, lake, split_size=SMALL)
    for replacement in (
        traffic(30, first=1000),  # of the same size
        traffic(10, first=2000),
        traffic(50, first=3000),  # larger, but it has not grown
    ):
        write_capture(capture, replacement)
        os.utime(capture, ns=(0, random.Random(len(replacement)).randrange(10**18)))
        msmqwire.write_lake(captures, lake, split_size=SMALL)
        assert named_rows(lake) == delta_rows(lake) == expected_rows(captures)


def test_a_capture_that_is_gone_stays_in_the_lake(tmp_path):
    lake = tmp_path / "lake"
    captures = [write_capture(tmp_path / f"{n}.pcap", traffic(4, port=50_000 + n)) for n in range(3)]
    msmqwire.write_lake(captures, lake)
    expected = expected_rows(captures)
    captures[0].unlink()
    assert run_without_reading(captures[1:], lake).captures_unchanged == 2
    assert named_rows(lake) == expected
    write_capture(captures[1], traffic(9))  # it was read together with what is gone
    with pytest.raises(LakeMismatch, match=r"0\.pcap"):
        msmqwire.write_lake(captures[1:], lake)
    assert named_rows(lake) == expected


@pytest.mark.parametrize("seed", range(8))
def test_a_lake_that_grew_is_the_same_as_one_made_at_once(tmp_path, seed):
    """Captures rotate, grow, are cut anywhere, and come in between."""
    rng = random.Random(seed)
    frames = c.merged(
        *(
            traffic(rng.randrange(30), port=50_000 + n, disordered=True, start_ns=c.START_NS + n * 10**6)
            for n in range(3)
        )
    )
    cuts = sorted(rng.sample(range(len(frames)), 4))
    contents = [
        (c.pcapng_bytes if rng.random() < 0.5 else c.pcap_bytes)(frames[start:stop])
        for start, stop in zip([0, *cuts], [*cuts, len(frames)], strict=True)
    ]
    paths = [tmp_path / f"{n}.pcap" for n in range(len(contents))]
    sizes = [0] * len(paths)
    lake, split_size = tmp_path / "lake", rng.choice([1500, SMALL, 1 << 30])
    while any(size < len(content) for size, content in zip(sizes, contents, strict=True)):
        for number in rng.sample(range(len(paths)), 2):
            step = len(contents[number]) if rng.random() < 0.4 else rng.randrange(1, 3000)
            sizes[number] = min(sizes[number] + step, len(contents[number]))
            paths[number].write_bytes(contents[number][: sizes[number]])
        msmqwire.write_lake([path for path in paths if path.exists()], lake, split_size=split_size)
    at_once = tmp_path / "at-once"
    msmqwire.write_lake(paths, at_once, split_size=split_size)
    assert named_rows(lake) == delta_rows(lake) == named_rows(at_once) == expected_rows(paths)


def test_captures_in_stores_are_asked_for_together(monkeypatch):
    """A store answers after some time, so that a thousand captures must not wait for each other."""
    both = threading.Barrier(2, timeout=limit(20))

    def whole_file(path: str, options: object) -> Window:
        both.wait()
        return Window(path, b"", 0, 7, version="1")

    monkeypatch.setattr(captures, "whole_file", whole_file)
    urls = ["memory://a.pcap", "memory://b.pcap"]
    found = captures.examine_all(urls, {urls[1]: CaptureEntry(urls[1], 7, 0, 0, "", "1")})
    assert [(entry.path, change) for entry, change in found] == [
        (urls[0], captures.Change.NEW),
        (urls[1], captures.Change.NONE),
    ]


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    capture, lake = write_capture(tmp_path / "one.pcap", traffic(3)), tmp_path / "lake"
    lake.mkdir()
    (lake / "thesis.txt").write_text("all of it")
    with pytest.raises(LakeMismatch):
        msmqwire.write_lake(capture, lake)
    assert all_files(lake) == {"thesis.txt"}
    with pytest.raises(LakeMissing):
        msmqwire.read_lake(lake)


# -- hostile input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "queue",
    ["OS:../../../../etc/passwd", "..", "", "OS:" + "x" * 240, "\ud800", "a=b/c=d", "~other", "%2e%2e%2f",
     "TCP:10.0.0.1\\private$\\\u0416", "__HIVE_DEFAULT_PARTITION__", "OS:a\nb\0c"],
)  # fmt: skip
def test_names_from_captures_stay_in_the_folder(queue):
    for destination in (queue, f"DIRECT={queue}"):
        keys = partitions.Partition(0, destination).keys("destination")
        name = partitions.folder_of(keys)
        assert name.startswith("date=1970-01-01/queue=")
        assert name.count("/") == 1
        assert len(name.rpartition("/")[2].encode("ascii")) < 255
        assert not {"\\", "\0", "\n", "*", "?"} & set(name)


def test_queues_with_different_names_have_different_keys():
    names = ["x" * 300, "x" * 301, "~other", "~", "~x", "x", "DIRECT=OS:a", partitions.NULL]
    keys = [partitions.Partition(0, name).keys("destination")["queue"] for name in names]
    assert len({*keys, partitions.OTHER_QUEUES}) == len(names) + 1


def test_partitions_are_bounded(tmp_path, monkeypatch):
    """A capture with a day and a queue for each message makes some partitions, and loses none."""
    monkeypatch.setattr("msmqwire.tables.lake.part_writer.PARTITIONS_MAX", 5)
    frames = c.merged(
        *(
            traffic(2, port=50_000 + day, start_ns=c.START_NS + day * DAY_NS, queues=[f"OS:h\\q{day}"])
            for day in range(9)
        )
    )
    capture = write_capture(tmp_path / "one.pcap", frames)
    for by in ("kind", "destination", None):
        lake = tmp_path / f"by-{by}"
        msmqwire.write_lake(capture, lake, by=by)
        assert named_rows(lake) == expected_rows([capture])
        kinds = 3 if by == "kind" else 2
        assert len({path.parent for path in lake.glob("date=*/**/*.parquet")}) <= 5 + kinds


def test_times_in_any_order_are_sorted_within_bounds(tmp_path, monkeypatch):
    monkeypatch.setattr(sorted_files, "ROW_GROUP_ROWS", 40)
    monkeypatch.setattr(sorted_files, "STRETCHES_MAX", 3)
    frames, rng = traffic(300), random.Random(1)
    shuffled = [replace(frame, time_ns=c.START_NS + rng.randrange(10**9)) for frame in frames]
    swapped = [replace(frame, time_ns=c.START_NS + (n ^ 1) * 1000) for n, frame in enumerate(frames)]
    for name, disordered in (("shuffled", shuffled), ("swapped", swapped)):
        capture, lake = write_capture(tmp_path / f"{name}.pcap", disordered), tmp_path / name
        msmqwire.write_lake(capture, lake, columns=["time", "label", "kind"])
        found = Counter[str]()
        for file in files_of(lake):
            table = pq.read_table(lake / file.path, partitioning=None)
            times = table.column("time_ns").to_pylist()
            assert times == sorted(times)
            found.update(table.column("label").to_pylist())
        assert found == Counter(msmqwire.read_capture(str(capture)).column("label").to_pylist())


def test_columns_of_a_file_are_encoded_as_their_values_need_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sorted_files, "SMALL_BYTES", 1500)
    capture = write_capture(tmp_path / "one.pcap", traffic(600, queues=[r"OS:a\b", r"OS:a\c"]))
    msmqwire.write_lake(capture, tmp_path / "lake", by="destination")
    largest = max(files_of(tmp_path / "lake"), key=lambda file: file.size)
    group = pq.ParquetFile(tmp_path / "lake" / largest.path).metadata.row_group(0).to_dict()
    columns = {column["path_in_schema"]: column for column in group["columns"]}
    for name, column in columns.items():
        ascends = name in ("time", "time_ns", "frame", "message_id")
        assert ("DELTA_BINARY_PACKED" in column["encodings"]) == ascends
        if ascends:
            assert not column["has_dictionary_page"]
    assert columns["label"]["has_dictionary_page"]
    found = {name: columns[name]["compression"] for name in ("label", "priority", "job_number")}
    # 300 texts; 300 numbers of 32 bits; no value in any row
    assert found == {"label": "ZSTD", "priority": "UNCOMPRESSED", "job_number": "UNCOMPRESSED"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"files": []', '"files": ["../date=2023-11-14/part"]'),
        ('"files": []', '"files": ["/etc/passwd"]'),
        ('"number": ', '"number": -'),
        ('"commit": 1', '"commit": true'),
        ('"msmqwire_lake": 2', '"msmqwire_lake": 3'),
        ('"windows": [', '"windows": [0, '),
        ('"columns": null', '"columns": ["colour"]'),
        ("{", "["),
    ],
)
def test_a_damaged_state(tmp_path, old, new):
    capture, lake = write_capture(tmp_path / "one.pcap", traffic(3)), tmp_path / "lake"
    msmqwire.write_lake(capture, lake)
    path = state_file(lake)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    before = all_files(lake)
    with pytest.raises(LakeDamaged):
        msmqwire.write_lake(capture, lake)
    assert all_files(lake) == before


def test_a_checkpoint_follows_every_tenth_commit(tmp_path, monkeypatch):
    """And the log before it goes once it is older than 30 days."""
    capture, lake = tmp_path / "one.pcap", tmp_path / "lake"
    content = write_capture(capture, traffic(60)).read_bytes()
    log = lake / "_delta_log"
    for number in range(1, 22):
        capture.write_bytes(content[: len(content) * number // 21])
        msmqwire.write_lake(capture, lake, columns=["time"])
        if number == 12:
            for path in log.iterdir():
                os.utime(path, (0, 0))
    assert {path.name for path in log.glob("*.checkpoint.parquet")} == {
        f"{version:020}.checkpoint.parquet" for version in (9, 19)
    }
    assert not (log / f"{8:020}.json").exists()
    assert msmqwire.read_lake(lake, version=15).count_rows() < msmqwire.read_lake(lake).count_rows()
    assert len(list((lake / "_msmqwire").iterdir())) == 1


def test_a_lake_without_columns_gets_those_of_a_later_version(tmp_path, monkeypatch):
    """Old rows have null there; a lake with columns of its own keeps them."""
    captures = [write_capture(tmp_path / f"{n}.pcap", traffic(3, port=50_000 + n)) for n in range(2)]
    lake, narrow = tmp_path / "lake", tmp_path / "narrow"
    with monkeypatch.context() as earlier:
        earlier.setattr(
            settings,
            "chosen_columns",
            lambda names: [
                column for column in chosen_columns(names) if column.name not in ("label", "body")
            ],
        )
        msmqwire.write_lake(captures[:1], lake)
    msmqwire.write_lake(captures[:1], narrow, columns=["kind", "src"])
    assert not {"label", "body"} & set(msmqwire.read_lake(lake).schema.names)
    done = msmqwire.write_lake([captures[1]], lake)
    assert done.version == 2  # the columns come in a commit of their own
    rows = msmqwire.read_lake(lake).to_table(columns=["file", "label", "kind"]).to_pylist()
    labels = {row["file"]: set() for row in rows}
    for row in rows:
        if row["kind"] == "UserMessage":
            labels[row["file"]].add(row["label"])
    assert labels == {str(captures[0]): {None}, str(captures[1]): {"0", "1", "2"}}
    assert rows_of(DeltaTable(lake).to_pyarrow_table()) == named_rows(lake)
    assert msmqwire.read_lake(lake, version=0).schema.names == [
        name for name in msmqwire.read_lake(lake).schema.names if name not in ("label", "body")
    ]
    msmqwire.write_lake(captures, narrow)
    assert msmqwire.read_lake(narrow).schema.names == ["kind", "src", "part", "date"]


def test_a_folder_that_another_writer_begins_is_a_lake(tmp_path, monkeypatch):
    """Between two looks at it the other one may make the first entry."""
    lake, exists = tmp_path / "lake", Path.exists
    lake.mkdir()

    def begun(path: Path) -> bool:
        if path == lake:
            (lake / "_msmqwire").mkdir(exist_ok=True)
        return exists(path)

    monkeypatch.setattr(Path, "exists", begun)
    capture = write_capture(tmp_path / "one.pcap", traffic(3))
    assert msmqwire.write_lake(capture, lake).version == 0
