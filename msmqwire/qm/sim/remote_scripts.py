"""Scripts of programs that read the queues of another node, by the mode of an item of a plan."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from itertools import count
from typing import Any, Final, Protocol
from uuid import UUID

from msmqwire.constants import HResult, MessageClass
from msmqwire.names import parse_format_name
from msmqwire.qm.sim.environment import Environment
from msmqwire.qm.sim.ledger import MessageLedger
from msmqwire.qm.sim.plan import SUBQUEUE, identifier_of
from msmqwire.qm.sim.remote_reader import Failed, Pause, ReaderLost, RemoteReader, Script
from msmqwire.qm.sim.violation import Invariant
from msmqwire.remote_read.constants import Access, Acknowledge, Action, Opnum, ShareMode
from msmqwire.remote_read.sections import message_of
from msmqwire.rpc.handles import ContextHandle
from msmqwire.rpc.queue_format import queue_format_of
from msmqwire.service.virtual.violation import Violation

_WHOLE: Final = 0xFFFFFFFF
_TAG_END: Final = b";"
_NO_TRANSACTION: Final = bytes(16)
_SINGLE: Final = UUID(int=0x51)
"""A transaction without an enlistment: one for each message."""
_TOKEN: Final = b"token"
_WAIT_MS: Final = 4_000
_ACK, _NACK = Acknowledge.RR_ACK, Acknowledge.RR_NACK
_Steps = Generator["int | Pause", Any, Any]


class Coordinator(Protocol):
    """Decides the transactions of remote readers."""

    def decide(self, transaction: UUID, *, commit: bool) -> None:
        """The application that has begun a transaction wants it to be committed or aborted."""


class ReadingProgram:
    """One program.

    Args:
        environment, ledger: environment and ledger of the run.
        coordinator: the coordinator of its transactions.
        reader: its connections.
        args: the parameters of its item.

    Attributes:
        given: the messages that it was given, by RequestId.
        asked: the messages that it wants to accept.
        confirmed: the messages that the server has reported as accepted.
        decided: the outcome that it has chosen for its transaction.
    """

    def __init__(
        self,
        environment: Environment,
        ledger: MessageLedger,
        coordinator: Coordinator,
        reader: RemoteReader,
        args: Mapping[str, Any],
    ) -> None:
        self._environment, self._ledger = environment, ledger
        self._coordinator, self._reader, self._args = coordinator, reader, args
        self._requests = count(1)
        self.given: dict[int, int] = {}
        self.asked: set[int] = set()
        self.confirmed: set[int] = set()
        self.decided: bool | None = None

    def script(self) -> Script:
        """Return the script."""
        return MODES[self._args["mode"]](self)

    # -- calls -------------------------------------------------------------------------------------------

    def _name(self, queue: str) -> Any:
        return queue_format_of(parse_format_name(f"DIRECT=OS:{self._reader.server.name}\\private$\\{queue}"))

    def _opening(self, queue: str, access: int) -> dict[str, Any]:
        return {
            "pQueueFormat": self._name(queue), "dwAccess": access, "dwShareMode": ShareMode.MQ_DENY_NONE,
            "pClientId": identifier_of(self._reader.host.name), "fNonRoutingServer": 1, "Major": 6,
            "Minor": 1, "BuildNumber": 7600, "fWorkgroup": 1,
        }  # fmt: skip

    def _open(self, queue: str | None = None) -> _Steps:
        arguments = self._opening(queue or self._args["queue"], Access.RECEIVE_ACCESS)
        results = yield self._reader.begin(Opnum.R_OpenQueue, **arguments)
        return results.pphContext

    def _close(self, handle: ContextHandle) -> _Steps:
        yield self._reader.begin(Opnum.R_CloseQueue, pphContext=handle)

    def _start(
        self,
        handle: ContextHandle,
        request: int,
        action: int = Action.MQ_ACTION_RECEIVE,
        *,
        timeout: int = 0,
        cursor: int = 0,
        lookup: int = 0,
        transaction: UUID | None = None,
        connection: int = 0,
    ) -> int:
        """Begin to read; return the number of the call."""
        arguments: dict[str, Any] = {
            "phContext": handle, "LookupId": lookup, "hCursor": cursor, "ulAction": int(action),
            "ulTimeout": timeout, "dwRequestId": request, "dwMaxBodySize": _WHOLE,
            "dwMaxCompoundMessageSize": _WHOLE,
        }  # fmt: skip
        opnum = Opnum.R_StartReceive
        if transaction is not None:
            opnum = Opnum.R_StartTransactionalReceive
            arguments["pTransactionId"] = {"rgb": transaction.bytes_le}
        return self._reader.begin(opnum, connection=connection, **arguments)

    def _result(self, call: int, request: int, *, receives: bool = True) -> _Steps:
        """Return the results of a read, None if there is no message; check the message."""
        try:
            results = yield call
        except Failed as failed:
            none = HResult.MQ_ERROR_IO_TIMEOUT, HResult.MQ_ERROR_MESSAGE_NOT_FOUND
            if failed.status in none:
                return None
            raise
        number = self._check(results)
        if receives and number is not None:
            self.given[request] = number
        return results

    def _read(
        self,
        handle: ContextHandle,
        request: int,
        action: Action = Action.MQ_ACTION_RECEIVE,
        **options: Any,
    ) -> _Steps:
        call = self._start(handle, request, action, **options)
        return (yield from self._result(call, request, receives=action.receives))

    def _check(self, results: Any) -> int | None:
        """Check that a message was sent to this node and is complete; return its number."""
        message = message_of(results.ppPacketSections)
        tag, _, rest = message.body.partition(_TAG_END)
        if not tag.startswith(b"#"):
            return None
        tracked = self._ledger.messages[int(tag[1:])]
        self._environment.counts["remote messages"] += 1
        whole = len(rest) == tracked.options["size"] and not any(rest)
        if tracked.destination != self._reader.server.name or not whole or message.cut:
            raise Violation(Invariant.SENT_ONLY, f"a remote reader gets {tracked} in another form than sent")
        return tracked.number

    def _end(self, handle: ContextHandle, request: int, *args: Any, **options: Any) -> _Steps:
        """End a receive."""
        yield from self._ended(request, self._begin_end(handle, request, *args, **options))

    def _ended(self, request: int, call: int) -> _Steps:
        """Wait for the end of a receive."""
        yield call
        if (number := self.given.get(request)) in self.asked:
            self.confirmed.add(number)

    def _begin_end(
        self,
        handle: ContextHandle,
        request: int,
        acknowledge: Acknowledge = _ACK,
        *,
        transactional: bool = False,
        connection: int = 0,
    ) -> int:
        """Begin to end a receive; return the number of the call."""
        if acknowledge is _ACK and request in self.given:
            self.asked.add(self.given[request])
        opnum = Opnum.R_EndTransactionalReceive if transactional else Opnum.R_EndReceive
        return self._reader.begin(
            opnum, connection=connection, phContext=handle, dwAck=int(acknowledge), dwRequestId=request
        )

    def _hold(self) -> _Steps:
        if self._args["hold_ms"]:
            yield Pause(self._args["hold_ms"])

    # -- programs ----------------------------------------------------------------------------------------

    def _receive(self, *, timeout: int = 0, kinds: tuple[Acknowledge, ...] = (_ACK,)) -> Script:
        """Receive some messages, one after the other."""
        handle = yield from self._open()
        for number in range(self._args["count"]):
            request = next(self._requests)
            if (yield from self._read(handle, request, timeout=timeout)) is None:
                break
            yield from self._hold()
            yield from self._end(handle, request, kinds[number % len(kinds)])
        yield from self._close(handle)

    def _late(self) -> Script:
        """Receive messages and end none in time; an end that comes too late has no effect."""
        handle = yield from self._open()
        requests = []
        for request in range(1, 1 + self._args["count"]):
            if (yield from self._read(handle, request)) is None:
                break
            requests.append(request)
        yield Pause(1000 * self._environment.plan.remote_pending_s + self._args["hold_ms"])
        for request in requests:
            try:
                yield from self._end(handle, request)
            except Failed:
                continue
        yield from self._close(handle)

    def _cancel(self) -> Script:
        """Wait for messages, and cancel that: by R_CancelReceive, or by the RPC runtime."""
        handle = yield from self._open()
        calls = {request: self._start(handle, request, timeout=_WAIT_MS) for request in (1, 2)}
        yield from self._hold()
        with suppress(Failed):  # it has its message
            yield self._reader.begin(Opnum.R_CancelReceive, phContext=handle, dwRequestId=1)
        self._reader.cancel_call(calls[2])
        for request, call in calls.items():
            try:
                results = yield from self._result(call, request)
            except Failed:
                continue
            if results is not None:
                yield from self._end(handle, request, (_ACK, _NACK)[request - 1])
        yield from self._close(handle)

    def _look_up(self) -> Script:
        """Peek, and receive that message and its neighbours by their LookupIdentifiers."""
        handle = yield from self._open()
        seen = yield from self._read(handle, 1, action=Action.MQ_ACTION_PEEK_CURRENT)
        if seen is not None:
            for request, action in enumerate(
                (
                    Action.MQ_LOOKUP_RECEIVE_NEXT,
                    Action.MQ_LOOKUP_PEEK_PREV,
                    Action.MQ_LOOKUP_RECEIVE_CURRENT,
                ),
                2,
            ):
                results = yield from self._read(handle, request, action=action, lookup=seen.pSequenceId)
                if results is not None and action.receives:
                    yield from self._hold()
                    yield from self._end(handle, request, _ACK if request == 2 else _NACK)
        yield from self._close(handle)

    def _walk(self) -> Script:
        """Go through a queue with a cursor, twice; receive messages at it in between."""
        handle = yield from self._open()
        cursor = (yield self._reader.begin(Opnum.R_CreateCursor, phContext=handle)).phCursor
        action = Action.MQ_ACTION_PEEK_CURRENT
        while (yield from self._read(handle, next(self._requests), action=action, cursor=cursor)) is not None:
            yield from self._hold()
            action = Action.MQ_ACTION_PEEK_NEXT
        yield self._reader.begin(Opnum.R_CloseCursor, phContext=handle, hCursor=cursor)
        cursor = (yield self._reader.begin(Opnum.R_CreateCursor, phContext=handle)).phCursor
        if (yield from self._read(handle, 1000, action=Action.MQ_ACTION_PEEK_CURRENT, cursor=cursor)):
            try:
                received = yield from self._read(handle, 1001, cursor=cursor)
            except Failed:  # another reader has it
                received = None
            if received is not None:
                yield from self._end(handle, 1001)
        yield from self._close(handle)

    def _several(self) -> Script:
        """Wait for several messages at once, and end them in the other order."""
        handle = yield from self._open()
        requests = range(1, 1 + self._args["count"])
        calls = [self._start(handle, request, timeout=_WAIT_MS) for request in requests]
        has = []
        for request, call in zip(requests, calls, strict=True):
            if (yield from self._result(call, request)) is not None:
                has.append(request)
        yield from self._hold()
        ends = [(request, self._begin_end(handle, request, connection=1)) for request in reversed(has)]
        for request, call in ends:
            yield from self._ended(request, call)
        yield from self._close(handle)

    def _other_connection(self) -> Script:
        """Receive over one connection, and end over the other, even if the first has broken."""
        handle = yield from self._open()
        if (yield from self._read(handle, 1)) is not None:
            yield from self._hold()
            yield from self._end(handle, 1, connection=1)
        yield self._reader.begin(Opnum.R_CloseQueue, connection=1, pphContext=handle)

    def _move(self) -> Script:
        """Move a message to a subqueue, and receive it there or back in the queue."""
        handle = yield from self._open()
        queue = self._args["queue"]
        target = yield self._reader.begin(
            Opnum.R_OpenQueueForMove, **self._opening(f"{queue};{SUBQUEUE}", Access.MQ_MOVE_ACCESS)
        )
        for request in range(1, 1 + self._args["count"]):
            seen = yield from self._read(handle, request, action=Action.MQ_ACTION_PEEK_CURRENT)
            if seen is None:
                break
            try:
                yield self._reader.begin(
                    Opnum.R_MoveMessage,
                    phContextFrom=handle,
                    ullContextTo=target.pMoveContext,
                    LookupId=seen.pSequenceId,
                    pTransactionId={"rgb": _NO_TRANSACTION},
                )
            except Failed:  # another reader has it
                continue
        there = yield from self._open(f"{queue};{SUBQUEUE}")
        if (yield from self._read(there, 1)) is not None:
            yield from self._hold()
            yield from self._end(there, 1)
        yield from self._close(handle)

    def _purge(self) -> Script:
        """Purge a queue while there is a message that is received and not ended."""
        handle = yield from self._open()
        received = yield from self._read(handle, 1)
        yield self._reader.begin(Opnum.R_PurgeQueue, phContext=handle)
        if received is not None:
            yield from self._hold()
            yield from self._end(handle, 1, _NACK)
        yield from self._close(handle)

    def _vanish(self) -> Script:
        """Receive, and vanish."""
        handle = yield from self._open()
        for request in range(1, 1 + self._args["count"]):
            if (yield from self._read(handle, request)) is None:
                break
        yield from self._hold()
        self._reader.vanish()

    # -- transactions ------------------------------------------------------------------------------------

    def _transaction(self, *, commit: bool, vanishes: bool = False) -> Script:
        """Receive in a transaction; reject every third message."""
        handle = yield from self._open()
        transaction = self._environment.guid()
        try:
            yield self._reader.begin(
                Opnum.R_QMEnlistRemoteTransaction,
                pTransactionId={"rgb": transaction.bytes_le},
                cbPropagationToken=len(_TOKEN),
                pbPropagationToken=_TOKEN,
                pQueueFormat=self._name(self._args["queue"]),
            )
            yield from self._receive_in(transaction, handle, vanishes=vanishes)
        except (ReaderLost, Failed):
            self._decide(transaction, commit=False)
            raise
        self._decide(transaction, commit=commit)
        yield from self._close(handle)

    def _decide(self, transaction: UUID, *, commit: bool) -> None:
        self.decided = commit
        self._coordinator.decide(transaction, commit=commit)

    def _receive_in(self, transaction: UUID, handle: ContextHandle, *, vanishes: bool) -> _Steps:
        for request in range(1, 1 + self._args["count"]):
            received = yield from self._read(handle, request, transaction=transaction)
            if received is None:
                break
            yield from self._hold()
            if vanishes and request == self._args["count"]:
                self._reader.vanish()
                return
            yield from self._end(handle, request, _NACK if request % 3 == 0 else _ACK, transactional=True)
            if request % 3 == 2:  # after the end, MQRR-3.1.4.14-03: till then it may go back
                yield self._reader.begin(
                    Opnum.R_SetUserAcknowledgementClass,
                    phContext=handle,
                    LookupId=received.pSequenceId,
                    usClass=int(MessageClass.MQMSG_CLASS_NACK_RECEIVE_REJECTED),
                )

    def _single(self) -> Script:
        """Receive in transactions of one message each."""
        handle = yield from self._open()
        for request in range(1, 1 + self._args["count"]):
            if (yield from self._read(handle, request, transaction=_SINGLE)) is None:
                break
            yield from self._hold()
            yield from self._end(handle, request, _NACK if request % 3 == 0 else _ACK, transactional=True)
        yield from self._close(handle)


CONNECTIONS: Final[Mapping[str, int]] = {"several": 2, "other connection": 2}
"""The number of connections of a program, if more than one."""
MODES: Final[Mapping[str, Callable[[ReadingProgram], Script]]] = {
    "accept": lambda its: its._receive(),
    "reject": lambda its: its._receive(kinds=(_NACK, _ACK)),
    "wait": lambda its: its._receive(timeout=_WAIT_MS),
    "late": ReadingProgram._late,
    "cancel": ReadingProgram._cancel,
    "look up": ReadingProgram._look_up,
    "walk": ReadingProgram._walk,
    "several": ReadingProgram._several,
    "other connection": ReadingProgram._other_connection,
    "move": ReadingProgram._move,
    "purge": ReadingProgram._purge,
    "vanish": ReadingProgram._vanish,
    "commit": lambda its: its._transaction(commit=True),
    "abort": lambda its: its._transaction(commit=False),
    "vanish in a transaction": lambda its: its._transaction(commit=True, vanishes=True),
    "single": ReadingProgram._single,
}
"""The scripts by the mode of an item."""
