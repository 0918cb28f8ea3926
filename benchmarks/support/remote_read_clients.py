"""The clients of benchmarks/remote_read.py: each function is a process that takes messages out of one queue.

Calls with stubs that are there already, of the RPC stack alone, stand beside `msmqwire.connect`.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.support.qm_clients import Sample, Start, clock
from benchmarks.support.qm_daemons import ADDRESS, QUEUE, Where
from msmqwire.names import parse_format_name
from msmqwire.qm.client.remote_options import credentials_of
from msmqwire.qm.runtime.rpc.client import RpcClient, open_rpc
from msmqwire.remote_read.constants import Access, Acknowledge, Action, Opnum, ShareMode
from msmqwire.remote_read.interface import INTERFACE, build_request, parse_response
from msmqwire.rpc.handles import NULL_HANDLE, ContextHandle
from msmqwire.rpc.ndr import NDR20, SYNTAXES, Syntax
from msmqwire.rpc.queue_format import queue_format_of

USER: Final = "LAB\\bench"
PASSWORD: Final = "benchmark"
NAME: Final = rf"DIRECT=TCP:{ADDRESS}\private$\{QUEUE}"
BODY_MAX: Final = 1 << 22
PROFILE: Final = os.environ.get("REMOTE_READ_PROFILE", "")
"""A file for the profile of a client of ours."""
_MARK: Final = random.Random(12).randbytes(4)
"""The placeholder in the stubs for the number of the receive."""


def opening(syntax: Syntax) -> bytes:
    """Return the stub of R_OpenQueue, to receive from the queue."""
    arguments = {
        "pQueueFormat": queue_format_of(parse_format_name(NAME)),
        "dwAccess": int(Access.RECEIVE_ACCESS),
        "dwShareMode": int(ShareMode.MQ_DENY_NONE),
        "pClientId": uuid4(),
        "fNonRoutingServer": 1,
        "fWorkgroup": 1,
        "Major": 6,
        "Minor": 1,
        "BuildNumber": 0,
    }
    return build_request(Opnum.R_OpenQueue, arguments, syntax)


class Stubs:
    """The stubs of R_StartReceive and R_EndReceive for a handle; only their number is filled in."""

    def __init__(self, handle: ContextHandle, syntax: Syntax, timeout_ms: int = 0) -> None:
        mark = int.from_bytes(_MARK, "little")
        start = {
            "phContext": handle,
            "LookupId": 0,
            "hCursor": 0,
            "ulAction": int(Action.MQ_ACTION_RECEIVE),
            "ulTimeout": timeout_ms,
            "dwRequestId": mark,
            "dwMaxBodySize": BODY_MAX,
            "dwMaxCompoundMessageSize": BODY_MAX,
        }
        end = {"phContext": handle, "dwAck": int(Acknowledge.RR_ACK), "dwRequestId": mark}
        self._start = build_request(Opnum.R_StartReceive, start, syntax).split(_MARK)
        self._end = build_request(Opnum.R_EndReceive, end, syntax).split(_MARK)
        self._numbers = itertools.count(1)

    def next(self) -> tuple[bytes, bytes]:
        """Return the two stubs of another receive."""
        number = next(self._numbers).to_bytes(4, "little")
        return number.join(self._start), number.join(self._end)


async def connected(where: Where, auth: str) -> RpcClient:
    """Return a connection of the RPC stack alone."""
    return await open_rpc(ADDRESS, where["rpc"], INTERFACE, credentials_of(*_who(auth), auth))


async def opened(client: RpcClient) -> ContextHandle:
    """Open the queue."""
    syntax = SYNTAXES[client.transfer_syntax]
    answer = await client.answer(client.begin(Opnum.R_OpenQueue, opening(syntax)))
    handle: ContextHandle = parse_response(Opnum.R_OpenQueue, answer.stub, syntax).pphContext
    return handle


def _who(auth: str) -> tuple[str | None, str | None]:
    return (None, None) if auth == "none" else (USER, PASSWORD)


# -- receivers ------------------------------------------------------------------------------------------


def by_msmqwire(where: Where, auth: str, outstanding: int, count: int, start: Start) -> Sample:
    """`msmqwire.connect`: a number of tasks, each receiving one message after the other."""
    return asyncio.run(_by_msmqwire(where, auth, outstanding, count, start))


async def _by_msmqwire(where: Where, auth: str, outstanding: int, count: int, start: Start) -> Sample:
    import msmqwire

    user, password = _who(auth)
    level: Any = auth
    async with msmqwire.connect(
        NAME, port=where["port"], rpc_port=where["rpc"], user=user, password=password, auth=level
    ) as queue:

        async def one() -> None:
            await queue.receive(timeout=0)

        return await _measured(one, outstanding, count, start)


def by_stubs(where: Where, auth: str, outstanding: int, count: int, start: Start) -> Sample:
    """The client's RPC stack alone, with stubs that are there already, of a real server or a bare one."""
    return asyncio.run(_by_stubs(where, auth, outstanding, count, start))


async def _by_stubs(where: Where, auth: str, outstanding: int, count: int, start: Start) -> Sample:
    client = await connected(where, auth)
    handle = NULL_HANDLE if where.get("bare") else await opened(client)
    stubs = Stubs(handle, SYNTAXES[client.transfer_syntax])

    async def one() -> None:
        receive, end = stubs.next()
        _check((await client.answer(client.begin(Opnum.R_StartReceive, receive))).stub)
        _check((await client.answer(client.begin(Opnum.R_EndReceive, end))).stub)

    return await _measured(one, outstanding, count, start)


async def _measured(one: Callable[[], Any], outstanding: int, count: int, start: Start) -> Sample:
    """Take one message, then `count` in all in a number of tasks."""
    latencies: list[float] = []
    left = count

    async def many() -> None:
        nonlocal left
        while left:
            left -= 1
            begin = clock()
            await one()
            latencies.append(clock() - begin)

    await one()  # connects, and opens the queue
    start()
    begin, used = clock(), time.process_time()
    profile = None
    if PROFILE:
        import cProfile

        profile = cProfile.Profile(time.process_time)
        profile.enable()
    await asyncio.gather(*(many() for _ in range(outstanding)))
    end, used = clock(), time.process_time() - used
    if profile is not None:
        profile.disable()
        profile.dump_stats(PROFILE)
    return Sample(begin, end, count, latencies, used)


def by_impacket(where: Where, auth: str, outstanding: int, count: int, start: Start) -> Sample:
    """impacket's RPC client, with stubs that are there already: one call at a time is all that it can."""
    from impacket.dcerpc.v5 import transport
    from impacket.uuid import uuidtup_to_bin

    rpc = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:{ADDRESS}[{where['rpc']}]")
    level = credentials_of(*_who(auth), auth).level
    if auth != "none":
        domain, _, user = USER.partition("\\")
        rpc.set_credentials(user, PASSWORD, domain, "", "")
    dce = rpc.get_dce_rpc()
    if auth != "none":
        dce.set_auth_level(level)
    dce.connect()
    rpc.get_socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    dce.bind(uuidtup_to_bin((str(INTERFACE.uuid), f"{INTERFACE.major}.{INTERFACE.minor}")))

    def call(opnum: int, stub: bytes) -> bytes:
        dce.call(opnum, stub)
        answer: bytes = dce.recv()
        return answer

    handle = parse_response(Opnum.R_OpenQueue, call(Opnum.R_OpenQueue, opening(NDR20)), NDR20).pphContext
    stubs = Stubs(handle, NDR20)

    def one() -> None:
        receive, end = stubs.next()
        _check(call(Opnum.R_StartReceive, receive))
        _check(call(Opnum.R_EndReceive, end))

    one()
    start()
    latencies: list[float] = []
    begin, used = clock(), time.process_time()
    for _ in range(count):
        before = clock()
        one()
        latencies.append(clock() - before)
    return Sample(begin, clock(), count, latencies, time.process_time() - used)


def _check(answer: bytes) -> None:
    """Check the return value, the last four bytes of an answer."""
    if answer[-4:] != bytes(4):
        raise SystemExit(f"a receive fails with {int.from_bytes(answer[-4:], 'little'):#x}")


READERS: Final = {"msmqwire": by_msmqwire, "stubs": by_stubs, "impacket": by_impacket}
