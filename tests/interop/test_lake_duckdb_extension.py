"""Lakes read by the extension ``delta`` of DuckDB, which there is for another version than is used here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import msmqwire
from tests.support.capture.lakes import traffic, write_capture
from tests.support.nightly import nightly
from tests.support.patience import limit

PACKAGES = ("duckdb==1.4.4", "duckdb-ext-delta==1.4.4.*")
COLUMNS = ("time_ns", "kind", "src", "src_port", "message_id", "label", "part")
PROGRAM = """
import glob, json, sys, sysconfig
import duckdb
(extension,) = glob.glob(sysconfig.get_paths()["purelib"] + "/**/delta.duckdb_extension", recursive=True)
db = duckdb.connect()
db.execute(f"LOAD '{extension}'")
columns = ", ".join(sys.argv[2:])
print(json.dumps(db.execute(f"SELECT {columns} FROM delta_scan('{sys.argv[1]}')").fetchall()))
"""


@nightly
@pytest.mark.parametrize("by", [None, "destination"])
def test_the_extension_of_duckdb_has_the_same_rows(tmp_path: Path, by: str | None) -> None:
    queues = [r"OS:alpha\private$\orders", "TCP:1.2.3.4\\q;?*=%~", r"OS:größe\№ 5"]
    captures = [
        write_capture(tmp_path / f"{n}.pcap", traffic(9, port=50_000 + n, queues=queues)) for n in range(3)
    ]
    lake, environment = tmp_path / "lake", tmp_path / "environment"
    for count in (1, 3):
        msmqwire.write_lake(captures[:count], lake, by=by)  # type: ignore[arg-type]
    python = environment / "bin" / "python"
    for command in (
        [sys.executable, "-m", "venv", environment],
        [python, "-m", "pip", "install", "--quiet", *PACKAGES],
    ):
        subprocess.run(list(map(str, command)), check=True, timeout=limit(300), capture_output=True)
    ran = subprocess.run(
        [str(python), "-c", PROGRAM, str(lake), *COLUMNS],
        check=False, timeout=limit(120), capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    rows = msmqwire.read_lake(lake).to_table(columns=list(COLUMNS)).to_pylist()
    assert Counter(map(tuple, json.loads(ran.stdout))) == Counter(tuple(row.values()) for row in rows)
