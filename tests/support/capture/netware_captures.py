"""Captures of NCP over TCP: clients and queue servers that talk to a file server, and their frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from msmqwire.ncp.framing import build_unit
from msmqwire.ncp.headers import (
    CREATE_CONNECTION,
    DESTROY_CONNECTION,
    NCP_PORT,
    NCP_REQUEST_HEADER,
    NCP_TCP_REPLY,
    NCP_TCP_REQUEST,
    NO_CONNECTION,
)
from msmqwire.ncp.packets import (
    CALLS_BY_NAME,
    NcpReply,
    NcpRequest,
    make_reply,
    make_request,
)
from tests.support.captures import CLIENT, SERVER, START_NS, STEP_NS, TcpConversation

REPLY_BUFFER = 0x1008
"""The largest reply that the clients take."""


def connection_request(kind: int, connection: int = NO_CONNECTION, sequence: int = 0) -> NcpRequest:
    """A request to make or to end a connection."""
    header = NCP_REQUEST_HEADER.make(
        RequestType=kind,
        SequenceNumber=sequence,
        ConnectionNumberLow=connection & 0xFF,
        ConnectionNumberHigh=connection >> 8,
    )
    return NcpRequest(header)


def attached_reply(request: NcpRequest, connection: int) -> NcpReply:
    """The reply to a request for a connection, with its number."""
    reply = make_reply(request)
    numbers = {"ConnectionNumberLow": connection & 0xFF, "ConnectionNumberHigh": connection >> 8}
    return NcpReply(reply.header.replace(**numbers), reply.request_kind)


def request_unit(request: NcpRequest, **fields: Any) -> bytes:
    """A request after its preamble; `fields` are other fields of the preamble."""
    return build_unit(NCP_TCP_REQUEST, request.to_bytes(), ReplyBufferSize=REPLY_BUFFER, **fields)


def reply_unit(reply: NcpReply, **fields: Any) -> bytes:
    """A reply after its preamble."""
    return build_unit(NCP_TCP_REPLY, reply.to_bytes(), **fields)


class NcpTalk:
    """One connection to a file server; every call appends the frames of its request and reply.

    Attributes:
        conversation: the frames.
        pairs: the traffic, a request and its reply each.
    """

    def __init__(
        self,
        connection: int,
        client: tuple[str, int] = (CLIENT, 50_000),
        server: str = SERVER,
        *,
        start_ns: int = START_NS,
        step_ns: int = STEP_NS,
        mss: int = 1460,
    ) -> None:
        self.conversation = TcpConversation(
            client, (server, NCP_PORT), start_ns=start_ns, step_ns=step_ns, mss=mss
        ).handshake()
        self.pairs: list[tuple[NcpRequest, NcpReply]] = []
        self._connection, self._sequence = connection, 0
        request = connection_request(CREATE_CONNECTION)
        self.exchange(request, attached_reply(request, connection))

    def exchange(self, request: NcpRequest, reply: NcpReply) -> Self:
        """A request and its reply."""
        self.pairs.append((request, reply))
        self.conversation.send(request_unit(request), acknowledged=False)
        self.conversation.send(reply_unit(reply), by_client=False)
        return self

    def request(self, name: str, fields: Mapping[str, Any] | None = None) -> NcpRequest:
        """The next request of this connection."""
        return make_request(
            CALLS_BY_NAME[name], fields, sequence=self._next(), connection=self._connection, task=1
        )

    def call(
        self,
        name: str,
        fields: Mapping[str, Any] | None = None,
        answer: Mapping[str, Any] | None = None,
        *,
        completion: int = 0,
    ) -> Self:
        """A call and its results."""
        request = self.request(name, fields)
        return self.exchange(request, make_reply(request, answer, completion=completion))

    def destroy(self) -> Self:
        """The end of the connection."""
        request = connection_request(DESTROY_CONNECTION, self._connection, self._next())
        self.exchange(request, make_reply(request))
        self.conversation.close()
        return self

    def wait(self, ns: int) -> Self:
        self.conversation.wait(ns)
        return self

    def _next(self) -> int:
        self._sequence = (self._sequence + 1) & 0xFF
        return self._sequence
