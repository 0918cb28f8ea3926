"""What must hold in every queue manager after each step and each commit, and of each message at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msmqwire.qm.core import Core
from msmqwire.qm.model.changes import Table
from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.model.enumerations import INFINITE, PositionState
from msmqwire.qm.model.enumerations import AcknowledgementsRequested as Asked
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.session import Session
from msmqwire.qm.protocols.binary.states import MessageState, Role, SessionState
from msmqwire.qm.sim import tracked as states
from msmqwire.qm.sim.ledger import ACKNOWLEDGED, HELD, JOURNALED_ONCE, USER
from msmqwire.qm.sim.plan import SMALL, SMALL_TRANSACTIONAL, TRANSACTIONAL
from msmqwire.qm.sim.tracked import EXPRESS, Tracked
from msmqwire.qm.sim.violation import Violated

if TYPE_CHECKING:
    from msmqwire.qm.sim.node import Node
    from msmqwire.qm.sim.world import World

HANGS: Final = "nothing hangs"
BOUNDED: Final = "memory and tables stay bounded"
STATES: Final = "the state of every session is one of the named states"
RECOVERABLE: Final = "recoverable messages are never lost"
TRANSACTIONS_LOST: Final = "transactional messages are never lost"
SESSIONS_MAX: Final = 40
TIMERS_MAX: Final = 300
_TRANSMITTED: Final = (MessageState.WAITING_FOR_SESSION_ACK, MessageState.WAITING_FOR_ORDER_ACK)


def after_a_step(node: Node, core: Core) -> None:
    """Sessions, transfers and quotas of a queue manager."""
    engine = core.engine
    if len(engine.sessions) > SESSIONS_MAX:
        raise Violated(BOUNDED, f"{node} has {len(engine.sessions)} sessions")
    if len(core.engine.history) > core.context.settings.remove_duplicate_size:
        raise Violated(BOUNDED, f"MessageIDHistoryTable of {node} is too large")
    for session in engine.sessions.values():
        _session(node, session)
    for transfer in engine.transfers.values():
        session_of = transfer.session
        if session_of is not None and engine.sessions.get(session_of.number) is not session_of:
            raise Violated(STATES, f"{node} has a transfer over a session that is gone")
        for one in transfer.table.values():
            if one.state in (MessageState.DONE, MessageState.WAITING_FOR_FINAL_ACK):
                raise Violated(
                    BOUNDED, f"{node} has a message in OutgoingMessageTable that is {one.state.value}"
                )
        waits = any(one.state is MessageState.WAITING_FOR_ORDER_ACK for one in transfer.ordered)
        connected = session_of is not None and session_of.is_open
        timers = core.context.timers
        if waits and connected and not timers.active(Timer.TRANSACTIONAL_ACK_WAIT, transfer.queue.number):
            raise Violated(HANGS, f"{node} awaits an order acknowledgement and will never send again")
        if any(one.state is MessageState.DONE for one in transfer.ordered):
            raise Violated(BOUNDED, f"{node} awaits the order acknowledgement of a message that is gone")
    for queue in core.queue_manager.queues.values():
        if queue.quota != INFINITE and queue.total_bytes > queue.quota * 1024:
            raise Violated(
                BOUNDED, f"{queue.pathname} has {queue.total_bytes} bytes, its quota is {queue.quota} kB"
            )


def _session(node: Node, session: Session) -> None:
    state = session.state
    if not isinstance(state, SessionState):
        raise Violated(STATES, f"{node} has a session in the state {state!r}")
    wrong_role = state in _OF_ROLE[session.role]
    if wrong_role:
        raise Violated(STATES, f"{node}: the {session.role.value} of a session is {state.value}")
    connected = session.connection is not None
    if connected != (state not in (SessionState.CLOSED, SessionState.WAITING_RECONNECT)) and not (
        connected and session.role is Role.INITIATOR
    ):
        raise Violated(STATES, f"{node}: a session is {state.value}, its connection {session.connection}")
    if state is SessionState.OPEN:
        if session.unacked_message_count != len(session.in_flight):
            raise Violated(
                STATES, f"{node} counts {session.unacked_message_count} of {len(session.in_flight)} sent"
            )
        if session.unacked_message_count > session.window_size:
            raise Violated(BOUNDED, f"{node} has {session.unacked_message_count} unacknowledged messages")


_OF_ROLE: Final = {
    Role.INITIATOR: (SessionState.WAITING_EC_MSG, SessionState.WAITING_CP_MSG),
    Role.ACCEPTOR: (
        SessionState.WAITING_ECR_MSG,
        SessionState.WAITING_CPR_MSG,
        SessionState.WAITING_RECONNECT,
    ),
}
"""The states that a role never has."""


def after_a_commit(node: Node) -> None:
    """A store has no rows that nothing needs."""
    found = {table: {key for key, _ in node.store.rows(table)} for table in _RELATED}
    if found[Table.MESSAGE] != found[Table.PACKET]:
        raise Violated(
            BOUNDED, f"{node} has stored packets {found[Table.MESSAGE] ^ found[Table.PACKET]} badly"
        )
    if left := found[Table.OUTGOING] - found[Table.MESSAGE]:
        raise Violated(
            BOUNDED, f"{node} has stored how the transfer of messages {left} stands, which are gone"
        )


_RELATED: Final = (Table.MESSAGE, Table.PACKET, Table.OUTGOING)


# -- the end -------------------------------------------------------------------------------------------------


def on_the_way(world: World) -> str | None:
    """What is not at rest; None if everything is."""
    for node in world.nodes.values():
        core = node.core
        if core is None or node.busy:
            return f"{node} is down or writes"
        for transfer in core.engine.transfers.values():
            if transfer.table:
                one = next(iter(transfer.table.values()))
                where = f"{transfer.queue.destination} {one.state.value}"
                return f"{node} has {len(transfer.table)} messages to {where}"
        for queue in core.queue_manager.queues.values():
            if isinstance(queue, OutgoingQueue) and not queue.acknowledged_peer:
                for position in queue.positions:
                    if not _awaited(core, queue, position.number):
                        return f"{node} keeps {position} to {queue.destination} without sending it"
    if world.workload.drained:
        for node in world.nodes.values():
            assert node.core is not None, "it was looked at"
            for transfer in node.core.engine.transfers.values():
                if transfer.awaiting_final_ack:
                    return f"{node} awaits final acknowledgements from {transfer.queue.destination}"
    return None


def _awaited(core: Core, queue: OutgoingQueue, number: int) -> bool:
    transfer = core.engine.transfers.get(queue.number)
    waiting = transfer.awaiting_final_ack.values() if transfer else ()
    return any(one.position.number == number for one in waiting)


def at_the_end(world: World) -> None:
    """What has become of every message, and that nothing is left over."""
    for tracked in world.ledger.messages.values():
        if tracked.state == states.COMMITTED and tracked.kind != EXPRESS:
            _fate(world, tracked)
    for node in world.nodes.values():
        assert node.core is not None, "all have come back"
        core = node.core
        for queue in core.queue_manager.queues.values():
            size = sum(position.size for position in queue.positions)
            if queue.total_bytes != size:
                raise Violated(BOUNDED, f"{queue.pathname} counts {queue.total_bytes} bytes of {size}")
            for position in queue.positions:
                if position.state is not PositionState.AVAILABLE:
                    raise Violated(HANGS, f"{position} of {queue.pathname} at {node}")
        if core.queue_manager.transactions or list(node.store.rows(Table.TRANSACTION)):
            raise Violated(BOUNDED, f"{node} has transactions that have ended")
        if left := list(node.store.rows(Table.OUTGOING)):
            raise Violated(BOUNDED, f"{node} has stored how {len(left)} transfers stand, which have ended")
        if len(core.dispatch):
            raise Violated(BOUNDED, f"{node} has messages to dispatch which are gone")


def _fate(world: World, tracked: Tracked) -> None:
    transactional = tracked.kind == states.TRANSACTIONAL
    invariant = TRANSACTIONS_LOST if transactional else RECOVERABLE
    settings = world.plan.settings
    lenient = settings.remove_duplicate_size < 100
    # One that is given up in the step in which it was sent is never in a store.
    unsent = not tracked.arrivals and tracked.node.name not in tracked.transmitted_by
    given_up = tracked.expired_at or (unsent and tracked.expired(tracked.node.utc))
    if tracked.arrivals:
        if not (tracked.received or tracked.failed or _is_in_its_queue(world, tracked)):
            raise Violated(HELD, f"{tracked} has come, and is not there")
    elif not (tracked.deadlettered or tracked.refusal or given_up or _refusable(tracked)):
        raise Violated(invariant, f"{tracked} has not come")
    away = tracked.to is not tracked.node
    if away and transactional:
        arrived = bool(tracked.received)
    else:
        arrived = bool(tracked.arrivals) and not (away and _refusable(tracked))
    if not lenient and tracked.wishes.get("journal") and arrived and not tracked.journaled:
        raise Violated(JOURNALED_ONCE, f"{tracked} is not in the journal")
    failed = transactional and (tracked.refusal or tracked.failed or given_up)
    if away and failed and tracked.wishes.get("deadletter") and not tracked.deadlettered:
        raise Violated(JOURNALED_ONCE, f"{tracked} is not in the dead-letter queue")
    wanted = Asked(int(str(tracked.wishes.get("acks", 0))))
    told = any(one & 0x4000 for one, _ in tracked.acknowledgements)
    if tracked.received and wanted & Asked.ACK_POS_RECEIVE and not (lenient or told):
        raise Violated(ACKNOWLEDGED, f"{tracked} was received, which was not told")


def _is_in_its_queue(world: World, tracked: Tracked) -> bool:
    places = world.ledger.places[tracked.to.name].values()
    return any(place.tracked is tracked and place.kind is USER for place in places)


def _refusable(tracked: Tracked) -> bool:
    """Whether its destination may have refused it: only of transactional ones it must tell the sender."""
    if tracked.kind == states.TRANSACTIONAL:
        return False
    transactional_queue = tracked.queue in (TRANSACTIONAL, SMALL_TRANSACTIONAL)
    return transactional_queue or tracked.queue == SMALL or tracked.reach_s is not None
