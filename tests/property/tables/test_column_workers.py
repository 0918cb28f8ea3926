"""Columns made by several threads are those of one, in the same order, whatever goes wrong in any of them."""

from __future__ import annotations

import io
import random
import threading
import time
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings

import msmqwire
from msmqwire.tables import arrow_schema, column_workers, record_batches
from msmqwire.tables.arrow.batch import BatchMaker
from msmqwire.tables.columns import UNJUDGED
from msmqwire.tables.compiled.scan_arrays import RowBlock
from msmqwire.tables.scanning import row_buffer
from tests.property.tables.test_columnar import captures, file_of, streams
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.protected_captures import ALICE, QM_KEY
from tests.support.paths import EXAMPLES
from tests.support.running import until

NAMES = [column.name for column in UNJUDGED]
SIZES = st.sampled_from([{}, {"CHUNK": 256, "ARENA": 64, "ROWS": 3}, {"CHUNK": 2000, "ROWS": 1}])


def decoded(files: list[bytes], workers: int, **options: Any) -> tuple[pa.Table, list[str], int]:
    dissection = msmqwire.dissect(streams(files), lint=False)
    batches = list(record_batches(dissection, columns=NAMES, workers=workers, **options))
    for batch in batches:
        batch.validate(full=True)
    table = pa.Table.from_batches(batches, arrow_schema(UNJUDGED))
    return table, [str(error) for error in dissection.errors], dissection.records


@given(
    frames=captures(),
    workers=st.integers(2, 4),
    batch_rows=st.sampled_from([1, 3, 1000]),
    sizes=SIZES,
    data=st.data(),
)
@settings(max_examples=max(12, settings.default.max_examples // 5))
def test_any_capture_gives_the_same_rows(
    frames: list[c.Frame], workers: int, batch_rows: int, sizes: dict[str, int], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(frames)))
    files = [file_of(data, part) for part in (frames[:cut], frames[cut:])]
    with ExitStack() as stack:
        for name, size in sizes.items():
            stack.enter_context(mock.patch.object(row_buffer, name, size))
        expected = decoded(files, 1, batch_rows=batch_rows)
        actual = decoded(files, workers, batch_rows=batch_rows)
    assert actual == expected


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.pcap*")), ids=lambda path: path.name)
def test_examples_give_the_same_rows(path: Path) -> None:
    options: dict[str, Any] = {"columns": NAMES, "keys": QM_KEY, "certificates": ALICE, "where": LATER}
    with warnings.catch_warnings(), mock.patch.multiple(row_buffer, CHUNK=3000, ROWS=5):
        warnings.simplefilter("ignore", UserWarning)
        expected = msmqwire.read_capture(path, **options)
        assert msmqwire.read_capture(path, workers=3, **options) == expected
        with msmqwire.read_capture(path, workers=2, batch_rows=7, **options) as reader:
            batches = list(reader)
    assert pa.Table.from_batches(batches, expected.schema) == expected
    assert expected.num_rows > 5
    assert max(batch.num_rows for batch in batches) <= 7


LATER = [("kind", "!=", "SessionAck")]


def capture(messages: int) -> bytes:
    """A connection with as many messages, out of order here and there."""
    talk = c.TcpConversation((c.CLIENT, 50_000), (c.SERVER, 1801), mss=600)
    talk.handshake()
    for number in range(messages):
        talk.send(h.user_message(properties=h.properties_header(label=f"{number}", body=b"b" * 900)))
    return c.pcap_bytes(c.disorder(talk.frames, random.Random(7), reorder=0.05))


def column_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("msmqwire-columns")]


def test_a_worker_error_reaches_the_caller_and_ends_threads() -> None:
    write, calls = BatchMaker._write, []

    def fails(self: BatchMaker, block: RowBlock, extras: Any, found: Any) -> None:
        calls.append(len(block.rows))
        if len(calls) == 5:
            raise OSError("no more")
        write(self, block, extras, found)

    with (
        mock.patch.multiple(row_buffer, CHUNK=4000, ROWS=3),
        mock.patch.object(BatchMaker, "_write", fails),
        pytest.raises(OSError, match="no more"),
    ):
        decoded([capture(300)], 2, batch_rows=1000)
    assert not column_threads()


def test_a_reader_that_is_not_read_to_its_end_ends_its_threads() -> None:
    dissection = msmqwire.dissect(streams([capture(200)]), lint=False)
    with mock.patch.multiple(row_buffer, CHUNK=4000, ROWS=3):
        batches = record_batches(dissection, columns=NAMES, batch_rows=10, workers=2)
        assert next(batches).num_rows == 10
        assert len(column_threads()) == 2
        batches.close()  # type: ignore[attr-defined]
    assert not column_threads()


def test_the_scan_waits_for_the_caller() -> None:
    """What is read ahead is a few turns, not the whole capture."""
    scanned, scan = list[int](), column_workers.ColumnWorkers._scan

    def counted(self: column_workers.ColumnWorkers) -> Any:
        blocks = scan(self)
        scanned.append(len(blocks))
        return blocks

    turns = 2 * column_workers.TURNS_OF_WORKER
    with (
        mock.patch.multiple(row_buffer, CHUNK=4000, ROWS=3),
        mock.patch.object(column_workers.ColumnWorkers, "_scan", counted),
    ):
        dissection = msmqwire.dissect(streams([capture(300)]), lint=False)
        batches = record_batches(dissection, columns=NAMES, workers=2)
        first = next(batches)
        until(lambda: len(scanned) >= turns, "the turns that are read ahead")
        time.sleep(0.2)  # in which no more are scanned
        assert len(scanned) == turns
        assert max(scanned) <= column_workers.BLOCKS_OF_TURN
        rows = first.num_rows + sum(batch.num_rows for batch in batches)
    assert rows == 300
    assert len(scanned) > 3 * turns


def test_a_scan_error_reaches_the_caller_after_earlier_rows() -> None:
    class Failing(io.BytesIO):
        name = "failing"

        def readinto(self, buffer: Any) -> int:
            if self.tell() > 100_000:
                raise OSError("the disk is gone")
            return super().readinto(buffer)

        def read(self, size: int | None = -1) -> bytes:
            return super().read(min(size or 0, 10_000))

    rows = list[int]()
    with mock.patch.multiple(row_buffer, CHUNK=4000, ROWS=3):
        dissection = msmqwire.dissect([Failing(capture(300))], lint=False)
        batches = record_batches(dissection, columns=NAMES, workers=2)
        with pytest.raises(OSError, match="the disk is gone"):
            rows.extend(batch.num_rows for batch in batches)
    assert 50 < sum(rows) < 150
    assert not column_threads()


@pytest.mark.parametrize("workers", [0, -1])
def test_no_worker_is_an_error_at_once(workers: int) -> None:
    with pytest.raises(ValueError, match=f"workers: at least one is wanted, not {workers}"):
        msmqwire.read_capture([], workers=workers)
