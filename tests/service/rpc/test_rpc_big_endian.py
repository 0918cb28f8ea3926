"""A queue of a real server is read by a big-endian client, which knows nothing of the server's byte order."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from msmqwire.names import parse_format_name
from msmqwire.remote_read.constants import Access, Acknowledge, Opnum
from msmqwire.remote_read.interface import INTERFACE, build_request, parse_response
from msmqwire.rpc.client_association import ClientAssociation
from msmqwire.rpc.constants import AuthLevel
from msmqwire.rpc.events import Answered
from msmqwire.rpc.ndr import NDR20, NDR64, Syntax
from msmqwire.rpc.pdu import PduFramer
from msmqwire.rpc.queue_format import queue_format_of
from tests.service.rpc.test_rpc_serve import QUEUE, rpc_server, send
from tests.support.rpc.rpc_pair import as_big_endian
from tests.support.running import ADDRESS, ORDERS, PATIENCE_S, peeked


class BigEndianReader:
    """A client whose PDUs and stubs are big-endian."""

    def __init__(self, port: int, syntax: Syntax) -> None:
        self.syntax = syntax
        self.client = ClientAssociation(INTERFACE, transfer_syntaxes=(syntax.identifier,))
        self.socket = socket.create_connection((ADDRESS, port), timeout=PATIENCE_S)
        self.answers: list[bytes] = []
        self.client.bind()
        self.exchange()

    def exchange(self) -> Any:
        """Send what there is to send, and return the next event."""
        self.socket.sendall(as_big_endian(self.client.data_to_send()))
        while True:
            data = self.socket.recv(1 << 16)
            assert data, "the server has closed the connection"
            self.answers.append(data)
            for event in self.client.received(data):
                return event

    def call(self, opnum: Opnum, **arguments: Any) -> Any:
        self.client.call(opnum, build_request(opnum, arguments, self.syntax.ordered(big_endian=True)))
        event = self.exchange()
        assert isinstance(event, Answered), event
        return parse_response(opnum, event.stub, self.syntax)


@pytest.mark.parametrize("syntax", [NDR20, NDR64], ids=["NDR", "NDR64"])
def test_a_message_is_received(data: Path, syntax: Syntax) -> None:
    with rpc_server(data, ORDERS, level=AuthLevel.NONE) as (_, port):
        send(data, b"1", b"2" * 9_000)
        reader = BigEndianReader(port, syntax)
        opened = reader.call(
            Opnum.R_OpenQueue,
            pQueueFormat=queue_format_of(parse_format_name(QUEUE)), dwAccess=int(Access.RECEIVE_ACCESS),
            dwShareMode=0, pClientId=UUID(int=9), fNonRoutingServer=1, Major=6, Minor=1,
            BuildNumber=7601, fWorkgroup=1,
        )  # fmt: skip
        handle = opened.pphContext
        for request, left in ((1, [b"2" * 9_000]), (2, [])):
            received = reader.call(
                Opnum.R_StartReceive, phContext=handle, LookupId=0, hCursor=0, ulAction=0, ulTimeout=1000,
                dwRequestId=request, dwMaxBodySize=1 << 22, dwMaxCompoundMessageSize=1 << 22,
            )  # fmt: skip
            assert (received.status, received.pdwNumberOfSections) == (0, 1)
            ended = reader.call(
                Opnum.R_EndReceive, phContext=handle, dwAck=int(Acknowledge.RR_ACK), dwRequestId=request
            )
            assert ended.status == 0
            assert peeked(data, ORDERS) == left
        frames = PduFramer().feed(b"".join(reader.answers))
        assert {frame.header.packed_drep for frame in frames} == {0x10}
        reader.socket.close()
