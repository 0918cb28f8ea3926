"""tshark with the generated dissector, beside tshark without it: user time, the best of several turns.

`python -m benchmarks.wireshark [FRAMES [TURNS]]` writes captures (100,000 frames of
`benchmarks.support.captures`, and streams of an attacker) and prints seconds and ratios.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.support import captures
from msmqwire.plugins.wireshark import dissector
from tests.support.capture import attacks

OUTPUTS = {
    "one line for each frame": (),
    "all fields (-V)": ("-V",),
    "a filter (-Y)": ("-Y", "tcp.len == 99"),
}
STREAM = 2_000_000  # bytes of each stream of an attacker


def seconds(*arguments: str) -> float:
    """Return the user time of a run of tshark."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(
        ["tshark", "-n", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True
    )
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def compare(title: str, capture: Path, script: Path, turns: int, *arguments: str) -> None:
    """Print the user times of both, in turn, and their ratio."""
    without, with_script = float("inf"), float("inf")
    for _ in range(turns):
        without = min(without, seconds("-r", str(capture), *arguments))
        with_script = min(with_script, seconds("-X", f"lua_script:{script}", "-r", str(capture), *arguments))
    print(f"{title:<56} {without:7.2f} s {with_script:7.2f} s   x {with_script / without:.2f}", flush=True)


def hostile(path: Path) -> None:
    """Write a capture with all streams of an attacker, each a connection."""
    frames = [
        frame
        for client, make in enumerate(attacks.STREAMS.values())
        for frame in attacks.one_stream(make(STREAM), client=client)
    ]
    path.write_bytes(attacks.pcap(frames))


def main() -> None:
    frames = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory() as folder:
        script, sessions, streams = (Path(folder, name) for name in ("msmq.lua", "a.pcap", "b.pcap"))
        script.write_text(dissector(), encoding="utf-8")
        captures.write(sessions, frames)
        hostile(streams)
        print(f"{'':<56} {'without':>9} {'with':>9}   ratio")
        for title, arguments in OUTPUTS.items():
            compare(f"{frames} frames, {title}", sessions, script, turns, *arguments)
            compare(f"streams of an attacker, {title}", streams, script, turns, *arguments)


if __name__ == "__main__":
    main()
