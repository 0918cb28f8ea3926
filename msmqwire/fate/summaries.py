"""Fates summed up by queue."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from typing import Final

from msmqwire.fate.model import STUCK_MAX, Latency, MessageFate, QueueSummary

QUEUES_MAX: Final = 1 << 14
"""Queues that are told apart; the messages to more of them are summed up as `OTHER_QUEUES`."""
OTHER_QUEUES: Final = "(other queues)"


class QueueSums:
    """The sums of one queue."""

    def __init__(self) -> None:
        self.messages = self.bytes = self.retransmissions = self.stuck = 0
        self.states: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.stuck_messages: list[str] = []
        self._latencies: dict[str, array[int]] = {}

    def add(self, fate: MessageFate) -> None:
        """Add a message."""
        self.messages += 1
        self.bytes += fate.body_size or 0
        self.retransmissions += fate.retransmissions
        self.states[fate.state.value] += 1
        if fate.reason:
            self.reasons[fate.reason] += 1
        if fate.stuck:
            self.stuck += 1
            if len(self.stuck_messages) < STUCK_MAX:
                self.stuck_messages.append(fate.identity)
        for state, latency in fate.latencies.items():
            self._latencies.setdefault(state, array("q")).append(latency)

    def summary(self, queue: str | None) -> QueueSummary:
        """Return the sums."""
        return QueueSummary(
            queue=queue,
            messages=self.messages,
            bytes=self.bytes,
            states=dict(sorted(self.states.items())),
            latencies={state: _latency(self._latencies[state]) for state in sorted(self._latencies)},
            retransmissions=self.retransmissions,
            stuck=self.stuck,
            stuck_messages=tuple(self.stuck_messages),
            reasons=dict(sorted(self.reasons.items())),
        )


def _latency(values: array[int]) -> Latency:
    ordered = sorted(values)

    def nearest_rank(percent: int) -> int:
        return ordered[(len(ordered) * percent + 99) // 100 - 1]

    return Latency(len(ordered), nearest_rank(50), nearest_rank(95), ordered[-1])


def summary(fates: Iterable[MessageFate]) -> list[QueueSummary]:
    """Return the fates summed up by destination queue, those with most messages first.

    It takes eight bytes of memory for each latency, and there are as many queues as `QUEUES_MAX` at most.
    """
    queues: dict[str | None, QueueSums] = {}
    for fate in fates:
        queue = fate.destination
        if queue not in queues and len(queues) >= QUEUES_MAX:
            queue = OTHER_QUEUES
        queues.setdefault(queue, QueueSums()).add(fate)
    ordered = sorted(queues.items(), key=lambda item: (-item[1].messages, item[0] is None, item[0] or ""))
    return [sums.summary(queue) for queue, sums in ordered]
