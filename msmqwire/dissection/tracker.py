"""Datagrams to items: pings, PGM, NCP, and the packets of every TCP connection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from msmqwire.capture import Data, Datagram, End, Event, Flow, Reassembler
from msmqwire.capture.connection_checkpoint import ConnectionCheckpoint
from msmqwire.capture.direction import Direction
from msmqwire.capture.record import time_or_none
from msmqwire.dissection.connection import Connection
from msmqwire.dissection.finder import ScanResult
from msmqwire.dissection.frame_ranges import FragmentFrames
from msmqwire.dissection.item import SRMP_KIND, Item
from msmqwire.dissection.message_security import NOTHING_GIVEN, Examiner, SignatureStatus
from msmqwire.dissection.ncp_datagrams import NcpDatagrams, is_ncp
from msmqwire.dissection.pgm_items import LocateFrames, PgmItems, is_pgm
from msmqwire.dissection.rpc_calls import Handles
from msmqwire.errors import MalformedPacket
from msmqwire.framing import begins_packet
from msmqwire.headers.base import PREFIX_SIZE
from msmqwire.lint import (
    Finding,
    PingLint,
    RemoteReadLint,
    lint_malformed,
    lint_malformed_ncp,
    lint_malformed_rpc,
    lint_malformed_srmp,
    lint_packet,
    lint_rpc,
    lint_srmp,
    lint_wrong_signature,
)
from msmqwire.lint.queue_managers import TWO_ADDRESSES, Place, QueueManagers, two_addresses
from msmqwire.lint.registry import FieldOffsets
from msmqwire.lint.srmp_attacks import NOT_CONFORMING
from msmqwire.netware.ncp_packet import NcpPacket
from msmqwire.netware.readings import PROPOSED, Readings
from msmqwire.packets import parse
from msmqwire.ping import PING_PORT, PING_SIGNATURE, PING_SIZE, has_ping_signature, is_ping
from msmqwire.remote_read.rpc_packet import RpcPacket
from msmqwire.schema import Record
from msmqwire.srmp.message import SrmpMessage

MSMQ_PORT: Final = 1801
CONNECTIONS_MAX: Final = 32_768
"""TCP connections tracked at a time; those idle for longest are evicted."""
PINGERS_MAX: Final = 4096
"""Pairs of hosts whose pings are remembered, to lint the responses."""
HELD_MAX: Final = 32 << 20
"""Bytes of memory that the incomplete packets of all connections may take together."""
HALF_ENDED_MAX: Final = 4096
"""Connections remembered of which one direction has ended and the other delivered nothing."""

_NO_SIGNATURE: Final = f"the size of a ping, without its signature {PING_SIGNATURE:#06x}"
_BY_THE_CAPTURE: Final = ("ATTACK-RPC-FRAGMENT", "ATTACK-TRUNCATED", NOT_CONFORMING.id)


class Tracker:
    """Turns datagrams, in capture order, into the items that each completes.

    Args:
        ports: TCP ports besides 1801 and UDP ports besides 3527 whose traffic is MSMQ.
        lint: whether to lint the packets.
        locate: maps frame numbers to files.
        examiner: has the keys and certificates given.
        readings: how disputed fields of NCP are read.

    Attributes:
        reassembler: reassembles the segments of all connections.
        connections: by stream, the connections that delivered anything and have not ended.
        tcp_ports: the TCP ports whose traffic is MSMQ.
        ping_ports: the UDP ports whose traffic is pings.
        held: the approximate number of bytes of memory that incomplete packets take, over TCP.
    """

    def __init__(
        self,
        *,
        ports: Collection[int],
        lint: bool,
        locate: LocateFrames,
        examiner: Examiner = NOTHING_GIVEN,
        readings: Readings = PROPOSED,
    ) -> None:
        self.tcp_ports = {MSMQ_PORT, *ports}
        self.ping_ports = {PING_PORT, *ports}
        self._other_ports = frozenset(ports) - {PING_PORT}
        self.reassembler = Reassembler(max_flows=CONNECTIONS_MAX)
        self.connections: dict[int, Connection] = {}
        self.held = 0
        self._handles, self._remote_read_lint = Handles(), RemoteReadLint()
        self._to_come: Counter[Flow] = Counter()  # events that are known, and not looked at
        self._fragments = FragmentFrames()
        self._half_ended: dict[int, None] = {}
        self._ended_one_sided: frozenset[int] = frozenset()  # streams that end with the capture
        self._pings: dict[tuple[str, int, str], PingLint] = {}
        self._pgm_items = PgmItems(lint=lint, locate=locate)
        self._ncp_datagrams = NcpDatagrams(lint=lint, locate=locate, readings=readings)
        self._lint, self._queue_managers = lint, QueueManagers()
        self._examiner, self._readings = examiner, readings
        self._locate = locate

    def feed(self, datagram: Datagram) -> Iterator[Item]:
        """Yield the items that a datagram completes."""
        if is_pgm(datagram):
            yield from self._pgm_items.feed(datagram)
            return
        if datagram.transport == "udp":
            yield from self._udp(datagram)
            return
        if len(datagram.frames) > 1:
            self._fragments.add(datagram.frames)
        yield from self._events(self.reassembler.feed(datagram))

    def _events(self, events: list[Event]) -> Iterator[Item]:
        """Yield the items that events complete which became known at once, a direction after the other."""
        if len(events) > 1:
            self._to_come = Counter(event.flow for event in events if not isinstance(event, End))
        for event in events:
            if self._to_come:
                self._to_come[event.flow] -= 1
            yield from self.event(event)
        self._to_come.clear()

    def flush(self, time_ns: int = 0) -> Iterator[Item]:
        """End the capture, at this time or that of the last datagram; yield the last items."""
        self.expect_end(self.reassembler.first_directions())
        yield from self._events(self.reassembler.flush(time_ns))
        yield from self._pgm_items.flush()

    def expect_end(self, directions: Iterable[Direction]) -> None:
        """Note which connections are one-sided before they end, given by their directions first seen."""
        self._ended_one_sided = frozenset(first.stream for first in directions if not first.peer.seen)

    def pause(self, successor_ns: int = 0) -> Iterator[Item]:
        """Yield the items that a successor can't know of, which has the frames from `successor_ns` on.

        Nothing ends.
        """
        for event in self.reassembler.pause(successor_ns):
            yield from self.event(event)

    def save(self) -> ConnectionCheckpoint | None:
        """Return a checkpoint of the only connection, without the state of its linter.

        None unless it is MSMQ and both its directions are between two packets, with nothing buffered or in
        doubt.
        """
        checkpoint = self.reassembler.save()
        if checkpoint is None:
            return None
        connection = next(iter(self.connections.values()), None)
        flows = checkpoint.flows()
        between = connection.between_packets(flows) if connection is not None else not flows
        return checkpoint if between else None

    def resume(self, checkpoint: ConnectionCheckpoint) -> None:
        """Resume a connection from a checkpoint. Only before anything is fed."""
        self.reassembler.resume(checkpoint)
        if flows := checkpoint.flows():
            self.add_connection(flows[0]).resume(flows)

    def _udp(self, datagram: Datagram) -> Iterator[Item]:
        """Yield the item of a datagram that shows what it is; a port alone tells nothing.

        A ping is known by its signature. On its ports, one of another size is malformed, as is a packet of a
        session; what has only the size of one is skipped, so that it can be seen.
        """
        payload = datagram.payload
        if is_ncp(datagram, () if is_ping(payload) else self._other_ports):
            yield self._ncp_datagrams.item(datagram)
        elif is_ping(payload):
            yield self._ping(datagram)
        elif not self.ping_ports.isdisjoint((datagram.src_port, datagram.dst_port)):
            begins_session = len(payload) >= PREFIX_SIZE and begins_packet(payload[:PREFIX_SIZE])
            if has_ping_signature(payload) or begins_session:
                yield self._ping(datagram)
            elif len(payload) + datagram.missing == PING_SIZE:
                yield self._datagram_item(datagram, None, "Skipped", [], reason=_NO_SIGNATURE)

    def _ping(self, datagram: Datagram) -> Item:
        payload = datagram.payload
        packet, error = None, None
        try:
            packet = parse(payload, protocol="ping")
        except MalformedPacket as exc:
            error = exc.detached()
        findings: list[Finding] = []
        if self._lint and packet is not None:
            findings = lint_packet(packet, payload) + self._lint_ping(datagram, packet)
        elif self._lint and error is not None:
            findings = _unless_cut(lint_malformed(payload, error, "ping"), cut=datagram.missing > 0)
        kind = packet.schema.name if packet else "Malformed"
        return self._datagram_item(datagram, packet, kind, findings, error)

    def _datagram_item(
        self,
        datagram: Datagram,
        packet: Record | None,
        kind: str,
        findings: list[Finding],
        error: MalformedPacket | None = None,
        reason: str = "",
    ) -> Item:
        file, frames = self._locate(datagram.frames)
        size = len(datagram.payload) + datagram.missing
        raw = b"" if reason else datagram.payload
        return Item(
            file, time_or_none(datagram.time_ns), frames, datagram.transport, None,
            datagram.src, datagram.src_port, datagram.dst, datagram.dst_port,
            packet, kind, size, findings, error, raw, reason,
        )  # fmt: skip

    def _lint_ping(self, datagram: Datagram, packet: Record) -> list[Finding]:
        is_request = datagram.dst_port in self.ping_ports
        pair = (datagram.src, datagram.src_port, datagram.dst)
        if not is_request:
            pair = (datagram.dst, datagram.dst_port, datagram.src)
        linter = self._pings.pop(pair, None) or PingLint()
        self._pings[pair] = linter
        if len(self._pings) > PINGERS_MAX:
            del self._pings[next(iter(self._pings))]
        return linter.packet(is_request, packet)

    def add_connection(self, flow: Flow) -> Connection:
        """Add the connection of a direction that is about to deliver."""
        connection = Connection(flow, self.tcp_ports, self._handles, self._readings)
        self.connections[flow.stream] = connection
        return connection

    def event(self, event: Event) -> Iterator[Item]:
        """Yield the items that an event of the reassembler completes: for callers that need the events."""
        yield from self.items_of(event)
        if self.held > HELD_MAX:
            yield from self._free_memory()

    def items_of(self, event: Event) -> Iterator[Item]:
        """Yield the items that an event completes, for callers that see to it that not too much is held."""
        flow = event.flow
        connection = self.connections.get(flow.stream)
        if connection is None:
            if isinstance(event, End):
                return
            connection = self.add_connection(flow)
        held = connection.held
        if isinstance(event, Data):
            results = connection.data(event)
        elif isinstance(event, End):
            results = connection.end(event)
        else:
            results = connection.gap(event)
        for result in results:
            yield self._item(flow, connection, result)
        self.held += connection.held - held
        if isinstance(event, End):
            self._ended(flow.stream, connection)

    def _ended(self, stream: int, connection: Connection) -> None:
        """Forget a connection once both directions have ended; of those half ended and idle, the oldest."""
        if len(connection.ended) == 2:
            del self.connections[stream]
            self._half_ended.pop(stream, None)
        elif connection.idle:
            self._half_ended[stream] = None
            if len(self._half_ended) > HALF_ENDED_MAX:
                oldest = next(iter(self._half_ended))
                del self._half_ended[oldest]
                if self.connections[oldest].idle:
                    del self.connections[oldest]

    def _free_memory(self) -> Iterator[Item]:
        """Skip the incomplete packets of the connections that hold most, down to half of the limit."""
        ranked = sorted((-connection.held, stream) for stream, connection in self.connections.items())
        for _, stream in ranked:
            if self.held <= HELD_MAX // 2:
                break
            yield from self.discard(stream)

    def discard(self, stream: int) -> Iterator[Item]:
        """Skip the incomplete packets of a connection that has delivered something; yield the items."""
        connection = self.connections[stream]
        held = connection.held
        skipped = connection.discard()
        self.held += connection.held - held
        for flow, results in skipped:
            for result in results:
                yield self._item(flow, connection, result)

    def _lint_signature(self, packet: Record) -> list[Finding]:
        """Judge the signature of a message, if there are keys or certificates."""
        if not self._examiner.was_given_any:
            return []
        examined = self._examiner.examine(packet)
        is_wrong = examined is not None and examined.signature_status is SignatureStatus.INVALID
        return lint_wrong_signature(packet) if is_wrong else []

    def _lint_address(
        self, flow: Flow, connection: Connection, packet: Record, result: ScanResult
    ) -> Iterator[Finding]:
        """Yield that the queue manager which has sent a packet was seen at another address, too."""
        claim = connection.lint.claim(connection.from_initiator(flow), packet)
        if claim is None:
            return
        guid, path = claim
        file, frames = self._locate(result.frames)
        here = Place(flow.src, file, frames[-1])
        there = self._queue_managers.add(guid, here)
        if there is not None:
            yield TWO_ADDRESSES.at(path, FieldOffsets(packet).of(path), two_addresses(guid, here, there))

    def _item(self, flow: Flow, connection: Connection, result: ScanResult) -> Item:
        packet, error = result.packet, result.error
        findings: list[Finding] = []
        if isinstance(packet, SrmpMessage):
            kind = SRMP_KIND
            if self._lint:
                findings = lint_srmp(packet, flow.src)
        elif isinstance(packet, RpcPacket):
            kind = packet.kind
            if self._lint and connection.rpc is not None:
                findings = lint_rpc(packet)
                findings += connection.rpc.lint_call(
                    self._remote_read_lint, flow, packet, is_behind=self._is_behind(flow)
                )
        elif isinstance(packet, NcpPacket):
            kind = packet.kind
            if self._lint and connection.ncp is not None:
                findings = connection.ncp.lint.packet(packet)
        elif packet is not None:
            kind = packet.schema.name
            if self._lint:
                findings = lint_packet(packet, result.data) + self._lint_signature(packet)
                findings += self._lint_address(flow, connection, packet, result)
                findings += connection.lint.packet(
                    connection.from_initiator(flow), packet, result.data, time_or_none(result.time_ns),
                    is_behind=self._is_behind(flow),
                )  # fmt: skip
        elif error is not None:
            kind = "Malformed"
            if self._lint and connection.http is not None:
                findings = _unless_cut(lint_malformed_srmp(result.data, error), cut=result.cut)
            elif self._lint and connection.rpc is not None:
                findings = _unless_cut(lint_malformed_rpc(result.data, error), cut=result.cut)
            elif self._lint and connection.ncp is not None:
                findings = _unless_cut(lint_malformed_ncp(result.data, error), cut=result.cut)
            elif self._lint:
                findings = _unless_cut(lint_malformed(result.data, error), cut=result.cut)
                connection.lint.gap()
        else:
            kind = "Skipped"
            connection.lint.gap()
        file, frames = self._locate(self._fragments.of(result.frames))
        asked = None if result.request_frame is None else self._locate((result.request_frame,))[1][0]
        return Item(
            file, time_or_none(result.time_ns), frames, "tcp", flow.stream,
            flow.src, flow.src_port, flow.dst, flow.dst_port,
            packet, kind, result.size, findings, error, result.data, result.reason,
            result.exchange, asked, self._examiner,
            None if connection.http is None else self._is_one_sided(flow),
        )  # fmt: skip

    def _is_behind(self, flow: Flow) -> bool:
        """Whether the sender has received something that was not captured, or not in order.

        It has acknowledged it, or nothing of the other direction was captured at all.
        """
        other = self.reassembler.direction((flow.dst, flow.dst_port, flow.src, flow.src_port))
        if other is None:
            return False
        if not other.seen or other.is_beyond_what_was_delivered():
            return True
        return other.flow is not None and self._to_come.get(other.flow, 0) > 0

    def _is_one_sided(self, flow: Flow) -> bool:
        """Whether no segment of the other direction was captured so far."""
        other = self.reassembler.direction((flow.dst, flow.dst_port, flow.src, flow.src_port))
        return flow.stream in self._ended_one_sided if other is None else not other.seen


def _unless_cut(findings: list[Finding], *, cut: bool) -> list[Finding]:
    """Return the findings of a malformed packet; what the capture has left out is no attack."""
    return [finding for finding in findings if not cut or finding.id not in _BY_THE_CAPTURE]
