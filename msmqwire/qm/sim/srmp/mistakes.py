"""Deliberate mistakes of the engine of SRMP: see `msmqwire.qm.sim.mistakes`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from msmqwire.constants import MessageClass
from msmqwire.qm.model.message import ObjectId
from msmqwire.qm.protocols.srmp import incoming_streams, receipts, sending
from msmqwire.qm.protocols.srmp.effects import HttpResponse
from msmqwire.qm.protocols.srmp.outgoing_streams import OutgoingStreams
from msmqwire.qm.protocols.srmp.receipt_sending import ReceiptSending
from msmqwire.qm.protocols.srmp.receiving import SrmpReceiving
from msmqwire.qm.protocols.srmp.sending import SrmpSending
from msmqwire.qm.rules.delivery_outcome import DeliveryOutcome
from msmqwire.qm.sim.driver_mistakes import effects_at_once
from msmqwire.qm.sim.violation import Invariant
from msmqwire.service.driver import Driver
from msmqwire.service.virtual.mistake import Mistake, nothing
from msmqwire.srmp.kinds import NEGATIVE, POSITIVE

_NEW_NUMBER: Final = 1 << 20


# -- the sender ----------------------------------------------------------------------------------------------


def _new_identifier(original: Any) -> Any:
    def resume(self: SrmpSending, transfer: Any) -> None:
        if transfer.failed is not None and not transfer.failed.is_done:
            message = transfer.failed.position.message
            lineage, uniquifier = message.identifier
            message.identifier = ObjectId(lineage, uniquifier + _NEW_NUMBER)
        original(self, transfer)

    return resume


def _renumbered(original: Any) -> Any:
    def number(self: SrmpSending, outgoing: Any, message: Any) -> None:
        if outgoing.tx_sequence_number:
            outgoing.transfer.unacknowledged.remove(outgoing)
            outgoing.tx_sequence_number = 0
        original(self, outgoing, message)

    return number


def _not_bridged(original: Any) -> Any:
    def given_up(self: OutgoingStreams, outgoing: Any) -> None:
        transfer = outgoing.transfer
        before = [(left, left.previous_number) for left in transfer.unacknowledged]
        stream = transfer.stream_id
        original(self, outgoing)
        if transfer.stream_id == stream:
            for left, previous in before:
                left.previous_number = previous

    return given_up


def _not_resent(original: Any) -> Any:
    def failed(self: SrmpSending, outgoing: Any, *why: str) -> None:
        if outgoing.stream:
            original(self, outgoing, *why)
        else:
            self._accepted(outgoing)

    return failed


def _deleted_when_accepted(original: Any) -> Any:
    def accepted(self: SrmpSending, outgoing: Any) -> None:
        original(self, outgoing)
        if outgoing.stream and not outgoing.is_done:
            self.removed(outgoing)
            self._outcome.delivered(outgoing.position)

    return accepted


def _expired_still_sent(original: Any) -> Any:
    def send(self: SrmpSending, outgoing: Any) -> None:
        judge = sending._has_expired
        sending._has_expired = lambda message, utc: False
        original(self, outgoing)
        sending._has_expired = judge

    return send


def _final_is_positive(original: Any) -> Any:
    def final(self: OutgoingStreams, *args: Any) -> None:
        original(self, *(POSITIVE if arg == NEGATIVE else arg for arg in args))

    return final


def _journaled_twice(original: Any) -> Any:
    def delivered(self: DeliveryOutcome, position: Any) -> None:
        message, manager = position.message, self._context.queue_manager
        own = message.source_machine_identifier == manager.identifier and message.soap_envelope == ""
        journal = manager.system_journal_queue
        if own and message.positive_journaling_requested and journal is not None:
            self._messages.journal(message, journal)
        original(self, position)

    return delivered


# -- the receiver --------------------------------------------------------------------------------------------


def _remembered_at_once(original: Any) -> Any:
    def enqueue(self: SrmpReceiving, arrived: Any) -> None:
        self._remember(arrived.message)
        original(self, arrived)

    return enqueue


def _duplicate_in_new_stream(original: Any) -> Any:
    def is_duplicate(self: SrmpReceiving, message: Any) -> bool:
        return not message.transactional and bool(original(self, message))

    return is_duplicate


def _acknowledged_too_far(original: Any) -> Any:
    def stream(self: ReceiptSending, info: Any) -> None:
        info.acknowledged += 1
        original(self, info)
        info.acknowledged -= 1

    return stream


class _LastAcknowledgedNotStored:
    """The rows of transfers, except that those of the acknowledged part of a stream are left out."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def __getattr__(self, name: str) -> Any:
        return nothing(None) if name == "put_incoming" else getattr(self._rows, name)


def _always_positive(original: Any) -> Any:
    def commitment_receipt(message: Any, reason: Any, *args: Any) -> Any:
        return original(message, MessageClass.MQMSG_CLASS_ACK_RECEIVE, *args)

    return commitment_receipt


def _receipt_before_arrival(original: Any) -> Any:
    def once(self: SrmpReceiving, arrived: Any) -> None:
        self._system_messages.acknowledge(arrived.message, MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE)
        original(self, arrived)

    return once


_LOST: Final = frozenset({Invariant.TRANSACTIONS_LOST, Invariant.RECOVERABLE, Invariant.HELD})
_HANGS: Final = frozenset({Invariant.HANGS})
_TWICE: Final = frozenset({Invariant.ONCE, Invariant.NOT_TWICE})
_NUMBERED: Final = frozenset({Invariant.NUMBERED})
_DURABLE: Final = frozenset({Invariant.DURABLE})

SRMP_MISTAKES: Final[Mapping[str, Mistake]] = MappingProxyType(
    {
        "SRMP: a response is sent before the commit": Mistake(
            Driver, "part", effects_at_once(HttpResponse), _DURABLE
        ),
        "SRMP: a retransmission has a new identifier": Mistake(
            SrmpSending, "resume", _new_identifier, _NUMBERED
        ),
        "SRMP: a stream message has a new number when it is sent again": Mistake(
            SrmpSending, "_number", _renumbered, _NUMBERED
        ),
        "SRMP: previous is not bridged": Mistake(
            OutgoingStreams, "given_up", _not_bridged, _HANGS | {Invariant.STATES}, first=440
        ),
        "SRMP: a failed message is not sent again": Mistake(SrmpSending, "_failed", _not_resent, _LOST),
        "SRMP: a response is enough for a stream message": Mistake(
            SrmpSending, "_accepted", _deleted_when_accepted, _LOST | {Invariant.JOURNALED_ONCE}
        ),
        "SRMP: an expired message is still sent": Mistake(
            SrmpSending, "send", _expired_still_sent, frozenset({Invariant.IN_TIME}), first=15
        ),
        "SRMP: a final receipt counts as positive": Mistake(
            OutgoingStreams, "final", _final_is_positive, frozenset({Invariant.JOURNALED_ONCE})
        ),
        "SRMP: journaled twice": Mistake(
            DeliveryOutcome, "delivered", _journaled_twice, frozenset({Invariant.JOURNALED_ONCE})
        ),
        "SRMP: the Stream Receipt Wait Timer is not started": Mistake(
            OutgoingStreams, "await_receipt", nothing, _HANGS
        ),
        "SRMP: a received message is not remembered": Mistake(SrmpReceiving, "_remember", nothing, _TWICE),
        "SRMP: a message is remembered before it is accepted": Mistake(
            SrmpReceiving, "_enqueue", _remembered_at_once, _LOST | _DURABLE | _HANGS, first=10
        ),
        "SRMP: a duplicate is accepted in a new stream": Mistake(
            SrmpReceiving, "_is_duplicate", _duplicate_in_new_stream, _TWICE, first=590
        ),
        "SRMP: a stream receipt says more than is stored": Mistake(
            ReceiptSending, "stream", _acknowledged_too_far, _DURABLE
        ),
        "SRMP: LastAcknowledged is not stored": Mistake(
            incoming_streams, "transfer_rows", _LastAcknowledgedNotStored, _DURABLE
        ),
        "SRMP: every commitment receipt is positive": Mistake(
            receipts, "commitment_receipt", _always_positive, frozenset({Invariant.TRUTHFUL})
        ),
        "SRMP: a delivery receipt is sent for a message that is not enqueued": Mistake(
            SrmpReceiving,
            "_once",
            _receipt_before_arrival,
            frozenset({Invariant.TRUTHFUL, Invariant.ACKNOWLEDGED}),
        ),
    }
)
