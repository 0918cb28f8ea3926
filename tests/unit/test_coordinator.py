"""Transactions over several queue managers: all commit or none does, whichever crashes, and whenever."""

from __future__ import annotations

from collections import deque
from uuid import UUID

import pytest

from msmqwire.qm.coordinator import Action, InProcessCoordinator, Outcome, Request, carry_out
from msmqwire.qm.model.effects import TransactionReply
from msmqwire.qm.model.enumerations import PositionState
from msmqwire.qm.model.tables import Table
from msmqwire.qm.store import memory_store
from tests.support.engine_harness import RECOVERABLE, EngineHarness
from tests.support.queue_contents import bodies, body_of, states

NAMES = ("a", "b")
AVAILABLE, LOCKED = PositionState.AVAILABLE, PositionState.LOCKED
PREPARED = "TXUSER_ENLISTMENT_MTAG_PREPAREREQDONE"


class System:
    """Two queue managers and a coordinator; requests and replies wait until they are delivered."""

    def __init__(self) -> None:
        self.harnesses = {name: EngineHarness() for name in NAMES}
        for harness in self.harnesses.values():
            harness.enqueue(harness.queue(), b"old", delivery_guarantee=RECOVERABLE)
            harness.run()
        self.store = memory_store()
        self._guids = 0
        self.waiting: deque[Request | tuple[UUID, str, str]] = deque()
        self.outcomes: list[Outcome] = []
        self.coordinator = self._started()

    def _started(self) -> InProcessCoordinator:
        return InProcessCoordinator(self.store, new_guid=self._guid)

    def _guid(self) -> UUID:
        self._guids += 1
        return UUID(int=0xC000 + self._guids)

    def begin(self) -> UUID:
        """A transaction that receives ``old`` from each queue manager and sends ``new`` to it."""
        identifier = self.coordinator.begin()
        for name in NAMES:
            core = self.harnesses[name].core
            self.coordinator.enlist(identifier, name)
            transaction = core.transactions.create(identifier)
            queue = self.harnesses[name].find_queue()
            descriptor = self.harnesses[name].open(queue)
            assert body_of(core.messages.dequeue(descriptor, timeout=0, transaction=transaction)) == b"old"
            self.harnesses[name].enqueue(queue, b"new", transaction)
            self.harnesses[name].run()
        return identifier

    def take(self) -> None:
        """Take the effects of the coordinator once its changes are durable."""
        changes, effects = self.coordinator.take()
        self.store.commit(changes)
        self.outcomes += [effect for effect in effects if isinstance(effect, Outcome)]
        self.waiting += [effect for effect in effects if isinstance(effect, Request)]

    def deliver(self, *, durable: bool = True) -> None:
        """Deliver the oldest waiting request or reply."""
        item = self.waiting.popleft()
        if not isinstance(item, Request):
            self.coordinator.replied(*item)
            return
        harness = self.harnesses[item.participant]
        carry_out(item, harness.core.transactions)
        if not durable:
            return
        for effect in harness.run():
            if isinstance(effect, TransactionReply):
                self.waiting.append((effect.transaction, item.participant, effect.tag))
        if item.action in (Action.REENLISTMENT_COMMIT, Action.REENLISTMENT_ABORT):
            self.coordinator.reenlisted(item.transaction, item.participant)

    def run(self, limit: int = 1_000) -> int:
        """Deliver until nothing waits, or up to `limit` times; return how many were delivered."""
        self.take()
        count = 0
        while self.waiting and count < limit:
            self.deliver()
            self.take()
            count += 1
        return count

    def crash(self, name: str) -> None:
        """Restart a participant or the coordinator; its waiting requests and replies are lost."""
        if name == "coordinator":
            self.waiting.clear()
            self.coordinator = self._started()
            for participant, harness in self.harnesses.items():
                harness.run()
                self.coordinator.reenlist(participant, list(harness.core.queue_manager.transactions))
            return
        self.waiting = deque(item for item in self.waiting if _participant(item) != name)
        self.coordinator.lost(name)
        self.harnesses[name].restart()
        self.coordinator.reenlist(name, self.harnesses[name].core.transactions.in_doubt)

    def bodies(self) -> list[list[bytes]]:
        return [bodies(harness.find_queue()) for harness in self.harnesses.values()]

    def states(self) -> list[list[PositionState]]:
        return [states(harness.find_queue()) for harness in self.harnesses.values()]

    def assert_ended(self, *, committed: bool) -> None:
        """The outcome is the same everywhere, for readers and in the stores, and the transaction is gone."""
        assert self.bodies() == [[b"new" if committed else b"old"]] * 2
        assert self.states() == [[AVAILABLE]] * 2
        assert list(self.store.rows(Table.TRANSACTION)) == []
        for harness in self.harnesses.values():
            assert harness.core.queue_manager.transactions == {}
            harness.restart()
        assert self.bodies() == [[b"new" if committed else b"old"]] * 2
        assert self.states() == [[AVAILABLE]] * 2


def _participant(item: Request | tuple[UUID, str, str]) -> str:
    return item.participant if isinstance(item, Request) else item[1]


@pytest.fixture
def system() -> System:
    return System()


def test_commit(system: System) -> None:
    identifier = system.begin()
    system.coordinator.commit(identifier)
    system.run()
    assert system.outcomes == [Outcome(identifier, True)]
    system.assert_ended(committed=True)


def test_abort(system: System) -> None:
    identifier = system.begin()
    system.coordinator.abort(identifier)
    system.run()
    assert system.outcomes == [Outcome(identifier, False)]
    system.assert_ended(committed=False)


def test_no_commit_is_requested_before_all_are_prepared_and_the_decision_is_stored(system: System) -> None:
    identifier = system.begin()
    system.coordinator.commit(identifier)
    system.take()
    assert list(system.waiting) == [Request(name, Action.PREPARE, identifier) for name in NAMES]
    system.deliver()
    system.deliver()
    assert list(system.waiting) == [(identifier, name, PREPARED) for name in NAMES]
    system.deliver()
    assert list(system.coordinator.take()[1]) == []
    system.deliver()
    changes, effects = system.coordinator.take()
    assert list(changes) == [(Table.TRANSACTION, identifier.bytes, b'["a", "b"]')]
    assert effects == [Outcome(identifier, True)] + [
        Request(name, Action.COMMIT, identifier) for name in NAMES
    ]


def test_a_decision_is_kept_until_all_have_committed(system: System) -> None:
    identifier = system.begin()
    system.coordinator.commit(identifier)
    system.run(limit=6)  # prepared, decided, both committed
    assert [key for key, _ in system.store.rows(Table.TRANSACTION)] == [identifier.bytes]
    system.run(limit=1)
    assert [key for key, _ in system.store.rows(Table.TRANSACTION)] == [identifier.bytes]
    system.run(limit=1)
    assert list(system.store.rows(Table.TRANSACTION)) == []


def test_one_that_cannot_prepare_aborts_all(system: System) -> None:
    identifier = system.begin()
    system.harnesses["b"].core.transactions.abort(identifier)  # unknown to b from now on
    system.coordinator.commit(identifier)
    system.run()
    assert system.outcomes == [Outcome(identifier, False)]
    system.assert_ended(committed=False)


def test_a_transaction_without_participants(system: System) -> None:
    identifier = system.coordinator.begin()
    system.coordinator.commit(identifier)
    system.run()
    assert system.outcomes == [Outcome(identifier, True)]
    assert list(system.store.rows(Table.TRANSACTION)) == []


def test_a_participant_that_enlists_too_late_aborts(system: System) -> None:
    identifier = system.coordinator.begin()
    system.coordinator.abort(identifier)
    system.coordinator.enlist(identifier, "a")
    assert system.coordinator.take()[1] == [
        Outcome(identifier, False),
        Request("a", Action.ABORT, identifier),
    ]


def test_a_committed_transaction_cannot_be_aborted(system: System) -> None:
    identifier = system.begin()
    system.coordinator.commit(identifier)
    system.run(limit=4)
    system.coordinator.abort(identifier)
    system.run()
    assert system.outcomes == [Outcome(identifier, True)]
    system.assert_ended(committed=True)


@pytest.mark.requirement("DMPR-3.1.4.9-01")
def test_a_participant_that_crashes_after_it_prepared_commits_with_the_others(system: System) -> None:
    identifier = system.begin()
    system.coordinator.commit(identifier)
    system.run(limit=4)  # decided, no commit delivered
    system.crash("b")
    assert system.states()[1] == [LOCKED, LOCKED]
    harness = system.harnesses["b"]
    assert harness.core.messages.dequeue(harness.open(harness.find_queue()), timeout=0).message is None
    system.take()
    assert Request("b", Action.REENLISTMENT_COMMIT, identifier) in system.waiting
    system.run()
    system.assert_ended(committed=True)


@pytest.mark.requirement("DMPR-3.1.4.10-01")
def test_a_participant_that_crashes_after_it_prepared_aborts_with_the_others(system: System) -> None:
    identifier = system.begin()
    system.coordinator.commit(identifier)
    system.run(limit=1)  # a has prepared
    assert system.waiting[0] == Request("b", Action.PREPARE, identifier)
    system.coordinator.abort(identifier)
    system.waiting.clear()
    system.coordinator.take()  # the request is lost
    system.crash("a")
    assert system.states()[0] == [LOCKED, LOCKED]
    system.take()
    assert list(system.waiting) == [Request("a", Action.REENLISTMENT_ABORT, identifier)]
    system.run()
    assert system.states()[0] == [AVAILABLE]
    assert system.bodies()[0] == [b"old"]


def test_a_participant_that_crashes_before_it_prepared_aborts_all(system: System) -> None:
    identifier = system.begin()
    system.crash("b")
    system.coordinator.commit(identifier)
    system.run()
    assert system.outcomes == [Outcome(identifier, False)]
    system.assert_ended(committed=False)


def test_a_coordinator_that_crashes_before_its_decision_aborts(system: System) -> None:
    identifier = system.begin()
    system.coordinator.commit(identifier)
    system.run(limit=3)  # both are prepared, one reply delivered
    assert system.states() == [[LOCKED, LOCKED]] * 2
    system.crash("coordinator")
    system.run()
    system.assert_ended(committed=False)


def test_a_coordinator_that_crashes_after_its_decision_commits(system: System) -> None:
    identifier = system.begin()
    system.coordinator.commit(identifier)
    system.run(limit=4)
    assert system.states() == [[LOCKED, LOCKED]] * 2
    system.crash("coordinator")
    assert system.coordinator.take()[1][:2] == [Request(name, Action.COMMIT, identifier) for name in NAMES]
    system.crash("coordinator")
    system.run()
    system.assert_ended(committed=True)


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("second", [None, "a", "b", "coordinator"])
@pytest.mark.parametrize("first", ["a", "b", "coordinator"])
@pytest.mark.parametrize("after", range(9))
def test_all_end_alike_whichever_crashes_and_whenever(
    after: int, first: str, second: str | None, durable: bool
) -> None:
    system = System()
    system.coordinator.commit(system.begin())
    system.run(limit=after)
    if not durable and system.waiting:
        system.deliver(durable=False)  # its step is lost with the crash, or delivered later
    system.crash(first)
    if second is not None:
        system.run(limit=1)
        system.crash(second)
    system.run()
    for name in NAMES:  # participants without an answer ask again
        system.harnesses[name].run()
        system.coordinator.reenlist(name, list(system.harnesses[name].core.queue_manager.transactions))
    system.run()
    committed = system.bodies()[0] == [b"new"]
    assert {outcome.committed for outcome in system.outcomes} <= {committed}
    system.assert_ended(committed=committed)


def test_the_loss_of_a_participant_aborts_all(system: System) -> None:
    identifier = system.begin()
    system.coordinator.lost("b")
    assert system.coordinator.take()[1][-1] == Outcome(identifier, False)


def test_a_participant_that_comes_back_without_a_transaction_aborts_it(system: System) -> None:
    identifier = system.begin()
    system.coordinator.reenlist("b", [])
    assert system.coordinator.take()[1][-1] == Outcome(identifier, False)


def test_a_participant_whose_answer_was_lost_is_still_prepared(system: System) -> None:
    identifier = system.begin()
    system.coordinator.commit(identifier)
    system.run(limit=3)  # both are prepared, the reply of a delivered
    assert system.waiting.pop() == (identifier, "b", PREPARED)
    system.coordinator.reenlist("b", system.harnesses["b"].core.transactions.in_doubt)
    system.run()
    assert system.outcomes == [Outcome(identifier, True)]
    system.assert_ended(committed=True)
