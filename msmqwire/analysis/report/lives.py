"""The life of each message: its fate, as the page shows it."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import Any, Final

from msmqwire.analysis.fate import EventKind, FateEvent, MessageFate, QueueSummary, State
from msmqwire.analysis.report.limits import Limits
from msmqwire.analysis.report.texts import Texts
from msmqwire.names.printable import cut, safe

STATES: Final = tuple(State)
EVENTS: Final = tuple(EventKind)
_NUMBERS: Final = (
    "identity",
    "label",
    "queue",
    "explanation",
    "reason",
    "body_size",
    "state",
    "stuck",
    "retransmissions",
    "seconds",
    "nanoseconds",
    "event_count",
    "events_omitted",
)
_OF_EVENT: Final = ("what", "seconds", "nanoseconds", "file", "frame", "src", "dst", "about")
_UNKNOWN: Final = -1


class Lives:
    """Fates of messages by columns, with the events of all of them one after the other.

    Attributes:
        count: messages.
        states: messages by state, those beyond the limit too.
        stuck: messages that no queue manager has taken over, likewise.
        texts: names, labels and words, by number.
    """

    def __init__(self, limits: Limits) -> None:
        self.count = 0
        self.stuck = 0
        self.states = dict.fromkeys(STATES, 0)
        self._limits = limits
        self.texts = Texts(limits.text, limits.texts)
        self._columns = {name: array("q") for name in _NUMBERS}
        self._latencies = {
            state: array("q") for state in (State.RECEIVED, State.STORED, State.DELIVERED, State.READ)
        }
        self._events = {name: array("q") for name in _OF_EVENT}

    def observed(self, fates: Iterable[MessageFate]) -> Iterator[MessageFate]:
        """Yield fates as they are, and take them in on the way."""
        for fate in fates:
            self.add(fate)
            yield fate

    def add(self, fate: MessageFate) -> None:
        """Take in one message."""
        self.count += 1
        self.states[fate.state] += 1
        self.stuck += fate.stuck
        if self.count > self._limits.lives:
            return
        number = self.texts.number
        first = fate.sent_ns if fate.sent_ns is not None else _first_time(fate)
        seconds, nanoseconds = (_UNKNOWN, _UNKNOWN) if first is None else divmod(first, 1_000_000_000)
        events = fate.events[: self._limits.events]
        values = {
            "identity": number(safe(fate.identity)),
            "label": number(safe(fate.label or "")),
            "queue": number(safe(fate.destination or "")),
            "explanation": number(safe(fate.explanation)),
            "reason": number(safe(fate.reason)),
            "body_size": _UNKNOWN if fate.body_size is None else fate.body_size,
            "state": STATES.index(fate.state),
            "stuck": fate.stuck,
            "retransmissions": fate.retransmissions,
            "seconds": seconds,
            "nanoseconds": nanoseconds,
            "event_count": len(events),
            "events_omitted": fate.events_omitted + len(fate.events) - len(events),
        }
        for name, value in values.items():
            self._columns[name].append(value)
        for state, column in self._latencies.items():
            column.append(fate.latencies.get(state.value, _UNKNOWN))
        for event in events:
            self._add_event(event)

    def _add_event(self, event: FateEvent) -> None:
        number = self.texts.number
        seconds, nanoseconds = (
            (_UNKNOWN, _UNKNOWN) if event.time_ns is None else divmod(event.time_ns, 1_000_000_000)
        )
        doubt = f"not believed: {event.doubt}" if event.doubt else ""
        about = ", ".join(filter(None, (event.message_class, event.detail, doubt)))
        values = (
            EVENTS.index(event.what),
            seconds,
            nanoseconds,
            number(safe(event.file or "")),
            event.frame or 0,
            number(event.src),
            number(event.dst),
            number(safe(about)),
        )
        for name, value in zip(_OF_EVENT, values, strict=True):
            self._events[name].append(value)

    def to_json(self) -> dict[str, Any]:
        """Return the columns of messages and of their events."""
        return {
            "columns": {name: column.tolist() for name, column in self._columns.items()},
            "latencies": {state.value: column.tolist() for state, column in self._latencies.items()},
            "events": {name: column.tolist() for name, column in self._events.items()},
            "texts": self.texts.texts,
        }

    def summary_json(self, queues: list[QueueSummary]) -> dict[str, Any]:
        """Return the summary of all messages together, and by queue."""
        return {
            "count": self.count,
            "kept": min(self.count, self._limits.lives),
            "stuck": self.stuck,
            "states": [[state, count] for state, count in self.states.items()],
            "whats": list(EVENTS),
            "queues": [_queue_json(queue, self._limits.text) for queue in queues[: self._limits.queues]],
        }


def _queue_json(queue: QueueSummary, length: int) -> dict[str, Any]:
    return {
        "queue": None if queue.queue is None else cut(safe(queue.queue), length),
        "messages": queue.messages,
        "bytes": queue.bytes,
        "states": dict(queue.states),
        "latencies": {
            state: [latency.p50, latency.p95, latency.max] for state, latency in queue.latencies.items()
        },
        "retransmissions": queue.retransmissions,
        "stuck": queue.stuck,
        "reasons": dict(queue.reasons),
    }


def _first_time(fate: MessageFate) -> int | None:
    return next((event.time_ns for event in fate.events if event.time_ns is not None), None)
