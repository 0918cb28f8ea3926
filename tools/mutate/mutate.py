"""Checks that the marks of requirements are earned: marked tests must notice changes of the code.

    python tools/mutate/mutate.py --rows 300 --seed 1       a random sample of the rows with marked tests
    python tools/mutate/mutate.py --row MQQB-4.1.1-01 ...   these rows

For each row it determines the code that the row's tests cover, makes one small change there (a mutant) and
runs these tests; the first killed mutant is enough. Rows whose tests kill none are printed, and make the exit
status 1. CONTRIBUTING.md explains the results.

The reason for a separate mutator: mutmut 3 changes only code inside functions, while much of this product is
declarations that run at import, and cosmic-ray writes each mutant into the tree and runs one command for all.
Neither knows that one test is asked about one row. This one needs `ast`, an import hook and `os.fork`.

msmqwire/tables/compiled is left alone: what runs is a library that no mutant changes.
Processes that a test starts run the product unchanged.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

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
)
MUTANTS = 10
"""Limit of mutants tried in the code about a row; twice as many elsewhere."""

OTHERS = 12
"""The approximate number of other tests of a file, which show the code common to its tests."""


@dataclass
class Verdict:
    """The result of a row."""

    row: str
    killed: Mutant | None = None
    about: int = 0
    """The number of mutants of code about the row that its tests left alive."""
    killed_about: bool = False
    tried: int = 0
    broken: int = 0
    alive: list[Mutant] = field(default_factory=list)
    why_not: str = ""
    """Why the row can't be judged."""


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
        self._asked = {test for row in rows for test in tests[row]}
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
        """Try mutants until the tests of a row kill one."""
        verdict = Verdict(row)
        quick = [test for test in self._tests[row] if not self._project.is_slow(test)]
        if quick:
            self._try(verdict, quick, {self._baseline(test) for test in quick})
        if verdict.killed is None and len(quick) < len(self._tests[row]):
            slow = [test for test in self._tests[row] if self._project.is_slow(test)]
            self._try(verdict, slow, {watch(self._project, slow, row)})
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
            verdict.why_not = (
                "its tests fail as they are" if "failed" in outcomes else "its tests are skipped here"
            )
            return
        tests = [test for test, _ in watched]
        others: dict[str, list[Watched]] = {}
        for baseline in baselines:
            for (_, test), each in baseline.tests.items():
                if test not in tests and test in self._others(_file(test)):
                    others.setdefault(test, []).append(each)
        row = Row(verdict.row, tests, _union(each for _, each in watched), [*map(_union, others.values())])
        targets = self._chooser.targets(row, str(self._seed))
        limit_s = self._patience_s + 5 * sum(each.seconds for _, each in watched)
        verdict.why_not = ""
        with Trial(self._project, verdict.row, tests, limit_s) as trial:
            for mutants, is_about in ((targets.about, True), (targets.elsewhere, False)):
                self._try_some(verdict, trial, mutants, is_about, self._bound * (1 if is_about else 2))
                if verdict.killed:
                    return
        if not verdict.alive:
            verdict.why_not = "nothing of the code that its tests cover can be changed"

    def _try_some(
        self, verdict: Verdict, trial: Trial, mutants: Sequence[Mutant], is_about: bool, bound: int
    ) -> None:
        alive = 0
        for mutant in mutants[: 2 * bound]:
            if alive == bound:
                return
            verdict.tried += 1
            end = trial.judge(mutant)
            if end == KILLED:
                verdict.killed, verdict.killed_about = mutant, is_about
                return
            if end == ALIVE:
                alive += 1
                verdict.alive.append(mutant)
                verdict.about += is_about
            else:
                verdict.broken += 1


def _file(test: str) -> str:
    return test.partition("::")[0]


def _union(watched: Iterable[Watched]) -> dict[Path, set[int]]:
    lines: dict[Path, set[int]] = {}
    for each in watched:
        for file, numbers in each.lines.items():
            lines.setdefault(Path(file), set()).update(numbers)
    return lines


def _line(project: Project, mutant: Mutant) -> str:
    return f"{mutant.path.relative_to(project.root).as_posix()}:{mutant.line}: {mutant.text}"


def report(project: Project, verdicts: Sequence[Verdict], tests: Mapping[str, list[str]]) -> int:
    """Print the rows whose marks are in doubt and the totals; return the exit status."""
    none = [each for each in verdicts if each.killed is None and not each.why_not]
    beside = [each for each in verdicts if each.killed and not each.killed_about and each.about]
    unknown = [each for each in verdicts if each.killed is None and each.why_not]
    if beside:
        print("\nRows whose tests kill a mutant, but none of the code that cites them:")
        for each in beside:
            print(f"  {each.row}: {each.about} alive, the first {_line(project, each.alive[0])}")
    if unknown:
        print("\nRows that can't be judged:")
        for each in unknown:
            print(f"  {each.row}: {each.why_not}")
    if none:
        print("\nRows whose tests kill no mutant:")
        for each in none:
            print(f"  {each.row}: {', '.join(tests[each.row])}")
            for mutant in each.alive:
                print(f"    {_line(project, mutant)}")
    tried = sum(each.tried for each in verdicts)
    killed = sum(each.killed is not None for each in verdicts)
    broken = sum(each.broken for each in verdicts)
    print(
        f"\n{len(verdicts)} rows, {tried} mutants: {killed} killed, {broken} broken, "
        f"{tried - killed - broken} alive\n"
        f"{len(none)} rows without a killed mutant, {len(beside)} with none in the code that cites them, "
        f"{len(unknown)} not judged"
    )
    return 1 if none else 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, metavar="N", default=0, help="a random sample of so many rows")
    parser.add_argument("--skip", type=int, metavar="N", default=0, help="leave out the first rows of it")
    parser.add_argument("--seed", type=int, metavar="S", default=0, help="of the sample and of the mutants")
    parser.add_argument("--row", nargs="+", metavar="ID", default=[], help="these rows")
    parser.add_argument("--mutants", type=int, metavar="M", default=MUTANTS, help="the bound for a row")
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
    project = PRODUCT
    if options.root:
        project = Project(options.root.resolve(), tuple(options.package or ()))
    with tempfile.TemporaryDirectory() as folder:
        keep_bytecode(Path(folder))
        try:
            return run(project, options)
        except RunError as exc:
            print(exc, file=sys.stderr)
            return 2


def run(project: Project, options: argparse.Namespace) -> int:
    """Judge the rows that the options name and return the exit status."""
    started = time.monotonic()
    tests = collect(project)
    if unknown := sorted({*options.row} - tests.keys()):
        raise RunError(f"no test names {', '.join(unknown)}")
    sample = random.Random(options.seed).sample(sorted(tests), len(tests))
    rows = list(dict.fromkeys([*options.row, *sample[options.skip : options.skip + options.rows]]))
    check = Check(project, tests, rows, options)
    verdicts = []
    with suppress(KeyboardInterrupt):  # a report of the results so far
        for number, row in enumerate(rows, 1):
            verdict = check.judge(row)
            verdicts.append(verdict)
            end = _line(project, verdict.killed) if verdict.killed else verdict.why_not or "NONE KILLED"
            print(
                f"{time.monotonic() - started:5.0f} s {number:4} {row}: {verdict.tried} tried: {end}",
                flush=True,
            )
    return report(project, verdicts, tests)


if __name__ == "__main__":
    sys.exit(main())
