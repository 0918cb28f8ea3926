"""The engine of the binary protocol, [MS-MQQB] 3.1: its parts, and the events from outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msmqwire.errors import MalformedPacket
from msmqwire.names import FormatName
from msmqwire.packets import lacks_properties, parse
from msmqwire.qm.model.effects import Disconnect
from msmqwire.qm.model.elements import OutgoingQueue, Queue
from msmqwire.qm.model.enumerations import ConnectionStatus, DeliveryGuarantee, OutgoingQueueState, QueueType
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary import restoring
from msmqwire.qm.protocols.binary.connecting import Connecting
from msmqwire.qm.protocols.binary.handshake import HANDSHAKE_SIZES, SessionHandshake
from msmqwire.qm.protocols.binary.message_security import MessageSecurity
from msmqwire.qm.protocols.binary.needs import BinaryNeeds
from msmqwire.qm.protocols.binary.order_acknowledgements import OrderAcknowledgements
from msmqwire.qm.protocols.binary.outgoing_sequences import OutgoingSequences
from msmqwire.qm.protocols.binary.pings import Pings
from msmqwire.qm.protocols.binary.places import SessionPlaces
from msmqwire.qm.protocols.binary.receiving import SessionReceiving
from msmqwire.qm.protocols.binary.sending import SessionSending
from msmqwire.qm.protocols.binary.session import Session
from msmqwire.qm.protocols.binary.session_acknowledgements import SessionAcknowledgements
from msmqwire.qm.protocols.binary.session_packets import acknowledged
from msmqwire.qm.protocols.binary.session_table import SessionTable
from msmqwire.qm.protocols.binary.session_timers import SessionTimers
from msmqwire.qm.protocols.binary.states import SessionEvent, SessionRole, SessionState
from msmqwire.qm.protocols.binary.transfer import OutgoingMessagePosition
from msmqwire.qm.protocols.binary.transfer_table import HELD, TransferTable
from msmqwire.qm.protocols.interface import TransferProtocol
from msmqwire.qm.rules import serialization
from msmqwire.qm.rules.recovery import Stored
from msmqwire.schema import Record

_NO_WINDOW: Final = "SessionHeader.WindowSize is 0"
_EVENTS: Final = {
    "UserMessage": SessionEvent.USER_MESSAGE,
    "SessionAck": SessionEvent.SESSION_ACK,
    "OrderAck": SessionEvent.ORDER_ACK,
    "FinalAck": SessionEvent.FINAL_ACK,
}
_BEGUN: Final = (SessionState.WAITING_CP_MSG, SessionState.OPEN)


class BinaryEngine(TransferProtocol):
    """Transfers messages by [MS-MQQB]: bytes, datagrams, events and the time go in, effects come out.

    No part refers to the engine: each is built with the parts that it uses, in this order. If two parts need
    each other, a function of the later one is passed to the earlier one.

    Attributes:
        context: the context, shared with the rules of [MS-MQDMPR].
        transfers: the transfers of the outgoing queues that it serves, by the number of the queue.
        sessions: the sessions, by number.
    """

    def __init__(self, core: BinaryNeeds) -> None:
        self.context, self._dispatch, self._queues = core.context, core.dispatch, core.queues
        context, messages, queues, outcome = core.context, core.messages, core.queues, core.outcome
        self.transfer_table = TransferTable(context, queues, core.routing)
        self.session_table = SessionTable(context, self.transfer_table)
        self.transfers, self.sessions = self.transfer_table.transfers, self.session_table.sessions
        self._by_connection = self.session_table.by_connection
        self.security = MessageSecurity(queues, core.identities, core.protection)
        self._know = core.know
        self.places = SessionPlaces(
            context, self.session_table, self.transfer_table, queues.lookup, core.queue_memory,
            give_up=self._give_up, close=self.close,
        )  # fmt: skip
        self.outgoing_sequences = OutgoingSequences(
            context, core.sequence_identity, outcome, self._send_waiting
        )
        self.order_acks = OrderAcknowledgements(
            context, messages, queues, core.identity, core.reflection_limits, self.places, self.transfer_table
        )
        self.pings = Pings(context, self.session_table.is_full)
        self.connecting = Connecting(
            context, self.session_table, self.transfer_table, self._dispatch, self.pings, self._send_waiting
        )
        self.session_timers = SessionTimers(context, self.close)
        self.handshake = SessionHandshake(
            context, self.session_table, self.transfer_table, self.session_timers, self.close, self._opened
        )
        self.sending = SessionSending(
            context, messages, self._dispatch, core.identity, core.system_messages, outcome,
            self.transfer_table, self.connecting, self.session_timers, self.outgoing_sequences, self.security,
        )  # fmt: skip
        self.session_acks = SessionAcknowledgements(
            self.session_timers, self.sending, self.outgoing_sequences, outcome, self.close
        )
        self.receiving = SessionReceiving(
            context,
            messages,
            queues,
            history=core.history,
            incoming=core.incoming_sequences,
            relaying=core.relaying,
            system_messages=core.system_messages,
            places=self.places,
            transfers=self.transfer_table,
            timers=self.session_timers,
            outgoing=self.outgoing_sequences,
            order_acks=self.order_acks,
            security=self.security,
            close=self.close,
            acknowledged=self.session_acks.received,
        )
        queues.when_asked_locally = self._asked_locally

    # -- start and stop -----------------------------------------------------------------------------

    def start(self, stored: Stored) -> None:
        """Queue Manager Started: [MS-MQQB] 3.1.4.1. The queues have been restored."""
        queues = self.context.queue_manager.queues
        restoring.restore_askers(self._queues, self.context.queue_manager)
        self.order_acks.restore()
        restoring.restore_transfers(
            stored, queues, self.transfer_table, self.outgoing_sequences, self.sending
        )
        for transfer in self.transfers.values():
            if transfer.table:  # MQQB-3.1.4-01, MQQB-3.1.4.1-01
                self.connecting.ensure_session(transfer)

    def stop(self) -> None:
        """Queue Manager Stopped: [MS-MQQB] 3.1.4.2."""
        self.context.queue_manager.connection_active = False
        for session in list(self.sessions.values()):
            self.close(session)  # MQQB-3.1.4-01, MQQB-3.1.4.2-01
        for session in list(self.sessions.values()):  # sessions that were being established
            self.session_table.release(session)

    def acknowledge_received(self) -> None:
        """Acknowledge everything received so far without waiting for more. The owner calls this before
        `stop`.
        """
        for session in list(self.sessions.values()):  # sending may open a session
            if session.is_open:
                self.order_acks.send_due(session)
                if session.unacked_received_count:
                    self.session_timers.send_session_ack(session)

    # -- from the transport -------------------------------------------------------------------------

    def next_connection(self) -> int:
        """Return a number for an incoming connection; `accepted` has to follow."""
        return self.session_table.next_connection()

    def accepted(self, connection: int, address: str) -> None:
        """A connection has come in from an address."""
        if not self.context.queue_manager.connection_active:
            self.context.effects.append(Disconnect(connection))
            return
        session = self.session_table.add(SessionRole.ACCEPTOR, None)
        session.connection, session.remote_address = connection, address
        self._by_connection[connection] = session
        self.handshake.accepted(session)

    def connected(self, connection: int) -> None:
        """A requested connection is open."""
        session = self._by_connection.get(connection)
        if session is not None:
            self.handshake.request(session)  # MQQB-2.1.1-01

    def connect_failed(self, connection: int, status: ConnectionStatus, detail: str = "") -> None:
        """A requested connection can't be opened; `detail` is the reason in words."""
        session = self._by_connection.get(connection)
        if session is not None:
            self.connecting.connect_failed(session, status, detail)

    def disconnected(self, connection: int) -> None:
        """The peer or the network has closed a connection: [MS-MQQB] 3.1.7.3."""
        session = self._by_connection.pop(connection, None)
        if session is not None:
            session.connection = None
            session.framer.discard()
            if session.state is SessionState.CLOSED or session.state is SessionState.WAITING_RECONNECT:
                self.connecting.failed(session, ConnectionStatus.SOCKET_CONNECT_FAILURE, None)
            else:
                session.ended_by_peer()
                self.close(session)  # MQQB-3.1.7.3-01

    def received(self, connection: int, data: bytes) -> None:
        """Bytes have arrived over a connection."""
        session = self._by_connection.get(connection)
        if session is None:
            return
        framer, packets = session.framer, [b""]
        while packets:
            framer.expected = HANDSHAKE_SIZES.get(session.state)
            packets = framer.feed(data)
            for packet in packets:
                if session.connection != connection:
                    return
                self.packet(session, packet)
            if session.connection != connection:
                return
            if framer.error is not None:
                self.receiving.unreadable(session, str(framer.error))
                return
            if framer.expected is None:
                return
            data = b""  # the next step depends on the state after the packet

    def has_begun(self, connection: int) -> bool:
        """Return whether the peer of an incoming connection has begun a session: MQQB-3.1.5.3.1-10."""
        session = self._by_connection.get(connection)
        return session is not None and session.state in _BEGUN

    def buffered(self, connection: int) -> int:
        """Return the bytes held of an incomplete packet that is arriving over a connection."""
        session = self._by_connection.get(connection)
        return 0 if session is None else session.framer.buffered

    def resolved(self, request: int, addresses: Sequence[str]) -> None:
        """The host name of a `Resolve` effect has these addresses."""
        self.connecting.resolved(request, addresses)

    def datagram(self, data: bytes, address: str, port: int, *, request: bool) -> None:
        """A datagram has arrived; `request` is whether it came to the ping port."""
        self.pings.received(data, address, port, request=request)  # MQQB-3.1.5.1.1-07

    def packet(self, session: Session, data: bytes) -> None:
        """Receiving a packet of a session: [MS-MQQB] 3.1.5.1."""
        session.received_ack = True  # MQQB-3.1.5.1-01, MQQB-3.1.1.3.1-23
        if lacks_properties(data):
            self._without_properties(session, data)
            return
        try:
            packet = parse(data)
        except MalformedPacket as exc:
            self.receiving.unreadable(session, str(exc))  # MQQB-3.1.5.1-02
            return
        kind = packet.schema.name
        if kind == "EstablishConnection":  # MQQB-3.1.5.1.1-01
            self.handshake.establish_connection(session, packet)
        elif kind == "ConnectionParameters":  # MQQB-3.1.5.1.1-02
            self.handshake.connection_parameters(session, packet)
        elif packet.SessionHeader is not None and not packet.SessionHeader.WindowSize:
            self.receiving.unreadable(session, _NO_WINDOW)  # MQMQ-2.2.20.4-14
        # MQQB-3.1.5.5-01, MQQB-3.1.5.6-01, MQQB-3.1.5.7-01, MQQB-3.1.5.8-01
        elif not session.step(_EVENTS[kind]):  # MQQB-3.1.1.1.1.1-10, MQQB-3.1.1.1.1.2-09
            self.close(session)
        elif kind == "SessionAck":  # MQQB-3.1.5.1.1-03
            self.session_acks.received(session, packet.SessionHeader)
        elif kind == "UserMessage":  # MQQB-3.1.5.1.1-06
            self.receiving.user_message(session, packet, data)  # MQQB-3.1.5.11-02
        else:
            self._acknowledgement(session, packet)

    def _without_properties(self, session: Session, data: bytes) -> None:
        """Receiving a message whose MP bit is clear; it does not end the session if the rest is valid."""
        try:
            message, header = serialization.deserialize_head(data)
        except MalformedPacket as exc:
            self.receiving.unreadable(session, str(exc))
            return
        if header is not None and not header.WindowSize:
            self.receiving.unreadable(session, _NO_WINDOW)  # MQMQ-2.2.20.4-14
        elif not session.step(SessionEvent.USER_MESSAGE):
            self.close(session)
        else:
            self.receiving.without_properties(session, message, header)

    def _acknowledgement(self, session: Session, packet: Record) -> None:
        """Receiving an OrderAck or FinalAck; it counts like any message.

        An acknowledgement for a queue manager beyond this one is passed on.
        """
        address = packet.UserHeader.QueueManagerAddress
        if address not in (NULL_GUID, self.context.queue_manager.identifier):
            self.receiving.user_message(session, packet, packet.to_bytes())
            return
        if packet.UserHeader.Flags.DM > DeliveryGuarantee.RECOVERABLE:
            self.close(session)  # MQMQ-2.2.19.2-11, as for any message
            return
        recoverable = bool(packet.UserHeader.Flags.DM) or packet.TransactionHeader is not None
        # MQQB-3.1.1.4-04, MQQB-3.1.1.7.3-02, MQQB-3.1.5.6-10
        self.receiving.count(session, recoverable=recoverable)
        identifier, number, message_id = acknowledged(packet)
        if packet.schema.name == "OrderAck":
            self.outgoing_sequences.order_ack(identifier, number)
        else:
            message_class = packet.MessagePropertiesHeader.MessageClass
            self.outgoing_sequences.final_ack(identifier, message_id, message_class)
        if packet.SessionHeader is not None:
            self.session_acks.received(session, packet.SessionHeader)
        if session.is_open:
            self.session_timers.acknowledge_at_window(session)

    def _opened(self, session: Session) -> None:
        """A session is open."""
        self.connecting.opened(session)
        if session.asked_locally and session.role is SessionRole.INITIATOR:
            self._know(session.remote_address)
        self.sending.send_waiting(session)  # MQQB-3.1.6.1-05

    def _send_waiting(self, session: Session) -> None:
        self.sending.send_waiting(session)

    def _give_up(self, outgoing: OutgoingMessagePosition) -> None:
        self.sending.give_up(outgoing)

    def _asked_locally(self, queue: OutgoingQueue) -> None:
        """A local application asks for a queue that only peers have asked for so far."""
        transfer = self.transfers.get(queue.number)
        if transfer is not None and transfer.session is not None:
            self.connecting.ask_locally(transfer.session)

    def close(self, session: Session) -> None:
        """Closing a Session: [MS-MQQB] 3.1.5.9."""
        self.connecting.close(session)

    # -- from the core: [MS-MQQB] 3.1.7 ---------------------------------------------------------------

    def serves(self, queue: OutgoingQueue) -> bool:
        """Return whether this protocol carries the messages of a queue: MQQB-3.1.7.12-01."""
        return self.transfer_table.serves(queue)

    def may_send_to(self, name: FormatName, origin: str) -> bool:
        """Return whether an outgoing queue may be opened on behalf of a message from an origin."""
        return not self.places.serves(name) or self.places.may_send_to(name, origin)

    def leads_back(self, name: FormatName, origin: str) -> bool:
        """Return whether messages to a name go over an open session with an origin."""
        return self.places.leads_back(name, origin)

    def message_position_available(self, queue: Queue, position: MessagePosition) -> None:
        """[MS-MQQB] 3.1.7.12."""
        if isinstance(queue, OutgoingQueue) and self.serves(queue):
            self.sending.available(queue, position)  # MQQB-3.1.7-01

    def message_position_deleted(self, queue: Queue, position: MessagePosition, reason: int) -> None:
        """[MS-MQQB] 3.1.7.2."""
        if isinstance(queue, OutgoingQueue):
            transfer = self.transfers.get(queue.number)
            if transfer is None:
                return
            outgoing = transfer.table.get(position)
            if outgoing is not None:
                self.sending.purged(outgoing, position.message)
            elif transfer.awaiting_final_ack:
                outgoing = transfer.awaiting_final_ack.get(position.message.identifier.uniquifier)
                if outgoing is not None and outgoing.position is position:
                    self.outgoing_sequences.removed(outgoing)
            return
        if queue.queue_type is QueueType.SYSTEM or position.silent:
            return
        if not position.message.soap_envelope:  # HTTP acknowledges its own messages
            self.order_acks.removed(position.message, reason)  # MQQB-3.1.7.2-01

    def queue_paused(self, queue: OutgoingQueue) -> None:
        """Pause Queue Event: [MS-MQQB] 3.1.7.13."""
        transfer = self.transfers.get(queue.number)
        session = transfer.session if transfer else None
        if session is not None and session.is_open:
            self.context.timers.stop(Timer.SESSION_ACK_SEND, session.number)  # MQQB-3.1.7.13-01
            self.session_timers.send_session_ack(session, 1)  # MQQB-3.1.7.13-01, MQQB-3.1.7.13-02
            session.session_active = False  # MQQB-3.1.7.13-02
        self._dispatch.remove_queue(queue)  # MQQB-3.1.7.13-03

    def queue_resumed(self, queue: OutgoingQueue) -> None:
        """Resume Queue Event: [MS-MQQB] 3.1.7.14."""
        transfer = self.transfers.get(queue.number)
        if transfer is None or queue.state in HELD:
            return
        session = transfer.session
        if session is not None and session.is_open:
            session.session_active = True  # MQQB-3.1.7.14-02
            queue.state = OutgoingQueueState.CONNECTED
            session.send_order.enter(transfer)
            self.sending.send_waiting(session)
        elif transfer.table:  # MQQB-3.1.7.14-01
            self.connecting.ensure_session(transfer)

    def taken_offline(self) -> None:
        """Take Offline: end all sessions. Their messages wait, and those received are acknowledged."""
        self.acknowledge_received()
        for session in list(self.sessions.values()):
            self.close(session)

    def brought_online(self) -> None:
        """Bring Online: connect again for what waits."""
        for session in list(self.sessions.values()):
            self.connecting.retry_now(session)

    def resend(self, queue: OutgoingQueue) -> None:
        """Resend Transactional Sequence: see `TransferProtocol.resend`.

        Without a session one is tried now: its beginning sends these messages again.
        """
        transfer = self.transfers.get(queue.number)
        if transfer is None or not transfer.ordered:
            return
        session = transfer.session
        if session is not None and session.is_open:
            self.outgoing_sequences.resend(transfer)  # MQMR-3.1.4.2-25
        elif queue.state not in HELD:
            self.connecting.ensure_session(transfer)
            if transfer.session is not None:
                self.connecting.retry_now(transfer.session)

    def forget_unused(self) -> None:
        """Remove the outgoing queues that are empty, not open and not being transferred."""
        for transfer in list(self.transfers.values()):
            queue = transfer.queue
            unused = transfer.is_idle and transfer.session is None and queue.acknowledged_peer is None
            if unused and queue.state not in HELD:
                self.transfer_table.forget(queue)

    def send_user_message(self, position: MessagePosition, protocol_data: object) -> None:
        """Send User Message Wrapper: [MS-MQQB] 3.1.7.16."""
        if isinstance(protocol_data, OutgoingMessagePosition):
            self.sending.send(protocol_data)  # MQQB-3.1.7.1-01, MQQB-3.1.7.16-01
            self._dispatch.remove(position)  # MQQB-3.1.7.16-01
