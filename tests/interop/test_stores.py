"""Captures in stores: a server of S3 that fails when told to, and fsspec's memory."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import msmqwire
from msmqwire.capture import expand, open_records, store_errors, stores
from msmqwire.capture.paths import capture_files, exists, file_size, open_file
from msmqwire.capture.ranged import FIRST_SIZE
from msmqwire.capture.splits import is_splittable, last_part, plan
from msmqwire.capture.store_errors import ATTEMPTS, FileChanged
from msmqwire.cli import app, tables
from msmqwire.errors import UnsupportedStore
from tests.support.capture.s3_server import SECRET, S3Server, s3_server
from tests.support.captures import Frame, pcap_bytes
from tests.support.paths import ROOT

SESSION, HOSTILE = ROOT / "examples/session.pcap", ROOT / "examples/hostile.pcapng"
FRAMES = [Frame(1_700_000_000_000_000_000 + n, bytes([n % 251]) * 4000) for n in range(6000)]
TREE = ("a.pcap", "b.pcap", "_c.pcap", ".d.pcap", "sub/a.pcap", "sub/deep/e.pcap", "sub.x/a.pcap", "f[1].txt")


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_errors, "FIRST_WAIT", 0.001)


@pytest.fixture
def s3(server: S3Server) -> Iterator[S3Server]:
    """The server without faults, and without requests so far."""
    server.requests.clear()
    yield server
    server.faults.clear()
    server.methods = ("GET",)


@pytest.fixture(scope="module")
def large(server: S3Server) -> tuple[str, bytes]:
    """A capture of 24 MB."""
    data = pcap_bytes(FRAMES)
    return server.put("caps/large.pcap", data), data


@pytest.fixture
def memory() -> Iterator[Any]:
    """The memory of fsspec, empty."""
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]
    yield filesystem
    filesystem.store.clear()


def cli(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def refused(*arguments: str | Path) -> str:
    """The error of a command that can't open its input; it is one line without credentials."""
    done = cli(*arguments)
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert SECRET not in line
    return f"{done.exit_code} {json.loads(line)['error']}"


def without_file(table: pa.Table) -> pa.Table:
    return table.drop_columns(["file"])


# -- reading ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [SESSION, HOSTILE], ids=lambda path: path.name)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_capture_of_s3_has_the_rows_of_the_file(s3: S3Server, path: Path, pack: Any) -> None:
    url = s3.put(f"caps/rows/{path.name}", pack(path.read_bytes()))
    table = msmqwire.read_capture(url, storage_options=s3.options)
    assert without_file(table) == without_file(msmqwire.read_capture(path))
    assert set(table["file"].to_pylist()) == {url}
    items = list(msmqwire.dissect(url, storage_options=s3.options))
    assert [item.raw for item in items] == [item.raw for item in msmqwire.dissect(path)]


def test_a_capture_of_fsspec_has_the_rows_of_the_file(memory: Any) -> None:
    memory.pipe_file("/caps/a.pcap", SESSION.read_bytes())
    for source in ("memory://caps/a.pcap", "memory://caps/*.pcap", "memory://caps"):
        table = msmqwire.read_capture(source)
        assert without_file(table) == without_file(msmqwire.read_capture(SESSION))


def test_only_what_is_read_is_fetched(s3: S3Server, large: tuple[str, bytes]) -> None:
    url, data = large
    s3.requests.clear()
    assert is_splittable(url, s3.options)
    assert s3.fetched() == FIRST_SIZE
    windows = plan(url, 10 << 20, storage_options=s3.options)
    assert len(windows) == 3
    assert s3.fetched() < len(data) / 2  # 4 MiB around each split
    frames = list[bytes]()
    for window in windows:
        with window.open() as stream:
            frames += [record.data for record in open_records(stream)]
        assert s3.fetched() == window.end - window.start
    assert frames == [frame.data for frame in FRAMES]
    tail = last_part(windows[1], 1 << 20)
    assert tail.end == windows[1].end
    assert 0 < tail.end - tail.start <= (1 << 20) + 4096


def test_the_windows_of_a_url_are_those_of_the_file(
    s3: S3Server, large: tuple[str, bytes], tmp_path: Path
) -> None:
    url, data = large
    path = tmp_path / "large.pcap"
    path.write_bytes(data)
    local = plan(str(path), 10 << 20, search=True)
    remote = plan(url, 10 << 20, storage_options=s3.options)
    assert [(w.start, w.end, w.head) for w in remote] == [(w.start, w.end, w.head) for w in local]
    assert SECRET not in repr(remote)


def test_a_capture_is_fetched_once(s3: S3Server, large: tuple[str, bytes]) -> None:
    url, data = large
    s3.requests.clear()
    dissection = msmqwire.dissect(url, storage_options=s3.options)
    assert list(dissection) == []
    assert dissection.records == len(FRAMES)
    assert s3.fetched() == len(data)


# -- failures -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["error", "reset", "short", "slow"])
def test_failures_that_pass_cost_no_rows(s3: S3Server, fault: str) -> None:
    url = s3.put("caps/faults.pcap", SESSION.read_bytes())
    s3.faults += [fault] * 2
    table = msmqwire.read_capture(url, storage_options=s3.options)
    assert without_file(table) == without_file(msmqwire.read_capture(SESSION))


@pytest.mark.parametrize("fault", ["error", "short"])
def test_failures_that_stay_are_an_error_after_some_attempts(
    s3: S3Server, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = s3.put("caps/faults.pcap", SESSION.read_bytes())
    monkeypatch.setattr(store_errors, "ATTEMPTS", 2)
    s3.requests.clear()
    s3.faults += [fault] * 50
    with pytest.raises(OSError, match=r"INTERNAL_FAILURE|partial") as caught:
        msmqwire.read_capture(url, storage_options=s3.options)
    assert caught.value.filename == url
    gets = [request for request in s3.requests if request.method == "GET"]
    assert len(gets) == 2 * 3  # the AWS SDK tries each of ours three times


def test_an_answer_that_is_too_short_is_asked_for_again(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data = SESSION.read_bytes()
    memory.pipe_file("/short.pcap", data)
    cat_file, short = type(memory).cat_file, [9, 0]
    monkeypatch.setattr(
        type(memory),
        "cat_file",
        lambda self, *args, **more: cat_file(self, *args, **more)[: short.pop() if short else None],
    )
    with open_file("memory://short.pcap") as file:
        assert file.read() == data
    assert short == []


def test_waits_between_attempts_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_errors, "FIRST_WAIT", 1.0)
    waits, calls = list[float](), []

    def fail() -> None:
        calls.append(1)
        raise OSError(5, "broken")

    with pytest.raises(OSError, match="broken"):
        store_errors.retried(fail, waits.append)
    assert len(calls) == ATTEMPTS
    assert [0.5 <= wait / 2**n <= 1 for n, wait in enumerate(waits)] == [True] * (ATTEMPTS - 1)


@pytest.mark.parametrize(
    "error", [PermissionError(13, "x"), FileChanged(None, "x"), FileNotFoundError(2, "x")]
)
def test_what_stays_is_not_tried_again(error: OSError) -> None:
    calls = []

    def fail() -> None:
        calls.append(1)
        raise error

    with pytest.raises(type(error)):
        store_errors.retried(fail, lambda wait: None)
    assert len(calls) == 1


def test_a_file_that_changes_while_it_is_read(s3: S3Server) -> None:
    data = pcap_bytes(FRAMES[:200])
    url = s3.put("caps/changing.pcap", data)
    with open_file(url, s3.options) as file:
        assert file.read(1000) == data[:1000]
        s3.put("caps/changing.pcap", data[:-1] + b"!")
        file.seek(len(data) - 10)
        with pytest.raises(FileChanged, match="changed") as caught:
            file.read(10)
        assert caught.value.filename == url


def test_a_file_that_changed_since_its_windows_were_planned(s3: S3Server, memory: Any) -> None:
    data = SESSION.read_bytes()
    url = s3.put("caps/planned.pcap", data)
    memory.pipe_file("/planned.pcap", data)
    for source, options in ((url, s3.options), ("memory://planned.pcap", {})):
        (window,) = plan(source, 1 << 20, storage_options=options)
        assert window.open().read() == data
        if source == url:
            s3.put("caps/planned.pcap", data[::-1])
        else:
            memory.pipe_file("/planned.pcap", data[::-1])
        with pytest.raises(FileChanged):
            window.open()


# -- names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern",
    [
        "", "*", "*.pcap", "?.pcap", "[ab].pcap", "sub/*", "*/a.pcap", "sub*/a.pcap", "**", "**/*.pcap",
        "sub/**", "sub/**/e.pcap", "**/deep/*", ".d.pcap", ".*.pcap", "f[1].txt", "f[[]1].txt", "sub",
        "none*", "*/none*",
    ],
)  # fmt: skip
def test_patterns_mean_in_stores_what_they_mean_in_folders(
    s3: S3Server, memory: Any, tmp_path: Path, pattern: str
) -> None:
    for name in TREE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
        memory.pipe_file(f"/tree/{name}", b"x")
        if not exists(f"s3://tree/t/{name}", s3.options):
            s3.put(f"tree/t/{name}", b"x")

    def names(root: str, options: Any = stores.NO_OPTIONS) -> list[str]:
        try:
            found = capture_files([f"{root}/{pattern}"], options)
        except FileNotFoundError:
            return ["missing"]
        return [os.fspath(path).rpartition(f"{root.rpartition('/')[2]}/")[2] for path in found]

    expected = names(str(tmp_path))
    assert names("s3://tree/t", s3.options) == expected
    assert names("memory:///tree") == expected


def test_folders_are_listed_only_where_a_pattern_leads(s3: S3Server) -> None:
    for name in ("day-1/a.pcap", "day-2/a.pcap", "other/a.pcap"):
        s3.put(f"lists/{name}", b"x")
    s3.requests.clear()
    assert len(expand(["s3://lists/day-*/*.pcap"], s3.options)) == 2
    assert (
        len([request for request in s3.requests if request.path == "lists" and request.method == "GET"]) <= 4
    )


def test_sizes_and_file_urls(s3: S3Server, tmp_path: Path) -> None:
    assert file_size(s3.put("caps/sized", b"12345"), s3.options) == 5
    with pytest.raises(FileNotFoundError):
        file_size("s3://caps/", s3.options)
    path = tmp_path / "a b.pcap"
    path.write_bytes(SESSION.read_bytes())
    assert file_size(path.as_uri()) == path.stat().st_size
    assert expand([path.as_uri()]) == [path]
    with pytest.raises(UnsupportedStore, match="another computer"):
        expand(["file://elsewhere/a.pcap"])


# -- errors -------------------------------------------------------------------------------------------------


def test_errors_are_one_line_and_say_what_is_wrong(s3: S3Server) -> None:
    s3.put("caps/there.pcap", SESSION.read_bytes())
    options = s3.option_arguments
    assert refused("dissect", "s3://nowhere/a.pcap", *options) == "66 s3://nowhere/a.pcap: no such bucket"
    assert refused("dissect", "s3://nowhere/*.pcap", *options) == "66 s3://nowhere/*.pcap: no such bucket"
    assert refused("dissect", "s3://caps/none.pcap", *options) == "66 s3://caps/none.pcap: no such file"
    assert refused("lint", "s3://caps/none*", *options) == "66 s3://caps/none*: no such file"
    assert refused("dissect", "s3:///a.pcap").startswith("2 s3:///a.pcap: it names no bucket")
    assert refused("dissect", "zz://caps/a.pcap").startswith("2 zz: an unknown scheme; known are s3, gs,")
    assert refused("dissect", "s3://u:pw@caps/a").startswith("2 s3: credentials in a URL would be shown")
    assert refused("dissect", "ftp://u:pw@h/a").startswith("2 ftp: credentials in a URL would be shown")
    there = ("dissect", "s3://caps/there.pcap", *options, "--storage-option")
    assert refused(*there, f"acess_key={SECRET}") == "2 s3: it has no storage option acess_key"
    assert refused(*there, SECRET).startswith("2 a storage option is NAME=VALUE")
    assert refused(*there, "anonymous=perhaps").endswith("anonymous is neither true nor false")


def test_access_denied(s3: S3Server) -> None:
    url = s3.put("caps/denied.pcap", SESSION.read_bytes())
    s3.faults += ["denied"] * 9
    s3.methods = ("HEAD",)
    for command in ("dissect", "lint"):
        error = refused(command, url, *s3.option_arguments)
        assert error.startswith(f"66 {url}: access denied: ")
        assert "AWS Error ACCESS_DENIED" in error


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "paramiko" in refused("dissect", "sftp://host/a.pcap") or "paramiko" in sys.modules
    monkeypatch.setitem(sys.modules, "fsspec", None)
    error = refused("dissect", "webhdfs://host/a.pcap")
    assert error == "2 webhdfs: an unknown scheme; schemes other than s3, gs, abfs and hdfs need fsspec"


def test_credentials_are_in_no_message() -> None:
    options = {"key": "abcdefgh", "client_kwargs": {"password": "ijklmnop"}, "region": "mars"}
    error = store_errors.translated(
        ValueError("abcdefgh and ijklmnop on mars\nsecond line"), "x://y", options
    )
    assert str(error) == "[Errno 5] *** and *** on mars: 'x://y'"
    (store,) = {stores.open_store("memory://a", {}), stores.open_store("memory://a/b", {})}
    assert repr(store) == "<Store memory://a>"


def test_stores_of_other_schemes_are_understood() -> None:
    azure = stores.open_store("abfss://box@acc.dfs.core.windows.net/a", {"account_key": "a2V5"})
    assert azure.path("abfss://box@acc.dfs.core.windows.net/a/b.pcap") == "box/a/b.pcap"
    assert azure.url("box/a/b.pcap") == "abfss://box@acc.dfs.core.windows.net/a/b.pcap"
    assert azure.filesystem.type_name == "abfs"
    google = stores.open_store("gs://box/a", {"anonymous": "true", "retry_time_limit": "3"})
    assert (google.path("gs://box/a/b"), google.url("box/a/b")) == ("box/a/b", "gs://box/a/b")
    with pytest.raises(UnsupportedStore, match="no account"):
        stores.open_store("abfs://box/a")
    if "ARROW_LIBHDFS_DIR" not in os.environ and "HADOOP_HOME" not in os.environ:
        with pytest.raises(UnsupportedStore, match="Java, libhdfs and the CLASSPATH of Hadoop"):
            stores.open_store("hdfs://127.0.0.1:1/a")


def test_a_fork_has_connections_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    store = stores.open_store("memory://a")
    assert stores.open_store("memory://a") is store
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert stores.open_store("memory://a") is not store


def test_storage_options_of_the_command_line() -> None:
    texts = ["key=123", "anon=false", 'client={"a": 1}', "endpoint=http://h:1/?a=b", "empty="]
    assert stores.parse_options(texts) == {
        "key": "123", "anon": False, "client": {"a": 1}, "endpoint": "http://h:1/?a=b", "empty": "",
    }  # fmt: skip


# -- results ------------------------------------------------------------------------------------------------


def test_results_are_written_to_urls(s3: S3Server, memory: Any, tmp_path: Path) -> None:
    url = s3.put("caps/in.pcap", SESSION.read_bytes())
    done = cli("dissect", url, "--parquet", "s3://caps/out/table", *s3.option_arguments)
    assert (done.exit_code, done.stdout) == (0, "")
    table = pq.read_table("caps/out/table/packets.parquet", filesystem=s3.filesystem())
    assert table.to_pylist() == msmqwire.read_capture(url, storage_options=s3.options).to_pylist()
    assert cli("dissect", SESSION, "--arrow", "memory://made/new/rows.arrow").exit_code == 0
    assert cli("dissect", SESSION, "--arrow", f"local://{tmp_path}/made/new/rows.arrow").exit_code == 0
    with pa.ipc.open_file(memory.open("/made/new/rows.arrow")) as reader:
        assert reader.read_all() == msmqwire.read_capture(SESSION)
    error = refused("dissect", SESSION, "--arrow", "s3://nowhere/rows.arrow", *s3.option_arguments)
    assert error == "66 s3://nowhere/rows.arrow: no such bucket"


def test_a_result_that_is_not_finished_is_removed(s3: S3Server) -> None:
    s3.put("caps/x", b"")
    sink = tables.to_arrow("s3://caps/unfinished.arrow", s3.options)

    def fail() -> None:
        with sink(pa.schema([("a", pa.int32())])) as write:
            write(pa.record_batch({"a": pa.array([1], pa.int32())}))
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        fail()
    assert not exists("s3://caps/unfinished.arrow", s3.options)


def test_commands_read_urls(s3: S3Server) -> None:
    url = s3.put("caps/commands/hostile.pcapng", HOSTILE.read_bytes())
    local = [json.loads(line) for line in cli("dissect", "--json", HOSTILE).stdout.splitlines()]
    for source in (url, "s3://caps/commands", "s3://caps/commands/*"):
        done = cli("dissect", "--json", source, *s3.option_arguments)
        assert [json.loads(line) | {"file": str(HOSTILE)} for line in done.stdout.splitlines()] == local
        done = cli("lint", source, *s3.option_arguments)
        assert done.stdout == cli("lint", HOSTILE).stdout
    packet = next(iter(msmqwire.dissect(SESSION))).raw
    name = s3.put("caps/packet", packet)
    assert cli("lint", name, *s3.option_arguments).exit_code == 0
