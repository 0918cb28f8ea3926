"""The transactions of applications, and of coordinators with several participants."""

from __future__ import annotations

from functools import partial
from typing import Final
from uuid import UUID

from msmqwire.qm.core import Core
from msmqwire.qm.model.effects import EnlistTransaction, TransactionReply
from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules.transactions import PREPARE_DONE
from msmqwire.qm.sim.environment import Environment
from msmqwire.qm.sim.ledger import MessageLedger
from msmqwire.qm.sim.node import Node
from msmqwire.qm.sim.reader_ledger import ReaderLedger
from msmqwire.qm.sim.store_contents import StoreContents
from msmqwire.qm.sim.tracked import SendState, Tracked
from msmqwire.qm.sim.violation import Invariant
from msmqwire.service.virtual.violation import Violation

_DECIDE_MS: Final = 400
"""A coordinator decides within this time."""
_REFUSED: Final = 0.1
"""The probability that a coordinator does not enlist a queue manager."""


class ApplicationTransaction:
    """A transaction of an application, or of a coordinator with several participants.

    Attributes:
        node: its node.
        identifier: its identifier.
        messages: the messages it sends.
        external: whether a coordinator decides.
        commit: whether it is to be committed.
        remote: whether a remote reader has enlisted the node in it.
        prepared: whether the coordinator knows that it is prepared: from then on its decision is binding.
        decided: whether the coordinator has decided.
    """

    def __init__(self, node: Node, identifier: UUID, end: str, *, remote: bool = False) -> None:
        self.node, self.identifier, self.remote = node, identifier, remote
        self.messages: list[Tracked] = []
        self.external = end.startswith("external")
        self.commit = end.endswith("commit")
        self.prepared = self.decided = False


class SimulatedTransactions:
    """All transactions of a run that have not ended."""

    def __init__(
        self,
        environment: Environment,
        ledger: MessageLedger,
        reader_ledger: ReaderLedger,
        contents: StoreContents,
    ) -> None:
        self._environment, self._ledger, self._reader_ledger = environment, ledger, reader_ledger
        self._contents = contents
        self._transactions: dict[UUID, ApplicationTransaction] = {}
        self._over: set[UUID] = set()  # transactions decided by remote readers

    def begin(self, node: Node, core: Core, end: str) -> ApplicationTransaction:
        """Begin a transaction of an application, with the way in which it is to end."""
        identifier = self._environment.guid()
        core.transactions.create(identifier)
        transaction = self._transactions[identifier] = ApplicationTransaction(node, identifier, end)
        return transaction

    def end_after(self, core: Core, transaction: ApplicationTransaction, hold_ms: int) -> None:
        """End a transaction after a time, within this step for 0."""
        if hold_ms:
            self._environment.after(hold_ms, lambda: self._end(transaction))
        else:
            self._end_now(core, transaction)

    def end_all(self) -> None:
        """End every transaction."""
        for transaction in list(self._transactions.values()):
            self._end(transaction)

    # -- of remote readers -------------------------------------------------------------------------------

    def enlist(self, node: Node, effect: EnlistTransaction) -> None:
        """Carry out `EnlistTransaction`."""
        epoch = node.epoch
        willing = self._environment.rng.random() >= _REFUSED

        def enlisted() -> None:
            if node.epoch == epoch and node.core is not None:
                done = willing and effect.transaction not in self._over
                if done:
                    identifier = effect.transaction
                    self._transactions[identifier] = ApplicationTransaction(
                        node, identifier, "external abort", remote=True
                    )
                    self._reader_ledger.transactions.add(identifier)
                node.call(lambda core: core.remote_read.enlisted(effect.request, done=done))

        self._environment.after(self._environment.rng.choice((0, 5, 100)), enlisted)

    def decide(self, transaction: UUID, *, commit: bool) -> None:
        """A remote reader wants its transaction to end; does nothing if a crash has aborted it."""
        self._over.add(transaction)
        known = self._transactions.get(transaction)
        if known is not None:
            known.commit = commit
            self._decide_soon(known)

    # -- ending ------------------------------------------------------------------------------------------

    def _end(self, transaction: ApplicationTransaction) -> None:
        if transaction.identifier in self._transactions:
            transaction.node.program(self._ending(transaction))

    async def _ending(self, transaction: ApplicationTransaction) -> None:
        transaction.node.call(lambda core: self._end_now(core, transaction))
        await self.acknowledged(transaction)

    async def acknowledged(self, transaction: ApplicationTransaction) -> None:
        """Wait until the outcome of a transaction is durable, and check it."""
        committed = transaction.decided and transaction.commit
        await transaction.node.driver.durable()
        if committed:
            for tracked in transaction.messages:
                self._contents.check_sent(transaction.node.name, tracked)

    def _end_now(self, core: Core, transaction: ApplicationTransaction) -> None:
        """Prepare a transaction that has a coordinator; commit or abort any other."""
        in_core = core.queue_manager.transactions.get(transaction.identifier)
        if transaction.external and not transaction.prepared and in_core is not None:
            if not in_core.prepared:
                self._environment.log(transaction.node.name, "prepares a transaction")
                core.transactions.dtc_prepare(transaction.identifier, single_phase=False)
                return
            if not self._environment.faults_over:
                return  # the reply is under way
            transaction.commit = False
        self._decide(core, transaction)

    def _decide(self, core: Core, transaction: ApplicationTransaction) -> None:
        """Commit or abort."""
        identifier, node = transaction.identifier, transaction.node
        if not transaction.external:  # a coordinator remembers its decision until it is carried out
            del self._transactions[identifier]
        if transaction.remote:
            self._reader_ledger.ending = identifier
        else:
            self._reader_ledger.release_all(node.name, identifier)
        messages = [tracked for tracked in transaction.messages if tracked.state is SendState.OPEN]
        transaction.decided = True
        if messages:
            verb = "commits" if transaction.commit else "aborts"
            self._environment.log(node.name, f"{verb} {', '.join(map(str, messages))}")
        in_core = core.queue_manager.transactions.get(identifier)
        if in_core is not None:
            if transaction.commit:
                after_crash = SendState.OPEN if transaction.external else SendState.LOST
                self._ledger.committed(node.name, messages, after_crash)
            else:
                for tracked in messages:
                    tracked.state = SendState.ABORTED
            if transaction.external:
                end = core.transactions.dtc_commit if transaction.commit else core.transactions.dtc_abort
                end(identifier)
            elif transaction.commit:
                core.commit(in_core)
            else:
                core.transactions.abort(identifier)
        if transaction.remote:
            self._reader_ledger.ending = None
            self._reader_ledger.transactions.discard(identifier)
            self._reader_ledger.transaction_ended(node.name, identifier, commit=transaction.commit)

    def replied(self, node: Node, reply: TransactionReply) -> None:
        """Take a `TransactionReply`, which has to be durable: the coordinator decides some time later."""
        transaction = self._transactions.get(reply.transaction)
        is_stored = node.store.row(Table.TRANSACTION, reply.transaction.bytes) is not None
        if is_stored != (reply.tag == PREPARE_DONE):
            why = f"{node} replies {reply.tag}, and the transaction is {'' if is_stored else 'not '}stored"
            raise Violation(Invariant.DURABLE, why)
        if transaction is not None and reply.tag != PREPARE_DONE:
            del self._transactions[reply.transaction]
        elif transaction is not None:
            transaction.prepared = True
            self._decide_soon(transaction)

    def _decide_soon(self, transaction: ApplicationTransaction) -> None:
        delay = self._environment.rng.randrange(_DECIDE_MS)
        self._environment.after(delay, partial(self._end, transaction))

    # -- crashes -----------------------------------------------------------------------------------------

    def crashed(self, node: Node) -> None:
        """Forget the losses of a node: transactions that are not prepared, and reads that have not ended."""
        prepared = {key for key, _ in node.store.rows(Table.TRANSACTION)}
        for transaction in self._of(node):
            if not (transaction.external and transaction.identifier.bytes in prepared):
                del self._transactions[transaction.identifier]
                self._reader_ledger.transactions.discard(transaction.identifier)
                for tracked in transaction.messages:
                    if tracked.state is SendState.OPEN:
                        tracked.state = SendState.LOST
        self._reader_ledger.crashed(node.name, {transaction.identifier for transaction in self._of(node)})

    def started(self, node: Node) -> None:
        """Have the coordinator repeat its decisions to a node that is back, or ask again."""
        for transaction in self._of(node):
            transaction.commit = transaction.commit and (transaction.prepared or transaction.decided)
            transaction.prepared = True
            self._decide_soon(transaction)

    def _of(self, node: Node) -> list[ApplicationTransaction]:
        return [transaction for transaction in self._transactions.values() if transaction.node is node]
