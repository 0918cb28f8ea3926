"""The record of the messages that readers hold, local and remote, to check their receives and their ends.

Everything is recorded in the step in which a queue manager does it. A hold lasts until its message is deleted
or back in its queue; its possible ends follow from the requests of its reader, and from the events of that
reader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from uuid import UUID

from msmqwire.constants import MQ_OK, HResult, MessageClass
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import PositionState
from msmqwire.qm.model.positions import PRIORITY_SHIFT, MessagePosition
from msmqwire.qm.model.tables import Table
from msmqwire.qm.sim.environment import Environment
from msmqwire.qm.sim.ledger import MessageLedger, NodeView, message_number
from msmqwire.qm.sim.violation import Invariant
from msmqwire.remote_read.constants import Acknowledge, Action
from msmqwire.rpc.handles import ContextHandle
from msmqwire.service.virtual.violation import Violation

_SEQUENCE_ID: Final = (1 << PRIORITY_SHIFT) - 1
_RECEIVED: Final = MessageClass.MQMSG_CLASS_ACK_RECEIVE


@dataclass(slots=True, eq=False)
class Hold:
    """A message that a reader holds.

    Attributes:
        transaction: the transaction in which it was received; None for none, and for one of this message
            alone. reader: the association group, handle and RequestId of a remote reader; None for a local
            one.
        since: the time at which a remote reader got it, in milliseconds.
        acknowledge: the Acknowledge with which its reader has ended the receive; 0 before.
        returning: whether it has to go back to its queue.
        transactional: whether it was received in a transaction, be it one of this message alone.
        aborted: whether the transaction has been aborted, so that it goes back or to a waiting reader.
    """

    transaction: UUID | None = None
    reader: tuple[int, ContextHandle, int] | None = None
    since: int = 0
    acknowledge: int = 0
    returning: bool = False
    transactional: bool = False
    aborted: bool = False


@dataclass(slots=True, eq=False)
class _Walk:
    """The progress of a cursor from the first message of a queue on.

    Attributes:
        begun: the count of changes when it began.
        ahead: the numbers of the positions that it has to pass, unless they change.
        last: the LookupIdentifier of the message that it is at.
    """

    begun: int
    ahead: set[int]
    last: int


@dataclass(slots=True, eq=False)
class _Books:
    """The messages that readers hold at one node; the last change of each position; the cursors."""

    holds: dict[int, Hold] = field(default_factory=dict)
    received: set[int] = field(default_factory=set)
    changed: dict[int, int] = field(default_factory=dict)
    walks: dict[tuple[ContextHandle, int], _Walk] = field(default_factory=dict)


class ReaderLedger:
    """The messages of the queues of all nodes that readers hold.

    Args:
        environment: the environment of the run.
        ledger: the ledger of the run.

    Attributes:
        waiters: the number of local readers that wait, by name of the node and of the queue.
        transactions: the transactions in which remote readers have enlisted a node.
        ending: the transaction of a remote reader that is committed or aborted in the present step.
    """

    def __init__(self, environment: Environment, ledger: MessageLedger) -> None:
        self._environment, self._ledger = environment, ledger
        self._pending_ms = 1000 * environment.plan.remote_pending_s
        self._nodes = {name: _Books() for name in environment.plan.nodes}
        self._changes = 0
        self.waiters: Counter[tuple[str, str]] = Counter()
        self.transactions: set[UUID] = set()
        self.ending: UUID | None = None

    def _change(self, books: _Books, number: int) -> None:
        self._changes += 1
        books.changed[number] = self._changes

    def _may_return(self, hold: Hold) -> bool:
        if hold.aborted or (hold.transaction is not None and hold.transaction == self.ending):
            return True
        if hold.transaction is not None and hold.acknowledge == Acknowledge.RR_ACK:
            return False
        rejected = hold.returning or hold.acknowledge == Acknowledge.RR_NACK
        return rejected or self._environment.now - hold.since >= self._pending_ms

    # -- readers -----------------------------------------------------------------------------------------

    def take(self, node: str, position: MessagePosition, hold: Hold) -> None:
        """Record that a reader has received a message, and check that no other reader has it."""
        books = self._nodes[node]
        self._check_there(node, books, position)
        self._change(books, position.number)
        books.holds[position.number] = hold

    def _check_there(self, node: str, books: _Books, position: MessagePosition) -> None:
        """Check that a message given to a reader has not been finally received, and that no other reader
        holds it.
        """
        before = books.holds.get(position.number)
        if before is not None and (before.reader is None or not self._may_return(before)):
            raise Violation(Invariant.RECEIVED_ONCE, f"{self._name(position)} is handed to two readers")
        if position.number in books.received:
            raise Violation(
                Invariant.RECEIVED_ONCE, f"{self._name(position)} is handed out at {node} after its end"
            )

    def release(self, node: str, number: int) -> None:
        """A local reader is about to end a receive."""
        self._nodes[node].holds.pop(number, None)

    def release_all(self, node: str, transaction: UUID) -> None:
        """A transaction of a local reader is about to end."""
        holds = self._nodes[node].holds
        for number in [number for number, hold in holds.items() if hold.transaction == transaction]:
            del holds[number]

    def crashed(self, node: str, left: Collection[UUID]) -> None:
        """A node has lost the holds of its readers, except those in the remaining transactions."""
        books = self._nodes[node]
        books.holds = {number: hold for number, hold in books.holds.items() if hold.transaction in left}
        books.walks.clear()
        for waiter in [waiter for waiter in self.waiters if waiter[0] == node]:
            del self.waiters[waiter]

    # -- actions of a queue manager ----------------------------------------------------------------------

    def available(self, node: NodeView, position: MessagePosition) -> None:
        """A message is in a queue, for the first time or again."""
        books = self._nodes[node.name]
        self._change(books, position.number)
        hold = books.holds.get(position.number)
        if hold is None or hold.reader is None:
            return
        if not self._may_return(hold):
            raise Violation(
                Invariant.RECEIVED_ONCE, f"{self._name(position)} is given back while its reader has it"
            )
        del books.holds[position.number]

    def deleted(self, node: NodeView, queue: Queue, position: MessagePosition, reason: int) -> None:
        """A message has left a queue, finally received or for another reason."""
        books, number = self._nodes[node.name], position.number
        self._change(books, number)
        if reason == _RECEIVED:
            books.received.add(number)
            self._ledger.on_crash(node.name, lambda: books.received.discard(number))
        hold = books.holds.get(number)
        if hold is None or hold.reader is None:
            if hold is None and self.ending is not None and reason == _RECEIVED:
                why = "is received in a transaction that does not have it"
                raise Violation(Invariant.RECEIVED_ONCE, f"{self._name(position)} {why}")
            return
        accepted = hold.acknowledge == Acknowledge.RR_ACK and hold.transaction is None
        if hold.transaction is not None and hold.transaction == self.ending:
            accepted = True
        right = accepted
        if self._may_return(hold):
            # A purged message that an aborted transaction has received goes with the class of that receive:
            # [MS-MQDMPR] 3.1.4.5. Otherwise only a waiting reader can have it in the same step.
            purged = position.state is PositionState.PURGE_PENDING and hold.transactional
            right |= reason != _RECEIVED or purged or bool(self.waiters[node.name, queue.pathname])
        if not right:
            raise Violation(
                Invariant.GIVEN_BACK, f"{self._name(position)} is deleted, which its reader has not accepted"
            )
        del books.holds[number]
        self._ledger.on_crash(node.name, lambda: books.holds.update({number: hold}))

    def _name(self, position: MessagePosition) -> str:
        number = message_number(position.message)
        return f"message {position.number}" if number is None else str(self._ledger.messages[number])

    # -- remote readers ----------------------------------------------------------------------------------

    def ends(self, node: str, reader: tuple[int, ContextHandle, int], acknowledge: int) -> int | None:
        """A reader asks to end a receive; return the number of the position that it has, None for none."""
        for number, hold in self._nodes[node].holds.items():
            if hold.reader == reader and not self._may_return(hold):
                hold.acknowledge = acknowledge
                return number
        return None

    def ended(self, node: NodeView, number: int | None, acknowledge: int, status: int) -> None:
        """The end of a receive has been carried out: the message is gone, or back in its queue."""
        if number is None:
            return
        if status != MQ_OK:
            why = f"a receive of {node.name} can't be ended: {status:#x}"
            raise Violation(Invariant.REFUSED, why)
        hold = self._nodes[node.name].holds.get(number)
        if hold is None or hold.acknowledge != acknowledge:  # gone, or another reader's already
            return
        if acknowledge == Acknowledge.RR_NACK:
            raise Violation(Invariant.GIVEN_BACK, f"message {number} was rejected at {node.name}, and stays")
        if hold.transaction is None:
            raise Violation(Invariant.ACCEPTED, f"message {number} was accepted at {node.name}, and stays")

    def accepted(self, node: NodeView, number: int) -> None:
        """A reader is notified that a message is deleted: check that this is durable."""
        hold = self._nodes[node.name].holds.get(number)
        stays = node.store.row(Table.MESSAGE, number) is not None
        if stays and (hold is None or hold.transaction is None):
            raise Violation(Invariant.DURABLE, f"message {number} was accepted at {node.name}, and is stored")

    def leaves(self, node: str, group: int, handle: ContextHandle | None = None) -> None:
        """A reader is about to close a queue, or has gone: its open receives are to return."""
        for hold in self._nodes[node].holds.values():
            if hold.reader and hold.reader[0] == group and handle in (None, hold.reader[1]):
                hold.returning = True

    def left(self, node: NodeView, group: int, handle: ContextHandle | None = None) -> None:
        """A reader has closed a queue, or has gone: check that its open receives have returned."""
        for number, hold in self._nodes[node.name].holds.items():
            its = hold.reader and hold.reader[0] == group and handle in (None, hold.reader[1])
            if its and self._may_return(hold) and not _is_prepared(node, hold):
                raise _stays(node.name, number, "with a reader that has gone")

    def stops(self, node: str) -> None:
        """A node is about to stop in good order: everything is to return."""
        for hold in self._nodes[node].holds.values():
            hold.returning = True

    def transaction_ended(self, node: str, transaction: UUID, *, commit: bool) -> None:
        """A transaction has ended: check that it has no message any more.

        An abort may give a message to a waiting reader, past its queue: see `check`.
        """
        for number, hold in self._nodes[node].holds.items():
            if hold.transaction == transaction:
                if commit:
                    raise _stays(node, number, "in a transaction that has been committed")
                hold.aborted = True
                self._ledger.on_crash(node, partial(setattr, hold, "aborted", False))

    def check(self, node: str) -> None:
        """Check that no reader holds a message for too long, once the holds of a step are recorded."""
        for number, hold in self._nodes[node].holds.items():
            if hold.aborted and not any(self.waiters[waiter] for waiter in self.waiters if waiter[0] == node):
                raise _stays(node, number, "in a transaction that has been aborted")
            limited = hold.reader is not None and hold.transaction is None
            if limited and self._environment.now - hold.since > self._pending_ms:
                raise _stays(node, number, "with a reader whose time is over")

    def read(self, node: NodeView, queue: Queue, arguments: Any, results: Any, hold: Hold) -> None:
        """A remote reader has received or peeked at a message, or there was none.

        Args:
            node: the node with the queue.
            queue: the queue that it reads.
            arguments: the arguments of its call.
            results: the results of its call. hold: its hold if it has received the message.
        """
        books, cursor = self._nodes[node.name], (arguments.phContext, arguments.hCursor)
        if results["status"] != MQ_OK:
            ends = results["status"] == HResult.MQ_ERROR_IO_TIMEOUT
            if ends and arguments.ulAction == Action.MQ_ACTION_PEEK_NEXT:
                self._walked(node, books, queue, books.walks.pop(cursor, None))
            return
        sequence = results["pSequenceId"]
        position = next(
            (place for place in queue.positions if place.lookup_identifier & _SEQUENCE_ID == sequence), None
        )
        if position is None:
            raise Violation(
                Invariant.RECEIVED_ONCE, f"a message is handed out which {node.name} does not have"
            )
        self._ledger.handed_out(node, queue, position)
        if Action(arguments.ulAction).receives:
            if position.state is PositionState.AVAILABLE:
                raise Violation(
                    Invariant.RECEIVED_ONCE, f"{self._name(position)} is available to other readers as well"
                )
            self.take(node.name, position, hold)
            return
        self._check_there(node.name, books, position)
        walk = books.walks.get(cursor)
        if arguments.ulAction == Action.MQ_ACTION_PEEK_CURRENT and arguments.hCursor:
            walk = books.walks[cursor] = _Walk(self._changes, _available(queue), 0)
        if arguments.hCursor and walk is not None:
            if position.lookup_identifier <= walk.last:
                raise Violation(Invariant.WALKED, f"a cursor reaches {self._name(position)} again")
            walk.last = position.lookup_identifier
            walk.ahead.discard(position.number)

    def _walked(self, node: NodeView, books: _Books, queue: Queue, walk: _Walk | None) -> None:
        """A cursor has reached the end: check that it has passed all messages that never moved."""
        if walk is None:
            return
        skipped = [
            number for number in walk.ahead & _available(queue) if books.changed.get(number, 0) <= walk.begun
        ]
        if skipped:
            raise Violation(Invariant.WALKED, f"a cursor at {node.name} has skipped {skipped}")


def _stays(node: str, number: int, where: str) -> Violation:
    return Violation(Invariant.GIVEN_BACK, f"message {number} at {node} stays {where}")


def _is_prepared(node: NodeView, hold: Hold) -> bool:
    """Whether a message is in a transaction that only its coordinator can end."""
    if node.core is None or hold.transaction is None:
        return False
    transaction = node.core.queue_manager.transactions.get(hold.transaction)
    return transaction is not None and transaction.prepared


def _available(queue: Queue) -> set[int]:
    return {place.number for place in queue.positions if place.state is PositionState.AVAILABLE}
