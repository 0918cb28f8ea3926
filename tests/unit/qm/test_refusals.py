"""The trace of refused messages: what is kept, counted and reported, and what of it has a limit."""

from __future__ import annotations

from collections import Counter

import pytest

from msmqwire.constants import MessageClass
from msmqwire.names import parse_format_name
from msmqwire.names.origins import UNKNOWN_ORIGIN
from msmqwire.qm.model.elements import OutgoingQueue, Queue
from msmqwire.qm.model.message import NULL_GUID, Message, ObjectId
from msmqwire.qm.model.refusals import (
    COUNTED_MAX,
    KEPT_MAX,
    OTHER,
    PEER_REPORTS_MAX,
    REPORT_MS,
    REPORTS_MAX,
    Refusal,
    RefusalKey,
    Refusals,
    reason_of,
    shown,
)
from msmqwire.qm.runtime.refused import log_refusal
from tests.support.engine_harness import EngineHarness
from tests.support.peers.handwritten_peer import direct

PEER = "10.0.0.1"
NOWHERE = r"DIRECT=OS:here\private$\nowhere"


def message(name: str = NOWHERE, label: str = "order", number: int = 1) -> Message:
    identifier = ObjectId(NULL_GUID, number)
    return Message(destination=parse_format_name(name), label=label, identifier=identifier)


def queue(name: str = "orders") -> Queue:
    return Queue(NULL_GUID, pathname=rf"here\private$\{name}")


def add(
    refusals: Refusals,
    refused: Message | None = None,
    *,
    now: int = 0,
    reason: str = "BAD_DST_Q",
    peer: str | None = PEER,
    of: Queue | None = None,
) -> None:
    refusals.add(
        reason, peer=peer, queue=of, message=refused or message(), why="", now=now, utc=1_000 + now // 1_000
    )


def reported(refusals: Refusals, now: int) -> list[tuple[RefusalKey, int]]:
    return [(refusal.key, refusal.count) for refusal in refusals.due(now)]


def test_refusals_have_one_entry_per_peer_queue_and_reason() -> None:
    """The entry has the latest message."""
    refusals = Refusals()
    add(refusals, message(label="first"))
    add(refusals, message(label="second", number=2), now=5_000)
    add(refusals, peer=None)
    add(refusals, reason="ACCESS_DENIED", of=queue())
    assert [tuple(key) for key in refusals.kept] == [
        (PEER, NOWHERE, "BAD_DST_Q"),
        (None, NOWHERE, "BAD_DST_Q"),
        (PEER, r"private$\orders", "ACCESS_DENIED"),
    ]
    kept = refusals.kept[RefusalKey(PEER, NOWHERE, "BAD_DST_Q")]
    assert (kept.label, kept.identifier, kept.count, kept.last) == (
        "second",
        ObjectId(NULL_GUID, 2),
        2,
        1_005,
    )
    assert refusals.counts == {("BAD_DST_Q", OTHER): 3, ("ACCESS_DENIED", r"private$\orders"): 1}


def test_first_refusals_are_reported_at_once_and_more_by_minute() -> None:
    refusals = Refusals()
    key = RefusalKey(PEER, NOWHERE, "BAD_DST_Q")
    assert (refusals.due(0), refusals.deadline) == ([], None)
    add(refusals, now=7)
    assert refusals.deadline == 7
    assert reported(refusals, 7) == [(key, 1)]
    for now in (8, 9, 30_000):
        add(refusals, now=now)
        assert reported(refusals, now) == []
    assert refusals.deadline == 7 + REPORT_MS
    assert reported(refusals, 7 + REPORT_MS) == [(key, 3)]
    assert reported(refusals, 7 + 2 * REPORT_MS) == []
    assert refusals.deadline is None
    add(refusals, now=1 << 20)
    assert reported(refusals, 1 << 20) == [(key, 1)], "at once again after a quiet minute"


def test_what_is_not_reported_at_the_end_is_the_rest() -> None:
    refusals = Refusals()
    add(refusals)
    refusals.due(0)
    assert refusals.rest() == []
    add(refusals)
    refusals.due(0)
    add(refusals)
    add(refusals)
    assert [refusal.count for refusal in refusals.rest()] == [2]
    assert refusals.rest() == []


def test_a_hundred_thousand_invented_names_of_one_peer() -> None:
    refusals, lines, total = Refusals(), 0, 100_000
    counts = 0
    for number in range(total):
        add(refusals, message(rf"DIRECT=OS:here\private$\n{number}", label="\x1b]0;owned\x07" * 30))
        if not number % 64:
            for refusal in refusals.due(number // 100):
                lines, counts = lines + 1, counts + refusal.count
    assert lines <= PEER_REPORTS_MAX + 1
    for refusal in refusals.due(1 << 30):
        lines, counts = lines + 1, counts + refusal.count
    assert counts == total, "no count is lost"
    assert lines <= 2 * (PEER_REPORTS_MAX + 1)
    assert len(refusals.kept) == KEPT_MAX
    assert next(reversed(refusals.kept)).queue == rf"DIRECT=OS:here\private$\n{total - 1}"
    assert refusals.counts == {("BAD_DST_Q", OTHER): total}
    for refusal in refusals.kept.values():
        label = shown(refusal.label)
        assert label is not None
        assert label.isprintable()
        assert len(label) <= 200


def test_a_hundred_thousand_peers() -> None:
    refusals, by_peer = Refusals(), Counter[str | None]()
    for number in range(100_000):
        add(refusals, peer=f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    reports = refusals.due(0)
    for refusal in reports:
        by_peer[refusal.key.peer] += refusal.count
    assert len(reports) == REPORTS_MAX + 1
    assert by_peer[OTHER] == 100_000 - REPORTS_MAX
    assert by_peer["10.0.0.7"] == 1
    assert len(refusals.kept) == KEPT_MAX


def test_peer_and_program_names_share_few_metric_labels() -> None:
    refusals = Refusals()
    outgoing = OutgoingQueue(NULL_GUID, destination=parse_format_name(NOWHERE), asked_by=PEER)
    add(refusals, of=outgoing)
    assert refusals.counts == {("BAD_DST_Q", OTHER): 1}
    outgoing.asked_by = ""
    add(refusals, of=outgoing)
    assert refusals.counts["BAD_DST_Q", str(outgoing.destination)] == 1
    for number in range(3 * COUNTED_MAX):
        add(refusals, of=queue(f"reply{number}"))
    assert len(refusals.counts) <= COUNTED_MAX + 1
    assert sum(refusals.counts.values()) == 2 + 3 * COUNTED_MAX


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        (MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q, "BAD_DST_Q"),
        (MessageClass.MQMSG_CLASS_NACK_Q_EXCEED_QUOTA, "quota"),
        (MessageClass.MQMSG_CLASS_NACK_Q_PURGED, None),
        (MessageClass.MQMSG_CLASS_NACK_Q_DELETED, None),
        (MessageClass.MQMSG_CLASS_NACK_DELETED, None),
        (MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE, OTHER),
        (0x8123, OTHER),
        ("disk", "disk"),
    ],
)
def test_reasons_are_few_whatever_class_a_peer_answers(reason: int | str, name: str | None) -> None:
    assert reason_of(reason) == name


def test_the_peer_address_is_kept_while_the_message_is_in_memory() -> None:
    harness = EngineHarness()
    harness.queue("orders")
    peer = harness.accept_session(address="fd00::5")
    peer.send_message(destination=direct("nosuch"))
    peer.send_message(destination=direct("orders"), time_to_be_received=1)
    harness.advance(60_000)
    kept = harness.core.context.refusals.kept
    assert [(key.peer, key.reason) for key in kept] == [
        ("fd00::5", "BAD_DST_Q"),
        ("fd00::5", "RECEIVE_TIMEOUT"),
    ]


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ((PEER, "a", "quota"), "1 message of 10.0.0.1 for a refused: quota"),
        (
            (None, "private$\\a", "RECEIVE_TIMEOUT"),
            "1 message of this computer for private$\\a expired: RECEIVE_TIMEOUT",
        ),
        ((PEER, OTHER, "quota"), "1 message of 10.0.0.1 for several queues refused: quota"),
        ((OTHER, OTHER, "quota"), "1 message of several peers for several queues refused: quota"),
        (
            (UNKNOWN_ORIGIN, None, "malformed"),
            "1 message of an unknown peer for an unknown queue refused: malformed",
        ),
    ],
)
def test_lines_of_the_log(
    key: tuple[str | None, str | None, str], line: str, caplog: pytest.LogCaptureFixture
) -> None:
    log_refusal(Refusal(RefusalKey(*key), None, None, "", 1, 1_000))
    assert caplog.messages == [line]
