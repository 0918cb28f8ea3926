"""``python -m msmqwire.qm.sim``: runs of many seeds, and the story of a failing one."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from typing import Final

from msmqwire.qm.sim.plan import FAULTS, FULL_DISK, REMOTE_SHARE, Plan, make_plan
from msmqwire.qm.sim.shrink import shrink
from msmqwire.qm.sim.world import RunOutcome, World
from msmqwire.service.virtual.violation import Violation

BLOCK: Final = 50
"""Seeds that a process runs between reports."""


def run_block(
    first: int,
    last: int,
    nodes: int | None,
    http: float | None = None,
    remote: float = REMOTE_SHARE,
    secured: float | None = None,
) -> tuple[Counter[str], list[tuple[int, Violation]]]:
    """Run the seeds from `first` up to, not including, `last`.

    Returns:
        The count of each kind of event, and the failing seeds with their violations.
    """
    counts: Counter[str] = Counter()
    failed = []
    for seed in range(first, last):
        plan = make_plan(seed, nodes=nodes, http=http, remote=remote, secured=secured)
        outcome = World(plan).run()
        counts += outcome.counts
        counts["seeds"] += 1
        if outcome.violation is not None:
            failed.append((seed, outcome.violation))
    return counts, failed


def _blocks(first: int, last: int) -> Iterator[tuple[int, int]]:
    for start in range(first, last, BLOCK):
        yield start, min(start + BLOCK, last)


def print_story(outcome: RunOutcome) -> None:
    """Print the outcome, the plan and the story of a run."""
    plan = outcome.plan
    print(f"seed {plan.seed}: {outcome.violation or 'all invariants hold'}")
    for item in plan.items:
        print(f"  {item}")
    print(outcome.story.diagram(plan.nodes))


def _run_range(
    first: int, last: int, jobs: int, drawn: tuple[int | None, float | None, float, float | None]
) -> list[tuple[int, Violation]]:
    """Run a range of seeds in several processes and print figures; return the failing seeds.

    `drawn` are the further arguments of `run_block`.
    """
    nodes, http, remote, secured = drawn
    counts: Counter[str] = Counter()
    failed: list[tuple[int, Violation]] = []
    start = time.monotonic()
    with ProcessPoolExecutor(jobs) as pool:
        futures = [
            pool.submit(run_block, *block, nodes, http, remote, secured) for block in _blocks(first, last)
        ]
        for future in as_completed(futures):
            block_counts, block_failed = future.result()
            counts += block_counts
            failed += block_failed
            if sys.stderr.isatty():
                print(f"\r{counts['seeds']} of {last - first} seeds", end="", file=sys.stderr, flush=True)
    seconds = time.monotonic() - start
    print(f"{counts['seeds']} seeds, {counts['seeds'] / seconds:.1f} a second, {len(failed)} fail")
    listed = (
        "messages",
        "packets",
        "requests",
        "remote calls",
        "remote messages",
        "commits",
        "connections",
        "acknowledgements",
        "virtual seconds",
        *FAULTS,
        FULL_DISK,
    )
    for name in (*listed, *sorted(set(counts) - {*listed, "seeds"})):
        print(f"  {name:<22}{counts[name]:>12,}")
    return sorted(failed, key=lambda failure: failure[0])


def _range(text: str) -> tuple[int, int]:
    """Parse FROM:TO."""
    first, _, last = text.partition(":")
    if not (first.isdigit() and last.isdigit() and int(first) < int(last)):
        raise argparse.ArgumentTypeError(f"{text!r} is not FROM:TO, with FROM less than TO")
    return int(first), int(last)


def _share(text: str) -> float:
    """Parse a number from 0 to 1."""
    share = float(text)
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not from 0 to 1")
    return share


def _plan(seed: int, options: argparse.Namespace) -> Plan:
    return make_plan(
        seed, nodes=options.nodes, http=options.http, remote=options.remote, secured=options.secured
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit status, 1 when an invariant does not hold."""
    parser = argparse.ArgumentParser(prog="python -m msmqwire.qm.sim", description=__doc__)
    parser.add_argument(
        "--seeds", type=_range, default=(0, 200), metavar="FROM:TO", help="the seeds to run (0:200)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--nodes", type=int, choices=(2, 3, 4), help="queue managers; drawn if left out")
    parser.add_argument(
        "--http", type=_share, metavar="SHARE", help="share of links that use SRMP, 0 to 1; drawn if left out"
    )
    parser.add_argument(
        "--remote", type=_share, default=REMOTE_SHARE, metavar="SHARE",
        help=f"share of runs with remote readers, 0 to 1 ({REMOTE_SHARE})",
    )  # fmt: skip
    parser.add_argument(
        "--secured", type=_share, metavar="SHARE",
        help="share of messages that are signed or encrypted, 0 to 1; drawn if left out",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, help="run only this seed")
    parser.add_argument("--capture", metavar="FILE", help="write its traffic as a pcap file")
    parser.add_argument("--story", action="store_true", help="print its events")
    options = parser.parse_args(arguments)
    if options.seed is not None:
        with ExitStack() as stack:
            try:
                capture = stack.enter_context(open(options.capture, "wb")) if options.capture else None
            except OSError as exc:
                parser.error(f"{options.capture}: {exc.strerror or exc}")
            outcome = World(_plan(options.seed, options), story=True, capture=capture).run()
        if options.story:
            print_story(outcome)
        failed = [(options.seed, outcome.violation)] if outcome.violation is not None else []
    else:
        first, last = options.seeds
        drawn = options.nodes, options.http, options.remote, options.secured
        failed = _run_range(first, last, options.jobs, drawn)
    for seed, violation in failed[:20]:
        print(f"seed {seed}: {violation}")
    if failed and not (options.seed is not None and options.story):
        print("\nthe first of them, shortened as far as possible:")
        print_story(shrink(World(_plan(failed[0][0], options)).run()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
