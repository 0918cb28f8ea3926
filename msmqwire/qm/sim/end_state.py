"""The end of a run: work that is still pending, and the invariants once everything is at rest."""

from __future__ import annotations

from collections.abc import Mapping

from msmqwire.names.printable import counted
from msmqwire.qm.core import Core
from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.model.enumerations import AcknowledgementsRequested, PositionState
from msmqwire.qm.model.tables import Table
from msmqwire.qm.sim.environment import Environment
from msmqwire.qm.sim.invariants import check_stored_origins
from msmqwire.qm.sim.joined import each, simulated
from msmqwire.qm.sim.ledger import ABOUT_RECEIVING, MessageLedger
from msmqwire.qm.sim.network import Network
from msmqwire.qm.sim.node import Node
from msmqwire.qm.sim.store_contents import StoreContents
from msmqwire.qm.sim.tracked import SendState, Tracked
from msmqwire.qm.sim.violation import Invariant
from msmqwire.service.virtual.violation import Violation


def pending_work(
    nodes: Mapping[str, Node], network: Network, ledger: MessageLedger, *, drained: bool
) -> str | None:
    """Describe a part that is not at rest; return None if everything is.

    Args:
        nodes: all nodes of the run, by name. network, ledger: network and ledger of the run. drained: whether
            all queues were read, so that no final acknowledgement may be missing.
    """
    if network.ending:
        return "the end of a connection is not known at both sides"
    cores: list[tuple[Node, Core]] = []
    for node in nodes.values():
        core = node.core
        if core is None or node.busy:
            return f"{node} is down or still writes"
        cores.append((node, core))
        for transfer in core.binary.transfers.values():
            if transfer.table:
                first = next(iter(transfer.table.values()))
                description = f"{transfer.queue.destination} {first.state.value}"
                return f"{node} has {counted(len(transfer.table), 'message')} to {description}"
        for protocol in simulated():
            if (waits := protocol.pending(core, ledger, drained=drained)) is not None:
                return f"{node} has {waits}"
        for queue in core.queue_manager.queues.values():
            if not isinstance(queue, OutgoingQueue) or not core.binary.serves(queue):
                continue
            if not queue.acknowledged_peer:
                for position in queue.positions:
                    if not _awaits_final_ack(core, queue, position.number):
                        return f"{node} keeps {position} to {queue.destination} without sending it"
    if drained:
        for node, core in cores:
            for transfer in core.binary.transfers.values():
                if transfer.awaiting_final_ack:
                    return f"{node} awaits final acknowledgements from {transfer.queue.destination}"
            for protocol in simulated():
                if (timer := protocol.idle_timer(core)) is not None:
                    return f"the {timer.value} of {node} runs"
    return None


def _awaits_final_ack(core: Core, queue: OutgoingQueue, number: int) -> bool:
    transfer = core.binary.transfers.get(queue.number)
    waiting = transfer.awaiting_final_ack.values() if transfer else ()
    return any(outgoing.position.number == number for outgoing in waiting)


def check(
    environment: Environment, nodes: Mapping[str, Node], ledger: MessageLedger, contents: StoreContents
) -> None:
    """Check the outcome of every message, and that no state is left.

    Raises:
        Violation: an invariant does not hold.
    """
    for tracked in ledger.messages.values():
        if tracked.state is SendState.COMMITTED and not tracked.is_express:
            _check_fate(tracked, nodes[tracked.sender].utc, contents, lenient=environment.plan.short_history)
    for node in nodes.values():
        _check_node(node)


def _check_node(node: Node) -> None:
    core = node.core
    assert core is not None, "all have come back"
    for queue in core.queue_manager.queues.values():
        size = sum(position.size for position in queue.positions)
        if queue.total_bytes != size:
            raise Violation(
                Invariant.BOUNDED, f"{queue.pathname} counts {counted(queue.total_bytes, 'byte')} of {size}"
            )
        for position in queue.positions:
            if position.state is not PositionState.AVAILABLE:
                raise Violation(Invariant.HANGS, f"{position} of {queue.pathname} at {node}")
    check_stored_origins(node.name, core, node.store)
    if core.queue_manager.transactions or list(node.store.rows(Table.TRANSACTION)):
        raise Violation(Invariant.BOUNDED, f"{node} has transactions that have ended")
    if transfers := list(node.store.rows(Table.OUTGOING)):
        raise Violation(
            Invariant.BOUNDED, f"{node} has stored the state of {len(transfers)} transfers, which have ended"
        )
    if left_over := each(lambda protocol: protocol.remainder(core)):
        raise Violation(Invariant.BOUNDED, f"{node} has {left_over}")
    shares = core.remote_read.shares
    left = shares.handles, shares.cursors, shares.waiting, shares.pending
    if len(core.remote_read.contexts) or any(share.total for share in left):
        raise Violation(Invariant.BOUNDED, f"{node} keeps handles of remote readers that have gone")
    if len(core.dispatch):
        raise Violation(Invariant.BOUNDED, f"{node} has messages to dispatch which are gone")


def _check_fate(tracked: Tracked, sender_utc: int, contents: StoreContents, *, lenient: bool) -> None:
    """Check the outcome of a message that survives crashes.

    Args:
        tracked: the message.
        sender_utc: the time now, by the clock of its sender.
        contents: the contents of all stores. lenient: whether messages may repeat, so that some are missing
            elsewhere.
    """
    # A message given up in the step in which it was sent is never in a store.
    unsent = not tracked.arrivals and tracked.sender not in tracked.transmitted_by
    given_up = tracked.expired_at or (unsent and tracked.has_expired(sender_utc))
    if tracked.arrivals:
        in_queue = contents.has_in_user_queue(tracked.destination, tracked)
        if not (tracked.received or tracked.failed or in_queue):
            raise Violation(Invariant.HELD, f"{tracked} has arrived and is missing")
    elif not (tracked.deadlettered or tracked.refusal or given_up or tracked.may_be_dropped):
        lost = Invariant.TRANSACTIONS_LOST if tracked.is_transactional else Invariant.RECOVERABLE
        raise Violation(lost, f"{tracked} has not come")
    is_remote = tracked.destination != tracked.sender
    if is_remote and tracked.is_transactional:
        arrived = bool(tracked.received)
    else:
        arrived = bool(tracked.arrivals) and not (is_remote and tracked.may_be_dropped)
    arrived = arrived and not (tracked.expired_in_doubt or tracked.purged_before_commit)
    if not lenient and tracked.options.get("journal") and arrived and not tracked.journaled:
        raise Violation(Invariant.JOURNALED_ONCE, f"{tracked} is not in the journal")
    failed = tracked.is_transactional and (tracked.refusal or tracked.failed or given_up)
    if is_remote and failed and tracked.options.get("deadletter") and not tracked.deadlettered:
        raise Violation(Invariant.JOURNALED_ONCE, f"{tracked} is not in the dead-letter queue")
    requested = tracked.acknowledgements_requested & AcknowledgementsRequested.ACK_POS_RECEIVE
    acknowledged = any(message_class & ABOUT_RECEIVING for message_class, _ in tracked.acknowledgements)
    if tracked.received and requested and not (lenient or acknowledged):
        raise Violation(Invariant.ACKNOWLEDGED, f"{tracked} was received without a report of it")
