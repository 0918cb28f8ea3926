"""Packets in one line each, for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msmqwire.analysis.dissection.contents import decoded, message_body
from msmqwire.analysis.dissection.item import Item, Packet
from msmqwire.analysis.dissection.message_security import SignatureStatus
from msmqwire.analysis.protocols import protocol_of
from msmqwire.constants import class_name, hresult_name
from msmqwire.headers.queue_names import destination
from msmqwire.names.printable import counted, cut, safe
from msmqwire.pgm import PgmPacket
from msmqwire.pgm.packet_json import fields_to_json
from msmqwire.remote_read.constants import Action, Opnum
from msmqwire.remote_read.rpc_packet import RpcPacket
from msmqwire.rpc.constants import PduType, status_name
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
    match packet:
        case PgmPacket():
            return _pgm(packet)
        case RpcPacket():
            return _rpc(packet, exchange)
        case Record():
            summarise = _SUMMARIES.get(packet.schema.name)
            return summarise(packet) if summarise else ""
    protocol = protocol_of(packet)
    return "" if protocol is None else protocol.summary(packet, exchange)


def queue_text(packet: Record) -> str:
    """Return the destination of a message as a format name; a direct one as in the packet."""
    return safe(destination(packet.UserHeader) or "")


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


def _message(packet: Record) -> str:
    properties = packet.MessagePropertiesHeader
    label = properties.Label
    parts = [queue_text(packet)]
    if properties.MessageClass:
        parts.append(class_name(properties.MessageClass))
    if label is not None:
        parts.append(f'"{safe(label)}"' if isinstance(label, str) else f"label {label.hex()}")
    if packet.TransactionHeader is not None:
        parts.append(f"transactional #{packet.TransactionHeader.TxSequenceNumber}")
    elif packet.UserHeader.Flags.DM:
        parts.append("recoverable")
    parts.append(counted(properties.MessageSize, "byte"))
    return " ".join(part for part in parts if part)


def _order_ack(packet: Record) -> str:
    body = packet.get("OrderAckBody") or packet.get("FinalAckBody")
    name = class_name(packet.MessagePropertiesHeader.MessageClass)
    return f"{name} #{body.TxSequenceNumber} previous #{body.TxPreviousSequenceNumber}"


def _session_ack(packet: Record) -> str:
    session = packet.SessionHeader
    text = f"received {session.AckSequenceNumber}, window {session.WindowSize}"
    if session.RecoverableMsgAckSeqNumber:
        text += f", stored {session.RecoverableMsgAckSeqNumber} {session.RecoverableMsgAckFlags:#x}"
    return text


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


def _pgm(packet: PgmPacket) -> str:
    fields = fields_to_json(packet)
    numbers = [f"{name} {value}" for name, value in fields["Body"].items() if isinstance(value, int)]
    name = fields["TypeName"] or f"type {packet.Type}"
    return ", ".join([name, *numbers, counted(len(packet.data), "byte")])


def _rpc(packet: RpcPacket, exchange: int | None) -> str:
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
        parts += ["cut:"] * packet.message.cut + [_message(packet.message.whole)]
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


_SUMMARIES: Final[dict[str, Callable[[Record], str]]] = {
    "UserMessage": _message,
    "OrderAck": _order_ack,
    "FinalAck": _order_ack,
    "SessionAck": _session_ack,
    "EstablishConnection": _establish,
    "ConnectionParameters": _parameters,
    "Ping": _ping,
}
