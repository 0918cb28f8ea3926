"""The column of findings has the ids of the findings of each item, for any capture."""

from __future__ import annotations

import io
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import hypothesis.strategies as st
import pytest
from hypothesis import given

import msmqwire
from msmqwire.analysis.dissection import dissect
from msmqwire.errors import InvalidArgument
from msmqwire.tables import column_workers, decoder, record_batches, row_judge
from msmqwire.tables.scanning import row_buffer
from tests.property.tables.test_columnar import SIZES, captures, file_of
from tests.property.tables.test_items import FILES, SMALL, sessions
from tests.support import captures as c
from tests.support.capture.both_readers import streams
from tests.support.paths import EXAMPLES

NAMES = ["frame", "kind", "src", "finding_ids", "error"]


def expected(files: list[bytes], **options: Any) -> list[tuple[Any, ...]]:
    """The rows by the generic reader."""
    items = dissect(streams(files), lint=True, **options)
    items.warns = False
    return [
        (
            item.frames[-1], item.kind, item.src,
            " ".join(dict.fromkeys(finding.id for finding in item.findings)) or None,
            item.error.why if item.error else item.reason or None,
        )
        for item in items
    ]  # fmt: skip


def columnar(files: list[bytes], *, workers: int = 1, sizes: Any = None, **options: Any) -> Any:
    dissection = dissect(streams(files), lint=True, **options)
    with ExitStack() as stack:
        for name, size in (sizes or {}).items():
            stack.enter_context(mock.patch.object(row_buffer, name, size))
        if sizes:
            stack.enter_context(mock.patch.object(decoder, "FRAMES", 1))
            stack.enter_context(mock.patch.object(row_judge, "_BEFORE", 2))
            stack.enter_context(mock.patch.object(row_judge, "_SESSIONS", 1))
            stack.enter_context(mock.patch.object(column_workers, "BLOCKS_OF_TURN", 2))
        rows = sizes.get("ROWS", 1000) if sizes else 1000
        batches = list(record_batches(dissection, columns=NAMES, batch_rows=rows, workers=workers))
    found = []
    for batch in batches:
        batch.validate(full=True)
        found += [tuple(row.values()) for row in batch.to_pylist()]
    return found


@given(frames=captures(), sizes=SIZES, workers=st.sampled_from([1, 2]), data=st.data())
def test_any_capture_has_the_ids_of_its_findings(
    frames: list[c.Frame], sizes: dict[str, int], workers: int, data: Any
) -> None:
    files = [file_of(data, frames)]
    assert columnar(files, sizes=sizes, workers=workers) == expected(files)


@given(
    talks=st.lists(sessions(), min_size=1, max_size=3), sizes=st.sampled_from([None, SMALL]),
    workers=st.sampled_from([1, 2]), cut=st.integers(0, 60), flush=st.booleans(),
)  # fmt: skip
def test_any_sessions_in_two_files_have_the_ids_of_findings(
    talks: list[list[c.Frame]], sizes: dict[str, int] | None, workers: int, cut: int, flush: bool
) -> None:
    frames = c.merged(*talks)
    files = [c.pcapng_bytes(part) for part in (frames[:cut], frames[cut:])]
    assert columnar(files, sizes=sizes, workers=workers, flush=flush) == expected(files, flush=flush)


@pytest.mark.parametrize("path", FILES, ids=[f"{path.parent.name}/{path.name}" for path in FILES])
def test_captures_of_the_project_have_the_ids_of_findings(path: Path) -> None:
    files = [path.read_bytes()]
    assert columnar(files) == expected(files)
    assert columnar(files, workers=3) == expected(files)


def test_with_keys_the_findings_are_those_of_the_items():
    """There are findings about signatures then, which only the generic reader has."""
    files = [(EXAMPLES / "protected.pcap").read_bytes()]
    options = {"certificates": [(EXAMPLES / "keys" / "alice.crt").read_bytes()]}
    assert columnar(files, **options) == expected(files, **options)


def test_conditions_on_findings_and_rows_left_out_are_judged():
    """A row that a condition leaves out belongs to its session all the same."""
    data = (EXAMPLES / "session.pcap").read_bytes()
    every = expected([data])
    ids = [row[3] for row in every if row[1] == "UserMessage"]
    table = msmqwire.read_capture(
        io.BytesIO(data), columns=["finding_ids"], where=[("kind", "==", "UserMessage")]
    )
    assert table.column(0).to_pylist() == ids
    assert any(ids)
    found = msmqwire.read_capture(io.BytesIO(data), columns=["kind"], where="finding_ids is not null")
    assert found.column(0).to_pylist() == [row[1] for row in every if row[3]]
    one = next(row[3] for row in every if row[3]).split()[0]
    part = msmqwire.read_capture(io.BytesIO(data), columns=["kind"], where=f"finding_ids contains '{one}'")
    assert part.num_rows == sum(one in (row[3] or "").split() for row in every)


def test_findings_are_refused_where_sessions_do_not_begin():
    data = (EXAMPLES / "session.pcap").read_bytes()
    for asked in ({"columns": ["finding_ids"]}, {"columns": ["kind"], "where": "finding_ids is null"}):
        with pytest.raises(InvalidArgument, match="leave out warm_up"):
            msmqwire.read_capture([io.BytesIO(data), io.BytesIO(data)], warm_up=1, **asked)
    with pytest.raises(InvalidArgument, match="lint is off"):
        record_batches(dissect(io.BytesIO(data), lint=False), columns=["finding_ids"])
