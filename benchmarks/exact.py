"""The cost of exact rows of parts, and the gain of several threads.

    python benchmarks/exact.py [MEGABYTES]

Reads a generated capture (`benchmarks/support/captures.py`; 600 MB by default) in turn, several times over:
by one thread and with `workers` for the columns; and as exact parts, first the pass that finds them, then
each part. Prints the seconds of the fastest run of each, those of all processors, and the ratio to one
thread. Needs two free cores.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.support import captures  # noqa: E402

RUNS: Final = 5
PART_SIZE: Final = 64 << 20
FRAME_BYTES: Final = 770
"""Bytes of a frame of the generated captures, about."""


def read(path: str, workers: int) -> int:
    import msmqwire

    return sum(b.num_rows for b in msmqwire.read_capture(path, batch_rows=65_536, workers=workers))


def survey(path: str) -> list[object]:
    from msmqwire.capture.splits import whole_file
    from msmqwire.tables.exact_parts import exact_parts

    return list(exact_parts([whole_file(path)], PART_SIZE))


def read_parts(path: str) -> int:
    from msmqwire.tables.columns import USUAL
    from msmqwire.tables.part_reader import PartReader

    names = [column.name for column in USUAL]
    return sum(b.num_rows for part in survey(path) for b in PartReader().batches(part, names))


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mixed.pcap"
        summary = captures.write(path, megabytes * 1_000_000 // FRAME_BYTES)
        print(f"{summary.bytes / 1e6:.0f} MB, {summary.frames} frames, fastest of {RUNS} runs")
        name = str(path)
        readers: dict[str, Callable[[], object]] = {
            "one thread": lambda: read(name, 1),
            "workers=2": lambda: read(name, 2),
            "workers=3": lambda: read(name, 3),
            "the pass that finds the parts": lambda: survey(name),
            "that and the parts, one by one": lambda: read_parts(name),
        }
        wall: dict[str, float] = {}
        used: dict[str, float] = {}
        for run in range(RUNS + 1):
            for label, reader in readers.items():
                started, processor = time.perf_counter(), time.process_time()
                reader()
                if run:  # the first one compiles
                    seconds = time.perf_counter() - started
                    wall[label] = min(seconds, wall.get(label, seconds))
                    spent = time.process_time() - processor
                    used[label] = min(spent, used.get(label, spent))
        for label, seconds in wall.items():
            ratio = seconds / wall["one thread"]
            print(f"{label:32} {seconds:6.2f} s {used[label]:6.2f} s of processors, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
