"""What the connection history of an outgoing queue shows: [MS-MQMQ] 2.3.12.25."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Final

from msmqwire.constants.explanations import CONNECTION_STATUSES, Texts, result_texts
from msmqwire.management.advice import Advice, and_joined, past, time_text, with_destination
from msmqwire.management.reports import ConnectionEvent, QueueReport
from msmqwire.names.printable import counted, cut, safe

_ESTABLISHED: Final = 2
_CHANGES_MIN: Final = 3
"""Changes between success and failure from which on a connection comes and goes."""
_ADDRESSES: Final = 3
_ADDRESS_MAX: Final = 100
_CONNECTED: Final = "CONNECTED"


def history_advice(report: QueueReport, now: datetime) -> Iterator[Advice]:
    """Yield what the history shows: whether connections come and go, and how the last one has ended."""
    events = _in_order(report.connection_history)
    ended = [one for one in events if one.failed or one.status == _ESTABLISHED]
    changes = sum(one.failed is not other.failed for one, other in pairwise(ended))
    if changes >= _CHANGES_MIN:
        yield _changing(ended)
    failures = [one for one in ended if one.failed]
    if ended and ended[-1].failed:
        yield _failure(report, ended, failures, now)
    elif ended and report.state != _CONNECTED:
        since = f"; {counted(len(failures), 'failure')} came before" if failures else ""
        yield Advice(
            f"The last connection that is recorded was established{_when(ended[-1], now)}{since}.",
            "The destination was reached then; no failure is recorded since.",
        )
    elif not ended and events:
        last = events[-1]
        texts = CONNECTION_STATUSES.get(last.status)
        words = f"with status 0x{last.status:08X}" if texts is None else f"that {texts.meaning}"
        yield Advice(
            f"No connection is recorded as established or failed; the last entry is "
            f"{words}{_when(last, now)}.",
            "The attempt is under way, or gets no answer.",
            "" if texts is None else with_destination(texts.action, report),
        )


def _in_order(history: Sequence[ConnectionEvent]) -> list[ConnectionEvent]:
    """Return events from the oldest on; queue managers report them in either order."""
    times = [one.time for one in history if one.time is not None]
    falls = len(times) > 1 and times[0] > times[-1]
    events = list(reversed(history)) if falls else list(history)
    if len(times) == len(history):
        events.sort(key=lambda one: one.time.timestamp() if one.time is not None else 0.0)
    return events


def _changing(ended: Sequence[ConnectionEvent]) -> Advice:
    successes = sum(not one.failed for one in ended)
    span = _span(ended)
    return Advice(
        f"Connections come and go: {counted(successes, 'success')} and "
        f"{counted(len(ended) - successes, 'failure')} in turn{span}.",
        "The destination is reached and lost again.",
        "Look for a service that restarts, two computers with one address or identity, or a firewall that "
        "cuts connections.",
    )


def _failure(
    report: QueueReport, ended: Sequence[ConnectionEvent], failures: Sequence[ConnectionEvent], now: datetime
) -> Advice:
    """Say how the last connection failed, how often it did so, and what that means."""
    last = failures[-1]
    texts = CONNECTION_STATUSES.get(last.status)
    meaning = f"it failed with status 0x{last.status:08X}" if texts is None else texts.meaning
    fact = f"The last connection failed{_when(last, now)}: {meaning}{_error(last)}{_addresses(last)}."
    alike = [one for one in failures if one.status == last.status]
    if len(ended) > 1:
        fact += f" Of {counted(len(ended), 'recorded attempt')}, {len(failures):,} failed, "
        fact += f"{len(alike):,} of them like this one."
    return Advice(fact, *_meaning(report, texts))


def _meaning(report: QueueReport, texts: Texts | None) -> tuple[str, str]:
    if texts is None:
        return "This status is not known here.", ""
    return f"Usual causes: {texts.causes}", with_destination(texts.action, report)


def _error(event: ConnectionEvent) -> str:
    """Return the error of an event, with its meaning if it has a known one."""
    if not event.error:
        return ""
    texts = result_texts(event.error)
    return f", error 0x{event.error:08X}" + ("" if texts is None else f" ({texts.meaning})")


def _addresses(event: ConnectionEvent) -> str:
    if not event.addresses:
        return ""
    shown = [cut(safe(one), _ADDRESS_MAX) for one in event.addresses[:_ADDRESSES]]
    more = len(event.addresses) - _ADDRESSES
    return f", at {and_joined([*shown, *([f'{more:,} more'] if more > 0 else [])])}"


def _when(event: ConnectionEvent, now: datetime) -> str:
    return "" if event.time is None else f" {past(event.time, now)}"


def _span(events: Sequence[ConnectionEvent]) -> str:
    times = [one.time for one in events if one.time is not None]
    return f" between {time_text(min(times))} and {time_text(max(times))}" if len(times) > 1 else ""
