"""Messages by HTTP, side by side with the least that does the same: a POST whose body is stored in SQLite.

    python benchmarks/http_transfer.py [--seconds S] [--rounds N] [--senders N] [--profile FILE]

Each server is a process of its own in a temporary folder on one disk, each sender is a process, over HTTP on
the loopback; messages of 1 KiB, recoverable, so that each is on disk before its 200. Ours: ``python -m
msmqwire serve --http``, and senders by `msmqwire.connect`, each a queue manager that sends SRMP messages of
its queue one after the other, as it must to keep their order. The other side: `http_bare.py`, aiohttp and a
table of SQLite with one commit for all that comes in one turn of the loop, and senders that are each an
`aiohttp.ClientSession` with one request under way. From the first send until all are in the queue, or table,
which is counted. The sides take turns, and the best of some rounds counts for each.

Rates of a machine that has other work say little; the processor time of each message says more. ``--profile
FILE`` writes a profile of our server, and ``QM_BENCHMARK_PROFILE=FILE`` one of the last sender to end.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final
from urllib.request import urlopen

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.qm import rate, together
from benchmarks.support.qm_clients import WINDOW, Sample
from benchmarks.support.qm_daemons import ADDRESS, QUEUE, Daemon, Msmqwire

AIM: Final = 0.5
PROFILED: Final = (
    "import cProfile, sys; from msmqwire.cli import main; file = sys.argv.pop(1)\n"
    "import time; profile = cProfile.Profile(time.process_time)\n"
    "try: profile.runcall(main)\n"
    "finally: profile.dump_stats(file)\n"
)
"""Our server as a program that writes its profile to a file."""


class MsmqwireHttp(Msmqwire):
    """``python -m msmqwire serve --http``."""

    client = "msmqwire by HTTP"
    options = ("--http", f"{ADDRESS}:0")

    def __init__(self, folder: Path, profile: str = "") -> None:
        super().__init__(folder)
        if profile:
            self.program = ("-c", PROFILED, profile)

    def queued(self) -> int:
        """Return the number of messages in the queue."""
        from msmqwire.qm.runtime.local import attach

        with attach(self.where["data"]) as local:
            return int(local.call("show", queue=f"private$\\{QUEUE}")["messages"])


class Bare(Daemon):
    """``benchmarks/http_bare.py``."""

    side = client = "aiohttp"
    says_ready = True

    def start(self) -> None:
        script = Path(__file__).with_name("http_bare.py")
        self._run([sys.executable, str(script), str(self.folder / "bodies")])
        self.where = {"port": int(self._ready_line().split()[1])}

    def queued(self) -> int:
        """Return the number of bodies in the table."""
        with urlopen(f"http://{ADDRESS}:{self.where['port']}/bodies") as answer:
            return int(answer.read())


def measure(side: MsmqwireHttp | Bare, senders: int, seconds: float) -> tuple[Sample, float]:
    """Return the results of the senders, and the seconds of processor time of the server."""
    before, used = side.queued(), side.processor_s()
    sample = together("send", side.client, senders, side.where, "recoverable", WINDOW, seconds)
    used = side.processor_s() - used
    arrived = side.queued() - before
    if arrived != sample.count + senders:  # each has sent one before the start
        raise SystemExit(f"{side.side}: {arrived} of {sample.count + senders} messages have arrived")
    return sample, used


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="measurements; the best one counts")
    parser.add_argument("--senders", type=int, default=8, help="processes that send")
    parser.add_argument("--profile", default="", metavar="FILE", help="of our server, instead of figures")
    given = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, messages of 1 KiB")
    with tempfile.TemporaryDirectory(prefix="msmqwire-bench-") as name, ExitStack() as stack:
        ours = stack.enter_context(MsmqwireHttp(Path(name) / "msmqwire", given.profile))
        if given.profile:
            measure(ours, given.senders, given.seconds)
            return
        sides = [ours, stack.enter_context(Bare(Path(name) / "bare"))]
        best: dict[str, Sample] = {}
        costs: dict[str, list[float]] = {}
        for _ in range(given.rounds):
            for side in sides:
                sample, used = measure(side, given.senders, given.seconds)
                cost = [1e6 * each / sample.count for each in (used, sample.processor_s)]
                costs[side.side] = [min(pair) for pair in zip(cost, costs.get(side.side, cost), strict=True)]
                if side.side not in best or rate(sample) > rate(best[side.side]):
                    best[side.side] = sample
    show(best, costs, given.senders)


def show(best: dict[str, Sample], costs: dict[str, list[float]], senders: int) -> None:
    """Print the figures."""
    print(
        f"{f'recoverable, {senders} senders':28}{'messages/s':>12}{'µs of the server':>20}{'of a sender':>14}"
    )
    for side, sample in best.items():
        server, sender = costs[side]
        print(f"{side:28}{rate(sample):>12,.0f}{server:>20.0f}{sender:>14.0f}")
    ours, theirs = MsmqwireHttp.side, Bare.side
    ratio = rate(best[ours]) / rate(best[theirs])
    processors = sum(costs[theirs]) / sum(costs[ours])
    told = "reached" if ratio >= AIM else "missed"
    print(f"our rate is {ratio:.2f} of theirs (aim {AIM}: {told}), {processors:.2f} by processor time alone")


if __name__ == "__main__":
    main()
