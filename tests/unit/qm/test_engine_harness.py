"""The harness of the conformance tests runs its queue manager by the driver that ships."""

from __future__ import annotations

import pytest

from msmqwire.errors import StoreRefused
from msmqwire.qm.model.effects import Connect, ReadCompleted, Resolve, Send
from msmqwire.qm.model.tables import Table
from msmqwire.service.driver import RETRY_S
from msmqwire.service.store.changes import Changes
from tests.support.engine_harness import RECOVERABLE, EngineHarness, harness_with_peer


def test_nothing_is_carried_out_while_the_disk_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = harness_with_peer()
    commit, refused = harness.store.commit, []

    def refuse(changes: Changes) -> None:
        refused.append(harness.now)
        raise StoreRefused("the disk is full", file="here")

    monkeypatch.setattr(harness.store, "commit", refuse)
    harness.send(b"kept", recoverable=True)
    assert (harness.effects_of(Resolve), harness.rows(Table.MESSAGE)) == ([], {})
    monkeypatch.setattr(harness.store, "commit", commit)
    harness.advance(round(RETRY_S * 1000) - 1)
    assert (harness.effects_of(Resolve), refused) == ([], [0])
    harness.advance(1)
    assert len(harness.effects_of(Resolve)) == len(harness.rows(Table.MESSAGE)) == 1
    assert harness.called[0].bodies() == [b"kept"]


def test_all_effects_are_recorded_with_their_time() -> None:
    harness = harness_with_peer()
    queue = harness.queue()
    harness.forget_effects()
    harness.core.messages.dequeue(harness.open(queue), timeout=300)
    harness.advance(500)
    harness.send(b"1")
    assert [(time, type(effect)) for time, effect in harness.effect_log[:3]] == [
        (300, ReadCompleted), (500, Resolve), (500, Connect),
    ]  # fmt: skip
    assert {type(effect) for _, effect in harness.effect_log[3:]} == {Send}


def test_a_fault_of_the_core_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = EngineHarness()

    def fault(*_: object) -> None:
        raise ZeroDivisionError("planted")

    peer = harness.accept_session()
    monkeypatch.setattr(harness.core.binary, "disconnected", fault)
    with pytest.raises(ZeroDivisionError, match="planted"):
        peer.disconnect()
    monkeypatch.setattr(harness.core, "take", fault)
    with pytest.raises(ZeroDivisionError, match="planted"):
        harness.send(b"1")


def test_a_restart_forgets_what_was_not_committed_and_its_timers() -> None:
    harness = EngineHarness()
    queue = harness.queue()
    harness.core.messages.dequeue(harness.open(queue), timeout=300)
    harness.enqueue(harness.queue("others"), b"lost", delivery_guarantee=RECOVERABLE)
    harness.restart()
    assert harness.rows(Table.MESSAGE) == {}
    harness.advance(1_000)
    assert harness.effects_of(ReadCompleted) == []
