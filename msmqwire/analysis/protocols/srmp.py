"""SRMP over HTTP and PGM: all that the analysis of captures knows of it."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.analysis.protocols.protocol import (
    CaptureProtocol,
    Columns,
    Judging,
    LuaPart,
    NameSet,
    PacketBody,
    PacketFacts,
    Packets,
    Plugins,
    ProtocolColumn,
    Traffic,
)
from msmqwire.constants import class_name
from msmqwire.names.printable import counted, safe
from msmqwire.srmp import message_json
from msmqwire.srmp.attributes import attribute, attributes
from msmqwire.srmp.compound import compound_to_json
from msmqwire.srmp.http_message import StatusLine
from msmqwire.srmp.kinds import EnvelopeKind
from msmqwire.srmp.message import SrmpMessage

_HTTP_PORT: Final = 80
_COLUMNS: Final = tuple(
    ProtocolColumn(*column)
    for column in (
        ("srmp_id", "TEXT", "Identifier of a message of SRMP: uuid:number@GUID."),
        ("srmp_stream", "TEXT", "Stream that it is part of, or acknowledges: uid:GUID\\number."),
        ("receipt", "TEXT", "delivery, stream, final stream or commitment receipt."),
        ("receipt_id", "TEXT", "Identifier of the message that a receipt is about."),
        ("receipt_ordinal", "INT64", "Number of the last message of the stream that a receipt covers."),
        ("http_status", "INT32", "Status of a response of HTTP."),
    )
)


def _summary(message: SrmpMessage, exchange: int | None) -> str:
    number = "" if exchange is None else f"#{exchange}"
    if isinstance(message.start, StatusLine):
        return safe(
            " ".join(filter(None, ["response", number, str(message.start.status), message.start.reason]))
        )
    label, message_class = attribute("label", message), attribute("message_class", message)
    parts = ["request", number, attribute("destination", message) or ""]
    if message_class:
        parts.append(class_name(message_class))
    if label is not None:
        parts.append(f'"{label}"')
    if attribute("tx_number", message) is not None:
        parts.append(f"transactional #{attribute('tx_number', message)}")
    elif attribute("recoverable", message):
        parts.append("recoverable")
    parts.append(counted(attribute("body_size", message), "byte"))
    return safe(" ".join(part for part in parts if part))


def _to_json(message: SrmpMessage) -> dict[str, Any]:
    return {"fields": message_json.to_json(message)["fields"]}


def _body(message: SrmpMessage) -> PacketBody | None:
    if isinstance(message.start, StatusLine):
        return None
    return PacketBody(message.body or b"", attribute("body_type", message) or 0, message.extension or b"")


def _signature_status(message: SrmpMessage) -> str | None:
    if message.envelope is None:
        return None
    return "none" if message.envelope.Signature is None else "unsupported"


def _facts(message: SrmpMessage, transport: str) -> PacketFacts:
    protocol = "SRMP over PGM" if transport == "pgm" else "SRMP over HTTP"
    if isinstance(message.start, StatusLine):
        return PacketFacts(protocol, "acknowledgement")
    number, source = attribute("message_id", message), attribute("source_qm", message)
    return PacketFacts(
        protocol,
        "acknowledgement" if attribute("message_class", message) else "message",
        queue=safe(attribute("destination", message) or ""),
        label=safe(attribute("label", message) or ""),
        body_size=attribute("body_size", message),
        identity=(source, number) if source and number else None,
    )


PROTOCOL: Final = CaptureProtocol(
    name="srmp",
    order=10,
    packets=Packets(
        type=SrmpMessage,
        kinds=(message_json.PACKET,),
        to_json=_to_json,
        summary=_summary,
        facts=_facts,
        placed_fields="msmqwire.analysis.dissection.srmp_fields:placed_fields",
        body=_body,
        signature_status=_signature_status,
    ),
    traffic=Traffic(
        stream_ports=(_HTTP_PORT,),
        dissectors=("msmqwire.analysis.dissection.http_connection:SrmpOverHttp",),
        in_messages=compound_to_json,
        in_payloads="msmqwire.analysis.dissection.srmp_apdus:read_apdu",
    ),
    judging=Judging(
        judge="msmqwire.analysis.lint.srmp:lint_srmp",
        judge_bytes="msmqwire.analysis.lint.srmp_attacks:lint_srmp_bytes",
        exports=(
            "msmqwire.analysis.lint.srmp:lint_srmp",
            "msmqwire.analysis.lint.srmp_attacks:lint_malformed_srmp",
        ),
        of_cut=("SRMP-3.1.5.1.2-01",),
    ),
    columns=Columns(
        groups={"receipt": _COLUMNS},
        attributes=attributes,
        queue="destination",
        values={
            "receipt": NameSet(
                "receipt", tuple(kind.value for kind in EnvelopeKind if kind is not EnvelopeKind.USER_MESSAGE)
            )
        },
    ),
    follower="msmqwire.analysis.fate.srmp:SrmpFollower",
    plugins=Plugins(
        scapy="msmqwire.plugins.scapy.srmp",
        lua=LuaPart(declarations="srmp_fields", functions="srmp", in_message="show_srmp(pinfo, item)"),
        fuzz=("srmp",),
    ),
)
