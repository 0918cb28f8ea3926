"""Why a queue is stuck: what its report shows, what that means, and what to do.

Nothing is said that the report does not show; the words for states and codes are those of
`msmqwire.constants.explanations`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from msmqwire.constants.explanations import QUEUE_STATES, Texts
from msmqwire.management.advice import (
    ANY_HOST,
    Advice,
    Commands,
    and_joined,
    bytes_text,
    past,
    sentence,
    time_text,
    with_destination,
)
from msmqwire.management.history_advice import history_advice
from msmqwire.management.reports import Eod, MachineReport, QueueReport
from msmqwire.names.printable import agreeing, counted, cut, safe

_SHOWN: Final = 3
"""Addresses and senders that are named; the others are counted."""
_TEXT_MAX: Final = 200
"""Characters of a name or reason that are shown."""
_SENDING: Final = ("CONNECTED", "INACTIVE", "DISCONNECTING")
"""States in which a queue without messages is as it should be."""
_DEAD_LETTERS: Final = ("DEADLETTER", "DEADXACT")
_WATCHED: Final = ("location", "state", "messages", "journal_messages", "connection_history", "sources")
"""What advice goes by, besides the members of `eod`."""


def why(
    report: QueueReport,
    now: datetime,
    *,
    machine: MachineReport | None = None,
    commands: Commands | None = None,
    served: bool = True,
) -> tuple[Advice, ...]:
    """Return what there is to say of a queue, the most important first; at least one piece of advice.

    Args:
        report: the state of the queue.
        now: the present time, with its zone, for ages.
        machine: the state of its queue manager, if it is known.
        commands: those to be named; by default ``msmqwire manage HOST``.
        served: whether the queue manager runs; the report of one that does not comes from its folder.
    """
    use = commands or Commands.of_host(ANY_HOST, report.asked)
    return tuple(_advice(report, now, machine, use) if served else _unserved(report, now, use))


def why_text(report: QueueReport, advice: tuple[Advice, ...]) -> str:
    """Return advice as text for people: the name of the queue, then a paragraph for each piece."""
    lines = [cut(safe(report.name), _TEXT_MAX)]
    for one in advice:
        lines += [f"- {one.fact}", f"  {one.meaning}"]
        lines += [f"  What to do: {one.action}"] if one.action else []
    return "\n".join(lines)


def why_json(report: QueueReport, advice: tuple[Advice, ...]) -> dict[str, Any]:
    """Return the report as JSON-ready data, with the advice as ``why``."""
    return report.to_json() | {"why": [one.to_json() for one in advice]}


def _unserved(report: QueueReport, now: datetime, use: Commands) -> Iterator[Advice]:
    """Say what is known of a queue whose queue manager does not run: nothing of connections."""
    yield Advice(
        "No server runs on the folder.",
        "Nothing is sent or received until one does.",
        f"Start it: {use.start}." if use.start else "",
    )
    if not report.outgoing:
        yield from _of_local(report, now)
        return
    meaning = (
        "What it holds is sent once a server runs." if report.messages else "No message waits to be sent."
    )
    yield Advice(f"It is an outgoing queue; {_holds(report)}.", meaning)


def _advice(
    report: QueueReport, now: datetime, machine: MachineReport | None, use: Commands
) -> Iterator[Advice]:
    if report.reason is not None:
        why_not = cut(safe(report.reason), _TEXT_MAX).rstrip(".")
        yield Advice(f"The queue could not be asked: {why_not}.", "Nothing is known of it.")
        return
    if machine is not None and machine.connected is False:
        yield Advice(
            "The queue manager is disconnected from the network.",
            "No queue of it sends, until it is connected again.",
            f"Connect it: {use.connect}.",
        )
    if report.outgoing:
        yield from _of_outgoing(report, now, machine, use)
    elif report.location is not None:
        yield from _of_local(report, now)
    else:
        yield Advice(
            "Whether the queue is a local or an outgoing one is not reported.",
            "Whether its messages wait for a reader or for a connection is not known.",
        )
    yield from _not_reported(report.unavailable)


# -- outgoing queues -----------------------------------------------------------------------------------------


def _of_outgoing(
    report: QueueReport, now: datetime, machine: MachineReport | None, use: Commands
) -> Iterator[Advice]:
    yield _of_state(report, machine, use)
    yield from history_advice(report, now)
    if report.eod is not None:
        yield from _of_eod(report.eod, report.state, now, use)
    if report.foreign:
        yield Advice(
            "It is reported as a queue of a foreign system.",
            "Its messages go through a connector, a program that takes them on the way.",
            "Check that the connector runs.",
        )
    if report.type == "MULTICAST":
        yield Advice(
            "It sends to a multicast group.",
            "Receivers of a group acknowledge nothing: whether anybody takes the messages is not known here.",
        )


def _of_state(report: QueueReport, machine: MachineReport | None, use: Commands) -> Advice:
    """Say what the state of an outgoing queue means for its messages."""
    state = report.state
    if state is None:
        return Advice(f"Its state is not reported; {_holds(report)}.", "Whether it sends is not known.")
    fact = f"Its state is {cut(safe(state), _TEXT_MAX)}; {_holds(report)}."
    if report.next_hops:
        fact += f" Next {'hop' if len(report.next_hops) == 1 else 'hops'}: {_some(report.next_hops)}."
    texts = QUEUE_STATES.get(state)
    if texts is None:
        return Advice(fact, "This is no state of outgoing queues: whether it sends is not known.")
    if report.messages == 0 and state in _SENDING:
        return Advice(fact, _idle(report.eod, texts))
    return Advice(fact, sentence(texts.meaning), _action(report, texts, machine, use))


def _idle(eod: Eod | None, texts: Texts) -> str:
    """Say that no message waits, and how much that shows."""
    if eod is None or eod.no_ack_count is None:
        return f"No message waits to be sent: {texts.meaning}."
    if eod.no_ack_count:
        return f"No message waits to be sent for the first time: {texts.meaning}."
    return "Nothing is stuck: no message waits to be sent, and none lacks its order acknowledgement."


def _action(report: QueueReport, texts: Texts, machine: MachineReport | None, use: Commands) -> str:
    match report.state:
        case "ONHOLD":
            return f"Resume it: {use.resume}."
        case "CONNECTED":
            again = f"Ask again in a minute: {use.look}."
            return f"{again} If the number does not fall, look into the log of the destination."
        case "INACTIVE":
            again = f"Ask again in a minute: {use.look}."
            return f"{again} If it stays so, restart the Message Queuing service of the sending computer."
        case "DISCONNECTED" if machine is not None and machine.connected is not None:
            return f"Ask again in a minute: {use.look}." if machine.connected else ""
        case "DISCONNECTED":
            return f"Connect the computer: {use.connect}."
    return with_destination(texts.action, report)


def _of_eod(eod: Eod, state: str | None, now: datetime, use: Commands) -> Iterator[Advice]:
    """Say what lacks its order acknowledgement, and what has not been read."""
    if eod.no_ack_count:
        what = counted(eod.no_ack_count, "transactional message")
        lacks = agreeing(eod.no_ack_count, "lack")
        fact = f"{what} {lacks} {'its' if eod.no_ack_count == 1 else 'their'} order acknowledgement; "
        fact += (
            "none ever came"
            if eod.last_ack_time is None
            else f"the last one came {past(eod.last_ack_time, now)}"
        )
        yield Advice(f"{fact}{_resends(eod, now)}.", *_unacknowledged(eod, state, use))
    if eod.no_read_count:
        what = counted(eod.no_read_count, "transactional message", "are")
        yield Advice(
            f"{what} at the destination without a receive acknowledgement.",
            "They have arrived, and are not stuck on the way. Nobody there is known to have read them yet.",
            "Check that the reader of the destination queue runs.",
        )


def _resends(eod: Eod, now: datetime) -> str:
    text = ""
    if eod.resend_count:
        text += f". The last message was sent {'once' if eod.resend_count == 1 else _times(eod.resend_count)}"
    if eod.resend_time is not None and eod.resend_time > now:
        text += f"{',' if text else ';'} and the next attempt is at {time_text(eod.resend_time)}"
    if text and eod.resend_interval:
        text += f", {counted(eod.resend_interval, 'second')} after the one before"
    return text


def _times(count: int) -> str:
    return counted(count, "time")


def _unacknowledged(eod: Eod, state: str | None, use: Commands) -> tuple[str, str]:
    """Return what missing order acknowledgements mean, and what to do."""
    if state is not None and state != "CONNECTED":
        return (
            "Messages stay here until their order is acknowledged, which needs a connection.",
            "Mend the connection first; they are then sent again by themselves.",
        )
    if eod.resend_count is not None and eod.resend_count > 1:
        return (
            "The destination gets them again and again, or does not: it does not acknowledge them, or its "
            "acknowledgements do not come back.",
            "Check that the destination queue is there and transactional, and that its computer can connect "
            f"back to TCP port 1801 of the sending one. Then send them again: {use.resend}.",
        )
    return (
        "The destination has not acknowledged the order of what was sent yet.",
        f"Ask again in a minute: {use.look}.",
    )


# -- local queues --------------------------------------------------------------------------------------------


def _of_local(report: QueueReport, now: datetime) -> Iterator[Advice]:
    yield _of_contents(report)
    if report.journal_messages:
        size = bytes_text(report.journal_bytes)
        yield Advice(
            f"Its journal holds {counted(report.journal_messages, 'message')}{size}.",
            "Nobody takes messages out of a journal by itself; they count towards the quota of the computer.",
            "Read or purge the journal by its name with ;journal, or switch journaling off.",
        )
    rejected = [source for source in report.sources if source.rejected]
    if rejected:
        senders = _some([f"{one.sender} {_times(one.rejected)}" for one in rejected])
        last = max((one.last_access for one in rejected if one.last_access is not None), default=None)
        when = "" if last is None else f", the last one {past(last, now)}"
        yield Advice(
            f"Messages of transactional senders were rejected: {senders}{when}.",
            "A message out of order is rejected until the one before it has come; its sender sends it again.",
            "No action is needed unless the numbers grow; then look at the outgoing queue of the sender.",
        )


def _of_contents(report: QueueReport) -> Advice:
    """Say what the messages of a local queue wait for."""
    if report.messages is None:
        return Advice(
            "It is a local queue; the number of its messages is not reported.",
            "Whether messages wait for a reader is not known.",
        )
    fact = f"It is a local queue; {_holds(report)}."
    if not report.messages:
        return Advice(
            fact, "Nothing is stuck in it: messages that are missing have not arrived, or were read."
        )
    kind = report.name.upper().rpartition(";")[2]
    if kind == "JOURNAL":
        return Advice(
            fact,
            "It is a journal: copies of messages that were read here, or of those that this computer sent. "
            "Nobody takes them out by itself; they count towards the quota of the computer.",
            "Read or purge it, or switch journaling off.",
        )
    if kind in _DEAD_LETTERS:
        return Advice(
            fact,
            "These are dead letters: messages of this computer that did not arrive or were not read in time.",
            "Read them: the class of each says why (msmqwire explain CLASS). Then purge the queue.",
        )
    return Advice(
        fact,
        "They have arrived and wait for a reader. Whether somebody has the queue open is not reported.",
        "Check that its reader runs, and reads this queue; messages that stay at the front may fail in it.",
    )


# -- words ---------------------------------------------------------------------------------------------------


def _holds(report: QueueReport) -> str:
    if report.messages is None:
        return "the number of its messages is not reported"
    if not report.messages:
        return "it holds no messages"
    return f"it holds {counted(report.messages, 'message')}{bytes_text(report.bytes)}"


def _some(texts: tuple[str, ...] | list[str]) -> str:
    """Return the first texts and the number of the others."""
    shown = [cut(safe(text), _TEXT_MAX) for text in texts[:_SHOWN]]
    return and_joined([*shown, *([f"{len(texts) - _SHOWN:,} more"] if len(texts) > _SHOWN else [])])


def _not_reported(unavailable: Mapping[str, str]) -> Iterator[Advice]:
    missing = [name for name in unavailable if name in _WATCHED or name.startswith("eod.")]
    if missing:
        reasons = _some([f"{name} ({unavailable[name]})" for name in missing])
        yield Advice(f"Not to be had: {reasons}.", "What they would show is not known.")
