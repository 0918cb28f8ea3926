"""The applications of a run, and the hand that does the damage: carries out the items of a plan."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from msmqwire.constants import MQ_OK
from msmqwire.names import FormatName, parse_format_name
from msmqwire.qm.core import Core
from msmqwire.qm.model import access
from msmqwire.qm.model.changes import Table
from msmqwire.qm.model.effects import ReadCompleted, TransactionReply
from msmqwire.qm.model.elements import OpenQueueDescriptor, OutgoingQueue, Queue, Transaction
from msmqwire.qm.model.enumerations import (
    INFINITE,
    AcknowledgementsRequested,
    DeliveryGuarantee,
    EnqueueStatus,
    QueueAccessType,
)
from msmqwire.qm.model.message import NULL_GUID, TIME_TO_REACH_QUEUE, Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.rules.routing import Routes
from msmqwire.qm.rules.transactions import PREPARE_DONE
from msmqwire.qm.sim import tracked as states
from msmqwire.qm.sim.ledger import RECEIVED_ONCE, tag
from msmqwire.qm.sim.plan import QUEUES, SMALL, SMALL_TRANSACTIONAL, TRANSACTIONAL, Item
from msmqwire.qm.sim.tracked import Tracked
from msmqwire.qm.sim.violation import Violated

if TYPE_CHECKING:
    from msmqwire.qm.sim.node import Node
    from msmqwire.qm.sim.world import World

ADMIN: Final = "admin"
_ALL: Final = (*QUEUES, ADMIN)
_DECIDE_MS: Final = 400
_WAIT_MS: Final = 4_000


class Unit:
    """A transaction of an application, or of a coordinator that several take part in.

    Attributes:
        messages: those it sends.
        taken: those it receives.
        external: whether a coordinator decides.
        commit: how it is to end.
        prepared: whether the coordinator was told that it is prepared: from then on its word holds.
        decided: whether the coordinator has given its word.
    """

    def __init__(self, node: Node, identifier: UUID, end: str) -> None:
        self.node, self.identifier = node, identifier
        self.messages: list[Tracked] = []
        self.taken: list[int] = []
        self.external = end.startswith("external")
        self.commit = end.endswith("commit")
        self.prepared = self.decided = False


class Workload:
    """What applications do.

    Attributes:
        drained: whether everything has been read at the end.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._units: dict[UUID, Unit] = {}
        self._numbers = 0
        self._private: dict[tuple[str, str], int] = {}
        self._taken: dict[tuple[str, int], str] = {}  # who has a message and has not ended
        self._waiting: dict[tuple[str, int, int], str] = {}
        self.drained = False

    # -- before and after -------------------------------------------------------------------------------

    def routes(self, node: Node) -> Routes:
        """The fixed routes of a node: by the router, for all but itself and its own."""
        router = self._world.plan.router
        found: dict[UUID | None, list[UUID | str]] = {}
        for other in self._world.nodes.values():
            if other is not node:
                direct = router is None or router in (node.name, other.name)
                found[other.identifier] = [other.name if direct or router is None else router]
        return found

    def prepare(self) -> None:
        """Make the queues, on all nodes."""
        for node in self._world.nodes.values():
            node.call(partial(self._make_queues, node))

    def _make_queues(self, node: Node, core: Core) -> None:
        for name in _ALL:
            wanted = Queue(NULL_GUID)
            core.queues.set_defaults(wanted)
            wanted.pathname = f"{node.name}\\private$\\{name}"
            wanted.transactional = name in (TRANSACTIONAL, SMALL_TRANSACTIONAL)
            wanted.security = access.default_security(access.ANONYMOUS)
            if name in (SMALL, SMALL_TRANSACTIONAL):
                wanted.quota = 1
            status, queue = core.queues.create(wanted)
            assert queue is not None, f"nothing hinders it: {status:#x}"
            self._private[node.name, name] = queue.private_queue_number

    def calm(self) -> None:
        """Faults are over: what was paused goes on, and every transaction ends."""
        for node in self._world.nodes.values():
            node.call(_resume_all)
        for unit in list(self._units.values()):
            self._end(unit)

    def drain(self) -> None:
        """Read everything that is left."""
        self.drained = True
        for node in self._world.nodes.values():
            for queue in _ALL:
                self._receive(node, {"queue": queue, "mode": "plain", "count": 1_000, "hold_ms": 0})

    # -- items of a plan --------------------------------------------------------------------------------

    def action(self, item: Item) -> Callable[[], None]:
        """What an item of the plan does."""
        world = self._world
        node, args = world.nodes[item.node], item.args
        return lambda: _ACTIONS[item.what](self, node, args)

    def _send(self, node: Node, args: Any) -> None:
        def sends(core: Core) -> None:
            for _ in range(args["count"]):
                self._one(node, core, args, None)

        node.call(sends)

    def _transaction(self, node: Node, args: Any) -> None:
        world = self._world

        def sends(core: Core) -> None:
            unit = self._begin(node, core, args["end"])
            transaction = core.queue_manager.transactions[unit.identifier]
            for number in range(args["count"]):
                where = args
                if "also" in args and number % 2:
                    where = {**args, **args["also"]}
                self._one(node, core, where, unit, transaction)
            if args["hold_ms"]:
                world.after(args["hold_ms"], lambda: self._end(unit))
            else:
                self._end_now(core, unit)

        node.call(sends)

    def _begin(self, node: Node, core: Core, end: str) -> Unit:
        identifier = self._world.guid()
        core.transactions.create(identifier)
        unit = self._units[identifier] = Unit(node, identifier, end)
        return unit

    def _name(self, node: Node, args: Any) -> FormatName:
        to = self._world.nodes[args["to"]]
        queue = args["queue"]
        match args["form"]:
            case "PRIVATE":
                return parse_format_name(f"PRIVATE={to.identifier}\\{self._private[to.name, queue]:x}")
            case "TCP":
                return parse_format_name(f"DIRECT=TCP:{to.address}\\private$\\{queue}")
        return parse_format_name(f"DIRECT=OS:{to.name}\\private$\\{queue}")

    def _one(
        self, node: Node, core: Core, args: Any, unit: Unit | None, transaction: Transaction | None = None
    ) -> None:
        """Send one message."""
        world = self._world
        self._numbers += 1
        name = self._name(node, args)
        kind = states.RECOVERABLE if args.get("recoverable") else states.EXPRESS
        tracked = Tracked(
            self._numbers, node, states.TRANSACTIONAL if unit else kind, world.nodes[args["to"]],
            args["queue"], name.canonical, dict(args), node.utc,
        )  # fmt: skip
        status, descriptor = core.queues.open(name, QueueAccessType.SEND_ACCESS)
        assert descriptor is not None, f"{status:#x}: a queue can always be opened to send"
        message = Message(
            body=f"#{tracked.number};".encode() + bytes(args["size"]),
            label=tracked.label,
            delivery_guarantee=DeliveryGuarantee(int(bool(args.get("recoverable")))),
            priority=args.get("priority", 3),
            positive_journaling_requested=bool(args.get("journal")),
            negative_journaling_requested=bool(args.get("deadletter")),
            acknowledgements_requested=AcknowledgementsRequested(args.get("acks", 0)),
            time_to_reach_queue=args.get("reach_s", TIME_TO_REACH_QUEUE),
            time_to_be_received=args.get("receive_s", INFINITE),
        )
        if args.get("acks"):
            form = "OS" if tracked.number % 2 else "PRIVATE"
            message.administration = self._name(node, {"to": node.name, "queue": ADMIN, "form": form})
        world.ledger.add(tracked)
        if unit is not None:
            tracked.transaction, tracked.state = world.ledger.index(), states.OPEN
            unit.messages.append(tracked)
            tracked.transaction = unit.messages[0].transaction
        found = core.send(descriptor, message, transaction)
        core.queues.close(descriptor)
        world.tell(node.name, f"sends {tracked}" + ("" if found is EnqueueStatus.OK else f": {found.name}"))
        if found is not EnqueueStatus.OK:
            tracked.state = states.REFUSED
            return
        world.ledger.sent(tracked, message.identifier)

    # -- transactions -----------------------------------------------------------------------------------

    def _end(self, unit: Unit) -> None:
        if unit.identifier in self._units:
            unit.node.call(lambda core: self._end_now(core, unit))

    def _end_now(self, core: Core, unit: Unit) -> None:
        transaction = core.queue_manager.transactions.get(unit.identifier)
        if unit.external and not unit.prepared and transaction is not None and not transaction.prepared:
            self._world.tell(unit.node.name, "prepares a transaction")
            core.transactions.dtc_prepare(unit.identifier, single_phase=False)
            return
        if unit.external and not unit.prepared and transaction is not None:
            if not self._world.calm:
                return  # the reply is on its way
            unit.commit = False
        self._decide(core, unit)

    def _decide(self, core: Core, unit: Unit) -> None:
        """Commit or abort."""
        if not unit.external:  # a coordinator remembers its decision until it is carried out
            del self._units[unit.identifier]
        for number in unit.taken:
            self._taken.pop((unit.node.name, number), None)
        messages = [one for one in unit.messages if one.state == states.OPEN]
        unit.decided = True
        word = "commits" if unit.commit else "aborts"
        if messages:
            self._world.tell(unit.node.name, f"{word} {', '.join(map(str, messages))}")
        transaction = core.queue_manager.transactions.get(unit.identifier)
        if transaction is None:
            return
        if unit.commit:
            otherwise = states.OPEN if unit.external else states.LOST
            self._world.ledger.committed(unit.node, messages, otherwise)
        else:
            for one in messages:
                one.state = states.ABORTED
        if unit.external:
            ended = core.transactions.dtc_commit if unit.commit else core.transactions.dtc_abort
            ended(unit.identifier)
        elif unit.commit:
            core.commit(transaction)
        else:
            core.transactions.abort(unit.identifier)

    def replied(self, node: Node, reply: TransactionReply) -> None:
        """`TransactionReply`: the coordinator decides some time later."""
        unit = self._units.get(reply.transaction)
        if unit is not None and reply.tag != PREPARE_DONE:
            del self._units[reply.transaction]
        elif unit is not None:
            unit.prepared = True
            self._world.after(self._world.rng.randrange(_DECIDE_MS), lambda: self._end(unit))

    def down(self, node: Node) -> None:
        """A node goes down: what it has not prepared is lost, what was read and not ended is free again."""
        for unit in [one for one in self._units.values() if one.node is node]:
            if not unit.external or not any(
                key == unit.identifier.bytes for key, _ in node.store.rows(Table.TRANSACTION)
            ):
                del self._units[unit.identifier]
                for one in unit.messages:
                    if one.state == states.OPEN:
                        one.state = states.LOST
                for number in unit.taken:
                    self._taken.pop((node.name, number), None)
        held = {number for unit in self._units.values() if unit.node is node for number in unit.taken}
        for name, number in list(self._taken):
            if name == node.name and number not in held:
                del self._taken[name, number]

    def up(self, node: Node) -> None:
        """A node is back: the coordinator tells it what was decided, or asks again."""
        for unit in [one for one in self._units.values() if one.node is node]:
            unit.commit = unit.commit and (unit.prepared or unit.decided)
            unit.prepared = True
            self._world.after(self._world.rng.randrange(_DECIDE_MS), partial(self._end, unit))

    # -- receiving --------------------------------------------------------------------------------------

    def _receive(self, node: Node, args: Any) -> None:
        def receives(core: Core) -> None:
            name = parse_format_name(f"DIRECT=OS:{node.name}\\private$\\{args['queue']}")
            status, descriptor = core.queues.open(name, QueueAccessType.RECEIVE_ACCESS)
            assert descriptor is not None, f"{status:#x}: the queue is there"
            mode = args["mode"]
            if mode == "wait":
                self._wait(node, core, descriptor)
            elif mode == "plain":
                while core.messages.dequeue(descriptor, timeout=0).status == MQ_OK:
                    pass
                core.queues.close(descriptor)
            elif mode in ("take", "give back"):
                self._take(node, core, descriptor, args)
            else:
                self._receive_in_transaction(node, core, descriptor, args)

        node.call(receives)

    def _wait(self, node: Node, core: Core, descriptor: OpenQueueDescriptor) -> None:
        """A read that waits for a message to come."""
        read = core.messages.dequeue(descriptor, timeout=_WAIT_MS)
        if read.request:
            self._waiting[node.name, node.epoch, read.request] = str(descriptor.format_name)
        else:
            core.queues.close(descriptor)

    def completed(self, node: Node, effect: ReadCompleted) -> None:
        """`ReadCompleted`."""
        assert (node.name, node.epoch, effect.request) in self._waiting, "it was asked for"
        del self._waiting[node.name, node.epoch, effect.request]

    def _receive_in_transaction(
        self, node: Node, core: Core, descriptor: OpenQueueDescriptor, args: Any
    ) -> None:
        unit = self._begin(node, core, args["mode"])
        transaction = core.queue_manager.transactions[unit.identifier]
        for _ in range(args["count"]):
            read = core.messages.dequeue(descriptor, timeout=0, transaction=transaction)
            if read.status != MQ_OK or read.message is None:
                break
            number = self._takes(node, read.message)
            if number is not None:
                unit.taken.append(number)
        core.queues.close(descriptor)
        if args["hold_ms"]:
            self._world.after(args["hold_ms"], lambda: self._end(unit))
        else:
            self._end_now(core, unit)

    def _takes(self, node: Node, message: Message) -> int | None:
        """A message is handed to a reader, who must be the only one to have it."""
        number = tag(message)
        if number is None or self._world.ledger.messages[number].kind == states.EXPRESS:
            return None
        twice_there = len(self._world.ledger.messages[number].arrivals) > 1  # where the history is short
        if (node.name, number) in self._taken and not twice_there:
            raise Violated(RECEIVED_ONCE, f"{self._world.ledger.messages[number]} is handed to two readers")
        self._taken[node.name, number] = "taken"
        return number

    def _take(self, node: Node, core: Core, descriptor: OpenQueueDescriptor, args: Any) -> None:
        """Dequeue Message Begin, and End some time later."""
        taken: list[tuple[int | None, MessagePosition]] = []
        for _ in range(args["count"]):
            read = core.messages.dequeue_begin(descriptor, timeout=0)
            if read.status != MQ_OK or read.position is None or read.message is None:
                break
            taken.append((self._takes(node, read.message), read.position))
        epoch = node.epoch

        def ends(core: Core) -> None:
            if node.epoch != epoch:
                return
            for number, position in taken:
                if number is not None:
                    self._taken.pop((node.name, number), None)
                core.messages.dequeue_end(descriptor, position, delete=args["mode"] == "take")
            core.queues.close(descriptor)

        self._world.after(args["hold_ms"], lambda: node.call(ends))

    # -- administrators ---------------------------------------------------------------------------------

    def _purge(self, node: Node, args: Any) -> None:
        def purges(core: Core) -> None:
            queue = core.queues.lookup.path(f"{node.name}\\private$\\{args['queue']}")
            assert queue is not None, "it was made"
            core.messages.purge(queue)

        self._world.tell(node.name, f"purges {args['queue']}")
        node.call(purges)

    def _pause(self, node: Node, args: Any) -> None:
        def pauses(core: Core) -> None:
            found = _outgoing(core)
            if not found:
                return
            queue = found[args["pick"] % len(found)]
            self._world.tell(node.name, f"pauses {queue.destination}")
            core.queues.pause(queue)
            self._world.after(args["ms"], lambda: node.call(_resume_all))

        node.call(pauses)

    def _offline(self, node: Node, args: Any) -> None:
        self._world.tell(node.name, f"offline for {args['ms']} ms")
        node.call(lambda core: core.queues.take_offline())
        self._world.after(args["ms"], lambda: node.call(lambda core: core.queues.bring_online()))

    # -- what goes wrong --------------------------------------------------------------------------------

    def _crash(self, node: Node, args: Any) -> None:
        node.crash_soon(args["after"], args["ms"])

    def _restart(self, node: Node, args: Any) -> None:
        node.restart(args["ms"])

    def _amnesia(self, node: Node, args: Any) -> None:
        """A router that goes down and forgets transactional messages of others: they hold them still."""
        if node.core is not None:
            node.crash(args["ms"])
            node.world.ledger.forget(node)

    def _cut(self, node: Node, args: Any) -> None:
        self._world.network.cut(node, args["pick"], args["late_ms"])

    def _partition(self, node: Node, args: Any) -> None:
        self._world.tell(node.name, f"PARTITION from {args['other']} for {args['ms']} ms")
        self._world.network.partition(node.name, args["other"], args["ms"])

    def _lasting(self, node: Node, args: Any, what: str) -> None:
        self._world.tell(node.name, f"{what.replace('_', ' ').upper()} for {args['ms']} ms")
        setattr(node, f"{what}_until", self._world.now + args["ms"])
        if "each_ms" in args:
            node.disk_slow_ms = args["each_ms"]

    def _clock(self, node: Node, args: Any) -> None:
        self._world.tell(node.name, f"its clock is set by {args['seconds']} s")
        node.clock += args["seconds"]


def _outgoing(core: Core) -> list[OutgoingQueue]:
    return [
        queue
        for queue in core.queue_manager.queues.values()
        if isinstance(queue, OutgoingQueue) and queue.acknowledged_peer is None
    ]


def _resume_all(core: Core) -> None:
    for queue in _outgoing(core):
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
    "refuse": lambda self, node, args: self._lasting(node, args, "refuses"),
    "unresolved": lambda self, node, args: self._lasting(node, args, "unresolved"),
    "disk": lambda self, node, args: self._lasting(node, args, "disk_refuses"),
    "slow disk": lambda self, node, args: self._lasting(node, args, "disk_slow"),
    "clock": Workload._clock,
    "amnesia": Workload._amnesia,
}
