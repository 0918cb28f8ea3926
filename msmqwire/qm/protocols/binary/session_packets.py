"""Packets of the session itself: building and reading them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msmqwire.packets import SESSION_ACK
from msmqwire.qm.model.message import TxSequenceId
from msmqwire.qm.rules.packet_patch import session_header
from msmqwire.schema import Record

# MQQB-3.1.6.4-02
_HEADERS: Final = SESSION_ACK.build({"SessionHeader": {}})[: -len(session_header((0,) * 6))]
"""The bytes before the SessionHeader of a SessionAck: always the same."""


def session_ack(header: Sequence[int]) -> bytes:
    """Build a SessionAck packet from the fields of a SessionHeader in order: [MS-MQQB] 2.2.6."""
    return _HEADERS + session_header(header)


def acknowledged(packet: Record) -> tuple[TxSequenceId, int, int]:
    """Return the acknowledged message: sequence, number, and MessageID (0 in an OrderAck)."""
    order = packet.schema.name == "OrderAck"
    body = packet.OrderAckBody if order else packet.FinalAckBody
    sequence = TxSequenceId(body.TxSequenceID.TimeStamp, body.TxSequenceID.Ordinal)
    return sequence, body.TxSequenceNumber, 0 if order else body.MessageID
