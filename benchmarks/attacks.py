"""Benchmark of the worst inputs known: the time and the memory that they take for each byte.

    python benchmarks/attacks.py [SCALE] [NAME...]

Makes each of the captures of `tests/support/capture/attacks.py` in three sizes, each twice the one before,
and reads it with `dissect` (without linting) and with `read_capture`. Prints the nanoseconds of processor
time for a byte of the (packed) file, the best of two, which do not grow if the cost is linear, and the MiB
of memory besides those before. SCALE, 1 by default, multiplies the sizes. Linux only: it reads /proc.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import msmqwire  # noqa: E402
from tests.support.capture import attacks  # noqa: E402

COUNTS: Final = {"huge_records": 2, "signatures": 65_536, "tiny_segments_overlapped": 10_000}
"""The smallest sizes where they differ from the ones below: bytes of a stream, or parts of a file."""
STREAM: Final = 262_144
CAPTURE: Final = 2_500
FILE: Final = 100_000


def inputs() -> dict[str, tuple[Callable[[int], bytes], int]]:
    """All inputs by name, with their smallest size."""
    makers: dict[str, tuple[Callable[[int], bytes], int]] = {}
    for name, stream in attacks.STREAMS.items():
        makers[name] = lambda size, stream=stream: attacks.pcap(attacks.one_stream(stream(size))), STREAM
    makers |= {name: (make, CAPTURE) for name, make in attacks.CAPTURES.items()}
    makers |= {name: (make, FILE) for name, make in attacks.FILES.items()}
    return {name: (make, COUNTS.get(name, size)) for name, (make, size) in makers.items()}


def resident(what: str) -> int:
    """Return a line of the status of this process, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith(what))


def read(path: Path, reader: str) -> None:
    """Read a capture."""
    if reader == "dissect":
        for _ in msmqwire.dissect(path, lint=False):
            pass
    else:
        for _ in msmqwire.read_capture(path, batch_rows=8192):
            pass


def measured(path: Path, reader: str) -> tuple[float, int]:
    """Read a capture twice; return the seconds of the faster, and the MiB that it takes."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
    before, seconds = resident("VmRSS"), []
    for _ in range(2):
        start = time.process_time()
        read(path, reader)
        seconds.append(time.process_time() - start)
    return min(seconds), max(0, resident("VmHWM") - before)


def main() -> None:
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    chosen = sys.argv[2:]
    warnings.simplefilter("ignore")
    print(f"{'':<29} {'':<7} {'bytes of the file':>30}   {'ns a byte':>24}   {'MiB':>14}")
    for name, (make, size) in inputs().items():
        if chosen and name not in chosen:
            continue
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for factor in (1, 2, 4):
                paths.append(Path(folder) / f"{factor}.pcap")
                paths[-1].write_bytes(make(max(1, int(size * scale)) * factor))
            sizes = [path.stat().st_size for path in paths]
            for reader in ("dissect", "columns"):
                read(paths[0], reader)  # compiles
                runs = [measured(path, reader) for path in paths]
                told = " ".join(f"{size:>9}" for size in sizes) if reader == "dissect" else ""
                costs = " ".join(f"{r[0] / size * 1e9:>7.0f}" for r, size in zip(runs, sizes, strict=True))
                memory = " ".join(f"{run[1]:>4}" for run in runs)
                shown = name if reader == "dissect" else ""
                print(f"{shown:<29} {reader:<7} {told:>30}   {costs:>24}   {memory:>14}", flush=True)


if __name__ == "__main__":
    main()
