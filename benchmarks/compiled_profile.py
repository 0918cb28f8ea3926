"""The server's time by function of the compiled modules: needs ``perf`` of Linux.

    python tools/generate/compiled_copy.py COPY && cd COPY
    python benchmarks/compiled_profile.py [KIND] [--window N] [--senders N] [--seconds S] [--functions N]

cProfile does not see compiled functions. Each sample of ``perf`` is charged to the innermost function of ours
on its stack (self), and to all of them (with callees); the remainder is the event loop, and the modules that
stay interpreted. KIND is express, recoverable or transactional.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.qm import rate, together
from benchmarks.support.qm_daemons import Msmqwire

_PREFIX: Final = "CPyDef_"
"""The prefixes of mypyc before the names of functions."""
_HERTZ: Final = 997
_STACK_BYTES: Final = 16_384


def stacks(lines: Iterator[str]) -> Iterator[list[str]]:
    """Yield the functions of each sample, innermost first, from the output of ``perf script -F ip,sym``."""
    stack: list[str] = []
    for line in lines:
        _, _, function = line.strip().partition(" ")
        if function:
            stack.append(function)
        elif stack:
            yield stack
            stack = []
    if stack:
        yield stack


def show(samples: list[list[str]], count: int) -> None:
    """Print the compiled functions that most samples are charged to."""
    own: Counter[str] = Counter()
    with_callees: Counter[str] = Counter()
    inside: dict[str, Counter[str]] = {}
    for stack in samples:
        compiled = [function for function in stack if function.startswith(_PREFIX)]
        innermost = compiled[0] if compiled else ""
        own[innermost] += 1
        inside.setdefault(innermost, Counter())[stack[0]] += 1
        with_callees.update(set(compiled))
    print(f"{'self':>6}{'with callees':>14}  function, and what takes its own time")
    for function, taken in own.most_common(count):
        name = function.removeprefix(_PREFIX).replace("___", ".") or "(not compiled)"
        detail = ", ".join(what for what, _ in inside[function].most_common(3))
        share, whole = taken / len(samples), max(taken, with_callees[function]) / len(samples)
        print(f"{share:>6.1%}{whole:>14.1%}  {name}: {detail}")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", nargs="?", default="recoverable")
    parser.add_argument("--window", type=int, default=64)
    parser.add_argument("--senders", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--functions", type=int, default=40)
    given = parser.parse_args()
    if shutil.which("perf") is None:
        sys.exit("perf is missing (Debian: apt-get install linux-perf)")
    with tempfile.TemporaryDirectory(prefix="msmqwire-bench-") as name:
        folder = Path(name)
        with Msmqwire(folder / "server") as server:
            assert server.process is not None, "it was started"
            record = ["perf", "record", "-o", str(folder / "samples"), "-F", str(_HERTZ)]
            record += ["--call-graph", f"dwarf,{_STACK_BYTES}", "-p", str(server.process.pid)]
            with subprocess.Popen(record, stderr=subprocess.DEVNULL) as perf:
                used = server.processor_s()
                sample = together(
                    "send",
                    server.client,
                    given.senders,
                    server.where,
                    given.kind,
                    given.window,
                    given.seconds,
                )
                used = server.processor_s() - used
                perf.send_signal(signal.SIGINT)
        script = ["perf", "script", "-i", str(folder / "samples"), "-F", "ip,sym", "--no-inline"]
        told = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    of_sender, of_server = 1e6 * sample.processor_s / sample.count, 1e6 * used / sample.count
    print(
        f"{rate(sample):,.0f} {given.kind} messages a second; of a processor for each: "
        f"{of_sender:.1f} us of a sender, {of_server:.1f} us of the server"
    )
    show(list(stacks(iter(told.splitlines()))), given.functions)


if __name__ == "__main__":
    main()
