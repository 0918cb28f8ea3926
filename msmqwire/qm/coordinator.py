"""Coordinators of distributed transactions: the interface to queue managers, and one for a single process.

The protocol between them, [MS-DTCO], is not implemented here. Its messages to participants are the methods of
`Participant`, the events of [MS-MQDMPR] 3.1.4.6 to 3.1.4.10; its messages to the coordinator are the methods
of `Coordinator`.

A transaction is committed in two phases. First every participant prepares it, after which it can commit even
after a crash. When all have, the decision to commit is stored, then they commit. Nothing else is stored: a
transaction without a stored decision is aborted (presumed abort), so that every question after a crash has an
answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from enum import Enum
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules.recovery import Stored
from msmqwire.qm.rules.transactions import ABORT_DONE, COMMIT_DONE, PREPARE_DONE
from msmqwire.service.store.changes import Changes


class Participant(Protocol):
    """A resource manager: `msmqwire.qm.rules.transactions.Transactions` is one."""

    def dtc_prepare(self, identifier: UUID, *, single_phase: bool) -> None:
        """Prepare to commit, or abort. Replies PREPAREREQDONE or ABORTREQDONE."""

    def dtc_commit(self, identifier: UUID) -> None:
        """Commit, if not done yet. Replies COMMITREQDONE."""

    def dtc_abort(self, identifier: UUID) -> None:
        """Abort, if not done yet. Replies ABORTREQDONE."""

    def dtc_reenlistment_commit(self, identifier: UUID) -> None:
        """After a restart, commit a transaction that was in doubt."""

    def dtc_reenlistment_abort(self, identifier: UUID) -> None:
        """After a restart, abort a transaction that was in doubt."""


class Coordinator(Protocol):
    """A coordinator, as called by the owners of participants. Names of participants survive restarts."""

    def enlist(self, identifier: UUID, participant: str) -> None:
        """Add a participant to a transaction."""

    def replied(self, identifier: UUID, participant: str, tag: str) -> None:
        """Process a reply of a participant, a `TransactionReply` whose changes are durable there."""

    def lost(self, participant: str) -> None:
        """Process the loss of a participant, with all that it had not prepared."""

    def reenlist(self, participant: str, in_doubt: Collection[UUID]) -> None:
        """Enlist a participant again, after a restart of either.

        `in_doubt` are the transactions that are durably prepared there, and not ended.
        """

    def reenlisted(self, identifier: UUID, participant: str) -> None:
        """Note that the outcome of a transaction in doubt is durable at the participant."""


class Action(Enum):
    """An action of a participant, by a method of `Participant`."""

    PREPARE = "prepare"
    COMMIT = "commit"
    ABORT = "abort"
    REENLISTMENT_COMMIT = "reenlistment commit"
    REENLISTMENT_ABORT = "reenlistment abort"


class Request(NamedTuple):
    """A request to a participant."""

    participant: str
    action: Action
    transaction: UUID


class Outcome(NamedTuple):
    """The outcome of a transaction, for the application that began it."""

    transaction: UUID
    committed: bool


class State(Enum):
    """The state of a transaction at its coordinator, which forgets aborted and finished ones."""

    ACTIVE = "active"
    PREPARING = "preparing"
    COMMITTED = "committed"


class _Transaction:
    __slots__ = ("awaited", "participants", "state")

    def __init__(self, participants: Collection[str] = (), state: State = State.ACTIVE) -> None:
        self.participants = dict.fromkeys(participants)  # in the order of enlistment
        self.awaited = set(participants)  # those whose reply is outstanding
        self.state = state


class InProcessCoordinator:
    """Coordinates the participants of one process; it does no I/O.

    As with a queue manager, its owner takes changes and effects (`take`), and carries out no effect before
    these changes, and all earlier ones, are durable. Its rows need a store of their own.
    """

    def __init__(self, stored: Stored, *, new_guid: Callable[[], UUID]) -> None:
        """Restore the decisions of a store, and request their commits again.

        All other transactions are aborted: the owner reports those in doubt at each participant (`reenlist`).
        """
        self._new_guid = new_guid
        self._transactions: dict[UUID, _Transaction] = {}
        self._changes = Changes()
        self._effects: list[Request | Outcome] = []
        for key, row in stored.rows(Table.TRANSACTION):
            assert isinstance(key, bytes)
            identifier, committed = UUID(bytes=key), _Transaction(json.loads(row), State.COMMITTED)
            self._transactions[identifier] = committed
            self._request(identifier, committed, Action.COMMIT)

    def take(self) -> tuple[Changes, list[Request | Outcome]]:
        """Return the changes, and the effects to carry out once they are durable.

        Requests are carried out by `carry_out`; outcomes are for the applications.
        """
        taken = self._changes, self._effects
        self._changes, self._effects = Changes(), []
        return taken

    # -- applications -------------------------------------------------------------------------------

    def begin(self) -> UUID:
        """Begin a transaction."""
        identifier = self._new_guid()
        self._transactions[identifier] = _Transaction()
        return identifier

    def commit(self, identifier: UUID) -> None:
        """Commit a transaction if every participant can. An `Outcome` follows.

        For an unknown transaction the outcome was reported before.
        """
        transaction = self._transactions.get(identifier)
        if transaction is not None and transaction.state is State.ACTIVE:
            transaction.state, transaction.awaited = State.PREPARING, set(transaction.participants)
            self._request(identifier, transaction, Action.PREPARE)
            self._decide(identifier, transaction)

    def abort(self, identifier: UUID) -> None:
        """Abort a transaction, unless it is committed."""
        transaction = self._transactions.get(identifier)
        if transaction is None or transaction.state is State.COMMITTED:
            return
        del self._transactions[identifier]
        self._request(identifier, transaction, Action.ABORT)
        self._effects.append(Outcome(identifier, False))

    # -- participants -------------------------------------------------------------------------------

    def enlist(self, identifier: UUID, participant: str) -> None:
        transaction = self._transactions.get(identifier)
        if transaction is not None and transaction.state is State.ACTIVE:
            transaction.participants[participant] = None
        else:
            self._effects.append(Request(participant, Action.ABORT, identifier))

    def replied(self, identifier: UUID, participant: str, tag: str) -> None:
        transaction = self._transactions.get(identifier)
        if transaction is None:
            return
        if tag == PREPARE_DONE and transaction.state is State.PREPARING:
            transaction.awaited.discard(participant)
            self._decide(identifier, transaction)
        elif tag == COMMIT_DONE and transaction.state is State.COMMITTED:
            self.reenlisted(identifier, participant)
        elif tag == ABORT_DONE:
            self.abort(identifier)

    def lost(self, participant: str) -> None:
        for identifier, transaction in list(self._transactions.items()):
            unprepared = transaction.state is State.ACTIVE or participant in transaction.awaited
            if participant in transaction.participants and unprepared:
                self.abort(identifier)

    def reenlist(self, participant: str, in_doubt: Collection[UUID]) -> None:
        for identifier, transaction in list(self._transactions.items()):
            if participant not in transaction.participants or identifier in in_doubt:
                continue
            if transaction.state is State.COMMITTED:
                self.reenlisted(identifier, participant)  # it committed before the restart
            else:
                self.abort(identifier)  # it was not prepared, and lost its part
        for identifier in in_doubt:
            prepared = self._transactions.get(identifier)
            if prepared is None:
                self._effects.append(Request(participant, Action.REENLISTMENT_ABORT, identifier))
            elif prepared.state is State.COMMITTED:
                self._effects.append(Request(participant, Action.REENLISTMENT_COMMIT, identifier))
            else:
                self.replied(identifier, participant, PREPARE_DONE)  # its reply was lost

    def reenlisted(self, identifier: UUID, participant: str) -> None:
        transaction = self._transactions.get(identifier)
        if transaction is None or transaction.state is not State.COMMITTED:
            return
        transaction.awaited.discard(participant)
        if not transaction.awaited:
            del self._transactions[identifier]
            self._changes.delete(Table.TRANSACTION, identifier.bytes)

    def _decide(self, identifier: UUID, transaction: _Transaction) -> None:
        """Commit once all participants have prepared."""
        if transaction.awaited:
            return
        self._effects.append(Outcome(identifier, True))
        if not transaction.participants:
            del self._transactions[identifier]
            return
        transaction.state, transaction.awaited = State.COMMITTED, set(transaction.participants)
        row = json.dumps(list(transaction.participants)).encode()
        self._changes.put(Table.TRANSACTION, identifier.bytes, row)
        self._request(identifier, transaction, Action.COMMIT)

    def _request(self, identifier: UUID, transaction: _Transaction, action: Action) -> None:
        self._effects += [Request(name, action, identifier) for name in transaction.participants]


def carry_out(request: Request, participant: Participant) -> None:
    """Carry out a request of a coordinator at its participant."""
    if request.action is Action.PREPARE:
        participant.dtc_prepare(request.transaction, single_phase=False)
    else:
        _EVENTS[request.action](participant, request.transaction)


_EVENTS: Final[dict[Action, Callable[[Participant, UUID], None]]] = {
    Action.COMMIT: lambda participant, transaction: participant.dtc_commit(transaction),
    Action.ABORT: lambda participant, transaction: participant.dtc_abort(transaction),
    Action.REENLISTMENT_COMMIT: lambda participant, transaction: participant.dtc_reenlistment_commit(
        transaction
    ),
    Action.REENLISTMENT_ABORT: lambda participant, transaction: participant.dtc_reenlistment_abort(
        transaction
    ),
}
