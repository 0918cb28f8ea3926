"""Observations of messages as rows, between stages that run in different tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from msmqwire.analysis.fate.model import EventKind
from msmqwire.analysis.fate.observations import (
    AboutNumber,
    Attributes,
    Claim,
    Numbered,
    Observation,
    Where,
)

_TEXT, _BOOL, _INT32, _INT64 = pa.string(), pa.bool_(), pa.int32(), pa.int64()
_ATTRIBUTES: Final = pa.struct(
    [
        ("label", _TEXT),
        ("destination", _TEXT),
        ("destination_qm", _TEXT),
        ("admin_queue", _TEXT),
        ("transport", _TEXT),
        ("message_class", _INT32),
        ("class_name", _TEXT),
        ("body_size", _INT64),
        ("recoverable", _BOOL),
        ("transactional", _BOOL),
        ("ack_flags", _INT32),
        ("journal_negative", _BOOL),
        ("sent_time", _INT64),
        ("time_to_reach_queue", _INT64),
        ("time_to_be_received", _INT64),
        ("hop_count", _INT32),
        ("beginning", pa.binary()),
    ]
)
SIGHTING_SCHEMA: Final = pa.schema(
    [
        ("key", _TEXT),
        ("group", _TEXT),
        ("position", _INT64),
        ("time_ns", _INT64),
        ("stream", _INT64),
        ("file", _TEXT),
        ("frame", _INT64),
        ("src", _TEXT),
        ("dst", _TEXT),
        ("what", _TEXT),
        ("message_class", _INT32),
        ("sender_qm", _TEXT),
        ("receiver_qm", _TEXT),
        ("acknowledged_by", _TEXT),
        ("is_certain", _BOOL),
        ("detail", _TEXT),
        ("message", _ATTRIBUTES),
        ("number", _INT64),
        ("owner", _TEXT),
        ("is_received", _BOOL),
        ("destination_qm", _TEXT),
    ]
)
"""A row for each sighting. Those with a ``group`` are about a number: messages that have one have no
``what``, and observations of one no ``key``; or a claim of an address, which has no ``number``.
"""


def sighting_row(sighting: Observation | Numbered | AboutNumber | Claim) -> dict[str, Any]:
    """Return a sighting as a row of `SIGHTING_SCHEMA`."""
    row = sighting._asdict()
    row |= row.pop("where")._asdict()
    if isinstance(sighting, Observation) and sighting.message is not None:
        row["message"] = sighting.message._asdict()
    return row


def sighting_of(row: Mapping[str, Any]) -> Observation | Numbered | AboutNumber | Claim:
    """Return the sighting of such a row."""
    where = Where(*(row[name] for name in Where._fields))
    if row["group"] is None:
        message = row["message"]
        return Observation(
            key=row["key"],
            where=where,
            what=EventKind(row["what"]),
            message_class=row["message_class"],
            sender_qm=row["sender_qm"],
            receiver_qm=row["receiver_qm"],
            acknowledged_by=row["acknowledged_by"],
            is_certain=row["is_certain"],
            detail=row["detail"],
            message=None if message is None else Attributes(*(message[name] for name in Attributes._fields)),
        )
    if row["number"] is None:
        return Claim(row["group"], where, row["key"])
    about = row["group"], row["number"], row["owner"], where
    if row["what"] is None:
        return Numbered(*about, row["key"], row["is_received"], row["receiver_qm"], row["destination_qm"])
    return AboutNumber(*about, EventKind(row["what"]), row["sender_qm"])
