"""The limits of tests scale with the machine, and by one variable."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import patience
from tests.support.paths import ROOT


def scale(**environment: str) -> float:
    program = "from tests.support.patience import limit; print(limit(1))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment}, cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(done.stdout)


def test_the_variable_multiplies() -> None:
    assert scale(**{patience.VARIABLE: "100"}) >= 100
    assert scale(**{patience.VARIABLE: "0.01"}) <= 0.01 * patience.SCALE_MAX


@pytest.mark.parametrize(
    "seconds, expected",
    [(patience.USUAL_S / 2, 1.0), (patience.USUAL_S * 3, 3.0), (patience.USUAL_S * 1000, patience.SCALE_MAX)],
)
def test_a_slower_machine_has_longer_limits(
    seconds: float, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "_work_s", lambda: seconds)
    assert patience.measured_scale() == pytest.approx(expected)


def test_limits_of_processes_scale() -> None:
    """`timeout=60` of a process that a test runs would be the same on every machine."""
    fixed = []
    for path in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "subprocess.run":
                fixed += [
                    f"{path.relative_to(ROOT)}:{node.lineno}"
                    for word in node.keywords
                    if word.arg == "timeout" and isinstance(word.value, ast.Constant)
                ]
    assert fixed == [], "say limit(60) of tests/support/patience.py"
    assert Path(patience.__file__).is_file()
