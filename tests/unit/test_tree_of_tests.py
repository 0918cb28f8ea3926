"""Where tests are: few files a folder, those of a room of msmqwire in a folder of its name."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.paths import ROOT

TESTS = ROOT / "tests"
FOLDER_FILES = 45
"""Files that one finds one's way among."""
ELSEWHERE = {"docs", "fuzz", "tools"}
"""Folders of unit tests for what is not a room of msmqwire."""


def test_a_folder_has_few_files() -> None:
    counted = Counter(path.parent.relative_to(ROOT).as_posix() for path in TESTS.rglob("*.py"))
    assert counted["tests/unit/analysis"]
    assert {folder: count for folder, count in counted.items() if count > FOLDER_FILES} == {}


@pytest.mark.parametrize(
    "folder", sorted(path.name for path in (TESTS / "unit").iterdir() if list(path.glob("test_*.py")))
)
def test_a_folder_of_unit_tests_has_the_name_of_a_room(folder: str) -> None:
    assert folder in ELSEWHERE or Path(ROOT, "msmqwire", folder).is_dir()
