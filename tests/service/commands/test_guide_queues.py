"""The examples of the guide for queues run, and print what they should."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.running import options, served

GUIDE = (ROOT / "docs/guide-queues.md").read_text(encoding="utf-8")
SECTION = GUIDE.partition("\n## Queues\n")[2].partition("\n## ")[0]
ASYNCIO, SYNCHRONOUS = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)


@pytest.mark.parametrize("way", ["served", "store"])
def test_the_examples_of_the_guide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with served(options(tmp_path / "qm")):
        if way == "served":
            printed = run_examples(capsys)
    if way == "store":
        printed = run_examples(capsys)
    first, *others = printed
    assert re.fullmatch(r"first order 7 20\d\d-.*\+00:00", first)
    assert others == [
        "second b'\\x00\\x01'", "MQ_ERROR_IO_TIMEOUT", "done: entry 1 True", "done: entry 1"
    ]  # fmt: skip


def run_examples(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Run both examples; return the lines that they print."""
    for example in (ASYNCIO, SYNCHRONOUS):
        exec(compile(example, "docs/guide-queues.md", "exec"), {"__name__": "__main__"})
    return capsys.readouterr().out.splitlines()
