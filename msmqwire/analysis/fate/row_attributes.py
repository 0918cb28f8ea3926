"""The attributes of messages in rows, for observations."""

from __future__ import annotations

from typing import Final

from msmqwire.analysis.fate.model import TEXT_MAX
from msmqwire.analysis.fate.observations import NULL_GUID, Attributes
from msmqwire.analysis.fate.rows import Row
from msmqwire.names.printable import cut

_NO_LIMIT: Final = 0xFFFFFFFF


def attributes_of(row: Row, transport: str) -> Attributes:
    """Return the attributes of the message in a packet."""
    return Attributes(
        label=cut_text(row.label),
        destination=cut_text(row.destination),
        destination_qm=known(row.destination_qm) or None,
        admin_queue=cut_text(row.admin_queue),
        transport=transport,
        message_class=row.message_class or 0,
        class_name=row.class_name or "NORMAL",
        body_size=row.body_size,
        recoverable=bool(row.recoverable),
        transactional=row.tx_number is not None,
        ack_flags=row.ack_flags or 0,
        journal_negative=bool(row.journal_negative),
        sent_time=row.sent_time,
        time_to_reach_queue=_limit(row.time_to_reach_queue),
        time_to_be_received=_limit(row.time_to_be_received),
        hop_count=row.hop_count or 0,
        beginning=None if row.encrypted else row.body,
    )


def cut_text(text: str | None) -> str | None:
    """Return a text as long as it is kept."""
    return None if text is None else cut(text, TEXT_MAX)


def known(guid: str | None) -> str:
    """Return the GUID of a queue manager; empty if it is not known."""
    return "" if guid is None or guid == NULL_GUID else guid


def _limit(seconds: int | None) -> int | None:
    return None if seconds is None or seconds >= _NO_LIMIT else seconds
