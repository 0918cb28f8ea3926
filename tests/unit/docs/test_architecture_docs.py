"""The page on the architecture: files and functions that exist, and the way of a packet as it is today."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from msmqwire.qm.model.tables import Table
from msmqwire.qm.sim.driver_mistakes import DRIVER_MISTAKES
from msmqwire.qm.store import open_store
from msmqwire.service.driver import Driver
from tests.support.paths import ROOT
from tools.pages.packet_path import PART, TARGET, main

PAGE = TARGET.read_text(encoding="utf-8")
WRITTEN = PAGE.partition(f"<!-- {PART} -->")[0]
NUMBERS = {5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine", 10: "ten", 11: "eleven", 12: "twelve"}


def named_files() -> list[tuple[str, Path | None]]:
    """Each file that the page names, and where it is; a name without a folder is beside the one before it."""
    files: list[tuple[str, Path | None]] = []
    folder = ROOT
    for name in re.findall(r"`([\w/]+\.py)`", WRITTEN):
        places = (
            (ROOT / name, ROOT / "msmqwire" / name)
            if "/" in name
            else (folder / name, ROOT / "msmqwire" / name)
        )
        path = next((place for place in places if place.is_file()), None)
        folder = folder if path is None else path.parent
        files.append((name, path))
    return files


def test_every_file_that_it_names_exists() -> None:
    files = named_files()
    assert len(files) >= 60
    assert [name for name, path in files if path is None] == []


def test_every_method_that_it_names_exists() -> None:
    methods = {name for name, _ in inspect.getmembers(Driver, inspect.isroutine)}
    named = set(re.findall(r"`Driver\.(\w+)`", WRITTEN))
    assert named
    assert named <= methods
    assert {"call", "defer_commit", "read", "notify"} <= methods


def test_it_counts_the_mistakes_that_are_planted_in_the_driver() -> None:
    count = NUMBERS[len(DRIVER_MISTAKES)]
    assert f"`qm/sim/driver_mistakes.py` plants {count} in the driver and the carrier" in WRITTEN


def test_the_way_of_a_packet_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().err


def test_it_is_printed_and_another_one_fails_the_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert printed.strip() in PAGE
    files = re.findall(r"^\d+\. `([\w/]+\.py)`, `", printed, re.MULTILINE)
    assert printed.startswith(f"{len(files)} files, ")
    assert len(files) == len(set(files))
    assert files[:3] == ["qm/runtime/connection.py", "qm/runtime/transport.py", "service/driver.py"]
    assert files.index("qm/protocols/binary/receiving.py") < files.index("service/store/sqlite.py")
    page = tmp_path / "architecture.md"
    page.write_text(PAGE.replace(". `service/driver.py`, ", ". `service/other.py`, "), encoding="utf-8")
    assert main(["--check"], page) == 1
    assert "run python tools/pages/packet_path.py --write" in capsys.readouterr().err
    assert main(["--write"], page) == main(["--check"], page) == 0
    assert ". `service/driver.py`, `Driver.notify`: The driver" in page.read_text(encoding="utf-8")


def test_the_example_of_the_core_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program on the page of the queue manager, whose queue is on disk afterwards."""
    page = (ROOT / "docs/queue-manager.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(program, "queue-manager.md", "exec"), names)
    assert names["status"] == 0
    assert names["changes"]
    names["store"].close()  # type: ignore[attr-defined]
    with open_store(tmp_path / "alpha.msmq", create=False) as store:
        assert [key for key, _ in store.rows(Table.QUEUE)]
