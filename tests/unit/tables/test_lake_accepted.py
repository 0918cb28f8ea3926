"""A commit that has happened, and an error after it: the files are the lake's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

import msmqwire
from msmqwire.tables.lake import compact_lake, delete_from_lake
from msmqwire.tables.lake.place import lake_place
from msmqwire.tables.lake.state import Deletion
from msmqwire.tables.lake.table import Commit, opened
from tests.support.capture.lakes import (
    Growth,
    delta_rows,
    grown,
    named_rows,
    state_of,
    traffic,
    write_capture,
)

SPLIT = 4000


@pytest.fixture
def growth(tmp_path: Path) -> Growth:
    return grown(tmp_path, SPLIT)


@pytest.mark.parametrize("after", ["checkpoint", "state"])
def test_an_error_after_the_commit_leaves_it(growth, monkeypatch, after):
    """The disk is full, say, when the checkpoint is written: nothing that was committed is removed."""

    def failing(*_arguments: object, **_more: object) -> None:
        raise OSError(28, "No space left on device")

    if after == "checkpoint":
        monkeypatch.setattr("msmqwire.tables.lake.table._CHECKPOINT_COMMITS", 1)
        monkeypatch.setattr(DeltaTable, "create_checkpoint", failing)
    else:
        monkeypatch.setattr("msmqwire.tables.lake.place.LocalPlace.sync", _failing_once_there(growth.lake))
    steps = [
        lambda: msmqwire.write_lake(growth.captures, growth.lake, split_size=SPLIT),
        lambda: compact_lake(growth.lake),
        lambda: delete_from_lake(growth.lake, "kind == 'EstablishConnection'"),
    ]
    for step in steps:
        with pytest.raises(OSError, match="No space"):
            step()
        assert named_rows(growth.lake) == delta_rows(growth.lake)
    assert sum(named_rows(growth.lake).values()) < sum(growth.new.values())
    monkeypatch.undo()
    msmqwire.write_lake(growth.captures, growth.lake, split_size=SPLIT)
    assert named_rows(growth.lake) == delta_rows(growth.lake)


def _failing_once_there(lake: Path):
    """A function in place of `LocalPlace.sync` that fails for the log of a commit."""
    from msmqwire.tables.lake.place import LocalPlace

    sync = LocalPlace.sync

    def call(self, paths, *, contents=False):
        if contents:
            raise OSError(28, "No space left on device")
        sync(self, paths, contents=contents)

    return call


def test_a_capture_keeps_its_first_commit(tmp_path):
    """One of an upgraded lake has 0: rows that were deleted do not come back at any later growth."""
    capture, lake = tmp_path / "0.pcap", tmp_path / "lake"
    content = write_capture(capture, traffic(30)).read_bytes()
    capture.write_bytes(content[: len(content) // 3])
    msmqwire.write_lake(capture, lake, split_size=SPLIT)
    table, state = opened(lake_place(lake))
    captures = {path: replace(entry, since=0) for path, entry in state.captures.items()}
    table.commit(Commit("as upgraded", replace(state, captures=captures)))
    where = "kind == 'UserMessage'"
    assert delete_from_lake(lake, where).rows_deleted
    for size in (len(content) // 2, len(content)):
        capture.write_bytes(content[:size])
        msmqwire.write_lake(capture, lake, split_size=SPLIT)
        kinds = msmqwire.read_lake(lake).to_table(columns=["kind"])["kind"].to_pylist()
        assert "UserMessage" not in kinds
    assert [entry.since for entry in state_of(lake).captures.values()] == [0]
    assert state_of(lake).deletions == (Deletion(where, None, 2),)
