"""The samples of a target, from the reports of its queue manager and of its queues."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msmqwire.constants import ManagementQueueState
from msmqwire.exporter import families as f
from msmqwire.exporter.families import Blocks, Lines, label
from msmqwire.management.reports import MachineReport, QueueReport

_LOCKED: Final = "LOCKED"  # in [MS-MQMR] 3.1.4.1 alone
_OTHER: Final = "OTHER"
STATES: Final = (
    *(
        state.value
        for state in ManagementQueueState
        if state is not ManagementQueueState.MGMT_QUEUE_STATE_LOCAL
    ),
    _LOCKED,
    _OTHER,
)
"""The values of the label ``state``; the last one is for a text that no specification has."""


def samples(
    target: str, machine: MachineReport, queues: Iterable[QueueReport], *, left_out: int, refused: int
) -> Blocks:
    """Return the samples of a target.

    Args:
        target: its name.
        machine: the report of the queue manager.
        queues: those of its queues. Of two that have the same name the first one counts: no page may have a
            sample twice.
        left_out: the number of queues that were not asked.
        refused: the number of queues that it does not report.
    """
    lines = Lines()
    seen: set[tuple[bool, str]] = set()
    for queue in queues:
        name = label(queue.name)
        if (queue.outgoing, name) in seen:
            continue
        seen.add((queue.outgoing, name))
        (_add_outgoing if queue.outgoing else _add_local)(lines, queue, (target, name))
    if machine.connected is not None:
        lines.add(f.CONNECTED, int(machine.connected), target)
    lines.add(f.ALL_BYTES, machine.bytes_all_queues, target)
    for family, count in ((f.QUEUES, len(seen)), (f.LEFT_OUT, left_out), (f.REFUSED, refused)):
        lines.add(family, count, target)
    return lines.blocks()


def _add_local(lines: Lines, queue: QueueReport, labels: tuple[str, str]) -> None:
    lines.add(f.MESSAGES, queue.messages, *labels)
    lines.add(f.BYTES, queue.bytes, *labels)
    lines.add(f.JOURNAL_MESSAGES, queue.journal_messages, *labels)
    lines.add(f.JOURNAL_BYTES, queue.journal_bytes, *labels)


def _add_outgoing(lines: Lines, queue: QueueReport, labels: tuple[str, str]) -> None:
    lines.add(f.OUTGOING_MESSAGES, queue.messages, *labels)
    lines.add(f.OUTGOING_BYTES, queue.bytes, *labels)
    if queue.state is not None:
        current = queue.state if queue.state in STATES else _OTHER
        for state in STATES:
            lines.add(f.OUTGOING_STATE, int(state == current), *labels, state)
    if queue.eod is not None:
        lines.add(f.UNACKNOWLEDGED, queue.eod.no_ack_count, *labels)
        lines.add(f.UNREAD, queue.eod.no_read_count, *labels)
        lines.add(f.RESENDS, queue.eod.resend_count, *labels)
        lines.add(f.LAST_ACK, _seconds(queue.eod.last_ack_time), *labels)
    if "connection_history" not in queue.unavailable:
        failed = [event for event in queue.connection_history if event.failed]
        lines.add(f.FAILURES, len(failed), *labels)
        times = [event.time for event in failed if event.time is not None]
        lines.add(f.LAST_FAILURE, _seconds(max(times, default=None)), *labels)


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()
