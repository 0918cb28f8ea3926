"""The limits of tests scale with the machine, and by one variable."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import patience
from tests.support.paths import ROOT

LIMITED = (
    "run", "check_output", "check_call", "communicate", "wait", "join", "result", "urlopen",
    "create_connection", "HTTPConnection", "HTTPSConnection", "Barrier", "sr1", "wait_for_selector",
)  # fmt: skip
"""Functions whose argument ``timeout`` is a limit of the test, not a time of the product."""
IN_VIRTUAL_TIME = ("tests/unit/service/test_watched_connection.py",)


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


def limits_of_tests(*options: str, **environment: str) -> list[float]:
    """The limit of each test in the head of a run of pytest with these options, if there is one."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider", *options, __file__],
        env={**os.environ, patience.VARIABLE: "1", **environment}, cwd=ROOT, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return [float(seconds) for seconds in re.findall(r"^timeout: ([\d.]+)s$", done.stdout, re.MULTILINE)]


def test_the_limit_of_each_test_scales_as_given() -> None:
    (usual,) = limits_of_tests()
    assert 900 <= usual <= 900 * patience.SCALE_MAX
    (given,) = limits_of_tests("--timeout=7", PYTEST_TIMEOUT="1000")
    assert 7 <= given <= 7 * patience.SCALE_MAX
    (by_variable,) = limits_of_tests(PYTEST_TIMEOUT="7")
    assert 7 <= by_variable <= 7 * patience.SCALE_MAX
    assert limits_of_tests("--timeout=0") == []


def calls(having: str) -> Iterator[tuple[str, ast.Call, str]]:
    """All calls in the tests with this text: where they are, and the first line of each."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text()
        if having not in text:
            continue
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node, lines[node.lineno - 1]


def is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def test_limits_scale() -> None:
    """`timeout=60` of a process, a socket or a request would be the same on every machine."""
    fixed = [
        f"{place}: {ast.unparse(call)}"
        for place, call, _ in calls("timeout=")
        if isinstance(call.func, ast.Attribute) and call.func.attr in LIMITED
        for word in call.keywords
        if word.arg == "timeout" and is_number(word.value)
    ]
    assert fixed == [], "say limit(60) of tests/support/patience.py"
    assert Path(patience.__file__).is_file()


def test_each_sleep_says_why() -> None:
    """What is waited for is an event; a time is slept where it is the point, and a comment says why."""
    found = [
        (f"{place}: {ast.unparse(call)}", line)
        for place, call, line in calls("sleep(")
        if ast.unparse(call.func) in ("time.sleep", "asyncio.sleep")
        and ast.unparse(call.args[0]) != "0"  # a turn of the loop
        and not place.startswith(IN_VIRTUAL_TIME)
    ]
    assert len(found) > 30
    assert [call for call, line in found if "  # " not in line] == [], "wait by `until` or `happens`"


def test_what_is_waited_for_in_vain_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    async def third_look() -> bool:
        looks.append(1)
        return len(looks) == 3

    asyncio.run(patience.happens(third_look, "the third look"))
    asyncio.run(patience.happens(lambda: len(looks) == 3, "the same"))
    monkeypatch.setattr(patience, "PATIENCE_S", 0.01)
    with pytest.raises(AssertionError, match="in vain: the fourth look"):
        asyncio.run(patience.happens(lambda: len(looks) == 4, "the fourth look"))
