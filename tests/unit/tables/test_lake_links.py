"""Links and entries of other users in a lake: refused, and nothing outside of the lake is changed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

import msmqwire
from msmqwire.errors import LakeDamaged
from msmqwire.tables.lake import open_folder
from msmqwire.tables.lake.entries import check_entries
from msmqwire.tables.lake.folder import LakeFolder
from msmqwire.tables.lake.manifest import HIDDEN, NAME, STAGING, Manifest, Pending
from tests.support.paths import EXAMPLES

needs_modes = pytest.mark.skipif(os.name != "posix", reason="permissions of Unix")
needs_root = pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs root")
CAPTURE = EXAMPLES / "session.pcap"
TOKEN = "0123456789abcdef" * 2
STRANGER = 4712


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    path = tmp_path / "lake"
    msmqwire.write_lake(CAPTURE, path)
    return path


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of the same user, with what the writer of a lake removes."""
    path = tmp_path / "outside"
    for name in ("kind=empty", TOKEN, "date=empty"):
        (path / name).mkdir(parents=True)
    (path / TOKEN / "precious").touch()
    (path / f"part-{TOKEN}-0.parquet").touch()
    return path


def everything(path: Path) -> list[Path]:
    return sorted(path.rglob("*"))


@pytest.mark.parametrize(
    "link",
    ["date=x", "date=x/kind=x", STAGING, HIDDEN, f"{STAGING}/{TOKEN}", f"{HIDDEN}/lock", f"{HIDDEN}/{NAME}"],
)
def test_the_clean_up_stays_in_the_folder(lake: Path, outside: Path, link: str) -> None:
    before, path = everything(outside), lake / link
    path.parent.mkdir(exist_ok=True)
    if os.path.lexists(path):
        path.rename(path.with_name("put aside"))
    path.symlink_to(outside)
    with pytest.raises(LakeDamaged) as caught:
        msmqwire.write_lake(CAPTURE, lake)
    assert caught.value.file == str(path)
    assert everything(outside) == before


@pytest.mark.parametrize("link", ["date=x", "date=x/kind=x"])
@pytest.mark.parametrize("pending", ["removals", "moves"])
def test_a_link_made_during_a_run_is_not_followed(
    lake: Path, outside: Path, link: str, pending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that comes after the entries were looked at: no step goes through it."""
    before, name = everything(outside), f"{link}/part-{TOKEN}-0.parquet"
    (lake / link).parent.mkdir(exist_ok=True)
    (lake / link).symlink_to(outside)
    run = f"{STAGING}/{TOKEN}"
    (lake / run).mkdir()
    (lake / run / f"{TOKEN}-0.staged").touch()
    removals, moves = ((name,), ()) if pending == "removals" else ((), ((f"{run}/{TOKEN}-0.staged", name),))
    folder = LakeFolder(lake)
    with pytest.raises(LakeDamaged) as caught:
        folder.commit(Manifest({}, pending=Pending(run, removals, moves)))
    assert caught.value.file == str(lake / link)
    assert everything(outside) == before
    folder.manifest = None
    folder.clean_up()
    assert everything(outside) == before
    assert (lake / link).is_symlink()
    assert not (lake / run).exists()


@pytest.mark.parametrize("place", ["file", "folder", "manifest", "hidden"])
def test_a_reader_follows_no_link(lake: Path, tmp_path: Path, place: str) -> None:
    (data,) = lake.glob("date=*/*.parquet")
    path = {"file": data, "folder": data.parent, "manifest": lake / HIDDEN / NAME, "hidden": lake / HIDDEN}[
        place
    ]
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "moved")
    with pytest.raises(LakeDamaged) as caught:
        msmqwire.read_lake(lake)
    assert caught.value.file == str(path)


@needs_modes
@pytest.mark.parametrize("place", ["file", "manifest"])
def test_nobody_waits_for_a_pipe(lake: Path, place: str) -> None:
    (data,) = lake.glob("date=*/*.parquet")
    path = data if place == "file" else lake / HIDDEN / NAME
    path.unlink()
    os.mkfifo(path)
    for use in (lambda: msmqwire.read_lake(lake), lambda: msmqwire.write_lake(CAPTURE, lake)):
        with pytest.raises(LakeDamaged) as caught:
            use()
        assert caught.value.file == str(path)


@needs_root
@pytest.mark.parametrize("name", ["date=2026-03-01/rows.parquet", f"{HIDDEN}/lock-journal", "README"])
def test_an_entry_of_another_user_is_refused(lake: Path, name: str) -> None:
    """Spark reads whatever ends in .parquet."""
    (lake / name).parent.mkdir(exist_ok=True)
    (lake / name).touch()
    os.chown(lake / name, STRANGER, STRANGER)
    with pytest.raises(LakeDamaged, match="another user, of number 4712") as caught:
        msmqwire.write_lake(CAPTURE, lake)
    assert caught.value.file == str(lake / name)
    (lake / name).unlink()
    assert msmqwire.write_lake(CAPTURE, lake).rows == 0


@needs_modes
def test_not_everybody_may_write_to_a_lake(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        msmqwire.write_lake(CAPTURE, tmp_path / "lake")
    finally:
        os.umask(before)
    (tmp_path / "lake").chmod(0o777)
    check_entries(tmp_path / "lake")
    for path in (tmp_path / "lake", *everything(tmp_path / "lake")):
        assert not path.stat().st_mode & stat.S_IWOTH, path


def test_without_descriptors_links_are_looked_for(
    lake: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows."""
    monkeypatch.setattr(open_folder, "_BY_DESCRIPTOR", False)
    before = everything(outside)
    (lake / "date=x").symlink_to(outside)
    removed = Pending(STAGING, (f"date=x/part-{TOKEN}-0.parquet",), ())
    folder = LakeFolder(lake)
    with pytest.raises(LakeDamaged):
        folder.commit(Manifest({}, pending=removed))
    folder.manifest = None
    folder.clean_up()
    assert everything(outside) == before


def test_without_descriptors_a_lake_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_folder, "_BY_DESCRIPTOR", False)
    rows = [
        msmqwire.write_lake(EXAMPLES / name, tmp_path / "lake", by="kind").rows
        for name in ("session.pcap", "protected.pcap")
    ]
    assert msmqwire.read_lake(tmp_path / "lake").count_rows() == sum(rows) > rows[1] > 0
