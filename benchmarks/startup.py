"""Benchmark of the start of the command line: milliseconds of processor time, the best of several runs.

    python benchmarks/startup.py [RUNS]

Each run is a process of its own, with its bytecode cached. The aim is 150 ms for commands about the program
itself, and 300 ms for `dissect` of a small capture.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
CASES: Final = {
    "python": (("-c", "pass"), None),
    "import msmqwire": (("-c", "import msmqwire"), None),
    "msmqwire --version": (("-m", "msmqwire", "--version"), 150),
    "msmqwire --help": (("-m", "msmqwire", "--help"), 150),
    "msmqwire dissect session.pcap": (("-m", "msmqwire", "dissect", "examples/session.pcap"), 300),
}


def spent_ms() -> float:
    """Return the processor time of all processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (usage.ru_utime + usage.ru_stime)


def run(arguments: tuple[str, ...]) -> float:
    """Return the processor time of one process."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = spent_ms()
    subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    return spent_ms() - before


def main() -> None:
    """Run the benchmark."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print(f"{'':<32}{'ms':>6}{'aim':>6}")
    for name, (arguments, aim) in CASES.items():
        run(arguments)  # compiles modules without bytecode
        best = min(run(arguments) for _ in range(runs))
        verdict = "" if aim is None else f"{aim:>6} {'reached' if best <= aim else 'missed'}"
        print(f"{name:<32}{best:>6.0f}{verdict}")


if __name__ == "__main__":
    main()
