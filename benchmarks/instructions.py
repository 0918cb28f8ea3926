"""Instructions of the queue manager's server for each message: needs ``valgrind``.

    python benchmarks/instructions.py [COPY ...] [--lines TEXT] [--seconds S]

Copies of the project (``python tools/generate/compiled_copy.py COPY``) are measured one after the other, and
compared with the first; without any, this one is. Rates of two processes on a machine with other work differ
by a fifth from run to run; the instructions of one process differ by less than a hundredth, so that two
versions can be told apart. They don't show waits for the disk or for a processor, which `qm.py` measures. The
lines are the same as in `qm.py`; all copies have this copy's senders.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.qm import SENDING, together
from benchmarks.support.qm_daemons import ROOT, Msmqwire

_COLLECTED: Final = re.compile(r"Collected : (\d+)")


def instructions(copy: Path, kind: str, senders: int, window: int, seconds: float) -> float:
    """Return the instructions for each message of one line."""
    with tempfile.TemporaryDirectory(prefix="msmqwire-bench-") as name:

        class Counted(Msmqwire):
            under = ("valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=/dev/null")
            root = copy

        with Counted(Path(name) / "server") as daemon:
            assert daemon.process is not None, "it was started"
            _count(daemon.process.pid, on=True)
            sample = together("send", daemon.client, senders, daemon.where, kind, window, seconds)
            _count(daemon.process.pid, on=False)
        collected = _COLLECTED.search((daemon.folder / "log").read_text())
        if collected is None or not int(collected[1]):
            raise SystemExit("callgrind has counted nothing")
        return int(collected[1]) / sample.count


def _count(process: int, *, on: bool) -> None:
    command = ["callgrind_control", "-i", "on" if on else "off", str(process)]
    subprocess.run(command, check=True, capture_output=True)


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("copies", metavar="COPY", nargs="*", type=Path, default=[ROOT])
    parser.add_argument("--lines", default="", help="only lines that contain this")
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="of each measurement, at 1/50 of the speed"
    )
    given = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("left out: valgrind is missing")
        return
    copies = [copy.resolve() for copy in given.copies]
    for copy in copies:
        if not (copy / "msmqwire").is_dir():
            parser.error(f"{copy} is not a copy of the project: it has no folder msmqwire")
    print(f"{'thousands of instructions a message':42}" + "".join(f"{copy.name:>24}" for copy in copies))
    for line, kind, senders, window in SENDING:
        if given.lines not in line:
            continue
        print(f"{line:42}", end="", flush=True)
        first = 0.0
        for copy in copies:
            counted = instructions(copy, kind, senders, window, given.seconds)
            first = first or counted
            print(f"{counted / 1000:>17,.1f}{counted / first:>7.3f}", end="", flush=True)
        print()


if __name__ == "__main__":
    main()
