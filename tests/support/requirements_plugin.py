"""A pytest plugin for the marker ``requirement(*ids)``: the requirements that a test proves.

An id that no table in docs/conformance has is a collection error. After a run a line shows the number of
named requirements that passed; ``--requirements-json=FILE`` writes it all down:

    {"tests": {id: [test, ...]}, "outcomes": {id: "passed" | "failed" | "skipped"}}

A row with clauses in docs/conformance/clauses.tsv is named by these, as ``MQQB-3.1.5.6-06/a``.

A test is a function here: its parameters are one test, and what the marks of one parameter name counts for
it. With ``--collect-only`` there are no outcomes. Works under pytest-xdist: the ids travel with the reports.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tools.pages.conformance import ConformanceError, known_marks, row_of

MARKER = "requirement"
WORST_FIRST = ("failed", "skipped", "passed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--requirements-json",
        metavar="FILE",
        help="write the tests by requirement id, and their outcomes, as JSON",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARKER}(*ids): the ids in docs/conformance that the test proves")
    try:
        known = known_marks()
    except ConformanceError as exc:
        raise pytest.UsageError(str(exc)) from exc
    config.pluginmanager.register(Requirements(config, known))


class Requirements:
    """The requirements of one run, in the main process or an xdist worker."""

    def __init__(self, config: pytest.Config, known: set[str]) -> None:
        self.config, self.known = config, known
        self.divided = {row_of(mark) for mark in known if "/" in mark}
        self.ids: dict[str, tuple[str, ...]] = {}  # by node id
        self.outcomes: dict[str, str] = {}  # by node id

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        items = [node for node in report.result or () if isinstance(node, pytest.Item)]
        problems = dict.fromkeys(problem for item in items for problem in self._problems(item))
        if problems:
            report.outcome, report.longrepr, report.result = "failed", "\n".join(problems), []
            return report
        for item in items:
            if ids := tuple(dict.fromkeys(id_ for mark in item.iter_markers(MARKER) for id_ in mark.args)):
                item.user_properties.append((MARKER, ids))
        return report

    def _problems(self, item: pytest.Item) -> Iterator[str]:
        test = function_of(item.nodeid)
        for mark in item.iter_markers(MARKER):
            if not mark.args or mark.kwargs:
                yield f"{test}: the marker {MARKER} takes one or more ids and nothing else"
            for id_ in mark.args:
                if id_ in self.divided:
                    yield f"{test}: {id_} has clauses; name those that the test proves, as {id_}/a"
                elif id_ not in self.known:
                    yield f"{test}: no table in docs/conformance has the requirement {id_!r}"

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            self._name(item.nodeid, item.user_properties)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._name(report.nodeid, report.user_properties)
        if report.failed or report.skipped or report.when == "call":
            before = self.outcomes.get(report.nodeid, report.outcome)
            self.outcomes[report.nodeid] = min(before, report.outcome, key=WORST_FIRST.index)

    def _name(self, node: str, properties: list[tuple[str, object]]) -> None:
        for name, ids in properties:
            if name == MARKER and isinstance(ids, tuple | list):
                self.ids[node] = tuple(map(str, ids))

    def tests(self) -> dict[str, list[str]]:
        """The tests by requirement id."""
        tests: dict[str, set[str]] = {}
        for node, ids in self.ids.items():
            for id_ in ids:
                tests.setdefault(id_, set()).add(function_of(node))
        return {id_: sorted(nodes) for id_, nodes in sorted(tests.items())}

    def results(self) -> dict[str, str]:
        """The results of the tests of each id: failed if one did, passed if at least one did, else
        skipped.
        """
        ends: dict[str, set[str]] = {}
        for node, ids in self.ids.items():
            for id_ in ids:
                ends.setdefault(id_, set()).update({self.outcomes[node]} if node in self.outcomes else ())
        return {
            id_: next(end for end in ("failed", "passed", "skipped") if end in found)
            for id_, found in sorted(ends.items())
            if found
        }

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        results = self.results()
        if results:
            rows = {row_of(mark) for mark in results}
            passed = rows - {row_of(mark) for mark, end in results.items() if end != "passed"}
            terminalreporter.write_line(
                f"requirements: {len(passed)} passed of {len(rows)} that these tests name, "
                f"{len({row_of(mark) for mark in self.known})} in all"
            )

    def pytest_sessionfinish(self) -> None:
        path = self.config.getoption("--requirements-json")
        if path and not hasattr(self.config, "workerinput"):
            text = json.dumps({"tests": self.tests(), "outcomes": self.results()}, indent=1)
            Path(path).write_text(text + "\n", encoding="utf-8")


def function_of(node: str) -> str:
    """The test function of a node id, without its parameters."""
    return node.partition("[")[0]
