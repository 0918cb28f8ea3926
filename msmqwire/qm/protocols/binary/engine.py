"""The engine of the binary protocol: [MS-MQQB] 3.1. Its parts meet here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msmqwire.constants import HResult
from msmqwire.errors import MalformedPacket
from msmqwire.names import DirectName, PrivateName
from msmqwire.packets import parse
from msmqwire.qm.model.changes import Table
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.effects import Disconnect
from msmqwire.qm.model.elements import OutgoingQueue, Queue
from msmqwire.qm.model.enumerations import ConnectionStatus, OutgoingQueueState, QueueType
from msmqwire.qm.model.message import NULL_GUID, Message, ObjectId
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.protocols.binary import restoring, transfer_rows
from msmqwire.qm.protocols.binary.connecting import Connecting
from msmqwire.qm.protocols.binary.delivery_outcome import DeliveryOutcome
from msmqwire.qm.protocols.binary.handshake import Handshake
from msmqwire.qm.protocols.binary.history import History
from msmqwire.qm.protocols.binary.message_security import Security
from msmqwire.qm.protocols.binary.order_acknowledgements import Acknowledging
from msmqwire.qm.protocols.binary.outgoing_sequences import Sequences
from msmqwire.qm.protocols.binary.pings import Pings
from msmqwire.qm.protocols.binary.receiving import Receiving
from msmqwire.qm.protocols.binary.sending import Sending
from msmqwire.qm.protocols.binary.session import NextHop, Session
from msmqwire.qm.protocols.binary.session_packets import acknowledged
from msmqwire.qm.protocols.binary.session_timers import SessionTimers
from msmqwire.qm.protocols.binary.states import (
    MESSAGES,
    MessageEvent,
    MessageState,
    Role,
    SessionEvent,
    SessionState,
)
from msmqwire.qm.protocols.binary.transfer import OutgoingMessagePosition, Peer, Transfer
from msmqwire.qm.rules.dispatch import Dispatch
from msmqwire.qm.rules.messages import Messages
from msmqwire.qm.rules.queues import Queues, is_http
from msmqwire.qm.rules.recovery import Stored
from msmqwire.qm.rules.routing import Routing
from msmqwire.schema import Record

_ORDINALS: Final = 1 << 32
_RESERVED: Final = 4096
"""MessageIdOrdinal is stored once for so many, so that express messages touch no disk."""
_HELD: Final = (OutgoingQueueState.ON_HOLD, OutgoingQueueState.LOCKED)


class BinaryEngine:
    """Transfers messages by [MS-MQQB]: bytes, datagrams, events and the time go in, effects come out.

    Attributes:
        context: what it shares with the rules of [MS-MQDMPR].
        transfers: of the outgoing queues that it serves, by number of the queue.
        sessions: by number.
    """

    def __init__(
        self, context: Context, messages: Messages, queues: Queues, dispatch: Dispatch, routing: Routing
    ) -> None:
        self.context, self.messages, self.queues = context, messages, queues
        self.dispatch, self.routing = dispatch, routing
        self.transfers: dict[int, Transfer] = {}
        self.sessions: dict[int, Session] = {}
        self._connections: dict[int, Session] = {}
        self._numbers = 0
        self._ordinal = self._ordinals_until = 0
        self.security = Security(queues)
        self.history = History(context)
        self.ending = DeliveryOutcome(self)
        self.sequences = Sequences(self)
        self.acknowledging = Acknowledging(self)
        self.sending = Sending(self)
        self.receiving = Receiving(self)
        self.session_timers = SessionTimers(self)
        self.pings = Pings(self)
        self.handshake = Handshake(self)
        self.connecting = Connecting(self)
        context.subscribers.append(self)

    # -- start and end ------------------------------------------------------------------------------

    def start(self, stored: Stored) -> None:
        """Queue Manager Started: [MS-MQQB] 3.1.4.1. The queues have been restored."""
        self._ordinal = self._ordinals_until = restoring.ordinal(stored)
        restoring.restore_incoming(self, stored)
        self.acknowledging.restore()
        restoring.restore_transfers(self, stored)
        for transfer in self.transfers.values():
            if transfer.table:
                self.connecting.ensure_session(transfer)

    def stop(self) -> None:
        """Queue Manager Stopped: [MS-MQQB] 3.1.4.2."""
        self.context.queue_manager.connection_active = False
        for session in list(self.sessions.values()):
            self.close(session)
        for session in list(self.sessions.values()):  # those that were being established
            self.release(session)
        self._put_ordinal(self._ordinal)

    def acknowledge_received(self) -> None:
        """Acknowledge what has come so far, without waiting for more: what an owner does before `stop`."""
        for session in self.sessions.values():
            if session.is_open:
                self.order_ack_send_expired(session)
                if session.unacked_received_count:
                    self.session_timers.send_session_ack(session)

    # -- what comes from the transport --------------------------------------------------------------

    def accepted(self, connection: int, address: str) -> None:
        """A connection came in from an address; the owner has numbered it with `next_connection`."""
        if not self.context.queue_manager.connection_active:
            self.context.effects.append(Disconnect(connection))
            return
        session = self.new_session(Role.ACCEPTOR, None)
        session.connection, session.remote_address = connection, address
        self._connections[connection] = session
        self.handshake.accepted(session)

    def connected(self, connection: int) -> None:
        """A connection that was asked for is there."""
        session = self._connections.get(connection)
        if session is not None:
            self.handshake.request(session)

    def connect_failed(self, connection: int, status: ConnectionStatus) -> None:
        """A connection that was asked for can't be opened."""
        session = self._connections.get(connection)
        if session is not None:
            self.connecting.connect_failed(session, status)

    def disconnected(self, connection: int) -> None:
        """A connection is gone: [MS-MQQB] 3.1.7.3."""
        session = self._connections.pop(connection, None)
        if session is not None:
            session.connection = None
            if session.state is SessionState.CLOSED or session.state is SessionState.WAITING_RECONNECT:
                self.connecting.failed(session, ConnectionStatus.SOCKET_CONNECT_FAILURE, None)
            else:
                self.close(session)

    def received(self, connection: int, data: bytes) -> None:
        """Bytes have come over a connection."""
        session = self._connections.get(connection)
        if session is None:
            return
        for packet in session.framer.feed(data):
            if session.connection != connection:
                return
            self.packet(session, packet)
        if session.connection == connection and session.framer.error is not None:
            self.close(session)  # MQQB-3.1.5.1.2-02

    def resolved(self, request: int, addresses: Sequence[str]) -> None:
        """The addresses of a host that `Resolve` asked for."""
        self.connecting.resolved(request, addresses)

    def datagram(self, data: bytes, address: str, port: int, *, request: bool) -> None:
        """A datagram has come: `request` tells whether to the ping port."""
        self.pings.received(data, address, port, request=request)

    def packet(self, session: Session, data: bytes) -> None:
        """A packet of a session: [MS-MQQB] 3.1.5.1."""
        session.received_ack = True
        try:
            packet = parse(data)
        except MalformedPacket:
            self.close(session)  # MQQB-3.1.5.1.3-01
            return
        kind = packet.schema.name
        if kind == "EstablishConnection":
            self.handshake.establish_connection(session, packet)
        elif kind == "ConnectionParameters":
            self.handshake.connection_parameters(session, packet)
        elif packet.SessionHeader is not None and not packet.SessionHeader.WindowSize:
            self.close(session)  # MQMQ-2.2.20.4-14
        elif not session.step(_EVENTS[kind]):
            self.close(session)
        elif kind == "SessionAck":
            self.session_header(session, packet.SessionHeader)
        elif kind == "UserMessage":
            self.receiving.user_message(session, packet, data)
        else:
            self._acknowledgement(session, packet)

    def _acknowledgement(self, session: Session, packet: Record) -> None:
        """An OrderAck or FinalAck; it counts like any message: MQQB-3.1.5.6-10.

        One that is for a queue manager behind this one is passed on.
        """
        address = packet.UserHeader.QueueManagerAddress
        if address not in (NULL_GUID, self.context.queue_manager.identifier):
            self.receiving.user_message(session, packet, packet.to_bytes())
            return
        self.receiving.count(session, recoverable=bool(packet.UserHeader.Flags.DM))
        identifier, number, message_id = acknowledged(packet)
        if packet.schema.name == "OrderAck":
            self.sequences.order_ack(identifier, number)
        else:
            message_class = packet.MessagePropertiesHeader.MessageClass
            self.sequences.final_ack(identifier, message_id, message_class)
        if packet.SessionHeader is not None:
            self.session_header(session, packet.SessionHeader)
        if session.is_open:
            self.session_timers.acknowledge_at_window(session)

    # -- sessions -----------------------------------------------------------------------------------

    def new_session(self, role: Role, peer: Peer | None) -> Session:
        """A session, not connected yet."""
        self._numbers += 1
        session = Session(self._numbers, role, peer)
        self.sessions[session.number] = session
        return session

    def next_connection(self) -> int:
        """A number for a connection."""
        self._numbers += 1
        return self._numbers

    def new_connection(self, session: Session) -> int:
        """A number for a connection of a session."""
        number = self.next_connection()
        self._connections[number] = session
        return number

    def forget_connection(self, session: Session) -> None:
        """A session has no connection any more."""
        if session.connection is not None:
            self._connections.pop(session.connection, None)
            session.connection = None

    def session_to(self, peer: Peer) -> Session | None:
        """The session that leads to a queue manager or host, an open one first."""
        found = None
        for session in self.sessions.values():
            to_peer = session.peer == peer
            if session.is_open and (to_peer or session.remote_guid == peer[1]):
                return session
            if to_peer:
                found = session
        return found

    def release(self, session: Session) -> None:
        """A session that nothing needs any more, and the outgoing queues that nobody uses."""
        served, session.transfers = session.transfers, []
        for transfer in served:
            transfer.session = None
            queue = transfer.queue
            idle = not (transfer.table or transfer.awaiting_final_ack or queue.active)
            if idle and queue.state not in _HELD and queue.acknowledged_peer is None:
                self.forget(queue)
        self.context.timers.stop(Timer.SESSION_RETRY_CONNECT, session.number)
        self.sessions.pop(session.number, None)

    def forget(self, queue: OutgoingQueue) -> None:
        """An outgoing queue that has nothing to transfer."""
        transfer = self.transfers.pop(queue.number, None)
        if transfer is not None and transfer.session is not None:
            transfer.session.transfers.remove(transfer)
        self.queues.forget(queue)

    def is_full(self) -> bool:
        """Whether a further session of another would be refused."""
        limit = self.context.settings.max_in_sessions
        count = sum(one.role is Role.ACCEPTOR and one.is_open for one in self.sessions.values())
        return count >= limit or not self.context.queue_manager.connection_active

    def opened(self, session: Session) -> None:
        """A session is open: those that wait for its queue manager are served by it as well."""
        for transfer in session.transfers:
            self.connecting.serve(session, transfer)
        for transfer in list(self.transfers.values()):
            other = transfer.session
            waits = transfer.table and (other is None or not other.is_open)
            if waits and transfer.qm_guid == session.remote_guid and transfer.queue.state not in _HELD:
                if other is not None:
                    other.transfers.remove(transfer)
                self.connecting.attach(session, transfer)
        self.sending.send_waiting(session)

    def close(self, session: Session) -> None:
        """Closing a Session: [MS-MQQB] 3.1.5.9."""
        self.connecting.close(session)

    def order_ack_send_expired(self, session: Session) -> None:
        """Order Ack Send Timer Event: [MS-MQQB] 3.1.6.9."""
        due, session.order_acks_due = session.order_acks_due, {}
        if session.is_open:
            for info in due:
                self.acknowledging.order(info, session)
            session.last_order_ack_send_time = self.context.utc

    def session_header(self, session: Session, header: Record) -> None:
        """Receiving a SessionHeader: [MS-MQQB] 3.1.5.5."""
        session.received_window_size = header.WindowSize  # MQQB-3.1.5.5-04
        for outgoing in session.acknowledge(header.AckSequenceNumber):
            self._acknowledged(outgoing)
        for outgoing in session.saved(header.RecoverableMsgAckSeqNumber, header.RecoverableMsgAckFlags):
            self._saved(outgoing)
        if (
            header.UserMsgSequenceNumber != session.message_received_count
            or header.RecoverableMsgSeqNumber != session.recoverable_message_received_count
        ):
            self.close(session)  # MQQB-3.1.5.5.5-01
            return
        if session.awaits_acks:
            self.session_timers.start_ack_wait(session)
        self.sending.send_waiting(session)

    def _acknowledged(self, outgoing: OutgoingMessagePosition) -> None:
        """AckSequenceNumber covers a message: [MS-MQQB] 3.1.5.5.1 and 3.1.5.5.2."""
        outgoing.received_session_ack = True
        # RecoverableSequenceNumber can't tell: it is 0 for every 65,536th recoverable message too.
        if outgoing.state is MessageState.WAITING_FOR_SESSION_ACK and not outgoing.recoverable:
            outgoing.transfer.remove(outgoing)
            self.ending.delivered(outgoing)

    def _saved(self, outgoing: OutgoingMessagePosition) -> None:
        """A recoverable message is saved at the other side: [MS-MQQB] 3.1.5.5.3."""
        outgoing.session = None
        if outgoing.state is not MessageState.WAITING_FOR_SESSION_ACK:
            return
        if not outgoing.tx_sequence_number:
            outgoing.transfer.remove(outgoing)
            self.ending.delivered(outgoing)
            return
        outgoing.state = MESSAGES["Transactional"][outgoing.state, MessageEvent.SESSION_ACK]
        if outgoing.received_order_ack:
            self.sequences.arrived(outgoing)

    # -- helps ----------------------------------------------------------------------------------------

    def identify(self, message: Message) -> None:
        """Give a message its identifier, if it has none: [MS-MQQB] 3.1.7.1.1."""
        if message.identifier.uniquifier:
            return
        self._ordinal = self._ordinal % (_ORDINALS - 1) + 1
        if self._ordinal > self._ordinals_until or self._ordinal == 1:
            self._put_ordinal(min(self._ordinal + _RESERVED, _ORDINALS - 1))
        message.identifier = ObjectId(self.context.queue_manager.identifier, self._ordinal)

    def _put_ordinal(self, last: int) -> None:
        """None of up to this number is given again after a restart: MQQB-3.1.1.3-16."""
        self._ordinals_until = last
        self.context.changes.put(Table.META, transfer_rows.MESSAGE_ID_ORDINAL, last.to_bytes(8, "little"))

    def stamp(self, message: Message) -> None:
        """A message that begins here: who and when."""
        message.source_machine_identifier = self.context.queue_manager.identifier
        message.sent_time = self.context.utc
        self.identify(message)
        if isinstance(message.destination, PrivateName):
            message.destination_queue_manager_identifier = message.destination.guid

    def protect(self, outgoing: OutgoingMessagePosition, message: Message) -> bool:
        """Signing and encrypting: False for a message that can't be sent as it asks, which is ended then."""
        if self.security.can_protect(message):
            return True
        transfer = outgoing.transfer
        transfer.remove(outgoing)
        self.sequences.given_up(outgoing)
        session = transfer.session
        self.connecting.record(
            transfer, ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE,
            HResult.MQ_ERROR_COMPUTER_DOES_NOT_SUPPORT_ENCRYPTION, session.remote_address if session else "",
        )  # fmt: skip
        self.ending.tell_sent(message, delivered=False)
        self.ending.dead_letter(outgoing, message)
        return False

    def serves(self, queue: OutgoingQueue) -> bool:
        """Whether the messages of a queue go by this protocol: MQQB-3.1.7.12-01."""
        return not queue.multicast and not is_http(queue.destination)

    def transfer_of(self, queue: OutgoingQueue) -> Transfer:
        """The transfer of an outgoing queue."""
        found = self.transfers.get(queue.number)
        if found is None:
            found = self.transfers[queue.number] = self._new_transfer(queue)
        return found

    def _new_transfer(self, queue: OutgoingQueue) -> Transfer:
        """What there is to know of the way out of a queue."""
        direct = isinstance(queue.destination, DirectName)
        host = queue.destination.host if isinstance(queue.destination, DirectName) else ""
        return Transfer(queue, self._peer_of(queue), host, direct=direct)

    def _peer_of(self, queue: OutgoingQueue) -> Peer:
        """Get Destination Info: [MS-MQQB] 3.1.7.4. A queue whose host is not known has a way of its own."""
        name = queue.destination
        assert name is not None, "an outgoing queue has a destination"
        if isinstance(name, DirectName):
            return (
                ("direct", queue.acknowledged_peer)
                if queue.acknowledged_peer
                else ("host", name.host.lower())
            )
        found = self.routing.get_destination_info(name)
        return ("qm", found.queue_manager) if found else ("queue", queue.number)

    def locate(self, transfer: Transfer) -> Peer:
        """Where a transfer goes by now: its queue may be known by now, or have moved."""
        return self._peer_of(transfer.queue)

    def next_hops(self, transfer: Transfer) -> list[NextHop]:
        """Get Next Hops: [MS-MQQB] 3.1.7.5. The addresses are still to be found."""
        guid = transfer.qm_guid
        if guid is None or guid == NULL_GUID:
            return []
        hops = self.routing.get_next_hops(guid)
        return [NextHop(hop.identifier, hop.qualified_computer_name or hop.computer_name, "") for hop in hops]

    # -- what the core tells: [MS-MQQB] 3.1.7 ----------------------------------------------------------

    def message_position_available(self, queue: Queue, position: MessagePosition) -> None:
        """[MS-MQQB] 3.1.7.12."""
        if isinstance(queue, OutgoingQueue) and self.serves(queue):
            self.sending.available(queue, position)

    def message_position_deleted(self, queue: Queue, position: MessagePosition, reason: int) -> None:
        """[MS-MQQB] 3.1.7.2."""
        if isinstance(queue, OutgoingQueue):
            transfer = self.transfers.get(queue.number)
            if transfer is None:
                return
            outgoing = transfer.table.get(position)
            if outgoing is not None:
                transfer.remove(outgoing)
                self.sequences.given_up(outgoing)
            elif transfer.awaiting_final_ack:
                outgoing = transfer.awaiting_final_ack.get(position.message.identifier.uniquifier)
                if outgoing is not None and outgoing.position is position:
                    self.sequences.taken_away(outgoing)
            return
        if queue.queue_type is not QueueType.SYSTEM and not position.silent:
            self.acknowledging.removed(position.message, reason)

    def queue_paused(self, queue: OutgoingQueue) -> None:
        """Pause Queue Event: [MS-MQQB] 3.1.7.13."""
        transfer = self.transfers.get(queue.number)
        session = transfer.session if transfer else None
        if session is not None and session.is_open:
            self.context.timers.stop(Timer.SESSION_ACK_SEND, session.number)
            self.session_timers.send_session_ack(session, 1)
            session.session_active = False
        self.dispatch.remove_queue(queue)

    def queue_resumed(self, queue: OutgoingQueue) -> None:
        """Resume Queue Event: [MS-MQQB] 3.1.7.14."""
        transfer = self.transfers.get(queue.number)
        if transfer is None or queue.state in _HELD:
            return
        session = transfer.session
        if session is not None and session.is_open:
            session.session_active = True
            queue.state = OutgoingQueueState.CONNECTED
            self.sending.send_waiting(session)
        elif transfer.table:
            self.connecting.ensure_session(transfer)

    def send_user_message(self, position: MessagePosition, protocol_data: object) -> None:
        """Send User Message Wrapper: [MS-MQQB] 3.1.7.16."""
        if isinstance(protocol_data, OutgoingMessagePosition):
            self.sending.send(protocol_data)
            self.dispatch.remove(position)


_EVENTS: Final = {
    "UserMessage": SessionEvent.USER_MESSAGE,
    "SessionAck": SessionEvent.SESSION_ACK,
    "OrderAck": SessionEvent.ORDER_ACK,
    "FinalAck": SessionEvent.FINAL_ACK,
}
