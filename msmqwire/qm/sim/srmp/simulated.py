"""SRMP as the simulator sees it: see `SimulatedProtocol`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.qm.core import Core
from msmqwire.qm.model.message import NO_SEQUENCE, TIME_TO_REACH_QUEUE
from msmqwire.qm.model.timer_kind import TimerKind
from msmqwire.qm.protocols.srmp.on_demand import srmp_of
from msmqwire.qm.protocols.srmp.states import SrmpMessageState
from msmqwire.qm.protocols.srmp.timers import SrmpTimer
from msmqwire.qm.protocols.srmp.transfer import OutgoingMessage, SrmpTransfer
from msmqwire.qm.sim.fates import Fates
from msmqwire.qm.sim.joined import Surroundings
from msmqwire.qm.sim.ledger import MessageLedger, message_number
from msmqwire.qm.sim.plan import HTTP, SMALL_TRANSACTIONAL
from msmqwire.qm.sim.srmp.mistakes import SRMP_MISTAKES
from msmqwire.qm.sim.srmp.network import HTTP_PORT, SimulatedHttpNetwork
from msmqwire.qm.sim.srmp.observer import SrmpObserver
from msmqwire.qm.sim.violation import Invariant
from msmqwire.service.virtual.mistake import Mistake
from msmqwire.service.virtual.violation import Violation


class SimulatedSrmp:
    """See `SimulatedProtocol`."""

    form: Final = HTTP
    fates: Final = Fates(
        begins_anew=True,
        expires_in_doubt=True,  # [MC-MQSRM] 3.1.7.2.1
        reach_time=TIME_TO_REACH_QUEUE,
        drops_only_late=True,
        receipt_is_enough=True,
    )
    mistakes: Final[Mapping[str, Mistake]] = SRMP_MISTAKES

    def network(self, surroundings: Surroundings) -> SimulatedHttpNetwork:
        """Return the exchanges of HTTP of a run."""
        around = surroundings
        observer = SrmpObserver(around.environment, around.ledger, around.contents, around.views)
        return SimulatedHttpNetwork(
            around.environment, around.hosts, around.blocked_until, observer, around.capture
        )

    def booted(self, core: Core) -> None:
        """Report the listening addresses to the engine of a node that starts."""
        srmp_of(core).urls.listens(http=HTTP_PORT, https=None)

    def check_step(self, node: str, core: Core) -> None:
        """Check the streams of a node after a step. Raises Violation."""
        for transfer in srmp_of(core).transfers.values():
            _check_stream(node, core, transfer)

    def pending(self, core: Core, ledger: MessageLedger, *, drained: bool) -> str | None:
        """Describe a message of a node that waits for something to happen; None if none does."""
        for outgoing in _outgoing(core):
            if (waits := _waits_for(outgoing, ledger, drained=drained)) is not None:
                return waits
        return None

    def idle_timer(self, core: Core) -> TimerKind | None:
        """Return a timer that runs although it has nothing to do."""
        return _idle_timer(core)

    def remainder(self, core: Core) -> str | None:
        """Describe the state that a node still keeps of ended transfers; None if there is none."""
        is_left = any(transfer.stream_id != NO_SEQUENCE for transfer in srmp_of(core).transfers.values())
        return "a stream that has ended" if is_left else None


SIMULATED: Final = SimulatedSrmp()


def _outgoing(core: Core) -> list[OutgoingMessage]:
    transfers = srmp_of(core).transfers.values()
    return [outgoing for transfer in transfers for outgoing in transfer.messages.values()]


def _waits_for(outgoing: OutgoingMessage, ledger: MessageLedger, *, drained: bool) -> str | None:
    """Describe a message to be sent by SRMP with its state; None if nothing can happen to it for now."""
    number = message_number(outgoing.position.message)
    tracked = ledger.messages[number] if number is not None else None
    if tracked is not None and not drained:
        awaits_receipt = outgoing.state is SrmpMessageState.WAIT_FOR_FINAL_RECEIPT
        if awaits_receipt or tracked.queue == SMALL_TRANSACTIONAL:
            return None  # nobody has read it, or there is no room for it
    return f"{tracked or 'a message'} to {outgoing.transfer.url}: {outgoing.state.value}"


def _idle_timer(core: Core) -> TimerKind | None:
    """Return a timer of SRMP that runs although it has nothing to do."""
    timers = core.context.timers
    for number, transfer in srmp_of(core).transfers.items():
        for timer in (SrmpTimer.RETRANSMISSION, SrmpTimer.STREAM_RECEIPT_WAIT):
            if timers.active(timer, number) and not transfer.messages:
                return timer
    keys = core.incoming_sequences.infos
    coalescing = SrmpTimer.STREAM_RECEIPT_COALESCING
    return coalescing if any(timers.active(coalescing, key) for key in keys) else None


def _check_stream(node: str, core: Core, transfer: SrmpTransfer) -> None:
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
    if transfer.blocked and transfer.messages and not timers.active(SrmpTimer.RETRANSMISSION, queue.number):
        raise Violation(Invariant.HANGS, f"{node} will never send to {transfer.url} again")
    waits = any(
        outgoing.state is SrmpMessageState.WAIT_FOR_STREAM_RECEIPT for outgoing in transfer.unacknowledged
    )
    idle = transfer.under_way is None and not transfer.blocked
    if waits and idle and not timers.active(SrmpTimer.STREAM_RECEIPT_WAIT, queue.number):
        raise Violation(Invariant.HANGS, f"{node} awaits a stream receipt for ever from {transfer.url}")
