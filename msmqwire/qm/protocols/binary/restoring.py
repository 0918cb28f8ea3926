"""Restores transfers as they were when the queue manager stopped: [MS-MQQB] 3.1.1.3.2 and 3.1.4.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.constants import MessageClass
from msmqwire.names.origins import UNKNOWN_ORIGIN
from msmqwire.qm.model.elements import OutgoingQueue, Queue, QueueManager
from msmqwire.qm.model.enumerations import PositionState
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.model.tables import Table
from msmqwire.qm.protocols.binary.outgoing_sequences import OutgoingSequences
from msmqwire.qm.protocols.binary.sending import SessionSending
from msmqwire.qm.protocols.binary.states import SessionMessageState
from msmqwire.qm.protocols.binary.transfer_table import TransferTable
from msmqwire.qm.rules import transfer_rows
from msmqwire.qm.rules.queues import Queues
from msmqwire.qm.rules.recovery import Stored
from msmqwire.qm.rules.transfer_rows import OutgoingRow

_OF_THE_SYSTEM: Final = frozenset(MessageClass) - {MessageClass.MQMSG_CLASS_NORMAL}


def restore_askers(queues: Queues, manager: QueueManager) -> None:
    """Find the origins of the outgoing queues that version 1 stored: local applications, if they sent
    there.
    """
    for queue in list(manager.queues.values()):
        if not isinstance(queue, OutgoingQueue) or queue.asked_by is not None:
            continue
        if queue.acknowledged_peer is None and any(
            position.message.source_machine_identifier == manager.identifier
            and position.message.message_class not in _OF_THE_SYSTEM
            for position in queue.positions
        ):
            queues.ask_locally(queue)
        else:
            queues.ask_remotely(queue, UNKNOWN_ORIGIN)


def restore_transfers(
    stored: Stored,
    queues: Mapping[int, Queue],
    transfers: TransferTable,
    outgoing: OutgoingSequences,
    sending: SessionSending,
) -> None:
    """Restore OutgoingMessageTable, AwaitingFinalACKTable and the sequences of queues restored before."""
    sequences = {number: transfer_rows.read_sequence(row) for number, row in stored.rows(Table.SEQUENCE)}
    rows = {
        number: transfer_rows.read_outgoing(row)
        for number, row in stored.rows(Table.OUTGOING)
        if isinstance(number, int)
    }
    for queue in list(queues.values()):
        if not isinstance(queue, OutgoingQueue) or not transfers.serves(queue):
            continue
        transfer = transfers.transfer_of(queue)
        if queue.number in sequences:
            transfer.sequence_id, transfer.next_number = sequences[queue.number]
        numbered = []
        for position in _in_order_of_insertion(queue, rows):
            message = position.message
            restored = transfer.add(position, message.priority)
            row = rows.get(position.number)
            if row is not None:
                numbered.append(restored)
                if row.awaits_final_ack:
                    transfer.remove(restored)
                    restored.state = SessionMessageState.WAITING_FOR_FINAL_ACK
                    transfer.awaiting_final_ack[message.identifier.uniquifier] = restored
                restored.tx_sequence_id, restored.tx_sequence_number = row.sequence, row.number
                restored.transmitted = True
            if restored.state is SessionMessageState.WAITING_TO_SEND:
                sending.watch(restored, message)
        transfer.send_numbered_first()
        outgoing.restore_transfer(transfer, numbered)


def _in_order_of_insertion(queue: OutgoingQueue, rows: Mapping[int, OutgoingRow]) -> list[MessagePosition]:
    """Return the messages to send, MQQB-3.1.1.3.1-29; numbered messages keep the order of their sequence."""
    available = (position for position in queue.positions if position.state is PositionState.AVAILABLE)
    positions = sorted(available, key=lambda position: position.number)
    numbered = [position for position in positions if position.number in rows]
    numbered.sort(key=lambda position: rows[position.number][:2])
    in_sequence = iter(numbered)
    return [next(in_sequence) if position.number in rows else position for position in positions]
