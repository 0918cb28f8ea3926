"""Transfers as they were when the queue manager stopped: [MS-MQQB] 3.1.1.3.2 and 3.1.4.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msmqwire.qm.model.changes import Table
from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.model.enumerations import PositionState
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.protocols.binary import transfer_rows
from msmqwire.qm.protocols.binary.states import MessageState
from msmqwire.qm.protocols.binary.transfer_rows import OutgoingRow
from msmqwire.qm.rules.recovery import Stored

if TYPE_CHECKING:
    from msmqwire.qm.protocols.binary.engine import BinaryEngine


def ordinal(stored: Stored) -> int:
    """MessageIdOrdinal, or a limit of it."""
    return _number(stored, transfer_rows.MESSAGE_ID_ORDINAL)


def restore_incoming(engine: BinaryEngine, stored: Stored) -> None:
    """What other queue managers have sent: duplicates, and where their sequences stand."""
    engine.sequences.restore(_number(stored, transfer_rows.TX_SEQUENCE_ORDINAL))
    engine.history.restore([(key, row) for key, row in stored.rows(Table.HISTORY) if isinstance(key, bytes)])
    queues = engine.context.queue_manager.queues
    for key, row in stored.rows(Table.INCOMING):
        assert isinstance(key, bytes)
        name, info = transfer_rows.read_incoming(key, row, queues)
        engine.sequences.infos[name] = info
        if info.queue is not None:
            info.queue.incoming[name] = info


def restore_transfers(engine: BinaryEngine, stored: Stored) -> None:
    """OutgoingMessageTable, AwaitingFinalACKTable and the sequences. The queues have their messages again."""
    sequences = {number: transfer_rows.read_sequence(row) for number, row in stored.rows(Table.SEQUENCE)}
    outgoing = {
        number: transfer_rows.read_outgoing(row)
        for number, row in stored.rows(Table.OUTGOING)
        if isinstance(number, int)
    }
    for queue in list(engine.context.queue_manager.queues.values()):
        if not isinstance(queue, OutgoingQueue) or not engine.serves(queue):
            continue
        transfer = engine.transfer_of(queue)
        if queue.number in sequences:
            transfer.sequence_id, transfer.next_number = sequences[queue.number]
        numbered = []
        for position in _in_order_of_insertion(queue, outgoing):
            message = position.message
            one = transfer.add(position, message.priority)
            row = outgoing.get(position.number)
            if row is not None:
                numbered.append(one)
                if row.awaits_final_ack:
                    transfer.remove(one)
                    one.state = MessageState.WAITING_FOR_FINAL_ACK
                    transfer.awaiting_final_ack[message.identifier.uniquifier] = one
                one.tx_sequence_id, one.tx_sequence_number = row.sequence, row.number
                one.transmitted = True
            if one.state is MessageState.WAITING_TO_SEND:
                engine.sending.watch(one, message)
        engine.sequences.known(transfer, numbered)


def _in_order_of_insertion(queue: OutgoingQueue, outgoing: dict[int, OutgoingRow]) -> list[MessagePosition]:
    """The messages to be sent, MQQB-3.1.1.3.1-29: those that have a place in a sequence keep that order."""
    available = (one for one in queue.positions if one.state is PositionState.AVAILABLE)
    found = sorted(available, key=lambda one: one.number)
    numbered = [one for one in found if one.number in outgoing]
    numbered.sort(key=lambda one: outgoing[one.number][:2])
    places = iter(numbered)
    return [next(places) if one.number in outgoing else one for one in found]


def _number(stored: Stored, name: bytes) -> int:
    row = stored.row(Table.META, name)
    return int.from_bytes(row, "little") if row else 0
