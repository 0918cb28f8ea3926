"""Links and entries of other users in a lake: refused, and nothing outside of the lake is changed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import msmqwire
from msmqwire.errors import LakeDamaged
from msmqwire.tables.lake import compact_lake, delete_from_lake, lake_history, open_folder, vacuum_lake
from msmqwire.tables.lake.entries import check_entries
from msmqwire.tables.lake.part_writer import PartWriter
from msmqwire.tables.lake.place import LocalPlace
from tests.support.capture.lakes import files_of, named_rows, state_file
from tests.support.paths import EXAMPLES

needs_modes = pytest.mark.skipif(os.name != "posix", reason="permissions of Unix")
needs_root = pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs root")
CAPTURE, SECOND = EXAMPLES / "session.pcap", EXAMPLES / "protected.pcap"
TOKEN = "0123456789abcdef" * 2
PART = f"part-{TOKEN}-0.parquet"
COMMIT = "00000000000000000000.json"
STRANGER = 4712


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    path = tmp_path / "lake"
    msmqwire.write_lake(CAPTURE, path)
    return path


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of the same user, with names that are in a lake."""
    path = tmp_path / "outside"
    for name in ("kind=empty", TOKEN, "date=empty"):
        (path / name).mkdir(parents=True)
    for name in (f"{TOKEN}/precious", PART, COMMIT, f"{'0' * 16}.json"):
        (path / name).write_text("precious")
    return path


def everything(path: Path) -> dict[str, Any]:
    return {
        str(entry.relative_to(path)): entry.read_bytes() if entry.is_file() else None
        for entry in path.rglob("*")
    }


USES: dict[str, Callable[[Path], object]] = {
    "write": lambda lake: msmqwire.write_lake([CAPTURE, SECOND], lake),
    "compact": compact_lake,
    "delete": lambda lake: delete_from_lake(lake, "kind is not null"),
    "vacuum": lambda lake: vacuum_lake(lake, timedelta()),
}
PLACES = {
    "partition": lambda lake: next(lake.glob("date=*")),
    "file": lambda lake: next(lake.glob("date=*/*.parquet")),
    "log": lambda lake: lake / "_delta_log",
    "commit": lambda lake: lake / "_delta_log" / COMMIT,
    "states": lambda lake: lake / "_msmqwire",
    "state": state_file,
    "new partition": lambda lake: lake / "date=x",
    "inner partition": lambda lake: lake / "date=x" / "kind=x",
    "new commit": lambda lake: lake / "_delta_log" / f"{1:020}.json",
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("place", PLACES)
def test_writers_stay_in_the_folder(lake: Path, outside: Path, place: str, use: str) -> None:
    """Also where the link leads to what had been in its place."""
    path = PLACES[place](lake)
    path.parent.mkdir(exist_ok=True)
    target = outside
    if os.path.lexists(path):
        target = outside / "moved"
        path.rename(target)
    path.symlink_to(target)
    before = everything(outside)
    with pytest.raises(LakeDamaged, match="link") as caught:
        USES[use](lake)
    assert caught.value.file == str(path)
    assert everything(outside) == before
    assert path.is_symlink()


@pytest.mark.parametrize("name", ["date=2026-03-01", "_msmqwire", "_delta_log"])
def test_a_link_made_during_a_run_is_not_followed(
    lake: Path, outside: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that comes after the entries were looked at: no step goes through it."""
    write, path = PartWriter.write, lake / name
    moved = outside / "moved"

    def linking(self: PartWriter, part: Any) -> Any:
        written = write(self, part) if name[0] == "_" else None
        if not path.is_symlink():
            path.rename(moved)
            path.symlink_to(moved)
        return written or write(self, part)

    monkeypatch.setattr(PartWriter, "write", linking)
    before = everything(outside) | {f"moved/{key}": value for key, value in everything(path).items()}
    with pytest.raises(LakeDamaged, match="link") as caught:
        msmqwire.write_lake([CAPTURE, SECOND], lake)
    assert caught.value.file == str(path)
    assert everything(outside) == before | {"moved": None}
    monkeypatch.undo()
    path.unlink()
    moved.rename(path)
    assert msmqwire.write_lake([CAPTURE, SECOND], lake).rows > 0


STEPS: dict[str, Callable[[LocalPlace, str], object]] = {
    "remove": lambda place, path: place.remove([path]),
    "create": lambda place, path: place.create(path),
    "write": lambda place, path: place.write(path, b"x"),
    "read": lambda place, path: place.read(path),
    "sync": lambda place, path: place.sync([path], contents=True),
}


@pytest.mark.parametrize("by_descriptor", [True, False], ids=["descriptors", "without descriptors"])
@pytest.mark.parametrize("link", ["date=x", "date=x/kind=x"])
@pytest.mark.parametrize("step", STEPS)
def test_no_step_follows_a_link(
    lake: Path, outside: Path, step: str, link: str, *, by_descriptor: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without descriptors as on Windows."""
    monkeypatch.setattr(open_folder, "_BY_DESCRIPTOR", by_descriptor and open_folder._BY_DESCRIPTOR)
    before = everything(outside)
    (lake / link).parent.mkdir(exist_ok=True)
    (lake / link).symlink_to(outside)
    for name in (PART, "new"):
        with pytest.raises(LakeDamaged) as caught:
            STEPS[step](LocalPlace(lake), f"{link}/{name}")
        assert caught.value.file == str(lake / link)
    assert everything(outside) == before


def test_the_library_of_the_log_gets_no_link(lake: Path, outside: Path) -> None:
    (lake / "_delta_log").rename(outside / "log")
    (lake / "_delta_log").symlink_to(outside / "log")
    with pytest.raises(LakeDamaged) as caught:
        LocalPlace(lake).check_log()
    assert caught.value.file == str(lake / "_delta_log")


@pytest.mark.parametrize("place", ["file", "partition", "log", "commit"])
@pytest.mark.parametrize("use", ["read", "history"])
def test_a_reader_follows_no_link(lake: Path, tmp_path: Path, place: str, use: str) -> None:
    path = PLACES[place](lake)
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "moved")
    if use == "history" and place in ("file", "partition"):
        assert lake_history(lake)
        return
    with pytest.raises(LakeDamaged, match="link") as caught:
        (msmqwire.read_lake if use == "read" else lake_history)(lake)
    assert caught.value.file == str(path)


@needs_modes
@pytest.mark.parametrize("place", ["file", "commit", "new commit", "state"])
def test_nobody_waits_for_a_pipe(lake: Path, place: str) -> None:
    path = PLACES[place](lake)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    uses = dict(USES) if place == "state" else {**USES, "read": msmqwire.read_lake}
    for use in uses.values():
        with pytest.raises(LakeDamaged, match="pipe") as caught:
            use(lake)
        assert caught.value.file == str(path)


@needs_root
@pytest.mark.parametrize(
    "name",
    ["date=2026-03-01/rows.parquet", f"_delta_log/{1:020}.json", "_msmqwire/x.json", "_lake/lock", "README"],
)
def test_an_entry_of_another_user_is_refused(lake: Path, name: str) -> None:
    """Spark reads whatever ends in .parquet, and the library whatever is in the log."""
    rows = named_rows(lake)
    (lake / name).parent.mkdir(exist_ok=True)
    (lake / name).touch()
    os.chown(lake / name, STRANGER, STRANGER)
    for use in USES.values():
        with pytest.raises(LakeDamaged, match="another user, of number 4712") as caught:
            use(lake)
        assert caught.value.file == str(lake / name)
    (lake / name).unlink()
    assert msmqwire.write_lake(CAPTURE, lake).rows == 0
    assert named_rows(lake) == rows


@needs_root
@pytest.mark.parametrize("place", ["partition", "log", "states", "file", "commit", "state"])
def test_what_was_there_and_is_of_another_user(lake: Path, place: str) -> None:
    path = PLACES[place](lake)
    os.chown(path, STRANGER, STRANGER)
    with pytest.raises(LakeDamaged, match="another user, of number 4712") as caught:
        msmqwire.write_lake([CAPTURE, SECOND], lake)
    assert caught.value.file == str(path)


@needs_modes
def test_not_everybody_may_write_to_a_lake(tmp_path: Path) -> None:
    """The library that writes the log goes by the umask; the next run takes the right away."""
    lake, before = tmp_path / "lake", os.umask(0)
    try:
        msmqwire.write_lake(CAPTURE, lake)
        compact_lake(lake)
    finally:
        os.umask(before)
    written = [*(path for path in lake.rglob("*") if path.parent.name != "_delta_log"), lake]
    for path in (path for path in written if path.name != "_delta_log"):
        assert not path.stat().st_mode & stat.S_IWOTH, path
    lake.chmod(0o777)
    check_entries(lake, mend=False)
    assert lake.stat().st_mode & stat.S_IWOTH
    check_entries(lake)
    for path in (lake, *lake.rglob("*")):
        assert not path.stat().st_mode & stat.S_IWOTH, path


def test_without_descriptors_a_lake_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_folder, "_BY_DESCRIPTOR", False)
    lake = tmp_path / "lake"
    rows = [msmqwire.write_lake(capture, lake, by="kind").rows for capture in (CAPTURE, SECOND)]
    assert msmqwire.read_lake(lake).count_rows() == sum(rows) > rows[1] > 0
    compact_lake(lake)
    assert vacuum_lake(lake, timedelta()).files_removed > 0
    assert len(files_of(lake)) == len(list(lake.glob("date=*/kind=*/*.parquet")))
