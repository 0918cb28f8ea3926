"""The queue manager, side by side with the brokers that a user would pick instead on one machine.

    python benchmarks/qm.py [--seconds S] [--rounds N] [--only SIDES] [--queued N] [--folder FOLDER]

Each server is a process of its own in a temporary folder on one disk, each sender is a process, over TCP on
the loopback; messages of 1 KiB. Ours: ``python -m msmqwire serve``, `msmqwire.connect`, and `Queue.messages`
for receiving, over the control channel. RabbitMQ: a durable queue, persistent messages and publisher confirms
through pika, for receiving a prefetch of as many messages as our window has. Redis: a stream with
``appendfsync always`` through redis-py. What is not installed is named and left out.

``one by one`` is a message awaited until the other side has it on disk, then the next one; ``64 under way``
has so many of one sender that are not acknowledged yet, on every side: tasks with `Sent.transferred` here,
asynchronous confirms there, a pipeline with Redis. A transactional message is a transaction of its own:
exactly once and in order here, a ``tx.commit`` each there, on as many channels as are under way; it is also
compared with confirms. Express ones are RabbitMQ's transient messages without confirms and any number under
way, timed until the queue has them; ours are timed until their session acknowledgement.

``--only msmqwire,uvloop`` says whether ``serve`` gains by the event loop of uvloop: the senders are the same.
With ``--queued 1000000`` also: memory, start and rates with so many recoverable messages queued.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.support.qm_clients import BATCH, RECEIVERS, SENDERS, WINDOW, Sample
from benchmarks.support.qm_daemons import Daemon, Msmqwire, MsmqwireUvloop, Rabbit, Redis, missing
from benchmarks.support.remote_read_clients import READERS

SIDES: Final[tuple[type[Daemon], ...]] = (Msmqwire, MsmqwireUvloop, Rabbit, Redis)
BY_DEFAULT: Final = (Msmqwire, Rabbit, Redis)
OURS: Final = Msmqwire.side
THEIRS: Final = Rabbit.side
_PROCESS_S: Final = 300.0

Measured = dict[tuple[str, str], Sample]
"""The results by line and side."""
Costs = dict[tuple[str, str], float]
"""Microseconds of the server's processor for each message, by line and side."""

SENDING: Final = (
    # line, kind, senders, under way
    ("recoverable, 1 sender, one by one", "recoverable", 1, 1),
    (f"recoverable, 1 sender, {WINDOW} under way", "recoverable", 1, WINDOW),
    ("recoverable, 8 senders, one by one", "recoverable", 8, 1),
    (f"recoverable, 8 senders, {WINDOW} under way", "recoverable", 8, WINDOW),
    ("transactional, 1 sender, one by one", "transactional", 1, 1),
    (f"transactional, 1 sender, {WINDOW} under way", "transactional", 1, WINDOW),
    ("transactional, 8 senders, one by one", "transactional", 8, 1),
    (f"transactional, 8 senders, {WINDOW} under way", "transactional", 8, WINDOW),
    (f"express, 1 sender, {WINDOW} under way", "express", 1, WINDOW),
    (f"express, 8 senders, {WINDOW} under way", "express", 8, WINDOW),
)
RECEIVING: Final = (("receive, one by one", 1), (f"receive, {BATCH} at once", BATCH))
AIMS: Final = (
    *((line, 1.0 if window == 1 else 1.5, line, line) for line, _, _, window in SENDING),
    *((line, 1.0, line, line) for line, _ in RECEIVING),
    *(
        (f"{ours} against confirms", 1.0, ours, theirs)
        for (ours, kind, *_), (theirs, *_) in zip(SENDING[4:8], SENDING[:4], strict=True)
    ),
)
"""The name of a comparison, the aim as a multiple of RabbitMQ's rate, our line, and its line."""


def together(work: str, client: str, processes: int, *arguments: Any) -> Sample:
    """The results of several processes at once, as one sample."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.SimpleQueue()
    members = [
        context.Process(target=_member, args=(work, client, barrier, results, arguments), daemon=True)
        for _ in range(processes)
    ]
    for member in members:
        member.start()
    samples: list[Sample] = []
    reader = threading.Thread(target=lambda: samples.extend(results.get() for _ in members), daemon=True)
    reader.start()
    reader.join(_PROCESS_S)
    for member in members:
        member.join(5)
        member.kill()
    if len(samples) < processes:
        raise SystemExit(f"a client of {client} has failed")
    latencies = sorted(latency for sample in samples for latency in sample.latencies)
    begin, end = min(sample.begin for sample in samples), max(sample.end for sample in samples)
    used = sum(sample.processor_s for sample in samples)
    return Sample(begin, end, sum(sample.count for sample in samples), latencies, used)


def _member(work: str, client: str, barrier: Any, results: Any, arguments: tuple[Any, ...]) -> None:
    functions: dict[str, Any] = {"send": SENDERS, "receive": RECEIVERS, "read": READERS}[work]
    try:
        results.put(functions[client](*arguments, barrier.wait))
    except BaseException:
        barrier.abort()
        raise


def rate(sample: Sample) -> float:
    """Messages a second."""
    return sample.count / (sample.end - sample.begin)


def percentile(sample: Sample, part: float) -> float:
    """Milliseconds."""
    return 1000 * sample.latencies[min(len(sample.latencies) - 1, int(part * len(sample.latencies)))]


def show(line: str, sides: list[str], measured: dict[str, Sample]) -> None:
    """Print a line of the table: rate, p50 and p99 of each side."""
    cells = []
    for side in sides:
        sample = measured.get(side)
        if sample is None:
            cells.append(f"{'-':>27}")
        elif not sample.latencies:
            cells.append(f"{rate(sample):>10,.0f}{'-':>8}{'-':>9}")
        else:
            p50, p99 = percentile(sample, 0.5), percentile(sample, 0.99)
            cells.append(f"{rate(sample):>10,.0f}{p50:>8.2f}{p99:>9.2f}")
    print(f"{line:42}{''.join(cells)}", flush=True)


def measure(daemons: list[Daemon], seconds: float, rounds: int, pattern: str) -> tuple[Measured, Costs]:
    """Measure all lines; on each one the sides take turns, and the best of some rounds counts for each."""
    sides = [daemon.side for daemon in daemons]
    print(f"{'':42}" + "".join(f"{side:>27}" for side in sides))
    print(f"{'messages/s, and p50 and p99 in ms':42}" + f"{'/s':>10}{'p50':>8}{'p99':>9}" * len(sides))
    measured: Measured = {}
    costs: Costs = {}
    lines: list[tuple[str, str, int, tuple[Any, ...]]] = [
        (line, "send", senders, (kind, window)) for line, kind, senders, window in SENDING
    ]
    lines += [(line, "receive", 1, (batch,)) for line, batch in RECEIVING]
    for line, work, processes, arguments in lines:
        if pattern not in line:
            continue
        row: dict[str, Sample] = {}
        for _ in range(rounds):
            for daemon in daemons:
                if not has(daemon.client, arguments[0]):
                    continue
                used = daemon.processor_s()
                sample = together(work, daemon.client, processes, daemon.where, *arguments, seconds)
                cost = 1e6 * (daemon.processor_s() - used) / sample.count
                costs[line, daemon.side] = min(cost, costs.get((line, daemon.side), cost))
                if arguments[0] == "express":
                    daemon.purge()
                if daemon.side not in row or rate(sample) > rate(row[daemon.side]):
                    row[daemon.side] = measured[line, daemon.side] = sample
        show(line, sides, row)
    return measured, costs


def has(client: str, kind: object) -> bool:
    """Whether a side has something to compare: Redis has no transactions, and syncs all that it takes."""
    return client in (OURS, THEIRS) or kind not in ("transactional", "express")


def compare_loops(measured: Measured, costs: Costs) -> None:
    """Print the gain of our server from the event loop of uvloop."""
    print(f"\n{'our server on both event loops':42}{'µs of its processor for each message':>40}{'rate':>10}")
    print(f"{'':42}{'asyncio':>20}{'uvloop':>20}{'times':>10}")
    for line in [line for line, *_ in (*SENDING, *RECEIVING)]:
        on_asyncio, on_uvloop = (line, OURS), (line, MsmqwireUvloop.side)
        if on_asyncio in measured and on_uvloop in measured:
            gain = rate(measured[on_uvloop]) / rate(measured[on_asyncio])
            print(f"{line:42}{costs[on_asyncio]:>20.0f}{costs[on_uvloop]:>20.0f}{gain:>10.2f}")


def judge(measured: Measured) -> None:
    """Print the aims, each with its comparison."""
    print(f"\n{'against RabbitMQ':62}{'aim':>5}{'is':>7}")
    for what, times, ours, theirs in AIMS:
        a, b = measured.get((ours, OURS)), measured.get((theirs, THEIRS))
        if a is not None and b is not None:
            ratio = rate(a) / rate(b)
            told = "reached" if ratio >= times else "missed"
            print(f"{what:62}{times:>5.1f}{ratio:>7.2f}   {told}")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=2, help="measurements; the best one counts")
    parser.add_argument("--only", default=",".join(kind.side for kind in BY_DEFAULT), help="sides")
    parser.add_argument("--lines", default="", help="only lines that contain this")
    parser.add_argument(
        "--queued", type=int, default=0, help="also measure with this number of messages queued"
    )
    parser.add_argument("--folder", help="where the temporary folder is made, which says which disk is used")
    given = parser.parse_args()
    lacking = missing()
    sides = given.only.lower().split(",")
    kinds = [kind for kind in SIDES if kind.side.lower() in sides]
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, messages of 1 KiB")
    for kind in kinds:
        if kind.side in lacking:
            print(f"{kind.side} is left out: {lacking[kind.side]} is missing")
    kinds = [kind for kind in kinds if kind.side not in lacking]
    with tempfile.TemporaryDirectory(dir=given.folder, prefix="msmqwire-bench-") as name:
        with ExitStack() as stack:
            daemons = [stack.enter_context(kind(Path(name) / kind.side)) for kind in kinds]
            measured, costs = measure(daemons, given.seconds, given.rounds, given.lines)
        if Rabbit in kinds:
            judge(measured)
        if MsmqwireUvloop in kinds:
            compare_loops(measured, costs)
        if given.queued:
            from qm_depth import depths

            depths(
                [kind(Path(name) / f"{kind.side}-queued") for kind in kinds if kind in BY_DEFAULT],
                given.queued,
            )


if __name__ == "__main__":
    main()
