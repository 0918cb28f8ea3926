"""Our client of remote read against a server whose RPC layer is scapy's: anonymous, in both syntaxes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import UUID

import pytest

pytest.importorskip("scapy")
pytest.importorskip("msrpcs", reason="scapy-rpc is not installed")

from msrpcs import ms_mqrr
from scapy.layers.dcerpc import (
    DCE_RPC_INTERFACES,
    DceRpc5,
    DCERPC_Transport,
    register_dcerpc_interface,
)
from scapy.layers.msrpce.rpcserver import DCERPC_Server
from scapy.packet import Raw
from scapy.supersocket import StreamSocket

import msmqwire
from msmqwire.constants import HResult
from msmqwire.errors import QueueError
from msmqwire.remote_read.constants import Acknowledge, Opnum
from msmqwire.remote_read.interface import INTERFACE, build_response
from msmqwire.rpc.handles import NULL_HANDLE, ContextHandle
from msmqwire.rpc.ndr import NDR20, NDR64
from tests.support.rpc.remote_read_server import NAME, message, received


@pytest.fixture(autouse=True)
def _the_interface_is_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the calls be those of scapy-rpc, also where a test has loaded our own layers before."""
    monkeypatch.delitem(DCE_RPC_INTERFACES, (INTERFACE.uuid, INTERFACE.major), raising=False)
    register_dcerpc_interface("RemoteRead", INTERFACE.uuid, "1.0", ms_mqrr.REMOTEREAD_OPNUMS)


HANDLE = ContextHandle(0, UUID(int=0xB001))


class Queue(DCERPC_Server):
    """A queue with two messages. What is called is read by scapy, and noted."""

    def make_reply(self, req: Any) -> Any:
        operation = Opnum(req.opnum)
        arguments = req.payload.payload
        self.called.append((operation, arguments))
        left = 2 - sum(opnum == Opnum.R_EndReceive for opnum, _ in self.called)
        answers: dict[Opnum, dict[str, Any]] = {
            Opnum.R_OpenQueue: {"pphContext": HANDLE},
            Opnum.R_StartReceive: received(message(3 - left), 1 << 22)
            if left
            else {"status": int(HResult.MQ_ERROR_IO_TIMEOUT)},
            Opnum.R_EndReceive: {"status": 0},
            Opnum.R_CloseQueue: {"pphContext": NULL_HANDLE, "status": 0},
        }
        return Raw(build_response(operation, answers[operation], NDR64 if self.ndr64 else NDR20))


@contextmanager
def scapy_server(ndr64: bool) -> Iterator[tuple[int, list[tuple[Opnum, Any]]]]:
    """Its port, and what is called."""
    server = Queue(DCERPC_Transport.NCACN_IP_TCP, ndr64=ndr64, verb=False)
    server.called = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection, suppress(OSError, EOFError):
                server.loop(StreamSocket(connection, DceRpc5))

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1], server.called
        thread.join()


@pytest.mark.parametrize("ndr64", [False, True], ids=["NDR20", "NDR64"])
def test_receiving(ndr64: bool) -> None:
    with scapy_server(ndr64) as (port, called), msmqwire.connect(NAME, rpc_port=port) as orders:
        assert [orders.receive(0).body for _ in range(2)] == [b"body 1", b"body 2"]
        with pytest.raises(QueueError) as empty:
            orders.receive(0)
    assert empty.value.name == "MQ_ERROR_IO_TIMEOUT"
    start, end = Opnum.R_StartReceive, Opnum.R_EndReceive
    assert [opnum for opnum, _ in called] == [
        Opnum.R_OpenQueue, start, end, start, end, start, Opnum.R_CloseQueue,
    ]  # fmt: skip
    reads = [arguments for opnum, arguments in called if opnum == start]
    ends = [arguments for opnum, arguments in called if opnum == end]
    assert all(isinstance(read, ms_mqrr.R_StartReceive_Request) for read in reads)
    assert [(each.dwAck, each.dwRequestId) for each in ends] == [
        (Acknowledge.RR_ACK, read.dwRequestId) for read in reads[:2]
    ]
