"""Latency of reads by the HTTP API, beside that of ``/healthz``, while messages are sent.

    python benchmarks/api_reads.py [--queues N] [--messages N] [--rate N] [--seconds S]

One server, ``serve --console``, in a temporary folder, with queues and messages of 200 bytes
in them. Beside the reads messages of 1 KiB are sent to it by the control channel at a steady rate. One client
asks for each read in turn, one request after the other on a connection that stays open, and for ``/healthz``
with the same token in the same way. Printed are the medians and the 99th percentiles, and how many times that
of ``/healthz`` each is.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import sys
import tempfile
import time
from base64 import b64encode
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.api import QUEUE, Server, by_control  # noqa: E402
from msmqwire.qm.runtime.local import attach  # noqa: E402

AIM: Final = 3.0
_ADDRESS: Final = "127.0.0.1"
_BATCH: Final = 100


def fill(data: Path, queues: int, messages: int) -> list[str]:
    """Create queues, and put the same number of messages into each; return the names of the queues."""
    names = [f"private$\\q{number:04}" for number in range(queues)]
    body = b64encode(os.urandom(200)).decode()
    each = math.ceil(messages / queues)
    with attach(data, create=True) as local:
        for name in names:
            local.call("create", queue=name)
            for begin in range(0, each, _BATCH):
                entries = [{"body": body, "delivery": "recoverable"}] * min(_BATCH, each - begin)
                local.call("send", to=f"DIRECT=OS:.\\{name}", messages=entries)
    return names


async def send_steadily(server: Server, rate: int, ends: asyncio.Event) -> int:
    """Send messages at a rate until the end; return how many in a second. What comes late is sent at once."""
    ask, began, sent = await by_control(server, 5), time.monotonic(), 0
    while not ends.is_set():
        while sent < (time.monotonic() - began) * rate and not ends.is_set():
            await ask()
            sent += 5
        await asyncio.sleep(0.005)
    return round(sent / (time.monotonic() - began))


class Reader:
    """A client with a connection that stays open."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(_ADDRESS, self._server.port, limit=1 << 24)

    async def get(self, path: str) -> tuple[float, bytes]:
        """Ask for a path; return the seconds until its whole answer, and the answer."""
        began = time.perf_counter()
        self._writer.write(
            f"GET {path} HTTP/1.1\r\nHost: {_ADDRESS}:{self._server.port}\r\n"
            f"Authorization: Bearer {self._server.token}\r\n\r\n".encode()
        )
        head = await self._reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head[:20]:
            raise SystemExit(f"{path}: {head!r}")
        at = head.index(b"Content-Length: ") + 16
        body = await self._reader.readexactly(int(head[at : head.index(b"\r\n", at)]))
        return time.perf_counter() - began, body


def percentile(times: list[float], part: float) -> float:
    """Return a percentile of times in milliseconds."""
    return 1000 * sorted(times)[min(len(times) - 1, int(len(times) * part))]


async def measure(server: Server, names: list[str], rate: int, seconds: float) -> dict[str, list[float]]:
    """Return the times of each read."""
    reader, ends = Reader(server), asyncio.Event()
    await reader.connect()
    sending = asyncio.create_task(send_steadily(server, rate, ends))
    middle = quote(names[len(names) // 2], safe="")
    first = json.loads((await reader.get(f"/api/v1/queues/{middle}/messages?limit=1"))[1])["items"][0]
    reads = {
        "/healthz": "/healthz",
        "a queue": f"/api/v1/queues/{middle}",
        "a message": f"/api/v1/queues/{middle}/messages/{first['lookup_identifier']}",
        "50 messages": f"/api/v1/queues/{middle}/messages",
        "50 queues": "/api/v1/queues",
        "status": "/api/v1/status",
        "sessions": "/api/v1/sessions",
        "tokens": "/api/v1/tokens",
    }
    times: dict[str, list[float]] = {name: [] for name in reads}
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for name, path in reads.items():
            times[name].append((await reader.get(path))[0])
            await asyncio.sleep(0.001)
    ends.set()
    print(f"beside {await sending} messages a second; {len(times['status'])} of each read")
    return times


def main(arguments: Any = None) -> None:
    parser = argparse.ArgumentParser(description="Latency of reads by the HTTP API.")
    parser.add_argument("--queues", type=int, default=1000)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=30.0)
    told = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        names = fill(data, told.queues, told.messages)
        server = Server(data)
        try:
            times = asyncio.run(measure(server, names, told.rate, told.seconds))
        finally:
            server.stop()
    base = percentile(times["/healthz"], 0.99)
    print(f"{'read':12} {'median':>9} {'p99':>9} {'of /healthz':>12}")
    for name, found in times.items():
        share = percentile(found, 0.99) / base
        print(f"{name:12} {percentile(found, 0.5):6.2f} ms {percentile(found, 0.99):6.2f} ms {share:11.1f}x")
    print(f"aim: {AIM:g} times the p99 of /healthz; queue of the sends: {QUEUE}")


if __name__ == "__main__":
    main()
