"""Runs the tests that reach a file: `make near FILE=msmqwire/packets.py`.

    python -m tools.near FILE [--budget 60] [--list] [pytest's options]
    python -m tools.near --map [TESTS...]

Tests come in the order of how specifically they reach the file, as far as the time goes. The code that each
test file runs is noted in build/near on its first run here, or for all at once with --map; without a record
imports decide.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tools.near.imports import Tree
from tools.near.reach import Reached, nearest, reach
from tools.near.records import IMPORTS, load

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("msmqwire", "spark_udfs", "fuzz", "scapy_extension")
FOLDERS = (*PRODUCT, "examples", "benchmarks", "tools", "packaging", "tests")
NOT_RECORDED_S = 5.0
"""The assumed duration of a test file without a record."""
SHORT_S = 8.0
"""Tests that last less are not worth the start of other processes."""
SHOWN = 12
USAGE = """Say which file: make near FILE=msmqwire/packets.py
  BUDGET=20  seconds that it may take (60)
  make near-map TESTS=tests/unit  notes what each test file runs, for better answers"""


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.near", description=__doc__.partition("\n")[0])
    parser.add_argument("file", nargs="?", default="", help="a path, or the dotted name of a module")
    parser.add_argument("--budget", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--list", action="store_true", help="say which tests, and run none")
    parser.add_argument("--map", nargs="*", metavar="TESTS", help="note the code that all these tests run")
    options, further = parser.parse_known_args(arguments)
    if options.map is not None:
        tests = options.map or ["tests/unit", "tests/conformance"]
        return _pytest(root, ["-n", str(_workers()), "--near-record", *further, *tests])
    if not options.file:
        print(USAGE, file=sys.stderr)
        return 2
    tree = Tree(root, FOLDERS, root / IMPORTS)
    file = _file(tree, options.file)
    if file is None:
        return _unknown(tree, options.file)
    found = reach(tree, load(root), file)
    if not found:
        return _unreached(file)
    needs = {each.test: missing for each in found if (missing := tree.missing(each.test))}
    chosen, left = choose([each for each in found if each.test not in needs], options.budget, _workers())
    _say(file, chosen, left, needs)
    if options.list or not chosen:
        return 0 if chosen else 1
    sys.stdout.flush()
    long = sum(each.seconds or NOT_RECORDED_S for each in chosen) > SHORT_S
    status = _pytest(root, [
        "-q", "-n", str(_workers() if long else 0), "--near-record",
        "--near-until", f"{time.time() + options.budget:.3f}", *further, *(each.test for each in chosen),
    ])  # fmt: skip
    if left:
        print(f"{len(left)} more test files reach {file}: make near FILE={file} BUDGET={_enough(found)}")
    return status


def choose(found: Sequence[Reached], budget: float, workers: int) -> tuple[list[Reached], list[Reached]]:
    """Return the tests that fit into the time, and the others; at least one is chosen."""
    chosen: list[Reached] = []
    left, spent = [], 0.0
    for each in found:
        seconds = (each.seconds if each.seconds is not None else NOT_RECORDED_S) / workers
        if not chosen or spent + seconds <= budget:
            chosen.append(each)
            spent += seconds
        else:
            left.append(each)
    return chosen, left


def _enough(found: Sequence[Reached]) -> int:
    seconds = sum(NOT_RECORDED_S if each.seconds is None else each.seconds for each in found)
    return int(seconds * 1.5 / _workers()) + 60


def _workers() -> int:
    return os.cpu_count() or 1


def _file(tree: Tree, asked: str) -> str | None:
    """The file that is meant, by its path or its dotted name."""
    path = Path(asked)
    path = path if path.is_absolute() else tree.root / path
    if path.is_dir():
        path = path / "__init__.py"
    if path.is_file() and path.resolve().is_relative_to(tree.root):
        return path.resolve().relative_to(tree.root).as_posix()
    return tree.file(asked) if tree.file(asked) and "/" not in asked and _whole(tree, asked) else None


def _whole(tree: Tree, name: str) -> bool:
    """Whether a dotted name is that of a module, not of a definition in one."""
    file = tree.file(name)
    return file is not None and name.rpartition(".")[2] in (Path(file).stem, Path(file).parent.name)


def _unknown(tree: Tree, asked: str) -> int:
    print(f"There is no file {asked}.", file=sys.stderr)
    for name in nearest(sorted(tree.imports), asked):
        print(f"  make near FILE={name}", file=sys.stderr)
    return 2


def _unreached(file: str) -> int:
    print(
        f"No test reaches {file}: none ran a function of it, imports it or names it.\n"
        "Processes that a test starts are not seen. A new test file that imports it is found at once.",
        file=sys.stderr,
    )
    return 1


def _say(file: str, chosen: Sequence[Reached], left: Sequence[Reached], needs: dict[str, list[str]]) -> None:
    print(f"{len(chosen) + len(left) + len(needs)} test files reach {file}, {len(chosen)} run now:")
    for each in chosen[:SHOWN]:
        seconds = "" if each.seconds is None else f", {each.seconds:.1f} s"
        print(f"  {each.test}: {each.why}{seconds}")
    if len(chosen) > SHOWN:
        print(f"  and {len(chosen) - SHOWN} more")
    if needs:
        libraries = sorted({name for missing in needs.values() for name in missing})
        print(f"{len(needs)} are left out: {', '.join(libraries)} not installed (make .venv/.installed-dev)")


def _pytest(root: Path, arguments: Sequence[str]) -> int:
    command = [sys.executable, "-m", "pytest", "-p", "tools.near.recording", *arguments]
    return subprocess.run(command, cwd=root, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
