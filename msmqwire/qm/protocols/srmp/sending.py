"""Sending messages: [MC-MQSRM] 3.1.7.2, 3.1.7.7, 3.1.7.9 and 3.1.6.1."""

from __future__ import annotations

from typing import Final

from msmqwire.constants import HResult, MessageClass
from msmqwire.errors import InvalidValue
from msmqwire.names import MulticastName
from msmqwire.names.printable import cut, safe
from msmqwire.qm.model.address import address_text
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.effects import Multicast
from msmqwire.qm.model.elements import ConnectionHistory, OutgoingQueue
from msmqwire.qm.model.enumerations import ConnectionStatus, OutgoingQueueState
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.model.refusals import MALFORMED
from msmqwire.qm.protocols.srmp.configuration import SrmpConfiguration
from msmqwire.qm.protocols.srmp.effects import HttpRequest
from msmqwire.qm.protocols.srmp.local_urls import LocalUrls
from msmqwire.qm.protocols.srmp.outgoing_streams import OutgoingStreams
from msmqwire.qm.protocols.srmp.queue_names import write_http
from msmqwire.qm.protocols.srmp.requests import build_request, forward_request
from msmqwire.qm.protocols.srmp.states import SrmpMessageEvent, SrmpMessageState
from msmqwire.qm.protocols.srmp.timers import SrmpTimer
from msmqwire.qm.protocols.srmp.transfer import OutgoingMessage, SrmpTransfer
from msmqwire.qm.rules.delivery_outcome import DeliveryOutcome
from msmqwire.qm.rules.dispatch import Dispatch
from msmqwire.qm.rules.message_identity import MessageIdentity
from msmqwire.qm.rules.queues import Queues
from msmqwire.qm.rules.sequence_identity import SequenceIdentity
from msmqwire.qm.rules.unreached import too_late
from msmqwire.qm.rules.waiting_messages import WaitingMessages, is_over
from msmqwire.srmp.http_message import HttpMessage

_REFUSED_FROM: Final = 400
_TOO_LATE: Final = MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT
_FAILED_FROM: Final = 500
_ACCEPTED: Final = range(200, 300)
_DOUBLINGS_MAX: Final = 20
_TEXT_MAX: Final = 100
_DETAIL_MAX: Final = 300


class SrmpSending:
    """Sends messages that wait in outgoing queues, and disposes of them according to the responses.

    A queue has one request under way at a time, so that its messages arrive in order.

    Args:
        identity, sequence_identity: the identities of messages and of streams.
        outcome: disposes of messages that are delivered or given up.
        configuration: the administrator's configuration.
        urls: the URLs of this queue manager.
    """

    def __init__(
        self,
        context: Context,
        queues: Queues,
        dispatch: Dispatch,
        identity: MessageIdentity,
        sequence_identity: SequenceIdentity,
        outcome: DeliveryOutcome,
        configuration: SrmpConfiguration,
        urls: LocalUrls,
    ) -> None:
        self._context, self._dispatch, self._queues = context, dispatch, queues
        self._identity, self._outcome = identity, outcome
        self._redirections, self._signer = configuration.redirections, configuration.signer
        self._urls = urls
        self.streams = OutgoingStreams(context, sequence_identity, outcome, self.send_waiting)
        self.transfers: dict[int, SrmpTransfer] = {}
        self._requests: dict[int, OutgoingMessage] = {}
        self._request = 0
        self._waiting = WaitingMessages(context, "SRMP", self._over)

    def transfer_of(self, queue: OutgoingQueue) -> SrmpTransfer:
        """Return the transfer of an outgoing queue, a new one for a new queue."""
        transfer = self.transfers.get(queue.number)
        if transfer is None:
            name = queue.destination
            url = "" if isinstance(name, MulticastName) else write_http(name, "destination")
            self.transfers[queue.number] = transfer = SrmpTransfer(queue, url)  # SRMP-3.1.1.1.6-04
        return transfer

    def forget(self, transfer: SrmpTransfer) -> None:
        """Remove an outgoing queue that has nothing to transfer."""
        del self.transfers[transfer.queue.number]
        for timer in _QUEUE_TIMERS:
            self._context.timers.stop(timer, transfer.queue.number)
        self._queues.forget(transfer.queue)

    # -- waiting messages -------------------------------------------------------------------------------

    def available(self, queue: OutgoingQueue, position: MessagePosition) -> None:
        """Message Position Available: [MC-MQSRM] 3.1.7.7."""
        message, transfer = position.message, self.transfer_of(queue)
        outgoing = transfer.add(position, message)  # SRMP-3.1.1.1.2.1-01, SRMP-3.1.7.7-03
        transfer.wait(outgoing)
        self.watch(outgoing, message)
        self.start_retransmission(transfer)
        self.send_waiting(transfer)

    def watch(self, outgoing: OutgoingMessage, message: Message) -> None:
        """Start the expiry timer of a message: its TimeToReachQueue ends even if nothing can be sent."""
        self._waiting.watch(outgoing, message, message.time_to_reach_queue)

    def _over(self, outgoing: OutgoingMessage, message: Message) -> None:
        """The expiry timer of a message has fired; it counts only if the clock, which may be set, agrees.

        A message whose response is awaited may be in its queue: the response decides.
        """
        if not _has_expired(message, self._context.utc):
            self.watch(outgoing, message)
        elif outgoing.state is SrmpMessageState.WAIT_FOR_RESPONSE:
            outgoing.overdue = True
        else:
            self._expire(outgoing, message)
            self.send_waiting(outgoing.transfer)

    def _answered_late(self, outgoing: OutgoingMessage) -> None:
        """A message that still waits for a receipt has been answered: its time may have ended earlier."""
        if outgoing.overdue and not outgoing.is_done:
            self._over(outgoing, outgoing.position.message)

    def send_waiting(self, transfer: SrmpTransfer) -> None:
        """Send the next message, unless a response is awaited or sending fails for now."""
        # SRMP-3.1.7.2.5-01, SRMP-3.1.1.4.2-02
        while transfer.under_way is None and not (transfer.blocked or transfer.is_held):
            if not self._context.queue_manager.connection_active:
                return
            outgoing = transfer.next_waiting()
            if outgoing is None:
                return
            self._dispatch.add(outgoing.position, outgoing, -outgoing.urgency[0])  # SRMP-3.1.7.7-05
            if outgoing.state is SrmpMessageState.PREPARE_TO_SEND:
                return  # it can't be sent now

    def send(self, outgoing: OutgoingMessage) -> None:
        """Send User Message: [MC-MQSRM] 3.1.7.2."""
        transfer, queue = outgoing.transfer, outgoing.transfer.queue
        if outgoing.state is not SrmpMessageState.PREPARE_TO_SEND or transfer.under_way is not None:
            return
        if transfer.blocked or transfer.is_held:
            return
        message = outgoing.position.message
        if _has_expired(message, self._context.utc):
            self._expire(outgoing, message)  # SRMP-3.1.7.2-01
            self.send_waiting(transfer)
            return
        self._identity.identify(message)  # SRMP-3.1.7.2.2-02, SRMP-3.1.7.2-01
        if outgoing.stream:
            if not outgoing.tx_sequence_number and not self.streams.can_number(transfer):
                return
            self._number(outgoing, message)  # SRMP-3.1.7.2-01
        try:
            request = self._build(message, transfer)
        except InvalidValue as exc:
            why = f"it can't be sent: {exc!s:.400}"
            self._give_up(outgoing, message, SrmpMessageEvent.GIVEN_UP, MALFORMED, why=why)
            self.send_waiting(transfer)
            return
        if queue.state is not OutgoingQueueState.CONNECTED:  # SRMP-3.1.7.7-04 and -06, SRMP-3.1.7.5-02
            self._connect(transfer)
        self._request += 1
        outgoing.request, transfer.under_way = self._request, outgoing
        self._requests[self._request] = outgoing
        outgoing.step(SrmpMessageEvent.SENT)
        self._waiting.moved()
        if isinstance(queue.destination, MulticastName):  # SRMP-3.1.7.9-02 and SRMP-2.1.2-01
            name = queue.destination
            self._context.effects.append(
                Multicast(self._request, str(name.address), name.port, request.to_bytes())
            )
        else:
            url = self._redirections.outbound(transfer.url)  # SRMP-3.1.7.9-03, -04, -05
            self._context.effects.append(HttpRequest(self._request, url, request))
            if outgoing.stream:  # SRMP-3.1.3.2-02
                self.streams.await_receipt(transfer)

    def _number(self, outgoing: OutgoingMessage, message: Message) -> None:
        """Outgoing Stream Message Processing; numbers are kept when it is sent again: 3.1.7.2.3."""
        if not outgoing.tx_sequence_number:
            self.streams.number(outgoing)  # SRMP-3.1.7.2.3-08
        message.transactional_message_sequence_identifier = outgoing.tx_sequence_id
        message.transaction_sequence_number = outgoing.tx_sequence_number
        message.transaction_previous_sequence_number = outgoing.previous_number

    def _build(self, message: Message, transfer: SrmpTransfer) -> HttpMessage:
        manager = self._context.queue_manager
        if message.soap_compound_message:
            return forward_request(message, queue_manager=manager.identifier, computer=manager.computer_name)
        administration = message.administration if message.acknowledgements_requested else None
        own = self._urls.order_queue(transfer.url, administration)  # SRMP-3.1.7.2.4-20
        receipts_url = self._redirections.receipts_url(transfer.url, own)
        return build_request(
            message, queue_manager=manager.identifier, receipts_url=receipts_url, signer=self._signer
        )

    def _connect(self, transfer: SrmpTransfer) -> None:
        """Establish Transport Connection: [MC-MQSRM] 3.1.7.9. The transport connects on demand."""
        transfer.queue.state = OutgoingQueueState.WAITING  # SRMP-3.1.7.9-01
        self._record(transfer, ConnectionStatus.IN_PROCESS, 0)
        if isinstance(transfer.queue.destination, MulticastName):  # SRMP-3.1.7.2.5-08
            self._connected(transfer)  # PGM begins with the data

    def _connected(self, transfer: SrmpTransfer) -> None:
        """The transport has its connection, which ends what `_connect` began."""
        if transfer.queue.state is OutgoingQueueState.WAITING:
            transfer.queue.state = OutgoingQueueState.CONNECTED
            self._start_cleanup(transfer)

    def _record(self, transfer: SrmpTransfer, status: ConnectionStatus, error: int, detail: str = "") -> None:
        queue = transfer.queue
        addresses = tuple(hop.partition("=")[2] for hop in queue.next_hops)
        queue.connection_history.append(
            ConnectionHistory(status, self._context.utc, error, addresses, detail)  # DMPR-3.1.1.3-12
        )

    # -- outcome ----------------------------------------------------------------------------------------

    def reached(self, request: int, address: str) -> None:
        """A request is sent over a connection to an address."""
        outgoing = self._requests.get(request)
        if outgoing is not None:
            outgoing.sent = True
            _note_address(outgoing.transfer.queue, address)
            self._connected(outgoing.transfer)
            if not outgoing.is_done:  # else its message is gone from the store
                self._outcome.transmitted(outgoing.position.message, outgoing.transfer.queue, "")

    def answered(self, request: int, status: int, text: str, address: str) -> SrmpTransfer | None:
        """A request was answered from an address, or handed to PGM: [MC-MQSRM] 3.1.7.2.5. Return its
        transfer, if any.
        """
        if (known := self._requests.get(request)) is not None:
            _note_address(known.transfer.queue, address)
            self._connected(known.transfer)
        outgoing = self._taken(request)
        if outgoing is None:
            return None
        answer = _answer(status, text)
        if status in _ACCEPTED:  # SRMP-3.1.7.2.5-07
            self._accepted(outgoing)
        elif _REFUSED_FROM <= status < _FAILED_FROM and status not in self._context.settings.retry_statuses:
            self._start_cleanup(outgoing.transfer)
            message = outgoing.position.message
            self._give_up(outgoing, message, SrmpMessageEvent.REFUSED, f"HTTP {status}", why=answer)
        else:
            self._failed(outgoing, f"answers {answer}", answer)
        self.send_waiting(outgoing.transfer)
        return outgoing.transfer

    def failed(self, request: int, reason: str) -> None:
        """A request was not answered in time, or could not be sent."""
        known = self._requests.get(request)
        if known is not None and known.transfer.queue.state is OutgoingQueueState.WAITING:
            known.transfer.queue.state = OutgoingQueueState.INACTIVE
        outgoing = self._taken(request)  # SRMP-3.1.7.1-01
        if outgoing is not None:
            self._failed(outgoing, reason)

    def _taken(self, request: int) -> OutgoingMessage | None:
        """Return the message of a request; None if it has been deleted or renumbered since."""
        outgoing = self._requests.pop(request, None)
        if outgoing is None:
            return None
        transfer = outgoing.transfer
        if transfer.under_way is outgoing:
            transfer.under_way = None
        if outgoing.state is not SrmpMessageState.WAIT_FOR_RESPONSE:
            self._answered_late(outgoing)
            self.send_waiting(transfer)
            return None
        if outgoing.request != request:
            outgoing.step(SrmpMessageEvent.FAILED)
            outgoing.step(SrmpMessageEvent.RETRANSMISSION_TIMER)
            transfer.wait(outgoing)
            self.send_waiting(transfer)
            return None
        return outgoing

    def _accepted(self, outgoing: OutgoingMessage) -> None:
        transfer = outgoing.transfer
        if transfer.failures or not _is_established(transfer.queue):
            self._record(transfer, ConnectionStatus.ESTABLISHED, 0)
        transfer.failures, transfer.answer = 0, ""
        self._start_cleanup(transfer)
        outgoing.step(SrmpMessageEvent.ACCEPTED)
        if not outgoing.is_done:  # SRMP-3.1.7.2.5-03
            self.streams.await_receipt(transfer)  # its queue may have been paused since it was sent
            self._answered_late(outgoing)
            return
        transfer.remove(outgoing)
        self._outcome.delivered(outgoing.position)  # SRMP-3.1.7.2.5-02, SRMP-3.1.1.1.2.1-08

    def _failed(self, outgoing: OutgoingMessage, reason: str, answer: str = "") -> None:
        """The transfer of a message has failed: it waits for the Retransmission Timer."""
        transfer, queue = outgoing.transfer, outgoing.transfer.queue
        outgoing.step(SrmpMessageEvent.FAILED)
        transfer.failed, transfer.blocked = outgoing, True  # SRMP-3.1.2.1-02
        transfer.failures, transfer.answer = transfer.failures + 1, answer
        if transfer.failures == 1:
            self._context.trouble("unreachable", f"{transfer.url or queue.label:.200}: {reason:.200}")
        self._record(
            transfer, ConnectionStatus.SOCKET_CONNECT_FAILURE, HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE,
            reason[:_DETAIL_MAX],
        )  # fmt: skip
        self.streams.stop_waiting(transfer)  # SRMP-3.1.7.2.5-06
        if not transfer.is_held:
            queue.state = OutgoingQueueState.INACTIVE
        self._dispatch.remove_queue(queue)
        message = outgoing.position.message
        if _has_expired(message, self._context.utc):
            self._expire(outgoing, message)
        self.start_retransmission(transfer)

    def _expire(self, outgoing: OutgoingMessage, message: Message) -> None:
        transfer, why = outgoing.transfer, ""
        if not outgoing.sent:  # else the destination may have it
            why = too_late(transfer.queue, transfer.url)
        self._give_up(outgoing, message, SrmpMessageEvent.EXPIRED, _TOO_LATE, why=why)

    def _give_up(
        self,
        outgoing: OutgoingMessage,
        message: Message,
        event: SrmpMessageEvent,
        reason: int | str,
        *,
        why: str = "",
    ) -> None:
        """Delete a message, dead-lettered if it asks for that: [MC-MQSRM] 3.1.7.2.1 and 3.1.7.2.5."""
        self.removed(outgoing, event)
        self._outcome.report(message, delivered=False, reason=why or None)
        # SRMP-3.1.7.2.1-03, SRMP-3.1.1.1.2.1-10 and -11, SRMP-3.1.1.1.2.4-12
        self._outcome.dead_letter(outgoing.position, message, reason, why=why)

    def give_up(self, outgoing: OutgoingMessage) -> None:
        """Give up a peer's message to an unreachable destination."""
        self._give_up(
            outgoing,
            outgoing.position.message,
            SrmpMessageEvent.GIVEN_UP,
            _TOO_LATE,
            why="it can't be reached",
        )

    def removed(self, outgoing: OutgoingMessage, event: SrmpMessageEvent = SrmpMessageEvent.GIVEN_UP) -> None:
        """A message no longer has to be sent."""
        outgoing.step(event)
        outgoing.transfer.remove(outgoing)
        self.streams.given_up(outgoing)

    def purged(self, outgoing: OutgoingMessage) -> None:
        """An administrator deletes a message from its queue."""
        message, arrived = (
            outgoing.position.message,
            outgoing.state is SrmpMessageState.WAIT_FOR_FINAL_RECEIPT,
        )
        self.removed(outgoing)
        if not arrived:
            self._outcome.report(message, delivered=False)

    def dispatched(self, position: MessagePosition) -> None:
        """Remove Message From Dispatch Collection: [MC-MQSRM] 3.1.7.8."""
        self._dispatch.remove(position)  # SRMP-3.1.7.8-01

    # -- timers -----------------------------------------------------------------------------------------

    def start_retransmission(self, transfer: SrmpTransfer) -> None:
        """Start the Retransmission Timer unless it runs: [MC-MQSRM] 3.1.2.1.

        Its time doubles with each failure unless a local application sends there.
        """
        settings, key = self._context.settings, transfer.queue.number
        if self._context.timers.active(SrmpTimer.RETRANSMISSION, key):
            return
        delay = settings.retransmission_timeout_ms  # SRMP-3.1.2.1-01, SRMP-3.1.1.1.5-08, SRMP-3.1.3.1-05
        if transfer.queue.asked_by and transfer.failures:
            longest = max(settings.session_retry_connect_max_ms, delay)
            delay = min(delay << min(transfer.failures - 1, _DOUBLINGS_MAX), longest)
        self._context.timers.start(SrmpTimer.RETRANSMISSION, key, delay, lambda: self._retransmit(transfer))

    def _retransmit(self, transfer: SrmpTransfer) -> None:
        """Retransmission Timer Event: [MC-MQSRM] 3.1.6.1.

        Messages that wait for a stream receipt are left to the Stream Receipt Wait Timer: SRMP-3.1.6.1-04.
        """
        if transfer.is_held:
            return
        if transfer.messages:
            self.resume(transfer)
        else:
            transfer.blocked = False

    def resume(self, transfer: SrmpTransfer) -> None:
        """Send all failed messages again."""
        transfer.blocked = False  # SRMP-3.1.6.1-01 and -02
        failed, transfer.failed = transfer.failed, None  # SRMP-3.1.6.1-01 and -02
        if failed is not None and failed.state is SrmpMessageState.WAIT_FOR_RETRANSMISSION:
            failed.step(SrmpMessageEvent.RETRANSMISSION_TIMER)  # SRMP-3.1.1.3-01
            transfer.wait(failed)
        self.start_retransmission(transfer)  # SRMP-3.1.6.1-03
        if any(
            message.state is SrmpMessageState.WAIT_FOR_STREAM_RECEIPT for message in transfer.unacknowledged
        ):
            self.streams.await_receipt(transfer)
        self.send_waiting(transfer)  # SRMP-3.1.6.1-01 and -02

    def resend(self, transfer: SrmpTransfer) -> None:
        """Send the stream messages without a receipt again now, or once the queue is resumed."""
        self.streams.resend(transfer)  # MQMR-3.1.4.2-25
        if not transfer.is_held and transfer.unacknowledged:
            self.resume(transfer)

    def pause(self, transfer: SrmpTransfer) -> None:
        """Pause Queue Event: [MC-MQSRM] 3.1.7.4."""
        for timer in _QUEUE_TIMERS:
            self._context.timers.stop(timer, transfer.queue.number)
        self._dispatch.remove_queue(transfer.queue)  # SRMP-3.1.7.4-02

    def _start_cleanup(self, transfer: SrmpTransfer) -> None:
        """Start the Session Cleanup Timer: SRMP-3.1.7.2.5-04, SRMP-3.1.7.9-06."""
        queue = transfer.queue
        self._context.timers.start(
            # SRMP-3.1.2.4-01
            SrmpTimer.SESSION_CLEANUP, queue.number, self._context.settings.session_cleanup_ms,
            lambda: self._clean_up(queue),
        )  # fmt: skip

    def _clean_up(self, queue: OutgoingQueue) -> None:
        """Session Cleanup Timer Event: [MC-MQSRM] 3.1.6.4. The transport has closed the connection by now."""
        if queue.state is OutgoingQueueState.CONNECTED:
            queue.state = OutgoingQueueState.DISCONNECTED  # SRMP-3.1.6.4-01


def _has_expired(message: Message, utc: int) -> bool:
    return is_over(message, message.time_to_reach_queue, utc)  # SRMP-3.1.7.2.1-01


def _answer(status: int, text: str) -> str:
    """Return a status code and its text in one line, truncated if it is long."""
    return f"HTTP {status} {cut(safe(text), _TEXT_MAX)}".rstrip()


def _note_address(queue: OutgoingQueue, address: str) -> None:
    """Note the address of the server that a queue is sent to; empty if it is not known."""
    if address:
        queue.next_hops = [address_text(address)]  # DMPR-3.1.1.3-02


def _is_established(queue: OutgoingQueue) -> bool:
    history = queue.connection_history
    return bool(history) and history[-1].status is ConnectionStatus.ESTABLISHED


_QUEUE_TIMERS: Final = (SrmpTimer.RETRANSMISSION, SrmpTimer.STREAM_RECEIPT_WAIT, SrmpTimer.SESSION_CLEANUP)
