"""DCE/RPC: all that the analysis of captures knows of its PDUs, whatever interface they are for.

The calls of an interface are of the protocol that registers it, which shows them with the functions here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msmqwire.analysis.protocols.protocol import (
    CaptureProtocol,
    Judging,
    LuaPart,
    PacketFacts,
    Packets,
    Plugins,
    Traffic,
)
from msmqwire.constants import hresult_name
from msmqwire.names.printable import safe
from msmqwire.rpc.constants import RPC_PORTS, PduType, status_name
from msmqwire.rpc.pdus import COMMON_HEADER_SIZE
from msmqwire.rpc.rpc_packet import PDU_KINDS, RpcPacket

_LUA_CONSTANTS: Final = {
    "RPC_HEADER_SIZE": COMMON_HEADER_SIZE,
    **{f"RPC_{kind.name}": kind.value for kind in PduType},
}
_GROUPS: Final = {PduType.REQUEST: "call", PduType.RESPONSE: "answer", PduType.FAULT: "answer"}


def packet_to_json(packet: RpcPacket) -> dict[str, Any]:
    """Return the fields, and the facts about a call beside its bytes."""
    result: dict[str, Any] = {"fields": packet.to_json()}
    if packet.queue:
        result["queue"] = packet.queue
    if packet.security is not None:
        result["security"] = packet.security.to_json()
    return result


def summary_with(packet: RpcPacket, exchange: int | None, parts: Iterable[str]) -> str:
    """Return a packet in one line, with the parts that are about its call."""
    shown = [] if exchange is None else [f"#{exchange}"]
    if packet.queue:
        shown.append(packet.queue)
    if packet.ptype == PduType.FAULT:
        if packet.procedure is not None:
            shown.append(packet.procedure.name)
        shown.append(status_text(packet.pdu.record.status))
    shown += parts
    if packet.procedure is None and packet.opnum is not None:
        shown.append(f"opnum {packet.opnum}")
    if packet.encrypted:
        shown.append("encrypted")
    if packet.security is not None and packet.security.user:
        shown.append(f"by {packet.security.user}")
    return safe(" ".join(shown))


def status_text(number: int) -> str:
    """Return the name of an HRESULT or of a status of RPC."""
    name = hresult_name(number)
    return status_name(number) if name.startswith("0x") else name


def group_of(packet: RpcPacket) -> str:
    """Return the group of a packet in a report."""
    return _GROUPS.get(PduType(packet.ptype), "handshake")


def _summary(packet: RpcPacket, exchange: int | None) -> str:
    return summary_with(packet, exchange, ())


def _facts(packet: RpcPacket, _transport: str) -> PacketFacts:
    return PacketFacts("RPC", group_of(packet))


PROTOCOL: Final = CaptureProtocol(
    name="rpc",
    order=30,
    packets=Packets(
        type=RpcPacket,
        kinds=PDU_KINDS,
        to_json=packet_to_json,
        summary=_summary,
        facts=_facts,
        placed_fields="msmqwire.analysis.dissection.rpc_fields:placed_fields",
    ),
    traffic=Traffic(
        stream_ports=RPC_PORTS,
        dissectors=("msmqwire.analysis.dissection.rpc_connection:Rpc",),
        reduce="msmqwire.analysis.dissection.rpc_pickle:reduce",
    ),
    judging=Judging(
        judge="msmqwire.analysis.lint.rpc:lint_rpc",
        exports=(
            "msmqwire.analysis.lint.rpc:lint_malformed_rpc",
            "msmqwire.analysis.lint.rpc:lint_rpc",
        ),
        of_cut=("ATTACK-RPC-FRAGMENT",),
    ),
    plugins=Plugins(
        scapy="msmqwire.plugins.scapy.rpc",
        lua=LuaPart(declarations="rpc_fields", functions="rpc", constants=_LUA_CONSTANTS),
        fuzz=("rpc",),
    ),
)
