"""Where tests are: few files a folder, those of a room of msmqwire in a folder of its name.

And what they take: those of tests/unit are imported with the extra ``unit`` alone.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tools.near.imports import Tree

TESTS = ROOT / "tests"
FOLDER_FILES = 45
"""Files that one finds one's way among."""
MODULES = {"pytest-timeout": "pytest_timeout", "pytest-xdist": "xdist", "rich-click": "rich_click"}
"""Of requirements whose modules have other names."""
FOLDERS = ("msmqwire", "spark_udfs", "fuzz", "tools", "tests")
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


def small_environment() -> set[str]:
    """The libraries that ``make unit`` installs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    names = {
        re.match(r"[\w-]+", each)[0]
        for each in (*project["dependencies"], *extras["columns"], *extras["unit"])
    }
    return {MODULES.get(name, name) for name in names}


def test_unit_tests_need_the_small_environment_alone() -> None:
    tree, has = Tree(ROOT, FOLDERS), small_environment()
    tests = [file for file in tree.tests() if file.startswith("tests/unit/")]
    assert len(tests) > 100
    needs = {test: more for test in tests if (more := tree.libraries(test) - has)}
    assert needs == {}, "take it by tests.support.installed.library, inside the test, or move the file"
    assert "scapy" in tree.libraries("tests/interop/test_scapy_layers.py")
