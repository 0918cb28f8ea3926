"""Deliberate mistakes: what the simulator must find when somebody makes them.

Each takes the place of something of the engines, the rules or the node while its `with` block lasts. Nothing
of them is in the code that they spoil.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from msmqwire.constants import MessageClass
from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.model.enumerations import EnqueueStatus, PositionState
from msmqwire.qm.protocols.binary import sending, transfer_rows
from msmqwire.qm.protocols.binary.connecting import Connecting
from msmqwire.qm.protocols.binary.delivery_outcome import DeliveryOutcome
from msmqwire.qm.protocols.binary.history import History
from msmqwire.qm.protocols.binary.incoming_sequences import IncomingSequences
from msmqwire.qm.protocols.binary.outgoing_sequences import OutgoingSequences
from msmqwire.qm.protocols.binary.receiving import Receiving
from msmqwire.qm.protocols.binary.sending import Sending
from msmqwire.qm.protocols.binary.session import COUNTS, Session
from msmqwire.qm.protocols.binary.session_acknowledgements import SessionAcknowledgements
from msmqwire.qm.protocols.binary.session_table import SessionTable
from msmqwire.qm.protocols.binary.states import MessageState
from msmqwire.qm.rules import stored_rows as manager_rows
from msmqwire.qm.rules.messages import Messages
from msmqwire.qm.rules.recovery import Recovery
from msmqwire.qm.rules.system_messages import SystemMessages
from msmqwire.qm.rules.transactions import Transactions
from msmqwire.qm.sim import invariants, ledger
from msmqwire.qm.sim.node import Node


class Mistake(NamedTuple):
    """What is replaced, by what, and which invariants find it.

    Attributes:
        owner, attribute: the place.
        make: gives the replacement for what is there.
        found_by: invariants, any of which may be the first that does not hold.
    """

    owner: Any
    attribute: str
    make: Callable[[Any], Any]
    found_by: frozenset[str]


@contextmanager
def making(name: str) -> Iterator[Mistake]:
    """Makes a mistake of `MISTAKES` for a while."""
    mistake = MISTAKES[name]
    right = mistake.owner.__dict__[mistake.attribute]
    setattr(mistake.owner, mistake.attribute, mistake.make(right))
    try:
        yield mistake
    finally:
        setattr(mistake.owner, mistake.attribute, right)


def _nothing(_right: Any) -> Any:
    return lambda *_args, **_kwargs: None


def _true(_right: Any) -> Any:
    return lambda *_args, **_kwargs: True


def _false(_right: Any) -> Any:
    return lambda *_args, **_kwargs: False


# -- the node ------------------------------------------------------------------------------------------------


def _effects_at_once(right: Any) -> Any:
    def stepped(self: Node, core: Any) -> None:
        effects = core.context.effects
        core.context.effects = []
        right(self, core)
        for effect in effects:
            self._perform(effect)

    return stepped


def _restore_without_sequential_id(right: Any) -> Any:
    def restored(self: Recovery) -> Any:
        found = right(self)
        self._context.queue_manager.sequential_id = 0
        return found

    return restored


# -- the sender ----------------------------------------------------------------------------------------------


def _renumbered(right: Any) -> Any:
    def number(self: Sending, outgoing: Any, message: Any) -> None:
        if outgoing.tx_sequence_number:
            outgoing.tx_sequence_number = 0
            outgoing.transfer.ordered.remove(outgoing)
            outgoing.transfer.numbered -= 1
        right(self, outgoing, message)

    return number


def _deleted_on_session_ack(right: Any) -> Any:
    def saved(self: SessionAcknowledgements, outgoing: Any) -> None:
        if outgoing.state is MessageState.WAITING_FOR_SESSION_ACK and outgoing.tx_sequence_number:
            outgoing.transfer.remove(outgoing)
            self._sequences.given_up(outgoing)
            self._outcome.delivered(outgoing)
        else:
            right(self, outgoing)

    return saved


def _delivered_after_order_ack(_right: Any) -> Any:
    def arrived(self: OutgoingSequences, outgoing: Any) -> None:
        outgoing.transfer.remove(outgoing)
        transfer_rows.delete_outgoing(self._context, outgoing)
        self._outcome.delivered(outgoing)

    return arrived


def _no_number_row(right: Any) -> Any:
    def put(context: Any, outgoing: Any, *, awaits_final_ack: bool = False) -> None:
        if awaits_final_ack:
            right(context, outgoing, awaits_final_ack=True)

    return put


def _journaled_twice(right: Any) -> Any:
    def delivered(self: DeliveryOutcome, outgoing: Any) -> None:
        message, manager = outgoing.position.message, self._context.queue_manager
        journal, own = manager.system_journal_queue, message.source_machine_identifier == manager.identifier
        if own and message.positive_journaling_requested and journal is not None:
            self._messages.journal(message, journal)
        right(self, outgoing)

    return delivered


def _failed_as_received(right: Any) -> Any:
    def final_ack(self: OutgoingSequences, sequence: Any, message_id: int, message_class: int) -> None:
        right(self, sequence, message_id, MessageClass.MQMSG_CLASS_ACK_RECEIVE)

    return final_ack


def _restored_without_order(right: Any) -> Any:
    def read(row: bytes) -> Any:
        return right(row)._replace(number=1)

    return read


def _flags_one_too_high(right: Any) -> Any:
    def header(self: Session, window_size: int | None = None) -> Any:
        found = right(self, window_size)
        return (found[0], (found[1] + 1) % COUNTS if found[1] else 0, *found[2:])

    return header


def _everything_saved(right: Any) -> Any:
    def saved(self: Session, base: int, flags: int) -> Any:
        found = list(self.unsaved)
        self.unsaved.clear()
        return found

    return saved


# -- the receiver --------------------------------------------------------------------------------------------


def _advanced_before_enqueue(right: Any) -> Any:
    def take(self: Receiving, session: Any, message: Any, *, local: bool) -> bool:
        if message.transactional and local:
            info = self._incoming.incoming(message)
            self._incoming.accepted(info, message)
        return bool(right(self, session, message, local=local))

    return take


def _quota_ignored_after(right: Any) -> Any:
    def enqueue(
        self: Messages, queue: Any, message: Any, transaction: Any = None, *, ignore_quota: bool = False
    ) -> Any:
        status = right(self, queue, message, transaction, ignore_quota=ignore_quota)
        full = status is EnqueueStatus.QUEUE_QUOTA_EXCEEDED and transaction is None
        return EnqueueStatus.OK if full else status

    return enqueue


def _gaps_accepted(_right: Any) -> Any:
    def follows(self: IncomingSequences, info: Any, message: Any) -> bool:
        sequence = message.transactional_message_sequence_identifier
        if sequence == info.sequence_identifier:
            return bool(message.transaction_sequence_number > info.sequence_number)
        return bool(sequence > info.sequence_identifier)

    return follows


def _older_accepted(_right: Any) -> Any:
    def follows(self: IncomingSequences, info: Any, message: Any) -> bool:
        sequence = message.transactional_message_sequence_identifier
        if sequence == info.sequence_identifier:
            return bool(message.transaction_sequence_number >= info.sequence_number)
        return bool(message.transaction_previous_sequence_number == 0)

    return follows


def _duplicates_not_counted(right: Any) -> Any:
    def count(self: Receiving, session: Any, *, recoverable: bool) -> None:
        right(self, session, recoverable=recoverable)
        if recoverable and session.message_received_count % 3 == 0:
            session.message_received_count -= 1

    return count


def _admin_twice(right: Any) -> Any:
    def acknowledge(self: SystemMessages, message: Any, message_class: int) -> None:
        right(self, message, message_class)
        right(self, message, message_class)

    return acknowledge


# -- rules ---------------------------------------------------------------------------------------------------


def _abort_commits(_right: Any) -> Any:
    def abort(self: Transactions, identifier: Any) -> int:
        return self.commit(identifier)

    return abort


def _locks_forgotten(right: Any) -> Any:
    def restore(self: Recovery, positions: Any) -> None:
        right(self, positions)
        for position in positions.values():
            if position.state is PositionState.LOCKED:
                self._messages.position_available(position.queue, position)

    return restore


def _received_stays_stored(right: Any) -> Any:
    def delete(changes: Any, position: Any) -> None:
        if isinstance(position.queue, OutgoingQueue):
            right(changes, position)

    return delete


def _no_resend(right: Any) -> Any:
    def serve(self: Connecting, session: Any, transfer: Any) -> None:
        send_again, transfer.send_again = transfer.send_again, lambda _outgoing: None
        right(self, session, transfer)
        transfer.send_again = send_again

    return serve


def _history_in_memory(right: Any) -> Any:
    def touch(self: History, identifier: Any) -> None:
        self._stored.discard(identifier)
        right(self, identifier)

    return touch


_LOST = frozenset({invariants.TRANSACTIONS_LOST, invariants.RECOVERABLE, ledger.HELD})
_HANGS = frozenset({invariants.HANGS})
_ORDER = frozenset({ledger.ONCE, ledger.IN_ORDER, ledger.NUMBERED, ledger.NOT_BOTH})

MISTAKES: Final[Mapping[str, Mistake]] = MappingProxyType(
    {
        "effects are carried out before the commit": Mistake(
            Node, "_stepped", _effects_at_once, frozenset({ledger.DURABLE, ledger.SENT_ONLY})
        ),
        "what was in flight is not sent again": Mistake(Connecting, "serve", _no_resend, _HANGS),
        "the transactional resend is forgotten": Mistake(OutgoingSequences, "_resend", _nothing, _HANGS),
        "duplicates are not looked for": Mistake(History, "known", _false, frozenset({ledger.NOT_TWICE})),
        "what was received is not stored": Mistake(
            History, "_touch", _history_in_memory, frozenset({ledger.NOT_TWICE, ledger.DURABLE})
        ),
        "gaps in a sequence are accepted": Mistake(
            IncomingSequences, "follows", _gaps_accepted, _ORDER | _LOST | _HANGS
        ),
        "older sequences are accepted": Mistake(IncomingSequences, "follows", _older_accepted, _ORDER),
        "a sequence advances before the message is in the queue": Mistake(
            Receiving, "_take", _advanced_before_enqueue, _LOST | _HANGS | {ledger.DURABLE}
        ),
        "IncomingTxSequenceNumber is not stored": Mistake(
            transfer_rows, "put_incoming", _nothing, frozenset({ledger.DURABLE, ledger.ONCE})
        ),
        "AwaitingFinalACKTable is left out": Mistake(
            OutgoingSequences,
            "arrived",
            _delivered_after_order_ack,
            frozenset({ledger.JOURNALED_ONCE, ledger.HELD}),
        ),
        "a resent message gets a new number": Mistake(Sending, "_number", _renumbered, _ORDER),
        "TxSequenceNumber is not stored": Mistake(
            transfer_rows, "put_outgoing", _no_number_row, _ORDER | _LOST
        ),
        "TxSequenceNumber is restored wrongly": Mistake(
            transfer_rows, "read_outgoing", _restored_without_order, _ORDER
        ),
        "the sequence of a queue is not stored": Mistake(
            transfer_rows, "put_sequence", _nothing, _ORDER | _LOST | _HANGS
        ),
        "transactional messages are deleted by session acknowledgements": Mistake(
            SessionAcknowledgements, "_saved", _deleted_on_session_ack, _LOST | {ledger.JOURNALED_ONCE}
        ),
        "everything recoverable counts as saved": Mistake(Session, "saved", _everything_saved, _LOST),
        "the base of RecoverableMsgAckFlags is wrong": Mistake(
            Session, "header", _flags_one_too_high, frozenset({ledger.DURABLE})
        ),
        "some messages are not counted": Mistake(Receiving, "count", _duplicates_not_counted, _HANGS),
        "SequentialID starts again": Mistake(
            Recovery,
            "_restore_messages",
            _restore_without_sequential_id,
            _ORDER | _LOST | {invariants.BOUNDED, ledger.JOURNALED_ONCE},
        ),
        "expired while in doubt": Mistake(
            Sending,
            "_is_in_doubt",
            _false,
            frozenset({ledger.NOT_BOTH, ledger.HELD, ledger.ACKNOWLEDGED, ledger.JOURNALED_ONCE}),
        ),
        "what has no limit expires": Mistake(sending, "expired", _true, _LOST | {ledger.NOT_BOTH}),
        "journaled twice": Mistake(
            DeliveryOutcome, "delivered", _journaled_twice, frozenset({ledger.JOURNALED_ONCE})
        ),
        "failed messages count as received": Mistake(
            OutgoingSequences, "final_ack", _failed_as_received, frozenset({ledger.JOURNALED_ONCE})
        ),
        "an abort commits": Mistake(Transactions, "abort", _abort_commits, frozenset({ledger.SENT_ONLY})),
        "prepared transactions are unlocked by a restart": Mistake(
            Recovery,
            "_restore_transactions",
            _locks_forgotten,
            frozenset({ledger.RECEIVED_ONCE, ledger.SENT_ONLY}),
        ),
        "administration acknowledgements are sent twice": Mistake(
            SystemMessages, "acknowledge", _admin_twice, frozenset({ledger.ACKNOWLEDGED})
        ),
        "a refusal for a quota is forgotten": Mistake(
            Messages, "enqueue", _quota_ignored_after, _LOST | _HANGS
        ),
        "deleted messages stay in the store": Mistake(
            manager_rows,
            "delete_message",
            _received_stays_stored,
            frozenset({ledger.RECEIVED_ONCE, ledger.JOURNALED_ONCE, ledger.ACKNOWLEDGED, invariants.BOUNDED}),
        ),
        "sessions that end are kept": Mistake(
            SessionTable, "release", _nothing, _HANGS | {invariants.BOUNDED}
        ),
    }
)
