"""The PDUs that are sent to a peer, with placeholders for values that only the peer knows.

The author of a case chooses call ids. A handle, a cursor and a move context are known by the id of the call
that gives it, the lookup identifier of a message by its MessageID, and an association group by the connection
that has begun it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from fuzz.peer.steps import IDENTITY
from fuzz.peer.target import Target
from msmqwire.names import parse_format_name
from msmqwire.remote_read.constants import Access, Acknowledge, Action, Opnum, ShareMode
from msmqwire.remote_read.interface import INTERFACE, build_request
from msmqwire.remote_read.procedures import PROCEDURES, XACTUOW
from msmqwire.rpc.constants import (
    BIND_TIME_FEATURES,
    FRAGMENT_SIZE,
    NDR20,
    NDR64,
    WHOLE,
    PduType,
    PfcFlags,
    SyntaxId,
    bind_time_features,
)
from msmqwire.rpc.fragments import stub_fragments
from msmqwire.rpc.handles import ContextHandle
from msmqwire.rpc.ndr import SYNTAXES
from msmqwire.rpc.pdu import build_pdu, make_pdu
from msmqwire.rpc.pdus import REQUEST, syntax_fields
from msmqwire.rpc.queue_format import queue_format_of

BIND_CALL: Final = 1
"""The call id of binds."""
ALL: Final = 0xFFFF_FFFF
"""The most bytes of a body that can be asked for."""
NO_TRANSACTION: Final = bytes(16)
FEATURES: Final = bind_time_features(BIND_TIME_FEATURES)

_HANDLE: Final = b"HNDLmsmqwire-handle"
_CURSOR: Final = b"\x0dCR"
_LOOKUP: Final = b"\x0eLOOKUP"
_MOVE: Final = b"\x0eMOVETO"
_GROUP: Final = b"\x0dGR"


def handle(call: int) -> ContextHandle:
    """Return the placeholder of the handle that an open of this call id gives."""
    data = _HANDLE + bytes([call])
    return ContextHandle(int.from_bytes(data[:4], "little"), UUID(bytes_le=data[4:]))


def cursor(call: int) -> int:
    """Return the placeholder of the cursor that a call of this id gives."""
    return int.from_bytes(_CURSOR + bytes([call]), "little")


def lookup(number: int) -> int:
    """Return the placeholder of the LookupIdentifier of the message with this MessageID, below 256."""
    return int.from_bytes(_LOOKUP + bytes([number]), "little")


def move_context(call: int) -> int:
    """Return the placeholder of the pMoveContext that a call of this id gives."""
    return int.from_bytes(_MOVE + bytes([call]), "little")


def group(connection: int) -> int:
    """Return the placeholder of the association group that a connection has begun."""
    return int.from_bytes(_GROUP + bytes([connection]), "little")


class Known:
    """The values that the peer has given, and their placeholder bytes."""

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}

    def handle(self, call: int, value: ContextHandle) -> None:
        """Take note of a handle."""
        data = value.attributes.to_bytes(4, "little") + value.uuid.bytes_le
        self._values[_HANDLE + bytes([call & 0xFF])] = data

    def cursor(self, call: int, value: int) -> None:
        """Take note of a cursor."""
        self._values[_CURSOR + bytes([call & 0xFF])] = value.to_bytes(4, "little")

    def lookup(self, number: int, value: int) -> None:
        """Take note of a LookupIdentifier."""
        self._values[_LOOKUP + bytes([number & 0xFF])] = value.to_bytes(8, "little")

    def move_context(self, call: int, value: int) -> None:
        """Take note of a pMoveContext."""
        self._values[_MOVE + bytes([call & 0xFF])] = value.to_bytes(8, "little")

    def group(self, connection: int, value: int) -> None:
        """Take note of an association group."""
        self._values[_GROUP + bytes([connection & 0xFF])] = value.to_bytes(4, "little")

    def dress(self, data: bytes) -> bytes | None:
        """Return bytes with these values in place; None if one of them is not known."""
        for old, new in self._values.items():
            data = data.replace(old, new)
        unknown = any(mark in data for mark in (_HANDLE, _CURSOR, _LOOKUP, _MOVE, _GROUP))
        return None if unknown else data


# -- associations ----------------------------------------------------------------------------------------


def element(number: int, interface: SyntaxId, *transfers: SyntaxId) -> dict[str, Any]:
    """Return a proposed presentation context."""
    return {
        "p_cont_id": number,
        "abstract_syntax": syntax_fields(interface),
        "transfer_syntaxes": [syntax_fields(transfer) for transfer in transfers],
    }


def contexts(
    elements: Sequence[Mapping[str, Any]],
    *,
    kind: PduType = PduType.BIND,
    header: Mapping[str, Any] | None = None,
    call: int = BIND_CALL,
    sec_trailer: Mapping[str, Any] | None = None,
    **fields: Any,
) -> bytes:
    """Return a bind or alter_context that proposes presentation contexts."""
    head = {"call_id": call, "pfc_flags": int(WHOLE | PfcFlags.CONC_MPX), **(header or {})}
    body = {"p_context_elem": list(elements), **fields}
    return build_pdu(make_pdu(kind, body, header=head, sec_trailer=sec_trailer))


def bind(transfer: SyntaxId = NDR20, **fields: Any) -> bytes:
    """Return the usual bind: RemoteRead in one transfer syntax, and the features of bind time."""
    return contexts([element(0, INTERFACE, transfer), element(1, INTERFACE, FEATURES)], **fields)


def short(kind: PduType, call: int) -> bytes:
    """Return a PDU that is nothing but a common header."""
    return build_pdu(make_pdu(kind, {}, header={"call_id": call}))


# -- calls -----------------------------------------------------------------------------------------------


def request(
    call: int, opnum: int, stub: bytes, *, context: int = 0, size: int = FRAGMENT_SIZE, flags: int = 0
) -> bytes:
    """Return the PDUs of a call, fragments of at most `size` bytes."""
    fields = {"PTYPE": int(PduType.REQUEST), "p_cont_id": context, "opnum": opnum, "object": None}
    return b"".join(stub_fragments(REQUEST, fields, stub, call_id=call, fragment_size=size, flags=flags))


def stub_of(opnum: int, transfer: SyntaxId = NDR20, **arguments: Any) -> bytes:
    """Return the stub of a call."""
    return build_request(opnum, PROCEDURES[opnum].request.value(**arguments), SYNTAXES[transfer])


def call_of(
    call: int, opnum: int, *, transfer: SyntaxId = NDR20, size: int = FRAGMENT_SIZE, **arguments: Any
) -> bytes:
    """Return the PDUs of a call with these arguments."""
    return request(call, opnum, stub_of(opnum, transfer, **arguments), size=size)


def format_of(target: Target, queue: str) -> Any:
    """Return the QUEUE_FORMAT of a queue of the peer."""
    return queue_format_of(parse_format_name(f"DIRECT=TCP:{target.host}\\{queue}"), subqueue_prefix=False)


def opening(form: Any, access: int = Access.RECEIVE_ACCESS, share: int = ShareMode.MQ_DENY_NONE) -> Any:
    """Return the arguments of R_OpenQueue and R_OpenQueueForMove."""
    return {
        "pQueueFormat": form,
        "dwAccess": int(access),
        "dwShareMode": int(share),
        "pClientId": IDENTITY,
        "fNonRoutingServer": 1,
        "Major": 6,
        "Minor": 1,
        "BuildNumber": 7601,
        "fWorkgroup": 1,
    }


def open_queue(
    call: int,
    target: Target,
    queue: str | None = None,
    access: int = Access.RECEIVE_ACCESS,
    share: int = ShareMode.MQ_DENY_NONE,
    *,
    transfer: SyntaxId = NDR20,
    for_move: bool = False,
) -> bytes:
    """Return a call that opens a queue of the peer, its usual one for None."""
    opnum = Opnum.R_OpenQueueForMove if for_move else Opnum.R_OpenQueue
    form = format_of(target, target.queue if queue is None else queue)
    return call_of(call, opnum, transfer=transfer, **opening(form, access, share))


def start_receive(
    call: int,
    of: ContextHandle,
    request_id: int,
    action: int = Action.MQ_ACTION_RECEIVE,
    *,
    timeout: int = 0,
    cursor: int = 0,
    lookup: int = 0,
    body: int = ALL,
    transaction: bytes | None = None,
    transfer: SyntaxId = NDR20,
) -> bytes:
    """Return R_StartReceive, or R_StartTransactionalReceive if there is a transaction."""
    arguments: dict[str, Any] = {
        "phContext": of,
        "LookupId": lookup,
        "hCursor": cursor,
        "ulAction": int(action),
        "ulTimeout": timeout,
        "dwRequestId": request_id,
        "dwMaxBodySize": body,
        "dwMaxCompoundMessageSize": ALL,
    }
    if transaction is None:
        return call_of(call, Opnum.R_StartReceive, transfer=transfer, **arguments)
    arguments["pTransactionId"] = XACTUOW.value(rgb=transaction)
    return call_of(call, Opnum.R_StartTransactionalReceive, transfer=transfer, **arguments)


def end_receive(
    call: int,
    of: ContextHandle,
    request_id: int,
    ack: int = Acknowledge.RR_ACK,
    opnum: int = Opnum.R_EndReceive,
    transfer: SyntaxId = NDR20,
) -> bytes:
    """Return R_EndReceive, or R_EndTransactionalReceive."""
    return call_of(call, opnum, transfer=transfer, phContext=of, dwAck=int(ack), dwRequestId=request_id)


def of_handle(call: int, opnum: int, of: ContextHandle, transfer: SyntaxId = NDR20, **more: Any) -> bytes:
    """Return a call that has a handle, and these other arguments."""
    name = "pphContext" if opnum == Opnum.R_CloseQueue else "phContext"
    return call_of(call, opnum, transfer=transfer, **{name: of, **more})


def get_server_port(call: int) -> bytes:
    """Return R_GetServerPort, which asks for nothing but an answer."""
    return request(call, Opnum.R_GetServerPort, b"")


TRANSFERS: Final = (NDR20, NDR64)
