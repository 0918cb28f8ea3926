r"""All queues of a server listed by [MS-MQMR] over the loopback, beside the ways that a user has without us.

    python benchmarks/manage.py [--queues N] [--rounds N] [--auth LEVELS] [--profile FILE]

The server, ``python -m msmqwire serve --rpc --rpc-manage``, is a process with N idle private queues.
The sides all end with the values of 27 properties of each queue:

    msmqwire      `queues()`: one connection, 64 calls under way.
    one by one    `queue(name)` for each name: one connection, one call at a time.
    connections   a connection for each queue, one after the other, as a tool called for each has them.
    impacket      impacket's RPC client, with stubs that are there already: one call at a time is all it can.

Seconds are without the start of a process, the best of some rounds for each; the aim is 1,000 queues in less
than 2 s without protection. Beside them the seconds of the processor of server and client.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from http_transfer import PROFILED
from remote_read import users_file

import msmqwire
from benchmarks.support.qm_daemons import ADDRESS, Msmqwire
from benchmarks.support.remote_read_clients import PASSWORD, USER
from msmqwire.constants import ManagementQueueProperty
from msmqwire.management.constants import Opnum
from msmqwire.management.interface import INTERFACE, build_request, parse_response
from msmqwire.management.objects import queue_object
from msmqwire.management.variants import NULL
from msmqwire.names import parse_format_name
from msmqwire.qm.client.remote_options import credentials_of
from msmqwire.qm.runtime.local import attach
from msmqwire.rpc.ndr import NDR20

AIM_S: Final = 2.0
AIM_QUEUES: Final = 1000
AUTHS: Final = ("none", "privacy")
TIMEOUT_S: Final = 600.0


class Managed(Msmqwire):
    """A server that may be managed."""

    def __init__(self, folder: Path, *, profile: str = "") -> None:
        super().__init__(folder)
        self.options = ("--rpc", f"{ADDRESS}:0", "--rpc-auth", "none", "--rpc-manage", "callers")
        self.options += ("--rpc-users", str(users_file(folder)))
        if profile:
            self.program = ("-c", PROFILED, profile)

    def fill(self, count: int) -> list[str]:
        """Create private queues until there are so many, and return their path names."""
        with managed(self, "none") as host, attach(self.where["data"]) as local:
            for number in range(count - len(host.machine().private_queues or ())):
                local.call("create", queue=f"private$\\queue{number:05}")
            return list(host.machine().private_queues or ())


def managed(server: Managed, auth: str) -> Any:
    """Return access to the server by a user that is protected so."""
    caller = {} if auth == "none" else {"user": USER, "password": PASSWORD}
    return msmqwire.manage(ADDRESS, port=server.where["rpc"], timeout=TIMEOUT_S, **caller)


def by_msmqwire(server: Managed, auth: str, names: Sequence[str]) -> int:
    """One connection with many calls under way; return the number of queues."""

    async def work() -> int:
        async with managed(server, auth) as host:
            return sum(row.messages is not None for row in await host.queues())

    return asyncio.run(work())


def one_by_one(server: Managed, auth: str, names: Sequence[str]) -> int:
    """One connection with one call at a time."""

    async def work() -> int:
        async with managed(server, auth) as host:
            return sum([(await host.queue(name)).messages is not None for name in names])

    return asyncio.run(work())


def by_connections(server: Managed, auth: str, names: Sequence[str]) -> int:
    """A connection for each queue."""

    async def work() -> int:
        found = 0
        for name in names:
            async with managed(server, auth) as host:
                found += (await host.queue(name)).messages is not None
        return found

    return asyncio.run(work())


def by_impacket(server: Managed, auth: str, names: Sequence[str]) -> int:
    """impacket, with stubs that are there already; answers are parsed."""
    from impacket.dcerpc.v5 import transport
    from impacket.uuid import uuidtup_to_bin

    rpc = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:{ADDRESS}[{server.where['rpc']}]")
    if auth != "none":
        domain, _, user = USER.partition("\\")
        rpc.set_credentials(user, PASSWORD, domain, "", "")
    dce = rpc.get_dce_rpc()
    if auth != "none":
        dce.set_auth_level(credentials_of(USER, PASSWORD, auth).level)
    dce.connect()
    rpc.get_socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    dce.bind(uuidtup_to_bin((str(INTERFACE.uuid), f"{INTERFACE.major}.{INTERFACE.minor}")))
    found = 0
    for stub in stubs_of(names):
        dce.call(Opnum.R_QMMgmtGetInfo, stub)
        found += not parse_response(Opnum.R_QMMgmtGetInfo, dce.recv(), NDR20).status
    dce.disconnect()
    return found


def stubs_of(names: Sequence[str]) -> list[bytes]:
    """Return the calls that ask for all properties of queues."""
    ids = tuple(map(int, ManagementQueueProperty))
    return [
        build_request(
            Opnum.R_QMMgmtGetInfo,
            {
                "pObjectFormat": queue_object(parse_format_name(f"DIRECT=OS:{name}")),
                "cp": len(ids),
                "aProp": ids,
                "apVar": (NULL,) * len(ids),
            },
            NDR20,
        )
        for name in names
    ]


SIDES: Final[dict[str, Callable[[Managed, str, Sequence[str]], int]]] = {
    "msmqwire": by_msmqwire,
    "one by one": one_by_one,
    "connections": by_connections,
    "impacket": by_impacket,
}


class Cell(NamedTuple):
    """A measurement, in seconds: all queues, and the processor of the server and the client."""

    wall: float
    server: float
    client: float


def measure(side: str, server: Managed, auth: str, names: Sequence[str]) -> Cell:
    """Let a side list all queues."""
    used, own, begun = server.processor_s(), time.process_time(), time.perf_counter()
    found = SIDES[side](server, auth, names)
    wall, own = time.perf_counter() - begun, time.process_time() - own
    if found != len(names):
        raise SystemExit(f"{side}: {found} of {len(names)} queues were found")
    return Cell(wall, server.processor_s() - used, own)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queues", type=int, default=AIM_QUEUES, help="private queues of the server")
    parser.add_argument("--rounds", type=int, default=3, help="measurements; the best one counts")
    parser.add_argument("--auth", default=",".join(AUTHS), help="none, connect, integrity, privacy")
    parser.add_argument("--profile", default="", metavar="FILE", help="of our server")
    given = parser.parse_args(arguments)
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {given.queues:,} queues, loopback")
    with (
        tempfile.TemporaryDirectory(prefix="msmqwire-bench-") as name,
        Managed(Path(name), profile=given.profile) as server,
    ):
        assert isinstance(server, Managed), "it enters itself"
        names = server.fill(given.queues)
        print(f"{'seconds':24}{'all':>8}{'server':>8}{'client':>8}", flush=True)
        for auth in given.auth.split(","):
            best = {}
            for side in SIDES:
                cells = [measure(side, server, auth, names) for _ in range(given.rounds)]
                best[side] = min(cells)
                line = f"{auth}, {side}"
                print(f"{line:24}" + "".join(f"{value:8.2f}" for value in best[side]), flush=True)
            if auth == "none" and len(names) >= AIM_QUEUES:
                wall = best["msmqwire"].wall
                reached = "reached" if wall < AIM_S else "not reached"
                print(f"aim, {len(names):,} queues in less than {AIM_S:g} s: {wall:.2f} s, {reached}")


if __name__ == "__main__":
    main()
