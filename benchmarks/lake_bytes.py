"""The bytes of a lake that readers fetch for conditions on time, destination and message identifier.

    python benchmarks/lake_bytes.py [GIGABYTES]

Makes a lake by date and one by destination of a generated capture (1 GB by default), compacts the former,
and has each reader that uses the statistics of the log look for the rows of a condition, in a process of its
own. Prints the bytes that it has read, of the log too, by the counters of Linux, relative to those of the
files. The aim is 4 % for a hundredth of the time, and for one destination of the lake by destination.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.support.captures import write

FRAME_BYTES: Final = 776
CAPTURES: Final = 16
AIM: Final = 0.04
HEAD: Final = """
import sys
lake, low, high, value = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
def bytes_read():
    return int(open("/proc/self/io").read().split()[1])
"""
READERS: Final = {
    "read_lake": """
import msmqwire, pyarrow.dataset as ds
data = msmqwire.read_lake(lake)
conditions = {
    "time": (ds.field("time_ns") >= low) & (ds.field("time_ns") < high),
    "destination": ds.field("destination") == value,
    "message_id": ds.field("message_id") == low,
}
before = bytes_read()
rows = data.to_table(columns=["label"], filter=conditions[sys.argv[5]]).num_rows
""",
    "Polars": """
import polars
from polars import col
conditions = {
    "time": (col("time_ns") >= low) & (col("time_ns") < high),
    "destination": col("destination") == value,
    "message_id": col("message_id") == low,
}
before = bytes_read()
rows = polars.scan_delta(lake).filter(conditions[sys.argv[5]]).select("label").collect().height
""",
    "deltalake": """
import deltalake
conditions = {
    "time": f"time_ns >= {low} AND time_ns < {high}",
    "destination": f"destination = '{value}'",
    "message_id": f"message_id = {low}",
}
table = deltalake.DeltaTable(lake)
before = bytes_read()
query = f"SELECT label FROM lake WHERE {conditions[sys.argv[5]]}"
rows = deltalake.QueryBuilder().register("lake", table).execute(query).read_all().num_rows
""",
}
TAIL: Final = "print(rows, bytes_read() - before)"


def read(reader: str, lake: Path, column: str, low: int, high: int, value: str) -> tuple[int, int]:
    """Return the rows that a reader finds, and the bytes that it has read."""
    program = HEAD + READERS[reader] + TAIL
    arguments = [str(lake), str(low), str(high), value, column]
    ran = subprocess.run(
        [sys.executable, "-c", program, *arguments], check=True, capture_output=True, text=True
    )
    rows, count = ran.stdout.split()
    return int(rows), int(count)


def main() -> None:
    import pyarrow.compute as pc

    import msmqwire
    from msmqwire.tables.lake import compact_lake
    from msmqwire.tables.lake.reading import lake_contents

    parser = argparse.ArgumentParser(description="The bytes of a lake that readers fetch for a condition.")
    parser.add_argument("gigabytes", type=float, nargs="?", default=1.0)
    gigabytes = parser.parse_args().gigabytes
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        capture, by_date, by_destination = (
            folder / "mixed.pcap",
            folder / "by-date",
            folder / "by-destination",
        )
        write(capture, round(gigabytes * 1e9 / FRAME_BYTES))
        split = capture.stat().st_size // CAPTURES
        msmqwire.write_lake(capture, by_date, split_size=split)
        msmqwire.write_lake(capture, by_destination, by="destination")
        files = lake_contents(by_date).files
        compact_lake(by_date, target_size=sum(file.size for file in files) // (4 * CAPTURES))
        times = msmqwire.read_lake(by_date).to_table(columns=["time_ns"])["time_ns"]
        first, last = (part.as_py() for part in pc.min_max(times).values())
        middle, hundredth = (first + last) // 2, (last - first) // 100
        rows = msmqwire.read_lake(by_date).head(200_000, columns=["destination", "message_id"])
        value = pc.mode(pc.cast(rows["message_id"].drop_null(), "int64"))[0]["mode"].as_py()
        queue = rows["destination"].drop_null()[0].as_py()
        for title, lake, column, low, high, has_aim in (
            ("a hundredth of the time", by_date, "time", middle, middle + hundredth, True),
            ("a destination, by destination", by_destination, "destination", 0, 0, True),
            ("a destination, by date", by_date, "destination", 0, 0, False),
            ("a message identifier, by date", by_date, "message_id", value, 0, False),
        ):
            files = lake_contents(lake).files
            size = sum(file.size for file in files)
            print(f"{title}: {len(files)} files, {size / 1e6:,.0f} MB")
            for reader in READERS:
                found, count = read(reader, lake, column, low, high, queue)
                print(
                    f"  {reader:<10} {found:>9,} rows, {count / 1e6:>8.2f} MB, {count / size:>6.1%}"
                    f"{(' reached' if count <= AIM * size else ' missed') if has_aim else ''}"
                )


if __name__ == "__main__":
    main()
