"""Lakes with the column of findings: sessions are judged from their beginning, or not at all."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import msmqwire
from msmqwire.capture.splits import whole_file
from msmqwire.errors import InvalidArgument, LakeMismatch
from msmqwire.tables.exact_parts import ExactPart
from msmqwire.tables.filters import conditions_of
from msmqwire.tables.part_reader import PartReader
from msmqwire.tables.parts import Part
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.lakes import state_of, write_capture

SMALL = 2000
"""Bytes of a part, so that captures without findings would have several."""


JUMP = 4
"""The message with a count that does not follow, which shows only beside the one before it."""


def talk(port: int, count: int = 6) -> list[c.Frame]:
    """A session of some messages."""
    conversation = c.TcpConversation(("10.0.0.1", port)).handshake()
    for by_client in (True, False):
        conversation.send(h.establish_connection(), by_client=by_client)
    for by_client in (True, False):
        conversation.send(h.connection_parameters(), by_client=by_client)
    for number in range(1, count):
        session = h.session_header(sent=number + (number >= JUMP))
        conversation.send(h.user_message(session=session, properties=h.properties_header(body=b"x" * 300)))
    return conversation.frames


def judged(paths: list[Path]) -> Counter[Any]:
    """The rows that a lake of captures has, by the generic reader."""
    items = msmqwire.dissect([str(path) for path in paths])
    return Counter(
        (item.time_ns, item.kind, " ".join(dict.fromkeys(one.id for one in item.findings)) or None)
        for item in items
    )


def rows(lake: Path) -> Counter[Any]:
    table = msmqwire.read_lake(lake).to_table(columns=["time_ns", "kind", "finding_ids"])
    return Counter(tuple(row.values()) for row in table.to_pylist())


@pytest.fixture
def captures(tmp_path: Path) -> list[Path]:
    """Two captures, of which the second begins inside a session, with the message `JUMP`."""
    frames, before = talk(5000, 12), len(talk(5000, JUMP))
    parts = frames[:before], c.merged(frames[before:], talk(5001))
    return [write_capture(tmp_path / f"{number}.pcap", part) for number, part in enumerate(parts)]


@pytest.mark.parametrize("splits", ["walked", "searched"])
@pytest.mark.parametrize("workers", [1, 2])
def test_findings_are_those_of_one_reader(tmp_path, captures, splits, workers):
    lake = tmp_path / "lake"
    done = msmqwire.write_lake(
        captures, lake, findings=True, split_size=SMALL, overlap=0, splits=splits, workers=workers
    )
    assert done.rows == sum(judged(captures).values())
    assert rows(lake) == judged(captures)
    assert judged(captures) != judged(captures[:1]) + judged(captures[1:])  # so the beginning matters
    assert len(state_of(lake).parts) == 1


def test_whatever_is_new_has_all_captures_read_again(tmp_path, captures):
    lake = tmp_path / "lake"
    msmqwire.write_lake(captures[:1], lake, findings=True, overlap=0)
    assert rows(lake) == judged(captures[:1])
    added = msmqwire.write_lake(captures, lake, overlap=0)  # its columns are meant, with that of findings
    assert (added.captures_read, added.rows_replaced) == (2, sum(judged(captures[:1]).values()))
    assert rows(lake) == judged(captures)
    assert msmqwire.write_lake(captures, lake, findings=True).rows == 0
    third = tmp_path / "3.pcap"
    shutil.copy(captures[0], third)
    msmqwire.write_lake([*captures, third], lake, overlap=0)
    assert rows(lake) == judged([*captures, third])
    write_capture(third, [*talk(5002), *talk(5003)])
    msmqwire.write_lake([*captures, third], lake, overlap=0)
    assert rows(lake) == judged([*captures, third])


def test_a_file_that_has_grown_is_read_from_its_beginning(tmp_path):
    capture, lake, frames = tmp_path / "one.pcap", tmp_path / "lake", talk(5000, 20)
    write_capture(capture, frames[:20])
    msmqwire.write_lake(capture, lake, findings=True, split_size=SMALL, overlap=0)
    write_capture(capture, frames)
    msmqwire.write_lake(capture, lake, split_size=SMALL, overlap=0)
    assert rows(lake) == judged([capture])


def test_captures_by_themselves_are_read_alone(tmp_path, captures):
    lake, other = tmp_path / "lake", write_capture(tmp_path / "other.pcap", talk(5005))
    msmqwire.write_lake(captures, lake, findings=True)
    added = msmqwire.write_lake(other, lake, findings=True)
    assert (added.captures_read, added.rows_replaced) == (1, 0)
    assert rows(lake) == judged(captures) + judged([other])


def test_conditions_on_findings_need_the_beginning_too(tmp_path, captures):
    lake = tmp_path / "lake"
    where = "finding_ids is not null"
    msmqwire.write_lake(captures, lake, columns=["time"], where=where, split_size=SMALL, overlap=0)
    found = sum(count for (_, _, ids), count in judged(captures).items() if ids)
    assert msmqwire.read_lake(lake).count_rows() == found > 0


def test_a_lake_has_findings_from_its_first_run_on_or_never(tmp_path, captures):
    lake = tmp_path / "lake"
    msmqwire.write_lake(captures, lake)
    assert "finding_ids" not in msmqwire.read_lake(lake).schema.names
    with pytest.raises(LakeMismatch, match="begun without findings: leave them out"):
        msmqwire.write_lake(captures, lake, findings=True)
    with pytest.raises(LakeMismatch, match="begun with columns"):
        msmqwire.write_lake(captures, lake, columns=["time"], findings=True)


@pytest.mark.parametrize(
    "asked", [{"findings": True}, {"columns": ["finding_ids"]}, {"where": "finding_ids is null"}]
)
def test_exact_splits_with_findings_are_refused(tmp_path, captures, asked):
    with pytest.raises(InvalidArgument, match="leave out one of the two"):
        msmqwire.write_lake(captures, tmp_path / "lake", splits="exact", **asked)
    assert not (tmp_path / "lake").exists()


def test_a_part_inside_a_capture_is_refused(captures):
    window = whole_file(str(captures[0]))
    first = Part((window,), 0, (), 0, frozenset(), is_only=True, is_last=True)
    (batch,) = PartReader().batches(first, ["finding_ids"])
    assert pc.count(batch.column(0)).as_py() > 0
    second = Part((window,), 1, (), 0, frozenset(), is_only=False, is_last=True)
    exact = ExactPart((window,), b"", is_last=True)
    for part in (second, exact):
        with pytest.raises(InvalidArgument, match="leave out finding_ids"):
            next(PartReader().batches(part, ["finding_ids"]))
        with pytest.raises(InvalidArgument, match="leave out finding_ids"):
            next(PartReader().batches(part, ["kind"], conditions_of("finding_ids is null")))
