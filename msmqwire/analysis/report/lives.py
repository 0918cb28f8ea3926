"""The life of each message: its fate, as the page shows it."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Any, Final

from msmqwire.analysis.fate import EventKind, FateEvent, MessageFate, QueueSummary, State
from msmqwire.analysis.report.limits import Limits
from msmqwire.analysis.report.texts import Texts
from msmqwire.names.printable import cut, safe

STATES: Final = tuple(State)
EVENTS: Final = tuple(EventKind)
_STATE_NUMBERS: Final = {state: number for number, state in enumerate(STATES)}
_EVENT_NUMBERS: Final = {what: number for number, what in enumerate(EVENTS)}
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
_LATENCIES: Final = tuple(
    state.value for state in (State.RECEIVED, State.STORED, State.DELIVERED, State.READ)
)
_OF_EVENT: Final = ("what", "seconds", "nanoseconds", "file", "frame", "src", "dst", "about")
_MESSAGE_ROW: Final = Struct(f"{len(_NUMBERS) + len(_LATENCIES)}q").pack
_EVENT_ROW: Final = Struct(f"{len(_OF_EVENT)}q").pack
_BILLION: Final = 1_000_000_000
_UNKNOWN: Final = -1
_KEPT: Final = 1 << 10
"""Events whose rows are remembered."""
_NO_TIME: Final = (_UNKNOWN, _UNKNOWN)


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
        self._messages, self._events = array("q"), array("q")  # row by row
        self._rows: dict[int, tuple[FateEvent, bytes]] = {}  # of the last events, by their id

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
        numbers, limit = self.texts.numbers, self._limits.events
        first = fate.sent_ns if fate.sent_ns is not None else _first_time(fate)
        events, latencies = fate.events, fate.latencies
        count = min(len(events), limit)
        self._messages.frombytes(
            _MESSAGE_ROW(
                numbers[fate.identity],
                numbers[fate.label or ""],
                numbers[fate.destination or ""],
                numbers[fate.explanation],
                numbers[fate.reason],
                _UNKNOWN if fate.body_size is None else fate.body_size,
                _STATE_NUMBERS[fate.state],
                fate.stuck,
                fate.retransmissions,
                *(_NO_TIME if first is None else divmod(first, _BILLION)),
                count,
                fate.events_omitted + len(events) - count,
                *[latencies.get(state, _UNKNOWN) for state in _LATENCIES],
            )
        )
        for event in events[:limit]:
            is_of_one = event.what is EventKind.SENT  # acknowledgements are of many messages
            self._events.frombytes(self._of_event(event) if is_of_one else self._kept(event))

    def _kept(self, event: FateEvent) -> bytes:
        """Return the row of an event, which is made once."""
        known = self._rows.get(id(event))
        if known is None or known[0] is not event:
            if len(self._rows) == _KEPT:
                self._rows.clear()
            known = self._rows[id(event)] = event, self._of_event(event)
        return known[1]

    def _of_event(self, event: FateEvent) -> bytes:
        """Return the row of an event."""
        numbers, about = self.texts.numbers, ""
        if event.message_class or event.detail or event.doubt:
            doubt = f"not believed: {event.doubt}" if event.doubt else ""
            about = ", ".join(filter(None, (event.message_class, event.detail, doubt)))
        return _EVENT_ROW(
            _EVENT_NUMBERS[event.what],
            *(_NO_TIME if event.time_ns is None else divmod(event.time_ns, _BILLION)),
            numbers[event.file or ""],
            event.frame or 0,
            numbers[event.src],
            numbers[event.dst],
            numbers[about],
        )

    def data(self) -> dict[str, Any]:
        """Return the columns of messages and of their events, as arrays."""
        columns = _columns(self._messages, (*_NUMBERS, *_LATENCIES))
        return {
            "columns": {name: columns[name] for name in _NUMBERS},
            "latencies": {name: columns[name] for name in _LATENCIES},
            "events": _columns(self._events, _OF_EVENT),
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


def _columns(rows: array[int], names: Sequence[str]) -> dict[str, array[int]]:
    """Return the columns of rows that follow each other, by name."""
    return {name: rows[place :: len(names)] for place, name in enumerate(names)}


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
