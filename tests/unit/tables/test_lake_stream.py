"""Batches of a stream into a lake, each once, also if its writer is killed at any step."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner
from pyarrow import parquet

import msmqwire
from msmqwire.cli import app
from msmqwire.errors import InvalidArgument, LakeMismatch, LakeMissing
from msmqwire.tables import arrow_schema
from msmqwire.tables.columns import BY_NAME
from msmqwire.tables.lake import (
    compact_lake,
    delete_from_lake,
    follow_lake,
    lake_history,
    retain_lake,
    vacuum_lake,
)
from msmqwire.tables.lake.place import lake_place
from msmqwire.tables.lake.stream_batches import StreamBatch, check_stream, stream_rows
from msmqwire.tables.lake.table import table_at
from tests.support import captures as c
from tests.support.capture.killed import killed_at
from tests.support.capture.lakes import (
    DAY_NS,
    all_files,
    delta_rows,
    files_of,
    named_rows,
    rows_of,
    state_of,
    traffic,
    write_capture,
)
from tests.support.nightly import STRIDE, nightly
from tests.support.paths import ROOT

QUEUES = ["TCP:1.2.3.4\\q;?*=%~", "TCP:1.2.3.4\\Ж", "TCP:" + "ü" * 90, "TCP:x"]
TIME = pa.timestamp("us", "UTC")


def batches_of(path: Path, count: int) -> list[list[pa.RecordBatch]]:
    """The rows of a capture as a stream of Spark gives them: in some batches, of two pieces or one."""
    table = msmqwire.read_capture(str(path))
    number = table.schema.get_field_index("time")
    table = table.set_column(number, "time", table["time"].cast(TIME, safe=False)).combine_chunks()
    size = -(-table.num_rows // count)
    found = [table.slice(start, size) for start in range(0, table.num_rows, size)]
    return [
        [piece.combine_chunks().to_batches()[0] for piece in (rows.slice(0, 2), rows.slice(2)) if len(piece)]
        for rows in found
    ]


def add(lake: Path, number: int, pieces: Sequence[pa.RecordBatch], by: Any = None, stream: str = "1") -> Any:
    """Write a batch, each piece as a task does."""

    def write(writer: Any, first: int) -> Any:
        schema = arrow_schema([BY_NAME[name] for name in writer.columns])
        files = list[Any]()
        for task, piece in enumerate(pieces):
            files += writer.write_rows(first + task, [stream_rows(piece, schema)])
        return files

    return StreamBatch(lake_place(lake), stream, number, pieces[0].schema.names, by, write).carry_out()


def stream_of(batches: Sequence[Sequence[pa.RecordBatch]]) -> Counter[str]:
    """The rows of batches as a lake has them."""
    table = pa.Table.from_batches([piece for pieces in batches for piece in pieces])
    micros = pc.multiply(table["time"].cast(pa.int64()), 1000)
    return rows_of(table.append_column("time_ns", micros))


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    frames = c.merged(
        traffic(9, queues=QUEUES, disordered=True), traffic(6, port=50_001, start_ns=c.START_NS + DAY_NS)
    )
    return write_capture(tmp_path / "a.pcap", frames)


@pytest.mark.parametrize("by", [None, "kind", "destination"])
def test_each_batch_is_there_once(capture: Path, tmp_path: Path, by: Any) -> None:
    lake, other, batches = tmp_path / "lake", tmp_path / "other", batches_of(capture, 4)
    for number, pieces in enumerate(batches):
        assert add(lake, number, pieces, by) == number
        files = all_files(lake)
        for again in range(number + 1):
            assert add(lake, again, pieces, by) is None
        assert all_files(lake) == files
    assert named_rows(lake) == delta_rows(lake) == stream_of(batches)
    msmqwire.write_lake(capture, other, by=by)
    assert msmqwire.read_lake(lake).schema == msmqwire.read_lake(other).schema
    assert table_at(lake_place(lake)).keys == table_at(lake_place(other)).keys
    keys = [frozenset(map(tuple, {json.dumps(f.keys) for f in files_of(each)})) for each in (lake, other)]
    assert keys[0] == keys[1]
    parts = set[int]()
    for file in files_of(lake):
        table = parquet.read_table(lake / file.path, partitioning=None)
        assert table["time_ns"].to_pylist() == sorted(table["time_ns"].to_pylist())
        parts |= set(table["part"].to_pylist())
    assert len(parts) == sum(map(len, batches))
    low, high = table_at(lake_place(lake)).bounds("time_ns")
    assert pc.all(pc.less_equal(pa.array(low), pa.array(high))).as_py()
    assert low.min() > 0


def test_two_streams_fill_one_lake(capture: Path, tmp_path: Path) -> None:
    lake, batches = tmp_path / "lake", batches_of(capture, 2)
    for number, pieces in enumerate(batches):
        for stream in ("1", "2", "1"):
            add(lake, number, pieces, stream=stream)
    assert named_rows(lake) == stream_of([*batches, *batches])
    assert state_of(lake).captures == {}


def test_a_commit_has_its_own_version(capture: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Another writer commits before this one looks at what it has done."""
    lake, batches = tmp_path / "lake", batches_of(capture, 3)
    forget = StreamBatch._forget

    def overtaken(self: StreamBatch) -> None:
        forget(self)
        if self.stream == "1":
            versions.append(add(lake, self.number, batches[self.number], stream="2"))

    versions = list[int]()
    monkeypatch.setattr(StreamBatch, "_forget", overtaken)
    assert [add(lake, number, pieces) for number, pieces in enumerate(batches)] == [0, 2, 4]
    assert versions == [1, 3, 5]
    assert named_rows(lake) == stream_of([*batches, *batches])


def test_columns_that_come_later(capture: Path, tmp_path: Path) -> None:
    lake, (first, second) = tmp_path / "lake", batches_of(capture, 2)
    few = [piece.select(["time", "kind"]) for piece in first]
    add(lake, 0, few)
    add(lake, 1, second)
    add(lake, 2, few)
    table = msmqwire.read_lake(lake).to_table()
    assert set(second[0].schema.names) <= set(table.column_names)
    size = sum(piece.num_rows for piece in second)
    assert table["frame"].null_count == table.num_rows - size > 0


def test_no_rows_make_no_version(capture: Path, tmp_path: Path) -> None:
    lake, batches = tmp_path / "lake", batches_of(capture, 1)
    nothing = [piece.slice(0, 0) for piece in batches[0]]
    assert add(lake, 0, nothing) is None
    with pytest.raises(LakeMissing):
        named_rows(lake)
    assert add(lake, 1, batches[0]) == 0
    assert add(lake, 2, nothing) is None


def test_captures_and_streams_have_lakes_of_their_own(capture: Path, tmp_path: Path) -> None:
    lake, other, batches = tmp_path / "lake", tmp_path / "other", batches_of(capture, 1)
    add(lake, 0, batches[0])
    msmqwire.write_lake(capture, other)
    files = all_files(lake), all_files(other)
    with pytest.raises(LakeMismatch, match="a stream fills the lake"):
        msmqwire.write_lake(capture, lake)
    with pytest.raises(LakeMismatch, match="a stream fills the lake"):
        next(follow_lake(capture, lake))
    with pytest.raises(LakeMismatch, match="made of captures: let the stream fill another one"):
        add(other, 0, batches[0])
    with pytest.raises(LakeMismatch, match='begun with by null, not "kind"'):
        add(lake, 1, batches[0], "kind")
    assert (all_files(lake), all_files(other)) == files


def test_other_changes_of_a_lake_of_a_stream(capture: Path, tmp_path: Path) -> None:
    """It is compacted, and rows are deleted; batches that come later are not concerned."""
    lake, batches = tmp_path / "lake", batches_of(capture, 4)
    for number, pieces in enumerate(batches[:3]):
        add(lake, number, pieces, "kind")
    before = len(files_of(lake))
    assert compact_lake(lake).files_added < before
    assert named_rows(lake) == delta_rows(lake) == stream_of(batches[:3])
    assert rows_of(msmqwire.read_lake(lake, version=0).to_table()) == stream_of(batches[:1])
    kinds = [kind for pieces in batches for piece in pieces for kind in piece["kind"].to_pylist()]
    gone = delete_from_lake(lake, "kind == 'UserMessage'").rows_deleted
    assert 0 < gone < len(kinds)
    for number, pieces in enumerate(batches):
        assert (add(lake, number, pieces, "kind") is None) == (number < 3)
    left = sum(named_rows(lake).values())
    assert left == len(kinds) - gone
    assert named_rows(lake) == delta_rows(lake)
    last = max(time for pieces in batches for piece in pieces for time in piece["time"].to_pylist())
    now_ns = int(last.timestamp() + 86_400 * 9) * 10**9
    retain_lake(lake, timedelta(days=2), now_ns=now_ns)
    assert named_rows(lake) == delta_rows(lake) == Counter()
    assert add(lake, 3, batches[3], "kind") is None
    assert state_of(lake).captures == {}
    done = [(version.operation, version.figures.get("batch")) for version in lake_history(lake)]
    assert [batch for operation, batch in reversed(done) if operation == "stream"] == [0, 1, 2, 3]
    shown = CliRunner().invoke(app, ["lake", "--out", str(lake), "--history"])
    assert (shown.exit_code, shown.output.count("stream")) == (0, 4)
    assert vacuum_lake(lake, timedelta()).files_removed > 0
    assert add(lake, 3, batches[3], "kind") is None
    add(lake, 4, batches[3], "kind")
    assert named_rows(lake) == delta_rows(lake) == stream_of(batches[3:])


def test_columns_that_no_lake_has() -> None:
    with pytest.raises(InvalidArgument, match=r"'kinds' is not a column of captures; did you mean kind"):
        check_stream(None, ["time", "kinds"])
    with pytest.raises(InvalidArgument, match="has no time"):
        check_stream(None, ["kind"])
    with pytest.raises(InvalidArgument, match="has no destination"):
        check_stream("destination", ["time", "kind"])
    with pytest.raises(InvalidArgument, match="key of partitions"):
        check_stream("queue")  # type: ignore[arg-type]
    late = pa.record_batch({"time": pa.array([2**62], TIME)})
    with pytest.raises(InvalidArgument, match=r"time: .*out of bounds"):
        stream_rows(late, arrow_schema([BY_NAME["time"]]))


def test_a_writer_killed_at_any_step(capture: Path, tmp_path: Path) -> None:
    batches = batches_of(capture, 2)
    step, done, seen = 0, False, set[int]()
    while not done:
        step += STRIDE
        lake = tmp_path / f"lake-{step}"
        with killed_at(step):
            for number, pieces in enumerate(batches):
                add(lake, number, pieces, "destination")
            done = True
        found = Counter[str]()
        with suppress(LakeMissing):
            found = named_rows(lake)
        states = [Counter(), stream_of(batches[:1]), stream_of(batches)]
        seen.add(states.index(found))
        for number, pieces in enumerate(batches):
            add(lake, number, pieces, "destination")
        assert named_rows(lake) == delta_rows(lake) == stream_of(batches)
    assert step > 30
    assert seen == {0, 1, 2}


PROGRAM = """
import os, sys
from pathlib import Path
from tests.unit.tables import test_lake_stream as here
from msmqwire.tables.lake import table

table._CHECKPOINT_COMMITS = 3
lake, capture = map(Path, sys.argv[1:])
batches = here.batches_of(capture, 12)
print("ready", flush=True)
for number, pieces in enumerate(batches):
    here.add(lake, number, pieces, "kind")
    print(number, flush=True)
"""


@pytest.mark.parametrize("kills", [5, pytest.param(100, marks=nightly)])
def test_a_writer_killed_at_random(capture: Path, tmp_path: Path, kills: int) -> None:
    rng, batches = random.Random(7), batches_of(capture, 12)
    lake, killed = tmp_path / "lake-0", 0
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for turn in range(kills):
        command = [sys.executable, "-c", PROGRAM, str(lake), str(capture)]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            for _ in range(rng.randrange(4)):
                process.stdout.readline()
            time.sleep(rng.uniform(0, 0.2))  # the moment of the kill, at random
            process.send_signal(signal.SIGKILL)
        killed += process.returncode == -signal.SIGKILL
        found = Counter[str]()
        with suppress(LakeMissing):
            found = named_rows(lake)
        assert found in [stream_of(batches[:n]) if n else Counter() for n in range(len(batches) + 1)]
        if found == stream_of(batches):
            assert delta_rows(lake) == found
            lake = tmp_path / f"lake-{turn}"
    for number, pieces in enumerate(batches):
        add(lake, number, pieces, "kind")
    assert named_rows(lake) == delta_rows(lake) == stream_of(batches)
    assert killed > kills // 2
