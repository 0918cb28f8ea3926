r"""Remote receives a second over the loopback, beside the round trips of the RPC stack alone.

    python benchmarks/remote_read.py [--count N] [--rounds N] [--auth LEVELS] [--lines TEXT] [--profile FILE]

Messages of 1 KiB, recoverable or express, are taken out of one queue of ``python -m msmqwire serve --rpc``.
A receive is two calls, R_StartReceive and R_EndReceive; the second is answered once the removal of a
recoverable message is on disk. The sides, each a process beside the one of its server:

    msmqwire   `msmqwire.connect`, so many tasks that each receive one message after the other.
    stubs      our RPC stack with stubs that are there already, of the same server: what that can do.
    impacket   impacket's RPC client with such stubs; it can only wait for one call at a time.
    bare       our RPC stack on both ends: pairs of calls whose stubs have the same sizes (`rpc_bare.py`).

The ratio is that of receives to pairs of bare calls: as many round trips, the same bytes. "To single calls"
is half of it: receives for each bare round trip. The sides take turns, and the best of some rounds counts for
each. Rates of a machine that has other work say little; the processor time of each receive says more.
``--profile FILE`` writes a profile of the server, and ``REMOTE_READ_PROFILE=FILE`` one of the client.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import tempfile
from base64 import b64encode
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from http_transfer import PROFILED

from benchmarks.qm import rate, together
from benchmarks.support.qm_clients import BODY, Sample
from benchmarks.support.qm_daemons import ADDRESS, QUEUE, Daemon, Msmqwire
from benchmarks.support.remote_read_clients import PASSWORD, USER, Stubs, connected, opened
from msmqwire.qm.runtime.local import attach
from msmqwire.remote_read.constants import Opnum
from msmqwire.rpc.ndr import SYNTAXES

AIM: Final = 0.5
AUTHS: Final = ("none", "integrity", "privacy")
KINDS: Final = ("recoverable", "express")
_AT_ONCE: Final = 250


class Readable(Msmqwire):
    """``python -m msmqwire serve --rpc``."""

    def __init__(self, folder: Path, *, profile: str = "", least: str = "none") -> None:
        super().__init__(folder)
        self.options = ("--rpc", f"{ADDRESS}:0", "--rpc-auth", least)
        self.options += ("--rpc-users", str(users_file(folder)))
        if profile:
            self.program = ("-c", PROFILED, profile)

    def fill(self, kind: str, count: int) -> None:
        """Put messages into the queue."""
        message = {"body": b64encode(BODY).decode(), "label": "bench", "delivery": kind}
        with attach(self.where["data"]) as local:
            for start in range(0, count, _AT_ONCE):
                messages = [message] * min(_AT_ONCE, count - start)
                local.call("send", to=f"DIRECT=OS:.\\private$\\{QUEUE}", messages=messages)

    def left(self) -> int:
        """Return the number of messages in the queue."""
        with attach(self.where["data"]) as local:
            return int(local.call("show", queue=f"private$\\{QUEUE}")["messages"])


class BareRpc(Daemon):
    """``benchmarks/rpc_bare.py``, whose answers have the sizes of a server's."""

    side = client = "bare"
    says_ready = True

    def __init__(self, folder: Path, sizes: dict[int, int]) -> None:
        super().__init__(folder)
        self._sizes = sizes

    def start(self) -> None:
        script = Path(__file__).with_name("rpc_bare.py")
        sizes = [f"{opnum}={size}" for opnum, size in self._sizes.items()]
        self._run([sys.executable, str(script), str(users_file(self.folder)), *sizes])
        self.where = {"rpc": int(self._ready_line().split()[1]), "bare": True}


def users_file(folder: Path) -> Path:
    """Write the file of users for a server."""
    folder.mkdir(exist_ok=True)
    file = folder / "users"
    file.touch(mode=0o600)
    file.write_text(f"{USER}:{PASSWORD}\n")
    return file


async def sizes_of_answers(server: Readable) -> dict[int, int]:
    """Return the bytes of the answers to a receive."""
    server.fill("recoverable", 1)
    client = await connected(server.where, "none")
    receive, end = Stubs(await opened(client), SYNTAXES[client.transfer_syntax]).next()
    sizes = {}
    for opnum, stub in ((Opnum.R_StartReceive, receive), (Opnum.R_EndReceive, end)):
        sizes[int(opnum)] = len((await client.answer(client.begin(opnum, stub))).stub)
    return sizes


class Cell(NamedTuple):
    """A measurement: receives a second, and µs of the processor for each, of the server and the client."""

    rate: float
    server: float
    client: float

    def best(self, other: Cell | None) -> Cell:
        """Return the best of two."""
        if other is None:
            return self
        return Cell(
            max(self.rate, other.rate), min(self.server, other.server), min(self.client, other.client)
        )


def measure(
    server: Readable | BareRpc, client: str, auth: str, outstanding: int, kind: str, count: int
) -> Cell:
    """Let a client take `count` messages, or call as often."""
    if isinstance(server, Readable):
        server.fill(kind, count + 1)
    used = server.processor_s()
    sample: Sample = together("read", client, 1, server.where, auth, outstanding, count)
    used = server.processor_s() - used
    if isinstance(server, Readable) and (left := server.left()):
        raise SystemExit(f"{left} messages were not received")
    return Cell(rate(sample), 1e6 * used / (count + 1), 1e6 * sample.processor_s / count)


def compare(given: argparse.Namespace, ours: Readable, bare: BareRpc) -> dict[str, float]:
    """Print the tables, and return the ratios by line."""
    print(f"{'receives/s':34}{'msmqwire':>9}{'stubs':>8}{'impacket':>9}{'bare pairs':>11}", end="")
    print(f"{'ratio':>8}   µs of the processor: server, bare; client, bare", flush=True)
    ratios = {}
    for auth in given.auth.split(","):
        for outstanding in (1, 8):
            for kind in KINDS:
                line = f"{auth}, {outstanding} outstanding, {kind}"
                if given.lines in line:
                    ratios[line] = _compare_line(line, given, ours, bare)
    return ratios


def _compare_line(line: str, given: argparse.Namespace, ours: Readable, bare: BareRpc) -> float:
    auth, many, kind = line.split(", ")
    outstanding = int(many.split()[0])
    sides: list[tuple[str, Readable | BareRpc, str]] = [
        ("msmqwire", ours, "msmqwire"),
        ("bare", bare, "stubs"),
        ("stubs", ours, "stubs"),
    ]
    if outstanding == 1:
        sides.append(("impacket", ours, "impacket"))
    best: dict[str, Cell] = {}
    for _ in range(given.rounds):
        for side, server, client in sides:
            cell = measure(server, client, auth, outstanding, kind, given.count)
            best[side] = cell.best(best.get(side))
    ratio = best["msmqwire"].rate / best["bare"].rate
    impacket = f"{best['impacket'].rate:>9,.0f}" if "impacket" in best else f"{'-':>9}"
    print(f"{line:34}{best['msmqwire'].rate:>9,.0f}{best['stubs'].rate:>8,.0f}{impacket}", end="")
    print(f"{best['bare'].rate:>11,.0f}{ratio:>8.2f}", end="")
    print(f"{best['msmqwire'].server:>9.0f}{best['bare'].server:>6.0f}", end="")
    print(f"{best['msmqwire'].client:>9.0f}{best['bare'].client:>6.0f}", flush=True)
    return ratio


def main(arguments: Sequence[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1500, help="messages of each measurement")
    parser.add_argument("--rounds", type=int, default=2, help="measurements; the best one counts")
    parser.add_argument("--auth", default=",".join(AUTHS), help="levels")
    parser.add_argument("--lines", default="", help="only lines that contain this")
    parser.add_argument("--profile", default="", metavar="FILE", help="of our server")
    given = parser.parse_args(arguments)
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, messages of 1 KiB")
    with tempfile.TemporaryDirectory(prefix="msmqwire-bench-") as name, ExitStack() as stack:
        ours = stack.enter_context(Readable(Path(name) / "ours", profile=given.profile))
        assert isinstance(ours, Readable), "it enters itself"
        sizes = asyncio.run(sizes_of_answers(ours))
        bare = stack.enter_context(BareRpc(Path(name) / "bare", sizes))
        assert isinstance(bare, BareRpc), "it enters itself"
        ratios = compare(given, ours, bare)
    told = ", ".join(f"{opnum.name} {sizes[opnum]}" for opnum in (Opnum.R_StartReceive, Opnum.R_EndReceive))
    print(f"bytes of results: {told}")
    reached = [line for line, ratio in ratios.items() if ratio >= AIM]
    print(
        f"aim, receives in at least {AIM} of the pairs of bare calls: {len(reached)} of {len(ratios)} reached"
    )
    print("to single calls:", ", ".join(f"{line} {ratio / 2:.2f}" for line, ratio in ratios.items()))


if __name__ == "__main__":
    main()
