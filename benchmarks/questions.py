"""Benchmark of the questions that people ask a capture, beside the table of its packets and other readers.

    python benchmarks/questions.py [SESSIONS [TURNS]]

Writes captures of 429 packets a session (250 sessions by default): in one everything is right, in others one
message in ten breaks a rule, or each does. Each command reads a tenth of a capture and all of
it in turn, as a process of its own: the rate is that of the difference, so that its start is left out, in
processor time, the best of the turns. Prints packets a second, and the ratio to `read_capture` and to tshark
printing seven TCP fields. pyshark and scapy are left out if they are not installed.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.support import right_sessions  # noqa: E402

PYTHON: Final = [sys.executable, "-c"]
COMMAND: Final = [sys.executable, "-m", "msmqwire"]
FIELDS: Final = ("frame.time_epoch", "ip.src", "tcp.srcport", "ip.dst", "tcp.dstport", "tcp.seq", "tcp.len")
RIGHT, TENTH, ALL = "right", "one in ten", "all"
SHARES: Final = {RIGHT: 0.0, TENTH: 0.1, ALL: 1.0}
TABLE: Final = "read_capture"
TSHARK: Final = "tshark, seven TCP fields"
_READ: Final = "import sys, msmqwire\nmsmqwire.read_capture(sys.argv[1], batch_rows=65536).read_all()"
_ITEMS: Final = "import sys, msmqwire\nfor item in msmqwire.dissect(sys.argv[1], lint={lint}): item.kind"
_SCAPY: Final = """
import sys
from scapy.utils import PcapReader
import msmqwire.plugins.scapy
for packet in PcapReader(sys.argv[1]): packet.summary()
"""
_PYSHARK: Final = """
import sys, pyshark
for packet in pyshark.FileCapture(sys.argv[1]): packet.tcp.len
"""


def questions() -> dict[str, tuple[list[str], str, int]]:
    """Return by name a command without its capture, the capture's kind, and the aim in packets a second."""
    found = {
        TABLE: ([*PYTHON, _READ], RIGHT, 0),
        "dissect --stats": ([*COMMAND, "dissect", "--stats"], RIGHT, 200_000),
        "lint, nothing found": ([*COMMAND, "lint"], RIGHT, 200_000),
        "lint, one message in ten": ([*COMMAND, "lint"], TENTH, 30_000),
        "lint, all messages": ([*COMMAND, "lint"], ALL, 8_000),
        "fate": ([*COMMAND, "fate"], RIGHT, 100_000),
        "report": ([*COMMAND, "report", "-o", "{out}.html"], RIGHT, 50_000),
        "pcap --where": (
            [*COMMAND, "pcap", "-o", "{out}.pcap", "--where", "label == 'order 7'"],
            RIGHT,
            200_000,
        ),
        "dissect --json": ([*COMMAND, "dissect", "--json"], RIGHT, 15_000),
        "items of dissect, no lint": ([*PYTHON, _ITEMS.format(lint=False)], RIGHT, 60_000),
        "items of dissect": ([*PYTHON, _ITEMS.format(lint=True)], RIGHT, 30_000),
    }
    if shutil.which("tshark"):
        fields = [option for name in FIELDS for option in ("-e", name)]
        found[TSHARK] = (["tshark", "-n", "-T", "fields", *fields, "-r"], RIGHT, 0)
    for name, code in (("scapy", _SCAPY), ("pyshark", _PYSHARK)):
        if find_spec(name) is not None:
            found[f"{name}, its own loop"] = ([*PYTHON, code], RIGHT, 0)
    return found


def seconds(command: list[str], capture: Path, out: Path) -> float:
    """Return the processor seconds of a command over a capture."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    arguments = [argument.replace("{out}", str(out)) for argument in command]
    subprocess.run([*arguments, str(capture)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    sessions = int(sys.argv[1]) if len(sys.argv) > 1 else 250
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory() as name:
        folder, packets = Path(name), dict[str, int]()
        for kind, share in SHARES.items():
            for size, part in (("small", max(1, sessions // 10)), ("large", sessions)):
                packets[size] = right_sessions.write(folder / f"{kind} {size}.pcap", part, wrong=share)
        difference = packets["large"] - packets["small"]
        asked = questions()
        times = {question: (float("inf"), float("inf")) for question in asked}
        for _ in range(turns):
            for question, (command, kind, _) in asked.items():
                small, large = (
                    seconds(command, folder / f"{kind} {size}.pcap", folder / "out") for size in packets
                )
                times[question] = min(times[question][0], small), min(times[question][1], large)
        rates = {
            question: difference / max(1e-9, large - small) for question, (small, large) in times.items()
        }
        print(f"{packets['large']:,} packets (Python {sys.version.split()[0]})")
        print(f"{'':<28} {'packets/s':>10} {'aim':>9} {'of the table':>13} {'of tshark':>10}")
        for question, rate in rates.items():
            aim = f"{asked[question][2]:,}" if asked[question][2] else ""
            ratio = f"{rate / rates[TSHARK]:.2f}" if TSHARK in rates else ""
            print(
                f"{question:<28} {rate:>10,.0f} {aim:>9} {rate / rates[TABLE]:>13.2f} {ratio:>10}", flush=True
            )


if __name__ == "__main__":
    main()
