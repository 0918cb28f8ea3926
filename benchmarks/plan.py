"""The cost of lakes of 1 TB and 100 TB of captures, from figures measured here or given.

    python benchmarks/plan.py [--gigabytes GB] [--seconds S] [--exact-pass S] [--walk S] ...

Writes a generated capture (`benchmarks/support/captures.py`; 1.25 GB by default) into a lake, all columns
with their bodies, in one process, and measures the figures that are not given: CPU seconds for a GB, those of
the passes that find the parts, Parquet bytes for a byte of capture, memory, bytes of the state for a part,
and seconds of planning for a capture. Prints core hours, hours on 16, 64 and 512 cores, sizes, files and
parts. Assumed are that time grows with the bytes, that storage keeps up, and that captures have 1 GB each.
Linux only.
"""

from __future__ import annotations

import argparse
import math
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.support.captures import write

FRAME_BYTES: Final = 776
"""Bytes of a frame of the generated captures, about."""
PART_BYTES: Final = 512 << 20
CAPTURE_BYTES: Final = 1e9
CORES: Final = (16, 64, 512)
TERABYTES: Final = (1, 100)
TINY_CAPTURES: Final = 500
RUNS: Final = 2
STORE_SECONDS: Final = 0.9
"""The additional cost of reading a GB from a store instead of a file, by `benchmarks/stores.py`."""


@dataclass
class Figures:
    """The measured figures.

    Attributes:
        seconds: CPU seconds of writing a GB of capture into a lake.
        walk: CPU seconds for a GB of the pass over headers of records, by the driver, with ``splits=walked``.
        exact_pass: CPU seconds for a GB of the pass over all captures, by the driver, with ``splits=exact``
            and fewer than four workers.
        exact_survey: CPU seconds of tasks for it with more workers, in parts of 512 MiB.
        exact_join: CPU seconds of the driver then.
        store: CPU seconds for a GB that reading from a store takes beyond those of a local file.
        output: bytes of Parquet files for a byte of capture.
        memory: MiB of a task at its peak.
        state: bytes of the state for a part.
        planning: CPU seconds of planning for a capture.
    """

    seconds: float
    walk: float
    exact_pass: float
    exact_survey: float
    exact_join: float
    store: float
    output: float
    memory: float
    state: float
    planning: float


def measured(gigabytes: float) -> Figures:
    """Measure a lake of a generated capture."""
    import msmqwire
    from msmqwire.tables.lake.exact_planning import plan_exact_run
    from msmqwire.tables.lake.place import lake_place
    from msmqwire.tables.lake.planning import plan_run
    from msmqwire.tables.lake.reading import lake_contents
    from msmqwire.tables.lake.state import LakeState
    from msmqwire.tables.lake.table import opened

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, new = folder / "mixed.pcap", LakeState({})
        size = write(path, round(gigabytes * 1e9 / FRAME_BYTES)).bytes
        runs = iter(range(1 + RUNS))
        seconds = _cheapest(lambda: msmqwire.write_lake(path, folder / f"lake-{next(runs)}")) * 1e9 / size
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        files = lake_contents(folder / "lake-0").files
        names = [str(path)]
        walk = _cheapest(lambda: plan_run(names, new, split_size=size // 8)) * 1e9 / size
        exact_pass = _cheapest(lambda: plan_exact_run(names, new, split_size=size // 8)) * 1e9 / size
        surveys = list[float]()

        def surveyed(make: Callable[[Any], Any], windows: Sequence[Any]) -> list[Any]:
            started = time.process_time()
            made = [make(window) for window in windows]
            surveys.append(time.process_time() - started)
            return made

        join = list[float]()
        for _ in range(1 + RUNS):
            started = time.process_time()
            plan_exact_run(names, new, split_size=PART_BYTES, map_windows=surveyed)
            join.append(time.process_time() - started - surveys[-1])
        msmqwire.write_lake(path, folder / "parts", columns=["time"], split_size=size // 16)
        found = opened(lake_place(folder / "parts"))
        assert found is not None
        parted = found[1]
        tiny = [folder / f"{number}.pcap" for number in range(TINY_CAPTURES)]
        write(tiny[0], 20)
        for small in tiny[1:]:
            shutil.copy(tiny[0], small)
        planning = _cheapest(lambda: plan_run([str(small) for small in tiny], new)) / TINY_CAPTURES
        return Figures(
            seconds=seconds,
            walk=walk,
            exact_pass=exact_pass,
            exact_survey=min(surveys[1:]) * 1e9 / size,
            exact_join=min(join[1:]) * 1e9 / size,
            store=STORE_SECONDS,
            output=sum(file.size for file in files) / size,
            memory=memory,
            state=len(parted.dump()) / len(parted.parts),
            planning=planning,
        )


def _cheapest(work: Callable[[], Any]) -> float:
    """CPU seconds of the cheapest of some runs, after a first one, which compiles."""
    seconds = []
    for _ in range(1 + RUNS):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return min(seconds[1:])


def table(figures: Figures, terabytes: float) -> list[tuple[str, str]]:
    """Return the cost of a lake of a size in TB: names and values."""
    gigabytes, captures = terabytes * 1000, math.ceil(terabytes * 1e12 / CAPTURE_BYTES)
    parts = math.ceil(CAPTURE_BYTES / PART_BYTES) * captures
    lines = []
    for where, seconds in (("local", figures.seconds), ("store", figures.seconds + figures.store)):
        lines.append((f"core hours, {where}", f"{seconds * gigabytes / 3600:,.1f}"))
        for cores in CORES:
            # Tasks are whole parts: the last round has all cores wait for one.
            rounds = math.ceil(parts / cores)
            hours = rounds * seconds * gigabytes / parts / 3600
            lines.append((f"  hours on {cores} cores, {where}", f"{hours:,.2f}"))
    planning = figures.planning * captures
    lines += [
        ("hours of the driver before tasks, searched", f"{planning / 3600:,.2f}"),
        ("  walked", f"{(planning + figures.walk * gigabytes) / 3600:,.2f}"),
        ("  exact, by itself", f"{(planning + figures.exact_pass * gigabytes) / 3600:,.2f}"),
        ("  exact, with surveys by tasks", f"{(planning + figures.exact_join * gigabytes) / 3600:,.2f}"),
        ("core hours of these surveys", f"{figures.exact_survey * gigabytes / 3600:,.1f}"),
        ("Parquet, TB", f"{figures.output * terabytes:,.2f}"),
        ("parts, and files by date alone", f"{parts:,}"),
        ("state, MB", f"{figures.state * parts / 1e6:,.1f}"),
        ("memory of tasks on 64 cores, GiB", f"{figures.memory * 64 / 1024:,.0f}"),
    ]
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="The cost of lakes of 1 TB and 100 TB.")
    parser.add_argument("--gigabytes", type=float, default=1.25, help="of the capture that is measured")
    for figure in fields(Figures):
        parser.add_argument(f"--{figure.name.replace('_', '-')}", type=float, help="not measured, but this")
    options = vars(parser.parse_args(arguments))
    given = {figure.name: options[figure.name] for figure in fields(Figures)}
    if any(value is None for value in given.values()):
        found = vars(measured(options["gigabytes"]))
        given = {name: found[name] if value is None else value for name, value in given.items()}
    figures = Figures(**given)
    for name, value in given.items():
        print(f"{name:<12} {value:>10.5g}")
    columns = [table(figures, terabytes) for terabytes in TERABYTES]
    print(f"\n{'':<44}" + "".join(f"{terabytes:>9} TB" for terabytes in TERABYTES))
    for cells in zip(*columns, strict=True):
        print(f"{cells[0][0]:<44}" + "".join(f"{value:>12}" for _, value in cells))


if __name__ == "__main__":
    main()
