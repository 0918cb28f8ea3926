"""Why a queue is stuck: each state and each shape of a history gives its advice, word for word."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import pytest

from msmqwire.constants import ManagementQueueState
from msmqwire.constants.explanations import CONNECTION_STATUSES, QUEUE_STATES
from msmqwire.management.advice import Advice, Commands, past
from msmqwire.management.reports import (
    ConnectionEvent,
    Eod,
    MachineReport,
    QueueReport,
    Source,
    unasked,
)
from msmqwire.management.why import why, why_json, why_text

NOW: Final = datetime(2026, 11, 30, 12, tzinfo=UTC)
NAME: Final = r"DIRECT=OS:beta\private$\orders"
QUOTED: Final = f"'{NAME}'"
LOOK: Final = f"msmqwire manage HOST --why {QUOTED}"
FAILED, ESTABLISHED, REFUSED, DNS = 0x80000004, 2, 0x8000000B, 0x80000008


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def event(minutes: float, status: int, error: int = 0, *addresses: str) -> ConnectionEvent:
    return ConnectionEvent(ago(minutes), status, error, addresses)


def outgoing(**values: Any) -> QueueReport:
    return QueueReport(NAME, format_name=NAME, location="REMOTE", **values)


def local(**values: Any) -> QueueReport:
    return QueueReport(r"private$\orders", path=r"alpha\private$\orders", location="LOCAL", **values)


def told(report: QueueReport, **options: Any) -> list[tuple[str, str, str]]:
    return [(one.fact, one.meaning, one.action) for one in why(report, NOW, **options)]


# -- states --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "state, meaning, action",
    [
        (
            "WAITING",
            "The queue manager tries to connect to the destination, and has not reached it.",
            "Look at the connection history; try msmqwire ping beta --session.",
        ),
        (
            "NEED VALIDATION",
            "The address of the destination is not known yet.",
            "Make the directory and DNS reachable from the sending computer, or use a direct format name.",
        ),
        (
            "ONHOLD",
            "The queue is paused, and nothing is sent.",
            f"Resume it: msmqwire manage HOST resume {QUOTED}.",
        ),
        (
            "LOCKED",
            "The queue is locked, since the computer may send over HTTP only.",
            "Send to a DIRECT=HTTPS: name, or turn hardened security off.",
        ),
        (
            "DISCONNECTED",
            "The queue manager is not connected, and sends nothing.",
            "Connect the computer: msmqwire manage HOST connect.",
        ),
        ("DISCONNECTING", "The connection is being closed.", "Ask again in a minute."),
        (
            "INACTIVE",
            "The queue manager does not try to connect.",
            f"Ask again in a minute: {LOOK}. If it stays so, restart the Message Queuing service of the "
            "sending computer.",
        ),
        (
            "CONNECTED",
            "The queue manager is connected and sends.",
            f"Ask again in a minute: {LOOK}. If the number does not fall, look into the log of the "
            "destination.",
        ),
    ],
)
def test_a_state_with_messages(state: str, meaning: str, action: str) -> None:
    fact = f"Its state is {state}; it holds 5 messages (1,234 bytes)."
    assert told(outgoing(state=state, messages=5, bytes=1234)) == [(fact, meaning, action)]


def test_every_state_of_the_wire_has_advice_of_its_own() -> None:
    states = [*ManagementQueueState, "LOCKED"]
    meanings = {why(outgoing(state=str(state), messages=1), NOW)[0].meaning for state in states}
    assert len(meanings) == len(states) == len(QUEUE_STATES)


def test_counts_and_addresses_are_those_of_the_report() -> None:
    def fact(**values: Any) -> str:
        return told(outgoing(state="WAITING", **values))[0][0]

    assert fact() == "Its state is WAITING; the number of its messages is not reported."
    assert fact(messages=1) == "Its state is WAITING; it holds 1 message."
    assert fact(messages=0, bytes=7) == "Its state is WAITING; it holds no messages."
    huge = fact(messages=12_345, bytes=0xFFFFFFFF)
    assert huge == "Its state is WAITING; it holds 12,345 messages (4 GiB or more)."
    hops = tuple(f"IP=10.0.0.{number}" for number in range(1, 6))
    one = fact(messages=0, next_hops=hops[:1])
    assert one == "Its state is WAITING; it holds no messages. Next hop: IP=10.0.0.1."
    several = fact(messages=0, next_hops=hops)
    assert several.endswith("Next hops: IP=10.0.0.1, IP=10.0.0.2, IP=10.0.0.3 and 2 more.")


@pytest.mark.parametrize(
    "values, host",
    [
        ({"next_hops": ("IP=10.0.0.5", "IP=10.0.0.6")}, "10.0.0.5"),
        ({"next_hops": ("IPv6=fe80::1",)}, "fe80::1"),
        ({"next_hops": ("FOREIGN=6f9619ff-8b86-d011-b42d-00c04fc964ff",)}, "beta"),
        ({"next_hops": ("IP=10.0.0.5; rm -rf /",)}, "beta"),
        ({"next_hops": ("IP=-c9",), "format_name": None, "asked": "PUBLIC=x"}, "HOST"),
        ({"format_name": r"direct=tcp:10.0.0.7\private$\x"}, "10.0.0.7"),
        ({"format_name": "DIRECT=OS:$(reboot)\\x", "asked": "DIRECT=OS:`reboot`\\x"}, "HOST"),
        ({"format_name": "DIRECT=HTTP://beta/msmq/x", "asked": "x"}, "HOST"),
    ],
)
def test_the_destination_stands_in_the_ping(values: dict[str, Any], host: str) -> None:
    """Names come from peers: one that is no host is not put into a command."""
    ((_, _, action),) = told(replace(outgoing(state="WAITING"), **values))
    assert action == f"Look at the connection history; try msmqwire ping {host} --session."


def test_unknown_and_missing_states() -> None:
    (unknown,) = told(outgoing(state="ASLEEP\x1b[2J", messages=2))
    assert unknown[0] == "Its state is ASLEEP\\x1b[2J; it holds 2 messages."
    assert unknown[1] == "This is no state of outgoing queues: whether it sends is not known."
    (missing,) = told(outgoing(messages=2))
    expected = ("Its state is not reported; it holds 2 messages.", "Whether it sends is not known.", "")
    assert missing == expected


@pytest.mark.parametrize(
    "eod, meaning",
    [
        (None, "No message waits to be sent: the queue manager is connected and sends."),
        (Eod(), "No message waits to be sent: the queue manager is connected and sends."),
        (
            Eod(no_ack_count=0),
            "Nothing is stuck: no message waits to be sent, and none lacks its order acknowledgement.",
        ),
        (
            Eod(no_ack_count=1),
            "No message waits to be sent for the first time: the queue manager is connected and sends.",
        ),
    ],
)
def test_a_healthy_queue_is_said_to_be_so_with_the_evidence(eod: Eod | None, meaning: str) -> None:
    first = told(outgoing(state="CONNECTED", messages=0, eod=eod))[0]
    assert first == ("Its state is CONNECTED; it holds no messages.", meaning, "")


def test_a_queue_of_unknown_contents_is_not_called_healthy() -> None:
    ((fact, meaning, _),) = told(outgoing(state="CONNECTED"))
    assert fact == "Its state is CONNECTED; the number of its messages is not reported."
    assert meaning == "The queue manager is connected and sends."


# -- the computer --------------------------------------------------------------------------------------------


def test_a_computer_off_the_network() -> None:
    report = outgoing(state="DISCONNECTED", messages=5)
    first, second = told(report, machine=MachineReport("alpha", connected=False))
    assert first == (
        "The queue manager is disconnected from the network.",
        "No queue of it sends, until it is connected again.",
        "Connect it: msmqwire manage HOST connect.",
    )
    assert second[2] == ""
    (alone,) = told(report, machine=MachineReport("alpha", connected=True))
    assert alone[2] == f"Ask again in a minute: {LOOK}."
    (unknown,) = told(report, machine=MachineReport("alpha"))
    assert unknown[2] == "Connect the computer: msmqwire manage HOST connect."


def test_a_folder_without_a_server() -> None:
    commands = Commands.of_folder("./q m", NAME)
    report = outgoing(state="INACTIVE", messages=1, connection_history=(event(1, FAILED),))
    assert told(report, commands=commands, served=False) == [
        (
            "No server runs on the folder.",
            "Nothing is sent or received until one does.",
            "Start it: msmqwire serve --data './q m'.",
        ),
        ("It is an outgoing queue; it holds 1 message.", "What it holds is sent once a server runs.", ""),
    ]
    (_, empty) = told(outgoing(messages=0), commands=commands, served=False)
    assert empty[1] == "No message waits to be sent."
    (_, of_local) = told(local(messages=0), commands=commands, served=False)
    assert of_local[0] == "It is a local queue; it holds no messages."


def test_commands_of_a_folder() -> None:
    commands = Commands.of_folder("./qm", NAME)
    assert commands.look == f"msmqwire queue why {QUOTED} --data ./qm"
    assert commands.resume == f"msmqwire queue set {QUOTED} --data ./qm --resume"
    (paused,) = told(outgoing(state="ONHOLD", messages=1), commands=commands)
    assert paused[2] == f"Resume it: {commands.resume}."


def test_a_queue_that_could_not_be_asked() -> None:
    expected = ("The queue could not be asked: access is denied.", "Nothing is known of it.", "")
    assert told(unasked("x", "access is denied.")) == [expected]


# -- the history ---------------------------------------------------------------------------------------------


def history(*events: ConnectionEvent, state: str = "WAITING") -> list[tuple[str, str, str]]:
    return told(outgoing(state=state, messages=1, connection_history=events))[1:]


@pytest.mark.parametrize("status", sorted(set(CONNECTION_STATUSES) - {0, 1, 2}), ids=hex)
def test_each_failure_is_explained(status: int) -> None:
    texts = CONNECTION_STATUSES[status]
    ((fact, meaning, action),) = history(event(30, status))
    when = "at 2026-11-30 11:30:00 UTC, 30 minutes ago"
    assert fact == f"The last connection failed {when}: {texts.meaning}."
    assert meaning == f"Usual causes: {texts.causes}"
    assert action == texts.action.replace("ping HOST", "ping beta")


def test_a_failure_with_error_addresses_and_frequency() -> None:
    ((fact, _, _),) = history(
        event(90, ESTABLISHED),
        event(80, DNS),
        event(60, FAILED, 0xC00E0069, "IP=10.0.0.5"),
        event(30, FAILED, 0x8007274D, "IP=10.0.0.5", "IP=10.0.0.6"),
        event(1, 0),
    )
    assert fact == (
        "The last connection failed at 2026-11-30 11:30:00 UTC, 30 minutes ago: no connection to TCP port "
        "1801 of the destination could be made, error 0x8007274D (the computer answers, and nothing listens "
        "on the port), at IP=10.0.0.5 and IP=10.0.0.6. Of 4 recorded attempts, 3 failed, 2 of them like this "
        "one."
    )


def test_an_unknown_failure_and_an_unknown_error() -> None:
    ((fact, meaning, action),) = history(ConnectionEvent(None, 0x800000FF, 0xC00E00FF))
    assert fact == "The last connection failed: it failed with status 0x800000FF, error 0xC00E00FF."
    assert (meaning, action) == ("This status is not known here.", "")


@pytest.mark.parametrize("turned", [False, True], ids=["oldest first", "newest first"])
def test_the_order_of_the_history_does_not_matter(turned: bool) -> None:
    events = [event(9, FAILED), event(5, FAILED), event(5, ESTABLISHED)]
    in_order = tuple(reversed(events) if turned else events)
    ((fact, meaning, action),) = history(*in_order)
    assert fact == (
        "The last connection that is recorded was established at 2026-11-30 11:55:00 UTC, 5 minutes ago; "
        "2 failures came before."
    )
    assert meaning == "The destination was reached then; no failure is recorded since."
    assert action == ""
    assert history(*in_order, state="CONNECTED") == []


@pytest.mark.parametrize("status", [0, 1], ids=["in process", "packet received"])
def test_an_attempt_under_way(status: int) -> None:
    texts = CONNECTION_STATUSES[status]
    ((fact, meaning, action),) = history(event(2, status))
    assert fact == (
        f"No connection is recorded as established or failed; the last entry is that {texts.meaning} "
        "at 2026-11-30 11:58:00 UTC, 2 minutes ago."
    )
    assert meaning == "The attempt is under way, or gets no answer."
    assert action == texts.action


def test_connections_that_come_and_go() -> None:
    events = [event(9 - number, (ESTABLISHED, REFUSED)[number % 2]) for number in range(4)]
    first, second = history(*events, state="CONNECTED")
    assert first == (
        "Connections come and go: 2 successes and 2 failures in turn between 2026-11-30 11:51:00 UTC and "
        "2026-11-30 11:54:00 UTC.",
        "The destination is reached and lost again.",
        "Look for a service that restarts, two computers with one address or identity, or a firewall that "
        "cuts connections.",
    )
    assert "the destination refuses the session" in second[0]
    assert history(*events[:3], state="CONNECTED") == []


def test_no_history() -> None:
    assert history() == []


# -- acknowledgements ----------------------------------------------------------------------------------------


def eod(state: str = "CONNECTED", **values: Any) -> list[tuple[str, str, str]]:
    return told(outgoing(state=state, messages=3, eod=Eod(**values)))[1:]


def test_unacknowledged_messages_that_are_sent_again() -> None:
    ((fact, meaning, action),) = eod(
        no_ack_count=3,
        last_ack_time=ago(200),
        resend_count=7,
        resend_time=ago(-3),
        resend_interval=180,
    )
    assert fact == (
        "3 transactional messages lack their order acknowledgement; the last one came at 2026-11-30 08:40:00 "
        "UTC, 3 hours ago. The last message was sent 7 times, and the next attempt is at 2026-11-30 12:03:00 "
        "UTC, 180 seconds after the one before."
    )
    assert meaning.startswith("The destination gets them again and again, or does not")
    assert action == (
        "Check that the destination queue is there and transactional, and that its computer can connect back "
        "to TCP port 1801 of the sending one. Then send them again: "
        f"msmqwire manage HOST resend {QUOTED}."
    )


def test_an_unacknowledged_message_that_was_sent_once() -> None:
    ((fact, meaning, action),) = eod(no_ack_count=1, resend_count=1)
    assert fact == (
        "1 transactional message lacks its order acknowledgement; none ever came. The last message was sent "
        "once."
    )
    assert meaning == "The destination has not acknowledged the order of what was sent yet."
    assert action == f"Ask again in a minute: {LOOK}."


def test_unacknowledged_messages_without_a_connection() -> None:
    ((fact, meaning, action),) = eod("WAITING", no_ack_count=2, resend_count=9, resend_time=ago(5))
    assert "next attempt" not in fact
    assert meaning == "Messages stay here until their order is acknowledged, which needs a connection."
    assert action == "Mend the connection first; they are then sent again by themselves."


def test_messages_that_nobody_has_read() -> None:
    ((fact, meaning, action),) = eod(no_ack_count=0, no_read_count=2)
    assert fact == "2 transactional messages are at the destination without a receive acknowledgement."
    assert meaning.startswith("They have arrived, and are not stuck on the way.")
    assert action == "Check that the reader of the destination queue runs."
    assert eod(no_ack_count=0, no_read_count=0, resend_count=5) == []


# -- what else an outgoing queue is --------------------------------------------------------------------------


def test_foreign_and_multicast_queues() -> None:
    _, foreign, multicast = told(outgoing(state="CONNECTED", messages=0, foreign=True, type="MULTICAST"))
    assert foreign[0] == "It is reported as a queue of a foreign system."
    assert multicast[0] == "It sends to a multicast group."
    assert len(told(outgoing(state="CONNECTED", messages=0, foreign=None, type="PRIVATE"))) == 1


# -- local queues --------------------------------------------------------------------------------------------


def test_a_local_queue_with_messages_and_a_journal() -> None:
    first, journal = told(local(messages=4, bytes=10, journal_messages=2, journal_bytes=30))
    assert first == (
        "It is a local queue; it holds 4 messages (10 bytes).",
        "They have arrived and wait for a reader. Whether somebody has the queue open is not reported.",
        "Check that its reader runs, and reads this queue; messages that stay at the front may fail in it.",
    )
    assert journal == (
        "Its journal holds 2 messages (30 bytes).",
        "Nobody takes messages out of a journal by itself; they count towards the quota of the computer.",
        "Read or purge the journal by its name with ;journal, or switch journaling off.",
    )


def test_a_local_queue_that_is_empty_or_unknown() -> None:
    assert told(local(messages=0)) == [
        (
            "It is a local queue; it holds no messages.",
            "Nothing is stuck in it: messages that are missing have not arrived, or were read.",
            "",
        )
    ]
    ((fact, meaning, _),) = told(local())
    assert fact == "It is a local queue; the number of its messages is not reported."
    assert meaning == "Whether messages wait for a reader is not known."


@pytest.mark.parametrize("suffix", ["deadletter", "DEADXACT"])
def test_dead_letters(suffix: str) -> None:
    report = QueueReport(f"alpha\\system$;{suffix}", location="LOCAL", messages=2)
    ((_, meaning, action),) = told(report)
    assert meaning.startswith("These are dead letters")
    assert action == "Read them: the class of each says why (msmqwire explain CLASS). Then purge the queue."


def test_a_journal_waits_for_no_reader() -> None:
    """The path name that is reported for a journal may be that of its queue."""
    path = r"alpha\private$\orders"
    report = QueueReport(path, path, f"DIRECT=OS:{path};JOURNAL", location="LOCAL", messages=2)
    ((_, meaning, action),) = told(report)
    assert meaning.startswith("It is a journal: copies of messages that were read here")
    assert action == "Read or purge it, or switch journaling off."
    assert why_text(report, why(report, NOW)).startswith(f"{path};JOURNAL\n")


def test_senders_whose_messages_were_rejected() -> None:
    sources = [
        Source(NAME, UUID(int=number), 1, 1, ago(number) if number else None, number) for number in range(5)
    ]
    _, rejected = told(local(messages=0, sources=tuple(sources)))
    assert rejected[0] == (
        "Messages of transactional senders were rejected: 00000000-0000-0000-0000-000000000001 1 time, "
        "00000000-0000-0000-0000-000000000002 2 times, 00000000-0000-0000-0000-000000000003 3 times and "
        "1 more, the last one at 2026-11-30 11:59:00 UTC, 1 minute ago."
    )
    assert len(told(local(messages=0, sources=tuple(sources[:1])))) == 1


def test_what_is_neither_local_nor_outgoing() -> None:
    ((fact, _, _),) = told(QueueReport("x", state="WAITING", messages=1))
    assert fact == "Whether the queue is a local or an outgoing one is not reported."


def test_what_could_not_be_had_is_named() -> None:
    unavailable = {"subqueues": "older", "state": "a value of type 0x0003", "eod.no_ack_count": "older"}
    *_, last = told(outgoing(messages=0, unavailable=unavailable))
    assert last[0] == "Not to be had: state (a value of type 0x0003) and eod.no_ack_count (older)."
    assert len(told(outgoing(messages=0, unavailable={"subqueues": "older"}))) == 1


# -- words ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "seconds, words",
    [
        (0, "just now"),
        (1, "1 second ago"),
        (59, "59 seconds ago"),
        (60, "1 minute ago"),
        (3_599, "59 minutes ago"),
        (7_200, "2 hours ago"),
        (86_400 * 400, "400 days ago"),
        (-5, "ahead of the clock here"),
    ],
)
def test_ages(seconds: int, words: str) -> None:
    time = NOW - timedelta(seconds=seconds)
    assert past(time, NOW) == f"at {time:%Y-%m-%d %H:%M:%S} UTC, {words}"


def test_text_and_json() -> None:
    report = QueueReport("evil\x1b[2J", location="REMOTE", state="ONHOLD", messages=1)
    advice = (Advice("A fact.", "Its meaning.", "Do it."), Advice("Another.", "Nothing."))
    assert why_text(report, advice) == (
        "evil\\x1b[2J\n- A fact.\n  Its meaning.\n  What to do: Do it.\n- Another.\n  Nothing."
    )
    found = why_json(report, advice)
    assert found["why"] == [
        {"fact": "A fact.", "meaning": "Its meaning.", "action": "Do it."},
        {"fact": "Another.", "meaning": "Nothing.", "action": None},
    ]
    assert {name: value for name, value in found.items() if name != "why"} == report.to_json()
