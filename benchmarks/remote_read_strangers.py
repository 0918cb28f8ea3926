r"""The cost of clients for a server of remote read: waiting receives, and the worst requests of an
unauthenticated client.

    python benchmarks/remote_read_strangers.py [--waiting N] [--seconds S] [--lines TEXT]

First many receives wait at once, over as few connections as the limits allow; the growth of the server's
resident memory is measured, then a message for each of them is sent, and every one has to be answered. Then
each attack is sent to a server that demands authentication with privacy, and to one that lets in everybody,
as fast as it reads; the measure is processor time of the server for each byte and frame that it has taken.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from remote_read import Readable

from benchmarks.support.qm_daemons import ADDRESS
from benchmarks.support.remote_read_clients import NAME, Stubs, connected, opened, opening
from msmqwire.errors import Unreachable
from msmqwire.names import parse_format_name
from msmqwire.qm.runtime.rpc.client import RpcClient
from msmqwire.qm.runtime.rpc.security import initiator
from msmqwire.remote_read.constants import Opnum
from msmqwire.remote_read.interface import INTERFACE
from msmqwire.remote_read.procedures import PROCEDURES, PROPAGATION_TOKEN_MAX
from msmqwire.rpc.client_association import ClientAssociation
from msmqwire.rpc.constants import NDR20, NDR64, WHOLE, AuthLevel, AuthType, PduType, PfcFlags
from msmqwire.rpc.ndr import NDR20 as SYNTAX
from msmqwire.rpc.ndr import SYNTAXES, build_stub
from msmqwire.rpc.pdu import build_pdu, make_pdu
from msmqwire.rpc.pdus import syntax_fields
from msmqwire.rpc.queue_format import queue_format_of

AIM_MIB: Final = 300
_OF_A_CONNECTION: Final = 250
_FOREVER: Final = 0xFFFFFFFF
_ANSWERED_S: Final = 120.0
_CONTEXTS: Final = 255
_CALLS: Final = 16_384
"""More than the server reads at once, so that no two calls with a number are under way."""
_FRAGMENT: Final = 5792

# -- receives that wait -------------------------------------------------------------------------------------


async def wait_many(server: Readable, auth: str, count: int) -> None:
    """Hold a number of receives, measure, then send a message for each."""
    before = server.resident()
    clients: list[RpcClient] = []
    answers: list[asyncio.Future[Any]] = []
    for first in range(0, count, _OF_A_CONNECTION):
        client = await connected(server.where, auth)
        clients.append(client)
        stubs = Stubs(await opened(client), SYNTAXES[client.transfer_syntax], _FOREVER)
        for _ in range(min(_OF_A_CONNECTION, count - first)):
            call = client.begin(Opnum.R_StartReceive, stubs.next()[0], wait=None)
            answers.append(asyncio.ensure_future(client.answer(call)))
        await asyncio.sleep(0)
    for client in clients:
        await opened(client)  # the calls before it have been taken
    assert not any(answer.done() for answer in answers), "all wait"
    grown = (server.resident() - before) / (1 << 20)
    begun = time.perf_counter()
    filling = asyncio.create_task(asyncio.to_thread(server.fill, "express", count))
    await asyncio.wait_for(asyncio.gather(filling, *answers), _ANSWERED_S)
    took = time.perf_counter() - begun
    told = "reached" if grown <= AIM_MIB else "missed"
    print(
        f"{auth:12}{count:>8,} receives wait over {len(clients)} connections: {grown:.0f} MiB more, "
        f"{1024 * grown / count:.1f} KiB each (aim {AIM_MIB} MiB: {told}); all answered in {took:.1f} s",
        flush=True,
    )
    for client in clients:
        client.end(Unreachable("left"))


# -- requests of hostile clients ----------------------------------------------------------------------------


class Attack(NamedTuple):
    """The bytes sent on each connection: `begin`, then `frames` repeatedly; without frames on a new one each
    time.
    """

    begin: bytes
    frames: list[bytes]


def _bind(contexts: int = 1, kind: PduType = PduType.BIND, call: int = 1) -> bytes:
    elements = [
        {
            "p_cont_id": number,
            "abstract_syntax": syntax_fields(INTERFACE),
            "transfer_syntaxes": [syntax_fields(NDR20), syntax_fields(NDR64)],
        }
        for number in range(contexts)
    ]
    flags = int(WHOLE | PfcFlags.CONC_MPX)
    return build_pdu(
        make_pdu(kind, {"p_context_elem": elements}, header={"call_id": call, "pfc_flags": flags})
    )


def _request(call: int, opnum: int, stub: bytes, flags: int = int(WHOLE)) -> bytes:
    fields = {"p_cont_id": 0, "opnum": opnum, "stub_data": stub}
    return build_pdu(make_pdu(PduType.REQUEST, fields, header={"call_id": call, "pfc_flags": flags}))


def _fragments(call: int, opnum: int, stub: bytes, size: int) -> list[bytes]:
    """Return the fragments of a request, each with this number of bytes of its stub."""
    pieces = [stub[at : at + size] for at in range(0, len(stub), size)]
    last = len(pieces) - 1
    return [
        _request(
            call,
            opnum,
            piece,
            int(PfcFlags.FIRST_FRAG) * (number == 0) | int(PfcFlags.LAST_FRAG) * (number == last),
        )
        for number, piece in enumerate(pieces)
    ]


def _token(count: int) -> bytes:
    arguments = {
        "pTransactionId": {"rgb": bytes(16)},
        "cbPropagationToken": count,
        "pbPropagationToken": bytes(count),
        "pQueueFormat": queue_format_of(parse_format_name(NAME)),
    }
    return build_stub(PROCEDURES[Opnum.R_QMEnlistRemoteTransaction].request, arguments, SYNTAX)


def _handshake() -> bytes:
    """Return a bind with the first token of NTLM."""
    security = initiator(AuthType.WINNT, AuthLevel.PKT_PRIVACY, user="LAB\\mallory", password="guess")
    association = ClientAssociation(INTERFACE, security=security, level=AuthLevel.PKT_PRIVACY)
    association.bind()
    return association.data_to_send()


def attacks() -> Iterator[tuple[str, Attack]]:
    """Yield the attacks by name."""
    bind, syntax = _bind(), SYNTAX
    yield "connections that bind 255 contexts", Attack(_bind(_CONTEXTS), [])
    yield "connections that begin NTLM", Attack(_handshake(), [])
    alter = _bind(_CONTEXTS, PduType.ALTER_CONTEXT, 2)
    yield "alter_contexts of 255 contexts", Attack(bind, [alter] * 20)
    tiny = [_fragments(2 + number, Opnum.R_OpenQueue, opening(syntax), 1) for number in range(256)]
    yield "requests in fragments of one byte", Attack(bind, list(chain.from_iterable(tiny)))
    first = _request(2, Opnum.R_OpenQueue, b"", int(PfcFlags.FIRST_FRAG))
    yield (
        "a request of empty fragments, without end",
        Attack(bind + first, [_request(2, Opnum.R_OpenQueue, b"", 0)] * 1000),
    )
    token = _token(PROPAGATION_TOKEN_MAX)
    arrays = [
        _fragments(2 + number, Opnum.R_QMEnlistRemoteTransaction, token, _FRAGMENT) for number in range(8)
    ]
    yield "requests with the largest array", Attack(bind, list(chain.from_iterable(arrays)))
    claim = bytearray(_token(64))
    claim[16:20] = claim[20:24] = PROPAGATION_TOKEN_MAX.to_bytes(4, "little")
    for name, opnum, stub in (
        ("requests that claim the largest array", Opnum.R_QMEnlistRemoteTransaction, bytes(claim)),
        ("calls of R_OpenQueue", Opnum.R_OpenQueue, opening(syntax)),
        ("calls without arguments", Opnum.R_StartReceive, b""),
        ("calls of a method that is not there", 99, b""),
    ):
        yield name, Attack(bind, [_request(2 + number, opnum, stub) for number in range(_CALLS)])


def attack(server: Readable, what: Attack, seconds: float) -> tuple[float, int, int, int, int]:
    """Return seconds of processor time of the server, connections, connections that it has reset, frames and
    bytes.
    """
    used, until = server.processor_s(), time.perf_counter() + seconds
    connections = ended = frames = size = 0
    blob = b"".join(what.frames)
    while time.perf_counter() < until:
        with socket.create_connection((ADDRESS, server.where["rpc"]), 10) as stream:
            connections += 1
            reader = threading.Thread(target=_drain, args=(stream,))
            reader.start()
            try:
                stream.sendall(what.begin)
                size += len(what.begin)
                while what.frames and time.perf_counter() < until:
                    stream.sendall(blob)
                    size, frames = size + len(blob), frames + len(what.frames)
                stream.shutdown(socket.SHUT_WR)
            except OSError:  # the server has reset it
                ended += 1
            reader.join()
    return server.processor_s() - used, connections, ended, frames, size


def _drain(stream: socket.socket) -> None:
    """Read until the server has taken all, and ends the connection."""
    try:
        while stream.recv(1 << 18):
            pass
    except OSError:
        return


def attack_all(servers: dict[str, Readable], seconds: float, lines: str) -> None:
    """Print the cost of each attack for each server."""
    print(f"{'':44}{'':10}{'connections':>12}{'reset':>6}{'frames':>9}{'MB':>7}{'s':>6}", end="")
    print(f"{'µs a connection':>17}{'a frame':>9}{'a byte':>8}{'MiB more':>9}")
    for name, what in attacks():
        if lines not in name:
            continue
        for least, server in servers.items():
            resident = server.resident()
            used, connections, ended, frames, size = attack(server, what, seconds)
            grown = (server.resident() - resident) / (1 << 20)
            print(
                f"{name:44}{least:10}{connections:>12,}{ended:>6}{frames:>9,}{size / 1e6:>7.1f}{used:>6.2f}",
                end="",
            )
            each = f"{1e6 * used / frames:>9.1f}" if frames else f"{'-':>9}"
            print(
                f"{1e6 * used / connections:>17,.0f}{each}{1e6 * used / size:>8.3f}{grown:>9.0f}",
                flush=True,
            )


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--waiting", type=int, default=10_000, help="receives; 0 for none")
    parser.add_argument("--seconds", type=float, default=1.5, help="of each attack; 0 for none")
    parser.add_argument("--lines", default="", help="only attacks that contain this")
    given = parser.parse_args()
    print(f"Python {platform.python_version()}")
    with tempfile.TemporaryDirectory(prefix="msmqwire-bench-") as name:
        for auth in ("none", "privacy") if given.waiting else ():
            with Readable(Path(name) / f"waiting-{auth}", least=auth) as server:
                assert isinstance(server, Readable), "it enters itself"
                asyncio.run(wait_many(server, auth, given.waiting))
        if given.seconds:
            with ExitStack() as stack:
                servers = {least: Readable(Path(name) / least, least=least) for least in ("none", "privacy")}
                for server in servers.values():
                    stack.enter_context(server)
                attack_all(servers, given.seconds, given.lines)


if __name__ == "__main__":
    main()
