"""``msmqwire report``: its output, its exit statuses, what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from msmqwire.cli import app
from tests.support.paths import EXAMPLES
from tests.support.running import command as ran


def report(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["report", *arguments])


def test_it_writes_the_page_and_says_what_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "orders.html"
    result = report(str(EXAMPLES / "session.pcap"), "-o", str(path), "--title", "Orders <1>")
    size = path.stat().st_size
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"{path}: 8 packets, 4 findings, {size:,} bytes\n"
    assert "<title>Orders &lt;1&gt;</title>" in path.read_text(encoding="utf-8")


def test_the_name_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert report(str(EXAMPLES / "session.pcap")).exit_code == 0
    assert "<title>session.pcap</title>" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_damage_ends_with_65_and_a_report_of_the_rest(tmp_path: Path) -> None:
    cut, path = tmp_path / "cut.pcap", tmp_path / "report.html"
    cut.write_bytes((EXAMPLES / "session.pcap").read_bytes()[:-10])
    result = report(str(cut), "-o", str(path))
    assert result.exit_code == 65
    said, error = result.stderr.splitlines()
    assert said.startswith(f"{path}: 8 packets")
    assert json.loads(error)["error"].startswith(str(cut))
    assert "Damage of the files" in path.read_text(encoding="utf-8")


def test_a_missing_capture_ends_with_66_and_no_report(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    result = report(str(tmp_path / "missing.pcap"), "-o", str(path))
    assert result.exit_code == 66
    assert "missing.pcap" in json.loads(result.stderr)["error"]
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_can_not_be_written_ends_with_74(tmp_path: Path) -> None:
    path = str(tmp_path / "no" / "report.html")
    run = ran("report", EXAMPLES / "session.pcap", "-o", path)  # a process, as this closes standard output
    assert run.error(74)["error"] == f"{path}: No such file or directory"


def test_limits_and_findings_as_asked(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    options = ("--packets", "3", "--details", "1", "--no-lint")
    result = report(str(EXAMPLES / "netware.pcap"), "-o", str(path), *options)
    assert result.exit_code == 0
    assert "76 packets, 0 findings" in result.stderr
    text = path.read_text(encoding="utf-8")
    assert "73 packets are counted, but not in the table of packets: it has the first 3" in text
    assert "Fields and bytes are shown of the first 1 packet," in text
