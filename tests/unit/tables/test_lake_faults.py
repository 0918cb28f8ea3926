"""Damaged lakes, and those of others: one line in our words, and nothing changed."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake

import msmqwire
from msmqwire.cli import app
from msmqwire.cli.errors import status_of
from msmqwire.errors import InvalidArgument, LakeDamaged, LakeMismatch, LakeMissing
from tests.support.capture.lakes import (
    all_files,
    expected_rows,
    files_of,
    named_rows,
    state_file,
    traffic,
    write_capture,
)
from tests.support.capture.old_lakes import old_lake

needs_root = pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs root")
needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of Unix")
STRANGER: Final = 4712
RUNNER = CliRunner()
Change = Callable[[Path], object]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two captures, and a lake of the first one in two versions."""
    folder = tmp_path_factory.mktemp("made")
    first = write_capture(folder / "0.pcap", traffic(3))
    write_capture(folder / "1.pcap", traffic(3, port=50_001))
    write_capture(folder / "2.pcap", traffic(3, port=50_002))
    msmqwire.write_lake(first, folder / "lake")
    msmqwire.write_lake([first, folder / "1.pcap"], folder / "lake")
    return folder


@pytest.fixture
def lake(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "lake", tmp_path / "lake"))


def contents(folder: Path) -> dict[str, object]:
    """All entries of a folder, with the contents of files."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else path.lstat().st_mode
        for path in folder.rglob("*")
    }


def commit(lake: Path, version: int) -> Path:
    return lake / "_delta_log" / f"{version:020}.json"


def edited(change: Callable[[str, Any], object]) -> Change:
    """A change of the actions in the log: it gets the name of each, and its content."""

    def edit(lake: Path) -> None:
        for path in (lake / "_delta_log").glob("*.json"):
            actions = [json.loads(line) for line in path.read_text().splitlines()]
            for action in actions:
                change(*next(iter(action.items())))
            path.write_text("".join(f"{json.dumps(action)}\n" for action in actions))

    return edit


def with_checkpoint(change: Change) -> Change:
    def write(lake: Path) -> None:
        DeltaTable(lake).create_checkpoint()
        change(lake)

    return write


def checkpoint(lake: Path) -> Path:
    return next((lake / "_delta_log").glob("*.checkpoint.parquet"))


def protocol(**values: Any) -> Change:
    def change(name: str, action: Any) -> None:
        if name == "protocol":
            action.clear()
            action.update(values)

    return edited(change)


def metadata(change: Callable[[Any], object]) -> Change:
    return edited(lambda name, action: change(action) if name == "metaData" else None)


def another_type(action: Any) -> None:
    schema = json.loads(action["schemaString"])
    next(field for field in schema["fields"] if field["name"] == "size")["type"] = "string"
    action["schemaString"] = json.dumps(schema)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:500])


DAMAGES: Final[dict[str, Change]] = {
    "broken": lambda lake: commit(lake, 0).write_text("{"),
    "binary": lambda lake: commit(lake, 1).write_bytes(bytes(range(256))),
    "empty": lambda lake: commit(lake, 0).write_bytes(b""),
    "without the first": lambda lake: commit(lake, 0).unlink(),
    "gap": lambda lake: commit(lake, 1).rename(commit(lake, 2)),
    "checkpoint": with_checkpoint(lambda lake: cut(checkpoint(lake))),
    "only a checkpoint": with_checkpoint(
        lambda lake: (cut(checkpoint(lake)), commit(lake, 0).unlink(), commit(lake, 1).unlink())
    ),
    "last checkpoint": with_checkpoint(
        lambda lake: (lake / "_delta_log" / "_last_checkpoint").write_text('{"version": 7, "size": 3}')
    ),
    "protocol": protocol(minReaderVersion="x", minWriterVersion=2),
    "schema": metadata(lambda action: action.update(schemaString="{")),
    "no schema": metadata(lambda action: action.pop("schemaString")),
    "a folder": lambda lake: commit(lake, 2).mkdir(),
    "a file": lambda lake: (shutil.rmtree(lake / "_delta_log"), (lake / "_delta_log").write_text("")),
}
MISMATCHES: Final[dict[str, Change]] = {
    "newer": protocol(minReaderVersion=99, minWriterVersion=99),
    "newer feature": protocol(
        minReaderVersion=3, minWriterVersion=7, readerFeatures=["colour"], writerFeatures=["colour"]
    ),
    "deletion vectors": protocol(
        minReaderVersion=3,
        minWriterVersion=7,
        readerFeatures=["deletionVectors"],
        writerFeatures=["deletionVectors"],
    ),
    "writer feature": protocol(minReaderVersion=1, minWriterVersion=7, writerFeatures=["appendOnly"]),
    "type": metadata(another_type),
    "no partitions": metadata(lambda action: action.update(partitionColumns=[])),
    "other partitions": metadata(lambda action: action.update(partitionColumns=["date", "label"])),
    "somebody else's": lambda lake: (
        shutil.rmtree(lake),
        write_deltalake(lake, pa.table({"date": ["x"], "size": [1]}), partition_by=["date"]),
    ),
}
ERRORS = {**dict.fromkeys(DAMAGES, LakeDamaged), **dict.fromkeys(MISMATCHES, LakeMismatch)}


def is_one_line(text: str) -> bool:
    return text.isprintable() and len(text) < 600 and "<unknown>" not in text


@pytest.mark.parametrize("fault", ERRORS)
def test_readers_and_writers_are_refused(made: Path, lake: Path, fault: str) -> None:
    (DAMAGES | MISMATCHES)[fault](lake)
    before = contents(lake)
    with pytest.raises(ERRORS[fault]) as caught:
        msmqwire.read_lake(lake)
    assert type(caught.value) is ERRORS[fault]
    assert is_one_line(str(caught.value))
    assert caught.value.file.startswith(str(lake))
    result = RUNNER.invoke(app, ["lake", str(made / "2.pcap"), "--out", str(lake)])
    assert result.exit_code == (65 if ERRORS[fault] is LakeDamaged else 2)
    (line,) = result.stderr.splitlines()
    assert is_one_line(json.loads(line)["error"])
    assert contents(lake) == before


def test_a_damaged_hint_is_no_matter(made: Path, lake: Path) -> None:
    """The log says where its checkpoint is in a file that it can do without."""
    with_checkpoint(lambda lake: (lake / "_delta_log" / "_last_checkpoint").write_text("{"))(lake)
    captures = [made / f"{number}.pcap" for number in range(3)]
    assert named_rows(lake) == expected_rows(captures[:2])
    msmqwire.write_lake(captures, lake)
    assert named_rows(lake) == expected_rows(captures)


@pytest.mark.parametrize(
    "path",
    [
        "../x", "/etc/passwd", "file:///etc/passwd", "%2e%2e/x", "date=x/%2E%2E/../x", "..%2fx", "s3://b/x",
        "date=x//x", "date=x\\x", "date=x%5cx", "C:/x", "x\ny", "x%00", "", ".",
    ],
)  # fmt: skip
def test_a_path_out_of_the_table(made: Path, lake: Path, tmp_path: Path, path: str) -> None:
    """Neither a reader goes there nor a writer, whose part is read again."""
    (tmp_path / "x").write_text("mine")
    edited(lambda name, action: action.update(path=path) if name == "add" else None)(lake)
    before = contents(tmp_path)
    with pytest.raises(LakeDamaged) as caught:
        msmqwire.read_lake(lake)
    assert is_one_line(str(caught.value))
    captures = [write_capture(tmp_path / "0.pcap", traffic(4)), made / "1.pcap"]
    os.utime(captures[0], ns=(1, 1))
    state = state_file(lake)
    state.write_text(state.read_text().replace(str(made / "0.pcap"), str(captures[0])))
    before = contents(tmp_path)
    with pytest.raises(LakeDamaged):
        msmqwire.write_lake(captures, lake)
    assert contents(tmp_path) == before


def test_a_missing_part(lake: Path) -> None:
    path = lake / files_of(lake)[0].path
    path.unlink()
    with pytest.raises(LakeDamaged, match="is missing") as caught:
        msmqwire.read_lake(lake)
    assert caught.value.file == str(path)
    assert status_of(caught.value) == 65


STATES: Final[dict[str, Callable[[Path], object]]] = {
    "missing": Path.unlink,
    "broken": lambda path: path.write_text("{"),
    "binary": lambda path: path.write_bytes(bytes(range(256))),
    "format": lambda path: path.write_text(path.read_text().replace('lake": 2', 'lake": 3')),
    "deep": lambda path: path.write_text("[" * 100_000),
    "no folder": lambda path: shutil.rmtree(path.parent),
    "a file": lambda path: (shutil.rmtree(path.parent), path.parent.write_text("")),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("fault", STATES)
def test_a_damaged_state(made: Path, lake: Path, fault: str) -> None:
    """It is nothing to readers."""
    rows = named_rows(lake)
    STATES[fault](state_file(lake))
    before = contents(lake)
    result = RUNNER.invoke(app, ["lake", str(made / "2.pcap"), "--out", str(lake)])
    assert result.exit_code == 65
    (line,) = result.stderr.splitlines()
    assert "_msmqwire" in json.loads(line)["error"]
    assert contents(lake) == before
    assert named_rows(lake) == rows


@pytest.mark.parametrize("version", [-1, True, 1.5, "1"])
def test_no_number_of_a_version(lake: Path, version: Any) -> None:
    with pytest.raises(InvalidArgument, match="version: a number of 0 or more") as caught:
        msmqwire.read_lake(lake, version=version)
    assert status_of(caught.value) == 2


def missing_version(lake: Path, version: int) -> str:
    with pytest.raises(LakeMissing) as caught:
        msmqwire.read_lake(lake, version=version)
    assert status_of(caught.value) == 66
    assert caught.value.file == str(lake)
    return caught.value.why


def test_versions_that_there_are_not(made: Path, lake: Path) -> None:
    first = named_rows(lake)
    for version in (2, 1 << 70):
        assert missing_version(lake, version) == f"there is no version {version}: the last one is 1"
    old = files_of(lake)
    write_capture(made / "0.pcap", traffic(4))
    try:
        msmqwire.write_lake([made / "0.pcap", made / "1.pcap"], lake)
    finally:
        write_capture(made / "0.pcap", traffic(3))
    assert named_rows(lake) != first
    assert msmqwire.read_lake(lake, version=1).count_rows() == first.total()
    (lake / old[0].path).unlink()
    assert missing_version(lake, 1) == "version 1 is no longer there: its files were removed by --vacuum"
    with_checkpoint(lambda lake: [commit(lake, number).unlink() for number in range(3)])(lake)
    assert "is no longer there: the log has those of the last 30 days" in missing_version(lake, 1)
    assert msmqwire.read_lake(lake, version=2).count_rows() == named_rows(lake).total()
    assert "no lake" in missing_version(lake.parent, 0)


@needs_pipes
@pytest.mark.parametrize("name", ["_delta_log/00000000000000000002.json", "_delta_log/_last_checkpoint"])
def test_nobody_waits_for_a_pipe_in_the_log(made: Path, lake: Path, name: str) -> None:
    os.mkfifo(lake / name)
    for use in (msmqwire.read_lake, lambda lake: msmqwire.write_lake(made / "2.pcap", lake)):
        with pytest.raises(LakeDamaged, match="it is a pipe") as caught:
            use(lake)
        assert caught.value.file == str(lake / name)


def test_an_old_lake(tmp_path: Path) -> None:
    old = old_lake(tmp_path, "by_date", "a lake's")
    before = contents(old.folder)
    result = RUNNER.invoke(app, ["lake", str(old.captures[0]), "--out", str(old.folder)])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    command = json.loads(line)["error"].partition(" by ")[2]
    assert shlex.split(command) == ["msmqwire", "lake", "--out", str(old.folder), "--upgrade"]
    assert contents(old.folder) == before


@needs_root
@pytest.mark.parametrize("place", ["lake", "log", "commit", "nothing"])
def test_permission_denied(made: Path, place: str) -> None:
    """Who may read a lake and not write to it gets an error that says so, and so does who may do neither."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o755)
        lake = Path(shutil.copytree(made / "lake", root / "lake"))
        capture = Path(shutil.copy(made / "2.pcap", root))
        for path in (capture, lake, *lake.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        rows = named_rows(lake)
        closed = {"lake": lake, "log": lake / "_delta_log", "commit": commit(lake, 1)}.get(place)
        if closed is not None:
            closed.chmod(0o700 if closed.is_dir() else 0o600)
        files = all_files(lake)
        with as_stranger():
            if closed is None:
                assert named_rows(lake) == rows
            else:
                with pytest.raises(PermissionError) as caught:
                    msmqwire.read_lake(lake)
                assert is_of_lake(caught.value, lake)
            result = RUNNER.invoke(app, ["lake", str(capture), "--out", str(lake)])
        assert is_of_lake(result.exception, lake)
        assert all_files(lake) == files


def is_of_lake(error: BaseException | None, lake: Path) -> bool:
    """Whether an error is one of which `main` makes one line and status 74, and of the lake."""
    assert isinstance(error, PermissionError)
    return is_one_line(str(error)) and str(error.filename).startswith(str(lake))


@contextmanager
def as_stranger() -> Iterator[None]:
    os.setegid(STRANGER)
    os.seteuid(STRANGER)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
