"""A plugin of pytest: notes which source files the tests of a file run, and stops at the end of the time.

    python -m pytest -p tools.near.recording --near-record TESTS...

A function counts if it runs during a test or its fixtures, in this process, but not during the import of a
module. Works under pytest-xdist: each worker reports its functions.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from tools.near.records import Record, add, load, stamp_of

PACKAGES = ("msmqwire", "spark_udfs", "fuzz", "tools")
_OUTPUT = "near"
_COMPLETE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
_RUNNER = "_pytest/runner.py"


@dataclass
class Noted:
    """The functions that the tests of a file ran."""

    seconds: float = 0.0
    left: int = 0
    """Tests that there was no time for."""
    lines: dict[str, set[int]] = field(default_factory=dict)
    """By source file, the first lines of the functions that ran."""

    def plain(self) -> tuple[float, int, dict[str, list[int]]]:
        """The record in values that a worker can send."""
        return self.seconds, self.left, {file: sorted(numbers) for file, numbers in self.lines.items()}

    def record(self, path: Path) -> Record:
        """To be kept."""
        functions = {file: len(numbers) for file, numbers in self.lines.items()}
        return Record(round(self.seconds, 2), stamp_of(path), functions)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("near")
    group.addoption(
        "--near-record", action="store_true", help="note the functions that test files without a record run"
    )
    group.addoption("--near-until", type=float, help="pass over tests after this time, in seconds since 1970")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recorder(config, config.rootpath, PACKAGES))


class Recorder:
    """The functions that the tests of each file ran, in the main process or a worker of xdist."""

    def __init__(self, config: pytest.Config, root: Path, packages: Iterable[str]) -> None:
        self._config, self._root = config, root
        self._prefixes = tuple(f"{root / each}/" for each in packages)
        self._records: bool = config.getoption("near_record")
        self._until: float | None = config.getoption("near_until")
        self._known = set(load(root)) if self._records else set()
        self._codes: dict[str, set[CodeType]] = {}
        self._noted: dict[str, Noted] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        test = _file(item)
        noted, begin = self._noted.setdefault(test, Noted()), time.monotonic()
        try:
            if not self._records or test in self._known:
                return (yield)
            trace = _tracer(self._codes.setdefault(test, set()), self._prefixes)
            threading.settrace(trace)
            sys.settrace(trace)
            try:
                return (yield)
            finally:
                sys.settrace(None)
                threading.settrace(None)  # type: ignore[arg-type]
        finally:
            noted.seconds += time.monotonic() - begin

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if self._until is not None and time.time() > self._until:
            self._noted[_file(item)].left += 1
            pytest.skip("the time is over")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        for test, codes in self._codes.items():
            for code in codes:
                file = Path(code.co_filename).relative_to(self._root).as_posix()
                self._noted[test].lines.setdefault(file, set()).add(code.co_firstlineno)
        if (output := getattr(self._config, "workeroutput", None)) is not None:
            output[_OUTPUT] = {test: noted.plain() for test, noted in self._noted.items()}
        elif self._records and exitstatus in _COMPLETE and not _chosen(self._config):
            add(self._root, {
                test: noted.record(self._root / test) for test, noted in self._noted.items()
                if noted.lines and not noted.left
            })  # fmt: skip

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """A worker has ended: take its record."""
        for test, (seconds, left, lines) in getattr(node, "workeroutput", {}).get(_OUTPUT, {}).items():
            noted = self._noted.setdefault(test, Noted())
            noted.seconds += seconds
            noted.left += left
            for file, numbers in lines.items():
                noted.lines.setdefault(file, set()).update(numbers)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        left = {test: noted.left for test, noted in self._noted.items() if noted.left}
        if left:
            terminalreporter.write_line(
                f"The time was over before {sum(left.values())} tests of: {' '.join(sorted(left))}"
            )


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _chosen(config: pytest.Config) -> bool:
    """Whether only some tests of the files were asked for."""
    return bool(config.option.keyword or config.option.markexpr) or any("::" in each for each in config.args)


def _tracer(codes: set[CodeType], prefixes: tuple[str, ...]) -> Any:
    """Return a trace function that notes the functions of the product, and follows no lines."""
    others: set[CodeType] = set()

    def trace(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if code in codes or code in others:
            return
        if not code.co_filename.startswith(prefixes) or not code.co_flags & CO_OPTIMIZED:
            others.add(code)
        elif not _by_import(frame):
            codes.add(code)

    return trace


def _by_import(frame: FrameType) -> bool:
    """Whether a function runs because a module is imported."""
    caller = frame.f_back
    while caller and not caller.f_code.co_filename.endswith(_RUNNER):
        if caller.f_code.co_name == "<module>":
            return True
        caller = caller.f_back
    return False
