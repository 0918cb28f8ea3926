r"""The performance of a NetWare queue service, and the cost of hostile clients.

    python benchmarks/netware.py [--seconds S] [--rounds N] [--objects N]

First jobs of 1 KiB go through `msmqwire netware serve`: created, written, started, taken, read, finished, by
clients of raw bytes, one and 16 at once; then entries of a job are read. A bare server of asyncio and SQLite
(`netware_bare.py`) does the same with the same durability in turn. The better round of each is printed, with
the ratio.

Then hostile clients at one address send the worst known requests, as fast as possible, to a server with a
bindery of many objects; the measure is the service of an honest client at another address meanwhile: reads of
the status of a queue a second, their median and longest time, and the resident memory of the server.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from netware_bare import ADDRESS, CREATE, FINISH, HEAD, SHOW, START, TAKE

from tests.support.netware.netware_running import unit
from tests.support.netware.netware_station import CREATE as ATTACH
from tests.support.netware.netware_station import REQUEST, be16, be32, le32, named, new_job, text

ROOT: Final = Path(__file__).resolve().parents[1]
BODY: Final = b"b" * 1024
_HOSTILE: Final = 240
_OTHER_ADDRESS: Final = "127.0.0.2"
_READ, _WRITE, _BINDERY = 72, 73, 23
_UNKNOWN_TYPE: Final = 0x1212
ANY: Final = b"\xff\xff"


class Ncp:
    """A connection of NCP by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.connection, self.sequence = 0xFFFF, 0

    @classmethod
    async def open(cls, port: int, name: str = "", type_: int = 1, source: str = ADDRESS) -> Ncp:
        """Connect, attach, and log in if a name is given."""
        self = cls(*await asyncio.open_connection(ADDRESS, port, local_addr=(source, 0)))
        reply = await self.exchange(self.packet(ATTACH, 0, sequence=0))
        self.connection = reply[3] | reply[5] << 8
        if name:
            await self.call(20, named(type_, name) + text(""))
        return self

    def packet(self, type_: int, function: int, data: bytes = b"", sequence: int | None = None) -> bytes:
        """A request, with the next sequence number."""
        if sequence is None:
            sequence = self.sequence = (self.sequence + 1) % 256
        return (
            be16(type_) + bytes((sequence, self.connection & 255, 1, self.connection >> 8, function)) + data
        )

    def request(self, subfunction: int, data: bytes) -> bytes:
        """A request of function 23."""
        return self.packet(REQUEST, _BINDERY, be16(len(data) + 1) + bytes((subfunction,)) + data)

    async def exchange(self, packet: bytes) -> bytes:
        """Return the reply to a packet."""
        self.writer.write(unit(packet))
        head = await self.reader.readexactly(8)
        return await self.reader.readexactly(int.from_bytes(head[4:], "big") - 8)

    async def call(self, subfunction: int, data: bytes, *, may_fail: bool = False) -> bytes:
        """Return the data of the reply to a call, none of one that is refused and may be."""
        reply = await self.exchange(self.request(subfunction, data))
        if reply[6] and not may_fail:
            raise RuntimeError(f"call {subfunction}: {reply[6]:#04x}")
        return reply[8:]

    async def file(self, function: int, data: bytes) -> bytes:
        """Return the data of the reply to a call of a file."""
        reply = await self.exchange(self.packet(REQUEST, function, data))
        if reply[6]:
            raise RuntimeError(f"function {function}: {reply[6]:#04x}")
        return reply[8:]


class Netware:
    """A worker of the queue service: a user and a queue server."""

    def __init__(self, queue: bytes, user: Ncp, server: Ncp) -> None:
        self._queue, self._user, self._server = queue, user, server
        self._seen = b""

    @classmethod
    async def of(cls, port: int) -> Netware:
        user, server = await Ncp.open(port, "ALICE"), await Ncp.open(port, "PS1", 7)
        queue = (await user.call(53, named(3, "LASER")))[:4]
        await server.call(111, queue)
        return cls(queue, user, server)

    async def cycle(self) -> None:
        """Bring a job through the queue."""
        queue = self._queue
        made = await self._user.call(121, queue + new_job())
        number, handle = made[38:42], made[62:66]
        await self._user.file(_WRITE, b"\0\0\0" + handle + be32(0) + be16(len(BODY)) + BODY)
        await self._user.call(127, queue + number)
        taken = await self._server.call(124, queue + ANY)
        read = await self._server.file(_READ, b"\0\0\0" + taken[62:66] + be32(0) + be16(len(BODY)))
        if read[2:] != BODY:
            raise RuntimeError("another body")
        await self._server.call(131, queue + taken[38:42] + be32(0))

    def close(self) -> None:
        """End the connections."""
        self._user.writer.close()
        self._server.writer.close()

    async def show(self) -> None:
        """Read the entry of a job."""
        if not self._seen:
            self._seen = (await self._user.call(121, self._queue + new_job()))[38:42]
        await self._user.call(122, self._queue + self._seen)


class Bare:
    """A worker of the bare server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._seen = 0

    @classmethod
    async def of(cls, port: int) -> Bare:
        return cls(*await asyncio.open_connection(ADDRESS, port))

    async def _do(self, operation: int, number: int = 0, body: bytes = b"") -> tuple[int, bytes]:
        self._writer.write(HEAD.pack(operation, number, len(body)) + body)
        _, number, size = HEAD.unpack(await self._reader.readexactly(HEAD.size))
        return number, await self._reader.readexactly(size)

    async def cycle(self) -> None:
        """Bring a job through the queue."""
        number, _ = await self._do(CREATE, 0, BODY)
        await self._do(START, number)
        number, body = await self._do(TAKE)
        if body != BODY:
            raise RuntimeError("another body")
        await self._do(FINISH, number)

    def close(self) -> None:
        """End the connection."""
        self._writer.close()

    async def show(self) -> None:
        """Read a job."""
        if not self._seen:
            self._seen, _ = await self._do(CREATE, 0, BODY)
        await self._do(SHOW, self._seen)


@contextmanager
def running(*command: str) -> Any:
    """Run a server in Python; yield it with the line that it prints once it is ready."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline()
    finally:
        process.terminate()
        process.wait(60)


def netware(folder: str) -> Any:
    """Serve a folder at a free port."""
    serve = ("serve", "--data", folder, "--listen", f"{ADDRESS}:0", "--log", "error")
    return running("-m", "msmqwire", "netware", *serve)


def port_of(line: str) -> int:
    return int(line.split()[2].rpartition(":")[2])


async def fill(port: int, objects: int) -> None:
    """Make the users, the queue and the queue server, and a number of further objects."""
    one = await Ncp.open(port, "SUPERVISOR")
    for name, type_ in (("ALICE", 1), ("PS1", 7)):
        await one.call(50, b"\0\x31" + named(type_, name))
    await one.call(100, named(3, "LASER") + b"\0" + text("SYS:SYSTEM"))
    for set_name, type_, member in (("Q_USERS", 1, "ALICE"), ("Q_SERVERS", 7, "PS1")):
        await one.call(65, named(3, "LASER") + text(set_name) + named(type_, member))
    makers = [await Ncp.open(port, "SUPERVISOR") for _ in range(32)]

    async def make(maker: Ncp, start: int) -> None:
        for number in range(start, objects, len(makers)):
            await maker.call(50, b"\0\x30" + named(1, f"U{number:05}"))

    await asyncio.gather(*(make(maker, start) for start, maker in enumerate(makers)))


async def rate(actions: list[Callable[[], Awaitable[None]]], seconds: float) -> float:
    """Return how often a second the actions are done, each by a task of its own."""
    done = 0
    end = time.monotonic() + seconds

    async def repeat(action: Callable[[], Awaitable[None]]) -> None:
        nonlocal done
        while time.monotonic() < end:
            await action()
            done += 1

    start = time.monotonic()
    await asyncio.gather(*map(repeat, actions))
    return done / (time.monotonic() - start)


async def compare(ports: tuple[int, int], seconds: float, rounds: int) -> None:
    """Print the rates of both servers, which take turns."""
    print(f"{'a second':40}{'msmqwire':>10}{'bare':>10}{'ratio':>8}")
    for count in (1, 16):
        sides: list[list[Any]] = [
            [await Netware.of(ports[0]) for _ in range(count)],
            [await Bare.of(ports[1]) for _ in range(count)],
        ]
        for name, what in (("jobs submitted and serviced", "cycle"), ("entries read", "show")):
            best = [0.0, 0.0]
            for _ in range(rounds):
                for side, workers in enumerate(sides):
                    actions = [getattr(worker, what) for worker in workers]
                    best[side] = max(best[side], await rate(actions, seconds))
            line = f"{name}, {count} at once"
            print(f"{line:40}{best[0]:10,.0f}{best[1]:10,.0f}{best[0] / best[1]:8.2f}", flush=True)
        for worker in chain(*sides):
            worker.close()


# -- hostile clients ----------------------------------------------------------------------------------------


def floods(queue: bytes) -> dict[str, tuple[str, Callable[[Ncp], bytes]]]:
    """The requests of hostile clients by name, each with the login."""
    return {
        "scans of the bindery that find nothing": (
            "",
            lambda one: one.request(55, be32(0xFFFFFFFF) + named(0xFFFF, "*U*0*0*0*Z")),
        ),
        "packets of an unknown type": ("", lambda one: one.packet(_UNKNOWN_TYPE, 0)),
        "connections given up and made": ("", lambda one: one.packet(ATTACH, 0)),
        "logins": ("", lambda one: one.request(20, named(1, "ALICE") + text(""))),
        "lists of jobs": ("ALICE", lambda one: one.request(129, queue + le32(1))),
        "jobs created": ("ALICE", lambda one: one.request(121, queue + new_job())),
    }


async def flood(port: int, name: str, queue: bytes) -> None:
    """Send as fast as possible, without reading before everything is sent, until this process is ended."""
    login, request = floods(queue)[name]
    unknown_peers = []
    for _ in range(_HOSTILE):
        one = await Ncp.open(port, login)
        one.writer.transport.set_write_buffer_limits(1 << 16)
        unknown_peers.append(one)
    print("ready", flush=True)

    async def send(one: Ncp) -> None:
        while True:
            one.writer.write(b"".join(unit(request(one)) for _ in range(64)))
            await one.writer.drain()

    async def read(one: Ncp) -> None:
        while await one.reader.read(1 << 16):
            pass

    await asyncio.gather(*(work(one) for one in unknown_peers for work in (send, read)))


async def besieged(server: subprocess.Popen[str], port: int, seconds: float) -> None:
    """Print the service of an honest client during the worst requests of hostile ones."""
    honest = await Ncp.open(port, "ALICE", source=_OTHER_ADDRESS)
    queue = (await honest.call(53, named(3, "LASER")))[:4]
    title = f"{_HOSTILE} connections of hostile clients"
    print(f"\n{title:42}{'others/s':>9}{'median ms':>11}{'worst ms':>10}{'MiB':>6}")
    print_line("none", await waiting(honest, queue, seconds), server)
    for name in floods(queue):
        with running(__file__, "--flood", name, "--port", str(port), "--queue", queue.hex()) as (_, line):
            assert line == "ready\n", line
            await asyncio.sleep(0.5)
            print_line(name, await waiting(honest, queue, seconds), server)


def print_line(name: str, waits: list[float], server: subprocess.Popen[str]) -> None:
    median, worst = waits[len(waits) // 2] * 1000, waits[-1] * 1000
    memory = int(Path(f"/proc/{server.pid}/statm").read_text().split()[1]) / 256
    print(f"{name:42}{len(waits) / sum(waits):9,.0f}{median:11.1f}{worst:10.0f}{memory:6.0f}", flush=True)


async def waiting(honest: Ncp, queue: bytes, seconds: float) -> list[float]:
    """Return how long reads of the status of a queue take, one after the other, in order of length."""
    waits = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        start = time.monotonic()
        await honest.call(125, queue)
        waits.append(time.monotonic() - start)
    return sorted(waits)


async def main(seconds: float, rounds: int, objects: int) -> None:
    """Measure everything."""
    with tempfile.TemporaryDirectory() as folder:
        with (
            netware(f"{folder}/data") as (_, line),
            running("benchmarks/netware_bare.py", f"{folder}/bare") as (_, bare),
        ):
            await fill(port_of(line), 0)
            await compare((port_of(line), int(bare.split()[1])), seconds, rounds)
        with netware(f"{folder}/full") as (server, line):
            await fill(port_of(line), objects)
            await besieged(server, port_of(line), seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--objects", type=int, default=9_900, help="in the bindery that hostile clients scan")
    for hidden in ("--flood", "--queue", "--port"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.flood:
        asyncio.run(flood(int(options.port), options.flood, bytes.fromhex(options.queue)))
    else:
        asyncio.run(main(options.seconds, options.rounds, options.objects))
