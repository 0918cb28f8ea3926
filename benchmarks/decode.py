"""Compares reading captures to Arrow with the alternatives, and with the minimum that any reader must do.

    python benchmarks/decode.py [FRAMES] [--flow MEGABYTES]

Writes a capture of mixed sessions (a million frames by default; see `captures`), then reads it with each of
`readers`, each in a process of its own on one core. Slow readers read a capture with fewer frames; all are
compared by frames per second. A first run over a small capture, which includes start-up and compilation, is
reported separately. Then a single flow of messages of 64 KiB (2000 MB by default) is read with its bodies,
for its peak memory, and the packets of the small capture are read as values of an array, as the SQL functions
do. At the end the targets are compared with the results.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.support.captures import BAD, CaptureSummary, write, write_flow
from benchmarks.support.readers import measured

SMALL: Final = 5000
"""Frames of the capture for first runs."""
FLOW_TARGET: Final = 500
"""MiB that reading one long flow should not exceed."""


class Row(NamedTuple):
    """A reader: its title, its name in `readers`, the divisor of its frames, and its number of runs."""

    title: str
    reader: str
    part: int = 1
    runs: int = 1


MSMQWIRE: Final = Row("msmqwire, all columns", "columnar", runs=3)
ROWS: Final = (
    MSMQWIRE,
    Row("msmqwire, all columns but body", "columnar_headers", runs=3),
    Row("msmqwire, packet by packet, all columns", "generic", part=10),
    Row("construct, packets in order only", "construct", part=10),
    Row("scapy, PcapReader up to TCP", "scapy", part=10),
    Row("tshark, seven TCP fields", "tshark"),
    Row("dpkt, Ethernet, IP, TCP headers", "dpkt"),
    Row("floor: signature and size, compiled", "floor", runs=3),
)
TARGETS: Final = (("tshark", 40.0), ("dpkt", 14.0), ("construct", 200.0), ("generic", 50.0))
FLOOR_TARGET: Final = 8.0


def compare(folder: Path, small: Path, frames: int) -> dict[str, float]:
    """Print a line for each reader; return their frames per second."""
    captures: dict[int, tuple[Path, CaptureSummary]] = {}
    for part in sorted({row.part for row in ROWS}):
        path = folder / f"mixed-{part}.part"
        captures[part] = path, write(path, max(SMALL, frames // part))
    whole = captures[1][1]
    megabytes = whole.bytes / 1e6
    print(f"{megabytes:.0f} MB, {whole.frames} frames, {whole.packets} packets, one core for each reader")
    print(
        f"{'':<41} {'frames':>9} {'seconds':>8} {'frames/s':>10} {'MB/s':>7}"
        f" {'first s':>8} {'MiB':>6} {'ours by':>8}"
    )
    speeds: dict[str, float] = {}
    for row in ROWS:
        path, size = captures[row.part]
        result = measured(row.reader, path, first=small, runs=row.runs)
        if "missing" in result:
            print(f"{row.title:<41} {result['missing']} is not installed")
            continue
        speed = speeds[row.reader] = size.frames / result["seconds"]
        ratio = speeds[MSMQWIRE.reader] / speed
        print(
            f"{row.title:<41} {size.frames:>9} {result['seconds']:>8.2f} {speed:>10.0f}"
            f" {size.bytes / 1e6 / result['seconds']:>7.1f} {result['first']:>8.2f}"
            f" {result['memory']:>6.0f} {ratio:>8.2f}",
            flush=True,
        )
    print("seconds: the best of three where the floor and columns are read, else of one run;")
    print(f"first s: a first run, over {SMALL} frames; MiB: resident at the highest;")
    print("ours by: how many times as fast msmqwire with all columns is")
    for path, _ in captures.values():
        path.unlink()
    return speeds


def in_trouble(folder: Path, small: Path, frames: int) -> None:
    """Print how long a capture of a bad network takes."""
    path = folder / "bad.part"
    written = write(path, frames, impairment=BAD)
    result = measured(MSMQWIRE.reader, path, first=small, runs=3)
    speed = written.frames / result["seconds"]
    print(
        f"the same of a bad network (see captures.BAD): {result['seconds']:.2f} seconds, {speed:.0f} frames/s"
    )
    path.unlink()


def one_flow(folder: Path, small: Path, megabytes: int) -> None:
    """Print speed and memory of reading a long flow."""
    if shutil.disk_usage(folder).free < megabytes * 1.2e6:
        print(f"no room for a flow of {megabytes} MB in {folder}")
        return
    path = folder / "flow.part"
    written = write_flow(path, megabytes * 1_000_000)
    result = measured(MSMQWIRE.reader, path, first=small)
    rate = written.bytes / 1e6 / result["seconds"]
    verdict = "reached" if result["memory"] <= FLOW_TARGET else "missed"
    print(
        f"one flow of {written.bytes / 1e6:.0f} MB, {written.packets} messages of 64 KiB with their bodies:"
        f" {result['counted']} rows, {rate:.0f} MB/s, {result['memory']:.0f} MiB"
        f" (aim {FLOW_TARGET}: {verdict})"
    )


def whole_values(small: Path) -> None:
    """Print how many whole packets of an Arrow array are read per second, all columns."""
    import pyarrow as pa

    from msmqwire.packets import parse
    from msmqwire.tables import PACKET_COLUMNS, arrow_schema, read_capture, read_packets
    from msmqwire.tables.arrow.rows import value_of_packet

    columns = [column for column in PACKET_COLUMNS if column.paths]
    kind = pa.struct(list(arrow_schema(columns)))
    well_formed = [("kind", "!=", "Malformed"), ("kind", "!=", "Skipped")]
    table = read_capture(str(small), columns=["raw", "kind"], where=well_formed)
    raw, kinds = table.column("raw").combine_chunks(), table.column("kind").to_pylist()

    def one_by_one() -> Any:
        packets = (
            parse(data, protocol="ping" if kind == "Ping" else "session")
            for data, kind in zip(raw.to_pylist(), kinds, strict=True)
        )
        rows = ({column.name: value_of_packet(column, packet) for column in columns} for packet in packets)
        return pa.array(rows, kind)

    names = [column.name for column in columns]
    slow = _best(one_by_one, 1)
    first = _best(lambda: read_packets(raw, columns=names), 1)
    seconds = _best(lambda: read_packets(raw, columns=names), 20)
    print(
        f"{len(raw)} whole packets of {raw.nbytes / len(raw):.0f} bytes in an array, all columns:"
        f" {len(raw) / seconds:.0f} a second (first run {first:.2f} s),"
        f" value by value {len(raw) / slow:.0f}: {slow / seconds:.0f} times"
    )


def _best(run: Callable[[], Any], runs: int) -> float:
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return min(taken)


def print_targets(speeds: dict[str, float]) -> None:
    """Print the targets and the results."""
    ours = speeds[MSMQWIRE.reader]
    titles = {row.reader: row.title for row in ROWS}
    print(f"{'all columns, against':<41} {'aim':>12} {'measured':>9}")
    for reader, target in TARGETS:
        if reader in speeds:
            ratio = ours / speeds[reader]
            verdict = "reached" if ratio >= target else "missed"
            print(f"{titles[reader]:<41} {f'{target:.0f} times':>12} {ratio:>9.1f} {verdict}")
    if "floor" in speeds:
        ratio = speeds["floor"] / ours
        verdict = "reached" if ratio <= FLOOR_TARGET else "missed"
        print(f"{titles['floor']:<41} {f'within {FLOOR_TARGET:.0f}':>12} {ratio:>9.1f} {verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Captures to Arrow, side by side with other readers.")
    parser.add_argument("frames", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--flow", type=int, default=2000, metavar="MEGABYTES")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, small = Path(name), Path(name) / "small.part"
        write(small, SMALL)
        print(f"Python {sys.version.split()[0]}")
        speeds = compare(folder, small, args.frames)
        in_trouble(folder, small, args.frames)
        print()
        one_flow(folder, small, args.flow)
        whole_values(small)
        print()
        print_targets(speeds)


if __name__ == "__main__":
    main()
