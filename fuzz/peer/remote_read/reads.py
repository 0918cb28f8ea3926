"""Checks the results of reads: the message, its completeness and the time: [MS-MQRR] 3.1.4.7."""

from __future__ import annotations

import time
from typing import Any, Final
from uuid import UUID

from fuzz.peer.failure import PeerFailure
from fuzz.peer.remote_read.association import Answer, Call
from fuzz.peer.remote_read.pdus import Known
from fuzz.peer.remote_read.queue_model import (
    CursorState,
    OpenQueue,
    PeerQueue,
    PeerState,
    QueuedMessage,
    Where,
)
from msmqwire.constants import HResult
from msmqwire.names.printable import agreed, agreeing, counted
from msmqwire.remote_read.constants import Action, Opnum, SectionType
from msmqwire.remote_read.sections import ReadMessage
from msmqwire.rpc.handles import ContextHandle
from msmqwire.schema import Record

EARLY: Final = 0.8
"""The share of its time-out after which a waiting read may end: clocks are coarse."""
EARLY_FROM_MS: Final = 200
"""Shorter time-outs are not judged."""
CLOCK_S: Final = 600
"""The most that the clock of a peer on this computer may differ."""
PRIORITY_SHIFT: Final = 56

_H = HResult
_KEPT: Final = ("Label", "MessageClass", "CorrelationID", "BodyType", "ApplicationTag", "ExtensionData")
"""Fields of MessagePropertiesHeader that no queue manager changes."""


class Reading:
    """Checks the reads of one case, and follows their effect on the messages.

    Args:
        state: the known state of the peer.
        known: takes the identifiers of messages.
        identity: the queue manager that has sent the messages.
        loopback: whether the peer is on this computer, and has its clock.
    """

    def __init__(self, state: PeerState, known: Known, identity: UUID, *, loopback: bool) -> None:
        self._state, self._known = state, known
        self._identity, self._loopback = identity, loopback
        self._waiting: dict[tuple[ContextHandle, int], Call] = {}
        self._failures: dict[tuple[ContextHandle, int], int] = {}
        self._ended: set[tuple[ContextHandle, int | None]] = set()

    # -- beginning ---------------------------------------------------------------------------------------

    def begun(self, call: Call, opened: OpenQueue) -> None:
        """Take note of a read that was sent."""
        number = call.arguments.dwRequestId
        if number in opened.pending or number in opened.waiting:
            call.overlapped = True
            opened.uncertain.add(number)
        opened.waiting.add(number)
        self._failures.pop((opened.handle, number), None)
        self._waiting[opened.handle, number] = call

    def may_end(self, call: Call) -> None:
        """Take note of a call that was sent and ends reads that wait: of one number, or all of a handle."""
        if call.opnum == Opnum.R_CancelReceive:
            self._ended.add((call.arguments.phContext, call.arguments.dwRequestId))
        elif call.opnum == Opnum.R_CloseQueue:
            self._ended.add((call.arguments.pphContext, None))

    def check_cancelled(self, answer: Answer, opened: OpenQueue) -> None:
        """See that a read which the peer says it has cancelled has ended so, or will. Raises PeerFailure."""
        number = answer.call.arguments.dwRequestId
        waiting = self._waiting.get((opened.handle, number)) if number in opened.waiting else None
        if waiting is not None:
            waiting.cancelled = "MQRR-3.1.4.8-08"
            return
        status = self._failures.get((opened.handle, number))
        if not answer.call.overlapped:
            raise _failure(("MQRR-3.1.4.8-06",), "a read is cancelled that does not wait", answer)
        if status not in (None, _H.MQ_ERROR_OPERATION_CANCELLED):
            text = f"a cancelled read ends with {status:#010x}, not with MQ_ERROR_OPERATION_CANCELLED"
            raise _failure(("MQRR-3.1.4.8-08",), text, answer)

    def closed(self, opened: OpenQueue) -> None:
        """A handle was closed: its reads that wait end."""
        for number in opened.waiting:
            self._waiting[opened.handle, number].cancelled = "MQRR-3.1.4.3-04"

    # -- identifiers -------------------------------------------------------------------------------------

    def by_lookup(self, queue: PeerQueue, identifier: int) -> QueuedMessage | None:
        """Return the message with a LookupIdentifier; None for none that was seen."""
        low = identifier & ((1 << PRIORITY_SHIFT) - 1)
        return next((message for message in queue.messages if message.sequence == low), None)

    def moved(self, queue: PeerQueue, identifier: int) -> None:
        """A message was moved to another queue."""
        message = self.by_lookup(queue, identifier)
        if message is not None and message.where is Where.AVAILABLE:
            message.leave("MQRR-3.1.4.10-16")

    # -- results -----------------------------------------------------------------------------------------

    def judge(self, answer: Answer, opened: OpenQueue, action: Action) -> None:
        """Judge the answer to a read with valid arguments. Raises PeerFailure."""
        if answer.status:
            self._failures[opened.handle, answer.call.arguments.dwRequestId] = answer.status
            if action.receives:
                opened.uncertain.add(answer.call.arguments.dwRequestId)
            self._failed(answer, opened, action)
            cursor = opened.cursors.get(answer.call.arguments.hCursor)
            if cursor is not None:
                cursor.certain = False
            return
        if answer.message is None:
            raise _failure(("MQRR-3.1.4.7-32",), "a read succeeds and returns no message", answer)
        message = self._identified(answer, answer.message, opened)
        if message is not None:
            self._check_contents(answer, answer.message, message)
            self._check_place(answer, message, opened, action)
            self._take(answer, message)
        self._follow(answer, message, opened, action)

    def _follow(
        self, answer: Answer, message: QueuedMessage | None, opened: OpenQueue, action: Action
    ) -> None:
        arguments = answer.call.arguments
        if action.receives:
            opened.pending[arguments.dwRequestId] = message
            if action.by_lookup_identifier:
                opened.uncertain.add(arguments.dwRequestId)
            else:
                opened.uncertain.discard(arguments.dwRequestId)
            if message is not None:
                message.where = Where.LOCKED
        elif message is not None and message.where is Where.UNSURE:
            message.where = Where.AVAILABLE
        cursor = opened.cursors.get(arguments.hCursor)
        if cursor is not None:
            cursor.at, cursor.certain = message, message is not None and not action.receives

    def _take(self, answer: Answer, message: QueuedMessage) -> None:
        sequence = answer.results.pSequenceId
        if message.sequence is not None and message.sequence != sequence:
            text = f"pSequenceId of one message is {message.sequence}, then {sequence}"
            raise _failure(("MQRR-3.1.4.7-29",), text, answer)
        for other in self._state.messages():
            if other is not message and other.sequence == sequence:
                text = f"two messages have the same pSequenceId, {sequence}"
                raise _failure(("MQRR-3.1.4.7-29",), text, answer)
        message.sequence, message.seen = sequence, True
        high = 7 - message.packet.BaseHeader.Flags.PR
        self._known.lookup(message.number, high << PRIORITY_SHIFT | sequence)

    # -- which message -----------------------------------------------------------------------------------

    def _identified(self, answer: Answer, read: ReadMessage, opened: OpenQueue) -> QueuedMessage | None:
        """Return the message that was sent; None for a message of another sender, after which less is
        known.
        """
        user = read.whole.UserHeader
        ours = user.SourceQueueManager == self._identity
        marked = read.body[:36].lower() == str(self._identity).encode()
        found = None
        if ours:
            found = next((m for m in self._state.messages() if m.number == user.MessageID), None)
        if found is None and (ours or marked):
            text = f"a message that was sent comes back with another identifier: {user.MessageID}"
            raise _failure(("MQRR-3.1.4.7-32",), text, answer)
        if found is None and opened.queue is not None:
            opened.queue.known = False
        return found

    def _check_place(self, answer: Answer, message: QueuedMessage, opened: OpenQueue, action: Action) -> None:
        queue = opened.queue
        if queue is None or answer.call.overlapped:
            return
        if message not in queue.messages:
            raise _failure(("MQRR-3.1.4.7-45",), "a message of another queue is returned", answer)
        if message.where is Where.GONE:
            text = f"a message comes back that was {_LEFT[message.left]}"
            raise _failure((message.left,), text, answer)
        if message.where is Where.LOCKED:
            text = "a message is returned that somebody has received and not yet ended"
            raise _failure(("MQRR-3.1.4.7-45",), text, answer)
        candidates, exact = self._candidates(answer, opened, action)
        if queue.known and exact and message not in candidates:
            text = f"the message {message.number} is returned; it is the turn of {candidates[-1].number}"
            raise _failure(_RULES[action], text, answer)

    def _candidates(
        self, answer: Answer, opened: OpenQueue, action: Action
    ) -> tuple[list[QueuedMessage], bool]:
        """Return the messages that a read may return, and whether it certainly returns one of them."""
        arguments, queue = answer.call.arguments, opened.queue
        if queue is None:
            return [], False
        if action.by_lookup_identifier:
            found = self.by_lookup(queue, arguments.LookupId)
            current = action in (Action.MQ_LOOKUP_PEEK_CURRENT, Action.MQ_LOOKUP_RECEIVE_CURRENT)
            return ([found], True) if current and found is not None else ([], False)
        if not arguments.hCursor:
            return queue.candidates(arguments.ulTimeout)
        cursor = opened.cursors.get(arguments.hCursor, CursorState(certain=False))
        if not cursor.certain:
            return [], False
        if cursor.at is None:
            first = queue.candidates(arguments.ulTimeout)
            return first if action != Action.MQ_ACTION_PEEK_NEXT else (first[0], False)
        if cursor.at.where is not Where.AVAILABLE:
            return [], False
        if action == Action.MQ_ACTION_PEEK_NEXT:
            return queue.candidates(arguments.ulTimeout, cursor.at)
        return [cursor.at], True

    # -- its contents ------------------------------------------------------------------------------------

    def _check_contents(self, answer: Answer, read: ReadMessage, message: QueuedMessage) -> None:
        sent, most = message.packet, answer.call.arguments.dwMaxBodySize
        body = sent.MessagePropertiesHeader.MessageBody
        first = answer.results.ppPacketSections[0]
        cut = most < len(body)
        if cut != (first.SectionBufferType != SectionType.stFullPacket):
            rule = "MQRR-3.1.4.7-33" if cut else "MQRR-3.1.4.7-32"
            asked = f"{agreed(most, 'were')} asked for"
            text = f"a body of {counted(len(body), 'byte')} comes as {first.SectionBufferType}, {asked}"
            raise _failure((rule,), text, answer)
        if read.body != body[:most]:
            text = (
                f"{counted(len(read.body), 'byte')} of a body {agreeing(len(read.body), 'come')},"
                f" not the first {min(most, len(body)):,} of it"
            )
            raise _failure(("MQRR-3.1.4.7-33" if cut else "MQRR-3.1.4.7-32",), text, answer)
        _check_fields(answer, read.whole, sent)
        expiry = sent.UserHeader.SentTime + sent.BaseHeader.TimeToReachQueue
        if expiry < 1 << 32 and read.whole.BaseHeader.TimeToReachQueue != expiry:
            text = f"TimeToReachQueue is {read.whole.BaseHeader.TimeToReachQueue}, not {expiry}, its end"
            raise _failure(("MQRR-3.1.4.7-37",), text, answer)
        receives = Action(answer.call.arguments.ulAction).receives
        arrived = answer.results.pdwArriveTime
        if self._loopback and receives and abs(arrived - time.time()) > CLOCK_S:
            text = f"pdwArriveTime is {arrived}, {arrived - int(time.time())} s from now"
            raise _failure(("MQRR-3.1.4.7-27",), text, answer)

    # -- no message --------------------------------------------------------------------------------------

    def _failed(self, answer: Answer, opened: OpenQueue, action: Action) -> None:
        call, status, queue = answer.call, answer.status, opened.queue
        arguments = call.arguments
        if call.cancelled:
            if status != _H.MQ_ERROR_OPERATION_CANCELLED:
                text = f"a cancelled read ends with {answer}, not with MQ_ERROR_OPERATION_CANCELLED"
                raise _failure(("MQRR-3.1.4.8-08",), text, answer)
            return
        ended = {(opened.handle, None), (opened.handle, arguments.dwRequestId)} & self._ended
        if status == _H.MQ_ERROR_OPERATION_CANCELLED and not ended:
            text = "a read ends with MQ_ERROR_OPERATION_CANCELLED that nobody has cancelled"
            raise _failure(("MQRR-3.1.4.8-05",), text, answer)
        if call.overlapped or queue is None:
            self._check_early(answer)
            return
        if not queue.known or arguments.dwRequestId in opened.pending:
            return
        self._check_early(answer)
        candidates, exact = self._candidates(answer, opened, action)
        if action.by_lookup_identifier:
            self._not_found(answer, queue, action)
            return
        if exact and candidates[-1].where is Where.AVAILABLE:
            text = f"a read fails with {answer} though the message {candidates[-1].number} is in the queue"
            raise _failure(_RULES[action], text, answer)
        # A cursor at the end of the queue has other results, by its state: [MS-MQDMPR] 3.2.
        if not arguments.hCursor and status != _H.MQ_ERROR_IO_TIMEOUT:
            text = f"a read of an empty queue ends with {answer}, not with MQ_ERROR_IO_TIMEOUT"
            raise _failure(("MQRR-3.1.4.7-53",), text, answer)

    def _check_early(self, answer: Answer) -> None:
        timeout, taken = answer.call.arguments.ulTimeout, 1000 * (answer.at - answer.call.at)
        early = answer.status == _H.MQ_ERROR_IO_TIMEOUT and taken < EARLY * timeout
        if early and timeout >= EARLY_FROM_MS:
            text = f"a read with the time-out {timeout} ms ends after {taken:.0f} ms"
            raise _failure(("MQRR-3.1.2.1-03",), text, answer)

    def _not_found(self, answer: Answer, queue: PeerQueue, action: Action) -> None:
        found = self.by_lookup(queue, answer.call.arguments.LookupId)
        current = action in (Action.MQ_LOOKUP_PEEK_CURRENT, Action.MQ_LOOKUP_RECEIVE_CURRENT)
        if found is None and current and answer.status != _H.MQ_ERROR_MESSAGE_NOT_FOUND:
            text = f"a read of a message that is not there ends with {answer}"
            raise _failure(("MQRR-3.1.4.7-55",), f"{text}, not with MQ_ERROR_MESSAGE_NOT_FOUND", answer)


_LEFT: Final = {
    "MQRR-3.1.4.6-04": "purged",
    "MQRR-3.1.4.9-05": "acknowledged",
    "MQRR-3.1.4.10-16": "moved to another queue",
}
"""The fate of a message, by the requirement."""
_RULES: Final = {
    Action.MQ_ACTION_RECEIVE: ("MQRR-3.1.4.7-45",),
    Action.MQ_ACTION_PEEK_CURRENT: ("MQRR-3.1.4.7-47",),
    Action.MQ_ACTION_PEEK_NEXT: ("MQRR-3.1.4.7-48",),
    Action.MQ_LOOKUP_PEEK_CURRENT: ("MQRR-3.1.4.7-49",),
    Action.MQ_LOOKUP_PEEK_NEXT: ("MQRR-3.1.4.7-49",),
    Action.MQ_LOOKUP_PEEK_PREV: ("MQRR-3.1.4.7-49",),
    Action.MQ_LOOKUP_RECEIVE_CURRENT: ("MQRR-3.1.4.7-50",),
    Action.MQ_LOOKUP_RECEIVE_NEXT: ("MQRR-3.1.4.7-50",),
    Action.MQ_LOOKUP_RECEIVE_PREV: ("MQRR-3.1.4.7-50",),
}
"""The requirement that says which message is read."""


def _check_fields(answer: Answer, whole: Record, sent: Record) -> None:
    pairs: list[tuple[str, Any, Any]] = [
        (name, whole.MessagePropertiesHeader[name], sent.MessagePropertiesHeader[name]) for name in _KEPT
    ]
    pairs += [
        ("MessageID", whole.UserHeader.MessageID, sent.UserHeader.MessageID),
        ("SourceQueueManager", whole.UserHeader.SourceQueueManager, sent.UserHeader.SourceQueueManager),
        ("SentTime", whole.UserHeader.SentTime, sent.UserHeader.SentTime),
        ("PR", whole.BaseHeader.Flags.PR, sent.BaseHeader.Flags.PR),
    ]
    for name, came, was in pairs:
        if came != was:
            text = f"{name} of a message is {came!r:.60}; it was sent with {was!r:.60}"
            raise _failure(("MQRR-3.1.4.7-32",), text, answer)


def _failure(requirements: tuple[str, ...], text: str, answer: Answer) -> PeerFailure:
    after = f" (after {answer.call.note})" if answer.call.note else ""
    return PeerFailure(requirements, f"{text}{after}", "message")
