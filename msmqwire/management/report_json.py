"""The report of a queue from its JSON, as `QueueReport.to_json` writes it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from msmqwire.constants import CONNECTION_STATUS
from msmqwire.management.reports import ConnectionEvent, Eod, QueueReport, SequencePosition, Source

_STATUSES: Final = {words: number for number, words in CONNECTION_STATUS.items()}
_TIMES: Final = ("last_ack_time", "resend_time")
_POSITIONS: Final = ("last_ack", "first_non_ack", "last_non_ack", "next_sequence")


def queue_report_from_json(data: Mapping[str, Any]) -> QueueReport:
    """Return the report that JSON of our own was made of; `path` is also the name that was asked for.

    Raises KeyError, TypeError and ValueError for other JSON.
    """
    nested = {
        "asked": data["path"],
        "next_hops": tuple(data["next_hops"]),
        "eod": None if data["eod"] is None else _eod(data["eod"]),
        "sources": tuple(_source(one) for one in data["sources"]),
        "connection_history": tuple(_event(one) for one in data["connection_history"]),
        "subqueues": None if data["subqueues"] is None else tuple(data["subqueues"]),
    }
    return QueueReport(**{**data, **nested})


def _eod(data: Mapping[str, Any]) -> Eod:
    times = {name: _time(data[name]) for name in _TIMES}
    positions = {name: None if data[name] is None else SequencePosition(**data[name]) for name in _POSITIONS}
    return Eod(**{**data, **times, **positions})


def _source(data: Mapping[str, Any]) -> Source:
    return Source(**{**data, "sender": UUID(data["sender"]), "last_access": _time(data["last_access"])})


def _event(data: Mapping[str, Any]) -> ConnectionEvent:
    words, error = data["status"], data["error"]
    status = _STATUSES[words] if words in _STATUSES else int(words, 16)
    return ConnectionEvent(
        _time(data["time"]), status, 0 if error is None else int(error, 16), tuple(data["addresses"])
    )


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
