"""The least that answers remote calls: our RPC listener, whose methods answer a number of bytes at once.

    python benchmarks/rpc_bare.py USERS OPNUM=BYTES ...

USERS is a file of users as for ``serve --rpc-users``; any other client may call, too. Prints its port.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msmqwire.qm.runtime.limits import Limits, RpcTraffic
from msmqwire.qm.runtime.rpc.connection import RpcConnection
from msmqwire.qm.runtime.rpc.listener import RpcListener
from msmqwire.qm.runtime.rpc.ntlm import RpcUsers
from msmqwire.qm.runtime.rpc.security import acceptors
from msmqwire.qm.runtime.rpc.users import load_users
from msmqwire.remote_read.constants import Opnum
from msmqwire.remote_read.interface import INTERFACE
from msmqwire.rpc.events import Called
from msmqwire.service.descriptors import OpenConnections

ADDRESS: Final = "127.0.0.1"


class Bare(RpcListener):
    """Answers each method with bytes of a size."""

    def __init__(self, users: Path, sizes: Mapping[int, int]) -> None:
        accept = acceptors(RpcUsers(load_users(users)))
        super().__init__(
            {INTERFACE: max(Opnum) + 1},
            Limits(),
            RpcTraffic(),
            OpenConnections(),
            security=lambda address: accept,
        )
        self._answers = {opnum: bytes(size) for opnum, size in sizes.items()}

    def called(self, connection: RpcConnection, event: Called) -> None:
        self.answer_call(connection, event.call, self._answers[event.opnum])

    def cancelled(self, connection: RpcConnection, call: int) -> None:
        """Nothing waits here."""

    def has_open(self, group: int) -> bool:
        return False

    def gone(self, connection: RpcConnection, group: int, *, last: bool) -> None:
        """Nothing is left."""


async def serve(users: Path, sizes: Mapping[int, int]) -> None:
    """Serve until SIGTERM."""
    listener = Bare(users, sizes)
    port = await listener.bind(ADDRESS, 0)
    listener.accept()
    print(f"ready {port}", flush=True)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    listener.abort()


if __name__ == "__main__":
    told = dict(pair.split("=") for pair in sys.argv[2:])
    asyncio.run(serve(Path(sys.argv[1]), {int(opnum): int(size) for opnum, size in told.items()}))
