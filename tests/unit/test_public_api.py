"""docs/api.txt lists the public API as it is: whoever changes it changes that file with it."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import msmqwire
from tests.support.installed import library
from tools.pages import public_api
from tools.pages.public_api import MODULES, TARGET, entry, main, page


def test_the_file_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    library("pyspark")
    assert main(["--check"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("name", MODULES)
def test_every_name_of_all_is_there(name: str) -> None:
    if name == "spark_udfs":
        library("pyspark")
    module = importlib.import_module(name)
    for one in getattr(module, "__all__", ()):
        assert hasattr(module, one)
    section = TARGET.read_text(encoding="utf-8").partition(f"\n# {name}\n")[2].partition("\n\n#")[0]
    listed = [line for line in section.splitlines() if not line.startswith(" ")]
    assert len(listed) == len(public_api.names(module)) > 0


def test_a_change_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library("pyspark")
    target = tmp_path / "api.txt"
    assert main([], target) == 0
    monkeypatch.setattr(msmqwire, "__all__", [name for name in msmqwire.__all__ if name != "parse"])
    assert main(["--check"], target) == 1
    gone = set(target.read_text().splitlines()) - set(page().splitlines())
    assert gone == set()  # `msmqwire.packets` has it too, so that only its second line is missing
    assert target.read_text().count("\ndef parse(") == page().count("\ndef parse(") + 1


def test_defaults_that_differ_from_process_to_process() -> None:
    def example(number: int = 7, what: object = object(), long: str = "x" * 50) -> None: ...

    assert list(entry("example", example)) == [
        "def example(number: int = 7, what: object = ..., long: str = ...) -> None"
    ]


def test_members_with_their_signatures() -> None:
    class Example:
        number: int

        def __init__(self, number: int = 1) -> None: ...

        async def fetch(self, *, at: str | None = None) -> bytes: ...

        @property
        def size(self) -> int: ...

        @classmethod
        def empty(cls) -> Example: ...

        def _hidden(self) -> None: ...

    assert list(entry("Example", Example)) == [
        "class Example",
        "    def __init__(self, number: int = 1) -> None",
        "    classmethod empty(cls) -> Example",
        "    async def fetch(self, *, at: str | None = None) -> bytes",
        "    number: int",
        "    property size",
    ]
