"""Queues opened and closed, cursors, purging: [MS-MQRR] 3.1.4.2 to 3.1.4.6, 3.1.4.11 and 3.1.6."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any, Final

from msmqwire.constants import QUEUE_FORMAT_TYPE, HResult
from msmqwire.constants.ntstatus import NtStatus
from msmqwire.errors import InvalidName
from msmqwire.names import DirectName, FormatName
from msmqwire.qm.model import access
from msmqwire.qm.model.caller import Caller
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import QueueAccessType, QueueShareMode
from msmqwire.qm.protocols.remote_read.calls import Call, Refused, Results
from msmqwire.qm.protocols.remote_read.configuration import RemoteReadConfiguration
from msmqwire.qm.protocols.remote_read.contexts import QueueContext, QueueContexts, cursor_of
from msmqwire.qm.protocols.remote_read.receiving import RemoteReceiving
from msmqwire.qm.protocols.remote_read.shares import Shares
from msmqwire.qm.rules.identities import Identities
from msmqwire.qm.rules.messages import MessageEvents
from msmqwire.qm.rules.queues import Queues
from msmqwire.remote_read.constants import Access, ShareMode
from msmqwire.rpc.handles import NULL_HANDLE
from msmqwire.rpc.queue_format import name_of

_KINDS: Final = frozenset(
    {
        QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_PUBLIC,
        QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_PRIVATE,
        QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_DIRECT,
        QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_MACHINE,
        QUEUE_FORMAT_TYPE.QUEUE_FORMAT_TYPE_SUBQUEUE,
    }
)
"""The kinds of names that queues can be opened by: MQRR-3.1.4.2-24."""
_PROTOCOLS: Final = ("TCP", "OS")  # MQRR-2.2.3-02
_CURSOR_NUMBERS: Final = 0xFFFFFFFF
_INVALID: Final = HResult.MQ_ERROR_INVALID_PARAMETER


class Opening:
    """The methods that open and close queues and cursors, and the rundown of clients that have gone."""

    def __init__(
        self,
        messages: MessageEvents,
        queues: Queues,
        identities: Identities,
        configuration: RemoteReadConfiguration,
        contexts: QueueContexts,
        shares: Shares,
        receiving: RemoteReceiving,
    ) -> None:
        self._messages, self._queues, self._identities = messages, queues, identities
        self._configuration, self._contexts = configuration, contexts
        self._shares, self._receiving = shares, receiving
        self._cursors = count(1)

    def open_queue(self, call: Call, arguments: Any) -> Results:
        """R_OpenQueue: [MS-MQRR] 3.1.4.2."""
        name = format_name(arguments.pQueueFormat)
        if arguments.dwShareMode not in iter(ShareMode):
            raise Refused(_INVALID)
        receives = arguments.dwAccess == Access.RECEIVE_ACCESS  # MQRR-3.1.4.2-06, MQRR-3.1.4.2-26
        wanted = QueueAccessType.RECEIVE_ACCESS if receives else QueueAccessType.PEEK_ACCESS
        return {"pphContext": self._open(call, name, wanted, arguments.dwShareMode).handle}

    def open_queue_for_move(self, call: Call, arguments: Any) -> Results:
        """R_OpenQueueForMove: [MS-MQRR] 3.1.4.11. A subqueue is created by its first opening."""
        name = format_name(arguments.pQueueFormat)
        # MQRR-3.1.4.11-17
        context = self._open(call, name, QueueAccessType.MOVE_ACCESS, arguments.dwShareMode)
        return {"pMoveContext": context.move_context, "pphContext": context.handle}

    def _token(self, caller: Caller) -> access.Token:
        """Return the token of a caller, with the groups that the directory has of its SID."""
        token = caller.token
        groups = frozenset() if caller.is_anonymous else self._identities.groups_of(token.user)
        return access.Token(token.user, token.groups | groups)

    def _open(self, call: Call, name: FormatName, wanted: QueueAccessType, share_mode: int) -> QueueContext:
        caller, for_move = call.caller, wanted is QueueAccessType.MOVE_ACCESS
        if caller.is_anonymous and not self._configuration.anonymous:  # MQRR-2.1-07
            raise Refused(HResult.MQ_ERROR_ACCESS_DENIED)
        # Without outgoing queues, which Open Queue would find as well.
        queue = self._queues.lookup.find(name)
        if queue is None and for_move:
            queue = self._parent(name)
        if queue is None:
            raise Refused(HResult.MQ_ERROR_QUEUE_NOT_FOUND)  # MQRR-3.1.4.2-25, MQRR-3.1.4.11-16
        token = self._token(caller)
        shared = share_mode == ShareMode.MQ_DENY_NONE  # MQRR-3.1.4.2-26, MQRR-3.1.4.11-17
        denies = QueueShareMode.DENY_NONE if shared else QueueShareMode.DENY_RECEIVE
        self._shares.handles.take(caller.counted_as)
        status, descriptor = self._queues.open(name, wanted, denies, user=token)  # MQRR-2.1-07
        if descriptor is None:
            self._shares.handles.give_back(caller.counted_as)
            raise Refused(status)  # MQRR-3.1.4.2-27, MQRR-3.1.4.11-17, MQRR-3.1.4.11-18
        return self._contexts.add(call, descriptor, for_move=for_move)

    def _parent(self, name: FormatName) -> Queue | None:
        """Return the queue in which a subqueue may be created. Raises Refused if it has too many
        subqueues.
        """
        if not isinstance(name, DirectName) or name.subqueue is None or name.journal:
            return None
        parent = self._queues.lookup.find(
            DirectName(name.protocol, name.address, name.queue, private=name.private)
        )
        if parent is not None and len(parent.subqueues) >= self._configuration.subqueues_max:
            raise Refused(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES)
        return parent

    def close_queue(self, call: Call, arguments: Any) -> Results:
        """R_CloseQueue: [MS-MQRR] 3.1.4.3."""
        context = self._contexts.find(call, arguments.pphContext)
        self.run_down([context], answers=True)  # MQRR-2.2.4.2-01, MQRR-4.1-01
        return {"pphContext": NULL_HANDLE}  # MQRR-3.1.4.3-07, MQRR-4.1-01

    def run_down(self, contexts: Iterable[QueueContext], *, answers: bool = False) -> None:
        """Queue Context Handles Rundown Routine, and R_CloseQueue: [MS-MQRR] 3.1.6.1 and 3.1.6.2.

        First all waiting reads on the queues end, then the messages received and not ended return: otherwise
        a waiting reader that is about to end could get one.
        """
        contexts = list(contexts)
        for context in contexts:
            self._receiving.stop_all(context, answers=answers)  # MQRR-3.1.4.3-04, MQRR-3.1.6.1-03
            self._shares.cursors.give_back(context.caller.counted_as, len(context.cursors))
            # MQRR-3.1.4.3-04, MQRR-3.1.6.1-02, MQRR-3.1.6.1-03, MQRR-3.1.6.2-03, MQRR-3.1.1.1-01
            self._queues.close(context.descriptor)
            self._shares.handles.give_back(context.caller.counted_as)
            self._contexts.remove(context)  # MQRR-3.1.6.2-06, MQRR-2.2.4.2-01
        for context in contexts:
            # MQRR-3.1.4.3-05, MQRR-3.1.4.3-06, MQRR-3.1.6.2-04, MQRR-3.1.6.2-05
            self._receiving.release_all(context)

    def create_cursor(self, call: Call, arguments: Any) -> Results:
        """R_CreateCursor: [MS-MQRR] 3.1.4.4."""
        context = self._contexts.find(call, arguments.phContext)
        self._shares.cursors.take(context.caller.counted_as)
        cursor = self._queues.open_cursor(context.descriptor)  # MQRR-3.1.4.4-04
        if cursor is None:
            self._shares.cursors.give_back(context.caller.counted_as)
            raise Refused(HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE)
        number = self._number(context)
        context.cursors[number] = cursor  # MQRR-3.1.4.4-04
        return {"phCursor": number}

    def _number(self, context: QueueContext) -> int:
        # MQRR-3.1.4.4-06
        while (number := next(self._cursors) % (_CURSOR_NUMBERS + 1)) in context.cursors or not number:
            pass
        return number

    def close_cursor(self, call: Call, arguments: Any) -> Results:
        """R_CloseCursor: [MS-MQRR] 3.1.4.5."""
        context = self._contexts.find(call, arguments.phContext)
        cursor = cursor_of(context, arguments.hCursor)
        del context.cursors[arguments.hCursor]
        self._shares.cursors.give_back(context.caller.counted_as)
        self._queues.close_cursor(cursor)  # MQRR-3.1.4.5-05
        return {}

    def purge_queue(self, call: Call, arguments: Any) -> Results:
        """R_PurgeQueue: [MS-MQRR] 3.1.4.6."""
        descriptor = self._contexts.find(call, arguments.phContext).descriptor
        if descriptor.access_type is not QueueAccessType.RECEIVE_ACCESS:
            raise Refused(NtStatus.STATUS_ACCESS_DENIED)  # MQRR-3.1.4.6-05, MQRR-4.1-02
        if descriptor.queue is None:
            raise Refused(HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE)
        self._messages.purge(descriptor.queue)  # MQRR-3.1.4.6-04, MQRR-4.1-01
        return {}


def format_name(queue_format: Any) -> FormatName:
    """Return the name in a QUEUE_FORMAT. Raises Refused for a name by which no queue can be opened."""
    if queue_format.m_qft not in _KINDS:  # MQRR-3.1.4.2-24, MQRR-3.1.4.11-18, MQRR-2.2.3-01
        raise Refused(_INVALID)
    try:
        name = name_of(queue_format)
    except InvalidName:
        raise Refused(_INVALID) from None
    if name is None or (isinstance(name, DirectName) and name.protocol not in _PROTOCOLS):
        raise Refused(_INVALID)
    return name
