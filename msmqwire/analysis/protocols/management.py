"""Queue management over DCE/RPC, [MS-MQMR]: all that the analysis of captures knows of it."""

from __future__ import annotations

from collections.abc import Iterator
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
from msmqwire.analysis.protocols.rpc import group_of, packet_to_json, status_text, summary_with
from msmqwire.constants import VarEnum
from msmqwire.management.attributes import attributes
from msmqwire.management.constants import action_of
from msmqwire.management.management_packet import KINDS, OBJECTS, ManagementPacket, ManagementProperty
from msmqwire.management.variants import plain
from msmqwire.names.printable import counted, cut, safe

_SHOWN_MAX: Final = 8  # properties in a summary
_TEXT_MAX: Final = 60  # characters of a value in a summary
_ABSENT: Final = (VarEnum.VT_NULL, VarEnum.VT_EMPTY)
_COLUMNS: Final = tuple(
    ProtocolColumn(*column)
    for column in (
        ("managed_object", "TEXT", "The object of a call of queue management, of its answer too."),
        ("managed_queue", "TEXT", "Format name of the queue that it is about."),
        ("management_action", "TEXT", "The action: PAUSE, RESUME and others."),
        ("property_ids", "TEXT", "Identifiers of the properties that it asks for, with commas between."),
        ("property_names", "TEXT", "Their names, without PROPID_MGMT_MSMQ_ or PROPID_MGMT_QUEUE_."),
        ("property_values", "TEXT", "JSON object of the values in an answer, by these names."),
        ("management_status", "INT64", "HRESULT of an answer."),
        ("management_user", "TEXT", "User of the connection, as domain and name, where NTLM shows it."),
    )
)


def _to_json(packet: ManagementPacket) -> dict[str, Any]:
    return {**packet_to_json(packet), "management": packet.management_json()}


def _summary(packet: ManagementPacket, exchange: int | None) -> str:
    return summary_with(packet, exchange, _of_call(packet))


def _of_call(packet: ManagementPacket) -> Iterator[str]:
    """Yield the parts of the summary that are about the call."""
    asked, status = packet.asked, packet.status
    if asked is not None:
        if not packet.queue:
            yield asked.object
        if asked.action:
            yield action_of(asked.action) or repr(cut(asked.action, _TEXT_MAX))
        if packet.properties and (packet.is_request or status == 0):
            shown = [_shown(one) for one in packet.properties[:_SHOWN_MAX]]
            more = len(packet.properties) - len(shown)
            yield " ".join([*shown, *[f"and {more} more"] * (more > 0)])
    if status is not None and (status or not packet.properties):
        yield status_text(status)


def _shown(one: ManagementProperty) -> str:
    """Return a property, with its value if it has one."""
    if one.value is None:
        return one.short_name
    if one.value.vt in _ABSENT:
        return f"{one.short_name}=none"
    value = plain(one.value)
    if isinstance(value, tuple):
        return f"{one.short_name}={counted(len(value), 'value')}"
    return f"{one.short_name}={cut(safe(value.hex() if isinstance(value, bytes) else str(value)), _TEXT_MAX)}"


def _facts(packet: ManagementPacket, _transport: str) -> PacketFacts:
    return PacketFacts("Queue management (RPC)", group_of(packet), safe(packet.queue))


PROTOCOL: Final = CaptureProtocol(
    name="management",
    order=32,
    packets=Packets(
        type=ManagementPacket,
        kinds=KINDS,
        to_json=_to_json,
        summary=_summary,
        facts=_facts,
        placed_fields="msmqwire.analysis.dissection.rpc_fields:placed_fields",
    ),
    traffic=Traffic(dissectors=(), interface="msmqwire.analysis.dissection.management_calls:ManagementCalls"),
    judging=Judging(
        judge="msmqwire.analysis.lint.management:lint_management",
        judge_stub="msmqwire.analysis.lint.management_stubs:rule_of_stub",
    ),
    columns=Columns(
        groups={"management": _COLUMNS},
        attributes=attributes,
        values={"managed_object": NameSet("kind of object", tuple(OBJECTS.values()))},
        queue="managed_queue",
        is_later=True,
    ),
    plugins=Plugins(scapy="msmqwire.plugins.scapy.management", fuzz=("management",)),
)
