"""Coordinators of distributed transactions: what a queue manager has of one, and one for a single process.

The protocol between them, [MS-DTCO], is not spoken here. Its messages are the entrances of `Participant` in
the one direction, which are those of [MS-MQDMPR] 3.1.4.6 to 3.1.4.10, and the replies that a `Coordinator` is
told of in the other.

A transaction is committed in two phases. Every participant prepares it: from then on it can commit after a
crash too. When all have, the decision to commit is stored, and then they are told. Nothing else is stored: a
transaction without a stored decision is aborted, so that whoever asks after a crash always gets an answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from enum import Enum
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from msmqwire.qm.model.changes import Changes, Table
from msmqwire.qm.rules.recovery import Stored
from msmqwire.qm.rules.transactions import ABORT_DONE, COMMIT_DONE, PREPARE_DONE


class Participant(Protocol):
    """A resource manager: `msmqwire.qm.rules.transactions.Transactions` is one."""

    def dtc_prepare(self, identifier: UUID, *, single_phase: bool) -> None:
        """Be ready to commit, or abort. Answers PREPAREREQDONE or ABORTREQDONE."""

    def dtc_commit(self, identifier: UUID) -> None:
        """Commit, if that has not been done. Answers COMMITREQDONE."""

    def dtc_abort(self, identifier: UUID) -> None:
        """Abort, if that has not been done. Answers ABORTREQDONE."""

    def dtc_reenlistment_commit(self, identifier: UUID) -> None:
        """After a restart: commit what was in doubt."""

    def dtc_reenlistment_abort(self, identifier: UUID) -> None:
        """After a restart: abort what was in doubt."""


class Coordinator(Protocol):
    """What the owner of a participant tells a coordinator. Participants bear names that survive them."""

    def enlist(self, transaction: UUID, participant: str) -> None:
        """A participant takes part in a transaction from now on."""

    def replied(self, transaction: UUID, participant: str, tag: str) -> None:
        """A participant has answered, and what it says is durable there: a `TransactionReply`."""

    def lost(self, participant: str) -> None:
        """A participant is gone, with all that it had not prepared."""

    def reenlist(self, participant: str, in_doubt: Collection[UUID]) -> None:
        """A participant has started again, or the coordinator has.

        `in_doubt` are the transactions that are prepared there and not ended, by what is durable there.
        """

    def reenlisted(self, transaction: UUID, participant: str) -> None:
        """The outcome that `reenlist` has led to is durable at the participant."""


class Action(Enum):
    """What a participant is to do: an entrance of `Participant`."""

    PREPARE = "prepare"
    COMMIT = "commit"
    ABORT = "abort"
    REENLISTMENT_COMMIT = "reenlistment commit"
    REENLISTMENT_ABORT = "reenlistment abort"


class Request(NamedTuple):
    """What a participant is asked for."""

    participant: str
    action: Action
    transaction: UUID


class Outcome(NamedTuple):
    """How a transaction has ended, for the application that began it."""

    transaction: UUID
    committed: bool


class State(Enum):
    """What a coordinator is doing with a transaction; one that is aborted or done is forgotten."""

    ACTIVE = "active"
    PREPARING = "preparing"
    COMMITTED = "committed"


class _Transaction:
    __slots__ = ("participants", "state", "waits_for")

    def __init__(self, participants: Collection[str] = (), state: State = State.ACTIVE) -> None:
        self.participants = dict.fromkeys(participants)  # in the order they came
        self.waits_for = set(participants)
        self.state = state


class InProcessCoordinator:
    """Coordinates participants of one process; it does nothing by itself.

    As with a queue manager, its owner takes what has changed and what is to be done (`take`), and does none
    of it before the changes, and all taken before, are durable. Its rows need a store of their own.
    """

    def __init__(self, stored: Stored, *, new_guid: Callable[[], UUID]) -> None:
        """A coordinator over what a store has: who was to be told of a decision is told again.

        All other transactions are aborted: the owner has the participants say what is in doubt (`reenlist`).
        """
        self._new_guid = new_guid
        self._transactions: dict[UUID, _Transaction] = {}
        self._changes = Changes()
        self._wanted: list[Request | Outcome] = []
        for key, row in stored.rows(Table.TRANSACTION):
            assert isinstance(key, bytes)
            identifier, decided = UUID(bytes=key), _Transaction(json.loads(row), State.COMMITTED)
            self._transactions[identifier] = decided
            self._ask(identifier, decided, Action.COMMIT)

    def take(self) -> tuple[Changes, list[Request | Outcome]]:
        """What has changed, and what is to be done once that is durable; requests go to `carry_out`."""
        found = self._changes, self._wanted
        self._changes, self._wanted = Changes(), []
        return found

    # -- applications -------------------------------------------------------------------------------

    def begin(self) -> UUID:
        """A new transaction."""
        identifier = self._new_guid()
        self._transactions[identifier] = _Transaction()
        return identifier

    def commit(self, transaction: UUID) -> None:
        """All is done: commit it if every participant can. An `Outcome` tells.

        It has told already of a transaction that is not known any more.
        """
        found = self._transactions.get(transaction)
        if found is not None and found.state is State.ACTIVE:
            found.state, found.waits_for = State.PREPARING, set(found.participants)
            self._ask(transaction, found, Action.PREPARE)
            self._decide(transaction, found)

    def abort(self, transaction: UUID) -> None:
        """Undo all of it. A transaction that is committed stays so."""
        found = self._transactions.get(transaction)
        if found is None or found.state is State.COMMITTED:
            return
        del self._transactions[transaction]
        self._ask(transaction, found, Action.ABORT)
        self._wanted.append(Outcome(transaction, False))

    # -- participants -------------------------------------------------------------------------------

    def enlist(self, transaction: UUID, participant: str) -> None:
        found = self._transactions.get(transaction)
        if found is not None and found.state is State.ACTIVE:
            found.participants[participant] = None
        else:
            self._wanted.append(Request(participant, Action.ABORT, transaction))

    def replied(self, transaction: UUID, participant: str, tag: str) -> None:
        found = self._transactions.get(transaction)
        if found is None:
            return
        if tag == PREPARE_DONE and found.state is State.PREPARING:
            found.waits_for.discard(participant)
            self._decide(transaction, found)
        elif tag == COMMIT_DONE and found.state is State.COMMITTED:
            self.reenlisted(transaction, participant)
        elif tag == ABORT_DONE:
            self.abort(transaction)

    def lost(self, participant: str) -> None:
        for identifier, found in list(self._transactions.items()):
            unprepared = found.state is State.ACTIVE or participant in found.waits_for
            if participant in found.participants and unprepared:
                self.abort(identifier)

    def reenlist(self, participant: str, in_doubt: Collection[UUID]) -> None:
        for identifier, found in list(self._transactions.items()):
            if participant not in found.participants or identifier in in_doubt:
                continue
            if found.state is State.COMMITTED:
                self.reenlisted(identifier, participant)  # it had committed before
            else:
                self.abort(identifier)  # it has forgotten what it did
        for identifier in in_doubt:
            decided = self._transactions.get(identifier)
            if decided is None:
                self._wanted.append(Request(participant, Action.REENLISTMENT_ABORT, identifier))
            elif decided.state is State.COMMITTED:
                self._wanted.append(Request(participant, Action.REENLISTMENT_COMMIT, identifier))
            else:
                self.replied(identifier, participant, PREPARE_DONE)  # its answer was lost

    def reenlisted(self, transaction: UUID, participant: str) -> None:
        found = self._transactions.get(transaction)
        if found is None or found.state is not State.COMMITTED:
            return
        found.waits_for.discard(participant)
        if not found.waits_for:
            del self._transactions[transaction]
            self._changes.delete(Table.TRANSACTION, transaction.bytes)

    # -- helps --------------------------------------------------------------------------------------

    def _decide(self, identifier: UUID, transaction: _Transaction) -> None:
        """Commit, if nobody has still to prepare."""
        if transaction.waits_for:
            return
        self._wanted.append(Outcome(identifier, True))
        if not transaction.participants:
            del self._transactions[identifier]
            return
        transaction.state, transaction.waits_for = State.COMMITTED, set(transaction.participants)
        row = json.dumps(list(transaction.participants)).encode()
        self._changes.put(Table.TRANSACTION, identifier.bytes, row)
        self._ask(identifier, transaction, Action.COMMIT)

    def _ask(self, identifier: UUID, transaction: _Transaction, action: Action) -> None:
        self._wanted += [Request(name, action, identifier) for name in transaction.participants]


def carry_out(request: Request, participant: Participant) -> None:
    """Ask a participant for what a coordinator wants of it."""
    if request.action is Action.PREPARE:
        participant.dtc_prepare(request.transaction, single_phase=False)
    else:
        _ENTRANCES[request.action](participant, request.transaction)


_ENTRANCES: Final[dict[Action, Callable[[Participant, UUID], None]]] = {
    Action.COMMIT: lambda participant, transaction: participant.dtc_commit(transaction),
    Action.ABORT: lambda participant, transaction: participant.dtc_abort(transaction),
    Action.REENLISTMENT_COMMIT: lambda participant, transaction: participant.dtc_reenlistment_commit(
        transaction
    ),
    Action.REENLISTMENT_ABORT: lambda participant, transaction: participant.dtc_reenlistment_abort(
        transaction
    ),
}
