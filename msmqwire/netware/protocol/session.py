"""The server's side of a stream: the service connection that a client makes on it, and its sequence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from msmqwire.errors import MalformedPacket
from msmqwire.ncp.constants import CompletionCode
from msmqwire.ncp.headers import (
    BUSY,
    CREATE_CONNECTION,
    DESTROY_CONNECTION,
    NCP_REPLY_HEADER,
    NCP_REQUEST_HEADER,
    NCP_TCP_REPLY,
    REPLY,
    SERVICE_REQUEST,
)
from msmqwire.ncp.packets import NcpRequest, connection_number, parse_request
from msmqwire.ncp.readings import PROPOSED, Readings, reread
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.protocol.connection_numbers import ConnectionNumbers, nothing
from msmqwire.schema import Record, fixed_size, head_size

_HEAD: Final = head_size(NCP_REQUEST_HEADER)
_SHORT_DESTROY: Final = _HEAD - 1
"""Bytes of a request to end a connection without the function."""
_REPLY_UNIT: Final = head_size(NCP_TCP_REPLY) + head_size(NCP_REPLY_HEADER)
"""Bytes of a reply without data, with its preamble."""
_ANY_ROOM: Final = 1 << 31
"""Bytes of data for a client that names no limit: more than any reply has."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply to be sent."""

    packet: bytes


@dataclass(frozen=True, slots=True)
class Perform:
    """A call to be performed; `NcpSession.performed` or `NcpSession.refused` makes its reply.

    Attributes:
        room: bytes of data that the client accepts in the reply.
    """

    request: NcpRequest
    caller: Caller
    room: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """A service connection to be given up with everything it has; `NcpSession.given_up` returns the reply."""

    caller: Caller
    packet: bytes


class Later:
    """The request has to wait for the request being performed."""


Outcome = Answer | Perform | GiveUp | Later
_LATER: Final = Later()


class _Identity(NamedTuple):
    """The key by which a repeated request is recognised."""

    type: int
    sequence: int
    connection: int


class NcpSession:
    """One stream of requests, with at most one service connection at a time.

    A request with the type, the sequence number and the connection of the previous one is a repetition of it:
    the reply is the same bytes, or "being processed", and it has no second effect. Any other sequence number
    belongs to a new request: a stream loses none.

    Args:
        numbers: the numbers of all service connections of the server.
        readings: the readings of the disputed fields of calls.
        origin: the address of the client, as `origin_of` has it.
        end: ends the stream, if its service connection has to make room for another.

    Attributes:
        caller: the service connection; None before the client has made one, and after it has ended it.
        is_going_down: whether replies say that the server is going down.
    """

    def __init__(
        self,
        numbers: ConnectionNumbers,
        readings: Readings = PROPOSED,
        origin: str = "",
        end: Callable[[], None] = nothing,
    ) -> None:
        self._numbers, self._readings, self._origin, self._end = numbers, readings, origin, end
        self.caller: Caller | None = None
        self.is_going_down = False
        self._last: _Identity | None = None
        self._last_reply: bytes | None = None  # None while the last request is performed

    @property
    def is_busy(self) -> bool:
        """Whether a request is being performed."""
        return self._last is not None and self._last_reply is None

    def received(self, packet: bytes, room: int = 0) -> Outcome:
        """Take a request; return the action to be taken.

        Args:
            packet: the packet from the NCP header on.
            room: bytes of the largest unit that the client accepts as a reply, with its preamble; 0 for any.
        """
        header = NCP_REQUEST_HEADER.read(packet[:_HEAD].ljust(_HEAD, b"\0"))[0]
        this = _Identity(header.RequestType, header.SequenceNumber, connection_number(header))
        if this == self._last:
            return Answer(self._last_reply or self._reply(header, reply_type=BUSY))
        if self.is_busy:
            return _LATER
        is_short_destroy = this.type == DESTROY_CONNECTION and len(packet) == _SHORT_DESTROY
        if len(packet) < _HEAD and not is_short_destroy:
            return Answer(self._reply(header, CompletionCode.BAD_LENGTH))
        if this.type == CREATE_CONNECTION:
            return self._create(header, this, has_data=len(packet) > _HEAD)
        if this.type not in (SERVICE_REQUEST, DESTROY_CONNECTION):
            return Answer(self._reply(header, CompletionCode.NCP_NOT_SUPPORTED))
        if self.caller is None or this.connection != self.caller.connection:
            return Answer(self._reply(header, is_bad_connection=True))
        self.caller.task = header.TaskNumber
        self._last, self._last_reply = this, None
        if this.type == DESTROY_CONNECTION:
            return self._destroy(self.caller, header, has_data=len(packet) > _HEAD)
        return self._request(self.caller, packet, header, max(0, room - _REPLY_UNIT) if room else _ANY_ROOM)

    def performed(self, call: Perform, fields: Mapping[str, Any]) -> bytes:
        """Return the reply to a call that has these results."""
        assert call.request.call is not None
        data = reread(call.request.call.reply.make(fields), self._readings).to_bytes()
        if len(data) > call.room:  # for calls that only read
            return self.refused(call, CompletionCode.BAD_LENGTH)
        return self._kept(self._reply(call.request.header) + data)

    def refused(self, call: Perform, code: int) -> bytes:
        """Return the reply to a call that was refused."""
        return self._kept(self._reply(call.request.header, code))

    def given_up(self, ended: GiveUp) -> bytes:
        """Return the reply once a service connection is given up; its number is free then."""
        self._numbers.give_back(ended.caller.connection)
        return self._kept(ended.packet)

    def _create(self, header: Record, this: _Identity, *, has_data: bool) -> Outcome:
        """Make a service connection. The stream's former one is given up: its client begins anew."""
        if has_data:
            return Answer(self._reply(header, CompletionCode.BAD_LENGTH))
        before, caller = self.caller, self._numbers.take(header.TaskNumber, self._origin, self._end)
        if caller is None:
            return Answer(self._reply(header, CompletionCode.NO_FREE_CONNECTION_SLOTS, connection=0))
        self.caller = caller
        self._last, self._last_reply = this, None
        packet = self._reply(header, connection=caller.connection)
        return Answer(self._kept(packet)) if before is None else GiveUp(before, packet)

    def _destroy(self, caller: Caller, header: Record, *, has_data: bool) -> Outcome:
        if has_data:
            return Answer(self._kept(self._reply(header, CompletionCode.BAD_LENGTH)))
        self.caller = None
        return GiveUp(caller, self._reply(header))

    def _request(self, caller: Caller, packet: bytes, header: Record, room: int) -> Outcome:
        try:
            request = parse_request(packet, self._readings)
        except MalformedPacket:
            return Answer(self._kept(self._reply(header, CompletionCode.BAD_LENGTH)))
        if request.call is None:
            return Answer(self._kept(self._reply(header, CompletionCode.NCP_NOT_SUPPORTED)))
        if request.trailing or (fixed_size(request.call.reply) or 0) > room:
            return Answer(self._kept(self._reply(header, CompletionCode.BAD_LENGTH)))
        return Perform(request, caller, room)

    def _kept(self, packet: bytes) -> bytes:
        self._last_reply = packet
        return packet

    def _reply(
        self,
        header: Record,
        code: int = 0,
        *,
        reply_type: int = REPLY,
        connection: int | None = None,
        is_bad_connection: bool = False,
    ) -> bytes:
        """Return a reply without data to the request with this header."""
        if connection is None:
            connection = connection_number(header)
        return NCP_REPLY_HEADER.build(
            {
                "ReplyType": reply_type,
                "SequenceNumber": header.SequenceNumber,
                "ConnectionNumberLow": connection & 0xFF,
                "TaskNumber": header.TaskNumber,
                "ConnectionNumberHigh": connection >> 8,
                "CompletionCode": code,
                "ConnectionStatus": {
                    "BadConnection": is_bad_connection,
                    "ServerDown": self.is_going_down,
                },
            }
        )
