"""The processor time of a lake's log: opening, a commit, a reader's list, and a run over known captures.

    python benchmarks/lake_commits.py [FILES ...] [--captures N]

The log names files that are not there: none of these steps opens one. Each figure is the least of five.
"""

from __future__ import annotations

import argparse
import json
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.support.captures import write

RUNS: Final = 5
AIMS: Final = {1000: "aim: opening and commit 60 ms", 100_000: "aim: commit 1,000 ms"}


def least(work: Callable[[], Any]) -> float:
    """Processor seconds of the cheapest run."""
    seconds = []
    for _ in range(RUNS):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return min(seconds)


def entry(number: int) -> Any:
    """A file of a lake with statistics as ours have them."""
    from msmqwire.tables.lake.statistics import COLUMNS
    from msmqwire.tables.lake.table import LakeFile

    second = f"2026-03-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}"
    values = {
        "time_ns": number * 10**9, "kind": "SessionAck", "destination": r"DIRECT=OS:alpha\private$\orders",
        "src": "10.0.0.1", "src_port": 1801, "dst": "10.0.0.2", "dst_port": 1801, "message_id": number,
        "file": "/data/captures/2026-03-01/captur", "part": number,
    }  # fmt: skip
    stats = {
        "numRecords": 1000,
        "minValues": {"time": f"{second}.001Z", **values},
        "maxValues": {"time": f"{second}.999Z", **values},
        "nullCount": dict.fromkeys(COLUMNS, 0),
    }
    path = f"date=2026-03-01/part-{secrets.token_hex(16)}-0.parquet"
    return LakeFile(path, 1000, 1 << 20, {"date": "2026-03-01"}, json.dumps(stats))


def measure(count: int, folder: Path) -> None:
    """Print the times of a lake with a number of files."""
    from msmqwire.tables import chosen_columns
    from msmqwire.tables.lake.place import lake_place
    from msmqwire.tables.lake.schemas import table_schema
    from msmqwire.tables.lake.state import LakeState
    from msmqwire.tables.lake.table import Commit, create, opened, table_at

    place = lake_place(folder)
    (folder / "_msmqwire").mkdir(parents=True)
    schema, keys = table_schema([column.name for column in chosen_columns(None)], None)
    files = [entry(number) for number in range(count)]
    create(place, schema, keys, Commit("write", LakeState({"columns": None}), files))
    opening = least(lambda: opened(place))
    spent = []
    for number in range(RUNS):
        found = opened(place)
        assert found is not None
        change = Commit("write", found[1], [entry(count + number)])
        started = time.process_time()
        found[0].commit(change)
        spent.append(time.process_time() - started)
    listing = least(lambda: table_at(place).files())
    print(
        f"{count:>8,} files: opening {opening * 1e3:>6.0f} ms, commit {min(spent) * 1e3:>6.0f} ms,"
        f" list for a reader {listing * 1e3:>6.0f} ms   {AIMS.get(count, '')}",
        flush=True,
    )


def main() -> None:
    import msmqwire

    parser = argparse.ArgumentParser(description="The processor time of a lake's log.")
    parser.add_argument("files", type=int, nargs="*", default=[1000, 20_000, 100_000])
    parser.add_argument("--captures", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for count in options.files:
            measure(count, folder / str(count))
        captures = folder / "captures"
        captures.mkdir()
        write(captures / "00000.pcap", 20)
        for number in range(1, options.captures):
            shutil.copy(captures / "00000.pcap", captures / f"{number:05}.pcap")
        msmqwire.write_lake(captures, folder / "lake")
        again = least(lambda: msmqwire.write_lake(captures, folder / "lake"))
        print(f"a second run over {options.captures:,} known captures: {again:.2f} s   aim: 1 s")


if __name__ == "__main__":
    main()
