"""Fates summed up by queue."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple

from msmqwire.analysis.fate.model import FINDINGS_MAX, STUCK_MAX, Brief, Latency, MessageFate, QueueSummary

QUEUES_MAX: Final = 1 << 14
"""Queues that are counted apart; the messages to further queues are summed up as `OTHER_QUEUES`."""
OTHER_QUEUES: Final = "(other queues)"


class Summed(NamedTuple):
    """The summary of a message; `MessageFate` has the meanings."""

    identity: str
    body_size: int | None
    retransmissions: int
    state: str
    reason: str
    stuck: bool
    latencies: Mapping[str, int]
    missing: str
    findings: tuple[str, ...]

    @classmethod
    def of(cls, fate: Brief | MessageFate) -> Summed:
        """Return the summary of a fate."""
        return cls(
            fate.identity, fate.body_size, fate.retransmissions, fate.state.value, fate.reason, fate.stuck,
            fate.latencies, fate.missing, tuple([finding.message for finding in fate.findings]),
        )  # fmt: skip


class QueueSums:
    """The sums of one queue."""

    def __init__(self) -> None:
        self.messages = self.bytes = self.retransmissions = self.stuck = 0
        self.states: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.missing: Counter[str] = Counter()
        self.findings: list[str] = []
        self.stuck_messages: list[str] = []
        self._latencies: defaultdict[str, array[int]] = defaultdict(partial(array, "q"))

    def add(self, message: Summed) -> None:
        """Add a message."""
        self.messages += 1
        self.bytes += message.body_size or 0
        self.retransmissions += message.retransmissions
        self.states[message.state] += 1
        if message.reason:
            self.reasons[message.reason] += 1
        if message.missing:
            self.missing[message.missing] += 1
        for finding in message.findings:
            if finding not in self.findings and len(self.findings) < FINDINGS_MAX:
                self.findings.append(finding)
        if message.stuck:
            self.stuck += 1
            if len(self.stuck_messages) < STUCK_MAX:
                self.stuck_messages.append(message.identity)
        for state, latency in message.latencies.items():
            self._latencies[state].append(latency)

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
            missing=dict(sorted(self.missing.items())),
            findings=tuple(self.findings),
        )


def _latency(values: array[int]) -> Latency:
    ordered = sorted(values)

    def nearest_rank(percent: int) -> int:
        return ordered[(len(ordered) * percent + 99) // 100 - 1]

    return Latency(len(ordered), nearest_rank(50), nearest_rank(95), ordered[-1])


def summary(fates: Iterable[Brief | MessageFate]) -> list[QueueSummary]:
    """Return the fates summed up by destination queue, those with most messages first.

    It takes eight bytes of memory for each latency, and there are as many queues as `QUEUES_MAX` at most.
    """
    queues: dict[str | None, QueueSums] = {}
    for fate in fates:
        queue = fate.destination
        if queue not in queues and len(queues) >= QUEUES_MAX:
            queue = OTHER_QUEUES
        sums = queues.get(queue)
        if sums is None:
            sums = queues[queue] = QueueSums()
        sums.add(Summed.of(fate))
    ordered = sorted(queues.items(), key=lambda item: (-item[1].messages, item[0] is None, item[0] or ""))
    return [sums.summary(queue) for queue, sums in ordered]
