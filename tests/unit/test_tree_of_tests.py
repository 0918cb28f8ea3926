"""Where tests are: few files a folder, those of a room of msmqwire in a folder of its name.

How long their names and ids may be, and what they take: those of tests/unit are imported with the extra
``unit`` alone.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.short_ids import ID_MAX, short_id
from tools.near.imports import Tree

TESTS = ROOT / "tests"
FOLDER_FILES = 45
"""Files that one finds one's way among."""
NAME_MAX = 60
"""Characters of the name of a test, so that it is read once."""
DEFINITION = re.compile(r"^[ \t]*(?:async )?def (test_\w+)", re.MULTILINE)
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


def test_names_of_tests_are_short() -> None:
    """Definitions are searched for by lines: parsing the files would take ten times as long."""
    names = [
        (path.relative_to(ROOT).as_posix(), name)
        for path in TESTS.rglob("test_*.py")
        for name in DEFINITION.findall(path.read_text(encoding="utf-8"))
    ]
    assert len(names) > 5_000
    too_long = [(file, name) for file, name in names if len(name) > NAME_MAX]
    assert too_long == [], f"over {NAME_MAX} characters: the rule in the name, the rest in the docstring"


def test_ids_of_cases_are_short(request: pytest.FixtureRequest) -> None:
    """Those that this run has collected, which costs nothing more: of all tests, where all run."""
    cases = [(item.nodeid, item.callspec.id) for item in request.session.items if hasattr(item, "callspec")]
    too_long = [node[:200] for node, case in cases if len(case) > ID_MAX]
    assert too_long == [], f"over {ID_MAX} characters: give ids= or pytest.param(id=)"


@pytest.mark.parametrize(
    "value, expected",
    [
        ("x" * 40, None),
        ("x" * 41, "xxxxxxxxxxxxxxxxxxxxxxxx...41"),
        ("é" * 11, "\\xe9\\xe9\\xe9\\xe9\\xe9\\xe9...11"),
        (b"GET / HTTP/1.1 of a client of the web", None),
        (b"POST /q HTTP/1.1 of a client of the web which waits", "POST /q HTTP/1.1 of a cl...51"),
        (bytes(10), None),
        (bytes(1_000_000), "000000000000000000000000...1000000"),
    ],
)
def test_long_values_are_cut_in_ids(value: str | bytes, expected: str | None) -> None:
    assert short_id(value) == expected


def small_environment() -> set[str]:
    """The libraries that ``make unit`` installs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    names = {
        re.match(r"[\w-]+", each)[0]
        for each in (*project["dependencies"], *extras["columns"], *extras["delta"], *extras["unit"])
    }
    return {MODULES.get(name, name) for name in names}


def test_unit_tests_need_the_small_environment_alone() -> None:
    tree, has = Tree(ROOT, FOLDERS), small_environment()
    tests = [file for file in tree.tests() if file.startswith("tests/unit/")]
    assert len(tests) > 100
    needs = {test: more for test in tests if (more := tree.libraries(test) - has)}
    assert needs == {}, "take it by tests.support.installed.library, inside the test, or move the file"
    assert "scapy" in tree.libraries("tests/interop/test_scapy_layers.py")
