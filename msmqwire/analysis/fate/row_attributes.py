"""The attributes of messages in rows, for observations."""

from __future__ import annotations

from typing import Final

from msmqwire.analysis.fate.model import TEXT_MAX
from msmqwire.analysis.fate.observations import NULL_GUID, Attributes
from msmqwire.analysis.fate.rows import Row
from msmqwire.names.printable import cut

NO_LIMIT: Final = 0xFFFFFFFF
"""Seconds, or more, that stand for no limit."""


def attributes_of(row: Row, transport: str) -> Attributes:
    """Return the attributes of the message in a packet."""
    reach, receive = row.time_to_reach_queue, row.time_to_be_received
    return Attributes(  # in their order: there is one for each message
        cut_text(row.label),
        cut_text(row.destination),
        known(row.destination_qm) or None,
        cut_text(row.admin_queue),
        transport,
        row.message_class or 0,
        row.class_name or "NORMAL",
        row.body_size,
        bool(row.recoverable),
        row.tx_number is not None,
        row.ack_flags or 0,
        bool(row.journal_negative),
        row.sent_time,
        None if reach is None or reach >= NO_LIMIT else reach,
        None if receive is None or receive >= NO_LIMIT else receive,
        row.hop_count or 0,
        None if row.encrypted else row.body,
    )


def cut_text(text: str | None) -> str | None:
    """Return a text as long as it is kept."""
    return text if text is None or len(text) <= TEXT_MAX else cut(text, TEXT_MAX)


def known(guid: str | None) -> str:
    """Return the GUID of a queue manager; empty if it is not known."""
    return "" if guid is None or guid == NULL_GUID else guid
