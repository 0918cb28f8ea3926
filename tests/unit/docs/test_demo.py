"""``make demo``: short, and what it prints can be typed again."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.doc_sessions import Step, differences, run
from tests.support.own_addresses import own_loopback
from tests.support.paths import ROOT
from tests.support.patience import limit

LINES_MAX = 60

pytestmark = pytest.mark.xdist_group("demonstration")  # run once for most of them


def _demonstrate(folder: Path, *, columns: int | None = None) -> str:
    """What the demonstration prints in a checkout where there is nothing else; on a terminal with columns."""
    checkout = folder / "checkout"
    checkout.mkdir()
    shutil.copytree(ROOT / "examples", checkout / "examples")
    own = own_loopback(7)  # the port is fixed: another run of the tests may use it at this moment
    script = checkout / "examples/demo.sh"
    script.write_text(script.read_text().replace("127.0.0.1", own))
    leader, follower = pty.openpty() if columns else os.pipe()
    environment = {**os.environ, "PYTHON": sys.executable, "TERM": "xterm", "NO_COLOR": "1"}
    if columns:
        environment["COLUMNS"] = str(columns)
    with subprocess.Popen(
        ["sh", "examples/demo.sh"], cwd=checkout, env=environment, stdout=follower, stderr=follower
    ) as process:
        os.close(follower)
        shown = b"".join(iter(lambda: _read(leader), b""))
        assert process.wait(limit(120)) == 0, shown.decode()
    os.close(leader)
    assert sorted(path.name for path in checkout.iterdir()) == ["build", "examples"]
    text = shown.decode().replace(own, "127.0.0.1")
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r\n", "\n").split("\n")
    return "\n".join(line.rpartition("\r")[2] for line in lines)  # a progress bar leaves nothing


def _read(leader: int) -> bytes:
    try:
        return os.read(leader, 1 << 16)
    except OSError:  # how Linux reports that the other end was closed
        return b""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What it prints into a pipe."""
    return _demonstrate(tmp_path_factory.mktemp("piped"))


def test_the_demo_on_a_terminal_is_short_and_shows_a_message(tmp_path: Path) -> None:
    lines = _demonstrate(tmp_path, columns=80).splitlines()
    assert sum(-(-max(1, len(line)) // 80) for line in lines) <= LINES_MAX
    assert "  order 7: hello" in lines
    assert lines[-1].startswith("# NetWare ")


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
