"""CSV that jobs write: as for a spreadsheet, or as the texts are."""

from __future__ import annotations

import csv
from argparse import Namespace
from pathlib import Path

import pytest

from msmqwire.tables.spreadsheet import escaped
from spark_udfs.jobs import common

TEXTS = [
    "=1+1", "+1", "-1", "@a", "\tx", "\rx", "\n=1", "  =1+1", "\uff1d1", "\0=1", "'x", "'", "order", " x ",
    'a",=1+1,"', "a\\\",=1+1", "a\\", "x,=1", "x\n=1", "x\r=1", "", "é",
]  # fmt: skip


@pytest.mark.parametrize("form", ["csv", "csv-raw"])
def test_texts_of_a_hostile_sender(spark, tmp_path: Path, form: str) -> None:
    args = Namespace(out=str(tmp_path / "out"), overwrite=False)
    rows = spark.createDataFrame(
        [(at, text, -1) for at, text in enumerate(TEXTS)], "place int, text string, number long"
    )
    common.write(rows.coalesce(1), args, form=form)
    (part,) = (tmp_path / "out").glob("*.csv")
    with part.open(encoding="utf-8", newline="") as file:
        cells = list(csv.reader(file))
    assert cells[0] == ["place", "text", "number"]
    shown = [escaped(text) if form == "csv" else text for text in TEXTS]
    assert cells[1:] == [[str(at), text, "-1"] for at, text in enumerate(shown)]
    table = common.written(spark, args, rows.schema, form=form)
    assert [row.text or "" for row in table.orderBy("place").collect()] == shown
