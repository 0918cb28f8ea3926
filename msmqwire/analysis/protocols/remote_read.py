"""Remote read over DCE/RPC: all that the analysis of captures knows of it."""

from __future__ import annotations

from collections.abc import Iterator
from string import hexdigits
from typing import Final

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
from msmqwire.analysis.protocols.rpc import group_of, packet_to_json, status_text, summary_with
from msmqwire.headers.message_summary import message_summary
from msmqwire.headers.queue_names import text
from msmqwire.names.printable import safe
from msmqwire.remote_read.attributes import attributes
from msmqwire.remote_read.constants import Action, Opnum
from msmqwire.remote_read.remote_read_packet import KINDS, RemoteReadPacket
from msmqwire.rpc.constants import RPC_PORTS

_HANDLE_DIGITS: Final = 40
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


def _summary(packet: RemoteReadPacket, exchange: int | None) -> str:
    return summary_with(packet, exchange, _of_call(packet))


def _of_call(packet: RemoteReadPacket) -> Iterator[str]:
    """Yield the parts of the summary that are about the call."""
    action = getattr(packet.value, "ulAction", None)
    if action is not None:
        yield Action(action).name if action in set(Action) else f"action {action:#x}"
    if getattr(packet.value, "status", 0):
        status = packet.value.status
        is_port = packet.procedure is not None and packet.procedure.opnum == Opnum.R_GetServerPort
        yield str(status) if is_port else status_text(status)
    if packet.message is not None:
        if packet.message.cut:
            yield "cut:"
        yield message_summary(packet.message.whole)


def _facts(packet: RemoteReadPacket, _transport: str) -> PacketFacts:
    protocol, group = "Remote read (RPC)", group_of(packet)
    if packet.message is None:
        return PacketFacts(protocol, group, safe(packet.queue))
    label = safe(text(packet.message.whole.MessagePropertiesHeader.Label) or "")
    return PacketFacts(protocol, group, safe(packet.queue), label, packet.message.body_size)


PROTOCOL: Final = CaptureProtocol(
    name="remote_read",
    order=31,
    packets=Packets(
        type=RemoteReadPacket,
        kinds=KINDS,
        to_json=packet_to_json,
        summary=_summary,
        facts=_facts,
        placed_fields="msmqwire.analysis.dissection.remote_read_fields:placed_fields",
        message="message",
    ),
    traffic=Traffic(
        stream_ports=RPC_PORTS,
        dissectors=(),
        interface="msmqwire.analysis.dissection.remote_read_calls:RemoteReadCalls",
    ),
    judging=Judging(
        judge="msmqwire.analysis.lint.remote_read_calls:lint_remote_read",
        exports=("msmqwire.analysis.lint.remote_read_session:RemoteReadLint",),
        judge_stub="msmqwire.analysis.lint.remote_read_calls:rule_of_stub",
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
    plugins=Plugins(scapy="msmqwire.plugins.scapy.remote_read", fuzz=("ndr",)),
)
