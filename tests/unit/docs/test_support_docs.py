"""The index of what tests share has every module of tests/support, and is up to date."""

from __future__ import annotations

import re

import pytest

from tools.pages.support_docs import ROOMS, SUPPORT, TARGET, main


def test_the_index_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().err


def test_every_module_is_there_once() -> None:
    listed = re.findall(
        r"^\| \[`(\S+)`\]\(\1\) \| \S.*\S \|$", TARGET.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(listed) == sorted(path.relative_to(SUPPORT).as_posix() for path in SUPPORT.rglob("*.py"))


def test_every_folder_has_a_heading() -> None:
    folders = {path.parent.relative_to(SUPPORT).as_posix() for path in SUPPORT.rglob("*.py")}
    assert folders - {"."} == ROOMS.keys() - {""}
