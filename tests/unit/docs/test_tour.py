"""The tour of CONTRIBUTING.md names files and functions that exist."""

from __future__ import annotations

import ast
import re

import pytest

from tests.support.paths import ROOT

TOUR = (
    (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("\n## A tour\n")[2].partition("\n## ")[0]
)
STEPS = re.findall(r"`(msmqwire/[\w/]+\.py)`\s+`([\w.]+)`", TOUR)


def defined(path: str) -> set[str]:
    """The functions and methods of a module, methods as `Class.method`."""
    names = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            members = (part for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef))
            names.update(f"{node.name}.{member.name}" for member in members)
    return names


def test_every_file_of_the_tour_has_a_function_beside_it() -> None:
    assert len(STEPS) == len(re.findall(r"`msmqwire/", TOUR)) >= 30


@pytest.mark.parametrize(("path", "function"), STEPS)
def test_a_step_of_the_tour_exists(path: str, function: str) -> None:
    assert function in defined(path)
