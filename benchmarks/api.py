"""Messages sent by the HTTP API, side by side with the control channel.

    python benchmarks/api.py [--seconds S] [--rounds N] [--connections N]

One server, ``python -m msmqwire serve --console``, in a temporary folder; one client process with a number of
connections to each side, which all stay open. Each connection sends a request, awaits the answer (the message
is on disk then), and sends the next one: recoverable messages of 1 KiB to one queue, 1 or 100 in a request.
Both clients write bytes that were made before, and look only for the end of the answer, so that they cost
little: the machine's processors are shared with the server. The sides take turns, round after round; the
queue is purged in between. Printed are the medians of the rates, the processor time of the server for a
message, and the share of the API.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
AIM: Final = 0.6
QUEUE: Final = "private$\\bench"
BYTES: Final = 1024
_ADDRESS: Final = "127.0.0.1"
_MSMQWIRE: Final = (sys.executable, "-m", "msmqwire")
_READ: Final = 1 << 16


class Server:
    """The server as a process.

    Attributes:
        port: the port of its API.
        token: the token of its console.
    """

    def __init__(self, data: Path) -> None:
        self.data = data
        options = ["--listen", f"{_ADDRESS}:0", "--ping", "off", "--console", f"{_ADDRESS}:0"]
        command = [sys.executable, "-m", "msmqwire", "serve", "--data", str(data), "--queue", QUEUE]
        self.process = subprocess.Popen(
            [*command, *options, "--console-write"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT,
        )  # fmt: skip
        assert self.process.stdout is not None, "it was asked for"
        line = self.process.stdout.readline()
        self.port = int(line.partition("console=")[2].split()[0].rpartition(":")[2])
        self.token = (data / "console-token").read_text().strip()

    def processor_s(self) -> float:
        """Return the seconds of processor time that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """Stop it."""
        self.process.terminate()
        self.process.wait()


Ask = Callable[[], Coroutine[Any, Any, None]]


async def by_control(server: Server, batch: int) -> Ask:
    """Return a function that sends messages by the control channel, on a connection of its own."""
    address = json.loads((server.data / "control").read_text())
    reader, writer = await asyncio.open_unix_connection(address["path"], limit=_READ)
    line = json.dumps({"id": 1, "op": "send", "to": f"DIRECT=OS:.\\{QUEUE}", "messages": _messages(batch)})
    request = line.encode() + b"\n"

    async def ask() -> None:
        writer.write(request)
        answer = await reader.readline()
        if b'"answer"' not in answer[:40]:
            raise SystemExit(answer)

    return ask


async def by_api(server: Server, batch: int) -> Ask:
    """Return a function that sends messages by the API, on a connection of its own that stays open."""
    reader, writer = await asyncio.open_connection(_ADDRESS, server.port, limit=_READ)
    body = json.dumps({"to": QUEUE, "messages": _messages(batch)}).encode()
    head = (
        f"POST /api/v1/messages HTTP/1.1\r\nHost: {_ADDRESS}:{server.port}\r\n"
        f"Authorization: Bearer {server.token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    request = head.encode() + body

    async def ask() -> None:
        writer.write(request)
        answer = await reader.readuntil(b"\r\n\r\n")
        if b" 201 " not in answer[:20]:
            raise SystemExit(answer)
        at = answer.index(b"Content-Length: ") + 16
        await reader.readexactly(int(answer[at : answer.index(b"\r\n", at)]))

    return ask


def _messages(batch: int) -> list[dict[str, str]]:
    body = b64encode(os.urandom(BYTES)).decode()
    return [{"body": body, "delivery": "recoverable"}] * batch


SIDES: Final = {"control channel": by_control, "API": by_api}


async def rate(
    server: Server, side: str, batch: int, connections: int, seconds: float
) -> tuple[float, float]:
    """Return messages a second, and microseconds of the server's processor for each."""
    asks = [await SIDES[side](server, batch) for _ in range(connections)]
    until = time.perf_counter() + seconds
    counts = [0] * connections

    async def work(number: int) -> None:
        while time.perf_counter() < until:
            await asks[number]()
            counts[number] += batch

    for ask in asks:
        await ask()
    used, begun = server.processor_s(), time.perf_counter()
    until = begun + seconds
    await asyncio.gather(*map(work, range(connections)))
    elapsed = time.perf_counter() - begun
    used = server.processor_s() - used
    return sum(counts) / elapsed, 1e6 * used / sum(counts)


def main() -> None:
    """Measure, and print a line for each number of messages in a request."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=16)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "data")
        try:
            for batch in (1, 100):
                _compare(server, batch, options)
        finally:
            server.stop()


def _compare(server: Server, batch: int, options: argparse.Namespace) -> None:
    found: dict[str, list[tuple[float, float]]] = {side: [] for side in SIDES}
    for _ in range(options.rounds):
        for side in SIDES:
            measured = rate(server, side, batch, options.connections, options.seconds)
            found[side].append(asyncio.run(measured))
            subprocess.run(
                [*_MSMQWIRE, "queue", "purge", QUEUE, "--yes", "--data", str(server.data)],
                cwd=ROOT, check=True, stdout=subprocess.DEVNULL,
            )  # fmt: skip
    shares = [api[0] / control[0] for control, api in zip(*found.values(), strict=True)]
    told = ", ".join(
        f"{side} {statistics.median(one[0] for one in several):,.0f}/s "
        f"({statistics.median(one[1] for one in several):.0f} µs of the server each)"
        for side, several in found.items()
    )
    share = statistics.median(shares)
    print(f"{batch} in a request, {options.connections} connections: {told}; share {share:.2f} (aim {AIM})")


if __name__ == "__main__":
    main()
