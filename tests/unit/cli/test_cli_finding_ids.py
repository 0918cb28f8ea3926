"""The column of findings from ``msmqwire dissect``."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow.ipc
import pyarrow.parquet
import pytest
from click.testing import CliRunner

import msmqwire
from msmqwire.cli import app
from tests.support.paths import EXAMPLES

HOSTILE = EXAMPLES / "hostile.pcapng"
RUNNER = CliRunner()


def dissect(*arguments: object) -> Any:
    return RUNNER.invoke(app, ["dissect", str(HOSTILE), *map(str, arguments)])


def expected(kind: str | None = None) -> list[str | None]:
    items = [item for item in msmqwire.dissect(HOSTILE) if kind in (None, item.kind)]
    return [" ".join(dict.fromkeys(found.id for found in item.findings)) or None for item in items]


def test_columns_of_each_format_have_the_ids(tmp_path: Path) -> None:
    assert any(expected())
    options = ["--columns", "kind,finding_ids"]
    text = dissect("--csv", *options).stdout
    assert [row["finding_ids"] or None for row in csv.DictReader(io.StringIO(text))] == expected()
    assert dissect("--parquet", tmp_path / "p.parquet", *options).exit_code == 0
    table = pyarrow.parquet.read_table(tmp_path / "p.parquet")
    assert table.column("finding_ids").to_pylist() == expected()
    assert dissect("--arrow", tmp_path / "a.arrow", *options, "--workers", 2).exit_code == 0
    table = pyarrow.ipc.open_file(tmp_path / "a.arrow").read_all()
    assert table.column("finding_ids").to_pylist() == expected()
    assert "finding_ids" not in dissect("--csv").stdout.splitlines()[0]


@pytest.mark.parametrize("options", [["--kind", "Malformed"], ["--kind", "Malformed", "--host", "10.0.0.1"]])
def test_filters_leave_the_ids_of_the_rest(options: list[str]) -> None:
    text = dissect("--csv", "--columns", "kind,finding_ids", *options).stdout
    found = [row["finding_ids"] or None for row in csv.DictReader(io.StringIO(text))]
    items = [json.loads(line) for line in dissect("--json", *options).stdout.splitlines()]
    ids = [" ".join(dict.fromkeys(one["id"] for one in item["findings"])) or None for item in items]
    assert found == ids
    assert len(ids) <= len(expected("Malformed"))


def test_conditions_on_the_ids_have_packets_judged() -> None:
    where = ["--where", "finding_ids contains 'ATTACK'"]
    wanted = sum("ATTACK" in (ids or "") for ids in expected())
    assert wanted
    assert len(dissect("--json", *where).stdout.splitlines()) == wanted
    assert len(dissect("--csv", "--columns", "kind", *where).stdout.splitlines()) == wanted + 1


def test_no_lint_leaves_nothing_to_show() -> None:
    for options in (["--csv", "--columns", "finding_ids"], ["--where", "finding_ids is not null"]):
        done = dissect("--no-lint", *options)
        assert done.exit_code == 2
        assert "there are no finding_ids with --no-lint" in done.stderr
