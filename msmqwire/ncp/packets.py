"""NCP packets, bytes to values and back: requests, replies, and their calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.names.printable import counted
from msmqwire.ncp.bindery_calls import BINDERY_CALLS
from msmqwire.ncp.calls import WITH_SUBFUNCTIONS, Call
from msmqwire.ncp.file_calls import FILE_CALLS
from msmqwire.ncp.headers import (
    CREATE_CONNECTION,
    DESTROY_CONNECTION,
    NCP_REPLY_HEADER,
    NCP_REQUEST_HEADER,
    NCP_SHORT_DESTROY_HEADER,
    NCP_SUBFUNCTION_HEADER,
    REPLY,
    SERVICE_REQUEST,
)
from msmqwire.ncp.queue_calls import QUEUE_CALLS
from msmqwire.ncp.readings import PROPOSED, Readings, reread
from msmqwire.ncp.server_calls import SERVER_CALLS
from msmqwire.schema import Header, Record, fixed_size, to_json

CALLS: Final[Mapping[tuple[int, int], Call]] = {
    (call.function, call.number): call for call in (*QUEUE_CALLS, *BINDERY_CALLS, *FILE_CALLS, *SERVER_CALLS)
}
"""The calls that are read, by function and subfunction; by the function twice if it has no subfunctions."""
CALLS_BY_NAME: Final[Mapping[str, Call]] = {call.name: call for call in CALLS.values()}
_CONNECTION_KINDS: Final = {CREATE_CONNECTION: "CreateConnection", DESTROY_CONNECTION: "DestroyConnection"}
_SHORT_DESTROY: Final = fixed_size(NCP_SHORT_DESTROY_HEADER)
_HEAD: Final = 7
_SUBFUNCTION_AT: Final = 9
_DATA_AT: Final = 10
_DATA_MAX: Final = 0xFFFE
"""Bytes of data that the length word of a subfunction can count, with the subfunction itself."""


@dataclass(frozen=True, slots=True)
class NcpRequest:
    """A request.

    Attributes:
        header: an NcpRequestHeader; a request to end a connection may lack its FunctionCode.
        subfunction: an NcpSubfunctionHeader; None if the function has none.
        call: the call; None for an unknown one, and for requests to make or end a connection.
        data: the data of the call; None without a call.
        trailing: bytes after the data, or all bytes after the headers without a call.
        readings: byte orders of the disputed fields in `data`.
    """

    header: Record
    subfunction: Record | None = None
    call: Call | None = None
    data: Record | None = None
    trailing: bytes = b""
    readings: Readings = PROPOSED

    @property
    def connection(self) -> int:
        """The number of the connection."""
        return connection_number(self.header)

    @property
    def kind(self) -> str:
        """The name of the request, as in ``ReadQueueJobEntry request``."""
        kind = _CONNECTION_KINDS.get(self.header.RequestType)
        if kind is None:
            return "Ncp request" if self.call is None else _kind(self.call)
        return f"{kind} request"

    def to_json(self) -> dict[str, Any]:
        """Return the fields of all its structures under their names."""
        fields: dict[str, Any] = {self.header.schema.key: to_json(self.header)}
        if self.subfunction is not None:
            fields["NcpSubfunctionHeader"] = to_json(self.subfunction)
        return fields | _data_json(self.data, self.trailing)

    def to_bytes(self) -> bytes:
        """Return the bytes."""
        subfunction = b"" if self.subfunction is None else self.subfunction.to_bytes()
        return self.header.to_bytes() + subfunction + _data_bytes(self.data, self.readings) + self.trailing


@dataclass(frozen=True, slots=True)
class NcpReply:
    """A reply.

    Attributes:
        header: an NcpReplyHeader.
        request_kind: the kind of the request that it answers; empty if that is not known.
        call: the call that it answers; None if it is not known.
        data: the data that it returns; None without a call, and if the call has failed.
        trailing: bytes after the data, or all bytes after the header without any.
        readings: byte orders of the disputed fields in `data`.
    """

    header: Record
    request_kind: str = ""
    call: Call | None = None
    data: Record | None = None
    trailing: bytes = b""
    readings: Readings = PROPOSED

    @property
    def connection(self) -> int:
        """The number of the connection."""
        return connection_number(self.header)

    @property
    def kind(self) -> str:
        """The name of the reply, as in ``ReadQueueJobEntry reply``."""
        return f"{self.request_kind.removesuffix(' request') or 'Ncp'} reply"

    def to_json(self) -> dict[str, Any]:
        """Return the fields of all its structures under their names."""
        return {"NcpReplyHeader": to_json(self.header)} | _data_json(self.data, self.trailing)

    def to_bytes(self) -> bytes:
        """Return the bytes."""
        return self.header.to_bytes() + _data_bytes(self.data, self.readings) + self.trailing


def _data_bytes(data: Record | None, readings: Readings) -> bytes:
    return b"" if data is None else reread(data, readings).to_bytes()


def _kind(call: Call) -> str:
    return f"{call.name} request"


def _data_json(data: Record | None, trailing: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = {} if data is None else {data.schema.key: to_json(data)}
    if trailing:
        fields["TrailingData"] = trailing.hex()
    return fields


def connection_number(header: Record) -> int:
    """Return the connection number of a header."""
    return int(header.ConnectionNumberLow | header.ConnectionNumberHigh << 8)


def parse_request(data: bytes, readings: Readings = PROPOSED, *, strict: bool = True) -> NcpRequest:
    """Return the request that takes exactly these bytes. Raises MalformedPacket with path and offset.

    A request too short for its call is refused. Bytes beyond the call are kept as `trailing`. The type only
    decides whether it is a service request.

    Args:
        data: the bytes from the header on.
        readings: byte orders of disputed fields.
        strict: whether a request with a wrong length word is refused, as servers do. Readers of captures
            accept it.
    """
    if len(data) == _SHORT_DESTROY and int.from_bytes(data[:2], "big") == DESTROY_CONNECTION:
        return NcpRequest(NCP_SHORT_DESTROY_HEADER.parse(data), readings=readings)
    header, _ = NCP_REQUEST_HEADER.read(data)
    if header.RequestType != SERVICE_REQUEST:
        return NcpRequest(header, trailing=data[_HEAD:], readings=readings)
    subfunction = None
    start, number = _HEAD, header.FunctionCode
    if header.FunctionCode in WITH_SUBFUNCTIONS:
        subfunction, start = _read(NCP_SUBFUNCTION_HEADER, data, _HEAD)
        number = subfunction.SubFunctionCode
        if strict and subfunction.StructureLength != len(data) - _SUBFUNCTION_AT:
            why = f"{subfunction.StructureLength}, but {len(data) - _SUBFUNCTION_AT} bytes follow"
            raise MalformedPacket(why, path="NcpSubfunctionHeader.StructureLength", offset=_HEAD)
    call = CALLS.get((header.FunctionCode, number))
    if call is None:
        return NcpRequest(header, subfunction, trailing=data[start:], readings=readings)
    value, end = _read(call.request_of_size(len(data) - start), data, start)
    return NcpRequest(header, subfunction, call, reread(value, readings), data[end:], readings)


def _read(schema: Header, data: bytes, start: int) -> tuple[Record, int]:
    """Read a structure at an offset, and correct the offset in a refusal."""
    try:
        return schema.read(data, start)
    except MalformedPacket as exc:
        raise shifted(exc, start) from None


def shifted(refusal: MalformedPacket, start: int) -> MalformedPacket:
    """Return a refusal of bytes that begin at `start`, with its offset counted from 0."""
    offset = None if refusal.offset is None else start + refusal.offset
    return MalformedPacket(refusal.why, path=refusal.path, offset=offset)


def parse_reply(
    data: bytes,
    request: NcpRequest | None = None,
    *,
    call: Call | None = None,
    readings: Readings | None = None,
) -> NcpReply:
    """Return the reply that takes exactly these bytes. Raises MalformedPacket with path and offset.

    Its data are read only if its call is known, since a reply does not name it.

    Args:
        data: the bytes from the header on.
        request: the request that it answers.
        call: the call that it answers, if the request itself is not at hand.
        readings: byte orders of disputed fields; None for those of the request.
    """
    kind = "" if call is None else _kind(call)
    if request is not None:
        kind, call = request.kind, request.call
    if readings is None:
        readings = PROPOSED if request is None else request.readings
    header, start = NCP_REPLY_HEADER.read(data)
    if call is None or header.CompletionCode or header.ReplyType != REPLY:
        return NcpReply(header, kind, call, trailing=data[start:], readings=readings)
    value, end = _read_reply(call, data, start)
    return NcpReply(header, kind, call, reread(value, readings), data[end:], readings)


def _read_reply(call: Call, data: bytes, start: int) -> tuple[Record, int]:
    other = call.other_reply_of_size(len(data) - start)
    try:
        value, end = _read(call.reply, data, start)
    except MalformedPacket:
        if other is None:
            raise
    else:
        if other is None or end == len(data):
            return value, end
    return _read(other, data, start)


def make_request(
    call: Call,
    fields: Mapping[str, Any] | None = None,
    *,
    sequence: int,
    connection: int,
    task: int = 0,
    readings: Readings = PROPOSED,
) -> NcpRequest:
    """Return a request of a call with these fields, built by these readings. Raises InvalidValue."""
    data = call.request.make(fields or {})
    size = len(data.to_bytes())
    if call.has_subfunction and size > _DATA_MAX:
        raise InvalidValue(f"{counted(size, 'byte')} of data, {_DATA_MAX:,} fit", path=call.request.name)
    header = NCP_REQUEST_HEADER.make(
        SequenceNumber=sequence,
        ConnectionNumberLow=connection & 0xFF,
        ConnectionNumberHigh=connection >> 8,
        TaskNumber=task,
        FunctionCode=call.function,
    )
    subfunction = None
    if call.has_subfunction:
        subfunction = NCP_SUBFUNCTION_HEADER.make(StructureLength=size + 1, SubFunctionCode=call.number)
    return NcpRequest(header, subfunction, call, data, readings=readings)


def make_reply(
    request: NcpRequest, fields: Mapping[str, Any] | None = None, *, completion: int = 0
) -> NcpReply:
    """Return a reply to a request: with fields, or a completion code other than 0. Raises InvalidValue.

    It is built by the readings of the request.
    """
    header = NCP_REPLY_HEADER.make(
        SequenceNumber=request.header.SequenceNumber,
        ConnectionNumberLow=request.header.ConnectionNumberLow,
        ConnectionNumberHigh=request.header.ConnectionNumberHigh,
        TaskNumber=request.header.TaskNumber,
        CompletionCode=completion,
    )
    data = request.call.reply.make(fields or {}) if request.call is not None and not completion else None
    return NcpReply(header, request.kind, request.call, data, readings=request.readings)
