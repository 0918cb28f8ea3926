"""The invariants of every queue manager after each step, and of every store after each commit."""

from __future__ import annotations

from collections import Counter
from typing import Final

from msmqwire.names.printable import counted
from msmqwire.qm.core import Core
from msmqwire.qm.model.enumerations import INFINITE
from msmqwire.qm.model.tables import Table
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.session import Session
from msmqwire.qm.protocols.binary.states import SessionMessageState, SessionRole, SessionState
from msmqwire.qm.rules.stored_rows import read_message
from msmqwire.qm.sim.joined import simulated
from msmqwire.qm.sim.policies import check_moves
from msmqwire.qm.sim.violation import Invariant
from msmqwire.service.store.memory import MemoryStore
from msmqwire.service.virtual.violation import Violation

SESSIONS_MAX: Final = 40
_IMPOSSIBLE_STATES: Final = {
    SessionRole.INITIATOR: (SessionState.WAITING_EC_MSG, SessionState.WAITING_CP_MSG),
    SessionRole.ACCEPTOR: (
        SessionState.WAITING_ECR_MSG,
        SessionState.WAITING_CPR_MSG,
        SessionState.WAITING_RECONNECT,
    ),
}
"""The states that a role never has."""
_MESSAGE_TABLES: Final = (Table.MESSAGE, Table.PACKET, Table.OUTGOING)


def check_step(node: str, core: Core) -> None:
    """Check the sessions, transfers and quotas of a queue manager after a step."""
    engine = core.binary
    if len(engine.sessions) > SESSIONS_MAX:
        raise Violation(Invariant.BOUNDED, f"{node} has {counted(len(engine.sessions), 'session')}")
    if len(core.history) > core.context.settings.remove_duplicate_size:
        raise Violation(Invariant.BOUNDED, f"MessageIDHistoryTable of {node} is too large")
    for session in engine.sessions.values():
        _check_session(node, session)
    for transfer in engine.transfers.values():
        session_of = transfer.session
        if session_of is not None and engine.sessions.get(session_of.number) is not session_of:
            raise Violation(Invariant.STATES, f"{node} has a transfer over a session that is gone")
        for outgoing in transfer.table.values():
            if outgoing.state in (SessionMessageState.DONE, SessionMessageState.WAITING_FOR_FINAL_ACK):
                raise Violation(
                    Invariant.BOUNDED,
                    f"{node} has a message in OutgoingMessageTable that is {outgoing.state.value}",
                )
        waits = any(
            outgoing.state is SessionMessageState.WAITING_FOR_ORDER_ACK for outgoing in transfer.ordered
        )
        connected = session_of is not None and session_of.is_open
        timers = core.context.timers
        if waits and connected and not timers.active(Timer.TRANSACTIONAL_ACK_WAIT, transfer.queue.number):
            raise Violation(
                Invariant.HANGS, f"{node} awaits an order acknowledgement and will never send again"
            )
        if any(outgoing.state is SessionMessageState.DONE for outgoing in transfer.ordered):
            raise Violation(
                Invariant.BOUNDED, f"{node} awaits the order acknowledgement of a message that is gone"
            )
    for protocol in simulated():
        protocol.check_step(node, core)
    _check_shares(node, core)
    check_moves(node, core)
    for queue in core.queue_manager.queues.values():
        if queue.quota != INFINITE and queue.total_bytes > queue.quota * 1024:
            raise Violation(
                Invariant.BOUNDED,
                f"{queue.pathname} has {counted(queue.total_bytes, 'byte')}, its quota is {queue.quota} kB",
            )


def _check_shares(node: str, core: Core) -> None:
    """Check that each origin is counted with exactly the bytes of its messages."""
    counts: Counter[str] = Counter()
    for queue in core.queue_manager.queues.values():
        for position in queue.positions:
            counts[position.origin] += position.size
    by_origin = core.messages.quotas.shares.by_origin()
    if by_origin != counts:
        raise Violation(Invariant.BOUNDED, f"{node} counts for origins {by_origin}, not {dict(counts)}")


def check_stored_origins(node: str, core: Core, store: MemoryStore) -> None:
    """Check that each stored message has the origin for which it is counted, so that a restart counts it so.

    A queue manager at rest has no changes on their way.
    """
    for queue in core.queue_manager.queues.values():
        for position in queue.positions:
            row = store.row(Table.MESSAGE, position.number)
            if row is not None and (origin := read_message(row).origin) != position.origin:
                raise Violation(
                    Invariant.BOUNDED,
                    f"{node} counts {position} for {position.origin!r}, and has stored it for {origin!r}",
                )


def _check_session(node: str, session: Session) -> None:
    state = session.state
    if not isinstance(state, SessionState):
        raise Violation(Invariant.STATES, f"{node} has a session in the state {state!r}")
    if state in _IMPOSSIBLE_STATES[session.role]:
        raise Violation(Invariant.STATES, f"{node}: the {session.role.value} of a session is {state.value}")
    connected = session.connection is not None
    if connected != (state not in (SessionState.CLOSED, SessionState.WAITING_RECONNECT)) and not (
        connected and session.role is SessionRole.INITIATOR
    ):
        raise Violation(
            Invariant.STATES, f"{node}: a session is {state.value}, its connection {session.connection}"
        )
    if state is SessionState.OPEN:
        if session.unacked_message_count != len(session.in_flight):
            raise Violation(
                Invariant.STATES,
                f"{node} counts {session.unacked_message_count} of {len(session.in_flight)} sent",
            )
        if session.unacked_message_count > session.window_size:
            raise Violation(
                Invariant.BOUNDED,
                f"{node} has {counted(session.unacked_message_count, 'unacknowledged message')}",
            )


def check_commit(node: str, store: MemoryStore) -> None:
    """Check that a store has no orphaned rows after a commit."""
    keys = {table: {key for key, _ in store.rows(table)} for table in _MESSAGE_TABLES}
    if mismatch := keys[Table.MESSAGE] ^ keys[Table.PACKET]:
        raise Violation(Invariant.BOUNDED, f"{node} has stored packets {mismatch} badly")
    if orphans := keys[Table.OUTGOING] - keys[Table.MESSAGE]:
        raise Violation(
            Invariant.BOUNDED,
            f"{node} has stored the transfer of messages {orphans}, which are gone",
        )
