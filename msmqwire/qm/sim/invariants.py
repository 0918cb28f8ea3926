"""The invariants of every queue manager after each step, and of every store after each commit."""

from __future__ import annotations

from typing import Final

from msmqwire.names.printable import counted
from msmqwire.qm.core import Core
from msmqwire.qm.model.enumerations import INFINITE
from msmqwire.qm.model.tables import Table
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary.session import Session
from msmqwire.qm.protocols.binary.states import SessionMessageState, SessionRole, SessionState
from msmqwire.qm.protocols.srmp.on_demand import srmp_of
from msmqwire.qm.protocols.srmp.states import SrmpMessageState as StreamState
from msmqwire.qm.protocols.srmp.transfer import SrmpTransfer
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
    for streaming in srmp_of(core).transfers.values():
        _check_srmp(node, core, streaming)
    for queue in core.queue_manager.queues.values():
        if queue.quota != INFINITE and queue.total_bytes > queue.quota * 1024:
            raise Violation(
                Invariant.BOUNDED,
                f"{queue.pathname} has {counted(queue.total_bytes, 'byte')}, its quota is {queue.quota} kB",
            )


def _check_srmp(node: str, core: Core, transfer: SrmpTransfer) -> None:
    """Check the order of the messages of a stream, and the timer for messages without an answer to come."""
    last = 0
    for outgoing in transfer.unacknowledged:
        if not last <= outgoing.previous_number < outgoing.tx_sequence_number:
            raise Violation(
                Invariant.STATES,
                f"{node} has the number {outgoing.tx_sequence_number} after {outgoing.previous_number}, "
                f"though the one before is {last}, in the stream to {transfer.url}",
            )
        last = outgoing.tx_sequence_number
    queue, timers = transfer.queue, core.context.timers
    if transfer.is_held or not core.queue_manager.connection_active:
        return
    if transfer.blocked and transfer.messages and not timers.active(Timer.RETRANSMISSION, queue.number):
        raise Violation(Invariant.HANGS, f"{node} will never send to {transfer.url} again")
    waits = any(outgoing.state is StreamState.WAIT_FOR_STREAM_RECEIPT for outgoing in transfer.unacknowledged)
    idle = transfer.under_way is None and not transfer.blocked
    if waits and idle and not timers.active(Timer.STREAM_RECEIPT_WAIT, queue.number):
        raise Violation(Invariant.HANGS, f"{node} awaits a stream receipt for ever from {transfer.url}")


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
            f"{node} has stored how the transfer of messages {orphans} stands, which are gone",
        )
