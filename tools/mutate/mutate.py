"""Checks that the marks of requirements are earned: marked tests must notice changes of the code.

    python tools/mutate/mutate.py --rows 300 --seed 1       a random sample of the rows with marked tests
    python tools/mutate/mutate.py --row MQQB-4.1.1-01 ...   these rows

For each row it determines the code about it, which cites its id, makes small changes there (mutants), up to
five, one after the other, and runs the row's tests against each: "4/5" says that they killed four of five.
A row that no code cites needs a citation first, and counts as one without a killed mutant. The exit status
is 1 if fewer than 90 % of the rows have at least four of five. CONTRIBUTING.md explains the results.

The reason for a separate mutator: mutmut 3 changes only code inside functions, while much of this product is
declarations that run at import, and cosmic-ray writes each mutant into the tree and runs one command for all.
Neither knows that one test is asked about one row. This one needs `ast`, an import hook and `os.fork`.

msmqwire/tables/compiled is left alone: what runs is a library that no mutant changes.
Processes that a test starts run the product unchanged.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.mutate import record  # noqa: E402
from tools.mutate.mutants import Mutant  # noqa: E402
from tools.mutate.runs import (  # noqa: E402
    ALIVE,
    KILLED,
    Baseline,
    Project,
    RunError,
    Trial,
    Watched,
    collect,
    keep_bytecode,
    preload,
    watch,
)
from tools.mutate.targets import Chooser, Row  # noqa: E402

PRODUCT = Project(
    ROOT,
    packages=("msmqwire", "spark_udfs"),
    excluded=("msmqwire/tables/compiled",),
    slow=("tests/property", "tests/service", "tests/spark_pipeline"),
    environment=(("MSMQWIRE_TEST_PATIENCE", "0.2"),),  # no long wait for an event that a mutant prevents
    written=("msmqwire.schema.generated",),
)
MUTANTS = 5
"""The number of mutants tried for a row."""

OTHERS = 12
"""The approximate number of other tests of a file, which show the code common to its tests."""


@dataclass
class Verdict:
    """The result of a row."""

    row: str
    ends: dict[Mutant, str] = field(default_factory=dict)
    """The end of each mutant, in the order of their trials."""
    why_not: str = ""
    """Why no mutant was tried."""
    is_judged: bool = False
    """Whether the tests of the row run here, and pass without a mutant."""
    seconds: float = 0.0

    def of(self, end: str) -> list[Mutant]:
        """Return the mutants that ended so."""
        return [mutant for mutant, each in self.ends.items() if each == end]

    @property
    def killed(self) -> int:
        return len(self.of(KILLED))

    @property
    def tried(self) -> int:
        """The mutants that count; a broken one says nothing."""
        return self.killed + len(self.of(ALIVE))

    @property
    def is_good(self) -> bool:
        """Whether the tests kill at least four of five."""
        return record.is_good(self.killed, self.tried)


class Check:
    """Judges rows one after the other."""

    def __init__(
        self,
        project: Project,
        tests: Mapping[str, list[str]],
        rows: Iterable[str],
        options: argparse.Namespace,
    ) -> None:
        self._project = project
        self._tests = tests
        self._seed: int = options.seed
        self._bound: int = options.mutants
        self._patience_s: float = options.patience
        self._chooser = Chooser(project.root, project.packages, project.excluded)
        self._files: dict[str, set[str]] = {}
        """The marked tests by file."""
        for test in {test for of_row in tests.values() for test in of_row}:
            self._files.setdefault(_file(test), set()).add(test)
        self._asked = {test for row in rows if self._chooser.cited(row) for test in tests[row]}
        self._baselines: dict[str, Baseline] = {}
        """The results by test."""

    def _baseline(self, test: str) -> Baseline:
        """Run the selected tests of a file, and some others, to determine the code common to them."""
        if test not in self._baselines:
            asked = {each for each in self._asked if _file(each) == _file(test)}
            baseline = watch(self._project, sorted(asked | self._others(_file(test))))
            preload(self._project, baseline.modules)
            self._baselines |= dict.fromkeys(asked, baseline)
        return self._baselines[test]

    def _others(self, file: str) -> set[str]:
        tests = sorted(self._files[file])
        return {*tests[:: max(1, len(tests) // OTHERS)]}

    def judge(self, row: str) -> Verdict:
        """Try mutants of the code about a row; the slow tests meet those that the others leave alive."""
        started = time.monotonic()
        verdict = Verdict(row)
        if not self._chooser.cited(row):
            verdict.is_judged = True
            verdict.why_not = f"no code cites it: needs a citation{self._proposal(row)}"
            return verdict
        quick = [test for test in self._tests[row] if not self._project.is_slow(test)]
        slow = [test for test in self._tests[row] if self._project.is_slow(test)]
        if quick:
            self._try(verdict, quick, {self._baseline(test) for test in quick})
        if slow and verdict.killed < self._bound:
            self._try(verdict, slow, {watch(self._project, slow, row)})
        verdict.seconds = time.monotonic() - started
        return verdict

    def _try(self, verdict: Verdict, tests: list[str], baselines: Collection[Baseline]) -> None:
        watched = [
            (test, baseline.tests[verdict.row, test])
            for test in tests
            for baseline in baselines
            if (verdict.row, test) in baseline.tests
        ]
        outcomes = {outcome for _, each in watched for outcome in each.outcomes}
        if "failed" in outcomes or "passed" not in outcomes:
            verdict.why_not = verdict.why_not or (
                "its tests fail as they are" if "failed" in outcomes else "its tests are skipped here"
            )
            return
        verdict.is_judged = True
        tests = [test for test, _ in watched]
        others: dict[str, list[Watched]] = {}
        for baseline in baselines:
            for (_, test), each in baseline.tests.items():
                if test not in tests and test in self._others(_file(test)):
                    others.setdefault(test, []).append(each)
        row = Row(
            verdict.row,
            tests,
            _union(each.lines for _, each in watched),
            [_union(each.lines for each in some) for some in others.values()],
            _union(baseline.imported for baseline in baselines),
        )
        limit_s = self._patience_s + 5 * sum(each.seconds for _, each in watched)
        with Trial(self._project, verdict.row, tests, limit_s) as trial:
            self._try_each(verdict, trial, self._chooser.mutants(row, str(self._seed)))
        verdict.why_not = "" if verdict.tried else self._why_not(verdict)

    def _try_each(self, verdict: Verdict, trial: Trial, about: Sequence[Mutant]) -> None:
        fresh = (mutant for mutant in about if mutant not in verdict.ends)
        for mutant in [mutant for mutant in verdict.of(ALIVE) if mutant in about]:
            if trial.judge(mutant) == KILLED:
                verdict.ends[mutant] = KILLED
        for mutant in fresh:
            if verdict.tried >= self._bound or len(verdict.ends) >= 3 * self._bound:
                return
            verdict.ends[mutant] = trial.judge(mutant)

    def _why_not(self, verdict: Verdict) -> str:
        if verdict.ends:
            return "each change of the code that cites it ends in nonsense"
        places = self._chooser.cited(verdict.row)
        return f"its tests run no code to change where it is cited: {', '.join(map(self._named, places[:3]))}"

    def _proposal(self, row: str) -> str:
        places = self._chooser.nearby(row)
        return f"; nearby: {', '.join(map(self._named, places[:3]))}" if places else ""

    def _named(self, place: tuple[Path, int]) -> str:
        return f"{place[0].relative_to(self._project.root).as_posix()}:{place[1]}"


def _file(test: str) -> str:
    return test.partition("::")[0]


def _union(covered: Iterable[Mapping[str, set[int]] | Mapping[Path, set[int]]]) -> dict[Path, set[int]]:
    lines: dict[Path, set[int]] = {}
    for each in covered:
        for file, numbers in each.items():
            lines.setdefault(Path(file), set()).update(numbers)
    return lines


def _line(project: Project, mutant: Mutant) -> str:
    return f"{mutant.path.relative_to(project.root).as_posix()}:{mutant.line}: {mutant.text}"


def report(project: Project, verdicts: Sequence[Verdict], tests: Mapping[str, list[str]]) -> int:
    """Print the rows whose marks are in doubt and the totals; return the exit status."""
    judged = [each for each in verdicts if each.is_judged]
    weak = [each for each in judged if each.tried and not each.is_good]
    without = [each for each in judged if not each.tried]
    unknown = [each for each in verdicts if not each.is_judged]
    for title, some in (
        ("Rows that can't be judged", unknown),
        ("Rows without code about them", without),
    ):
        if some:
            print(f"\n{title}:")
            for each in some:
                print(f"  {each.row}: {each.why_not}")
    if weak:
        print("\nRows whose tests leave more than one of five mutants alive:")
        for each in weak:
            print(f"  {each.row}: {each.killed}/{each.tried}: {', '.join(tests[each.row])}")
            for mutant in each.of(ALIVE):
                print(f"    {_line(project, mutant)}")
    killed, tried = sum(each.killed for each in judged), sum(each.tried for each in judged)
    good = sum(each.is_good for each in judged)
    share = good / len(judged) if judged else 0.0
    print(
        f"\n{len(judged)} rows judged, {len(unknown)} not; {tried} mutants, {killed} killed\n"
        f"{good} rows ({share:.0%}) with at least four of five killed, {len(weak)} with fewer, "
        f"{len(without)} without code about them"
    )
    return 0 if share >= record.AIM else 1


def answer(project: Project, verdicts: Sequence[Verdict], options: argparse.Namespace) -> dict[str, Any]:
    """Return the results as a program reads them."""
    judged = [each for each in verdicts if each.is_judged]
    return {
        "seed": options.seed,
        "judged": len(judged),
        "good": sum(each.is_good for each in judged),
        "rows": [
            {
                "id": each.row,
                "judged": each.is_judged,
                "killed": each.killed,
                "tried": each.tried,
                "why_not": each.why_not,
                "seconds": round(each.seconds, 1),
                "mutants": [
                    {
                        "file": mutant.path.relative_to(project.root).as_posix(),
                        "line": mutant.line,
                        "change": mutant.text,
                        "end": end,
                    }
                    for mutant, end in each.ends.items()
                ],
            }
            for each in verdicts
        ],
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, metavar="N", default=0, help="a random sample of so many rows")
    parser.add_argument("--skip", type=int, metavar="N", default=0, help="leave out the first rows of it")
    parser.add_argument("--seed", type=int, metavar="S", default=0, help="of the sample and of the mutants")
    parser.add_argument("--row", nargs="+", metavar="ID", default=[], help="these rows")
    parser.add_argument("--mutants", type=int, metavar="M", default=MUTANTS, help="how many for a row")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    parser.add_argument(
        "--record",
        action="store_true",
        help=f"note the rows in docs/conformance/{record.FILE}, for the conformance pages",
    )
    parser.add_argument(
        "--patience",
        type=float,
        metavar="S",
        default=20,
        help="seconds beyond five times the duration of the tests",
    )
    parser.add_argument("--root", type=Path, help="another project, with --package")
    parser.add_argument("--package", action="append", help="a folder of its product")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the children and reports, as Ctrl-C does
    project = PRODUCT
    if options.root:
        project = Project(options.root.resolve(), tuple(options.package or ()))
    with tempfile.TemporaryDirectory() as folder:
        keep_bytecode(Path(folder))
        try:
            return run(project, options)
        except (RunError, record.RecordError) as exc:
            print(exc, file=sys.stderr)
            return 2


def run(project: Project, options: argparse.Namespace) -> int:
    """Judge the rows that the options name and return the exit status."""
    started = time.monotonic()
    table = project.root / "docs" / "conformance" / record.FILE
    if options.record:
        record.read(table)  # an error before the work
    print("Collecting the tests that name a row ...", flush=True)
    tests = collect(project)
    if unknown := sorted({*options.row} - tests.keys()):
        raise RunError(f"no test names {', '.join(unknown)}")
    sample = _shuffled(tests, options.seed)[options.skip : options.skip + options.rows]
    rows = list(dict.fromkeys([*options.row, *sample]))
    check = Check(project, tests, rows, options)
    verdicts: list[Verdict] = []
    with suppress(KeyboardInterrupt):  # a report of the results so far
        for number, row in enumerate(rows, 1):
            print(f"{time.monotonic() - started:5.0f} s {number:4} {row}: ", end="", flush=True)
            verdict = check.judge(row)
            verdicts.append(verdict)
            counted = f"{verdict.killed}/{verdict.tried}" if verdict.tried else verdict.why_not
            print(f"{counted} ({verdict.seconds:.1f} s)", flush=True)
    if options.json:
        text = json.dumps(answer(project, verdicts, options), indent=1)
        options.json.write_text(text + "\n", encoding="utf-8")
    if options.record:
        date = time.strftime("%Y-%m-%d", time.gmtime())
        measured = [
            record.Measured(each.row, each.killed, each.tried, options.seed, date)
            for each in verdicts
            if each.is_judged
        ]
        record.write(table, measured)
    return report(project, verdicts, tests)


def _shuffled(rows: Iterable[str], seed: int) -> list[str]:
    """A random order in which rows keep their places when others come or go."""
    return sorted(rows, key=lambda row: sha256(f"{seed} {row}".encode()).digest())


if __name__ == "__main__":
    sys.exit(main())
