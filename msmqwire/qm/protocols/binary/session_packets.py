"""Packets of the session itself: building and reading them."""

from __future__ import annotations

from collections.abc import Sequence

from msmqwire.headers import SESSION_HEADER
from msmqwire.packets import SESSION_ACK
from msmqwire.qm.model.message import TxSequenceId
from msmqwire.schema import Record


def session_ack(header: Sequence[int]) -> bytes:
    """Build a SessionAck packet from the fields of a SessionHeader in order: [MS-MQQB] 2.2.6."""
    return SESSION_ACK.build({"SessionHeader": dict(zip(SESSION_HEADER.fields, (*header, 0), strict=True))})


def acknowledged(packet: Record) -> tuple[TxSequenceId, int, int]:
    """Which message an OrderAck or FinalAck is about: sequence, number, and MessageID (0 in an OrderAck)."""
    order = packet.schema.name == "OrderAck"
    body = packet.OrderAckBody if order else packet.FinalAckBody
    sequence = TxSequenceId(body.TxSequenceID.TimeStamp, body.TxSequenceID.Ordinal)
    return sequence, body.TxSequenceNumber, 0 if order else body.MessageID
