"""Carries out the items of a plan: the operations of applications, and the injected faults."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from msmqwire.constants import MQ_OK
from msmqwire.names import FormatName, parse_format_name
from msmqwire.qm.core import Core
from msmqwire.qm.model import access
from msmqwire.qm.model.effects import EnlistTransaction, ReadCompleted, TransactionReply
from msmqwire.qm.model.elements import OpenQueueDescriptor, OutgoingQueue, Queue
from msmqwire.qm.model.enumerations import (
    EnqueueStatus,
    QueueAccessType,
)
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.sim.environment import Environment
from msmqwire.qm.sim.ledger import MessageLedger
from msmqwire.qm.sim.network import Network
from msmqwire.qm.sim.node import Node
from msmqwire.qm.sim.plan import (
    FULL_DISK,
    NOBODY,
    QUEUES,
    SMALL,
    SMALL_TRANSACTIONAL,
    STRAY,
    TRANSACTIONAL,
    Item,
)
from msmqwire.qm.sim.policies import set_policies
from msmqwire.qm.sim.protection import protect
from msmqwire.qm.sim.reader_ledger import Hold, ReaderLedger
from msmqwire.qm.sim.remote_reader import RemoteReader
from msmqwire.qm.sim.remote_scripts import CONNECTIONS, ReadingProgram
from msmqwire.qm.sim.rpc_network import SimulatedRpcNetwork
from msmqwire.qm.sim.store_contents import StoreContents
from msmqwire.qm.sim.tracked import Delivery, SendState, Tracked
from msmqwire.qm.sim.transactions import ApplicationTransaction, SimulatedTransactions

ADMIN: Final = "admin"
_ALL_QUEUES: Final = (*QUEUES, ADMIN)
_STRAY_NUMBER: Final = 9
_WAIT_MS: Final = 4_000
"""The longest wait of a read for a message."""
_SECURITY: Final = access.default_security(None, anonymous_may_send=True)
"""The security descriptor of all queues."""


class Workload:
    """All applications and administrators of a run, and its faults.

    Attributes:
        drained: whether everything has been read at the end.
    """

    def __init__(
        self,
        environment: Environment,
        nodes: Mapping[str, Node],
        ledger: MessageLedger,
        reader_ledger: ReaderLedger,
        contents: StoreContents,
        network: Network,
        rpc: SimulatedRpcNetwork,
    ) -> None:
        self._environment, self._nodes, self._network = environment, nodes, network
        self._ledger, self._reader_ledger, self._contents, self._rpc = ledger, reader_ledger, contents, rpc
        self._transactions = SimulatedTransactions(environment, ledger, reader_ledger, contents)
        self._messages_sent = 0
        self._private_numbers: dict[tuple[str, str], int] = {}
        self._readers: list[RemoteReader] = []
        self.drained = False

    # -- before and after -------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Create the queues on all nodes."""
        for node in self._nodes.values():
            node.call(partial(self._create_queues, node))

    def _create_queues(self, node: Node, core: Core) -> None:
        if self._environment.plan.has_policies:
            set_policies(core, self._environment.plan.seed)
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
        """After the faults, resume all paused queues, and end all remote readers and transactions."""
        for node in self._nodes.values():
            node.call(_resume_all)
        for reader in self._readers:
            reader.kill()
        self._transactions.end_all()

    def drain(self) -> None:
        """Read everything that is left."""
        self.drained = True
        for node in self._nodes.values():
            for queue in (*_ALL_QUEUES, *_subqueues(node)):
                self._receive(node, {"queue": queue, "mode": "plain", "count": 1_000, "hold_ms": 0})

    # -- items of a plan --------------------------------------------------------------------------------

    def action(self, item: Item) -> Callable[[], None]:
        """Return a function that carries out an item of the plan."""
        node, args = self._nodes[item.node], item.args
        return lambda: _ACTIONS[item.kind](self, node, args)

    def _send(self, node: Node, args: Any) -> None:
        node.program(self._sending(node, args))

    async def _sending(self, node: Node, args: Any) -> None:
        def send_all(core: Core) -> None:
            for _ in range(args["count"]):
                sent.append(self._send_message(node, core, args, None))

        sent: list[Tracked] = []
        node.call(send_all)
        await node.driver.durable()
        for tracked in sent:
            self._contents.check_sent(node.name, tracked)

    def _transaction(self, node: Node, args: Any) -> None:
        node.program(self._sending_in_transaction(node, args))

    async def _sending_in_transaction(self, node: Node, args: Any) -> None:
        def send_all(core: Core) -> ApplicationTransaction:
            transaction = self._transactions.begin(node, core, args["end"])
            for index in range(args["count"]):
                other = args.get("also", {}) if index % 2 else {}
                self._send_message(node, core, {**args, **other}, transaction)
            self._transactions.end_after(core, transaction, args["hold_ms"])
            return transaction

        transaction = node.call(send_all)
        if transaction is not None:
            await self._transactions.acknowledged(transaction)

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
    ) -> Tracked:
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
        else:
            self._ledger.sent(tracked, message.identifier)
        return tracked

    # -- notices of nodes ---------------------------------------------------------------------------------

    def _completed(self, node: Node, queue: str, _: ReadCompleted) -> None:
        """A read that has waited is over."""
        self._reader_ledger.waiters[node.name, queue] -= 1

    def replied(self, node: Node, reply: TransactionReply) -> None:
        """Take a `TransactionReply`."""
        self._transactions.replied(node, reply)

    def enlist(self, node: Node, effect: EnlistTransaction) -> None:
        """Carry out `EnlistTransaction`."""
        self._transactions.enlist(node, effect)

    def crashed(self, node: Node) -> None:
        """Forget the losses of a node, and end the programs that ran there."""
        for reader in [reader for reader in self._readers if reader.host is node]:
            reader.kill()
        self._readers = [reader for reader in self._readers if not reader.finished]
        self._transactions.crashed(node)

    def started(self, node: Node) -> None:
        """Have coordinators turn to a node that is back."""
        self._transactions.started(node)

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
            queue = descriptor.queue.pathname if descriptor.queue is not None else ""
            self._reader_ledger.waiters[node.name, queue] += 1
            node.driver.on_read(read.request, partial(self._completed, node, queue))
        else:
            core.queues.close(descriptor)

    def _receive_in_transaction(
        self, node: Node, core: Core, descriptor: OpenQueueDescriptor, args: Any
    ) -> None:
        transaction = self._transactions.begin(node, core, args["mode"])
        in_core = core.queue_manager.transactions[transaction.identifier]
        for _ in range(args["count"]):
            read = core.messages.dequeue(descriptor, timeout=0, transaction=in_core)
            if read.status != MQ_OK or read.position is None:
                break
            core.messages.deliveries.handed_out(read.position)
            self._reader_ledger.take(node.name, read.position, Hold(transaction.identifier))
        core.queues.close(descriptor)
        self._transactions.end_after(core, transaction, args["hold_ms"])

    def _receive_in_two_steps(
        self, node: Node, core: Core, descriptor: OpenQueueDescriptor, args: Any
    ) -> None:
        """Dequeue Message Begin, and End some time later."""
        taken: list[MessagePosition] = []
        for _ in range(args["count"]):
            read = core.messages.dequeue_begin(descriptor, timeout=0)
            if read.status != MQ_OK or read.position is None:
                break
            core.messages.deliveries.handed_out(read.position)
            self._reader_ledger.take(node.name, read.position, Hold())
            taken.append(read.position)
        node.program(self._ending(node, descriptor, taken, args))

    async def _ending(
        self, node: Node, descriptor: OpenQueueDescriptor, taken: list[MessagePosition], args: Any
    ) -> None:
        """End receives as the control channel does: the commit is awaited only when a program asks."""

        def end(core: Core) -> None:
            for position in taken:
                self._reader_ledger.release(node.name, position.number)
                core.messages.dequeue_end(descriptor, position, delete=args["mode"] == "take")
            core.queues.close(descriptor)

        await asyncio.sleep(args["hold_ms"] / 1000)
        driver = node.driver
        driver.defer_commit(end, driver.core)
        await driver.durable()
        if args["mode"] == "take":
            for position in taken:
                self._contents.check_received(node.name, position.number)

    def _read_remotely(self, node: Node, args: Any) -> None:
        self.read_remotely(node, args)

    def read_remotely(self, node: Node, args: Any) -> tuple[RemoteReader, ReadingProgram]:
        """Run a program at a node that reads the queues of another one; return it."""
        connections = CONNECTIONS.get(args["mode"], 1)
        reader = RemoteReader(self._environment, self._rpc, node, self._nodes[args["from"]], connections)
        reading = ReadingProgram(self._environment, self._ledger, self._transactions, reader, args)
        self._readers.append(reader)
        reader.run(reading.script)
        return reader, reading

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
        """Crash a router and lose transactional messages of its peers, which the senders still hold."""
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


def _subqueues(node: Node) -> list[str]:
    """Return the names of the subqueues that a node has, as in its format names."""
    if node.core is None:
        return []
    return [
        subqueue.pathname.rpartition("\\")[2]
        for queue in node.core.queue_manager.queues.values()
        for subqueue in queue.subqueues.values()
    ]


def _resume_all(core: Core) -> None:
    for queue in _outgoing_queues(core):
        if queue.state.value == "OnHold":
            core.queues.resume(queue)


_ACTIONS: Final[dict[str, Callable[[Workload, Node, Any], None]]] = {
    "send": Workload._send,
    "transaction": Workload._transaction,
    "receive": Workload._receive,
    "remote read": Workload._read_remotely,
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
    FULL_DISK: lambda self, node, args: self._lasting_fault(node, args, "disk_full"),
    "slow disk": lambda self, node, args: self._lasting_fault(node, args, "disk_slow"),
    "clock": Workload._set_clock,
    "amnesia": Workload._amnesia,
    "key": Workload._renew_key,
}
