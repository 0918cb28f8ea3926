"""Benchmark of hostile traffic: frames a second to Arrow, against clean traffic in the same run.

    python benchmarks/hostile.py [--frames N] [--flows N] [--runs N] [NAME...]

Writes a capture of each kind of `hostile_captures` (200,000 frames by default, and floods of `--flows` flows)
and reads its usual columns in a process of its own on one core (those of contents, which are decoded in
Python, are measured by `benchmarks/bodies.py`). A name chooses the kinds that begin with it; clean traffic is
always measured, first and last, and the better of the two is the measure: that of mixed sessions, and for
segments out of order, repeated or lost the same in segments as small. Times are of the processor, also in
nanoseconds for a byte of the capture before it is packed. Beside them: the share of frames that went to the
generic reader, the rows, and the peak of memory. At the end the aims are compared with the results, and it is
told which limits were reached. Linux only: it uses one core and reads /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.support.hostile_captures import CASES, CLEAN, Case  # noqa: E402
from benchmarks.support.readers import resident  # noqa: E402
from msmqwire.analysis.dissection.tracker import CONNECTIONS_MAX, HELD_MAX  # noqa: E402
from msmqwire.capture.fragments import FRAGMENT_BYTES_MAX  # noqa: E402
from msmqwire.capture.tcp import BUFFERED_TOTAL_MAX  # noqa: E402

RATE_MIN: Final = 100_000
"""Frames a second that no traffic may bring it below."""
MEMORY_MAX: Final = 300
"""MiB that hostile traffic may take beyond clean traffic: the limits on what is buffered, counted twice as it
may be in the arrays of the scan and with the generic reader, and the connections."""
SMALL: Final = 5000
"""Frames of the captures that are read first, for the compiler and the caches."""
BATCH_ROWS: Final = 8192
"""Rows of a batch: so few that its memory is used again, as in a long capture, and not grown in each run."""
_REASONS: Final = {"incomplete packets": "too much is held", "gaps": "not in the capture: limit"}
"""The data given up at a limit, by words in the error of its row."""


def read(path: Path, *, reasons: bool = False) -> dict[str, int]:
    """Read a capture to the end; return the counts, with `reasons` also of the data given up."""
    import pyarrow.compute as pc

    from msmqwire.analysis.dissection import dissect
    from msmqwire.tables import record_batches
    from msmqwire.tables.columns import USUAL

    dissection = dissect(path, lint=False)
    names = [column.name for column in USUAL]
    rows, given_up = 0, dict.fromkeys(_REASONS, 0)
    for batch in record_batches(dissection, columns=names, batch_rows=BATCH_ROWS):
        rows += batch.num_rows
        for what, reason in _REASONS.items() if reasons else ():
            given_up[what] += pc.sum(pc.match_substring(batch.column("error"), reason)).as_py() or 0
    counters = dissection.counters()
    return {
        "rows": rows,
        "frames": dissection.records,
        "handed": dissection.handed,
        "connections": counters.get("evicted", 0),
        "fragments": counters.get("fragment-limit", 0),
        **given_up,
    }


def read_in_child(first: Path, path: Path, runs: int) -> None:
    """Read a small capture, then the capture, and print the result of the fastest run as JSON."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    read(first)
    seconds = []
    for _ in range(runs):
        start = time.process_time()
        read(path)
        seconds.append(time.process_time() - start)
    memory = resident()
    print(json.dumps({"seconds": min(seconds), "memory": memory, **read(path, reasons=True)}))


def measured(case: Case, folder: Path, frames: int, runs: int) -> dict[str, Any]:
    """Write a capture, read it in a separate process, and return the output."""
    first, path = folder / "first.part", folder / "capture.part"
    case.write(first, min(SMALL, frames))
    size = case.write(path, frames).bytes
    command = [sys.executable, __file__, "--read", str(first), str(path), "--runs", str(runs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{case.title}: {done.stderr}")
    return {"bytes": size, **json.loads(done.stdout)}


def line(case: Case, result: dict[str, Any], clean: float) -> str:
    """Return the line of a kind of traffic; ``clean`` is the rate of clean traffic so far."""
    rate = result["frames"] / result["seconds"]
    shown = case.title if len(case.title) <= 52 else case.title[:49] + "..."
    return (
        f"{case.group:<10} {shown:<52} {result['frames']:>8} {rate:>9.0f} {rate / clean:>6.2f}"
        f" {1e9 * result['seconds'] / result['bytes']:>7.1f}"
        f" {result['handed'] / result['frames']:>7.1%} {result['rows']:>8} {result['memory']:>5.0f}"
    )


def compare(chosen: dict[str, Case], folder: Path, frames: int, flows: int, runs: int) -> bool:
    """Print a line for each kind of traffic, then the aims; return whether all were reached."""
    print(
        f"{'':<10} {'':<52} {'frames':>8} {'frames/s':>9} {'ratio':>6} {'ns/byte':>7} {'generic':>7}"
        f" {'rows':>8} {'MiB':>5}",
        flush=True,
    )
    clean, clean_bytes, memory = dict.fromkeys(CLEAN, 0.0), dict.fromkeys(CLEAN, 0.0), 0.0
    results: dict[str, dict[str, Any]] = {}
    for name, case in [*CLEAN.items(), *chosen.items(), *CLEAN.items()]:
        size = 3 * flows if case.group == "floods" and flows else frames
        result = measured(case, folder, size, runs)
        if name in CLEAN:
            clean[name] = max(clean[name], result["frames"] / result["seconds"])
            clean_bytes[name] = max(clean_bytes[name], result["bytes"] / result["seconds"])
            memory = max(memory, result["memory"])
        else:
            results[name] = result
        print(line(case, result, clean[case.reference]), flush=True)
    reached = [
        verdict(case, results[name], (clean_bytes if case.by_bytes else clean)[case.reference])
        for name, case in chosen.items()
    ]
    memory_limit = memory + MEMORY_MAX
    worst = max((result["memory"] for result in results.values()), default=0)
    limits = (
        (HELD_MAX, "incomplete packets"),
        (BUFFERED_TOTAL_MAX, "gaps"),
        (FRAGMENT_BYTES_MAX, "fragments"),
    )
    told = ", ".join(f"{size >> 20} MiB for {what}" for size, what in limits)
    print(f"limits: {told}, {CONNECTIONS_MAX} connections; reached: {limits_reached(results)}")
    print(
        f"memory: {worst:.0f} MiB at the most (aim {memory_limit:.0f}, {MEMORY_MAX} beyond clean traffic:"
        f" {'reached' if worst <= memory_limit else 'missed'})"
    )
    return all(reached) and worst <= memory_limit


def limits_reached(results: dict[str, dict[str, Any]]) -> str:
    """Return which limits some traffic has reached."""
    kinds = ("incomplete packets", "gaps", "fragments", "connections")
    return ", ".join(kind for kind in kinds if any(r[kind] for r in results.values())) or "none"


def verdict(case: Case, result: dict[str, Any], clean: float) -> bool:
    """Print the aim of a kind of traffic beside its result; return whether it was reached.

    ``clean`` is the rate of clean traffic, in bytes a second if the kind is measured so, else in frames.
    """
    rate = result["frames"] / result["seconds"]
    share = (result["bytes"] / result["seconds"] if case.by_bytes else rate) / clean
    wanted = any if case.by_bytes else all
    reached = wanted((share >= case.aim, rate >= RATE_MIN))
    joined = "of the bytes or" if case.by_bytes else "and"
    print(
        f"{case.title:<70} aim {case.aim:.2f} {joined} {RATE_MIN}: {share:.2f} and {rate:.0f}"
        f" {'reached' if reached else 'missed'}"
    )
    return reached


def main() -> None:
    parser = argparse.ArgumentParser(description="Hostile captures to Arrow, against clean ones.")
    names = ", ".join(CASES).replace("%", "%%")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"beginnings of: {names}")
    parser.add_argument("--frames", type=int, default=200_000)
    parser.add_argument("--flows", type=int, default=0, help="flows in the floods; by default as many as fit")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--read", nargs=2, type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.read:
        read_in_child(*args.read, args.runs)
        return
    chosen = {
        name: case
        for name, case in CASES.items()
        if name not in CLEAN and (not args.names or name.startswith(tuple(args.names)))
    }
    with tempfile.TemporaryDirectory() as folder:
        compare(chosen, Path(folder), args.frames, args.flows, args.runs)


if __name__ == "__main__":
    main()
