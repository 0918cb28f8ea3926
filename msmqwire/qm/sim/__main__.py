"""``python -m msmqwire.qm.sim``: runs of many seeds, and the story of one that fails."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from typing import Final

from msmqwire.qm.sim.plan import FAULTS, make
from msmqwire.qm.sim.shrink import shrink
from msmqwire.qm.sim.violation import Violated
from msmqwire.qm.sim.world import Outcome, World

BLOCK: Final = 50
"""Seeds that one process runs before it reports."""


def run_block(first: int, last: int, nodes: int | None) -> tuple[Counter[str], list[tuple[int, Violated]]]:
    """Runs the seeds from `first` up to, not including, `last`: what happened, and the seeds that fail."""
    counts: Counter[str] = Counter()
    failed = []
    for seed in range(first, last):
        outcome = World(make(seed, nodes=nodes)).run()
        counts += outcome.counts
        counts["seeds"] += 1
        if outcome.violation is not None:
            failed.append((seed, outcome.violation))
    return counts, failed


def _blocks(first: int, last: int) -> Iterator[tuple[int, int]]:
    for start in range(first, last, BLOCK):
        yield start, min(start + BLOCK, last)


def tell(outcome: Outcome) -> None:
    """Print the story of a run."""
    plan = outcome.plan
    print(f"seed {plan.seed}: {outcome.violation or 'all invariants hold'}")
    for item in plan.items:
        print(f"  {item}")
    print(outcome.story.diagram(plan.nodes))


def _many(first: int, last: int, jobs: int, nodes: int | None) -> list[tuple[int, Violated]]:
    counts: Counter[str] = Counter()
    failed: list[tuple[int, Violated]] = []
    since = time.monotonic()
    with ProcessPoolExecutor(jobs) as pool:
        for done in as_completed([pool.submit(run_block, *block, nodes) for block in _blocks(first, last)]):
            of_block, failed_of_block = done.result()
            counts += of_block
            failed += failed_of_block
            if sys.stderr.isatty():
                print(f"\r{counts['seeds']} of {last - first} seeds", end="", file=sys.stderr, flush=True)
    seconds = time.monotonic() - since
    print(f"{counts['seeds']} seeds, {counts['seeds'] / seconds:.1f} a second, {len(failed)} fail")
    shown = ("messages", "packets", "commits", "connections", "acknowledgements", "virtual seconds", *FAULTS)
    for name in (*shown, *sorted(set(counts) - {*shown, "seeds"})):
        print(f"  {name:<22}{counts[name]:>12,}")
    return sorted(failed, key=lambda one: one[0])


def _range(text: str) -> tuple[int, int]:
    """FROM:TO as numbers."""
    first, _, last = text.partition(":")
    if not (first.isdigit() and last.isdigit() and int(first) < int(last)):
        raise argparse.ArgumentTypeError(f"{text!r} is not FROM:TO, two numbers of which the first is less")
    return int(first), int(last)


def main(arguments: list[str] | None = None) -> int:
    """The command line; gives the exit status, 1 when an invariant does not hold."""
    parser = argparse.ArgumentParser(prog="python -m msmqwire.qm.sim", description=__doc__)
    parser.add_argument(
        "--seeds", type=_range, default=(0, 200), metavar="FROM:TO", help="the seeds to run (0:200)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--nodes", type=int, choices=(2, 3, 4), help="queue managers; drawn when left out")
    parser.add_argument("--seed", type=int, help="run only this one")
    parser.add_argument("--capture", metavar="FILE", help="write its traffic as a pcap file")
    parser.add_argument("--story", action="store_true", help="print what happens in it")
    chosen = parser.parse_args(arguments)
    if chosen.seed is not None:
        with ExitStack() as stack:
            try:
                capture = stack.enter_context(open(chosen.capture, "wb")) if chosen.capture else None
            except OSError as exc:
                parser.error(f"{chosen.capture}: {exc.strerror or exc}")
            outcome = World(make(chosen.seed, nodes=chosen.nodes), story=True, capture=capture).run()
        if chosen.story:
            tell(outcome)
        failed = [(chosen.seed, outcome.violation)] if outcome.violation is not None else []
    else:
        first, last = chosen.seeds
        failed = _many(first, last, chosen.jobs, chosen.nodes)
    for seed, violation in failed[:20]:
        print(f"seed {seed}: {violation}")
    if failed and not (chosen.seed is not None and chosen.story):
        print("\nthe first of them, made as short as it can be:")
        tell(shrink(World(make(failed[0][0], nodes=chosen.nodes)).run()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
