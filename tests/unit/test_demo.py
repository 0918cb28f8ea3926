"""``make demo``: short, and what it prints can be typed again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.doc_sessions import Step, differences, run
from tests.support.paths import ROOT

LINES_MAX = 60


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the demonstration prints in a checkout of its own, where there is nothing else."""
    checkout = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "examples", checkout / "examples")
    done = subprocess.run(
        ["sh", "examples/demo.sh"],
        cwd=checkout,
        env={**os.environ, "PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert sorted(path.name for path in checkout.iterdir()) == ["build", "examples"]
    return done.stdout


def test_it_is_short_and_shows_the_text_of_a_message(shown: str) -> None:
    assert len(shown.splitlines()) <= LINES_MAX
    assert '"text": "hello"' in shown
    assert shown.splitlines()[-1].startswith("# NetWare ")


def test_its_commands_can_be_typed_again(shown: str, tmp_path: Path) -> None:
    commands = [line.removeprefix("$ ") for line in shown.splitlines() if line.startswith("$ ")]
    assert len(commands) >= 7
    typed = [Step("mkdir -p build/demo"), *(Step(command, "...") for command in commands)]
    number = os.getpid()
    loopback = f"127.{64 + number // 250 % 64}.{1 + number % 250}."
    assert differences(typed, run(typed, tmp_path, loopback=loopback)) == []
