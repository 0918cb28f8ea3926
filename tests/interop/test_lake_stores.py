"""Lakes in a store: S3 as moto's server speaks it, where two writers need no table of locks."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

import msmqwire
from msmqwire.cli import app
from msmqwire.errors import LakeMismatch, LakeMissing, UnsupportedStore
from msmqwire.tables.lake import LakeCommit
from msmqwire.tables.lake.delta_options import delta_options
from tests.support import captures as c
from tests.support.capture.following import follow
from tests.support.capture.following import rows_of as all_rows
from tests.support.capture.lakes import expected_rows, rows_of, traffic, write_capture
from tests.support.capture.s3_server import SECRET, S3Server, s3_server
from tests.support.patience import limit

BUCKET = "captures"


@pytest.fixture
def server() -> Iterator[S3Server]:
    with s3_server() as server:
        server.filesystem().create_dir(BUCKET)
        yield server


@pytest.fixture
def captures(tmp_path: Path) -> list[Path]:
    return [write_capture(tmp_path / f"{n}.pcap", traffic(4, port=50_000 + n)) for n in range(3)]


def rows(server: S3Server, url: str, version: int | None = None) -> object:
    data = msmqwire.read_lake(url, version=version, storage_options=server.options)
    return rows_of(data.to_table())


@pytest.mark.parametrize("by", [None, "kind", "destination"])
def test_a_lake_in_a_store_grows(server, captures, by):
    url = f"s3://{BUCKET}/a lake/of=ours"
    first = msmqwire.write_lake(captures[:2], url, by=by, storage_options=server.options)
    again = msmqwire.write_lake(captures[:2], url, by=by, storage_options=server.options)
    assert (first.version, again.version, again.captures_unchanged) == (0, 0, 2)
    msmqwire.write_lake(captures, url, by=by, storage_options=server.options)
    assert rows(server, url) == expected_rows(captures)
    assert rows(server, url, version=0) == expected_rows(captures[:2])


def test_other_readers_read_it_from_the_store(server, captures):
    import polars
    from deltalake import DeltaTable

    url = f"s3://{BUCKET}/lake"
    msmqwire.write_lake(captures, url, storage_options=server.options)
    options = delta_options(url, server.options)
    assert rows_of(polars.read_delta(url, storage_options=options).to_arrow()) == expected_rows(captures)
    assert rows_of(DeltaTable(url, storage_options=options).to_pyarrow_table()) == expected_rows(captures)


def test_two_writers_both_end_well(server, captures):
    """Each commits once; who comes later plans again."""
    url = f"s3://{BUCKET}/lake"
    for number in range(5):
        lake, start = f"{url}{number}", threading.Barrier(2)
        with ThreadPoolExecutor(2) as pool:
            written = [
                pool.submit(_write_at_once, start, paths, lake, server)
                for paths in (captures[:1], captures[1:])
            ]
        assert sorted(future.result().version for future in written) == [0, 1]
        assert rows(server, lake) == expected_rows(captures[:1]) + expected_rows(captures[1:])


def _write_at_once(start: threading.Barrier, paths: list[Path], lake: str, server: S3Server) -> LakeCommit:
    start.wait(limit(60))
    return msmqwire.write_lake(paths, lake, storage_options=server.options)


def test_the_command_line(server, captures):
    url = f"s3://{BUCKET}/lake"
    runner = CliRunner()
    options = server.option_arguments
    done = runner.invoke(app, ["lake", *map(str, captures), "--out", url, *options])
    assert (done.exit_code, done.stderr) == (0, "3 captures read, 0 unchanged: 18 rows in 2 files\n")
    server.put(f"{BUCKET}/thesis/chapter.txt", b"all of it")
    done = runner.invoke(app, ["lake", *map(str, captures), "--out", f"s3://{BUCKET}/thesis", *options])
    assert done.exit_code == 2
    assert "is not a lake" in done.stderr
    program = [sys.executable, "-m", "msmqwire", "lake", *map(str, captures), "--out", "s3://nowhere/lake"]
    ran = subprocess.run(
        [*program, *options], check=False, timeout=limit(120), capture_output=True, text=True
    )
    assert ran.returncode == 74
    assert json.loads(ran.stderr)["error"] == "s3://nowhere/lake/_delta_log: no such bucket"
    assert SECRET not in ran.stderr


def test_what_a_store_refuses(server, captures):
    with pytest.raises(LakeMissing):
        msmqwire.read_lake(f"s3://{BUCKET}/none", storage_options=server.options)
    with pytest.raises(UnsupportedStore, match="s3://, gs:// or abfss://"):
        msmqwire.write_lake(captures, "hdfs://cluster/lake")
    with pytest.raises(UnsupportedStore, match="no storage option colour"):
        msmqwire.read_lake(f"s3://{BUCKET}/lake", storage_options={"colour": "red"})
    url = f"s3://{BUCKET}/lake"
    msmqwire.write_lake(captures[:1], url, storage_options=server.options)
    with pytest.raises(LakeMismatch, match="begun with by"):
        msmqwire.write_lake(captures, url, by="kind", storage_options=server.options)


def test_a_writer_that_is_killed(server, captures, tmp_path):
    """What it has left in the store is no lake, and the next writer goes on."""
    url, program = f"s3://{BUCKET}/lake", tmp_path / "program.py"
    program.write_text(
        "import os, signal, sys\n"
        "import msmqwire\n"
        "from msmqwire.tables.lake import runs\n"
        "runs.create = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"msmqwire.write_lake(sys.argv[1:], {url!r}, storage_options={server.options!r})\n"
    )
    ran = subprocess.run(
        [sys.executable, program, *map(str, captures)], check=False, timeout=limit(120), capture_output=True
    )
    assert ran.returncode == -9, ran.stderr
    with pytest.raises(LakeMissing):
        rows(server, url)
    msmqwire.write_lake(captures, url, storage_options=server.options)
    assert rows(server, url) == expected_rows(captures)


@pytest.mark.parametrize(
    ("url", "options", "expected"),
    [
        ("s3://b/x", {"region": "eu-west-1", "anonymous": True},
         {"AWS_REGION": "eu-west-1", "AWS_SKIP_SIGNATURE": "true"}),
        ("s3://b/x", {"endpoint_override": "localhost:9000", "scheme": "http"},
         {"AWS_ENDPOINT_URL": "http://localhost:9000", "AWS_ALLOW_HTTP": "true"}),
        ("s3://b/x", {"endpoint_override": "store.example"}, {"AWS_ENDPOINT_URL": "https://store.example"}),
        ("abfss://c@a.dfs.core.windows.net/x", {"account_key": "k"}, {"azure_storage_account_key": "k"}),
        ("gs://b/x", {"anonymous": "false"}, {}),
    ],
)  # fmt: skip
def test_options_are_translated(url, options, expected):
    assert delta_options(url, options) == expected


def test_captures_and_lake_in_a_store_are_followed(server, captures):
    """New files are found; one whose content has changed is read again."""
    url, folder = f"s3://{BUCKET}/lake", f"{BUCKET}/in"
    contents = [path.read_bytes() for path in captures]
    other = c.pcap_bytes(traffic(7, port=50_009))

    def put(number: int, content: bytes) -> Callable[[], None]:
        return lambda: server.put(f"{folder}/{number}.pcap", content)

    put(0, contents[0])()
    done = follow(
        f"s3://{folder}", url, [put(1, contents[1]), put(2, contents[2]), put(1, other)],
        storage_options=server.options,
    )  # fmt: skip
    assert [commit.captures_read for commit in done.commits] == [1, 1, 1, 2]
    (line,) = done.notices
    assert line.startswith(
        f"s3://{folder}/1.pcap was replaced, or has become shorter: 2 captures are read again"
    )
    expected = msmqwire.read_capture(f"s3://{folder}", storage_options=server.options)
    found = msmqwire.read_lake(url, storage_options=server.options).to_table()
    assert all_rows(found) == all_rows(expected)
