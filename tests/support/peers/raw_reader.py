"""Remote readers whose every byte the test decides: a socket, and our client association when it is used."""

from __future__ import annotations

import socket
from typing import Any

from msmqwire.qm.model.caller import Caller
from msmqwire.remote_read.interface import INTERFACE, build_request, parse_response
from msmqwire.remote_read.procedures import PROCEDURES
from msmqwire.rpc.client_association import ClientAssociation
from msmqwire.rpc.events import Answered, Bound, ClientEvent, Faulted
from msmqwire.rpc.ndr import SYNTAXES
from tests.support.rpc.remote_read_harness import Client, Fault
from tests.support.running import ADDRESS, PATIENCE_S
from tests.support.socket_ends import has_ended


class RawReader(Client):
    """A client of a server; a fault raises `Fault`. Calls may be answered in any order.

    Attributes:
        socket: the socket of the connection.
        association: the client's association.
        events: its events.
    """

    def __init__(self, port: int, *, source: str = "127.0.0.1", group: int = 0, bind: bool = True) -> None:
        super().__init__(self, 0, Caller())  # type: ignore[arg-type]  # it is its own harness
        self.socket = socket.create_connection((ADDRESS, port), PATIENCE_S, source_address=(source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.association = ClientAssociation(INTERFACE, group=group)
        self.events: list[ClientEvent] = []
        self._answers: dict[int, ClientEvent] = {}
        self._opnums: dict[int, int] = {}
        if bind:
            self.association.bind()
            self.flush()
            while not any(isinstance(event, Bound) for event in self.events):
                self.receive()

    def flush(self) -> None:
        """Send the bytes of the association."""
        self.socket.sendall(self.association.data_to_send())

    def receive(self) -> None:
        """Take the next bytes. Raises ConnectionError if the connection has ended."""
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionError("the server has ended the connection")
        for event in self.association.received(data):
            self.events.append(event)
            if isinstance(event, Answered | Faulted):
                self._answers[event.call] = event
        self.flush()

    def is_ended(self) -> bool:
        """Wait for the end of the connection, whatever comes before."""
        return has_ended(self.socket)

    def disconnect(self) -> None:
        """Close the connection."""
        self.socket.close()

    def send_call(self, opnum: int, stub: bytes) -> int:
        """Call a method with any bytes."""
        call = self.association.call(opnum, stub)
        self._opnums[call] = opnum
        self.flush()
        return call

    def begin(self, opnum: int, **parameters: Any) -> int:
        syntax = SYNTAXES[self.association.transfer_syntax]
        return self.send_call(
            opnum, build_request(opnum, PROCEDURES[opnum].request.value(**parameters), syntax)
        )

    def answer(self, call: int) -> Any:
        while call not in self._answers:
            self.receive()
        answer = self._answers.pop(call)
        if isinstance(answer, Faulted):
            raise Fault(answer.status)
        assert isinstance(answer, Answered)
        return parse_response(self._opnums.pop(call), answer.stub, SYNTAXES[answer.transfer_syntax])
