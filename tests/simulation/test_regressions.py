"""Regressions: runs that once violated an invariant, shrunk as far as possible."""

from __future__ import annotations

from dataclasses import replace

import pytest

from msmqwire.constants import HResult
from msmqwire.qm.model.enumerations import AcknowledgementsRequested
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.sim.mistakes import MISTAKES
from msmqwire.qm.sim.plan import Item, Plan
from msmqwire.qm.sim.tracked import SendState
from msmqwire.qm.sim.world import World
from msmqwire.service.virtual.mistake import injected

SEND = {"count": 1, "to": "beta", "form": "OS", "queue": "plain", "size": 0, "recoverable": True}
TRANSACTION = {
    "count": 1, "to": "beta", "form": "OS", "queue": "tx", "size": 0, "end": "commit", "hold_ms": 0,
}  # fmt: skip
RECEIVE = {"queue": "tx", "mode": "plain", "count": 9, "hold_ms": 0}
SETTINGS = Settings(resend_timer_table=(3, 5, 10))


def run(*items, nodes=("alpha", "beta"), router=None, settings=SETTINGS, seed=1, **more):
    world = World(Plan(seed, nodes, settings, (0,) * len(nodes), router, 0.0, 0.0, items, **more), story=True)
    outcome = world.run()
    story = outcome.story.diagram(nodes)
    assert outcome.violation is None, story
    return world, story


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("operation", ["send", "transaction"])
def test_messages_in_flight_are_resent_on_the_next_connection(operation, seed):
    args = SEND if operation == "send" else TRANSACTION
    items = [
        Item(0, operation, "alpha", args),
        Item(5_000, "partition", "alpha", {"other": "beta", "ms": 9_000}),
    ]
    items += [
        Item(5_500, operation, "alpha", args),
        Item(6_000, "cut", "alpha", {"late_ms": 0, "pick": 0}),
    ]
    world, story = run(*items, seed=seed)
    assert story.count("UserMessage #2") >= 2
    assert world.ledger.messages[2].received == 1


def test_messages_sent_while_offline_are_transmitted_when_online():
    world, _ = run(Item(0, "offline", "alpha", {"ms": 3_000}), Item(1_000, "send", "alpha", SEND))
    assert world.ledger.messages[1].received == 1


def test_a_session_being_established_survives_going_offline():
    pinging = replace(SETTINGS, ping=True)
    items = (
        Item(0, "partition", "alpha", {"other": "beta", "ms": 3_000}),
        Item(1, "send", "alpha", SEND),
        Item(500, "offline", "alpha", {"ms": 2_000}),
    )
    world, _ = run(*items, settings=pinging)
    assert world.ledger.messages[1].received == 1


def test_final_acknowledgements_are_sent_during_flow_control():
    world, story = run(
        Item(0, "transaction", "alpha", {**TRANSACTION, "journal": True}),
        Item(3_000, "disk", "beta", {"ms": 2_000}),
        Item(3_100, "send", "alpha", SEND),
        Item(3_700, "receive", "beta", RECEIVE),
    )
    assert "refuses a commit" in story
    assert world.ledger.messages[1].journaled == 1


def test_a_router_that_cannot_store_does_not_advance_its_counts():
    routed = {**TRANSACTION, "to": "gamma", "form": "PRIVATE"}
    world, story = run(
        Item(0, "transaction", "alpha", routed),
        Item(5_000, "disk", "beta", {"ms": 3_000}),
        Item(5_001, "transaction", "gamma", {**routed, "to": "beta"}),
        Item(6_000, "transaction", "alpha", routed),
        Item(8_500, "transaction", "alpha", routed),
        nodes=("alpha", "beta", "gamma"), router="beta", settings=replace(SETTINGS, resend_timer_table=(30,)),
    )  # fmt: skip
    assert "refuses a commit" in story
    assert all(world.ledger.messages[number].received == 1 for number in (1, 3, 4))


def in_doubt():
    """The plan of a message that expires while its acknowledgement is in flight."""
    return (
        Item(0, "transaction", "alpha", TRANSACTION),
        Item(2_000, "transaction", "alpha", {**TRANSACTION, "reach_s": 2, "deadletter": True}),
        Item(2_300, "partition", "alpha", {"other": "beta", "ms": 8_000}),
        Item(2_400, "cut", "alpha", {"late_ms": 0, "pick": 0}),
    )


def test_a_message_in_doubt_is_not_dead_lettered():
    world, _ = run(*in_doubt())
    assert world.ledger.messages[2].deadlettered == 0
    assert world.ledger.messages[2].received == 1


def test_a_message_in_doubt_is_dead_lettered_by_the_setting():
    plan = Plan(
        1, ("alpha", "beta"), replace(SETTINGS, expire_in_doubt=True), (0, 0), None, 0.0, 0.0, in_doubt()
    )
    violation = World(plan).run().violation
    assert violation is not None
    with injected(MISTAKES["expired while in doubt"]):
        mistaken = World(replace(plan, settings=SETTINGS)).run().violation
    assert str(mistaken) == str(violation)


def test_an_expired_message_is_dropped_despite_a_clock_set_back():
    """The clock is set back before the loss is durable."""
    overdue = {**TRANSACTION, "to": "alpha", "reach_s": 2}
    items = (
        Item(0, "refuse", "alpha", {"ms": 60_000}),
        Item(0, "transaction", "beta", overdue),
        Item(3_125, "send", "beta", {**SEND, "to": "alpha"}),
        Item(3_125, "clock", "beta", {"seconds": -3}),
    )
    world, _ = run(*items)
    assert world.ledger.messages[1].expired_at == "beta"


def test_the_identifier_of_a_message_lost_in_a_crash_is_reused():
    local = {**SEND, "to": "alpha", "form": "PRIVATE"}
    items = (
        Item(0, "slow disk", "alpha", {"ms": 100, "each_ms": 90}),
        Item(0, "send", "alpha", local),
        Item(1, "crash", "alpha", {"after": 0, "ms": 50}),
        Item(500, "send", "alpha", {**local, "acks": 5}),
    )
    world, _ = run(*items, nodes=("alpha",), seed=4, commits_in_thread=True)
    first, second = world.ledger.messages[1], world.ledger.messages[2]
    assert (first.state, first.identifier) == (SendState.LOST, second.identifier)
    assert second.received == 1


BY_SRMP = {**TRANSACTION, "form": "HTTP", "admin": "HTTP"}


@pytest.mark.requirement("SRMP-3.1.7.3.3-05")
def test_a_waiting_reader_gets_the_first_message_of_a_stream():
    waiting = Item(0, "receive", "beta", {**RECEIVE, "mode": "wait"})
    world, story = run(waiting, Item(500, "transaction", "alpha", {**BY_SRMP, "deadletter": True}))
    assert "positive final receipt" in story
    assert world.ledger.messages[1].received == 1


def test_a_commitment_receipt_is_sent_after_a_restart():
    asking = {
        **SEND,
        "form": "HTTP",
        "admin": "HTTP",
        "acks": int(AcknowledgementsRequested.ACK_FULL_RECEIVE),
    }
    _, story = run(Item(0, "send", "alpha", asking), Item(5_000, "crash", "beta", {"after": 0, "ms": 100}))
    assert story.count("request positive commitment receipt") == 1


def test_a_final_receipt_survives_a_crash():
    items = (
        Item(0, "transaction", "alpha", {**BY_SRMP, "deadletter": True}),
        Item(4_900, "refuse", "alpha", {"ms": 3_000}),
        Item(5_000, "receive", "beta", RECEIVE),
        Item(6_000, "crash", "beta", {"after": 0, "ms": 100}),
    )
    world, story = run(*items)
    assert story.count("request positive final receipt") > 1
    assert (world.ledger.messages[1].received, world.ledger.messages[1].deadlettered) == (1, 0)


@pytest.mark.requirement("SRMP-3.1.1.1.2.4-11")
def test_a_stream_message_in_doubt_is_received_and_dead_lettered():
    in_queue = Item(0, "transaction", "alpha", {**BY_SRMP, "deadletter": True, "reach_s": 5})
    world, _ = run(in_queue, Item(20_000, "receive", "beta", RECEIVE))
    message = world.ledger.messages[1]
    assert (message.received, message.deadlettered, message.expired_at) == (1, 1, "alpha")


def test_a_receipt_is_awaited_after_a_pause_during_its_request():
    items = (
        Item(0, "transaction", "alpha", BY_SRMP),
        Item(0, "partition", "alpha", {"other": "beta", "ms": 20_000}),
        Item(5_000, "pause", "alpha", {"ms": 4_000, "pick": 0}),
    )
    world, story = run(*items)
    assert "pauses DIRECT=HTTP" in story
    assert world.ledger.messages[1].received == 1


@pytest.mark.parametrize("seed", range(5))
def test_a_stream_survives_requests_that_are_lost_and_repeated(seed):
    items = [Item(at, "transaction", "alpha", {**BY_SRMP, "count": 3}) for at in range(0, 40_000, 8_000)]
    plan = Plan(seed, ("alpha", "beta"), SETTINGS, (0, 0), None, 0.5, 0.0, tuple(items), 0.4, 0.4, 10_000)
    world = World(plan)
    outcome = world.run()
    assert outcome.violation is None
    assert outcome.counts["lost in HTTP"]
    assert outcome.counts["repeated requests"]
    assert all(message.received == 1 for message in world.ledger.messages.values())


READ = {"from": "beta", "queue": "tx", "count": 1, "hold_ms": 0}


def test_a_waiting_reader_gets_an_aborted_readers_message():
    items = (
        Item(0, "transaction", "alpha", TRANSACTION),
        Item(2_000, "remote read", "alpha", {**READ, "mode": "abort", "hold_ms": 1_000}),
        Item(2_500, "remote read", "alpha", {**READ, "mode": "wait"}),
    )
    world, story = run(*items)
    assert story.count("answers R_StartReceive: 0x0") == 1
    assert world.ledger.messages[1].received == 1


def test_a_message_purged_before_its_commit_is_not_journaled():
    """No reader could see it: [MS-MQDMPR] 3.1.4.4 deletes it with the commit."""
    local = {**TRANSACTION, "hold_ms": 2_000, "journal": True}
    items = (
        Item(0, "transaction", "beta", local),
        Item(500, "remote read", "alpha", {**READ, "mode": "purge"}),
    )
    world, _ = run(*items)
    message = world.ledger.messages[1]
    assert (message.purged_before_commit, message.received, message.journaled) == (True, 0, 0)


def test_a_former_stream_stays_ended_with_a_short_history():
    """If it began again, the state of the stream that was accepted after it would be lost."""
    settings = replace(SETTINGS, remove_duplicate_size=4)
    items = (
        Item(0, "transaction", "alpha", BY_SRMP),
        *(Item(at, "send", "alpha", SEND) for at in range(5_000, 10_000, 1_000)),
        Item(16_000, "unresolved", "alpha", {"ms": 3_000}),
        Item(16_015, "transaction", "alpha", BY_SRMP),
    )
    for seed in range(20):
        plan = Plan(seed, ("alpha", "beta"), settings, (0, 0), None, 0.0, 0.0, items, 0.0, 0.5, 10_000)
        outcome = World(plan, story=True).run()
        assert outcome.violation is None


def test_a_purged_message_in_a_transaction_ends_with_it():
    """It is deleted with the reason of the reader's receive: [MS-MQDMPR] 3.1.4.5."""
    items = (
        Item(0, "transaction", "alpha", TRANSACTION),
        Item(2_000, "remote read", "alpha", {**READ, "mode": "single", "hold_ms": 20_000}),
        Item(4_000, "remote read", "alpha", {**READ, "mode": "purge"}),
    )
    world, story = run(*items)
    assert story.count("answers R_PurgeQueue: 0x0") == 1
    assert world.ledger.messages[1].arrivals


def test_a_run_ends_only_after_all_connection_losses_are_seen():
    items = (
        Item(0, "send", "alpha", SEND),
        Item(70_000, "remote read", "alpha", {**READ, "queue": "plain", "mode": "late"}),
        Item(75_000, "crash", "alpha", {"after": 0, "ms": 2_000}),
    )
    world, story = run(*items, seed=16)  # beta hears of it 45 seconds later
    assert any(line.startswith("    120") and "is gone" in line for line in story.splitlines())
    assert world.environment.now > 120_000


TO_ITSELF = {**TRANSACTION, "to": "alpha", "form": "PRIVATE"}
REFUSED = (
    Item(1_000, "disk", "alpha", {"ms": 1_000}),
    Item(1_000, "slow disk", "alpha", {"ms": 9_000, "each_ms": 400}),
    Item(1_000, "send", "alpha", {**SEND, "to": "alpha", "form": "PRIVATE"}),
)
"""The disk refuses a commit, and then is slow: what is changed meanwhile is a commit of its own."""


@pytest.mark.parametrize("seed", range(3))
def test_a_crash_loses_all_changes_after_a_refused_commit(seed):
    """The books undo them as well, though the commit before them is durable."""
    asking = {**TO_ITSELF, "acks": int(AcknowledgementsRequested.ACK_FULL_RECEIVE)}
    items = (
        Item(0, "transaction", "alpha", asking),
        *REFUSED,
        Item(1_500, "receive", "alpha", RECEIVE),
        Item(2_700, "crash", "alpha", {"after": 0, "ms": 100}),
        Item(9_000, "receive", "alpha", RECEIVE),
    )
    world, story = run(*items, nodes=("alpha",), seed=seed, commits_in_thread=True)
    assert story.count("#1 (transactional, alpha to alpha\\tx) is received") == 2
    assert world.ledger.messages[1].received == 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("refuses_ms", [0, 3_000])
def test_an_expiry_can_be_committed_after_a_clock_set_back(refuses_ms, seed):
    """The message expires while a commit is written, or waits after one that was refused."""
    overdue = {**SEND, "reach_s": 2, "deadletter": True}
    items = (
        Item(0, "partition", "alpha", {"other": "beta", "ms": 9_000}),
        Item(0, "send", "alpha", overdue),
        Item(2_500, "slow disk", "alpha", {"ms": 6_000, "each_ms": 2_000}),
        Item(2_500, "disk", "alpha", {"ms": refuses_ms}),
        Item(2_500, "send", "alpha", {**SEND, "to": "alpha", "form": "PRIVATE"}),
        Item(4_000, "clock", "alpha", {"seconds": -5}),
    )
    world, _ = run(*items, seed=seed, commits_in_thread=True)
    assert world.ledger.messages[1].deadlettered == 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("received", [False, True])
def test_a_reader_that_is_cut_off_does_not_reject_what_went_back(received, seed):
    """It rejects after R_EndTransactionalReceive, MQRR-3.1.4.14-03, which fails if its time is over."""
    reading = {**READ, "mode": "commit", "count": 3, "hold_ms": 3_000}
    items = (
        Item(0, "transaction", "alpha", {**TRANSACTION, "count": 2}),
        Item(3_000, "remote read", "alpha", reading),
        Item(8_000, "partition", "beta", {"other": "alpha", "ms": 20_000}),
        *([Item(25_000, "receive", "beta", RECEIVE)] if received else []),
    )
    _, story = run(*items, seed=seed)
    statuses = [line.split()[-1] for line in story.splitlines() if "answers R_EndTransactional" in line]
    assert statuses == ["0x0", f"{HResult.MQ_ERROR_INVALID_HANDLE:#x}"]
    assert "R_SetUserAcknowledgementClass" not in story


@pytest.mark.parametrize("seed", range(3))
def test_a_reader_still_connected_rejects_an_accepted_message(seed):
    items = (
        Item(0, "transaction", "alpha", {**TRANSACTION, "count": 2}),
        Item(3_000, "remote read", "alpha", {**READ, "mode": "commit", "count": 2, "hold_ms": 3_000}),
    )
    _, story = run(*items, seed=seed)
    answers = [line.split(" answers ")[1] for line in story.splitlines() if " answers R_" in line]
    ended = "R_EndTransactionalReceive: 0x0"
    assert answers[-3:-1] == [ended, "R_SetUserAcknowledgementClass: 0x0"]
    assert answers.count(ended) == 2
