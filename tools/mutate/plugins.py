"""Plugins of pytest: the requirements of each test, the code it runs, and the form of its failure."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

MARKER = "requirement"

_NONSENSE = (TypeError, AttributeError, NameError, ImportError, SyntaxError)
"""Exceptions of a nonsensical program, such as a LookupError in the product itself; a test that only meets
one has not noticed a breach of the row.
"""

_CALLS_WATCHED = 20
"""Calls of a function in one test whose lines are noted; to follow thousands takes too long."""
_ALL_CALLS_WATCHED = 200_000
"""Limit of calls of a function in one test; beyond it the function is no longer watched."""


@dataclass(frozen=True)
class Project:
    """The folders of the product and its tests, relative to the root."""

    root: Path
    packages: tuple[str, ...]
    excluded: tuple[str, ...] = ()
    """Folders of the product that are left alone."""
    slow: tuple[str, ...] = ()
    """Folders of tests that are asked only where no other test of a row kills a mutant."""
    environment: tuple[tuple[str, str], ...] = ()
    """Variables for tests that meet a mutant."""
    written: tuple[str, ...] = ()
    """Modules made of the product's code, which it can do without: a mutant would not reach them."""

    def is_product(self, path: Path) -> bool:
        """Whether a file belongs to the product and may be changed."""
        if not path.is_relative_to(self.root):
            return False
        name = path.relative_to(self.root).as_posix()
        return name.startswith(tuple(f"{each}/" for each in self.packages)) and not name.startswith(
            tuple(f"{each}/" for each in self.excluded)
        )

    def is_slow(self, test: str) -> bool:
        """Whether a test is in one of the slow folders."""
        return test.startswith(tuple(f"{each}/" for each in self.slow))

    def module(self, path: Path) -> str:
        """The dotted name of a module of the project."""
        parts = path.relative_to(self.root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class Marks:
    """Leaves the tests that name one of some requirements; any, if None are given."""

    def __init__(self, rows: set[str] | None) -> None:
        self._rows = rows
        self._tests: dict[str, set[str]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if self._named(item)]

    def _named(self, item: pytest.Item) -> bool:
        rows = rows_of(item)
        for row in rows:
            self._tests.setdefault(row, set()).add(function_of(item))
        return bool(rows) if self._rows is None else bool(self._rows & rows)

    def answer(self) -> dict[str, Any]:
        return {"rows": {row: sorted(tests) for row, tests in self._tests.items()}}


def rows_of(item: pytest.Item) -> set[str]:
    """The requirements that a test names, without the letters of clauses (MQQB-3.1.5.6-06/a)."""
    return {row.partition("/")[0] for mark in item.iter_markers(MARKER) for row in mark.args}


def function_of(item: pytest.Item) -> str:
    """The node id of a test without its parameters."""
    return item.nodeid.partition("[")[0]


class Watcher:
    """Notes which lines of the product's functions the tests run, and which run when modules are imported;
    fixtures count where a test runs none.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._known: dict[str, str | None] = {}
        self._tracers: dict[str, Any] = {}
        self._calls: dict[int, int] = {}
        self._calls_left = 0
        self._lines: dict[str, set[int]] = {}
        self._seconds = 0.0
        self._imported: dict[str, set[int]] = {}
        self._found: list[tuple[str, list[str], dict[str, list[int]], float, str]] = []

    def answer(self) -> dict[str, Any]:
        imported = {file: sorted(numbers) for file, numbers in self._imported.items()}
        return {"tests": self._found, "imported": imported}

    @pytest.hookimpl(wrapper=True)
    def pytest_load_initial_conftests(self) -> Generator[None, object, object]:
        self._lines = self._imported
        return (yield from self._traced())

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        self._lines = self._imported
        return (yield from self._traced())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Generator[None, object, object]:
        self._lines = {}
        return (yield from self._traced())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        in_fixtures, self._lines = self._lines, {}
        try:
            return (yield from self._traced())
        finally:
            self._lines = self._lines or in_fixtures

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.when == "call" or report.outcome != "passed":
            lines = {file: sorted(numbers) for file, numbers in self._lines.items()}
            self._found.append(
                (function_of(item), sorted(rows_of(item)), lines, call.duration, report.outcome)
            )
        return report

    def _traced(self) -> Generator[None, object, object]:
        self._tracers, self._calls, self._calls_left = {}, {}, _ALL_CALLS_WATCHED
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]

    def _trace(self, frame: FrameType, event: str, argument: object) -> Any:
        self._calls_left -= 1
        if self._calls_left < 0:
            sys.settrace(None)
            return None
        code = frame.f_code
        tracer = self._tracers.get(code.co_filename, self)
        if tracer is self:
            tracer = self._tracers[code.co_filename] = self._tracer(code.co_filename)
        if tracer is None or code.co_name == "<module>":
            return None
        calls = self._calls[id(code)] = self._calls.get(id(code), 0) + 1
        return tracer if calls <= _CALLS_WATCHED else None

    def _tracer(self, name: str) -> Any:
        if name not in self._known:
            path = Path(name)
            self._known[name] = str(path) if self._project.is_product(path) else None
        if self._known[name] is None:
            return None
        add = self._lines.setdefault(name, set()).add

        def tracer(frame: FrameType, event: str, argument: object) -> Any:
            add(frame.f_lineno)
            return tracer

        return tracer


class Judge:
    """Notes whether a test failed, and whether by nonsense."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._failed = self._nonsense = False

    def answer(self) -> dict[str, Any]:
        return {"failed": self._failed, "nonsense": self._nonsense}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed:
            self._failed = True
            self._nonsense |= call.excinfo is not None and self._is_nonsense(call.excinfo)
        return report

    def _is_nonsense(self, caught: pytest.ExceptionInfo[BaseException]) -> bool:
        if isinstance(caught.value, LookupError):
            return self._project.is_product(Path(caught.traceback[-1].path))
        return isinstance(caught.value, _NONSENSE)
