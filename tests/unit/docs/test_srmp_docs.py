"""The page of SRMP elements agrees with their declarations."""

from __future__ import annotations

from pathlib import Path

import pytest

from msmqwire.srmp.elements import Element, Group
from msmqwire.srmp.schema import ENVELOPE
from tools.pages.srmp_docs import TARGET, main


def test_the_page_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().err


def test_the_check_tells_of_a_page_that_is_missing_or_old(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    assert main(["--check"], page) == 1
    assert main([], page) == 0
    assert main(["--check"], page) == 0
    page.write_text(page.read_text() + "by hand\n")
    assert main(["--check"], page) == 1
    assert "run python tools/pages/srmp_docs.py" in capsys.readouterr().err


def test_every_element_has_a_row() -> None:
    rows = [line.split(" | ") for line in TARGET.read_text().splitlines() if line.startswith("| `")]
    assert {len(cells) for cells in rows} == {7}
    found = {(cells[0][3:-1].rpartition(".")[2], cells[1]) for cells in rows}

    def declared(element: Element) -> set[tuple[str, str]]:
        children = element.children if isinstance(element, Group) else ()
        return {(element.name, element.section)}.union(*map(declared, children))

    assert found == declared(ENVELOPE)
