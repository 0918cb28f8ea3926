"""Administrators by [MS-MQMR] over real connections: a socket, and our client association. Stubs are ours."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from typing import Any

from msmqwire.management.constants import Opnum
from msmqwire.management.interface import INTERFACE, build_request, parse_response
from msmqwire.management.objects import machine_object, queue_object
from msmqwire.management.variants import NULL, plain
from msmqwire.names import parse_format_name
from msmqwire.rpc.client_association import ClientAssociation
from msmqwire.rpc.constants import NDR20, SyntaxId
from msmqwire.rpc.events import Answered, Bound, ClientEvent, Faulted
from msmqwire.rpc.ndr import SYNTAXES
from tests.support.rpc.remote_read_harness import Fault
from tests.support.running import ADDRESS, PATIENCE_S
from tests.support.socket_ends import has_ended

MACHINE = machine_object()
STUB_MAX = 64 << 20


def queue_named(text: str) -> Any:
    """The MGMT_OBJECT of a queue by its format name."""
    return queue_object(parse_format_name(text))


def info_arguments(managed: Any, identifiers: Sequence[int], values: Iterable[Any] | None = None) -> Any:
    """The arguments of R_QMMgmtGetInfo, with VT_NULL for each value unless others are given."""
    given = (NULL,) * len(identifiers) if values is None else tuple(values)
    return {
        "pObjectFormat": managed,
        "cp": len(identifiers),
        "aProp": tuple(identifiers),
        "apVar": given,
    }


class Administrator:
    """A client of a server; a fault raises `Fault`. Calls may be answered in any order.

    Attributes:
        socket: the socket of the connection.
        association: the client's association.
        events: its events.
    """

    def __init__(
        self,
        port: int,
        *,
        address: str = ADDRESS,
        source: str = "127.0.0.1",
        transfer_syntaxes: Sequence[SyntaxId] = (NDR20,),
        bind: bool = True,
    ) -> None:
        self.socket = socket.create_connection((address, port), PATIENCE_S, source_address=(source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.association = ClientAssociation(
            INTERFACE, transfer_syntaxes=transfer_syntaxes, stub_max=STUB_MAX
        )
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

    def begin(self, opnum: int, arguments: Any) -> int:
        """Call a method."""
        return self.send_call(opnum, build_request(opnum, arguments, SYNTAXES[NDR20]))

    def answer(self, call: int) -> Any:
        """The results of a call."""
        while call not in self._answers:
            self.receive()
        answer = self._answers.pop(call)
        if isinstance(answer, Faulted):
            raise Fault(answer.status)
        assert isinstance(answer, Answered)
        return parse_response(self._opnums.pop(call), answer.stub, SYNTAXES[answer.transfer_syntax])

    def info(self, managed: Any, *identifiers: int, values: Iterable[Any] | None = None) -> Any:
        """Call R_QMMgmtGetInfo; return its results."""
        arguments = info_arguments(managed, identifiers, values)
        return self.answer(self.begin(Opnum.R_QMMgmtGetInfo, arguments))

    def values(self, managed: Any, *identifiers: int) -> list[Any]:
        """The values of properties, which are there."""
        results = self.info(managed, *identifiers)
        assert results.status == 0, f"{results.status:#010x}"
        return [plain(value) for value in results.apVar]

    def act(self, managed: Any, action: str) -> int:
        """Call R_QMMgmtAction; return its status."""
        arguments = {"pObjectFormat": managed, "lpwszAction": action}
        status: int = self.answer(self.begin(Opnum.R_QMMgmtAction, arguments)).status
        return status
