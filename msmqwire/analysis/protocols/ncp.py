"""NCP, by which clients of NetWare ask for queue services: all that the analysis of captures knows of it."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.analysis.protocols.protocol import (
    CaptureProtocol,
    Columns,
    Judging,
    NameSet,
    PacketFacts,
    Packets,
    Plugins,
    ProtocolColumn,
    Traffic,
)
from msmqwire.names.printable import safe
from msmqwire.ncp.attributes import attribute, attributes
from msmqwire.ncp.constants import CompletionCode
from msmqwire.ncp.headers import NCP_PORT
from msmqwire.ncp.ncp_packet import KINDS, NcpPacket
from msmqwire.ncp.packets import CALLS_BY_NAME, NcpReply
from msmqwire.ncp.readings import Readings

_TITLE: Final = "NetWare (NCP)"
_CONNECTIONS: Final = ("CreateConnection", "DestroyConnection")
_SHOWN: Final = {
    "object_name": "{}",
    "property_name": "{}",
    "member_name": "{}",
    "queue_id": "queue {:08x}",
    "job_number": "job {}",
    "job_position": "position {}",
    "job_description": '"{}"',
}
"""The fields of a packet that a summary shows, and their form."""
_HEX_BYTES: Final = frozenset(f"{number:#04x}" for number in range(0x100))


def _columns(*columns: tuple[str, str, str]) -> tuple[ProtocolColumn, ...]:
    return tuple(ProtocolColumn(*column) for column in columns)


_COLUMNS: Final = {
    "ncp": _columns(
        ("call", "TEXT", "Name of the call, of a reply too."),
        ("completion_code", "INT32", "Completion code of a reply; 0 is success."),
        ("completion", "TEXT", "Its name."),
        ("ncp_connection", "INT32", "Number of the connection at the file server."),
        ("ncp_sequence", "INT32", "Number of the request in its connection, modulo 256."),
        ("object_id", "INT64", "ID of a bindery object."),
        ("object_type", "INT32", "Its type; of a queue to be created, that of the queue."),
        ("object_name", "TEXT", "Its name."),
        ("property_name", "TEXT", "Property of the object."),
        ("member_name", "TEXT", "Object in a set, or to be put there."),
    ),
    "job": _columns(
        ("queue_id", "INT64", "ID of the queue."),
        ("queue_status", "INT32", "1 no jobs may be added, 2 no servers attach, 4 no jobs are serviced."),
        ("job_count", "INT64", "Jobs in the queue."),
        ("job_number", "INT64", "Number of the job."),
        ("job_type", "INT32", "Type of the job, or the type asked for; 65535 is any."),
        ("job_position", "INT64", "Place in the queue, or the place asked for; 1 is the head."),
        ("job_flags", "INT32", "8 auto start, 16 restart, 32 open, 64 user hold, 128 operator hold."),
        ("client_id", "INT64", "ID of who submitted it."),
        ("target_server_id", "INT64", "ID of the queue server asked for; 4294967295 is any."),
        ("target_execution_time", "SECONDS", "Not before this time of the server; null is at once."),
        ("job_entry_time", "SECONDS", "When it was put into the queue, by the server's clock."),
        ("servicing_server_id", "INT64", "ID of the queue server that has it; 0 is none."),
        ("job_file_name", "TEXT", "Name of its file."),
        ("job_file_size", "INT64", "Bytes of data in its file."),
        ("job_description", "TEXT", "A description, for people."),
        ("queue_record", "BINARY", "Data of the client for the queue server."),
    ),
}


def _summary(packet: NcpPacket, exchange: int | None) -> str:
    parts = [] if exchange is None else [f"#{exchange}"]
    parts += ["repeated"] * packet.is_repeated
    if packet.is_busy:
        parts.append("busy")
    elif isinstance(packet.packet, NcpReply) and packet.packet.header.CompletionCode:
        parts.append(packet.completion or "")
    for name, form in _SHOWN.items():
        value = attribute(name, packet)
        if value is not None:
            parts.append(form.format(value))
    return safe(" ".join(parts))


def _to_json(packet: NcpPacket) -> dict[str, Any]:
    return {"fields": packet.to_json()}


def _facts(packet: NcpPacket, _transport: str) -> PacketFacts:
    group = "answer" if packet.kind.endswith(" reply") else "call"
    if packet.kind.startswith(_CONNECTIONS):
        group = "handshake"
    number = attribute("queue_id", packet)
    queue = "" if number is None else f"NetWare queue {number:08x}"
    label = safe(attribute("job_description", packet) or "")
    return PacketFacts(_TITLE, group, queue, label, is_again=packet.is_repeated)


PROTOCOL: Final = CaptureProtocol(
    name="ncp",
    order=40,
    packets=Packets(
        type=NcpPacket,
        kinds=KINDS,
        to_json=_to_json,
        summary=_summary,
        facts=_facts,
        placed_fields="msmqwire.analysis.dissection.ncp_fields:placed_fields",
    ),
    traffic=Traffic(
        stream_ports=(NCP_PORT,),
        datagram_ports=(NCP_PORT,),
        dissectors=(
            "msmqwire.analysis.dissection.ncp_connection:NcpOverTcp",
            "msmqwire.analysis.dissection.ncp_datagrams:NcpDatagrams",
        ),
        readings=Readings,
    ),
    judging=Judging(
        judge="msmqwire.analysis.lint.ncp:lint_ncp",
        exports=(
            "msmqwire.analysis.lint.ncp_session:NcpLint",
            "msmqwire.analysis.lint.ncp_attacks:lint_malformed_ncp",
        ),
    ),
    columns=Columns(
        groups=_COLUMNS,
        attributes=attributes,
        values={
            "call": NameSet("call of NCP", tuple(CALLS_BY_NAME)),
            "completion": NameSet(
                "completion of NCP", tuple(CompletionCode.__members__), unnamed=lambda: _HEX_BYTES
            ),
        },
    ),
    plugins=Plugins(scapy="msmqwire.plugins.scapy.netware", fuzz=("netware",)),
)
