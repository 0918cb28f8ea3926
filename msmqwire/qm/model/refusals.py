"""The trace of messages that end undelivered: refused, dropped, or expired on arrival or in their queue.

Peers choose their content, so that everything here has a limit.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final, NamedTuple

from msmqwire.constants import MessageClass, class_name
from msmqwire.names.printable import cut, safe
from msmqwire.qm.model.elements import OutgoingQueue, Queue, short_name
from msmqwire.qm.model.message import Message, ObjectId

QUOTA: Final = "quota"
SHARE: Final = "share"
DISK: Final = "disk"
MEMORY: Final = "memory"
MALFORMED: Final = "malformed"
OTHER: Final = "other"
"""The stand-in for queues, peers and reasons that are not counted or reported one by one."""
KEPT_MAX: Final = 1_000
"""Limit of refusals kept, by peer, queue and reason."""
COUNTED_MAX: Final = 1_000
"""Limit of pairs of reason and queue that are counted one by one."""
PEER_REPORTS_MAX: Final = 10
REPORTS_MAX: Final = 200
"""Limits of separate reports in a minute, by peer, queue and reason: for one peer, and for all."""
REPORT_MS: Final = 60_000
"""Milliseconds between reports about the same peer, queue and reason."""
_TEXT_MAX: Final = 200
_ADMINISTRATIVE: Final = frozenset(
    {
        MessageClass.MQMSG_CLASS_NACK_DELETED,
        MessageClass.MQMSG_CLASS_NACK_Q_DELETED,
        MessageClass.MQMSG_CLASS_NACK_Q_PURGED,
    }
)
"""The ends of messages that an administrator deletes: they need no report."""
_NACK: Final = "NACK_"


class RefusalKey(NamedTuple):
    """The key by which refusals are kept and reported.

    Attributes:
        peer: the address that the message came from; None for an application of this computer.
        queue: the name of the queue as users know it, or of the destination of the message, truncated; None
            if it could not be read.
        reason: the name of a message class without prefix, or one of the texts above.
    """

    peer: str | None
    queue: str | None
    reason: str


@dataclass(slots=True)
class Refusal:
    """Refusals with the same peer, queue and reason.

    Attributes:
        label, identifier: label and identifier of the latest message, the label truncated; None if they could
            not be read.
        why: further details of the latest refusal, in words.
        count: the number of refusals.
        last: the time of the latest refusal, in seconds since 1970-01-01 UTC.
    """

    key: RefusalKey
    label: str | None
    identifier: ObjectId | None
    why: str
    count: int
    last: int


@dataclass(slots=True)
class _Line:
    """Refusals of one report: the count since the last report, and the time of the next one, in
    milliseconds.
    """

    refusal: Refusal
    due: int


class Refusals:
    """The refusals of a queue manager, since it was started.

    Attributes:
        kept: the refusals of the latest `KEPT_MAX` peers, queues and reasons, the latest one last.
        counts: their number by reason and queue, which is `OTHER` for a queue that does not exist.
        deadline: the time at which `due` has reports, in milliseconds since the system started; None if there
            are none.
        report_ms: `REPORT_MS`, or less in tests.
    """

    def __init__(self) -> None:
        self.kept: dict[RefusalKey, Refusal] = {}
        self.counts: dict[tuple[str, str], int] = {}
        self.deadline: int | None = None
        self.report_ms = REPORT_MS
        self._lines: dict[RefusalKey, _Line] = {}
        self._lines_of: Counter[str | None] = Counter()  # by peer

    def add(
        self,
        reason: str,
        *,
        peer: str | None,
        queue: Queue | None,
        message: Message | None,
        why: str,
        now: int,
        utc: int,
    ) -> None:
        """Add a refusal; `now` is milliseconds since the system started, `utc` seconds since 1970."""
        self._count(reason, queue)
        key = RefusalKey(peer, _name(queue, message), reason)
        label = None if message is None else message.label[:_TEXT_MAX]
        identifier = None if message is None else message.identifier
        kept = self.kept.pop(key, None)
        count = 0 if kept is None else kept.count
        self.kept[key] = Refusal(key, label, identifier, why, count + 1, utc)
        if len(self.kept) > KEPT_MAX:
            del self.kept[next(iter(self.kept))]
        key = self._reported_as(key)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line(Refusal(key, None, None, "", 0, utc), now)
            self._lines_of[key.peer] += 1
            self.deadline = now if self.deadline is None else min(self.deadline, now)
        count = line.refusal.count
        line.refusal = Refusal(key, label, identifier, why, count + 1, utc)

    def _count(self, reason: str, queue: Queue | None) -> None:
        """Count a refusal; the pair that has not grown for the longest time makes room for a new one."""
        counts = self.counts
        name = OTHER if queue is None or _is_made_by_peers(queue) else short_name(queue)
        pair = reason, name
        counts[pair] = counts.pop(pair, 0) + 1
        if len(counts) > COUNTED_MAX:
            oldest = next(pair for pair in counts if pair[1] != OTHER)
            other = oldest[0], OTHER
            counts[other] = counts.get(other, 0) + counts.pop(oldest)

    def _reported_as(self, key: RefusalKey) -> RefusalKey:
        """Return the key under which a refusal is reported; many queues, or many peers, may share one."""
        if key in self._lines:
            return key
        if len(self._lines) >= REPORTS_MAX:
            return RefusalKey(OTHER, OTHER, key.reason)
        if self._lines_of[key.peer] >= PEER_REPORTS_MAX:
            return RefusalKey(key.peer, OTHER, key.reason)
        return key

    def due(self, now: int) -> list[Refusal]:
        """Return the reports that are due: each with the number of refusals since the last one.

        The first refusal is reported at once, later ones a minute after it.
        """
        if self.deadline is None or now < self.deadline:
            return []
        reports = []
        for key, line in list(self._lines.items()):
            if line.due > now:
                continue
            if line.refusal.count:
                reports.append(line.refusal)
                line.refusal = Refusal(key, None, None, "", 0, line.refusal.last)
                line.due = now + self.report_ms
            else:
                self._forget(key)
        self.deadline = min((line.due for line in self._lines.values()), default=None)
        return reports

    def rest(self) -> list[Refusal]:
        """Return all reports still to be made, whenever they would be due."""
        reports = [line.refusal for line in self._lines.values() if line.refusal.count]
        self._lines.clear()
        self._lines_of.clear()
        self.deadline = None
        return reports

    def _forget(self, key: RefusalKey) -> None:
        del self._lines[key]
        self._lines_of[key.peer] -= 1
        if not self._lines_of[key.peer]:
            del self._lines_of[key.peer]


def reason_of(reason: int | str) -> str | None:
    """Return the name of a reason; None for a class that says that an administrator deleted the message."""
    if isinstance(reason, str):
        return reason
    if reason in _ADMINISTRATIVE:
        return None
    if reason == MessageClass.MQMSG_CLASS_NACK_Q_EXCEED_QUOTA:
        return QUOTA
    name = class_name(reason)
    return name.removeprefix(_NACK) if name.startswith(_NACK) else OTHER


def _is_made_by_peers(queue: Queue) -> bool:
    return isinstance(queue, OutgoingQueue) and queue.asked_by != ""


def _name(queue: Queue | None, message: Message | None) -> str | None:
    if queue is not None:
        return short_name(queue)[:_TEXT_MAX]
    if message is None or message.destination is None:
        return None
    return message.destination.text[:_TEXT_MAX]


def shown(text: str | None) -> str | None:
    """Return a text of a refusal in a printable form: peers choose it."""
    return None if text is None else cut(safe(text), _TEXT_MAX)
