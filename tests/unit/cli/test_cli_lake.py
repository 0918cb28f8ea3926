"""``msmqwire lake``: output and exit statuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import msmqwire
from msmqwire.cli import app
from msmqwire.errors import UnsupportedStore
from tests.support.capture.lakes import expected_rows, named_rows, state_file, traffic, write_capture
from tests.support.patience import limit

RUNNER = CliRunner()


@pytest.fixture
def captures(tmp_path: Path) -> Path:
    """A folder of two captures."""
    path = tmp_path / "captures"
    path.mkdir()
    for number in range(2):
        write_capture(path / f"{number}.pcap", traffic(3, port=50_000 + number))
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    result = RUNNER.invoke(app, ["lake", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def test_what_was_done(captures, tmp_path):
    out = tmp_path / "lake"
    status, output, errors = run(captures, "--out", out, "--by", "kind")
    assert (status, output) == (0, "")
    assert errors == "2 captures read, 0 unchanged: 10 rows in 4 files\n"
    status, output, _ = run(captures, "--out", out, "--by", "kind", "--json")
    assert status == 0
    assert json.loads(output) == {
        "number": 1, "captures_read": 0, "captures_unchanged": 2, "rows": 0, "files": 0, "rows_replaced": 0,
        "damages": [], "frames_not_read": [], "version": 0,
    }  # fmt: skip
    assert named_rows(out) == expected_rows(sorted(captures.iterdir()))


def test_conditions_and_columns(captures, tmp_path):
    out = tmp_path / "lake"
    options = ["--kind", "usermessage", "--columns", "label,body", "--body-limit", 3, "--from", "2023-01-01"]
    assert run(captures, "--out", out, *options)[0] == 0
    rows = msmqwire.read_lake(out).to_table().to_pylist()
    assert sorted(row["label"] for row in rows) == ["0", "0", "1", "1", "2", "2"]
    assert {row["body"] for row in rows} == {bytes(3)}


def test_a_capture_that_is_cut_off(captures, tmp_path):
    content = (captures / "1.pcap").read_bytes()
    (captures / "1.pcap").write_bytes(content[:-9])
    status, _, errors = run(captures, "--out", tmp_path / "lake")
    assert status == 65
    assert "1.pcap" in json.loads(errors.splitlines()[0])["error"]
    (captures / "1.pcap").write_bytes(content)
    assert run(captures, "--out", tmp_path / "lake")[0] == 0


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["--by", "src"], 2),
        (["--columns", "colour"], 2),
        (["--kind", "colour"], 2),
        (["--from", "yesterday"], 2),
        (["--workers", "0"], 2),
        (["--key", "none.pem"], 66),
        (["--key", "/usr"], 65),
    ],
)
def test_wrong_usage(captures, tmp_path, options, status):
    assert run(captures, "--out", tmp_path / "lake", *options)[0] == status
    assert not (tmp_path / "lake").exists()


def test_refusals(captures, tmp_path):
    out = tmp_path / "lake"
    assert run(tmp_path / "none.pcap", "--out", out)[0] == 66
    assert run(captures, "--out", out)[0] == 0
    status, _, errors = run(captures, "--out", out, "--by", "kind")
    assert status == 2
    assert "begun with by" in json.loads(errors)["error"]
    state_file(out).write_text("{")
    assert run(captures, "--out", out)[0] == 65
    occupied = tmp_path / "file"
    occupied.write_text("")
    for path in (occupied, occupied / "lake"):
        program = [sys.executable, "-m", "msmqwire", "lake", captures, "--out", path]
        ran = subprocess.run(program, capture_output=True, timeout=limit(120), check=False, text=True)
        assert ran.returncode == 74
        assert json.loads(ran.stderr)["error"].startswith(f"{path}")
        assert "Not a directory" in ran.stderr


@pytest.mark.parametrize("url", ["ftp://bucket/lake", "http://server/lake"])
def test_urls_that_no_lake_has(captures, tmp_path, monkeypatch, url):
    monkeypatch.chdir(tmp_path)
    status, _, errors = run(captures, "--out", url)
    assert status == 2
    (line,) = errors.splitlines()
    assert url in json.loads(line)["error"]
    with pytest.raises(UnsupportedStore, match=url.partition(":")[0]):
        msmqwire.read_lake(url)
    assert [path.name for path in tmp_path.iterdir()] == ["captures"]


def test_a_lake_at_the_url_of_a_local_folder(captures, tmp_path):
    out = tmp_path / "a lake"
    assert run(captures, "--out", out.as_uri())[0] == 0
    assert msmqwire.read_lake(out.as_uri()).count_rows() == msmqwire.read_lake(out).count_rows() == 10


def test_exact_splits(captures, tmp_path):
    out = tmp_path / "lake"
    assert run(captures, "--out", out, "--splits", "exact")[0] == 0
    rows = msmqwire.read_lake(out).to_table(columns=["file", "frame", "stream"])
    expected = msmqwire.read_capture(str(captures), columns=["file", "frame", "stream"])
    assert sorted(map(repr, rows.to_pylist())) == sorted(map(repr, expected.to_pylist()))
    assert run(captures, "--out", out)[::2] == (0, "0 captures read, 2 unchanged: 0 rows in 0 files\n")
    status, _, errors = run(captures, "--out", out, "--splits", "walked")
    assert (status, "splits" in errors) == (2, True)
    assert run(captures, "--out", tmp_path / "other", "--splits", "guessed")[0] == 2


def test_findings(captures, tmp_path):
    """``--findings`` adds their ids, also to the lake as it grows; exact splits refuse it."""
    out = tmp_path / "lake"
    assert run(captures, "--out", out, "--findings", "--columns", "kind")[0] == 0
    write_capture(captures / "2.pcap", traffic(3, port=50_002))
    assert run(captures, "--out", out)[::2] == (
        0, "3 captures read, 0 unchanged: 15 rows in 1 file, 10 replaced\n",
    )  # fmt: skip
    ids = msmqwire.read_lake(out).to_table(columns=["finding_ids"]).column(0).to_pylist()
    items = msmqwire.dissect([str(path) for path in sorted(captures.iterdir())])
    expected = [" ".join(dict.fromkeys(found.id for found in item.findings)) or None for item in items]
    assert sorted(map(str, ids)) == sorted(map(str, expected))
    assert any(ids)
    status, _, errors = run(captures, "--out", tmp_path / "exact", "--findings", "--splits", "exact")
    assert status == 2
    assert "leave out one of the two" in json.loads(errors)["error"]
