"""Fates as JSON and as Arrow tables: the same names everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from msmqwire.analysis.fate.model import FateEvent, MessageFate, QueueSummary, State
from msmqwire.analysis.fate.summaries import Summed

BATCH_ROWS: Final = 4096
_TEXT, _BOOL, _INT32, _INT64 = pa.string(), pa.bool_(), pa.int32(), pa.int64()
_STATES: Final = tuple(state for state in State if state not in (State.UNKNOWN, State.SENT))


def state_column(state: str) -> str:
    """Return the name of a column for a state: ``dead_lettered``."""
    return state.replace("-", "_")


EVENT_TYPE: Final = pa.struct(
    [
        ("time_ns", _INT64),
        ("what", _TEXT),
        ("stream", _INT64),
        ("file", _TEXT),
        ("frame", _INT64),
        ("src", _TEXT),
        ("dst", _TEXT),
        ("message_class", _TEXT),
        ("detail", _TEXT),
        ("doubt", _TEXT),
    ]
)
"""An event, as `FateEvent` has it."""
FINDING_TYPE: Final = pa.struct(
    [("id", _TEXT), ("severity", _TEXT), ("path", _TEXT), ("offset", _INT64), ("message", _TEXT)]
)
"""A finding, as `msmqwire.analysis.lint.Finding` has it."""
FATE_SCHEMA: Final = pa.schema(
    [
        ("identity", _TEXT),
        ("source_qm", _TEXT),
        ("message_id", _INT64),
        ("label", _TEXT),
        ("destination", _TEXT),
        ("admin_queue", _TEXT),
        ("transport", _TEXT),
        ("message_class", _TEXT),
        ("body_size", _INT64),
        ("recoverable", _BOOL),
        ("transactional", _BOOL),
        ("sent_time", _INT64),
        ("sent_ns", _INT64),
        ("state", _TEXT),
        ("reason", _TEXT),
        ("explanation", _TEXT),
        ("stuck", _BOOL),
        ("latencies", pa.struct([(state_column(state), _INT64) for state in _STATES])),
        ("retransmissions", _INT32),
        ("hops", _INT32),
        ("events", pa.list_(EVENT_TYPE)),
        ("events_omitted", _INT64),
        ("complete", _BOOL),
        ("missing", _TEXT),
        ("sender", _TEXT),
        ("findings", pa.list_(FINDING_TYPE)),
    ]
)
"""A row for each message, as `MessageFate` has it; ``latencies`` has a field for each state."""
LATENCY_TYPE: Final = pa.struct(
    [("state", _TEXT), ("count", _INT64), ("p50", _INT64), ("p95", _INT64), ("max", _INT64)]
)
COUNT_TYPE: Final = pa.struct([("name", _TEXT), ("count", _INT64)])
SUMMARY_SCHEMA: Final = pa.schema(
    [
        ("queue", _TEXT),
        ("messages", _INT64),
        ("bytes", _INT64),
        ("states", pa.list_(COUNT_TYPE)),
        ("latencies", pa.list_(LATENCY_TYPE)),
        ("retransmissions", _INT64),
        ("stuck", _INT64),
        ("stuck_messages", pa.list_(_TEXT)),
        ("reasons", pa.list_(COUNT_TYPE)),
        ("missing", pa.list_(COUNT_TYPE)),
        ("findings", pa.list_(_TEXT)),
    ]
)
"""A row for each queue, as `QueueSummary` has it; its mappings by name are lists of names here."""


def fate_row(fate: MessageFate) -> dict[str, Any]:
    """Return a fate as a row of `FATE_SCHEMA`."""
    row = {name: getattr(fate, name) for name in FATE_SCHEMA.names}
    row["state"] = fate.state.value
    row["latencies"] = {state_column(state): fate.latencies.get(state) for state in _STATES}
    row["events"] = [event_row(event) for event in fate.events]
    row["findings"] = [finding.to_json() for finding in fate.findings]
    return row


def summed_of(row: Mapping[str, Any]) -> Summed:
    """Return the summary of a message, from a row of `FATE_SCHEMA`."""
    latencies = {state.value: row["latencies"][state_column(state)] for state in _STATES}
    known = {state: latency for state, latency in latencies.items() if latency is not None}
    found = tuple(finding["message"] for finding in row["findings"])
    kept = {name: row[name] for name in Summed._fields}
    return Summed(**kept | {"latencies": known, "findings": found})


def event_row(event: FateEvent) -> dict[str, Any]:
    """Return an event as a value of `EVENT_TYPE`."""
    row = {field.name: getattr(event, field.name) for field in EVENT_TYPE}
    return row | {"what": event.what.value}


def summary_row(summary: QueueSummary) -> dict[str, Any]:
    """Return a summary as a row of `SUMMARY_SCHEMA`."""
    row = {name: getattr(summary, name) for name in SUMMARY_SCHEMA.names}
    row["stuck_messages"] = list(summary.stuck_messages)
    row["findings"] = list(summary.findings)
    for name in ("states", "reasons", "missing"):
        row[name] = [{"name": key, "count": count} for key, count in getattr(summary, name).items()]
    row["latencies"] = [
        {"state": state, "count": one.count, "p50": one.p50, "p95": one.p95, "max": one.max}
        for state, one in summary.latencies.items()
    ]
    return row


def fate_batches(fates: Iterable[MessageFate]) -> Iterator[Any]:
    """Yield fates as record batches with `FATE_SCHEMA`."""
    pending: list[dict[str, Any]] = []
    for fate in fates:
        pending.append(fate_row(fate))
        if len(pending) == BATCH_ROWS:
            yield pa.RecordBatch.from_pylist(pending, FATE_SCHEMA)
            pending = []
    if pending:
        yield pa.RecordBatch.from_pylist(pending, FATE_SCHEMA)


def fate_json(fate: MessageFate) -> dict[str, Any]:
    """Return a fate as JSON: the attributes under their names, with the times as texts beside them."""
    data = fate_row(fate)
    data["sent"] = time_text(fate.sent_ns)
    data["latencies"] = {state_column(state): ns for state, ns in fate.latencies.items()}
    for row, event in zip(data["events"], fate.events, strict=True):
        row["time"] = time_text(event.time_ns)
    return data


def summary_json(summary: QueueSummary) -> dict[str, Any]:
    """Return a summary as JSON: the attributes under their names."""
    data = summary_row(summary)
    data["states"] = {state_column(state): count for state, count in summary.states.items()}
    data["reasons"], data["missing"] = dict(summary.reasons), dict(summary.missing)
    data["latencies"] = {
        state_column(row["state"]): {key: row[key] for key in ("count", "p50", "p95", "max")}
        for row in data["latencies"]
    }
    return data


def time_text(time_ns: int | None) -> str | None:
    """Return a time as ISO 8601 with nanoseconds, or None; also for one that no year has."""
    if time_ns is None:
        return None
    seconds, nanoseconds = divmod(time_ns, 1_000_000_000)
    second = _second_text(seconds)
    return None if second is None else f"{second}.{nanoseconds:09}Z"


@lru_cache(1 << 8)
def _second_text(seconds: int) -> str | None:
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return f"{moment:%Y-%m-%dT%H:%M:%S}"
