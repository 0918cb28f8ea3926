"""Record batches of captures whose packets are observed as well: those of a reading for the batches alone."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from msmqwire.analysis.dissection import dissect, scan
from msmqwire.analysis.dissection.item import Item
from msmqwire.analysis.fate import KINDS
from msmqwire.errors import CaptureWarning
from msmqwire.tables import chosen_columns, record_batches
from msmqwire.tables.arrow.batch import BatchMaker
from msmqwire.tables.columns import USUAL
from msmqwire.tables.filters import Filter
from msmqwire.tables.observed import observed_batches
from msmqwire.tables.scanning import row_buffer
from tests.property.analysis.test_row_groups import reader_of
from tests.property.tables.test_columnar import SIZES, captures
from tests.property.tables.test_items import FILES, generic, sessions
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.capture.both_readers import streams
from tests.support.capture.unread_frames import UNREAD


def table_of(batches: Any) -> Any:
    found = list(batches)
    return pa.Table.from_batches(found).combine_chunks() if found else None


def assert_same(files: list[bytes], sizes: dict[str, int], where: Any = (), batch_rows: int = 4) -> None:
    names = [column.name for column in USUAL]
    options = {"batch_rows": batch_rows, "body_limit": 8}
    expected = table_of(record_batches(dissect(streams(files)), columns=names, where=where, **options))
    dissection, reader = reader_of(files, sizes, lint=True)
    maker = BatchMaker(chosen_columns(names), Filter(where), *options.values(), dissection.examiner)
    batches, seen = [], []
    for part in reader.parts_and_batches(maker):
        if isinstance(part, pa.RecordBatch):
            batches.append(part)
        elif isinstance(part, Item):
            seen.append((part.file, part.frames, part.kind, part.findings))
        else:
            items = map(part.item, part.within)
            seen += [(item.file, item.frames, item.kind, item.findings) for item in items]
    assert table_of(batches) == expected
    assert seen == [(item.file, item.frames, item.kind, item.findings) for item in generic(files)[1]]


@given(frames=captures(), more=sessions(), sizes=SIZES)
def test_any_capture_has_the_same_batches(frames: list[c.Frame], more: Any, sizes: dict[str, int]) -> None:
    files = [c.pcap_bytes(frames), c.pcapng_bytes(more), c.pcap_bytes(frames[:20])]
    assert_same(files, sizes)
    assert_same(files, sizes, [("kind", "in", KINDS)], 3)


@pytest.mark.parametrize("path", FILES, ids=[f"{path.parent.name}/{path.name}" for path in FILES])
def test_captures_of_the_project_have_the_same_batches(path: Any) -> None:
    assert_same([path.read_bytes()], {})


@pytest.mark.parametrize("size_min", [0, 1 << 40], ids=["by the scan", "packet by packet"])
def test_packets_are_observed_before_their_rows(tmp_path, monkeypatch, size_min):
    monkeypatch.setattr(scan, "SIZE_MIN", size_min)
    monkeypatch.setattr(row_buffer, "ROWS", 2)
    talk = c.TcpConversation().handshake()
    for _ in range(5):
        talk.send(h.user_message()).send(h.establish_connection())
    unread = c.Frame(talk.frames[-1].time_ns, UNREAD["NCP over IPX"][1])
    path = tmp_path / "a.pcap"
    path.write_bytes(c.pcap_bytes([*talk.frames, unread]))
    frames: list[int] = []

    def observe(part: Any) -> None:
        items = [part] if isinstance(part, Item) else map(part.item, part.within)
        frames.extend(item.frames[-1] for item in items)

    columns, test = chosen_columns(["frame", "kind"]), Filter([("kind", "==", "UserMessage")])

    def read() -> None:
        for batch in observed_batches(dissect(path), observe, columns, test, batch_rows=2, body_limit=8):
            assert {*batch["kind"].to_pylist()} == {"UserMessage"}
            assert {*batch["frame"].to_pylist()} <= {*frames}

    with pytest.warns(CaptureWarning, match="NCP over IPX") as warned:
        read()
    assert len(warned) == 1
    assert len(frames) == 10
