"""Receiving messages: [MC-MQSRM] 3.1.5.1."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from msmqwire.constants import MQ_OK, MQQUEUEACCESSMASK, MessageClass, hresult_name
from msmqwire.errors import InvalidName, InvalidSignature, InvalidValue, MalformedPacket
from msmqwire.names import DirectName, FormatName, MulticastName
from msmqwire.names.origins import origin_of
from msmqwire.names.printable import counted
from msmqwire.qm.model import access
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import (
    AcknowledgementsRequested,
    EnqueueStatus,
    QueueAccessType,
    QueuePrivacy,
    QueueType,
)
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.refusals import MALFORMED, MEMORY, SHARE
from msmqwire.qm.protocols.srmp.configuration import SrmpConfiguration
from msmqwire.qm.protocols.srmp.deserializing import WITHOUT_MSMQ, deserialize, reach_limit
from msmqwire.qm.protocols.srmp.incoming_streams import IncomingStreams
from msmqwire.qm.protocols.srmp.local_urls import order_queue_parts
from msmqwire.qm.protocols.srmp.outgoing_streams import OutgoingStreams
from msmqwire.qm.protocols.srmp.places import HttpPlaces
from msmqwire.qm.protocols.srmp.queue_names import MSMQ, read_destination, read_http
from msmqwire.qm.protocols.srmp.requests import HOPS_MAX, hops
from msmqwire.qm.protocols.srmp.signatures import authenticate
from msmqwire.qm.protocols.srmp.times import is_past
from msmqwire.qm.rules.history import History
from msmqwire.qm.rules.lookup import ORDER_QUEUE_NUMBER
from msmqwire.qm.rules.memory_pool import Kind
from msmqwire.qm.rules.messages import MessageEvents
from msmqwire.qm.rules.queues import Queues
from msmqwire.qm.rules.system_messages import SystemMessages
from msmqwire.srmp.content import Content
from msmqwire.srmp.envelope import Envelope
from msmqwire.srmp.http_message import HttpMessage
from msmqwire.srmp.kinds import EnvelopeKind, kind_of
from msmqwire.srmp.message import SrmpMessage, from_http, parse_multicast
from msmqwire.srmp.request import request_address

OK: Final = 200
BAD_REQUEST: Final = 400
INTERNAL_SERVER_ERROR: Final = 500
SERVICE_UNAVAILABLE: Final = 503
_EVERYONE: Final = access.Token(access.EVERYONE)
_FOR_APPLICATIONS: Final = (EnvelopeKind.DELIVERY_RECEIPT, EnvelopeKind.COMMITMENT_RECEIPT)
_TO: Final = "Envelope.Header.path.to"
_RECEIPT_BYTES: Final = 8_192
"""Measured bytes of a receipt in the memory for express messages."""
_POSITIVE: Final = AcknowledgementsRequested.ACK_POS_ARRIVAL


class _NotTaken(Exception):
    """A message is not accepted; its sender is notified by the status.

    No report follows: the message is a duplicate, or its refusal has been traced already.
    """

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


class _MessageRefused(_NotTaken):
    """A message is refused.

    Attributes:
        reason, queue: as for `Context.refused`.
        message: the refused message, once it has been read.
    """

    def __init__(self, status: int, reason: int | str, why: str = "", queue: Queue | None = None) -> None:
        super().__init__(status)
        self.reason, self.why, self.queue = reason, why, queue
        self.message: Message | None = None


class _Arrived(NamedTuple):
    """A message that has come for a queue of this queue manager.

    Attributes:
        received: the request.
        envelope: its envelope.
        message: the message that it carries.
        queues: its destinations: one, or all queues of a multicast address.
    """

    received: SrmpMessage
    envelope: Envelope
    message: Message
    queues: tuple[Queue, ...]


class SrmpReceiving:
    """Checks incoming messages, and puts them into their queues.

    Args:
        configuration: the administrator's configuration. history, system_messages: parts of the core.
            incoming, outgoing, places: parts of the engine.
    """

    def __init__(
        self,
        context: Context,
        messages: MessageEvents,
        queues: Queues,
        configuration: SrmpConfiguration,
        *,
        history: History,
        system_messages: SystemMessages,
        incoming: IncomingStreams,
        outgoing: OutgoingStreams,
        places: HttpPlaces,
    ) -> None:
        self._context, self._messages, self._queues = context, messages, queues
        self._history, self._system_messages = history, system_messages
        self._redirections, self._trust = configuration.redirections, configuration.trust
        self._incoming, self._outgoing, self._places = incoming, outgoing, places

    def take(self, http: HttpMessage, address: str) -> int:
        """Take a request from an address; return the status that answers it: [MC-MQSRM] 3.1.5.1."""
        return self._status(partial(from_http, http), address)

    def take_multicast(self, data: bytes, address: str, group: MulticastName) -> int:
        """Take a request that has come by PGM to a group. No peer gets the status: SRMP-2.1.2-06."""
        return self._status(partial(parse_multicast, data), address, group)

    def _status(
        self, parse: Callable[[], SrmpMessage], address: str, group: MulticastName | None = None
    ) -> int:
        try:
            self._take(parse(), address, group)
        except MalformedPacket as exc:
            self._context.refused(MALFORMED, why=f"{exc!s:.400}", peer=address, kind="malformed")
            return BAD_REQUEST  # SRMP-3.1.1.1.2.2-01, SRMP-3.1.1.1.2.5-01
        except _MessageRefused as exc:
            self._context.refused(exc.reason, exc.message, exc.queue, why=f"{exc.why:.400}", peer=address)
            return exc.status
        except _NotTaken as exc:
            return exc.status
        return OK  # SRMP-3.1.1.4.1-01

    def _take(self, received: SrmpMessage, address: str, group: MulticastName | None) -> None:
        envelope, utc = received.envelope, self._context.utc
        if envelope is None:
            raise _MessageRefused(BAD_REQUEST, MALFORMED, "a response")
        named, destination = self._destination(envelope.path.to)
        if group is not None and destination.canonical != group.canonical:  # SRMP-2.1.2-02
            why = f"it came to {group}, but is addressed to {envelope.path.to:.200}"
            raise _MessageRefused(BAD_REQUEST, MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q, why)
        message = deserialize(received, utc, named)
        message.came_from(address, origin_of(address))
        try:
            if isinstance(destination, DirectName) and not self._queues.lookup.is_local_name(destination):
                message.destination = destination
                self._check_draining(None, group)
                self._forward(received, message)  # SRMP-3.1.5.1.3-07
                return
            if (parts := order_queue_parts(destination)) is not None:
                order_queue, application = parts
                destination = application if kind_of(envelope) in _FOR_APPLICATIONS else order_queue
            # SRMP-3.1.5.1.3-12
            arrived = _Arrived(received, envelope, message, self._find(destination, message))
            # SRMP-3.1.5.1.4-02, SRMP-3.1.1.1.2.5-02, SRMP-3.1.1.1.2.2-05, SRMP-2.2.5.1.1-02, SRMP-2.2.6.17-02
            if is_past(reach_limit(envelope), utc):  # SRMP-3.1.5.1-01
                reason = MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT
                raise _MessageRefused(OK, reason, queue=arrived.queues[0])  # SRMP-3.1.1.1.2.2-02
            self._check_draining(arrived, group)
            self._by_kind(arrived)  # SRMP-3.1.5.1-01
        except _MessageRefused as exc:
            exc.message = message
            raise

    # -- destination ------------------------------------------------------------------------------------

    def _destination(self, to: str) -> tuple[FormatName, FormatName]:
        """Return the queue that a message names, and the one that it is redirected to: [MC-MQSRM] 3.1.5.1.3.

        With redirections ``to`` may be any URL of this computer. A URL that is not the name of a queue gets
        the name of the redirection's target.
        """
        if to.startswith(MSMQ):
            name = read_destination(to, _TO)
            return name, name
        redirected = self._redirections.inbound(to)  # SRMP-3.1.5.1.3-05 and -06
        if redirected != to and self._names_this_computer(to):
            target = read_http(redirected, "To")
            try:
                return read_destination(to, _TO), target
            except MalformedPacket:
                return target, target
        name = read_destination(to, _TO)
        local = self._queues.lookup.is_local_name(name)
        # SRMP-3.1.5.1.3-02, SRMP-3.1.1.1.7-01
        if not local and not self._context.settings.transparent_store_and_forward:
            why = f"{to:.200} belongs to another computer"
            raise _MessageRefused(BAD_REQUEST, MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q, why)
        return name, name

    def _names_this_computer(self, to: str) -> bool:
        """Return whether the host of a URL is this computer, at any port: a proxy may have another port."""
        try:
            name = read_http(f"http://{request_address(to)[1]}/MSMQ/q", _TO)
        except (InvalidValue, MalformedPacket):
            return False
        return isinstance(name, DirectName) and self._queues.lookup.is_own_host(name)

    def _find(self, name: FormatName, message: Message) -> tuple[Queue, ...]:
        """Return the queues of a destination here: SRMP-3.1.5.1.3-01 and -08 to -10."""
        lookup = self._queues.lookup
        if isinstance(name, MulticastName):
            queues = tuple(lookup.multicast_queues(name.address, name.port))
        else:
            queue = lookup.addressed(name)  # SRMP-3.1.5.1.6.4-01
            queues = () if queue is None else (queue,)
        if not queues or name.is_read_only:  # SRMP-3.1.5.1.3-08 and -11
            why = f"there is no queue {name!s:.200}"
            raise _MessageRefused(BAD_REQUEST, MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q, why)
        if any(queue.transactional != message.transactional for queue in queues):  # SRMP-3.1.5.1.3-09 and -10
            reason = MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_MSG
            if message.transactional:
                reason = MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_Q
            raise _MessageRefused(BAD_REQUEST, reason, queue=queues[0])
        return queues

    def _forward(self, received: SrmpMessage, message: Message) -> None:
        """Pass a message on to another computer: SRMP-3.1.5.1.3-03, -04 and -07."""
        name = message.destination
        assert name is not None, "a received message has a destination"
        if hops(received) > HOPS_MAX:
            why = f"it has passed through {counted(hops(received), 'computer')}"
            raise _MessageRefused(BAD_REQUEST, MessageClass.MQMSG_CLASS_NACK_HOP_COUNT_EXCEEDED, why)
        if not self._places.may_send_to(name, message.origin):
            why = f"no more messages may be forwarded to {name!s:.200}"
            raise _MessageRefused(BAD_REQUEST, MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q, why)
        if self._places.awaits(name, message):
            raise _NotTaken(OK)  # its sender repeats it
        status, descriptor = self._queues.open(name, QueueAccessType.SEND_ACCESS, asked_by=message.origin)
        if status != MQ_OK or descriptor is None:  # SRMP-3.1.5.1.3-04
            why = f"{name!s:.200} can't be opened: {hresult_name(status)}"
            raise _MessageRefused(BAD_REQUEST, MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q, why)
        try:
            enqueued = self._messages.enqueue_to_open_queue(descriptor, message)
        except (InvalidName, InvalidValue) as exc:
            raise _MessageRefused(BAD_REQUEST, MALFORMED, str(exc)) from None
        finally:
            self._queues.close(descriptor)
        if enqueued is not EnqueueStatus.OK:
            raise _NotTaken(INTERNAL_SERVER_ERROR)

    def _check_draining(self, arrived: _Arrived | None, group: MulticastName | None) -> None:
        """Raise _NotTaken for a message that its sender has to send again later; to groups nobody does.

        Receipts of streams, for messages of this queue manager, are taken.
        """
        system = arrived is not None and arrived.queues[0].queue_type is QueueType.SYSTEM
        if self._context.queue_manager.draining and group is None and not system:
            raise _NotTaken(SERVICE_UNAVAILABLE)

    # -- kinds of messages -------------------------------------------------------------------------------

    def _by_kind(self, arrived: _Arrived) -> None:
        """Process a message by its kind: [MC-MQSRM] 3.1.5.1.5 to 3.1.5.1.10."""
        kind, envelope = kind_of(arrived.envelope), arrived.envelope
        internal = any(queue.private_queue_number == ORDER_QUEUE_NUMBER for queue in arrived.queues)
        if kind is None:
            raise _MessageRefused(OK, MALFORMED, "its headers contradict each other")  # SRMP-3.1.5.1.5-01
        if kind is EnvelopeKind.STREAM_RECEIPT:
            receipt = envelope.streamReceipt
            self._outgoing.received(receipt.streamId, receipt.lastOrdinal)
        elif kind is EnvelopeKind.FINAL_STREAM_RECEIPT:
            receipt, commitment = envelope.streamReceipt, envelope.commitmentReceipt
            self._outgoing.final(
                receipt.streamId, receipt.lastOrdinal, commitment.id, commitment.decision,
                arrived.message.message_class,
            )  # fmt: skip
            return  # SRMP-3.1.5.1.9-01
        if not internal:
            if envelope.stream is None:
                self._once(arrived)  # SRMP-3.1.5.1.7-01, SRMP-3.1.5.1.10-01
            else:
                self._in_stream(arrived, envelope.stream)
        elif kind is not EnvelopeKind.STREAM_RECEIPT:
            why = "the order queue takes stream receipts only"
            reason = MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED
            raise _MessageRefused(BAD_REQUEST, reason, why, arrived.queues[0])
        # The order queue has no reader: SRMP-3.1.5.1.8-01 would only fill it.

    def _once(self, arrived: _Arrived) -> None:
        """Put a message outside a stream into its queues: 3.1.5.1.11 and 3.1.5.1.12."""
        arrived = self._admitted(arrived)
        if arrived.message.acknowledgements_requested:
            self._check_room(arrived)
        if self._is_duplicate(arrived.message):  # SRMP-3.1.5.1.11-02, SRMP-3.1.1.1.2.2-03, SRMP-3.1.1.1.5-04
            raise _NotTaken(OK)
        self._enqueue(arrived)  # SRMP-3.1.1.3.1-02, SRMP-3.1.1.3.4-05
        self._remember(arrived.message)  # SRMP-3.1.5.1.11-03

    def _in_stream(self, arrived: _Arrived, stream: Content) -> None:
        """Put a stream message into its queue if it is next: 3.1.5.1.6.3 and 3.1.5.1.6.4.

        A message that was accepted in a former stream only advances the new one.
        """
        arrived, message = self._admitted(arrived), arrived.message
        self._check_room(arrived)
        info = self._incoming.of(stream, message)  # SRMP-3.1.5.1.6.4-02
        follows = self._incoming.follows(info, stream, message)
        duplicate = follows and self._is_duplicate(message)
        # SRMP-2.2.5.3-04 and -05
        if not follows or self._incoming.is_former(info, message, duplicate=duplicate):
            self._incoming.refused(info, stream, message)  # SRMP-3.1.5.1.6.3-04, SRMP-3.1.1.1.2.5-03
            raise _NotTaken(OK)
        self._incoming.begins(info, stream)
        if not duplicate:
            self._enqueue(arrived)  # SRMP-3.1.1.3.2-04, SRMP-3.1.1.4.3-01
            self._remember(message)
        info.queue = arrived.queues[0]
        info.queue.incoming[info.key] = info
        self._incoming.accepted(info, stream, message)

    def _is_duplicate(self, message: Message) -> bool:
        # SRMP-3.1.5.1.11-01 and -04
        return message.identifier != WITHOUT_MSMQ and self._history.known(message)  # SRMP-4.1-02, SRMP-4.4-05

    def _remember(self, message: Message) -> None:
        if message.identifier != WITHOUT_MSMQ:
            self._history.add(message)

    def _admitted(self, arrived: _Arrived) -> _Arrived:
        """Return a message with the queues that may take it: 3.1.5.1.6.1, SRMP-3.1.5.1.12-01 to -07.

        If a queue of a multicast group refuses it, the other queues still get it.
        """
        required = all(queue.authentication for queue in arrived.queues)
        try:
            # SRMP-3.1.5.1.6-01
            authenticate(arrived.received, arrived.message, self._trust, required=required)
        except InvalidSignature as exc:
            reason = MessageClass.MQMSG_CLASS_NACK_BAD_SIGNATURE
            raise _MessageRefused(BAD_REQUEST, reason, str(exc), arrived.queues[0]) from None
        signed = arrived.envelope.Signature is not None
        refusals = {queue: self._refusal(queue, signed=signed) for queue in arrived.queues}
        admitting = tuple(queue for queue, refusal in refusals.items() if refusal is None)
        refusal = refusals[arrived.queues[0]]
        if refusal is not None and not admitting:
            raise refusal
        for refused in filter(None, refusals.values()):
            self._context.refused(refused.reason, arrived.message, refused.queue, why=refused.why)
        return arrived._replace(queues=admitting)

    def _check_room(self, arrived: _Arrived) -> None:
        """Refuse a message if there may be no room for its receipts, which are never refused themselves.

        A sender whose own URL is unreachable could otherwise make any number of them wait.
        """
        origin, why = arrived.message.origin, "there is no room for receipts"
        if not self._messages.pool.fits(Kind.EXPRESS, origin, _RECEIPT_BYTES):
            raise _MessageRefused(INTERNAL_SERVER_ERROR, MEMORY, why, arrived.queues[0])
        if not self._messages.quotas.has_share(origin, _RECEIPT_BYTES):
            raise _MessageRefused(INTERNAL_SERVER_ERROR, SHARE, why, arrived.queues[0])

    def _refusal(self, queue: Queue, *, signed: bool) -> _MessageRefused | None:
        """Return the reason why a queue does not accept a message; None if it does."""
        security = self._queues.known_security_of(queue)
        if security is None:  # SRMP-3.1.5.1.12-02; the directory may answer when it is sent again
            why = "the queue can't be read in the directory"
            return _MessageRefused(
                INTERNAL_SERVER_ERROR, MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED, why, queue
            )
        if queue.authentication and not signed:
            why = "the queue takes signed messages only"
            return _MessageRefused(BAD_REQUEST, MessageClass.MQMSG_CLASS_NACK_BAD_SIGNATURE, why, queue)
        if queue.privacy_level is QueuePrivacy.BODY:
            why = "the queue takes encrypted messages only"
            return _MessageRefused(BAD_REQUEST, MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION, why, queue)
        # SRMP-3.1.5.1.12-03, -04, -07
        if not access.access_allowed(security, _EVERYONE, MQQUEUEACCESSMASK.MQSEC_WRITE_MESSAGE):
            why = "not everybody may write to the queue"
            return _MessageRefused(BAD_REQUEST, MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED, why, queue)
        return None

    def _enqueue(self, arrived: _Arrived) -> None:
        """Enqueue a message, and send the delivery receipt that it asks for: 3.1.5.1.6.2 and 3.1.5.1.12."""
        first, *others = arrived.queues
        copies = [(first, arrived.message), *((queue, arrived.message.copy()) for queue in others)]
        refusals = [refusal for queue, message in copies if (refusal := self._put(queue, message))]
        if len(refusals) == len(copies):
            raise refusals[0]
        message = arrived.message
        # SRMP-3.1.1.4.1-01, SRMP-3.1.1.4.3-01
        if message.acknowledgements_requested & _POSITIVE and first.queue_type is not QueueType.SYSTEM:
            # SRMP-3.1.5.1.6.2-02, SRMP-3.1.1.1.2.5-04, SRMP-2.2.5.2.1-05, SRMP-2.2.5.2.2-05 and -06
            self._system_messages.acknowledge(message, MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE)

    def _put(self, queue: Queue, message: Message) -> _NotTaken | None:
        """Put a message into a queue; return the reason if that fails."""
        try:
            status = self._messages.enqueue(queue, message)  # SRMP-3.1.5.1.12-08
        except (InvalidName, InvalidValue) as exc:
            return _MessageRefused(BAD_REQUEST, MALFORMED, str(exc), queue)
        if status is EnqueueStatus.QUEUE_MANAGER_QUOTA_EXCEEDED:  # SRMP-3.1.5.1.12-10
            return _NotTaken(INTERNAL_SERVER_ERROR)
        if status is not EnqueueStatus.OK:
            return _NotTaken(OK)  # SRMP-3.1.5.1.12-09
        return None
