"""NCP packets, bytes to values and back: requests, replies, and what they are of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.netware.bindery_calls import BINDERY_CALLS
from msmqwire.netware.calls import FUNCTION_23, Call
from msmqwire.netware.file_calls import FILE_CALLS
from msmqwire.netware.headers import (
    CREATE_CONNECTION,
    DESTROY_CONNECTION,
    NCP_REPLY_HEADER,
    NCP_REQUEST_HEADER,
    NCP_SUBFUNCTION_HEADER,
    SERVICE_REQUEST,
)
from msmqwire.netware.queue_calls import QUEUE_CALLS
from msmqwire.schema import Record, to_json

CALLS: Final[Mapping[tuple[int, int], Call]] = {
    (call.function, call.number): call for call in (*QUEUE_CALLS, *BINDERY_CALLS, *FILE_CALLS)
}
"""The calls that are read, by function and subfunction; by the function twice if it has no subfunctions."""
CALLS_BY_NAME: Final[Mapping[str, Call]] = {call.name: call for call in CALLS.values()}
_CONNECTION_KINDS: Final = {CREATE_CONNECTION: "CreateConnection", DESTROY_CONNECTION: "DestroyConnection"}
_HEAD: Final = 7
_SUBFUNCTION_AT: Final = 9
_DATA_AT: Final = 10
_REPLY_HEAD: Final = 8


@dataclass(frozen=True, slots=True)
class NcpRequest:
    """A request.

    Attributes:
        header: an NcpRequestHeader.
        subfunction: an NcpSubfunctionHeader; None if the function has none.
        call: the call; None for one that is not among `CALLS`, and for requests to make or end a connection.
        data: what the call has; None without a call.
        trailing: bytes behind the data, or all bytes behind the headers without a call.
    """

    header: Record
    subfunction: Record | None = None
    call: Call | None = None
    data: Record | None = None
    trailing: bytes = b""

    @property
    def connection(self) -> int:
        """The number of the connection."""
        return connection_number(self.header)

    @property
    def kind(self) -> str:
        """The name of the request, as in ``ReadQueueJobEntry request``."""
        kind = _CONNECTION_KINDS.get(self.header.RequestType)
        if kind is None:
            kind = "Ncp" if self.call is None else self.call.name
        return f"{kind} request"

    def to_json(self) -> dict[str, Any]:
        """Return the fields of all its structures under their names."""
        fields: dict[str, Any] = {"NcpRequestHeader": to_json(self.header)}
        if self.subfunction is not None:
            fields["NcpSubfunctionHeader"] = to_json(self.subfunction)
        return fields | _data_json(self.data, self.trailing)

    def to_bytes(self) -> bytes:
        """Return the bytes."""
        parts = [self.header.to_bytes()]
        if self.subfunction is not None:
            parts.append(self.subfunction.to_bytes())
        if self.data is not None:
            parts.append(self.data.to_bytes())
        return b"".join(parts) + self.trailing


@dataclass(frozen=True, slots=True)
class NcpReply:
    """A reply.

    Attributes:
        header: an NcpReplyHeader.
        request_kind: the kind of the request that it answers; empty if that is not known.
        call: the call that it answers; None if it is not known.
        data: what it returns; None without a call, and if the call has failed.
        trailing: bytes behind the data, or all bytes behind the header without any.
    """

    header: Record
    request_kind: str = ""
    call: Call | None = None
    data: Record | None = None
    trailing: bytes = b""

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
        data = b"" if self.data is None else self.data.to_bytes()
        return bytes(self.header.to_bytes() + data + self.trailing)


def _data_json(data: Record | None, trailing: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = {} if data is None else {data.schema.name: to_json(data)}
    if trailing:
        fields["TrailingData"] = trailing.hex()
    return fields


def connection_number(header: Record) -> int:
    """Return the connection number of a header."""
    return int(header.ConnectionNumberLow | header.ConnectionNumberHigh << 8)


def parse_request(data: bytes) -> NcpRequest:
    """Return the request that takes exactly these bytes. Raises MalformedPacket with path and offset.

    A request whose length word tells another length is refused; so is one too short for its call. Bytes that
    the length word counts and the call has not are kept as `trailing`.
    """
    header = NCP_REQUEST_HEADER.read(data)[0] if len(data) != 6 else _short_destroy(data)
    if header.RequestType != SERVICE_REQUEST:
        return NcpRequest(header, trailing=data[_HEAD:])
    subfunction = None
    start, number = _HEAD, header.FunctionCode
    if header.FunctionCode == FUNCTION_23:
        subfunction, start = NCP_SUBFUNCTION_HEADER.read(data, _HEAD) if len(data) >= _DATA_AT else _cut(data)
        number = subfunction.SubFunctionCode
        if subfunction.StructureLength != len(data) - _SUBFUNCTION_AT:
            why = f"{subfunction.StructureLength}, but {len(data) - _SUBFUNCTION_AT} bytes follow"
            raise MalformedPacket(why, path="NcpSubfunctionHeader.StructureLength", offset=_HEAD)
    call = CALLS.get((header.FunctionCode, number))
    if call is None:
        return NcpRequest(header, subfunction, trailing=data[start:])
    value, end = _read(call.request_of_size(len(data) - start), data, start)
    return NcpRequest(header, subfunction, call, value, data[end:])


def _short_destroy(data: bytes) -> Record:
    """Some clients leave out the function code of a request to end a connection."""
    header = NCP_REQUEST_HEADER.read(data + b"\0")[0]
    if header.RequestType != DESTROY_CONNECTION:
        NCP_REQUEST_HEADER.read(data)
    return header  # type: ignore[no-any-return]


def _cut(data: bytes) -> Any:
    """Refuse a request of function 23 that ends inside its subfunction header."""
    try:
        return NCP_SUBFUNCTION_HEADER.read(data[_HEAD:])
    except MalformedPacket as exc:
        raise MalformedPacket(exc.why, path=exc.path, offset=_HEAD + (exc.offset or 0)) from None


def _read(schema: Any, data: bytes, start: int) -> tuple[Record, int]:
    try:
        value, end = schema.read(data[start:])
    except MalformedPacket as exc:
        offset = None if exc.offset is None else start + exc.offset
        raise MalformedPacket(exc.why, path=exc.path, offset=offset) from None
    return value, start + end


def parse_reply(data: bytes, request: NcpRequest | None = None) -> NcpReply:
    """Return the reply that takes exactly these bytes.

    Its data are read if the request that it answers is given. Raises MalformedPacket with path and offset.
    """
    header = NCP_REPLY_HEADER.read(data)[0]
    if request is None:
        return NcpReply(header, trailing=data[_REPLY_HEAD:])
    if request.call is None or header.CompletionCode or header.ReplyType != 0x3333:
        return NcpReply(header, request.kind, request.call, trailing=data[_REPLY_HEAD:])
    value, end = _read(request.call.reply, data, _REPLY_HEAD)
    return NcpReply(header, request.kind, request.call, value, data[end:])


def make_request(
    call: Call, fields: Mapping[str, Any] | None = None, *, sequence: int, connection: int, task: int = 0
) -> NcpRequest:
    """Return a request of a call with these fields. Raises InvalidValue."""
    data = call.request.make(fields or {})
    size = len(data.to_bytes())
    if size > 0xFFFE:
        raise InvalidValue(f"{size} bytes of data", path=call.request.name)
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
    return NcpRequest(header, subfunction, call, data)


def make_reply(
    request: NcpRequest, fields: Mapping[str, Any] | None = None, *, completion: int = 0
) -> NcpReply:
    """Return a reply to a request: with fields, or a completion code other than 0. Raises InvalidValue."""
    header = NCP_REPLY_HEADER.make(
        SequenceNumber=request.header.SequenceNumber,
        ConnectionNumberLow=request.header.ConnectionNumberLow,
        ConnectionNumberHigh=request.header.ConnectionNumberHigh,
        TaskNumber=request.header.TaskNumber,
        CompletionCode=completion,
    )
    data = request.call.reply.make(fields or {}) if request.call is not None and not completion else None
    return NcpReply(header, request.kind, request.call, data)
