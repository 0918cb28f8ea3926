"""``msmqwire fate``: the fate of each message in captures."""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final, TextIO, TypeVar

from click import BadParameter
from click.exceptions import Exit

from msmqwire.capture.attempts import FailedAttempts, left_out_sentence
from msmqwire.capture.record import RECORD_SIZE_MAX
from msmqwire.cli.captures.capture_input import (
    RecordSizeMax,
    StorageOption,
    StoredCaptures,
    no_input,
    opened,
    report,
    storage_options_of,
)
from msmqwire.cli.captures.filter_options import Chosen, say_no_match, say_nothing_found
from msmqwire.cli.common import NoInput, few_collections, standard_input
from msmqwire.cli.options import Option
from msmqwire.errors import UnsupportedStore
from msmqwire.json_text import dumps
from msmqwire.names.nearest import unknown_name
from msmqwire.names.printable import counted, safe

if TYPE_CHECKING:
    from msmqwire.analysis.fate import MessageFate, QueueSummary
    from msmqwire.analysis.fate.model import Brief

    Shown = TypeVar("Shown", bound=Brief | MessageFate)
    Test = Callable[[Brief | MessageFate], bool]

_SECOND, _MILLISECOND, _MICROSECOND = 1_000_000_000, 1_000_000, 1_000
_STATES: Final = (
    "sent", "received", "stored", "delivered", "read", "expired", "refused", "deleted", "rejected",
    "dead-lettered", "unknown",
)  # fmt: skip


def command(
    captures: StoredCaptures,
    as_json: Annotated[bool, Option("--json", help="One JSON object a line.")] = False,
    as_table: Annotated[bool, Option("--table", help="A table (the default).")] = False,
    summed: Annotated[
        bool, Option("--summary", help="One line for each queue, not for each message.")
    ] = False,
    events: Annotated[
        bool, Option("--events", help="Below each message, its events in the capture.")
    ] = False,
    state: Annotated[
        list[str] | None,
        Option("--state", metavar="STATE", help=f"Only messages in a state: {', '.join(_STATES)}."),
    ] = None,
    queue: Annotated[
        list[str] | None,
        Option("--queue", metavar="PATTERN", help="Only messages to a queue: its format name, with * and ?."),
    ] = None,
    label: Annotated[
        list[str] | None,
        Option("--label", metavar="PATTERN", help="Only messages with a label, with * and ?."),
    ] = None,
    stuck: Annotated[
        bool, Option("--stuck", help="Only messages that no queue manager has taken over.")
    ] = False,
    missing: Annotated[
        bool,
        Option("--missing", help="Only messages that lack an expected acknowledgement."),
    ] = False,
    acknowledgements: Annotated[
        bool, Option("--acknowledgements", help="Acknowledgement messages, too.")
    ] = False,
    port: Annotated[
        list[int] | None,
        Option("--port", min=1, max=65535, metavar="PORT", help="An additional port of MSMQ."),
    ] = None,
    record_size_max: RecordSizeMax = RECORD_SIZE_MAX,
    storage_option: StorageOption = None,
) -> None:
    """Trace each message in captures: the state it reached, and the reason if it is stuck.

    Prints each message with its destination, its acknowledgements and their delays, its resends and its
    state; for a refused message the reason, for a stuck one the event that it waits for. Facts that a capture
    can't show, since it begins late, ends early or has one direction only, are shown as unknown.

    Below the messages is a line for each computer whose connections to a port of MSMQ were refused, not
    answered, or ended by ICMP, whatever the filters: its messages wait there, and are in no capture.

    An acknowledgement from a computer that the message was not sent to is reported, and doesn't change its
    state. Ends with status 65 if a file is cut off or damaged; messages up to there are printed.
    """
    if as_json and as_table:
        raise BadParameter("only one of --json and --table")
    if events and (summed or as_json):
        raise BadParameter("--events is for a table of messages; with --json they are there")
    for name in state or ():
        if name.lower() not in _STATES:
            raise BadParameter(unknown_name(name, _STATES, "state").why, param_hint="--state")
    tests = list(_tests(state, queue, label, stuck=stuck, missing=missing))
    try:
        storage_options = storage_options_of(storage_option)
        sources = [standard_input() if name == "-" else name for name in captures]
        with (
            few_collections(),
            opened(
                sources,
                port or [],
                lint=False,
                record_size_max=record_size_max,
                storage_options=storage_options,
            ) as dissection,
        ):
            from msmqwire.analysis.fate import BATCH_ROWS, BODY_LIMIT, COLUMNS, KINDS, briefs_of, fates_of
            from msmqwire.tables import record_batches

            if not as_json:
                dissection.follow_attempts()
            batches = record_batches(
                dissection, columns=COLUMNS, where=[("kind", "in", KINDS)],
                batch_rows=BATCH_ROWS, body_limit=BODY_LIMIT,
            )  # fmt: skip
            messages = Chosen(tests)
            if as_json and not summed:
                with_events = filter(messages, fates_of(batches, acknowledgements=acknowledgements))
                _show_json(with_events, sys.stdout)
            elif events:
                with_events = filter(messages, fates_of(batches, acknowledgements=acknowledgements))
                _show(with_events, sys.stdout, _show_events)
            else:
                chosen = filter(messages, briefs_of(batches, acknowledgements=acknowledgements))
                if summed:
                    _show_summary(chosen, sys.stdout, as_json=as_json)
                else:
                    _show(chosen, sys.stdout)
            if dissection.attempts is not None:
                _show_attempts(*dissection.attempts.failed(), sys.stdout, is_first=not messages.count)
            if tests and not messages.count:
                say_no_match(sys.stderr, "message", messages.asked, "message")
            elif not messages.asked:
                say_nothing_found(sys.stderr, "messages", dissection.records)
            status = report(dissection, sys.stderr)
    except (NoInput, OSError, UnsupportedStore) as exc:
        raise no_input(exc) from None
    raise Exit(status)


def _tests(
    state: list[str] | None,
    queue: list[str] | None,
    label: list[str] | None,
    *,
    stuck: bool,
    missing: bool,
) -> Iterator[Test]:
    """Yield the conditions that messages must meet."""
    if state:
        states = {name.lower() for name in state}
        yield lambda fate: fate.state.value in states
    if queue:
        yield lambda fate: _matches(fate.destination, queue)
    if label:
        yield lambda fate: _matches(fate.label, label)
    if stuck:
        yield lambda fate: fate.stuck
    if missing:
        yield lambda fate: bool(fate.missing)


def _matches(text: str | None, patterns: list[str]) -> bool:
    lower = (text or "").lower()
    return any(fnmatch.fnmatchcase(lower, pattern.lower()) for pattern in patterns)


def _show_json(fates: Iterable[MessageFate], out: TextIO) -> None:
    """Print messages as JSON, each as it is known."""
    from msmqwire.analysis.fate.tables import fate_json

    for fate in fates:
        print(dumps(fate_json(fate)), file=out)


def _show(fates: Iterable[Shown], out: TextIO, more: Callable[[Shown, TextIO], None] | None = None) -> None:
    """Print messages, each as it is known, and more of each."""
    from msmqwire.analysis.fate.tables import time_text

    before = ""
    for fate in fates:
        time = time_text(fate.sent_ns) or "-"
        heading = f"{time}  {fate.identity}  {fate.label or '-'}  {fate.destination or '-'}"
        lacks = " (stuck)" if fate.stuck else f" (no {fate.missing})" if fate.missing else ""
        facts = f"{fate.state}{lacks}"
        if fate.reason:
            facts += f", {fate.reason}"
        for name, ns in fate.latencies.items():
            facts += f", {name} after {duration(ns)}"
        if fate.retransmissions:
            facts += f", {counted(fate.retransmissions, 'retransmission')}"
        if fate.hops:
            facts += f", {counted(fate.hops, 'hop')}"
        out.write(f"{before}{safe(heading)}\n  {safe(facts)}\n  {safe(fate.explanation)}\n")
        before = "\n"
        if more is not None:
            more(fate, out)


def _show_events(fate: MessageFate, out: TextIO) -> None:
    from msmqwire.analysis.fate.tables import time_text

    for event in fate.events:
        place = f"frame {'-' if event.frame is None else event.frame}"
        words = [time_text(event.time_ns) or "-", place, f"{event.src} > {event.dst}", event.what.value]
        words += [event.message_class, event.detail, f"not believed: {event.doubt}" if event.doubt else ""]
        print(f"    {safe('  '.join(word for word in words if word))}", file=out)
    if fate.events_omitted:
        print(f"    and {fate.events_omitted} more", file=out)


def _show_attempts(failed: Sequence[FailedAttempts], left_out: int, out: TextIO, *, is_first: bool) -> None:
    """Print a line for each client and port with failed attempts to connect, of many the first."""
    from msmqwire.cli.captures.stats import ROWS_MAX

    if failed and not is_first:
        print(file=out)
    for one in failed[:ROWS_MAX]:
        print(one, file=out)
    if len(failed) > ROWS_MAX:
        more = f"{len(failed) - ROWS_MAX:,} more clients and ports with failed attempts to connect"
        print(f"and {more}: dissect --stats --json has all", file=out)
    if left_out:
        print(left_out_sentence(left_out), file=out)


def _show_summary(fates: Iterable[Brief | MessageFate], out: TextIO, *, as_json: bool) -> None:
    """Print the sums of each queue."""
    from msmqwire.analysis.fate import summary
    from msmqwire.analysis.fate.tables import summary_json

    for one in summary(fates):
        if as_json:
            print(dumps(summary_json(one)), file=out)
        else:
            for line in _summary_lines(one):
                print(safe(line), file=out)


def _summary_lines(one: QueueSummary) -> Iterator[str]:
    yield f"{one.queue or '(unknown queue)'}"
    states = ", ".join(f"{count} {state}" for state, count in one.states.items())
    yield f"  {counted(one.messages, 'message')}, {counted(one.bytes, 'byte')}: {states}"
    for state, latency in one.latencies.items():
        times = f"half within {duration(latency.p50)}, 95 % within {duration(latency.p95)}"
        yield f"  {state}: {latency.count}, {times}, at the latest after {duration(latency.max)}"
    for reason, count in one.reasons.items():
        yield f"  {reason}: {count}"
    if one.retransmissions:
        yield f"  {counted(one.retransmissions, 'retransmission')}"
    for missing, count in one.missing.items():
        yield f"  {count} without {missing}"
    for finding in one.findings:
        yield f"  {finding}"
    if one.stuck:
        more = ", ..." if one.stuck > len(one.stuck_messages) else ""
        yield f"  {one.stuck} stuck: {', '.join(one.stuck_messages)}{more}"


def duration(ns: int) -> str:
    """Return a time in the unit that suits it: ``1.204 s``, ``35 ms``."""
    for unit, name in ((_SECOND, "s"), (_MILLISECOND, "ms"), (_MICROSECOND, "µs")):
        if ns >= unit:
            return f"{ns / unit:.4g} {name}" if ns < 1000 * unit else f"{ns // unit} {name}"
    return f"{ns} ns"
