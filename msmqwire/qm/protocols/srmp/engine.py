"""The engine of SRMP, [MC-MQSRM] 3.1: its parts, and the events from outside."""

from __future__ import annotations

from collections.abc import Iterator

from msmqwire.constants import MessageClass
from msmqwire.names import FormatName, MulticastName
from msmqwire.qm.model.elements import OutgoingQueue, Queue
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.protocols.interface import JoinedProtocol
from msmqwire.qm.protocols.srmp import restoring
from msmqwire.qm.protocols.srmp.configuration import SrmpConfiguration
from msmqwire.qm.protocols.srmp.effects import HttpResponse
from msmqwire.qm.protocols.srmp.incoming_streams import IncomingStreams
from msmqwire.qm.protocols.srmp.local_urls import LocalUrls
from msmqwire.qm.protocols.srmp.needs import SrmpNeeds
from msmqwire.qm.protocols.srmp.on_demand import is_awaited
from msmqwire.qm.protocols.srmp.places import HttpPlaces
from msmqwire.qm.protocols.srmp.queue_names import is_http
from msmqwire.qm.protocols.srmp.receipt_sending import ReceiptSending
from msmqwire.qm.protocols.srmp.receiving import SERVICE_UNAVAILABLE, SrmpReceiving
from msmqwire.qm.protocols.srmp.sending import SrmpSending
from msmqwire.qm.protocols.srmp.transfer import OutgoingMessage, SrmpTransfer
from msmqwire.qm.rules.recovery import Stored
from msmqwire.qm.rules.unreached import last_failure
from msmqwire.srmp.http_message import HttpMessage

DEADLETTERED = frozenset(
    {
        MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT,
        MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT,
        MessageClass.MQMSG_CLASS_NACK_DELETED,
        MessageClass.MQMSG_CLASS_NACK_Q_PURGED,
    }
)
"""The ends of messages that go to the dead-letter queue of the receiver: SRMP-3.1.7.3.2-01."""


class SrmpEngine(JoinedProtocol):
    """Transfers messages by [MC-MQSRM]: requests, responses, events and the time go in, effects come out.

    Args:
        core: the parts of the core that it uses.
        configuration: the administrator's configuration.

    Attributes:
        context: the context, shared with the rules of [MS-MQDMPR].
        transfers: the transfers of the outgoing queues that it serves, by the number of the queue.
        urls: the URLs of this queue manager.
    """

    def __init__(self, core: SrmpNeeds, configuration: SrmpConfiguration | None = None) -> None:
        self.context, self._messages = core.context, core.messages
        context, messages, queues = core.context, core.messages, core.queues
        configuration = configuration or SrmpConfiguration()
        self.urls = LocalUrls(context, queues.lookup)
        self.sending = SrmpSending(
            context, queues, core.dispatch, core.identity, core.sequence_identity, core.outcome,
            configuration, self.urls,
        )  # fmt: skip
        self.transfers = self.sending.transfers
        self.receipts = ReceiptSending(context, core.identity, core.system_messages)
        self.incoming = IncomingStreams(context, core.incoming_sequences, self.receipts.stream)
        self.places = HttpPlaces(
            context, queues.lookup, core.queue_memory, self.transfers,
            forget=self.sending.forget, give_up=self._give_up_all,
        )  # fmt: skip
        self.receiving = SrmpReceiving(
            context,
            messages,
            queues,
            configuration,
            history=core.history,
            system_messages=core.system_messages,
            incoming=self.incoming,
            outgoing=self.sending.streams,
            places=self.places,
        )
        core.system_messages.when_due_by_http = self.receipts.due

    # -- start and stop -----------------------------------------------------------------------------

    def start(self, stored: Stored) -> None:
        """Queue Manager Started: [MC-MQSRM] 3.1.4.1. The queues have been restored."""
        self.urls.restore(stored)
        restoring.restore_transfers(stored, self.context.queue_manager, self.sending)  # SRMP-3.1.4.1-01
        self.incoming.restore()
        for transfer in list(self.transfers.values()):
            self.sending.start_retransmission(transfer)  # SRMP-3.1.3.1-06
            self.sending.send_waiting(transfer)  # SRMP-3.1.4-01

    def stop(self) -> None:
        """Queue Manager Stopped: nothing is sent afterwards."""
        self.context.queue_manager.connection_active = False

    def acknowledge_received(self) -> None:
        """Acknowledge everything received so far without waiting for more. The owner calls this before
        `stop`.
        """
        self.incoming.acknowledge_all()

    # -- from the transport -------------------------------------------------------------------------

    def requested(
        self, request: int, http: HttpMessage, address: str, local_address: str | None = None
    ) -> None:
        """A request has come by HTTP or HTTPS from an address.

        It is answered by an `HttpResponse` with its number. While the queue manager is offline its sender has
        to try again. From now on the local address of the request
        counts as one of this computer, which ``to`` may name.
        """
        if local_address is not None:
            self.urls.is_at(local_address)
        if not self.context.queue_manager.connection_active:  # MQMR-3.1.4.2-15
            self.context.effects.append(HttpResponse(request, SERVICE_UNAVAILABLE))
            return
        # SRMP-3-01
        place = len(self.context.effects)  # the response comes before receipts: SRMP-3.1.1.1.2.2-04
        status = self.receiving.take(http, address)
        self.context.effects.insert(place, HttpResponse(request, status))  # SRMP-3-01, SRMP-3.1.1.1.2.2-04

    def multicast_received(self, data: bytes, address: str, group: str, port: int) -> None:
        """A request has come by PGM from an address to a group and port; it gets no answer."""
        if self.context.queue_manager.connection_active:  # MQMR-3.1.4.2-15
            self.receiving.take_multicast(data, address, MulticastName(group, port))

    def reached(self, request: int, address: str = "") -> None:
        """A request is being sent over a connection to an address of its server."""
        self.sending.reached(request, address)

    def answered(self, request: int, status: int, address: str = "", text: str = "") -> None:
        """A request was answered with a status code from an address, or handed to PGM, which counts as a 200.

        `text` is the reason phrase after the code; it may contain anything.
        """
        transfer = self.sending.answered(request, status, text, address)
        if transfer is not None and address:
            self.places.reached(transfer, address)

    def failed(self, request: int, reason: str) -> None:
        """A request was not answered in time, or could not be sent."""
        self.sending.failed(request, reason)

    # -- from the core ----------------------------------------------------------------------------------

    def serves(self, queue: OutgoingQueue) -> bool:
        """Return whether this protocol carries the messages of a queue: SRMP-3.1.7.7-01."""
        return queue.multicast or is_http(queue.destination)

    def may_send_to(self, name: FormatName, origin: str) -> bool:
        """Return whether an outgoing queue may be opened on behalf of a message from an origin."""
        return self.places.may_send_to(name, origin)

    def leads_back(self, name: FormatName, origin: str) -> bool:
        """Return whether messages to a name go to an origin, as far as is known."""
        return self.places.leads_back(name, origin)

    def message_position_available(self, queue: Queue, position: MessagePosition) -> None:
        """[MC-MQSRM] 3.1.7.7."""
        if isinstance(queue, OutgoingQueue) and self.serves(queue):
            self.sending.available(queue, position)  # SRMP-3.1.1.1.3-04, SRMP-3.1.7-01

    def message_position_deleted(self, queue: Queue, position: MessagePosition, reason: int) -> None:
        """[MC-MQSRM] 3.1.7.3. Commitment receipts are acknowledgements, which the core sends."""
        if isinstance(queue, OutgoingQueue):
            transfer = self.transfers.get(queue.number)
            outgoing = transfer.messages.get(position) if transfer else None
            if transfer is not None and outgoing is not None:
                self.sending.purged(outgoing)
            return
        if not is_awaited(queue, position):  # SRMP-3.1.7.3-01, SRMP-3.1.7-01
            return
        message = position.message
        if message.transactional:
            # SRMP-3.1.7.3.3-01, SRMP-3.1.1.1.2.6-03
            self.receipts.final(message, self.incoming.send_receipts_to(message), reason)  # SRMP-3.1.1.4.3-01
        # SRMP-3.1.7.3.2-02
        elif reason in DEADLETTERED and self.context.queue_manager.system_deadletter_queue is not None:
            # SRMP-3.1.5.2.1.1-01, SRMP-3.1.1.1.2.3-04, SRMP-3.1.1.1.3-02
            self._messages.journal(message, self.context.queue_manager.system_deadletter_queue)

    def queue_paused(self, queue: OutgoingQueue) -> None:
        """Pause Queue Event: [MC-MQSRM] 3.1.7.4."""
        transfer = self.transfers.get(queue.number)
        if transfer is not None:
            self.sending.pause(transfer)  # SRMP-3.1.7-01

    def queue_resumed(self, queue: OutgoingQueue) -> None:
        """Resume Queue Event: [MC-MQSRM] 3.1.7.5."""
        transfer = self.transfers.get(queue.number)
        if transfer is not None and not transfer.is_held:
            self.sending.resume(transfer)  # SRMP-3.1.7.5-01 and -02, SRMP-3.1.7-01

    def taken_offline(self) -> None:
        """Take Offline: a request under way is awaited, and nothing else is sent."""

    def brought_online(self) -> None:
        """Bring Online: send what waits."""
        for transfer in list(self.transfers.values()):
            if not transfer.is_held:
                self.sending.resume(transfer)

    def resend(self, queue: OutgoingQueue) -> None:
        """Resend Transactional Sequence: see `TransferProtocol.resend`."""
        transfer = self.transfers.get(queue.number)
        if transfer is not None:
            self.sending.resend(transfer)

    def forget_unused(self) -> None:
        """Remove the outgoing queues that are empty, not open and not being transferred."""
        for transfer in list(self.transfers.values()):
            idle = transfer.is_idle and transfer.under_way is None and not transfer.awaiting_final
            if idle and not transfer.is_held:
                self.sending.forget(transfer)

    def send_user_message(self, position: MessagePosition, protocol_data: object) -> None:
        """Send User Message Wrapper: [MC-MQSRM] 3.1.7.8."""
        if isinstance(protocol_data, OutgoingMessage):
            self.sending.send(protocol_data)
            self.sending.dispatched(position)

    # -- queries of programs ----------------------------------------------------------------------------

    def untransferred(self) -> Iterator[MessagePosition]:
        """Yield the messages that are not transferred yet."""
        for transfer in self.transfers.values():
            yield from transfer.messages

    def obstacle(self) -> tuple[str, bool] | None:
        """Return why messages are not transferred, and whether the server refuses them."""
        for transfer in self.transfers.values():
            if transfer.messages:
                if transfer.answer:
                    return transfer.answer, True
                failure = last_failure(transfer.queue)
                return failure.detail if failure is not None else f"no answer from {transfer.url}", False
        return None

    def _give_up_all(self, transfer: SrmpTransfer) -> None:
        for outgoing in list(transfer.messages.values()):
            self.sending.give_up(outgoing)
