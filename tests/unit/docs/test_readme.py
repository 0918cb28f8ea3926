"""README: short, its links lead somewhere, and what it shows can be pasted in a checkout."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.support.doc_sessions import Step, differences, run
from tests.support.paths import ROOT

LINES_MAX = 120
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#]+)\)")
# Installing is tested by test_distribution, `make demo` by test_demo; `make test` runs this.
NOT_TYPED = re.compile(r"python3 -m venv|pip install|make ")


def typed() -> list[Step]:
    """What the page has in blocks, in its order; comments of commands are typed too."""
    steps = []
    for language, text in BLOCK.findall(TEXT):
        if language == "python":
            steps.append(Step(f"python - <<'END'\n{text}END", "..."))
        else:
            steps += [Step(line, "...") for line in text.splitlines() if not NOT_TYPED.match(line)]
    return steps


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) <= LINES_MAX


@pytest.mark.parametrize("link", sorted(set(LINK.findall(TEXT))))
def test_a_link_leads_somewhere(link: str) -> None:
    assert (ROOT / link).is_file()


def test_what_it_shows_can_be_pasted(tmp_path: Path) -> None:
    steps = typed()
    assert len(steps) >= 17
    number = os.getpid()
    loopback = f"127.{64 + number // 250 % 64}.{1 + number % 250}."
    assert differences(steps, run(steps, tmp_path, loopback=loopback)) == []
    written = {path.name for path in (tmp_path / "session").iterdir()}
    assert written == {"examples", "report.html", "packets.parquet", "part.pcap", "msmq.lua", "qm"}


def test_every_command_of_the_text_stands_in_a_block_or_runs(tmp_path: Path) -> None:
    inline = re.findall(r"`(python -m [^`]+)`", BLOCK.sub("", TEXT))
    steps = [Step(command, "...") for command in inline]
    assert steps
    assert differences(steps, run(steps, tmp_path)) == []
