"""Restores messages that were waiting to leave by SRMP when the queue manager stopped: [MC-MQSRM] 3.1.3."""

from __future__ import annotations

from msmqwire.qm.model.elements import OutgoingQueue, QueueManager
from msmqwire.qm.model.enumerations import PositionState
from msmqwire.qm.model.message import TxSequenceId
from msmqwire.qm.model.tables import Table
from msmqwire.qm.protocols.srmp import former_stream_rows
from msmqwire.qm.protocols.srmp.queue_names import is_http
from msmqwire.qm.protocols.srmp.sending import SrmpSending
from msmqwire.qm.protocols.srmp.states import SrmpMessageState
from msmqwire.qm.rules import transfer_rows
from msmqwire.qm.rules.recovery import Stored


def restore_transfers(stored: Stored, manager: QueueManager, sending: SrmpSending) -> None:
    """Restore the messages of outgoing queues, and the streams that they belong to: SRMP-3.1.3.2-01."""
    served = [
        queue
        for queue in manager.queues.values()
        if isinstance(queue, OutgoingQueue) and (queue.multicast or is_http(queue.destination))
    ]
    if not served:
        return
    sequences = {number: transfer_rows.read_sequence(row) for number, row in stored.rows(Table.SEQUENCE)}
    rows = {number: transfer_rows.read_outgoing(row) for number, row in stored.rows(Table.OUTGOING)}
    former: dict[int, list[TxSequenceId]] = {}
    for key, row in stored.rows(Table.FORMER_STREAM):
        assert isinstance(key, bytes)
        stream, number = former_stream_rows.read_former_stream(key, row)
        former.setdefault(number, []).append(stream)
    for queue in served:
        transfer = sending.transfer_of(queue)
        if queue.number in sequences:
            # SRMP-3.1.1.1.1-01, SRMP-3.1.1.1.6-04
            transfer.stream_id, transfer.next_number = sequences[queue.number]
        numbered = []
        positions = (position for position in queue.positions if position.state is PositionState.AVAILABLE)
        for position in sorted(positions, key=lambda position: position.number):  # SRMP-3.1.1.1.3-03
            message = position.message
            outgoing = transfer.add(position, message)
            state = rows.get(position.number)
            if state is not None:
                outgoing.tx_sequence_id, outgoing.tx_sequence_number = state.sequence, state.number
                if state.awaits_final_ack:
                    outgoing.state = SrmpMessageState.WAIT_FOR_FINAL_RECEIPT
                numbered.append(outgoing)
            if outgoing.state is SrmpMessageState.PREPARE_TO_SEND:
                transfer.wait(outgoing)  # SRMP-3.1.1.1.3-03, SRMP-3.1.4-01
            sending.watch(outgoing, message)
        sending.streams.restore(transfer, numbered, former.get(queue.number, []))
