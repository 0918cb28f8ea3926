r"""Time of a page of the exporter for many targets, and its memory over many scrapes.

    python benchmarks/exporter.py [--targets N] [--queues N] [--servers N] [--at-once N] [--pages N]
                                  [--scrapes N]

Targets are ``python -m msmqwire serve --rpc-manage callers`` with so many queues each; a few processes are
all targets, each under many names. The exporter is a process of its own, asked as Prometheus asks it. The
first page connects to all targets; later ones find the connections there. ``--scrapes`` are of one target in
this process, one after the other, as fast as they go: resident memory after a tenth of them, and at the end.

Aims: a page of 200 targets with 20 queues in 10 s, 16 at once, on two cores; memory that does not grow.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from msmqwire.exporter import machine
from msmqwire.exporter.scraping import Scraping
from msmqwire.exporter.server import by_mqmr
from msmqwire.exporter.targets import Target

ROOT: Final = Path(__file__).resolve().parents[1]
ADDRESS: Final = "127.0.0.1"
AIM_S: Final = 10.0
_PAUSE_S: Final = 1.5
"""Between two pages: a younger answer of a target counts for the next one, too."""
_WAIT_S: Final = 120.0


@contextmanager
def started(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run ``msmqwire``; yields the process and its line ``ready``."""
    process = subprocess.Popen(
        [sys.executable, "-m", "msmqwire", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline()
    finally:
        process.terminate()
        process.wait()


def port_of(line: str, name: str) -> int:
    """Return the port of a place in a line ``ready``."""
    found = re.search(rf"{name}=\S+:(\d+)", line)
    if found is None:
        raise SystemExit(f"not ready: {line!r}")
    return int(found[1])


def server(folder: Path, number: int, queues: int) -> tuple[str | Path, ...]:
    """Return the arguments of a server with queues."""
    names = [word for index in range(queues) for word in ("--queue", rf"private$\q{index}")]
    places = ("--listen", f"{ADDRESS}:0", "--ping", "off", "--rpc", f"{ADDRESS}:0")
    rights = ("--rpc-auth", "none", "--rpc-manage", "callers", "--log", "error")
    return "serve", "--data", folder / f"qm{number}", "--name", f"QM{number}", *places, *rights, *names


def processor_s(process: subprocess.Popen[str]) -> float:
    """Return the seconds of a processor that a process has used."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(process: int | str = "self") -> float:
    """Return the resident memory of a process in MiB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def pages(ports: list[int], options: argparse.Namespace, folder: Path) -> bool:
    """Measure pages of all targets; return whether the aim is met."""
    file = folder / "targets.toml"
    file.write_text(
        "".join(
            f'[[target]]\nhost = "{ADDRESS}"\nname = "t{number}"\nrpc_port = {ports[number % len(ports)]}\n'
            for number in range(options.targets)
        )
    )
    file.chmod(0o600)
    place = ("--listen", f"{ADDRESS}:0", "--at-once", str(options.at_once), "--log", "error")
    slowest = 0.0
    with started("exporter", "--targets", file, *place) as (exporter, line):
        url = f"http://{ADDRESS}:{port_of(line, 'http')}/metrics"
        for number in range(options.pages):
            used, begin = processor_s(exporter), time.perf_counter()
            request = urllib.request.Request(url, headers={"X-Prometheus-Scrape-Timeout-Seconds": "60"})
            with urllib.request.urlopen(request, timeout=_WAIT_S) as answer:
                text = answer.read().decode()
            took = time.perf_counter() - begin
            slowest = max(slowest, took)
            up = len(re.findall(r"^msmq_up\{.*\} 1$", text, re.MULTILINE))
            counted = len(re.findall(r"^windows_msmq_messages_in_queue\{", text, re.MULTILINE))
            print(
                f"page {number + 1}: {took:.2f} s, {up} of {options.targets} targets up, {counted:,} queues, "
                f"{len(text) / 1e6:.1f} MB; exporter {processor_s(exporter) - used:.2f} s of a processor, "
                f"{resident(exporter.pid):.0f} MiB",
                flush=True,
            )
            if up != options.targets or counted < options.targets * options.queues:
                raise SystemExit("not all targets have answered")
            time.sleep(_PAUSE_S)
    return slowest <= AIM_S


async def scrapes(port: int, count: int) -> None:
    """Print the memory of this process over scrapes of one target."""
    machine.FRESH_S = -1.0  # type: ignore[misc]
    scraping = Scraping(by_mqmr)
    await scraping.use([Target(ADDRESS, "one", port)])
    before, begin = 0.0, time.perf_counter()
    for number in range(1, count + 1):
        parts = b"".join(await scraping.all(_WAIT_S))
        if b'msmq_up{target="one"} 1' not in parts:
            raise SystemExit("the target has not answered")
        if number == count // 10:
            gc.collect()
            before = resident()
    gc.collect()
    each = (time.perf_counter() - begin) / count * 1000
    print(
        f"{count:,} scrapes of one target: {each:.1f} ms each; {before:.1f} MiB after {count // 10:,}, "
        f"{resident():.1f} MiB at the end"
    )
    await scraping.close()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, value in (
        ("targets", 200), ("queues", 20), ("servers", 4), ("at-once", 16), ("pages", 3), ("scrapes", 10_000),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        ports = [
            port_of(stack.enter_context(started(*server(folder, number, options.queues)))[1], "rpc")
            for number in range(options.servers)
        ]
        met = pages(ports, options, folder)
        if options.scrapes:
            asyncio.run(scrapes(ports[0], options.scrapes))
    print(f"aim of {AIM_S:.0f} s a page: {'met' if met else 'missed'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
