"""A client's connection to a file server without I/O: one request at a time, and its reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msmqwire.errors import MalformedPacket, Unreachable
from msmqwire.ncp.calls import Call
from msmqwire.ncp.framing import UNIT_SIZE_MAX, NcpFramer, build_unit
from msmqwire.ncp.headers import (
    BUSY,
    CREATE_CONNECTION,
    DESTROY_CONNECTION,
    NCP_REPLY_HEADER,
    NCP_REQUEST_HEADER,
    NCP_TCP_REPLY,
    NCP_TCP_REQUEST,
    NO_CONNECTION,
    REPLY,
)
from msmqwire.ncp.packets import NcpReply, NcpRequest, make_request, parse_reply
from msmqwire.ncp.readings import PROPOSED, Readings
from msmqwire.schema import Record

TASK: Final = 1
"""The task number of all requests: one client is one task."""


class NcpExchange:
    """Makes the bytes of requests, and takes those of replies.

    There is at most one request without a reply: the protocol matches replies by their order. TCP loses
    nothing, so no request is repeated.

    Args:
        reply_size_max: bytes of the largest accepted reply, announced to the server.
        readings: the byte orders that the server has for disputed fields.

    Attributes:
        connection: the number that the server has given the connection; None before.
    """

    def __init__(self, reply_size_max: int = UNIT_SIZE_MAX, readings: Readings = PROPOSED) -> None:
        self._framer = NcpFramer(NCP_TCP_REPLY, reply_size_max)
        self._reply_size_max, self._readings = reply_size_max, readings
        self._sequence = 0
        self._outstanding: NcpRequest | None = None
        self.connection: int | None = None

    def attach(self) -> bytes:
        """Return the request for a connection."""
        return self._sent(NcpRequest(self._header(CREATE_CONNECTION, NO_CONNECTION)))

    def request(self, call: Call, fields: Mapping[str, Any]) -> bytes:
        """Return a request. Raises InvalidValue for an unknown field or an invalid value."""
        assert self.connection is not None, "attach first"
        request = make_request(
            call,
            fields,
            sequence=self._sequence,
            connection=self.connection,
            task=TASK,
            readings=self._readings,
        )
        return self._sent(request)

    def destroy(self) -> bytes:
        """Return the request to end the connection."""
        assert self.connection is not None, "attach first"
        return self._sent(NcpRequest(self._header(DESTROY_CONNECTION, self.connection)))

    def received(self, data: bytes) -> NcpReply | None:
        """Add bytes; return the reply that they complete, None if there is none yet.

        Raises:
            MalformedPacket: they are not the reply to the request. Further bytes are unreadable.
            Unreachable: the server does not know the connection any more.
        """
        reply = None
        for unit in self._framer.feed(data):
            reply = self._reply(unit.packet) or reply
        return reply

    def _header(self, kind: int, connection: int) -> Record:
        return NCP_REQUEST_HEADER.make(  # type: ignore[no-any-return]
            RequestType=kind,
            SequenceNumber=self._sequence,
            ConnectionNumberLow=connection & 0xFF,
            ConnectionNumberHigh=connection >> 8,
            TaskNumber=TASK,
        )

    def _sent(self, request: NcpRequest) -> bytes:
        assert self._outstanding is None, "a request has no reply yet"
        packet = request.to_bytes()
        self._outstanding, self._sequence = request, (self._sequence + 1) & 0xFF
        return build_unit(NCP_TCP_REQUEST, packet, ReplyBufferSize=self._reply_size_max)

    def _reply(self, packet: bytes) -> NcpReply | None:
        """Return the reply in a packet; None if it says that the server is still busy."""
        header = NCP_REPLY_HEADER.read(packet)[0]
        request = self._outstanding
        if request is None:
            raise _malformed("a reply that no request has asked for", "ReplyType", 0)
        if header.ReplyType not in (REPLY, BUSY):
            raise _malformed(f"{header.ReplyType:#06x} is not a type of replies", "ReplyType", 0)
        if header.SequenceNumber != request.header.SequenceNumber:
            why = f"{header.SequenceNumber}, and the request had {request.header.SequenceNumber}"
            raise _malformed(why, "SequenceNumber", 2)
        if header.ConnectionStatus.BadConnection:
            raise Unreachable("the server does not know the connection any more")
        if header.ReplyType == BUSY:
            return None
        reply = parse_reply(packet, request)
        if request.header.RequestType == CREATE_CONNECTION:
            self._attached(reply)
        elif reply.connection != self.connection:
            raise _malformed(f"{reply.connection}, not {self.connection}", "ConnectionNumberLow", 3)
        self._outstanding = None
        return reply

    def _attached(self, reply: NcpReply) -> None:
        if reply.header.CompletionCode:
            return
        if reply.connection in (0, NO_CONNECTION):
            raise _malformed(f"{reply.connection} is not a connection", "ConnectionNumberLow", 3)
        self.connection = reply.connection


def _malformed(why: str, field: str, offset: int) -> MalformedPacket:
    return MalformedPacket(why, path=f"NcpReplyHeader.{field}", offset=offset)
