"""The sessions of commands in the tutorials, the home page and others do what the pages say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.doc_sessions import Step, differences, run, steps
from tests.support.installed import library
from tests.support.nightly import nightly
from tests.support.paths import ROOT

PAGES = {
    "index.md": 1,
    "adding-a-header.md": 3,
    "dead-letters.md": 15,
    "definitions.md": 11,
    "exporter.md": 10,
    "forwarding.md": 24,
    "gateway.md": 20,
    "from-other-readers.md": 5,
    "management.md": 8,
    "management-captures.md": 1,
    "poison-messages.md": 15,
    "policies.md": 8,
    "why-stuck.md": 4,
    "tutorials/analyst.md": 9,
    "tutorials/data-engineer.md": 16,
    "tutorials/integration-engineer.md": 12,
    "tutorials/security-engineer.md": 12,
}
"""How many steps each page has at least."""

LIBRARIES = {
    "exporter.md": ("aiohttp",),
    "forwarding.md": ("aiohttp",),
    "gateway.md": ("aiohttp",),
    "tutorials/data-engineer.md": ("duckdb", "pyspark"),
    "tutorials/security-engineer.md": ("hypothesis",),
}


LONG = {"tutorials/data-engineer.md"}
"""Pages that start Spark several times."""


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=nightly) if page in LONG else page for page in PAGES]
)
def test_a_page(page: str, tmp_path: Path) -> None:
    for name in LIBRARIES.get(page, ()):
        library(name)
    typed = steps((ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert len(typed) >= PAGES[page]
    number = os.getpid()
    loopback = f"127.{64 + number // 250 % 64}.{1 + number % 250}."
    assert differences(typed, run(typed, tmp_path, loopback=loopback)) == []


def test_every_tutorial_is_run() -> None:
    tutorials = {f"tutorials/{path.name}" for path in (ROOT / "docs" / "tutorials").iterdir()}
    assert tutorials <= set(PAGES)


def test_steps_of_a_page() -> None:
    page = (
        "text\n```console\n$ one \\\n>     two\nout\n$ three\n```\n```sh\n$ no\n```\n"
        "```python title=\"f.py\"\nprint('x')\n```\n"
    )
    assert steps(page) == [
        Step("one \\\n    two", "out\n"),
        Step("three"),
        Step("printf %s 'print('\"'\"'x'\"'\"')\n' >f.py"),
    ]


@pytest.mark.parametrize(
    ("said", "printed", "same"),
    [
        ("a ... c\n", "a b c\n", True),
        ("a ... c\n", "a b\nc\n", False),
        ("first\n...\nlast\n", "first\n1\n2\nlast\n", True),
        ("first\n...\nlast\n", "first\n1\n2\n", False),
        ("", "", True),
        ("", "something\n", False),
        ("2 rows\n", "3 rows\n", False),
    ],
)
def test_output_that_is_compared(said: str, printed: str, same: bool) -> None:
    assert (differences([Step("x", said)], [(0, printed)]) == []) is same


def test_failures_are_reported(tmp_path: Path) -> None:
    typed = [Step("false"), Step("(exit 3)"), Step("echo $?", "3\n"), Step("exit 0"), Step("echo never")]
    told = differences(typed, run(typed, tmp_path))
    assert [line.splitlines()[0] for line in told] == ["3 of 5 steps ended", "$ false"]
