"""Messages by HTTP, side by side with the least that does the same: a POST whose body is stored in SQLite.

    python benchmarks/http_transfer.py [--seconds S] [--rounds N] [--senders N] [--profile FILE]

Each server is a process of its own in a temporary folder on one disk, each sender is a process, over HTTP on
the loopback; messages of 1 KiB, recoverable, so that each is on disk before its 200. Ours: ``python -m
msmqwire serve --http``, and senders by `msmqwire.connect`, each a queue manager that sends SRMP messages of
its queue one after the other, as it must to keep their order. The other side: `http_bare.py`, aiohttp and a
table of SQLite with one commit for all that comes in one turn of the loop, and senders that are each an
`aiohttp.ClientSession` with one request under way. From the first send until all are in the queue, or table,
which is counted. The sides take turns, and the best of some rounds counts for each.

``--profile`` writes the profile of a sender to FILE and that of our server to FILE.server.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent))

import qm_clients
from qm import percentile, rate, together
from qm_clients import Sample
from qm_daemons import ADDRESS, QUEUE, ROOT, Daemon, Msmqwire

AIM: Final = 0.5
_PROFILED: Final = (
    "import cProfile, sys; from msmqwire.cli import main; file = sys.argv.pop(1)\n"
    "profile = cProfile.Profile()\n"
    "try: profile.runcall(main)\n"
    "finally: profile.dump_stats(file)\n"
)


class MsmqwireHttp(Msmqwire):
    """``python -m msmqwire serve --http``."""

    side, client = "msmqwire", "msmqwire by HTTP"
    options = ("--http", f"{ADDRESS}:0")

    def __init__(self, folder: Path, profile: str = "") -> None:
        super().__init__(folder)
        if profile:
            self.program = ("-c", _PROFILED, profile)

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
        self.folder.mkdir()
        script = Path(__file__).with_name("http_bare.py")
        self._run([sys.executable, str(script), str(self.folder / "bodies")])
        self.where = {"port": int(self._ready().split()[1])}

    def queued(self) -> int:
        """Return the number of bodies in the table."""
        with urllib.request.urlopen(f"http://{ADDRESS}:{self.where['port']}/bodies") as answer:
            return int(answer.read())


Side = MsmqwireHttp | Bare


def measure(side: Side, senders: int, seconds: float) -> tuple[Sample, float]:
    """Return what the senders did, and the seconds of processor time of the server."""
    before, used = side.queued(), side.processor_s()
    sample = together("send", side.client, senders, side.where, "recoverable", 1, seconds)
    used = side.processor_s() - used
    arrived = side.queued() - before
    if arrived != sample.count + senders:  # each has sent one before the start
        raise SystemExit(f"{side.side}: {arrived} of {sample.count + senders} messages have arrived")
    return sample, used


def show(side: Side, sample: Sample, used: float) -> None:
    """Print a line of the table."""
    p50, p99 = percentile(sample, 0.5), percentile(sample, 0.99)
    server, sender = 1e6 * used / sample.count, 1e6 * sample.processor_s / sample.count
    print(f"{side.side:12}{rate(sample):>12,.0f}{p50:>8.2f}{p99:>8.2f}{server:>14.0f}{sender:>12.0f}", flush=True)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of which the best counts")
    parser.add_argument("--senders", type=int, default=8, help="processes that send")
    parser.add_argument("--profile", default="", metavar="FILE", help="profiles of one round of ours")
    given = parser.parse_args()
