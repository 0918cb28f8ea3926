"""Remote read over DCE/RPC: all that the analysis of captures knows of it."""

from __future__ import annotations

from string import hexdigits
from typing import Any, Final

from msmqwire.analysis.protocols.protocol import (
    CaptureProtocol,
    Columns,
    Judging,
    PacketFacts,
    Packets,
    Plugins,
    ProtocolColumn,
    TextForm,
    Traffic,
)
from msmqwire.constants import hresult_name
from msmqwire.headers.message_summary import message_summary
from msmqwire.headers.queue_names import text
from msmqwire.names.printable import safe
from msmqwire.remote_read.attributes import attributes
from msmqwire.remote_read.constants import RPC_PORTS, Action, Opnum
from msmqwire.remote_read.rpc_packet import KINDS, RpcPacket
from msmqwire.rpc.constants import PduType, status_name

_HANDLE_DIGITS: Final = 40
_GROUPS: Final = {PduType.REQUEST: "call", PduType.RESPONSE: "answer", PduType.FAULT: "answer"}
_COLUMNS: Final = tuple(
    ProtocolColumn(*column)
    for column in (
        ("queue_handle", "TEXT", "Handle of the queue in a call of remote read, of its answer too; hex."),
        ("read_queue", "TEXT", "Format name of that queue, as it was opened."),
        ("request_id", "INT64", "Number of the receive, by the client."),
        ("receive_action", "INT64", "The action of a receive; 0x80000000 and some more only peek."),
        ("receive_ack", "INT32", "The end of a receive: 2 the message is taken, 1 it is given back."),
        ("call_status", "INT64", "HRESULT of an answer."),
    )
)


def _handle(handle: str) -> str:
    if len(handle) != _HANDLE_DIGITS or not set(handle) <= set(hexdigits):
        raise ValueError("no handle")
    return handle.lower()


def _to_json(packet: RpcPacket) -> dict[str, Any]:
    """Return the fields, and the facts about a call beside its bytes."""
    result: dict[str, Any] = {"fields": packet.to_json()}
    if packet.queue:
        result["queue"] = packet.queue
    if packet.security is not None:
        result["security"] = packet.security.to_json()
    return result


def _summary(packet: RpcPacket, exchange: int | None) -> str:
    parts = [] if exchange is None else [f"#{exchange}"]
    if packet.queue:
        parts.append(packet.queue)
    if packet.ptype == PduType.FAULT:
        if packet.procedure is not None:
            parts.append(packet.procedure.name)
        parts.append(_status(packet.pdu.record.status))
    action = getattr(packet.value, "ulAction", None)
    if action is not None:
        parts.append(Action(action).name if action in set(Action) else f"action {action:#x}")
    if getattr(packet.value, "status", 0):
        status = packet.value.status
        is_port = packet.procedure is not None and packet.procedure.opnum == Opnum.R_GetServerPort
        parts.append(str(status) if is_port else _status(status))
    if packet.message is not None:
        parts += ["cut:"] * packet.message.cut + [message_summary(packet.message.whole)]
    if packet.procedure is None and packet.opnum is not None:
        parts.append(f"opnum {packet.opnum}")
    if packet.encrypted:
        parts.append("encrypted")
    if packet.security is not None and packet.security.user:
        parts.append(f"by {packet.security.user}")
    return safe(" ".join(parts))


def _status(number: int) -> str:
    """Return the name of an HRESULT or of a status of RPC."""
    name = hresult_name(number)
    return status_name(number) if name.startswith("0x") else name


def _facts(packet: RpcPacket, _transport: str) -> PacketFacts:
    protocol, group = "Remote read (RPC)", _GROUPS.get(PduType(packet.ptype), "handshake")
    if packet.message is None:
        return PacketFacts(protocol, group, safe(packet.queue))
    label = safe(text(packet.message.whole.MessagePropertiesHeader.Label) or "")
    return PacketFacts(protocol, group, safe(packet.queue), label, packet.message.body_size)


PROTOCOL: Final = CaptureProtocol(
    name="remote_read",
    order=30,
    packets=Packets(
        type=RpcPacket,
        kinds=KINDS,
        to_json=_to_json,
        summary=_summary,
        facts=_facts,
        placed_fields="msmqwire.analysis.dissection.rpc_fields:placed_fields",
        message="message",
    ),
    traffic=Traffic(
        stream_ports=RPC_PORTS,
        dissectors=("msmqwire.analysis.dissection.rpc_connection:RemoteRead",),
        reduce="msmqwire.analysis.dissection.rpc_pickle:reduce",
    ),
    judging=Judging(
        judge="msmqwire.analysis.lint.remote_read_calls:lint_rpc",
        exports=(
            "msmqwire.analysis.lint.remote_read_session:RemoteReadLint",
            "msmqwire.analysis.lint.remote_read_calls:lint_malformed_rpc",
            "msmqwire.analysis.lint.remote_read_calls:lint_rpc",
        ),
        of_cut=("ATTACK-RPC-FRAGMENT",),
    ),
    columns=Columns(
        groups={"call": _COLUMNS},
        attributes=attributes,
        values={
            "queue_handle": TextForm(
                "handle of 40 hex digits", _handle, "0123456789abcdef", "0" * _HANDLE_DIGITS
            )
        },
        queue="read_queue",
    ),
    follower="msmqwire.analysis.fate.remote_read:RemoteReadFollower",
    plugins=Plugins(scapy="msmqwire.plugins.scapy.remote_read", fuzz=("ndr", "rpc")),
)
