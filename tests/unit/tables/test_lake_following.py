"""A lake that follows its captures: rows of one reader, each once, whatever becomes of the captures."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from struct import pack
from typing import Any

import pytest

import msmqwire
from msmqwire.capture.record import RECORD_SIZE_MAX
from msmqwire.errors import InvalidArgument, LakeMismatch
from msmqwire.tables.lake import compact_lake, step_planning
from msmqwire.tables.lake.part_writer import PartWriter
from tests.support import captures as c
from tests.support.capture.busy import busy_capture
from tests.support.capture.following import (
    Action,
    Growing,
    complete_rows,
    contents_of,
    follow,
    lake_rows,
    one_reader,
    polars_rows,
)
from tests.support.capture.lakes import files_of, state_file, state_of, traffic, write_capture


def pieces(path: Path, content: bytes, size: int) -> Iterator[Action]:
    """Actions that write a capture piece by piece."""

    def add(piece: bytes) -> None:
        with path.open("ab") as file:
            file.write(piece)

    return iter([lambda at=at: add(content[at : at + size]) for at in range(0, len(content), size)])


def busy(path: Path) -> bytes:
    """The content of a capture that is to be written at a path."""
    write_capture(path, busy_capture(0.1))
    content = path.read_bytes()
    path.unlink()
    return content


@pytest.mark.parametrize("seed", range(6))
def test_rows_are_those_of_one_reader(tmp_path, seed):
    rng = random.Random(seed)
    folder, lake = tmp_path / "captures", tmp_path / "lake"
    folder.mkdir()
    growing = Growing(rng, [folder / f"{number}.pcap" for number in range(3)], contents_of(rng, 3))
    step_size = rng.choice([3000, 1 << 20])
    for _ in range(3):
        follow(folder, lake, [growing.grow] * rng.randrange(1, 12) + [lambda: None], step_size=step_size)
        assert lake_rows(lake) == complete_rows(growing.present)
        if rng.random() < 0.5:
            msmqwire.write_lake(folder, lake, split_size=5000)
            assert lake_rows(lake) == one_reader(growing.present)
    while not growing.is_whole:
        growing.grow()
    follow(folder, lake)
    msmqwire.write_lake(folder, lake)
    assert lake_rows(lake) == polars_rows(lake) == one_reader(growing.paths)
    assert msmqwire.write_lake(folder, lake).captures_read == 0


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_a_record_that_is_written_in_part_waits(tmp_path, form):
    path, lake = tmp_path / "0.pcap", tmp_path / "lake"
    content = write_capture(path, traffic(5), pcapng=form == "pcapng").read_bytes()
    path.write_bytes(content[:-7])
    done = follow(path, lake)
    assert done.notices[-1].startswith(f"{path} ends within a record: ")
    assert not any(commit.damages for commit in done.commits)
    assert lake_rows(lake) == complete_rows([path])
    done = follow(path, lake, [lambda: path.write_bytes(content)])
    assert len(done.commits) == 1
    assert lake_rows(lake) == one_reader([path])


def test_nothing_is_read_twice_and_nothing_new_is_no_commit(tmp_path, monkeypatch):
    path, lake = tmp_path / "0.pcap", tmp_path / "lake"
    content, read = busy(path), list[tuple[int, int]]()
    write = PartWriter.write

    def noting(self: PartWriter, numbered: Any) -> Any:
        read.extend((window.start, window.end) for window in numbered[1].windows)
        return write(self, numbered)

    monkeypatch.setattr(PartWriter, "write", noting)
    path.write_bytes(content[:5000])
    growth = pieces(path, content[5000:], 9000)
    done = follow(path, lake, [each for action in growth for each in (action, lambda: None)])
    assert not done.notices
    assert [start for start, _ in read] == [0, *(end for _, end in read[:-1])]
    assert read[-1][1] == len(content)
    assert len(done.commits) == len(read) == len({commit.version for commit in done.commits})
    assert [commit.rows_replaced for commit in done.commits] == [0] * len(read)
    assert lake_rows(lake) == complete_rows([path])


def test_much_is_read_in_steps(tmp_path):
    path, lake = tmp_path / "0.pcap", tmp_path / "lake"
    path.write_bytes(busy(path))
    done = follow(path, lake, [lambda: None], step_size=20_000)
    assert len(done.commits) > 3
    assert lake_rows(lake) == complete_rows([path])


def test_it_goes_on_after_a_plain_run_and_a_plain_run_after_it(tmp_path):
    path, lake = tmp_path / "0.pcap", tmp_path / "lake"
    content = busy(path)
    for share in (1, 2, 3):
        path.write_bytes(content[: len(content) * share // 4])
        msmqwire.write_lake(path, lake, splits="exact" if share == 1 else None, split_size=9000)
        assert lake_rows(lake) == one_reader([path])
        done = follow(path, lake)
        assert not done.commits
        path.write_bytes(content[: len(content) * share // 4 + 4000])
        done = follow(path, lake)
        assert len(done.commits) == 1
        assert done.notices[0].startswith("going over ")
        assert lake_rows(lake) == complete_rows([path])


def test_only_an_exact_lake_is_followed(tmp_path):
    path, lake = write_capture(tmp_path / "0.pcap", traffic(3)), tmp_path / "lake"
    msmqwire.write_lake(path, lake)
    with pytest.raises(LakeMismatch, match="begun without --splits exact: let plain runs add to it"):
        follow(path, lake)
    with pytest.raises(InvalidArgument, match="leave out one of the two"):
        follow(path, tmp_path / "other", findings=True)
    with pytest.raises(InvalidArgument, match="0 or more"):
        follow(path, tmp_path / "other", every=float("nan"))
    assert not (tmp_path / "other").exists()


def test_settings_are_those_of_plain_runs(tmp_path):
    path, lake, plain = tmp_path / "0.pcap", tmp_path / "lake", tmp_path / "plain"
    write_capture(path, traffic(9, queues=[r"OS:a\b", r"OS:c\d"]))
    options = {"by": "kind", "columns": ["label", "stream"], "where": "label != '3'", "ports": [1900]}
    follow(path, lake, **options)
    msmqwire.write_lake(path, plain, splits="exact", **options)
    assert state_of(lake).settings == state_of(plain).settings
    tables = [msmqwire.read_lake(each).to_table().drop(["part"]).to_pylist() for each in (lake, plain)]
    assert tables[0] == tables[1] != []
    with pytest.raises(LakeMismatch, match="begun with where"):
        follow(path, lake)


@pytest.mark.parametrize("how", ["replaced", "shorter", "an earlier one", "grown too late"])
def test_what_a_state_does_not_fit_is_read_again(tmp_path, how):
    folder, lake = tmp_path / "captures", tmp_path / "lake"
    folder.mkdir()
    paths = [folder / f"{number}.pcap" for number in (1, 2, 3)]
    contents = contents_of(random.Random(1), 3)
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)

    def change() -> None:
        if how == "replaced":
            other = write_capture(folder / ".other", traffic(7, port=50_001))
            other.replace(paths[1])
        elif how == "shorter":
            paths[1].write_bytes(contents[1][:9000])
        elif how == "an earlier one":
            write_capture(folder / "0.pcap", traffic(3))
        else:
            with paths[1].open("ab") as file:
                file.write(contents[1][-5000:] if contents[1][:4] != contents[0][:4] else b"\0" * 5)

    done = follow(folder, lake, [change, lambda: None], step_size=9000)
    assert len(done.notices) == 1
    words = {
        "replaced": f"{paths[1]} was replaced, or has become shorter: ",
        "shorter": f"{paths[1]} was replaced, or has become shorter: ",
        "an earlier one": f"{folder / '0.pcap'} has come after later captures were read: ",
        "grown too late": f"{paths[1]} has grown after later captures were read: ",
    }
    assert done.notices[0].startswith(words[how])
    assert done.notices[0].endswith(" read again")
    assert sum(commit.rows_replaced for commit in done.commits)
    assert lake_rows(lake) == complete_rows(sorted(folder.glob("*.pcap")))


def test_a_capture_that_is_gone_keeps_its_rows(tmp_path):
    folder, lake = tmp_path / "captures", tmp_path / "lake"
    folder.mkdir()
    contents = contents_of(random.Random(2), 3)
    paths = [folder / f"{number}.pcap" for number in range(3)]
    kept = tmp_path / "kept"
    for path, content in zip(paths[:2], contents, strict=False):
        path.write_bytes(content)
    done = follow(
        folder, lake, [lambda: paths[0].rename(kept), lambda: paths[2].write_bytes(contents[2]), lambda: None]
    )
    assert done.notices == [f"{paths[0]} is gone: its rows stay in the lake"]
    with pytest.raises(LakeMismatch, match="name all of it"):
        follow(folder, lake)
    kept.rename(paths[0])
    assert lake_rows(lake) == complete_rows(paths)


def test_after_a_damage_the_next_capture_is_read(tmp_path):
    folder, lake = tmp_path / "captures", tmp_path / "lake"
    folder.mkdir()
    paths = [folder / f"{number}.pcap" for number in range(2)]
    content = c.pcap_bytes(traffic(9))
    damaged = content[:1500] + b"\xff" * 16 + content[1500:]

    def grow() -> None:
        with paths[0].open("ab") as file:
            file.write(damaged[2500:])

    paths[0].write_bytes(damaged[:2500])
    done = follow(
        folder, lake, [grow, lambda: None, lambda: write_capture(paths[1], traffic(4, port=50_001))]
    )
    assert [len(commit.damages) for commit in done.commits] == [1, 0]
    assert len(done.notices) == 1
    assert "what comes after it there is not read" in done.notices[0]
    expected = one_reader(paths)
    assert sum(expected.values()) > 7
    assert lake_rows(lake) == expected
    msmqwire.write_lake(folder, lake)
    assert lake_rows(lake) == expected


def test_a_compressed_capture_is_read_once_it_is_whole(tmp_path):
    path, lake = tmp_path / "0.pcap.gz", tmp_path / "lake"
    content = gzip.compress(c.pcap_bytes(traffic(9)), mtime=0)
    done = follow(path.parent / "*.gz", lake, pieces(path, content, 200))
    assert [commit.captures_read for commit in done.commits] == [1]
    assert lake_rows(lake) == one_reader([path])


def test_a_capture_before_others_that_is_cut_off(tmp_path):
    """It is waited for once; then it is read as it is, and again if it grows."""
    folder, lake = tmp_path / "captures", tmp_path / "lake"
    folder.mkdir()
    paths = [folder / f"{number}.pcap" for number in range(2)]
    contents = contents_of(random.Random(3), 2)
    looks = list[int]()

    def count() -> None:
        looks.append(sum(lake_rows(lake).values()))

    def begin() -> None:
        paths[0].write_bytes(contents[0][:-9])
        paths[1].write_bytes(contents[1])

    paths[0].write_bytes(contents[0][:9000])
    done = follow(
        folder, lake, [begin, count, count, lambda: paths[0].write_bytes(contents[0]), lambda: None]
    )
    assert looks[1] > looks[0]
    assert [damage.cut for commit in done.commits for damage in commit.damages] == [True]
    assert lake_rows(lake) == complete_rows(paths)


def test_files_that_are_no_captures_are_reported_once(tmp_path):
    lake = tmp_path / "lake"
    folder = tmp_path / "captures"
    folder.mkdir()
    (folder / "notes.txt").write_text("text")
    path = folder / "0.pcap"
    path.touch()
    done = follow(folder, lake, [lambda: None, lambda: write_capture(path, traffic(3)), lambda: None])
    assert len(done.notices) == 2
    assert "notes.txt" in done.notices[0]
    assert done.notices[1] == "there is no capture as yet"
    assert lake_rows(lake) == one_reader([path])
    with pytest.raises(FileNotFoundError):
        follow(tmp_path / "none.pcap", lake)


def test_another_writer_comes_before(tmp_path, monkeypatch):
    """The commit is refused, and planned again from what the other one has left."""
    path, lake = tmp_path / "0.pcap", tmp_path / "lake"
    content, write, others = busy(path), PartWriter.write, list[int]()

    def after_another(self: PartWriter, numbered: Any) -> Any:
        result = write(self, numbered)
        if self.keeps_state and len(others) < 3:
            others.append(0)
            msmqwire.write_lake(path, lake, splits="exact", split_size=9000)
        return result

    monkeypatch.setattr(PartWriter, "write", after_another)
    path.write_bytes(content[:9000])
    follow(path, lake, pieces(path, content[9000:], 12_000))
    assert len(others) == 3
    assert lake_rows(lake) == polars_rows(lake) == complete_rows([path])


def test_states_are_kept_within_bounds(tmp_path, monkeypatch):
    """Without the state that is needed it reads more again."""
    monkeypatch.setattr(step_planning, "STATES_MAX", 1)
    folder, lake = tmp_path / "captures", tmp_path / "lake"
    folder.mkdir()
    rng = random.Random(5)
    growing = Growing(rng, [folder / f"{number}.pcap" for number in range(3)], contents_of(rng, 3))
    follow(folder, lake, [growing.grow] * 40)
    assert lake_rows(lake) == complete_rows(growing.present)


def test_deleted_rows_do_not_come_back(tmp_path):
    folder, lake = tmp_path / "captures", tmp_path / "lake"
    folder.mkdir()
    paths = [folder / f"{number}.pcap" for number in range(2)]
    for number, path in enumerate(paths):
        write_capture(path, traffic(4, port=50_000 + number))
    follow(folder, lake)
    data = json.loads(state_file(lake).read_text())
    data["deletions"] = [{"where": "label = '2'", "before_ns": None, "commit": data["commit"]}]
    state_file(lake).write_text(json.dumps(data))
    follow(folder, lake, [lambda: write_capture(paths[0], traffic(3, port=50_007)), lambda: None])
    labels = msmqwire.read_lake(lake).to_table(columns=["label"]).column(0).to_pylist()
    assert "2" not in labels
    assert labels.count("1") == 2


def test_a_part_is_continued_until_it_is_large(tmp_path, monkeypatch):
    """So that the state of a lake grows with its captures, not with each step."""
    path, lake = tmp_path / "0.pcap", tmp_path / "lake"
    content = busy(path)
    path.touch()
    done = follow(path, lake, pieces(path, content, 3000))
    assert len(done.commits) > 20
    (part,) = state_of(lake).parts
    assert [(window.start, window.end) for window in part.windows] == [(0, len(content))]
    assert len({file.path for file in files_of(lake)}) > 10
    path.unlink()
    monkeypatch.setattr(step_planning, "CONTINUED_MAX", 9000)
    follow(path.parent / "*.pcap", tmp_path / "other", pieces(path, content, 3000))
    ends = [part.windows[-1].end for part in state_of(tmp_path / "other").parts]
    assert len(ends) > 3
    assert min(end - start for start, end in pairwise([0, *ends[:-1]])) >= 9000
    assert lake_rows(lake) == lake_rows(tmp_path / "other") == complete_rows([path])
    msmqwire.write_lake(path, lake)
    assert lake_rows(lake) == polars_rows(lake) == one_reader([path])


def test_files_are_compacted_meanwhile(tmp_path):
    path, lake = tmp_path / "0.pcap", tmp_path / "lake"
    content = busy(path)
    path.write_bytes(content[:6000])
    actions = list[Action]()
    for action in pieces(path, content[6000:], 6000):
        actions += [action, lambda: compact_lake(lake)]
    follow(path, lake, [*actions, lambda: path.write_bytes(content[:-8000]), lambda: None])
    assert lake_rows(lake) == polars_rows(lake) == complete_rows([path])


def test_a_record_that_is_passed_over_is_no_end(tmp_path):
    """What follows it in a file that grows is read once."""
    path, lake = tmp_path / "0.pcap", tmp_path / "lake"
    content = c.pcap_bytes(traffic(9))
    order = "<" if content[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    size = RECORD_SIZE_MAX + 1
    path.write_bytes(content[:16] + bytes(4) + content[20:24])  # without a limit of its own
    with path.open("ab") as file:
        file.write(pack(order + "4I", c.START_NS // 10**9, 0, size, size) + bytes(size))
    done = follow(path, lake, pieces(path, content[24:], 900))
    assert [len(commit.damages) for commit in done.commits[:1]] == [1]
    assert len(done.commits) > 3
    assert [commit.rows_replaced for commit in done.commits] == [0] * len(done.commits)
    assert lake_rows(lake) == one_reader([path])


def test_a_file_that_grows_while_it_is_looked_at(tmp_path, monkeypatch):
    """The next step has the rest; the end of this one is that of a record."""
    path, lake = tmp_path / "0.pcap", tmp_path / "lake"
    content = c.pcap_bytes(traffic(9))
    examine = step_planning.examine_all

    def then_more(*arguments: Any) -> Any:
        found = examine(*arguments)
        if path.stat().st_size < len(content):
            path.write_bytes(content)
        return found

    path.write_bytes(content[:1111])
    monkeypatch.setattr(step_planning, "examine_all", then_more)
    done = follow(path, lake, [lambda: None])
    assert [commit.damages for commit in done.commits] == [(), ()]
    assert lake_rows(lake) == one_reader([path])
