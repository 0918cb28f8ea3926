"""PGM, which carries multicast messages: all that the analysis of captures knows of it."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.analysis.protocols.protocol import (
    CaptureProtocol,
    Judging,
    PacketFacts,
    Packets,
    Plugins,
    Traffic,
)
from msmqwire.names.printable import counted
from msmqwire.pgm import PgmPacket
from msmqwire.pgm.constants import UDP_PORTS
from msmqwire.pgm.packet_json import fields_to_json

KIND: Final = "PgmPacket"


def _to_json(packet: PgmPacket) -> dict[str, Any]:
    return {"fields": fields_to_json(packet)}


def _summary(packet: PgmPacket, _exchange: int | None) -> str:
    fields = fields_to_json(packet)
    numbers = [f"{name} {value}" for name, value in fields["Body"].items() if isinstance(value, int)]
    name = fields["TypeName"] or f"type {packet.Type}"
    return ", ".join([name, *numbers, counted(len(packet.data), "byte")])


def _facts(_packet: PgmPacket, _transport: str) -> PacketFacts:
    return PacketFacts("SRMP over PGM", "other")


PROTOCOL: Final = CaptureProtocol(
    name="pgm",
    order=20,
    packets=Packets(
        type=PgmPacket,
        kinds=(KIND,),
        to_json=_to_json,
        summary=_summary,
        facts=_facts,
        placed_fields="msmqwire.analysis.dissection.pgm_fields:placed_fields",
    ),
    traffic=Traffic(
        datagram_ports=UDP_PORTS, dissectors=("msmqwire.analysis.dissection.pgm_items:PgmItems",)
    ),
    judging=Judging(
        judge="msmqwire.analysis.lint.pgm:lint_built_pgm", exports=("msmqwire.analysis.lint.pgm:lint_pgm",)
    ),
    plugins=Plugins(scapy="msmqwire.plugins.scapy.pgm", fuzz=("pgm",)),
)
