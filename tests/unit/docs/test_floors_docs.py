"""The tables of floors in CONTRIBUTING.md are those of the test that enforces them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.unit import test_floors as floors
from tools.pages.floors_docs import TARGET, main, tables
from tools.pages.generated_pages import part_replaced


def test_the_tables_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().err


def test_another_table_fails_the_check_and_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "CONTRIBUTING.md"
    assert main([], page) == main(["--check"], page) == 0
    monkeypatch.setitem(floors.ROOMS["qm"], "rules", {"model", "store"})
    assert main(["--check"], page) == 1
    assert "run python tools/pages/floors_docs.py" in capsys.readouterr().err
    assert main([], page) == main(["--check"], page) == 0
    changed = set(page.read_text(encoding="utf-8").splitlines()) - set(TARGET.read_text("utf-8").splitlines())
    assert len(changed) == 1
    assert changed.pop().startswith("| `qm/rules` |")


def test_every_part_room_and_arrow_has_its_place() -> None:
    lines = tables().splitlines()
    for part, number in floors.FLOOR.items():
        assert any(line.startswith(f"| {number} |") and f"`{part}`" in line for line in lines)
    assert sum(line.count("→") for line in lines) == len({importer for importer, _ in floors.SIDEWAYS})
    rooms = {f"{part}/{room}" for part, rooms in floors.ROOMS.items() for room in rooms}
    cells = {row[1].strip(" `"): row[2:] for row in (line.split("|") for line in lines) if len(row) > 4}
    assert rooms <= cells.keys()
    assert all(words.strip() for room in rooms for words in cells[room][:2])
    for room in floors.SERVICE_FLOOR:
        assert any(line.startswith("| `msmqwire/service` |") and f"`{room}`" in line for line in lines)


@pytest.mark.parametrize(
    "page", ["", "<!-- a -->\n", "<!-- end of a -->\n", 2 * "<!-- a -->\n<!-- end of a -->\n"]
)
def test_a_page_without_its_two_marks_once_each_is_an_error(page: str) -> None:
    with pytest.raises(ValueError, match="not there, or more than once"):
        part_replaced(page, "a", "text")


def test_only_what_is_between_the_marks_is_replaced() -> None:
    page = "before\n<!-- a -->\nold\n<!-- end of a -->\nafter\n"
    assert part_replaced(page, "a", "new") == "before\n<!-- a -->\n\nnew\n\n<!-- end of a -->\nafter\n"
    assert (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").count("<!-- floors -->") == 1
