"""Carries out the items of a plan: the operations of applications, and the injected faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final
from uuid import UUID

from msmqwire.constants import MQ_OK
from msmqwire.names import FormatName, parse_format_name
from msmqwire.qm.core import Core
from msmqwire.qm.model import access
from msmqwire.qm.model.changes import Table
from msmqwire.qm.model.effects import ReadCompleted, TransactionReply
from msmqwire.qm.model.elements import OpenQueueDescriptor, OutgoingQueue, Queue
from msmqwire.qm.model.enumerations import (
    EnqueueStatus,
    QueueAccessType,
)
from msmqwire.qm.model.message import NULL_GUID, Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.rules.transactions import PREPARE_DONE
from msmqwire.qm.sim.environment import Environment
from msmqwire.qm.sim.ledger import Ledger, message_number
from msmqwire.qm.sim.network import Network
from msmqwire.qm.sim.node import Node
from msmqwire.qm.sim.plan import (
    NOBODY,
    QUEUES,
    SMALL,
    SMALL_TRANSACTIONAL,
    STRAY,
    TRANSACTIONAL,
    Item,
)
from msmqwire.qm.sim.protection import protect
from msmqwire.qm.sim.store_contents import StoreContents
from msmqwire.qm.sim.tracked import Delivery, SendState, Tracked
from msmqwire.qm.sim.violation import Invariant, Violation

ADMIN: Final = "admin"
_ALL_QUEUES: Final = (*QUEUES, ADMIN)
_STRAY_NUMBER: Final = 9
_DECIDE_MS: Final = 400
"""A coordinator decides within this time."""
_WAIT_MS: Final = 4_000
"""How long a read waits for a message."""
_SECURITY: Final = access.default_security(access.ANONYMOUS)
"""That of all queues."""


class ApplicationTransaction:
    """A transaction as an application sees it, or a coordinator with several participants.

    Attributes:
        node: where it takes place.
        identifier: of the transaction.
        messages: those it sends.
        taken: numbers of those it receives.
        external: whether a coordinator decides.
        commit: whether it is to be committed.
        prepared: whether the coordinator has heard that it is prepared: from then on its decision is binding.
        decided: whether the coordinator has decided.
    """

    def __init__(self, node: Node, identifier: UUID, end: str) -> None:
        self.node, self.identifier = node, identifier
        self.messages: list[Tracked] = []
        self.taken: list[int] = []
        self.external = end.startswith("external")
        self.commit = end.endswith("commit")
        self.prepared = self.decided = False


class Workload:
    """All applications and administrators of a run, and its faults.

    Attributes:
        drained: whether everything has been read at the end.
    """

    def __init__(
        self,
        environment: Environment,
        nodes: Mapping[str, Node],
        ledger: Ledger,
        contents: StoreContents,
        network: Network,
    ) -> None:
        self._environment, self._nodes, self._network = environment, nodes, network
        self._ledger, self._contents = ledger, contents
        self._transactions: dict[UUID, ApplicationTransaction] = {}
        self._messages_sent = 0
        self._private_numbers: dict[tuple[str, str], int] = {}
        self._taken: set[tuple[str, int]] = set()  # by readers that have not ended
        self._waiting_reads: set[tuple[str, int, int]] = set()
        self.drained = False

    # -- before and after -------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Create the queues on all nodes."""
        for node in self._nodes.values():
            node.call(partial(self._create_queues, node))

    def _create_queues(self, node: Node, core: Core) -> None:
        for name in _ALL_QUEUES:
            template = Queue(NULL_GUID)
            core.queues.set_defaults(template)
            template.pathname = f"{node.name}\\private$\\{name}"
            template.transactional = name in (TRANSACTIONAL, SMALL_TRANSACTIONAL)
            template.security = _SECURITY
            if name in (SMALL, SMALL_TRANSACTIONAL):
                template.quota = self._environment.plan.small_quota
            status, queue = core.queues.create(template)
            assert queue is not None, f"nothing prevents it: {status:#x}"
            self._private_numbers[node.name, name] = queue.private_queue_number

    def end_transactions(self) -> None:
        """After the faults, resume what was paused and end every transaction."""
        for node in self._nodes.values():
            node.call(_resume_all)
        for transaction in list(self._transactions.values()):
            self._end(transaction)

    def drain(self) -> None:
        """Read everything that is left."""
        self.drained = True
        for node in self._nodes.values():
            for queue in _ALL_QUEUES:
                self._receive(node, {"queue": queue, "mode": "plain", "count": 1_000, "hold_ms": 0})

    # -- items of a plan --------------------------------------------------------------------------------

    def action(self, item: Item) -> Callable[[], None]:
        """Return a function that carries out an item of the plan."""
        node, args = self._nodes[item.node], item.args
        return lambda: _ACTIONS[item.kind](self, node, args)

    def _send(self, node: Node, args: Any) -> None:
        def send_all(core: Core) -> None:
            for _ in range(args["count"]):
                self._send_message(node, core, args, None)

        node.call(send_all)

    def _transaction(self, node: Node, args: Any) -> None:
        def send_all(core: Core) -> None:
            transaction = self._begin(node, core, args["end"])
            for index in range(args["count"]):
                other = args.get("also", {}) if index % 2 else {}
                self._send_message(node, core, {**args, **other}, transaction)
            self._end_after(core, transaction, args["hold_ms"])

        node.call(send_all)

    def _format_name(self, args: Any) -> FormatName:
        """Return the format name of a queue, in the form that an item asks for."""
        if args["form"] == STRAY:
            return parse_format_name(f"PRIVATE={NOBODY}\\{_STRAY_NUMBER:x}")
        node, queue = self._nodes[args["to"]], args["queue"]
        match args["form"]:
            case "PRIVATE":
                number = self._private_numbers[node.name, queue]
                return parse_format_name(f"PRIVATE={node.identifier}\\{number:x}")
            case "HTTP":
                return parse_format_name(f"DIRECT=HTTP://{node.name}/msmq/private$/{queue}")
            case "TCP":
                return parse_format_name(f"DIRECT=TCP:{node.address}\\private$\\{queue}")
        return parse_format_name(f"DIRECT=OS:{node.name}\\private$\\{queue}")

    def _send_message(
        self, node: Node, core: Core, args: Any, transaction: ApplicationTransaction | None
    ) -> None:
        self._messages_sent += 1
        format_name = self._format_name(args)
        delivery = Delivery.RECOVERABLE if args.get("recoverable") else Delivery.EXPRESS
        tracked = Tracked(
            self._messages_sent, node.name, Delivery.TRANSACTIONAL if transaction else delivery, args["to"],
            args["queue"], format_name.canonical, dict(args), node.utc,
        )  # fmt: skip
        status, descriptor = core.queues.open(format_name, QueueAccessType.SEND_ACCESS)
        assert descriptor is not None, f"{status:#x}: a queue can always be opened to send"
        message = tracked.message()
        if args.get("acks"):
            form = args.get("admin", "OS" if tracked.number % 2 else "PRIVATE")
            message.administration = self._format_name({"to": node.name, "queue": ADMIN, "form": form})
        protect(tracked, message, format_name)
        self._ledger.add(tracked)
        core_transaction = None
        if transaction is not None:
            core_transaction = core.queue_manager.transactions[transaction.identifier]
            tracked.transaction, tracked.state = self._ledger.next_index(), SendState.OPEN
            transaction.messages.append(tracked)
            tracked.transaction = transaction.messages[0].transaction
        result = core.send(descriptor, message, core_transaction)
        core.queues.close(descriptor)
        failure = "" if result is EnqueueStatus.OK else f": {result.name}"
        self._environment.log(node.name, f"sends {tracked}{failure}")
        if failure:
            tracked.state = SendState.REFUSED
            return
        self._ledger.sent(tracked, message.identifier)

    # -- transactions -----------------------------------------------------------------------------------

    def _begin(self, node: Node, core: Core, end: str) -> ApplicationTransaction:
        identifier = self._environment.guid()
        core.transactions.create(identifier)
        transaction = self._transactions[identifier] = ApplicationTransaction(node, identifier, end)
        return transaction

    def _end_after(self, core: Core, transaction: ApplicationTransaction, hold_ms: int) -> None:
        """End a transaction after a time, within this step for 0."""
        if hold_ms:
            self._environment.after(hold_ms, lambda: self._end(transaction))
        else:
            self._end_now(core, transaction)

    def _end(self, transaction: ApplicationTransaction) -> None:
        if transaction.identifier in self._transactions:
            transaction.node.call(lambda core: self._end_now(core, transaction))

    def _end_now(self, core: Core, transaction: ApplicationTransaction) -> None:
        """Prepare a transaction that has a coordinator; commit or abort any other."""
        in_core = core.queue_manager.transactions.get(transaction.identifier)
        if transaction.external and not transaction.prepared and in_core is not None:
            if not in_core.prepared:
                self._environment.log(transaction.node.name, "prepares a transaction")
                core.transactions.dtc_prepare(transaction.identifier, single_phase=False)
                return
            if not self._environment.faults_over:
                return  # the reply is on its way
            transaction.commit = False
        self._decide(core, transaction)

    def _decide(self, core: Core, transaction: ApplicationTransaction) -> None:
        """Commit or abort."""
        identifier, node = transaction.identifier, transaction.node
        if not transaction.external:  # a coordinator remembers its decision until it is carried out
            del self._transactions[identifier]
        self._release(transaction)
        messages = [tracked for tracked in transaction.messages if tracked.state is SendState.OPEN]
        transaction.decided = True
        if messages:
            verb = "commits" if transaction.commit else "aborts"
            self._environment.log(node.name, f"{verb} {', '.join(map(str, messages))}")
        in_core = core.queue_manager.transactions.get(identifier)
        if in_core is None:
            return
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

    def _release(self, transaction: ApplicationTransaction) -> None:
        """Let others read what a transaction has received."""
        self._taken -= {(transaction.node.name, number) for number in transaction.taken}

    def replied(self, node: Node, reply: TransactionReply) -> None:
        """Take a `TransactionReply`: the coordinator decides some time later."""
        transaction = self._transactions.get(reply.transaction)
        if transaction is not None and reply.tag != PREPARE_DONE:
            del self._transactions[reply.transaction]
        elif transaction is not None:
            transaction.prepared = True
            self._decide_soon(transaction)

    def _decide_soon(self, transaction: ApplicationTransaction) -> None:
        delay = self._environment.rng.randrange(_DECIDE_MS)
        self._environment.after(delay, partial(self._end, transaction))

    def crashed(self, node: Node) -> None:
        """Forget what a node has lost: transactions that are not prepared, and reads that have not ended."""
        prepared = {key for key, _ in node.store.rows(Table.TRANSACTION)}
        for transaction in self._transactions_of(node):
            if not (transaction.external and transaction.identifier.bytes in prepared):
                del self._transactions[transaction.identifier]
                for tracked in transaction.messages:
                    if tracked.state is SendState.OPEN:
                        tracked.state = SendState.LOST
        locked = {
            (node.name, number) for transaction in self._transactions_of(node) for number in transaction.taken
        }
        self._taken = {key for key in self._taken if key[0] != node.name or key in locked}

    def started(self, node: Node) -> None:
        """Have the coordinator repeat its decisions to a node that is back, or ask again."""
        for transaction in self._transactions_of(node):
            transaction.commit = transaction.commit and (transaction.prepared or transaction.decided)
            transaction.prepared = True
            self._decide_soon(transaction)

    def _transactions_of(self, node: Node) -> list[ApplicationTransaction]:
        return [transaction for transaction in self._transactions.values() if transaction.node is node]

    # -- receiving --------------------------------------------------------------------------------------

    def _receive(self, node: Node, args: Any) -> None:
        def receive(core: Core) -> None:
            name = parse_format_name(f"DIRECT=OS:{node.name}\\private$\\{args['queue']}")
            status, descriptor = core.queues.open(name, QueueAccessType.RECEIVE_ACCESS)
            assert descriptor is not None, f"{status:#x}: the queue exists"
            mode = args["mode"]
            if mode == "wait":
                self._receive_waiting(node, core, descriptor)
            elif mode == "plain":
                while core.messages.dequeue(descriptor, timeout=0).status == MQ_OK:
                    pass
                core.queues.close(descriptor)
            elif mode in ("take", "give back"):
                self._receive_in_two_steps(node, core, descriptor, args)
            else:
                self._receive_in_transaction(node, core, descriptor, args)

        node.call(receive)

    def _receive_waiting(self, node: Node, core: Core, descriptor: OpenQueueDescriptor) -> None:
        """Begin a read that waits for a message to arrive."""
        read = core.messages.dequeue(descriptor, timeout=_WAIT_MS)
        if read.request:
            self._waiting_reads.add((node.name, node.epoch, read.request))
        else:
            core.queues.close(descriptor)

    def completed(self, node: Node, effect: ReadCompleted) -> None:
        """Take a `ReadCompleted`, of a read that waits."""
        self._waiting_reads.remove((node.name, node.epoch, effect.request))

    def _receive_in_transaction(
        self, node: Node, core: Core, descriptor: OpenQueueDescriptor, args: Any
    ) -> None:
        transaction = self._begin(node, core, args["mode"])
        in_core = core.queue_manager.transactions[transaction.identifier]
        for _ in range(args["count"]):
            read = core.messages.dequeue(descriptor, timeout=0, transaction=in_core)
            if read.status != MQ_OK or read.message is None:
                break
            number = self._take(node, read.message)
            if number is not None:
                transaction.taken.append(number)
        core.queues.close(descriptor)
        self._end_after(core, transaction, args["hold_ms"])

    def _take(self, node: Node, message: Message) -> int | None:
        """Record that a reader has a message, and check that no other one has it.

        Returns:
            The number of the message; None for express messages, which may repeat and are not recorded.
        """
        number = message_number(message)
        if number is None:
            return None
        tracked = self._ledger.messages[number]
        if tracked.is_express:
            return None
        has_duplicate = len(tracked.arrivals) > 1  # where the history is short
        if (node.name, number) in self._taken and not has_duplicate:
            raise Violation(Invariant.RECEIVED_ONCE, f"{tracked} is handed to two readers")
        self._taken.add((node.name, number))
        return number

    def _receive_in_two_steps(
        self, node: Node, core: Core, descriptor: OpenQueueDescriptor, args: Any
    ) -> None:
        """Dequeue Message Begin, and End some time later."""
        taken: list[tuple[int | None, MessagePosition]] = []
        for _ in range(args["count"]):
            read = core.messages.dequeue_begin(descriptor, timeout=0)
            if read.status != MQ_OK or read.position is None or read.message is None:
                break
            taken.append((self._take(node, read.message), read.position))
        epoch = node.epoch

        def end(core: Core) -> None:
            if node.epoch != epoch:
                return
            for number, position in taken:
                if number is not None:
                    self._taken.discard((node.name, number))
                core.messages.dequeue_end(descriptor, position, delete=args["mode"] == "take")
            core.queues.close(descriptor)

        self._environment.after(args["hold_ms"], lambda: node.call(end))

    # -- administrators ---------------------------------------------------------------------------------

    def _purge(self, node: Node, args: Any) -> None:
        def purge(core: Core) -> None:
            queue = core.queues.lookup.path(f"{node.name}\\private$\\{args['queue']}")
            assert queue is not None, "it was created"
            core.messages.purge(queue)

        self._environment.log(node.name, f"purges {args['queue']}")
        node.call(purge)

    def _pause(self, node: Node, args: Any) -> None:
        def pause(core: Core) -> None:
            queues = _outgoing_queues(core)
            if not queues:
                return
            queue = queues[args["pick"] % len(queues)]
            self._environment.log(node.name, f"pauses {queue.destination}")
            core.queues.pause(queue)
            self._environment.after(args["ms"], lambda: node.call(_resume_all))

        node.call(pause)

    def _offline(self, node: Node, args: Any) -> None:
        self._environment.log(node.name, f"offline for {args['ms']} ms")
        node.call(lambda core: core.queues.take_offline())
        self._environment.after(args["ms"], lambda: node.call(lambda core: core.queues.bring_online()))

    # -- faults -----------------------------------------------------------------------------------------

    def _crash(self, node: Node, args: Any) -> None:
        node.crash_soon(args["after"], args["ms"])

    def _restart(self, node: Node, args: Any) -> None:
        node.restart(args["ms"])

    def _amnesia(self, node: Node, args: Any) -> None:
        """Crash a router and lose transactional messages of others, which the senders still hold."""
        if node.core is not None:
            node.crash(args["ms"])
            self._contents.forget_transactional(node.name, node.store)

    def _cut(self, node: Node, args: Any) -> None:
        self._network.cut(node, args["pick"], args["late_ms"])

    def _partition(self, node: Node, args: Any) -> None:
        self._environment.log(node.name, f"PARTITION from {args['other']} for {args['ms']} ms")
        self._network.partition(node.name, args["other"], args["ms"])

    def _lasting_fault(self, node: Node, args: Any, fault: str) -> None:
        """Begin a fault that ends by itself; it is an attribute of the node."""
        self._environment.log(node.name, f"{fault.replace('_', ' ').upper()} for {args['ms']} ms")
        setattr(node, f"{fault}_until", self._environment.now + args["ms"])
        if "each_ms" in args:
            node.disk_slow_ms = args["each_ms"]

    def _renew_key(self, node: Node, args: Any) -> None:
        self._environment.log(node.name, "gets a new key")
        self._environment.counts["new keys"] += 1
        node.renew_key()

    def _set_clock(self, node: Node, args: Any) -> None:
        self._environment.log(node.name, f"its clock is set by {args['seconds']} s")
        node.clock += args["seconds"]


def _outgoing_queues(core: Core) -> list[OutgoingQueue]:
    return [
        queue
        for queue in core.queue_manager.queues.values()
        if isinstance(queue, OutgoingQueue) and queue.acknowledged_peer is None
    ]


def _resume_all(core: Core) -> None:
    for queue in _outgoing_queues(core):
        if queue.state.value == "OnHold":
            core.queues.resume(queue)


_ACTIONS: Final[dict[str, Callable[[Workload, Node, Any], None]]] = {
    "send": Workload._send,
    "transaction": Workload._transaction,
    "receive": Workload._receive,
    "purge": Workload._purge,
    "pause": Workload._pause,
    "offline": Workload._offline,
    "crash": Workload._crash,
    "restart": Workload._restart,
    "cut": Workload._cut,
    "partition": Workload._partition,
    "refuse": lambda self, node, args: self._lasting_fault(node, args, "refuses"),
    "unresolved": lambda self, node, args: self._lasting_fault(node, args, "unresolved"),
    "disk": lambda self, node, args: self._lasting_fault(node, args, "disk_refuses"),
    "slow disk": lambda self, node, args: self._lasting_fault(node, args, "disk_slow"),
    "clock": Workload._set_clock,
    "amnesia": Workload._amnesia,
    "key": Workload._renew_key,
}
