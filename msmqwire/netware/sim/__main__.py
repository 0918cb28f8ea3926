"""``python -m msmqwire.netware.sim``: runs of many seeds."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable

from msmqwire.netware.sim.world import NetwareWorld
from msmqwire.service.virtual.violation import Violation


def run_seeds(seeds: Iterable[int]) -> tuple[Counter[str], list[tuple[int, Violation]]]:
    """Run seeds; return the count of each kind of event, and the failing seeds."""
    counts: Counter[str] = Counter()
    failed = []
    for seed in seeds:
        outcome = NetwareWorld(seed).run()
        counts += outcome.counts
        counts["seeds"] += 1
        if outcome.violation is not None:
            failed.append((seed, outcome.violation))
    return counts, failed


def _range(text: str) -> range:
    """Parse FROM:TO."""
    first, _, last = text.partition(":")
    if not (first.isdecimal() and last.isdecimal() and int(first) < int(last)):
        raise argparse.ArgumentTypeError(f"{text!r} is not FROM:TO, two numbers of which the first is less")
    return range(int(first), int(last))


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit status, 1 when an invariant does not hold."""
    parser = argparse.ArgumentParser(prog="python -m msmqwire.netware.sim", description=__doc__)
    parser.add_argument(
        "--seeds", type=_range, default=range(50), metavar="FROM:TO", help="the seeds to run (0:50)"
    )
    options = parser.parse_args(arguments)
    start = time.monotonic()
    counts, failed = run_seeds(options.seeds)
    seeds, seconds = counts.pop("seeds"), time.monotonic() - start
    listed = ", ".join(f"{counts[name]:,} {name}" for name in sorted(counts))
    print(f"{seeds} seeds, {seeds / seconds:.1f} a second, {len(failed)} fail: {listed}")
    for seed, violation in failed:
        print(f"seed {seed}: {violation}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
