"""Captures of queue management: a client and a server of qmmgmt, and connections with several interfaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from msmqwire.constants import ManagementMachineProperty, ManagementQueueProperty, VarEnum
from msmqwire.management.constants import Opnum
from msmqwire.management.interface import MANAGEMENT
from msmqwire.management.objects import machine_object, queue_object
from msmqwire.management.reports import SequencePosition
from msmqwire.management.variants import NULL, variant
from msmqwire.names import parse_format_name
from msmqwire.rpc.constants import ContextResult, PduType, SyntaxId
from msmqwire.rpc.ndr import NDR20, Syntax
from msmqwire.rpc.pdu import build_pdu, make_pdu
from tests.support.capture import rpc_captures as r

QUEUE = "DIRECT=TCP:10.0.0.9\\private$\\orders"
CANONICAL = "DIRECT=TCP:10.0.0.9\\PRIVATE$\\orders"
VECTOR = VarEnum.VT_VECTOR
M, Q = ManagementMachineProperty, ManagementQueueProperty

HISTORY = variant(
    VECTOR | VarEnum.VT_VARIANT,
    (
        variant(VECTOR | VarEnum.VT_UI4, (2, 0x80000001)),
        variant(VECTOR | VarEnum.VT_I4, (1_700_000_000, 1_700_000_060)),
        variant(VECTOR | VarEnum.VT_I4, (0, -1072824288)),
        variant(
            VECTOR | VarEnum.VT_VARIANT,
            tuple(variant(VECTOR | VarEnum.VT_LPWSTR, (name,)) for name in ("IP=10.0.0.9", "IP=10.0.0.8")),
        ),
    ),
)
SOURCES = variant(
    VECTOR | VarEnum.VT_VARIANT,
    (
        variant(VECTOR | VarEnum.VT_LPWSTR, ("DIRECT=OS:alpha\\private$\\orders",)),
        variant(VECTOR | VarEnum.VT_CLSID, (UUID(int=7),)),
        variant(VECTOR | VarEnum.VT_UI8, (1 << 40,)),
        variant(VECTOR | VarEnum.VT_UI4, (12,)),
        variant(VECTOR | VarEnum.VT_I4, (1_700_000_000,)),
        variant(VECTOR | VarEnum.VT_UI4, (0,)),
    ),
)
OUTGOING = {
    Q.PROPID_MGMT_QUEUE_PATHNAME: variant(VarEnum.VT_LPWSTR, "10.0.0.9\\private$\\orders"),
    Q.PROPID_MGMT_QUEUE_FORMATNAME: variant(VarEnum.VT_LPWSTR, CANONICAL),
    Q.PROPID_MGMT_QUEUE_TYPE: variant(VarEnum.VT_LPWSTR, "PRIVATE"),
    Q.PROPID_MGMT_QUEUE_LOCATION: variant(VarEnum.VT_LPWSTR, "REMOTE"),
    Q.PROPID_MGMT_QUEUE_XACT: variant(VarEnum.VT_LPWSTR, "YES"),
    Q.PROPID_MGMT_QUEUE_MESSAGE_COUNT: variant(VarEnum.VT_UI4, 42),
    Q.PROPID_MGMT_QUEUE_STATE: variant(VarEnum.VT_LPWSTR, "WAITING"),
    Q.PROPID_MGMT_QUEUE_NEXTHOPS: variant(VECTOR | VarEnum.VT_LPWSTR, ("IP=10.0.0.9",)),
    Q.PROPID_MGMT_QUEUE_EOD_LAST_ACK: variant(VarEnum.VT_BLOB, SequencePosition(1 << 40, 9, 8).to_bytes()),
    Q.PROPID_MGMT_QUEUE_EOD_LAST_ACK_TIME: variant(VarEnum.VT_I4, 1_700_000_000),
    Q.PROPID_MGMT_QUEUE_EOD_NO_ACK_COUNT: variant(VarEnum.VT_UI4, 3),
    Q.PROPID_MGMT_QUEUE_EOD_SOURCE_INFO: SOURCES,
    Q.PROPID_MGMT_QUEUE_CONNECTION_HISTORY: HISTORY,
    Q.PROPID_MGMT_QUEUE_SUBQUEUE_NAMES: NULL,
}
"""The values of an outgoing queue."""
MACHINE = {
    M.PROPID_MGMT_MSMQ_ACTIVEQUEUES: variant(VECTOR | VarEnum.VT_LPWSTR, (CANONICAL,)),
    M.PROPID_MGMT_MSMQ_PRIVATEQ: variant(
        VECTOR | VarEnum.VT_LPWSTR, ("beta\\private$\\a", "beta\\private$\\b")
    ),
    M.PROPID_MGMT_MSMQ_CONNECTED: variant(VarEnum.VT_LPWSTR, "CONNECTED"),
    M.PROPID_MGMT_MSMQ_BYTES_IN_ALL_QUEUES: variant(VarEnum.VT_I8, 1 << 33),
}


class ManagementTalk(r.Talk):
    """One connection of queue management."""

    own = MANAGEMENT

    def info(self, wanted: Any, values: dict[int, Any], status: int = 0) -> int:
        """R_QMMgmtGetInfo, answered with the values; with none of them where the status is a failure."""
        answered = [NULL] * len(values) if status else list(values.values())
        return self.call(
            Opnum.R_QMMgmtGetInfo, info_arguments(wanted, list(values)), {"apVar": answered, "status": status}
        )

    def act(self, wanted: Any, action: str, status: int = 0) -> int:
        return self.call(
            Opnum.R_QMMgmtAction, {"pObjectFormat": wanted, "lpwszAction": action}, {"status": status}
        )


def queue(name: str = QUEUE) -> Any:
    return queue_object(parse_format_name(name))


def info_arguments(wanted: Any, ids: Sequence[int], **changed: Any) -> dict[str, Any]:
    return {
        "pObjectFormat": wanted,
        "aProp": tuple(map(int, ids)),
        "apVar": (NULL,) * len(ids),
        **changed,
    }


def session(syntax: Syntax = NDR20, **more: Any) -> ManagementTalk:
    """A machine and a queue asked, one paused, a failure, and a call that never ends."""
    talk = ManagementTalk(syntax, **more)
    talk.info(machine_object(), MACHINE)
    talk.info(queue(), OUTGOING)
    talk.act(queue(), "Pause")
    talk.info(queue("DIRECT=OS:beta\\private$\\missing"), {7: NULL, 11: NULL}, status=0xC00E0003)
    talk.act(machine_object(), "TIDY", status=0xC00E0025)
    talk.ask(Opnum.R_QMMgmtGetInfo, info_arguments(machine_object(), [1]))
    return talk


# -- several interfaces in a connection ----------------------------------------------------------------------


def offer(number: int, interface: SyntaxId, *syntaxes: Syntax, ptype: int = PduType.BIND) -> bytes:
    """A bind, or an alter_context, with one context."""
    element = {
        "p_cont_id": number,
        "n_transfer_syn": len(syntaxes),
        "abstract_syntax": _fields(interface),
        "transfer_syntaxes": [_fields(each.identifier) for each in syntaxes],
    }
    return build_pdu(make_pdu(ptype, {"n_context_elem": 1, "p_context_elem": [element]}))


def accept(syntax: Syntax, ptype: int = PduType.BIND_ACK) -> bytes:
    """The answer that accepts it."""
    result = {"result": ContextResult.ACCEPTANCE, "reason": 0, "transfer_syntax": _fields(syntax.identifier)}
    return build_pdu(make_pdu(ptype, {"n_results": 1, "p_results": [result]}))


def request(context: int, opnum: int, stub: bytes, call: int) -> bytes:
    fields = {"p_cont_id": context, "opnum": opnum, "stub_data": stub}
    return build_pdu(make_pdu(PduType.REQUEST, fields, header={"call_id": call}))


def response(context: int, stub: bytes, call: int) -> bytes:
    fields = {"p_cont_id": context, "stub_data": stub}
    return build_pdu(make_pdu(PduType.RESPONSE, fields, header={"call_id": call}))


def _fields(syntax: SyntaxId) -> dict[str, Any]:
    return {"if_uuid": syntax.uuid, "major": syntax.major, "minor": syntax.minor}
