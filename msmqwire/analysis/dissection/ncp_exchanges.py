"""Requests and replies of NCP in a flow, each reply with the request that it answers."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from msmqwire.errors import MalformedPacket
from msmqwire.ncp.calls import WITH_SUBFUNCTIONS
from msmqwire.ncp.headers import (
    BUSY,
    CREATE_CONNECTION,
    DESTROY_CONNECTION,
    NCP_REPLY_HEADER,
    NCP_REQUEST_HEADER,
    NCP_SUBFUNCTION_HEADER,
    NCP_WATCHDOG,
    NO_CONNECTION,
    REPLY,
    SERVICE_REQUEST,
    WATCHDOG,
)
from msmqwire.ncp.ncp_packet import NcpPacket
from msmqwire.ncp.packets import CALLS, NcpRequest, connection_number, parse_reply, parse_request
from msmqwire.ncp.readings import PROPOSED, Readings
from msmqwire.schema import Record

UNANSWERED_MAX: Final = 16
"""Requests of a flow that wait for their replies; of more, the oldest are forgotten. Clients have one."""
DATA_MAX: Final = 1024
"""Bytes of a request whose data are kept until the reply."""
REQUEST_TYPES: Final = frozenset({CREATE_CONNECTION, SERVICE_REQUEST, DESTROY_CONNECTION})
REPLY_TYPES: Final = frozenset({REPLY, BUSY})

UNREAD_TYPES: Final = {0x7777: "of packet burst", 0xBBBB: "of a broadcast"}
_CALL_COST: Final = 1024  # bytes, about, that a request takes
_SEQUENCE: Final = 256  # numbers of the sequence; then they begin again


class Exchanged(NamedTuple):
    """A packet in its exchange.

    Attributes:
        packet: the packet; None if it is malformed, or not read.
        error: why it is malformed; the offset is counted from the header of NCP.
        reason: why it is not read.
        number: that of the request in the flow, from 0, and of the reply to it; None if that is unknown.
        request_frame: in a reply, the last frame of the request.
    """

    packet: NcpPacket | None = None
    error: MalformedPacket | None = None
    reason: str = ""
    number: int | None = None
    request_frame: int | None = None


@dataclass(slots=True)
class _Call:
    """A request, without data that take much memory."""

    key: tuple[int, int]
    request: NcpRequest
    frame: int
    number: int
    digest: int


class NcpExchanges:
    """Reads the packets of a flow, in both directions.

    A request is known by the numbers of its connection and of its place in the sequence. The one answered
    last is remembered, as client and server may repeat themselves.

    Args:
        readings: byte orders of disputed fields.
    """

    __slots__ = ("_answered", "_calls", "_numbers", "_readings")

    def __init__(self, readings: Readings = PROPOSED) -> None:
        self._readings = readings
        self._calls: OrderedDict[tuple[int, int], _Call] = OrderedDict()
        self._answered: _Call | None = None
        self._numbers = 0

    @property
    def held(self) -> int:
        """The approximate number of bytes of memory that requests take which wait for their replies."""
        return _CALL_COST * len(self._calls)

    def discard(self) -> None:
        """Free that memory."""
        self._calls.clear()

    def read(
        self, data: bytes, frame: int, *, by_client: bool | None = None, preamble: Record | None = None
    ) -> Exchanged:
        """Read the packet that takes exactly these bytes.

        Args:
            data: the bytes from its header on.
            frame: the last frame that carries it.
            by_client: whether it has to be a request, or a reply; None if its type decides.
            preamble: the fields in front of it over TCP.
        """
        kind = int.from_bytes(data[:2], "big")
        if kind in UNREAD_TYPES:
            return Exchanged(reason=f"NCP {UNREAD_TYPES[kind]}, type {kind:#06x}")
        start = 0 if preamble is None else len(preamble.to_bytes())
        if by_client is None and kind == WATCHDOG:
            return _watchdog(data)
        if by_client is None:
            by_client = kind not in REPLY_TYPES
        if kind not in (REQUEST_TYPES if by_client else REPLY_TYPES):
            path = "NcpRequestHeader.RequestType" if by_client else "NcpReplyHeader.ReplyType"
            return Exchanged(error=MalformedPacket(f"{kind:#06x} is none of the types", path=path, offset=0))
        if by_client:
            return self._request(data, frame, preamble, start)
        return self._reply(data, preamble, start)

    def _request(self, data: bytes, frame: int, preamble: Record | None, start: int) -> Exchanged:
        try:
            request = parse_request(data, self._readings, strict=False)
        except MalformedPacket as exc:
            known = _beginning(data)
            number = None if known is None else self._begin(known, data, frame)[0].number
            return Exchanged(error=exc, number=number)
        call, before = self._begin(request, data, frame)
        is_repeated = before is call
        packet = NcpPacket(
            request,
            preamble,
            start,
            is_repeated=is_repeated,
            is_reused=before is not None and not is_repeated,
        )
        return Exchanged(packet, number=call.number)

    def _begin(self, request: NcpRequest, data: bytes, frame: int) -> tuple[_Call, _Call | None]:
        """Let a request wait for its reply; return it, and the one before under the same number.

        That is the same one if it is repeated.
        """
        key = request.connection, int(request.header.SequenceNumber)
        digest = hash(data)
        before = self._calls.get(key)
        if before is None and self._answered is not None and self._answered.key == key:
            before = self._answered
        if before is not None and self._numbers - before.number > _SEQUENCE // 2:
            before = None  # the numbers have begun again
        if before is not None and before.digest == digest:
            return before, before
        slim = replace(request, data=request.data if len(data) <= DATA_MAX else None, trailing=b"")
        call = _Call(key, slim, frame, self._numbers, digest)
        self._numbers += 1
        self._calls.pop(key, None)
        self._calls[key] = call
        if len(self._calls) > UNANSWERED_MAX:
            self._calls.popitem(last=False)
        return call, before

    def _reply(self, data: bytes, preamble: Record | None, start: int) -> Exchanged:
        try:
            header = NCP_REPLY_HEADER.read(data)[0]
        except MalformedPacket as exc:
            return Exchanged(error=exc)
        sequence = int(header.SequenceNumber)
        call, is_repeated = self._called(connection_number(header), sequence, header.ReplyType == BUSY)
        number, frame, request = (
            (None, None, None) if call is None else (call.number, call.frame, call.request)
        )
        try:
            reply = parse_reply(data, request, readings=self._readings)
        except MalformedPacket as exc:
            return Exchanged(error=exc, number=number, request_frame=frame)
        packet = NcpPacket(reply, preamble, start, request, is_repeated)
        return Exchanged(packet, number=number, request_frame=frame)

    def _called(self, connection: int, sequence: int, is_busy: bool) -> tuple[_Call | None, bool]:
        """Return the request that a reply answers, and whether it has been answered before."""
        for asked in (connection, NO_CONNECTION, 0):
            call = self._calls.get((asked, sequence))
            if call is None:
                continue
            if asked != connection and call.request.header.RequestType != CREATE_CONNECTION:
                continue
            if not is_busy:
                self._answered = self._calls.pop(call.key)
            return call, False
        answered = self._answered
        if answered is not None and answered.key[1] == sequence:
            creates = answered.request.header.RequestType == CREATE_CONNECTION
            if creates or answered.key[0] == connection:
                return answered, True
        return None, False


def _watchdog(data: bytes) -> Exchanged:
    try:
        return Exchanged(NcpPacket(NCP_WATCHDOG.parse(data)))
    except MalformedPacket as exc:
        return Exchanged(error=exc)


def _beginning(data: bytes) -> NcpRequest | None:
    """Return the readable part of a malformed request; None if not even its header is."""
    try:
        header, end = NCP_REQUEST_HEADER.read(data)
    except MalformedPacket:
        return None
    number = int(header.FunctionCode)
    if header.RequestType != SERVICE_REQUEST:
        return NcpRequest(header)
    if number in WITH_SUBFUNCTIONS:
        try:
            number = int(NCP_SUBFUNCTION_HEADER.read(data, end)[0].SubFunctionCode)
        except MalformedPacket:
            return NcpRequest(header)
    return NcpRequest(header, call=CALLS.get((int(header.FunctionCode), number)))
