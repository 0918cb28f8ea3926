"""Packets in one line each, for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msmqwire.analysis.dissection.contents import decoded, message_body
from msmqwire.analysis.dissection.item import Item, Packet
from msmqwire.analysis.dissection.message_security import SignatureStatus
from msmqwire.analysis.protocols import protocol_of
from msmqwire.constants import class_name
from msmqwire.headers.message_summary import message_summary
from msmqwire.names.printable import cut, safe
from msmqwire.schema import Record

BODY_MAX: Final = 64 << 10
"""Bytes of a body that is decoded for a summary: there is one of each packet."""
TEXT_MAX: Final = 60
"""Characters of a body in a summary."""


def summary(item: Item) -> str:
    """Summarise an item in one line."""
    if item.error is not None:
        return safe(str(item.error))
    if item.packet is None:
        return safe(item.reason)
    return " ".join(filter(None, [packet_summary(item.packet, item.exchange), _protection(item)]))


def summary_with_body(item: Item) -> str:
    """Summarise an item in one line, with the format of its body and the beginning of its text."""
    return " ".join(filter(None, [summary(item), _inside(item)]))


def packet_summary(packet: Packet, exchange: int | None = None) -> str:
    """Summarise a packet, all of whose fields are set; nothing if its kind says all."""
    if isinstance(packet, Record):
        summarise = _SUMMARIES.get(packet.schema.name)
        return summarise(packet) if summarise else ""
    protocol = protocol_of(packet)
    return "" if protocol is None else protocol.packets.summary(packet, exchange)


def _protection(item: Item) -> str:
    """Return the status of the signature and the encryption of a message."""
    security = item.packet.get("SecurityHeader") if isinstance(item.packet, Record) else None
    if security is None:
        return ""
    parts = []
    if security.Flags.EB:
        parts.append("decrypted" if item.decrypted else "encrypted")
    if item.signature_status is not SignatureStatus.NONE:
        parts.append(f"signature {item.signature_status}")
    return ", ".join(parts)


def _inside(item: Item) -> str:
    """Return a summary of the body of a message: its format and the beginning of its text."""
    message = message_body(item.packet, item.examiner)
    if message is None or not 0 < len(message.body) <= BODY_MAX:
        return ""
    found = decoded(message)
    text = safe(cut(found.text, TEXT_MAX))
    return f"{found.format} {text}".rstrip() if found.format != "bytes" else ""


def _order_ack(packet: Record) -> str:
    body = packet.get("OrderAckBody") or packet.get("FinalAckBody")
    message_class = packet.MessagePropertiesHeader.MessageClass
    return order_ack_summary(message_class, body.TxSequenceNumber, body.TxPreviousSequenceNumber)


def order_ack_summary(message_class: int, number: int, previous: int) -> str:
    """Summarise an OrderAck or a FinalAck of which these fields are known."""
    return f"{class_name(message_class)} #{number} previous #{previous}"


def _session_ack(packet: Record) -> str:
    session = packet.SessionHeader
    return session_ack_summary(
        session.AckSequenceNumber,
        session.RecoverableMsgAckSeqNumber,
        session.RecoverableMsgAckFlags,
        session.WindowSize,
    )


def session_ack_summary(received: int, stored: int, stored_flags: int, window: int) -> str:
    """Summarise a SessionAck of which these fields are known."""
    text = f"received {received}, window {window}"
    return f"{text}, stored {stored} {stored_flags:#x}" if stored else text


def _establish(packet: Record) -> str:
    header = packet.EstablishConnectionHeader
    refused = " refused" if packet.InternalHeader.Flags.CS else ""
    return f"client {header.ClientGuid} server {header.ServerGuid}{refused}"


def _parameters(packet: Record) -> str:
    header = packet.ConnectionParametersHeader
    return (
        f"acknowledge after {header.RecoverableAckTimeout} ms, wait {header.AckTimeout} ms,"
        f" window {header.WindowSize}"
    )


def _ping(packet: Record) -> str:
    refused = " refused" if packet.Flags.RF else ""
    return f"cookie {packet.Cookie} queue manager {packet.QMGuid}{refused}"


_SUMMARIES: Final[dict[str, Callable[[Record], str]]] = {
    "UserMessage": message_summary,
    "OrderAck": _order_ack,
    "FinalAck": _order_ack,
    "SessionAck": _session_ack,
    "EstablishConnection": _establish,
    "ConnectionParameters": _parameters,
    "Ping": _ping,
}
