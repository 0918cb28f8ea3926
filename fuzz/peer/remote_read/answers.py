"""The answers that the peer may give to each call, by the known state of its queues: [MS-MQRR] 3.1.4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fuzz.peer.failure import NO_QUEUE, PeerFailure
from fuzz.peer.remote_read import reads
from fuzz.peer.remote_read.association import Answer
from fuzz.peer.remote_read.pdus import Known
from fuzz.peer.remote_read.queue_model import CursorState, OpenQueue, PeerQueue, PeerState, Where
from fuzz.peer.target import Target
from msmqwire.constants import MQ_OK, QUEUE_FORMAT_TYPE, HResult
from msmqwire.constants.ntstatus import NtStatus
from msmqwire.remote_read.constants import Access, Acknowledge, Action, Opnum, ShareMode
from msmqwire.rpc.constants import FaultStatus

OUT_OF_RANGE: Final = frozenset({FaultStatus.NCA_S_OP_RNG_ERROR, 1745})
"""Faults for a method that the peer lacks: that of [C706], and RPC_S_PROCNUM_OUT_OF_RANGE."""
BUSY: Final = frozenset(
    {
        FaultStatus.NCA_S_SERVER_TOO_BUSY,
        FaultStatus.NCA_S_FAULT_REMOTE_NO_MEMORY,
        HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
        HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE,
    }
)
"""The results with which a peer may refuse any call that takes resources."""
DENIED: Final = frozenset({FaultStatus.ACCESS_DENIED, HResult.MQ_ERROR_ACCESS_DENIED, 0x80070005})
"""The refusals of callers that do not authenticate."""

_H = HResult
_NO_HANDLE: Final = {
    Opnum.R_CloseQueue: "MQRR-3.1.4.3-03",
    Opnum.R_CreateCursor: "MQRR-3.1.4.4-03",
    Opnum.R_CloseCursor: "MQRR-3.1.4.5-04",
    Opnum.R_PurgeQueue: "MQRR-3.1.4.6-03",
    Opnum.R_StartReceive: "MQRR-3.1.4.7-41",
    Opnum.R_CancelReceive: "MQRR-3.1.4.8-04",
    Opnum.R_EndReceive: "MQRR-3.1.4.9-10",
    Opnum.R_MoveMessage: "MQRR-3.1.4.10-08",
    Opnum.R_StartTransactionalReceive: "MQRR-3.1.4.13-31",
    Opnum.R_SetUserAcknowledgementClass: "MQRR-3.1.4.14-07",
    Opnum.R_EndTransactionalReceive: "MQRR-3.1.4.15-10",
}
"""The requirement that a call fails whose handle is none, by its method."""
_EXTENSION: Final = Opnum.R_MoveMessage
"""The first of the methods that were added later; a peer need not have them: MQRR-1.7-01."""
_VOID: Final = frozenset({Opnum.R_OpenQueue, Opnum.R_OpenQueueForMove})


class Judge:
    """Checks answers in turn, and keeps their information.

    Args:
        target: the peer.
        state: its known state.
        known: takes the values that it gives.
        reading: judges messages.
    """

    def __init__(self, target: Target, state: PeerState, known: Known, reading: reads.Reading) -> None:
        self._target, self._state, self._known, self._reading = target, state, known, reading

    def judge(self, answer: Answer, group: int) -> None:
        """Judge an answer on a connection of this association group. Raises PeerFailure."""
        call, status = answer.call, answer.status
        if answer.fault and status in DENIED:
            self._state.denied = True
        if call.opnum not in {*Opnum}:
            if call.opnum >= 0 and not self._state.denied and not (answer.fault and status in OUT_OF_RANGE):
                text = f"an unknown method, opnum {call.opnum}, is answered with {answer}, not with a fault"
                raise PeerFailure(("MQRR-3.1.4-03",), f"{text} that says so", "status")
            return
        if answer.fault and not status:
            raise _failure(answer, "MQRR-3.1.4.2-22", "a fault with the status 0")
        if call.opnum == Opnum.Opnum1NotUsedOnWire or call.arguments is None:
            return
        if status in DENIED and call.opnum in (*_VOID, Opnum.R_GetServerPort):
            self._state.denied = True
        if status in BUSY or self._state.denied:
            return
        if call.opnum >= _EXTENSION and answer.fault and status in OUT_OF_RANGE:
            return
        if call.opnum == Opnum.R_GetServerPort:
            _get_server_port(answer)
        elif call.opnum in _VOID:
            self._opened(answer, group)
        elif call.opnum == Opnum.R_QMEnlistRemoteTransaction:
            if not status:
                raise _failure(answer, "MQRR-3.1.4.12-11", "a propagation token that is none is accepted")
        else:
            self._of_handle(answer, group)

    def may_fail(self, answer: Answer, group: int) -> bool:
        """Return whether a call that has failed need not succeed later."""
        call, arguments = answer.call, answer.call.arguments
        if self._state.denied or arguments is None:
            return True
        if call.opnum == Opnum.R_CancelReceive:
            opened = self._state.find(arguments.phContext, group)
            return opened is None or arguments.dwRequestId not in opened.waiting
        if call.opnum == Opnum.R_OpenQueue:
            name = self._name(arguments.pQueueFormat) or ""
            return not self._state.may_open(name, arguments.dwAccess, arguments.dwShareMode)
        return False

    # -- opening -----------------------------------------------------------------------------------------

    def _opened(self, answer: Answer, group: int) -> None:
        arguments, move = answer.call.arguments, answer.call.opnum == Opnum.R_OpenQueueForMove
        name = self._name(arguments.pQueueFormat)
        queues = self._target.queue.lower(), self._target.transactional_queue.lower()
        exists = bool(name) and name in queues
        if answer.fault:
            self._not_opened(answer, name, exists=exists)
            return
        results = answer.results
        if name is None or not (exists or ";" in name):
            raise _failure(
                answer,
                "MQRR-3.1.4.2-25" if not move else "MQRR-3.1.4.11-16",
                "a queue is opened that this queue manager has not",
            )
        if results.pphContext.is_null:
            raise _failure(answer, "MQRR-3.1.4.2-21", "the null handle is given for an open queue")
        other = self._state.handles.get(results.pphContext)
        if other is not None and not other.closed:
            raise _failure(answer, "MQRR-3.1.4.2-21", "a handle is given for a second time")
        access = int(Access.MQ_MOVE_ACCESS) if move else arguments.dwAccess
        share = arguments.dwShareMode
        if (
            exists
            and not move
            and not answer.call.overlapped
            and not self._state.may_open(name, access, share)
        ):
            raise _failure(answer, "MQRR-3.1.4.2-27", "a queue is opened again that was opened exclusively")
        queue = self._state.queues.setdefault(name, PeerQueue()) if exists else None
        opened = OpenQueue(results.pphContext, group, name, queue, access, share)
        opened.move_context = getattr(results, "pMoveContext", 0)
        self._state.handles[results.pphContext] = opened
        self._known.handle(answer.call.call_id, results.pphContext)
        if move:
            self._known.move_context(answer.call.call_id, results.pMoveContext)

    def _not_opened(self, answer: Answer, name: str | None, *, exists: bool) -> None:
        arguments, status = answer.call.arguments, answer.status
        move = answer.call.opnum == Opnum.R_OpenQueueForMove
        if name is not None and not exists and ";" not in name and status != _H.MQ_ERROR_QUEUE_NOT_FOUND:
            text = f"a queue that is not there is refused with {status:#010x}, not MQ_ERROR_QUEUE_NOT_FOUND"
            raise _failure(answer, "MQRR-3.1.4.11-16" if move else "MQRR-3.1.4.2-25", text)
        usual = arguments.dwAccess in (Access.RECEIVE_ACCESS, Access.PEEK_ACCESS) and (
            arguments.dwShareMode in iter(ShareMode)
        )
        if name is None or not exists or move or not usual:
            return
        if self._state.may_open(name, arguments.dwAccess, arguments.dwShareMode):
            if status == _H.MQ_ERROR_SHARING_VIOLATION:
                text = "a queue stays closed to other callers though nobody has it open exclusively"
                raise _failure(answer, "MQRR-3.1.6.1-03", text)
            kind = NO_QUEUE if status == _H.MQ_ERROR_QUEUE_NOT_FOUND else "status"
            raise _failure(answer, "MQRR-3.1.4.2-21", f"{name} can't be opened: {status:#010x}", kind)
        if status != _H.MQ_ERROR_SHARING_VIOLATION:
            text = f"a queue in use is refused with {status:#010x}, not with MQ_ERROR_SHARING_VIOLATION"
            raise _failure(answer, "MQRR-3.1.4.2-27", text)

    def _name(self, form: Any) -> str | None:
        """Return the path name in a direct name of the peer, in small letters; None for another name."""
        if form.m_qft not in (
            QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_DIRECT,
            QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_SUBQUEUE,
        ):
            return None
        host, _, name = str(form.arm).removeprefix("DIRECT=").partition("\\")
        return name.lower() if host.lower() == f"tcp:{self._target.host}" else None

    # -- with a handle -----------------------------------------------------------------------------------

    def _of_handle(self, answer: Answer, group: int) -> None:
        arguments, opnum = answer.call.arguments, Opnum(answer.call.opnum)
        named = next(
            getattr(arguments, name)
            for name in ("phContext", "pphContext", "phContextFrom")
            if hasattr(arguments, name)
        )
        opened = self._state.find(named, group)
        if opened is None:
            if not answer.status and not answer.call.overlapped:
                raise _failure(
                    answer, _NO_HANDLE[opnum], "a call with a handle that stands for nothing succeeds"
                )
            return
        method = _METHODS.get(opnum)
        if method is not None:
            method(self, answer, opened)

    def _close(self, answer: Answer, opened: OpenQueue) -> None:
        _must_succeed(answer, "MQRR-3.1.4.3-07")
        if not answer.results.pphContext.is_null:
            raise _failure(answer, "MQRR-3.1.4.3-07", "the handle of a closed queue is not set to null")
        self._reading.closed(opened)
        self._state.close(opened)

    def _create_cursor(self, answer: Answer, opened: OpenQueue) -> None:
        _must_succeed(answer, "MQRR-3.1.4.4-04")
        number = answer.results.phCursor
        if number in opened.cursors:
            raise _failure(answer, "MQRR-3.1.4.4-04", "a cursor is given that is open already")
        opened.cursors[number] = CursorState()
        self._known.cursor(answer.call.call_id, number)

    def _close_cursor(self, answer: Answer, opened: OpenQueue) -> None:
        number = answer.call.arguments.hCursor
        if number not in opened.cursors:
            if not answer.status and not answer.call.overlapped:
                raise _failure(answer, "MQRR-3.1.4.5-04", "a cursor that the handle has not is closed")
            return
        _must_succeed(answer, "MQRR-3.1.4.5-05")
        del opened.cursors[number]

    def _purge(self, answer: Answer, opened: OpenQueue) -> None:
        if opened.receives:
            _must_succeed(answer, "MQRR-3.1.4.6-04")
            if opened.queue is not None:
                opened.queue.purge()
        elif not answer.status:
            raise _failure(answer, "MQRR-3.1.4.6-05", "a queue is purged that was not opened to receive")
        elif opened.peeks and answer.status != NtStatus.STATUS_ACCESS_DENIED:
            text = f"a purge without receive access fails with {answer}, not with STATUS_ACCESS_DENIED"
            raise _failure(answer, "MQRR-3.1.4.6-05", text)

    def _cancel(self, answer: Answer, opened: OpenQueue) -> None:
        if not answer.status:  # else it may have come before the read that it was for
            self._reading.check_cancelled(answer, opened)

    def _end(self, answer: Answer, opened: OpenQueue) -> None:
        arguments, status = answer.call.arguments, answer.status
        transactional = answer.call.opnum == Opnum.R_EndTransactionalReceive
        number, section = arguments.dwRequestId, "15" if transactional else "9"
        if number not in opened.pending:
            self._not_ended(answer, opened, section)
            return
        message = opened.pending[number]
        if transactional or number in opened.uncertain or message is None:
            if not status:
                del opened.pending[number]
            opened.uncertain.add(number)
            if message is not None and message.where is not Where.GONE:
                message.where = Where.UNSURE
            return
        del opened.pending[number]
        ack = arguments.dwAck == Acknowledge.RR_ACK
        if message.purged:
            message.where = Where.UNSURE
            return
        if status and not answer.call.overlapped:
            rule = "MQRR-3.1.4.9-05" if ack else "MQRR-3.1.4.9-06"
            text = f"the end of a receive fails with {answer}"
            raise PeerFailure(("MQRR-3.1.4.9-12", rule), text, "status")
        if ack:
            message.leave("MQRR-3.1.4.9-05")
        else:
            message.where = Where.AVAILABLE

    def _not_ended(self, answer: Answer, opened: OpenQueue, section: str) -> None:
        """Judge the end of a receive that has not begun, or has ended."""
        status, number = answer.status, answer.call.arguments.dwRequestId
        if answer.call.overlapped or number in opened.uncertain or number in opened.waiting:
            return
        if not status:
            rule = f"MQRR-3.1.4.{section}-0{8 if opened.pending else 7}"
            raise _failure(answer, rule, "a receive is ended that has not begun, or has ended before")
        right = {_H.MQ_ERROR_INVALID_HANDLE, _H.MQ_ERROR_INVALID_PARAMETER}
        if not opened.uncertain and not opened.waiting:
            right = {_H.MQ_ERROR_INVALID_PARAMETER if opened.pending else _H.MQ_ERROR_INVALID_HANDLE}
        if status not in right:
            names = " or ".join(sorted(each.name for each in right))
            rule = f"MQRR-3.1.4.{section}-0{8 if opened.pending else 7}"
            text = f"the end of a receive that has not begun fails with {answer}, not with {names}"
            raise _failure(answer, rule, text)

    def _move(self, answer: Answer, opened: OpenQueue) -> None:
        arguments, status = answer.call.arguments, answer.status
        to = [
            other
            for other in self._state.handles.values()
            if other.move_context == arguments.ullContextTo and other.move_context and not other.closed
        ]
        if not to:
            if status != _H.MQ_ERROR_INVALID_HANDLE:
                text = f"a move to a context that stands for nothing ends with {answer}"
                raise _failure(answer, "MQRR-3.1.4.10-09", f"{text}, not with MQ_ERROR_INVALID_HANDLE")
            return
        source, there = opened.name.partition(";")[0], to[0].name.partition(";")[0]
        if source != there and status != NtStatus.STATUS_INVALID_PARAMETER:
            text = f"a move between unrelated queues ends with {answer}, not with STATUS_INVALID_PARAMETER"
            raise _failure(answer, "MQRR-3.1.4.10-10", text)
        if not status and opened.queue is not None:
            self._reading.moved(opened.queue, arguments.LookupId)

    def _reject(self, answer: Answer, opened: OpenQueue) -> None:
        if not answer.status:
            text = "a message that no transaction has received is rejected"
            raise _failure(answer, "MQRR-3.1.4.14-09", text)
        queue, lookup = opened.queue, answer.call.arguments.LookupId
        if queue is None or not queue.known or self._reading.by_lookup(queue, lookup) is not None:
            return
        if opened.receives and answer.status != _H.MQ_ERROR_MESSAGE_NOT_FOUND:
            text = f"to reject a message that is not there ends with {answer}, not MQ_ERROR_MESSAGE_NOT_FOUND"
            raise _failure(answer, "MQRR-3.1.4.14-08", text)

    def _start(self, answer: Answer, opened: OpenQueue) -> None:
        call, arguments = answer.call, answer.call.arguments
        opened.waiting.discard(arguments.dwRequestId)
        transactional = call.opnum == Opnum.R_StartTransactionalReceive and any(arguments.pTransactionId.rgb)
        section = "13" if call.opnum == Opnum.R_StartTransactionalReceive else "7"
        if invalid(arguments):
            if answer.status != _H.MQ_ERROR_INVALID_PARAMETER and not (
                answer.status and doubtful(arguments, transactional=transactional)
            ):
                text = f"a read with arguments that do not go together ends with {answer}"
                rule = "MQRR-3.1.4.7-40" if section == "7" else "MQRR-3.1.4.13-29"
                raise _failure(answer, rule, f"{text}, not with MQ_ERROR_INVALID_PARAMETER")
            return
        action = Action(arguments.ulAction)
        if opened.move_context or (action.receives and opened.peeks):
            if not answer.status:
                rule = "MQRR-3.1.4.7-12"
                raise _failure(answer, rule, "a message is received by a handle that permits no receiving")
            return
        if arguments.hCursor and not self._has_cursor(opened, arguments.hCursor):
            if answer.status != NtStatus.STATUS_INVALID_HANDLE and not call.overlapped:
                rule = "MQRR-3.1.4.7-42" if section == "7" else "MQRR-3.1.4.13-32"
                text = f"a read by a cursor that is not there ends with {answer}, not STATUS_INVALID_HANDLE"
                raise _failure(answer, rule, text)
            return
        if transactional:
            self._in_transaction(answer, opened, action)
            return
        self._reading.judge(answer, opened, action)

    def _has_cursor(self, opened: OpenQueue, number: int) -> bool:
        """Whether a cursor exists: that of another handle may be accepted, or not."""
        return any(number in other.cursors for other in self._state.handles.values()) or (
            number in opened.cursors
        )

    def _in_transaction(self, answer: Answer, opened: OpenQueue, action: Action) -> None:
        number = answer.call.arguments.dwRequestId
        plain = opened.name == self._target.queue.lower()
        if (plain or not action.receives) and answer.status != _H.MQ_ERROR_TRANSACTION_USAGE:
            what = "from a non-transactional queue" if plain else "that is a peek"
            text = f"a read in a transaction {what} ends with {answer}, not MQ_ERROR_TRANSACTION_USAGE"
            raise _failure(answer, "MQRR-3.1.4.13-33" if plain else "MQRR-3.1.4.13-34", text)
        if not answer.status:
            opened.pending[number] = None
        opened.uncertain.add(number)


_METHODS: Final[dict[int, Callable[[Judge, Answer, OpenQueue], None]]] = {
    Opnum.R_CloseQueue: Judge._close,
    Opnum.R_CreateCursor: Judge._create_cursor,
    Opnum.R_CloseCursor: Judge._close_cursor,
    Opnum.R_PurgeQueue: Judge._purge,
    Opnum.R_StartReceive: Judge._start,
    Opnum.R_CancelReceive: Judge._cancel,
    Opnum.R_EndReceive: Judge._end,
    Opnum.R_MoveMessage: Judge._move,
    Opnum.R_StartTransactionalReceive: Judge._start,
    Opnum.R_SetUserAcknowledgementClass: Judge._reject,
    Opnum.R_EndTransactionalReceive: Judge._end,
}


def invalid(arguments: Any) -> bool:
    """Return whether the arguments of a read do not go together: [MS-MQRR] 3.1.4.7."""
    if arguments.ulAction not in iter(Action):
        return True
    action = Action(arguments.ulAction)
    if action.by_lookup_identifier:
        return not arguments.LookupId or bool(arguments.hCursor or arguments.ulTimeout)
    return bool(arguments.LookupId) or (action == Action.MQ_ACTION_PEEK_NEXT and not arguments.hCursor)


def doubtful(arguments: Any, *, transactional: bool) -> bool:
    """Return whether the text leaves open how a read with such arguments fails.

    It has MQ_LOOKUP_RECEIVE_PREV with a LookupId and without one; a peek in a transaction has an error of its
    own.
    """
    return arguments.ulAction == Action.MQ_LOOKUP_RECEIVE_PREV or transactional


def _get_server_port(answer: Answer) -> None:
    if answer.fault:
        raise _failure(answer, "MQRR-3.1.4.1-03", f"R_GetServerPort is answered with {answer}")
    if not 0 < answer.status <= 0xFFFF:
        raise _failure(
            answer, "MQRR-3.1.4.1-02", f"R_GetServerPort returns {answer.status}, which is not a port"
        )


def _must_succeed(answer: Answer, requirement: str) -> None:
    if answer.status != MQ_OK:
        name = Opnum(answer.call.opnum).name
        raise _failure(answer, requirement, f"{name} of an open queue fails with {answer}")


def _failure(answer: Answer, requirement: str, text: str, kind: str = "status") -> PeerFailure:
    after = f" (after {answer.call.note})" if answer.call.note else ""
    return PeerFailure((requirement,), f"{text}{after}", kind)
