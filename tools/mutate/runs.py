"""Runs tests in forked processes: once as they are, watched, and once for each mutant.

A child starts from a process that has the libraries loaded and nothing of the product, so that a mutant is in
place before anything imports its module. Processes that a test itself starts run the product unchanged.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import pickle
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, NoReturn

import pytest

from tools.mutate.mutants import BLUNT, Mutant
from tools.mutate.plugins import Judge, Marks, Project, Watcher

KILLED, ALIVE, BROKEN = "killed", "alive", "broken"

_COLLECTION_S = 600.0
_ENDED = "ended"
_NOT_IN_PLACE = "not in place"
"""The answer of a child that can't exchange a function's code."""
_OPTIONS = ("-q", "--tb=no", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")


@dataclass
class Watched:
    """The code that a test function ran, over all its parameters of one requirement."""

    lines: dict[str, set[int]] = field(default_factory=dict)
    """Lines of functions of the product, by file."""
    seconds: float = 0.0
    outcomes: set[str] = field(default_factory=set)


@dataclass(frozen=True, eq=False)
class Baseline:
    """A run of unchanged code: the code that each test ran, by requirement and test function."""

    tests: dict[tuple[str, str], Watched]
    modules: list[str]
    """The imported modules, in order."""
    imported: dict[Path, set[int]]
    """Lines of functions of the product that run when modules are imported, by file."""


class RunError(Exception):
    """Tests that do not run as they are; the text has the reason."""


def collect(project: Project) -> dict[str, list[str]]:
    """Return the test functions by the requirement that they name."""
    marks = Marks(None)
    answer = _in_child(project, ["--collect-only"], [marks], None, _COLLECTION_S, marks.answer)
    if answer is None or answer["status"]:
        raise RunError("pytest can't collect the tests")
    rows: dict[str, list[str]] = answer["rows"]
    return {row: rows[row] for row in sorted(rows)}


def watch(project: Project, tests: Sequence[str], row: str | None = None) -> Baseline:
    """Run the marked tests of files or functions and note the lines of the product that each runs.

    With `row` only the tests that name it. Raises RunError if the tests can't be run; one may fail.
    """
    marks, watcher = Marks({row} if row else None), Watcher(project)
    answer = _in_child(
        project, tests, [marks, watcher], None, 3600,
        lambda: {**watcher.answer(), "modules": list(sys.modules)},
    )  # fmt: skip
    if answer is None or answer["status"] not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise RunError(f"these tests can't be run: {' '.join(tests)}")
    imported = {Path(file): {*numbers} for file, numbers in answer["imported"].items()}
    baseline = Baseline({}, answer["modules"], imported)
    for test, rows, lines, seconds, outcome in answer["tests"]:
        for each in rows:
            watched = baseline.tests.setdefault((each, test), Watched())
            for file, numbers in lines.items():
                watched.lines.setdefault(file, set()).update(numbers)
            watched.seconds += seconds
            watched.outcomes.add(outcome)
    return baseline


class Trial:
    """Runs the tests of a row against mutants.

    A change of code that runs at import gets a child that imports everything anew; a change in a function
    gets a child of a process that has collected the tests already, where the function's code is exchanged.
    """

    def __init__(self, project: Project, row: str, tests: Sequence[str], limit_s: float) -> None:
        self._project, self._row, self._tests, self._limit_s = project, row, tests, limit_s
        self._collected: _Collected | None = None

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, *_: object) -> None:
        if self._collected:
            self._collected.close()

    def judge(self, mutant: Mutant) -> str:
        """Return KILLED, ALIVE or BROKEN.

        A mutant is killed by a failure, by the end of the process and by running longer than the limit; it is
        broken if it can't be imported, or if its nonsensical value ends in an exception typical of that.
        """
        answer = self._ask(mutant)
        if answer is None:
            return KILLED
        if answer["status"] == pytest.ExitCode.OK:
            return ALIVE
        failed = answer["status"] == pytest.ExitCode.TESTS_FAILED and answer["failed"]
        return KILLED if failed and not (mutant.subtlety == BLUNT and answer["nonsense"]) else BROKEN

    def _ask(self, mutant: Mutant) -> Any:
        if mutant.called:
            if self._collected is None:
                self._collected = _Collected(self._project, self._row, self._tests, self._limit_s)
            answer = self._collected.ask(mutant)
            if answer != _NOT_IN_PLACE:
                return answer
        judge = Judge(self._project)
        plugins = [Marks({self._row}), judge]
        return _in_child(self._project, ["-x", *self._tests], plugins, mutant, self._limit_s, judge.answer)


def keep_bytecode(folder: Path) -> None:
    """Let the children find the bytecode of unchanged modules in a folder of its own, not in the tree."""
    sys.pycache_prefix = str(folder)
    sys.dont_write_bytecode = False


def preload(project: Project, modules: Sequence[str]) -> None:
    """Import the libraries that a baseline imported, so that the children need not."""
    own = {*project.packages, "tests", "tools", "conftest"}
    for name in modules:
        if name.partition(".")[0] not in own and name not in sys.modules:
            with suppress(Exception):  # a name that only looks like a module's
                if importlib.util.find_spec(name) is not None:
                    importlib.import_module(name)


# -- children -------------------------------------------------------------------------------------------


def _in_child(
    project: Project,
    arguments: Sequence[str],
    plugins: list[Any],
    mutant: Mutant | None,
    limit_s: float,
    answer: Callable[[], dict[str, Any]],
) -> Any:
    """Run pytest in a forked child and return the answer there, or None if it ended, or had to, without."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run(project, arguments, plugins, mutant, writer, answer)
    os.close(writer)
    lines = _Lines(reader)
    try:
        return lines.next(time.monotonic() + limit_s)
    finally:
        lines.close()
        _end(child)
        os.waitpid(child, 0)


def _run(
    project: Project,
    arguments: Sequence[str],
    plugins: list[Any],
    mutant: Mutant | None,
    writer: int,
    answer: Callable[[], dict[str, Any]],
) -> NoReturn:
    """Run pytest in this child, write the answer and end."""
    status = 1
    try:
        os.setsid()
        os.chdir(project.root)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        if mutant:
            os.environ.update(project.environment)
            name = project.module(mutant.path)
            sys.meta_path.insert(0, _MutantFinder(name, mutant.path, mutant.code(), project.written))
        end = pytest.main([*_OPTIONS, *arguments], plugins=plugins)
        _write(writer, {"status": int(end), **answer()})
        status = 0
    finally:
        os._exit(status)


def _write(writer: int, answer: object) -> None:
    data = json.dumps(answer).encode() + b"\n"
    while data:
        data = data[os.write(writer, data) :]


class _Lines:
    """The messages of children, a line of JSON at a time."""

    def __init__(self, reader: int) -> None:
        self._reader = reader
        self._rest = b""

    def next(self, end: float) -> Any:
        """Return the next value; None if it is said too late, or never."""
        while b"\n" not in self._rest:
            if not select.select([self._reader], [], [], max(0.0, end - time.monotonic()))[0]:
                return None
            part = os.read(self._reader, 1 << 20)
            if not part:
                return None
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def close(self) -> None:
        os.close(self._reader)


def _end(child: int) -> None:
    """End a child with all that its tests may have left running."""
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


class _Collected:
    """A child that has collected tests; it forks for each mutant that it is asked about."""

    def __init__(self, project: Project, row: str, tests: Sequence[str], limit_s: float) -> None:
        self._limit_s = limit_s
        asked, self._asking = os.pipe()
        reader, answering = os.pipe()
        self._answers = _Lines(reader)
        self._child = os.fork()
        if self._child == 0:
            os.close(self._asking)
            os.close(reader)
            os.environ.update(project.environment)
            judge = Judge(project)
            plugins = [Marks({row}), judge, _ForkServer(asked, answering)]
            _run(project, ["-x", *tests], plugins, None, answering, judge.answer)
        os.close(asked)
        os.close(answering)

    def ask(self, mutant: Mutant) -> Any:
        """Return the answer of a run against a mutant, None without one, or _NOT_IN_PLACE."""
        with os.fdopen(os.dup(self._asking), "wb") as file:
            pickle.dump(mutant, file)
        runner = self._answers.next(time.monotonic() + _COLLECTION_S)
        if runner is None:
            raise RunError("the tests of a row can't be collected again")
        end, answer = time.monotonic() + self._limit_s, None
        while (line := self._answers.next(end)) != _ENDED:
            if line is None:
                _end(runner)
                end, answer = time.monotonic() + _COLLECTION_S, None
            else:
                answer = line
        _end(runner)
        return answer

    def close(self) -> None:
        _end(self._child)
        os.waitpid(self._child, 0)
        os.close(self._asking)
        self._answers.close()


class _ForkServer:
    """In place of running the tests, forks a process that runs them for each mutant that arrives."""

    def __init__(self, asked: int, answering: int) -> None:
        self._asked, self._answering = asked, answering

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> bool | None:
        with os.fdopen(self._asked, "rb") as file:
            while True:
                mutant = pickle.load(file)
                child = os.fork()
                if child == 0:
                    os.setsid()
                    _write(self._answering, os.getpid())
                    if not mutant.exchange():
                        _write(self._answering, _NOT_IN_PLACE)
                        os._exit(0)
                    return None  # pytest continues, and so does its caller
                os.waitpid(child, 0)
                _write(self._answering, _ENDED)


class _MutantFinder:
    """Loads the mutant in place of its module, and hides what is made of such modules."""

    def __init__(self, name: str, path: Path, code: CodeType, hidden: tuple[str, ...]) -> None:
        self._name, self._path, self._code, self._hidden = name, path, code, hidden

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name in self._hidden:
            raise ModuleNotFoundError(f"{name} is hidden from a mutant", name=name)
        if name != self._name:
            return None
        folder = [str(self._path.parent)] if self._path.name == "__init__.py" else None
        loader = _MutantLoader(name, str(self._path), self._code)
        return importlib.util.spec_from_file_location(
            name, self._path, loader=loader, submodule_search_locations=folder
        )


class _MutantLoader(SourceFileLoader):
    def __init__(self, name: str, path: str, code: CodeType) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        return self._code
