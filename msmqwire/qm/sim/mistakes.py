"""Deliberate mistakes, for mutation testing: the simulator must detect each of them.

A mistake replaces a function of the engine, the rules or the node while its `with` block lasts. The code
under test is not modified.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from msmqwire.constants import MessageClass
from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.model.enumerations import EnqueueStatus, PositionState
from msmqwire.qm.protocols.binary import sending
from msmqwire.qm.protocols.binary.connecting import Connecting
from msmqwire.qm.protocols.binary.outgoing_sequences import OutgoingSequences
from msmqwire.qm.protocols.binary.receiving import SessionReceiving
from msmqwire.qm.protocols.binary.sending import SessionSending
from msmqwire.qm.protocols.binary.session import COUNTS, Session
from msmqwire.qm.protocols.binary.session_acknowledgements import SessionAcknowledgements
from msmqwire.qm.protocols.binary.session_table import SessionTable
from msmqwire.qm.protocols.binary.states import SessionMessageState
from msmqwire.qm.rules import stored_rows as manager_rows
from msmqwire.qm.rules import transfer_rows
from msmqwire.qm.rules.delivery_outcome import DeliveryOutcome
from msmqwire.qm.rules.history import History
from msmqwire.qm.rules.incoming_sequences import IncomingSequences
from msmqwire.qm.rules.messages import MessageEvents
from msmqwire.qm.rules.recovery import Recovery
from msmqwire.qm.rules.system_messages import SystemMessages
from msmqwire.qm.rules.transactions import Transactions
from msmqwire.qm.sim.driver_mistakes import DRIVER_MISTAKES
from msmqwire.qm.sim.joined import simulated
from msmqwire.qm.sim.policies import POLICY_MISTAKES
from msmqwire.qm.sim.remote_mistakes import REMOTE_MISTAKES
from msmqwire.qm.sim.security_mistakes import SECURITY_MISTAKES
from msmqwire.qm.sim.violation import Invariant
from msmqwire.service.origin_shares import OriginShares
from msmqwire.service.virtual.mistake import Mistake, false, nothing, true


def _restore_without_sequential_id(original: Any) -> Any:
    def restored(self: Recovery) -> Any:
        result = original(self)
        self._context.queue_manager.sequential_id = 0
        return result

    return restored


# -- the sender ----------------------------------------------------------------------------------------------


def _renumbered(original: Any) -> Any:
    def number(self: SessionSending, outgoing: Any, message: Any) -> None:
        if outgoing.tx_sequence_number:
            outgoing.tx_sequence_number = 0
            outgoing.transfer.ordered.remove(outgoing)
            outgoing.transfer.numbered -= 1
        original(self, outgoing, message)

    return number


def _deleted_on_session_ack(original: Any) -> Any:
    def saved(self: SessionAcknowledgements, outgoing: Any) -> None:
        if outgoing.state is SessionMessageState.WAITING_FOR_SESSION_ACK and outgoing.tx_sequence_number:
            outgoing.transfer.remove(outgoing)
            self._sequences.given_up(outgoing)
            self._outcome.delivered(outgoing.position)
        else:
            original(self, outgoing)

    return saved


def _delivered_after_order_ack(_original: Any) -> Any:
    def arrived(self: OutgoingSequences, outgoing: Any) -> None:
        outgoing.transfer.remove(outgoing)
        transfer_rows.delete_outgoing(self._context, outgoing)
        self._outcome.delivered(outgoing.position)

    return arrived


def _no_number_row(original: Any) -> Any:
    def put(context: Any, outgoing: Any, *, awaits_final_ack: bool = False) -> None:
        if awaits_final_ack:
            original(context, outgoing, awaits_final_ack=True)

    return put


def _journaled_twice(original: Any) -> Any:
    def delivered(self: DeliveryOutcome, position: Any) -> None:
        message, manager = position.message, self._context.queue_manager
        journal, own = manager.system_journal_queue, message.source_machine_identifier == manager.identifier
        if own and message.positive_journaling_requested and journal is not None:
            self._messages.journal(message, journal)
        original(self, position)

    return delivered


def _failed_as_received(original: Any) -> Any:
    def final_ack(self: OutgoingSequences, sequence: Any, message_id: int, message_class: int) -> None:
        original(self, sequence, message_id, MessageClass.MQMSG_CLASS_ACK_RECEIVE)

    return final_ack


def _restored_without_order(original: Any) -> Any:
    def read(row: bytes) -> Any:
        return original(row)._replace(number=1)

    return read


def _flags_one_too_high(original: Any) -> Any:
    def header(self: Session, window_size: int | None = None) -> Any:
        count, base, *others = original(self, window_size)
        return (count, (base + 1) % COUNTS if base else 0, *others)

    return header


def _everything_saved(original: Any) -> Any:
    def saved(self: Session, base: int, flags: int) -> Any:
        unsaved = list(self.unsaved)
        self.unsaved.clear()
        return unsaved

    return saved


# -- the receiver --------------------------------------------------------------------------------------------


def _advanced_before_enqueue(original: Any) -> Any:
    def take(
        self: SessionReceiving,
        session: Any,
        message: Any,
        packet: Any,
        *,
        local: bool,
        refusal: int | None = None,
    ) -> bool:
        if message.transactional and local:
            info = self._incoming.incoming(message)
            self._incoming.accepted(info, message)
        return bool(original(self, session, message, packet, local=local, refusal=refusal))

    return take


def _no_origin(_original: Any) -> Any:
    return lambda self, end: ""


def _quota_ignored_after(original: Any) -> Any:
    def enqueue(
        self: MessageEvents, queue: Any, message: Any, transaction: Any = None, *, ignore_quota: bool = False
    ) -> Any:
        status = original(self, queue, message, transaction, ignore_quota=ignore_quota)
        full = status is EnqueueStatus.QUEUE_QUOTA_EXCEEDED and transaction is None
        return EnqueueStatus.OK if full else status

    return enqueue


def _gaps_accepted(_original: Any) -> Any:
    def follows(self: IncomingSequences, info: Any, message: Any) -> bool:
        sequence = message.transactional_message_sequence_identifier
        if sequence == info.sequence_identifier:
            return bool(message.transaction_sequence_number > info.sequence_number)
        return bool(sequence > info.sequence_identifier)

    return follows


def _older_accepted(_original: Any) -> Any:
    def follows(self: IncomingSequences, info: Any, message: Any) -> bool:
        sequence = message.transactional_message_sequence_identifier
        if sequence == info.sequence_identifier:
            return bool(message.transaction_sequence_number >= info.sequence_number)
        return bool(message.transaction_previous_sequence_number == 0)

    return follows


def _duplicates_not_counted(original: Any) -> Any:
    def count(self: SessionReceiving, session: Any, *, recoverable: bool) -> None:
        original(self, session, recoverable=recoverable)
        if recoverable and session.message_received_count % 3 == 0:
            session.message_received_count -= 1

    return count


def _admin_twice(original: Any) -> Any:
    def acknowledge(self: SystemMessages, message: Any, message_class: int) -> None:
        original(self, message, message_class)
        original(self, message, message_class)

    return acknowledge


# -- rules ---------------------------------------------------------------------------------------------------


def _abort_commits(_original: Any) -> Any:
    def abort(self: Transactions, identifier: Any) -> int:
        return self.commit(identifier)

    return abort


def _locks_forgotten(original: Any) -> Any:
    def restore(self: Recovery, positions: Any) -> None:
        original(self, positions)
        for position in positions.values():
            if position.state is PositionState.LOCKED:
                self._messages.position_available(position.queue, position)

    return restore


def _received_stays_stored(original: Any) -> Any:
    def delete(changes: Any, position: Any) -> None:
        if isinstance(position.queue, OutgoingQueue):
            original(changes, position)

    return delete


def _no_resend(original: Any) -> Any:
    def serve(self: Connecting, session: Any, transfer: Any) -> None:
        send_again = transfer.send_again
        transfer.send_again = lambda _outgoing: send_again([])
        original(self, session, transfer)
        transfer.send_again = send_again

    return serve


def _history_in_memory(original: Any) -> Any:
    def store(self: History, identifier: Any) -> None:
        self._stored.pop(identifier, None)
        original(self, identifier)

    return store


_LOST = frozenset({Invariant.TRANSACTIONS_LOST, Invariant.RECOVERABLE, Invariant.HELD})
_HANGS = frozenset({Invariant.HANGS})
_BOUNDED = frozenset({Invariant.BOUNDED})
_ORDER = frozenset({Invariant.ONCE, Invariant.IN_ORDER, Invariant.NUMBERED, Invariant.NOT_BOTH})

MISTAKES: Final[Mapping[str, Mistake]] = MappingProxyType(
    {
        "messages in flight are not sent again": Mistake(Connecting, "serve", _no_resend, _HANGS),
        "the transactional resend is forgotten": Mistake(OutgoingSequences, "_resend", nothing, _HANGS),
        "duplicates are not recognised": Mistake(
            History, "known", false, frozenset({Invariant.NOT_TWICE, Invariant.ACKNOWLEDGED})
        ),
        "received messages are not stored": Mistake(
            History,
            "_store",
            _history_in_memory,
            frozenset({Invariant.NOT_TWICE, Invariant.DURABLE, Invariant.ACKNOWLEDGED}),
        ),
        "gaps in a sequence are accepted": Mistake(
            IncomingSequences, "follows", _gaps_accepted, _ORDER | _LOST | _HANGS
        ),
        "older sequences are accepted": Mistake(IncomingSequences, "follows", _older_accepted, _ORDER),
        "a sequence advances before the message is in the queue": Mistake(
            SessionReceiving, "_take", _advanced_before_enqueue, _LOST | _HANGS | {Invariant.DURABLE}
        ),
        "IncomingTxSequenceNumber is not stored": Mistake(
            transfer_rows, "put_incoming", nothing, frozenset({Invariant.DURABLE, Invariant.ONCE})
        ),
        "AwaitingFinalACKTable is left out": Mistake(
            OutgoingSequences,
            "arrived",
            _delivered_after_order_ack,
            frozenset({Invariant.JOURNALED_ONCE, Invariant.HELD}),
        ),
        "a resent message gets a new number": Mistake(SessionSending, "_number", _renumbered, _ORDER),
        "TxSequenceNumber is not stored": Mistake(
            transfer_rows, "put_outgoing", _no_number_row, _ORDER | _LOST
        ),
        "TxSequenceNumber is restored wrongly": Mistake(
            transfer_rows, "read_outgoing", _restored_without_order, _ORDER
        ),
        "the sequence of a queue is not stored": Mistake(
            transfer_rows, "put_sequence", nothing, _ORDER | _LOST | _HANGS
        ),
        "transactional messages are deleted by session acknowledgements": Mistake(
            SessionAcknowledgements, "_saved", _deleted_on_session_ack, _LOST | {Invariant.JOURNALED_ONCE}
        ),
        "everything recoverable counts as saved": Mistake(Session, "saved", _everything_saved, _LOST),
        "the base of RecoverableMsgAckFlags is wrong": Mistake(
            Session, "header", _flags_one_too_high, frozenset({Invariant.DURABLE})
        ),
        "some messages are not counted": Mistake(SessionReceiving, "count", _duplicates_not_counted, _HANGS),
        "SequentialID starts again": Mistake(
            Recovery,
            "_restore_messages",
            _restore_without_sequential_id,
            _ORDER | _LOST | {Invariant.BOUNDED, Invariant.JOURNALED_ONCE},
        ),
        "expired while in doubt": Mistake(
            SessionSending,
            "_is_in_doubt",
            false,
            frozenset({Invariant.NOT_BOTH, Invariant.HELD, Invariant.ACKNOWLEDGED, Invariant.JOURNALED_ONCE}),
        ),
        "messages without a limit expire": Mistake(
            sending, "_out_of_time", true, _LOST | {Invariant.NOT_BOTH}
        ),
        "journaled twice": Mistake(
            DeliveryOutcome, "delivered", _journaled_twice, frozenset({Invariant.JOURNALED_ONCE})
        ),
        "failed messages count as received": Mistake(
            OutgoingSequences, "final_ack", _failed_as_received, frozenset({Invariant.JOURNALED_ONCE})
        ),
        "an abort commits": Mistake(Transactions, "abort", _abort_commits, frozenset({Invariant.SENT_ONLY})),
        "prepared transactions are unlocked by a restart": Mistake(
            Recovery,
            "_restore_transactions",
            _locks_forgotten,
            frozenset({Invariant.RECEIVED_ONCE, Invariant.SENT_ONLY}),
        ),
        "administration acknowledgements are sent twice": Mistake(
            SystemMessages, "acknowledge", _admin_twice, frozenset({Invariant.ACKNOWLEDGED})
        ),
        "a refusal for a quota is forgotten": Mistake(
            MessageEvents, "enqueue", _quota_ignored_after, _LOST | _HANGS
        ),
        "deleted messages stay in the store": Mistake(
            manager_rows,
            "delete_message",
            _received_stays_stored,
            frozenset(
                {Invariant.RECEIVED_ONCE, Invariant.JOURNALED_ONCE, Invariant.ACKNOWLEDGED, Invariant.BOUNDED}
            ),
        ),
        "messages that leave are counted on": Mistake(OriginShares, "give_back", nothing, _BOUNDED),
        "a restart counts messages for nobody": Mistake(
            manager_rows.Origins, "__missing__", _no_origin, _BOUNDED
        ),
        "sessions that end are kept": Mistake(SessionTable, "release", nothing, _HANGS | {Invariant.BOUNDED}),
        **DRIVER_MISTAKES,
        **{name: mistake for protocol in simulated() for name, mistake in protocol.mistakes.items()},
        **POLICY_MISTAKES,
        **REMOTE_MISTAKES,
        **SECURITY_MISTAKES,
    }
)
