"""The server of [MS-MQRR] 3.1: calls, cancellations and the end of associations go in, answers come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msmqwire.qm.model.caller import Caller
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.effects import RpcFault
from msmqwire.qm.protocols.remote_read.calls import (
    STATUS,
    Call,
    Refused,
    Results,
    answer,
    refuse,
)
from msmqwire.qm.protocols.remote_read.configuration import RemoteReadConfiguration
from msmqwire.qm.protocols.remote_read.contexts import QueueContexts
from msmqwire.qm.protocols.remote_read.opening import Opening
from msmqwire.qm.protocols.remote_read.receiving import RemoteReceiving
from msmqwire.qm.protocols.remote_read.shares import Shares
from msmqwire.qm.protocols.remote_read.transacting import Transacting
from msmqwire.qm.rules.identities import Identities
from msmqwire.qm.rules.messages import MessageEvents
from msmqwire.qm.rules.queues import Queues
from msmqwire.qm.rules.transactions import Transactions
from msmqwire.remote_read.constants import Opnum
from msmqwire.rpc.constants import FaultStatus

Method = Callable[[Call, Any], Results | None]
"""A method: returns the results of a successful call, None if it is answered by other means or later. Raises
Refused.
"""


class RemoteReadEngine:
    """Lets remote readers read the queues of this queue manager.

    Each call is answered exactly once, by an `RpcAnswer` or `RpcFault` with its number: immediately, or when
    the message that it waits for arrives. Calls on one handle run side by side: MQRR-2.2.4.1-01. The answer
    of a receive leaves its message locked. It is deleted when the client ends the receive, and returns to its
    queue if the client does not do so, closes the queue or vanishes.

    Args:
        context, messages, queues, transactions: parts of the core.
        identities: the users of the directory.
        configuration: the administrator's configuration.

    Attributes:
        port: the TCP port at which the interface is served, which R_GetServerPort returns; 0 for none.
        shares: the counts of open queues, cursors and reads by caller.
        contexts: the open queues of all clients. receiving, transacting: parts of the engine.
    """

    def __init__(
        self,
        context: Context,
        messages: MessageEvents,
        queues: Queues,
        transactions: Transactions,
        identities: Identities,
        configuration: RemoteReadConfiguration | None = None,
    ) -> None:
        configuration = configuration or RemoteReadConfiguration()
        self._context = context
        self.port = 0  # MQRR-3.1.4.1-02, MQRR-3.1.4.1-03, MQRR-3.1.4.1-07
        self.shares = Shares(configuration)
        self.contexts = QueueContexts(context.new_guid)
        self.receiving = RemoteReceiving(
            context, messages, transactions, queues.lookup, configuration, self.contexts, self.shares
        )
        self._opening = Opening(
            messages, queues, identities, configuration, self.contexts, self.shares, self.receiving
        )
        self.transacting = Transacting(
            context, messages, transactions, configuration, self.contexts, self.shares
        )
        self._methods: Final[Mapping[int, Method]] = {
            Opnum.R_GetServerPort: self._get_server_port,
            Opnum.R_OpenQueue: self._opening.open_queue,
            Opnum.R_CloseQueue: self._opening.close_queue,
            Opnum.R_CreateCursor: self._opening.create_cursor,
            Opnum.R_CloseCursor: self._opening.close_cursor,
            Opnum.R_PurgeQueue: self._opening.purge_queue,
            Opnum.R_StartReceive: self.receiving.start_receive,
            Opnum.R_CancelReceive: self.receiving.cancel_receive,
            Opnum.R_EndReceive: self.receiving.end_receive,
            Opnum.R_MoveMessage: self.transacting.move_message,
            Opnum.R_OpenQueueForMove: self._opening.open_queue_for_move,
            Opnum.R_QMEnlistRemoteTransaction: self.transacting.enlist,
            Opnum.R_StartTransactionalReceive: self.receiving.start_transactional_receive,
            Opnum.R_SetUserAcknowledgementClass: self.transacting.set_user_acknowledgement_class,
            Opnum.R_EndTransactionalReceive: self.receiving.end_transactional_receive,
        }

    def called(self, call: int, association: int, caller: Caller, opnum: int, arguments: Any) -> None:
        """A client calls a method: [MS-MQRR] 3.1.4.

        Args:
            call: a number that no other unanswered call has.
            association: an association group, or a connection if its client makes none: context handles are
                valid within it, and run down at its end.
            caller: the caller.
            opnum: the method.
            arguments: its in parameters, as attributes by their names in the IDL.
        """
        method = self._methods.get(opnum)
        if method is None:
            # MQRR-3.1.4-03, MQRR-3.1.4-04
            self._context.effects.append(RpcFault(call, FaultStatus.NCA_S_OP_RNG_ERROR))
            return
        kept = {"pphContext": arguments.pphContext} if opnum == Opnum.R_CloseQueue else {}
        its = Call(call, association, caller, opnum, kept)
        try:
            results = method(its, arguments)
        except Refused as refused:
            refuse(self._context, its, refused)
        else:
            if results is not None:
                answer(self._context, its, results)

    def cancelled(self, call: int) -> None:
        """A client has cancelled a call, or its connection is gone while its association goes on.

        A waiting read ends with a fault. A call that is already answered stays so: its client ends the
        receive, or its timer does.
        """
        self.receiving.cancelled(call)

    def association_lost(self, association: int) -> None:
        """RPC Failure Event, and the rundown of the handles of an association: [MS-MQRR] 3.1.6.

        Its remaining calls are not answered.
        """
        self.transacting.forget(association)
        # MQRR-3.1.6.1-01, MQRR-3.1.6.1-04, MQRR-3.1.6.2-01
        self._opening.run_down(self.contexts.of(association))

    def enlisted(self, request: int, *, done: bool) -> None:
        """An `EnlistTransaction` has been carried out, or has failed."""
        self.transacting.enlisted(request, done=done)

    def stop(self) -> None:
        """Queue Manager Stopped: end waiting reads, and return messages received and not ended to their
        queues.
        """
        self._opening.run_down(self.contexts, answers=True)

    def _get_server_port(self, call: Call, arguments: Any) -> Results:
        """R_GetServerPort: [MS-MQRR] 3.1.4.1."""
        return {STATUS: self.port}  # MQRR-3.1.4.1-02, MQRR-3.1.4.1-03, MQRR-3.1.4.1-07, MQRR-4.1-01
