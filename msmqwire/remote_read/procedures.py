"""The procedures of the RemoteRead interface, each declared once: [MS-MQRR] 3.1.4 and 6.

hBind, the first parameter of each, is the binding handle and has no bytes. Output parameters have the values
that a failure leaves in them as defaults, so that ``{"status": hresult}`` is a whole answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msmqwire.remote_read.constants import Opnum
from msmqwire.rpc.handles import NULL_HANDLE
from msmqwire.rpc.interface import Procedure, by_opnum
from msmqwire.rpc.ndr import (
    REQUIRED,
    ConformantArray,
    ConformantBytes,
    Enum,
    FixedBytes,
    Guid,
    Handle,
    Integer,
    Member,
    Pointer,
    Reference,
    Structure,
    Type,
)
from msmqwire.rpc.queue_format import QUEUE_FORMAT

PROPAGATION_TOKEN_MAX: Final = 131072
"""The most bytes of pbPropagationToken: range(0, 131072)."""

_DWORD: Final = Integer(32)  # MQRR-2.2-02
_LONG: Final = Integer(32, signed=True)  # MQRR-2.2-02
_USHORT: Final = Integer(16)  # MQRR-2.2-02
_ULONGLONG: Final = Integer(64)  # MQRR-2.2-02
_BYTE: Final = Integer(8)  # MQRR-2.2-02
_ACK: Final = Integer(32, values=range(1, 3))
_UNIT_OF_WORK: Final = FixedBytes(16)

SECTION_BUFFER: Final = Structure(
    "SectionBuffer",
    "[MS-MQRR] 2.2.6",
    (
        # MQRR-2.2.6-01, MQRR-2.2.6-02, MQRR-2.2.6-03
        Member("SectionBufferType", Enum(), "Its content, a SectionType.", req=("MQRR-2.2.6-04",)),
        # MQRR-2.2.6-01
        Member("SectionSizeAlloc", _DWORD, "Bytes of that part, uncut.", req=("MQRR-2.2.6-06",)),
        Member("SectionSize", _DWORD, "Bytes of pSectionBuffer.", req=("MQRR-2.2.6-09",)),  # MQRR-2.2.6-01
        Member(
            "pSectionBuffer",
            Pointer(ConformantBytes("SectionSize")),  # MQRR-2.2.6-01, MQRR-2.2.6-02, MQRR-2.2.6-03
            "The bytes.",
            default=None,
            req=("MQRR-2.2.6-10",),
        ),
    ),
    "A section of a message packet.",
)

XACTUOW: Final = Structure(
    "XACTUOW",
    "[MS-MQRR] 2.2.8",
    (Member("rgb", _UNIT_OF_WORK, "The identifier; all zero for no transaction.", req=("MQRR-2.2.8-01",)),),
    "A unit of work.",
)


_STATUS: Final = Member("status", _DWORD, meaning="HRESULT.", default=0, req=("MQRR-2.2.1-01",))


def _ref(name: str, target: Type, meaning: str, default: Any = REQUIRED, req: tuple[str, ...] = ()) -> Member:
    return Member(name, Reference(target), meaning, default, req)


def _in(name: str, node: Type, meaning: str, req: tuple[str, ...] = ()) -> Member:
    return Member(name, node, meaning, req=req)


_CONTEXT: Final = _in("phContext", Handle(), "Handle of the queue.", ("MQRR-2.2.4-03",))
_OPENED: Final = _ref("pphContext", Handle(), "Handle of the queue.", NULL_HANDLE, ("MQRR-2.2.4-03",))
_CLOSED: Final = _ref("pphContext", Handle(), "Handle of the queue, null once closed.")
_REQUEST_ID: Final = _in(
    "dwRequestId",
    _DWORD,
    "Number of the receive, by the client.",
    req=("MQRR-3.1.4.7-23", "MQRR-3.1.4.13-15"),
)
_LOOKUP_ID: Final = _in("LookupId", _ULONGLONG, "Lookup identifier of a message, or 0.")
_TRANSACTION: Final = _ref("pTransactionId", XACTUOW, "The transaction; all zero for none.")
_QUEUE: Final = _ref("pQueueFormat", QUEUE_FORMAT, "The queue.")

_OPEN: Final = (
    _QUEUE,
    _in("dwAccess", _DWORD, "An Access.", req=("MQRR-3.1.4.2-05", "MQRR-3.1.4.11-04")),
    _in("dwShareMode", _DWORD, "A ShareMode.", req=("MQRR-3.1.4.2-07", "MQRR-3.1.4.11-05")),
    _ref(
        "pClientId",
        Guid(),
        "GUID of the client's queue manager.",
        req=("MQRR-3.1.4.2-08", "MQRR-3.1.4.11-06"),
    ),
    _in(
        "fNonRoutingServer",
        _LONG,
        "1 unless the client is a routing server.",
        req=("MQRR-3.1.4.2-11", "MQRR-3.1.4.11-09"),
    ),
    _in("Major", _BYTE, "Version of the client.", req=("MQRR-3.1.4.2-13", "MQRR-3.1.4.11-10")),
    _in("Minor", _BYTE, "Version of the client.", req=("MQRR-3.1.4.2-14", "MQRR-3.1.4.11-10")),
    _in("BuildNumber", _USHORT, "Version of the client.", req=("MQRR-3.1.4.2-15", "MQRR-3.1.4.11-10")),
    _in(
        "fWorkgroup",  # MQRR-5.2-01
        _LONG,
        "1 unless the client is in a domain.",
        req=("MQRR-3.1.4.2-17", "MQRR-3.1.4.11-12"),
    ),
)

_RECEIVE: Final = (  # MQRR-3.1.4-05
    _CONTEXT,
    _LOOKUP_ID,
    _in("hCursor", _DWORD, "A cursor, or 0."),
    _in("ulAction", _DWORD, "An Action."),
    _in(
        "ulTimeout",
        _DWORD,
        "How long to wait for a message: ms.",
        req=("MQRR-3.1.4.7-22", "MQRR-3.1.4.13-14"),
    ),
    _REQUEST_ID,
    _in(
        "dwMaxBodySize",
        _DWORD,
        "Bytes of the body of a binary message to return at most.",
        req=("MQRR-3.1.4.7-24", "MQRR-3.1.4.13-16"),
    ),
    _in(
        "dwMaxCompoundMessageSize",
        _DWORD,
        "Bytes of the CompoundMessageHeader of an SRMP message to return at most.",
        req=("MQRR-3.1.4.7-25", "MQRR-3.1.4.13-16"),
    ),
)

_RECEIVED: Final = (
    _ref(
        "pdwArriveTime",
        _DWORD,
        "Arrival in the queue: seconds since 1970-01-01 UTC.",
        0,
        req=("MQRR-3.1.4.7-27", "MQRR-3.1.4.13-19"),
    ),
    _ref(
        "pSequenceId",
        _ULONGLONG,
        "Low 7 bytes of the lookup identifier.",
        0,
        req=("MQRR-3.1.4.7-29", "MQRR-3.1.4.13-19"),
    ),
    _ref(
        "pdwNumberOfSections", _DWORD, "Sections of the message.", req=("MQRR-3.1.4.7-30", "MQRR-3.1.4.13-19")
    ),
    _ref(
        "ppPacketSections",
        Pointer(ConformantArray(SECTION_BUFFER, "pdwNumberOfSections")),
        "The sections: 1, or 2 of a cut message.",
        None,
        req=("MQRR-3.1.4.7-04", "MQRR-3.1.4.13-05"),
    ),
)

_END: Final = (
    _CONTEXT,
    _in("dwAck", _ACK, "An Acknowledge.", req=("MQRR-3.1.4.9-04", "MQRR-3.1.4.15-04")),
    _REQUEST_ID,
)

PROCEDURES: Final[Mapping[int, Procedure]] = by_opnum(
    (
        Procedure(
            Opnum.R_GetServerPort,
            "[MS-MQRR] 3.1.4.1",
            "The port of the interface.",
            status=Member("status", _DWORD, "TCP port, 0 for an error.", req=("MQRR-3.1.4.1-01",)),
        ),
        Procedure(Opnum.Opnum1NotUsedOnWire, "[MS-MQRR] 3.1.4", "Never sent.", req=("MQRR-6-02",)),
        Procedure(
            Opnum.R_OpenQueue,
            "[MS-MQRR] 3.1.4.2",
            "Opens a queue.",
            _OPEN,
            (_OPENED,),
            req=("MQRR-3.1.4.2-01", "MQRR-3.1.4.2-02"),
        ),
        Procedure(
            Opnum.R_CloseQueue,
            "[MS-MQRR] 3.1.4.3",
            "Closes a queue.",
            (_CLOSED,),
            (_CLOSED,),
            _STATUS,
            req=("MQRR-3.1.4.3-01",),
        ),
        Procedure(
            Opnum.R_CreateCursor,
            "[MS-MQRR] 3.1.4.4",
            "Creates a cursor on a queue.",
            (_CONTEXT,),
            (_ref("phCursor", _DWORD, "The cursor.", 0),),
            _STATUS,
            req=("MQRR-3.1.4.4-01",),
        ),
        Procedure(
            Opnum.R_CloseCursor,
            "[MS-MQRR] 3.1.4.5",
            "Closes a cursor.",
            (_CONTEXT, _in("hCursor", _DWORD, "The cursor.")),
            status=_STATUS,
            req=("MQRR-3.1.4.5-01",),
        ),
        Procedure(
            Opnum.R_PurgeQueue,
            "[MS-MQRR] 3.1.4.6",
            "Empties a queue.",
            (_CONTEXT,),
            status=_STATUS,
            req=("MQRR-3.1.4.6-01",),
        ),
        Procedure(
            Opnum.R_StartReceive,
            "[MS-MQRR] 3.1.4.7",
            "Peeks at a message, or begins to receive one.",
            _RECEIVE,
            _RECEIVED,
            _STATUS,
            req=("MQRR-3.1.4.7-01", "MQRR-3.1.4.7-02", "MQRR-3.1.4.7-03"),
        ),
        Procedure(
            Opnum.R_CancelReceive,
            "[MS-MQRR] 3.1.4.8",
            "Cancels a receive or peek that waits.",
            (_CONTEXT, _REQUEST_ID),
            status=_STATUS,
            req=("MQRR-3.1.4.8-01",),
        ),
        Procedure(
            Opnum.R_EndReceive,
            "[MS-MQRR] 3.1.4.9",
            "Accepts a message that was received, or gives it back.",
            _END,
            status=_STATUS,
            req=("MQRR-3.1.4.9-01",),
        ),
        Procedure(
            Opnum.R_MoveMessage,
            "[MS-MQRR] 3.1.4.10",
            "Moves a message to another queue.",
            (
                _in("phContextFrom", Handle(), "Handle of the queue that it is in."),
                _in(
                    "ullContextTo",
                    _ULONGLONG,
                    "pMoveContext of the queue that it goes to.",
                    req=("MQRR-3.1.4.10-05",),
                ),
                _in("LookupId", _ULONGLONG, "Lookup identifier of the message."),
                _TRANSACTION,
            ),
            status=_STATUS,
            req=("MQRR-3.1.4.10-01",),
        ),
        Procedure(
            Opnum.R_OpenQueueForMove,
            "[MS-MQRR] 3.1.4.11",
            "Opens a queue to move messages to.",
            _OPEN,
            (
                _ref(
                    "pMoveContext",
                    _ULONGLONG,
                    "The queue, for R_MoveMessage.",
                    0,
                    req=("MQRR-3.1.4.11-14",),
                ),
                _OPENED,
            ),
            req=("MQRR-3.1.4.11-01",),
        ),
        Procedure(
            Opnum.R_QMEnlistRemoteTransaction,
            "[MS-MQRR] 3.1.4.12",
            "Enlists the server in a transaction.",
            (
                _TRANSACTION,
                _in(
                    "cbPropagationToken",
                    Integer(32, values=range(PROPAGATION_TOKEN_MAX + 1)),
                    "Bytes of pbPropagationToken.",
                    req=("MQRR-3.1.4.12-06",),
                ),
                _ref(
                    "pbPropagationToken",
                    ConformantBytes("cbPropagationToken"),
                    "The transaction, for its coordinator.",
                    req=("MQRR-3.1.4.12-07",),
                ),
                _QUEUE,
            ),
            status=_STATUS,
            req=("MQRR-3.1.4.12-01", "MQRR-3.1.4.12-02"),
        ),
        Procedure(
            Opnum.R_StartTransactionalReceive,
            "[MS-MQRR] 3.1.4.13",
            "Begins to receive a message in a transaction.",
            (*_RECEIVE, _TRANSACTION),
            _RECEIVED,
            _STATUS,
            req=("MQRR-3.1.4.13-01", "MQRR-3.1.4.13-03", "MQRR-3.1.4.13-04"),
        ),
        Procedure(
            Opnum.R_SetUserAcknowledgementClass,
            "[MS-MQRR] 3.1.4.14",
            "Says why an application rejects a message.",
            (
                _CONTEXT,
                _LOOKUP_ID,
                _in(
                    "usClass",
                    _USHORT,
                    "0, or MQMSG_CLASS_NACK_RECEIVE_REJECTED.",
                    req=("MQRR-3.1.4.14-05",),
                ),
            ),
            status=_STATUS,
            req=("MQRR-3.1.4.14-01",),
        ),
        Procedure(
            Opnum.R_EndTransactionalReceive,
            "[MS-MQRR] 3.1.4.15",
            "Accepts a message that was received in a transaction, or gives it back.",
            _END,
            status=_STATUS,
            req=("MQRR-3.1.4.15-01",),
        ),
    )
)
