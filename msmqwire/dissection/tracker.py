"""Datagrams to items: the pings, and the packets of every TCP connection."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from msmqwire.capture import Data, Datagram, End, Event, Flow, Reassembler
from msmqwire.capture.connection_checkpoint import ConnectionCheckpoint
from msmqwire.dissection.connection import Connection
from msmqwire.dissection.finder import ScanResult
from msmqwire.dissection.item import Item
from msmqwire.errors import MalformedPacket
from msmqwire.lint import Finding, PingLint, lint_malformed, lint_packet
from msmqwire.packets import Protocol, parse
from msmqwire.ping import PING_PORT, PING_SIGNATURE, PING_SIZE
from msmqwire.schema import Record

MSMQ_PORT: Final = 1801
CONNECTIONS_MAX: Final = 32_768
"""TCP connections that are followed at a time; the one silent for longest makes room for a new one."""
PINGERS_MAX: Final = 4096
"""Pairs of hosts whose pings are remembered, to judge the responses."""
HELD_MAX: Final = 32 << 20
"""Bytes held of packets that are not whole yet, of all connections together."""
HALF_ENDED_MAX: Final = 4096
"""Connections remembered of which one direction has ended and the other brought nothing."""

Place = Callable[[tuple[int, ...]], tuple[str, tuple[int, ...]]]
"""From the frame numbers of a datagram to the file of the last of them and their numbers there."""


class Tracker:
    """Takes datagrams in the order of the capture, gives the items that each completes.

    Args:
        ports: TCP ports besides 1801 and UDP ports besides 3527 whose traffic is MSMQ.
        lint: whether to judge the packets.
        place: where frames stand.

    Attributes:
        reassembler: puts the segments of all connections together.
        connections: by stream, those that brought anything and are not ended.
        tcp_ports: the TCP ports that are known to be MSMQ.
        ping_ports: the UDP ports that are.
        held: bytes of memory held of packets that are not whole yet, about.
    """

    def __init__(self, *, ports: Collection[int], lint: bool, place: Place) -> None:
        self.tcp_ports = {MSMQ_PORT, *ports}
        self.ping_ports = {PING_PORT, *ports}
        self.reassembler = Reassembler(max_flows=CONNECTIONS_MAX)
        self.connections: dict[int, Connection] = {}
        self.held = 0
        self._half_ended: dict[int, None] = {}
        self._pings: dict[tuple[str, int, str], PingLint] = {}
        self._lint = lint
        self._place = place

    def feed(self, datagram: Datagram) -> Iterator[Item]:
        """The items that a datagram completes."""
        if datagram.transport == "udp":
            yield from self._datagram(datagram)
            return
        for event in self.reassembler.feed(datagram):
            yield from self.event(event)

    def flush(self, time_ns: int = 0) -> Iterator[Item]:
        """The capture has ended, at this time or at that of the last datagram: what is left of every
        connection."""
        for event in self.reassembler.flush(time_ns):
            yield from self.event(event)

    def pause(self, joined_ns: int = 0) -> Iterator[Item]:
        """Another reader goes on from here that knows the frames from a time on only: what it can't tell is
        told now. Nothing ends."""
        for event in self.reassembler.pause(joined_ns):
            yield from self.event(event)

    def save(self) -> ConnectionCheckpoint | None:
        """The only connection that is known; None unless it is MSMQ and both its directions stand between
        two packets, with nothing held or in doubt. What its session is judged by is not in it."""
        saved = self.reassembler.save()
        if saved is None:
            return None
        connection = next(iter(self.connections.values()), None)
        flows = saved.flows()
        between = connection.between_packets(flows) if connection is not None else not flows
        return saved if between else None

    def resume(self, saved: ConnectionCheckpoint) -> None:
        """Go on with a connection as the tracker that saved it would. For one that was fed nothing."""
        self.reassembler.resume(saved)
        if flows := saved.flows():
            self.connections[flows[0].stream] = connection = Connection(flows[0], self.tcp_ports)
            connection.resume(flows)

    def _datagram(self, datagram: Datagram) -> Iterator[Item]:
        payload = datagram.payload
        known = datagram.src_port in self.ping_ports or datagram.dst_port in self.ping_ports
        signed = len(payload) == PING_SIZE and payload[2:4] == PING_SIGNATURE.to_bytes(2, "little")
        if not known and not signed:
            return
        packet, error = None, None
        try:
            packet = parse(payload, protocol="ping")
        except MalformedPacket as exc:
            error = exc.detached()
        findings: list[Finding] = []
        if self._lint and packet is not None:
            findings = lint_packet(packet, payload) + self._judged_ping(datagram, packet)
        elif self._lint and error is not None:
            findings = _malformed(payload, error, "ping", cut=datagram.missing > 0)
        kind = packet.schema.name if packet else "Malformed"
        size = len(payload) + datagram.missing
        file, frames = self._place(datagram.frames)
        yield Item(
            file, datagram.time_ns, frames, "udp", None,
            datagram.src, datagram.src_port, datagram.dst, datagram.dst_port,
            packet, kind, size, findings, error, payload, "",
        )  # fmt: skip

    def _judged_ping(self, datagram: Datagram, packet: Record) -> list[Finding]:
        asked = datagram.dst_port in self.ping_ports
        pair = (datagram.src, datagram.src_port, datagram.dst)
        if not asked:
            pair = (datagram.dst, datagram.dst_port, datagram.src)
        judge = self._pings.pop(pair, None) or PingLint()
        self._pings[pair] = judge
        if len(self._pings) > PINGERS_MAX:
            del self._pings[next(iter(self._pings))]
        return judge.packet(asked, packet)

    def event(self, event: Event) -> Iterator[Item]:
        """The items that an event of the reassembler completes: for who looks at those too."""
        flow = event.flow
        connection = self.connections.get(flow.stream)
        if connection is None:
            if isinstance(event, End):
                return
            connection = self.connections[flow.stream] = Connection(flow, self.tcp_ports)
        held = connection.held
        if isinstance(event, Data):
            found = connection.data(event)
        elif isinstance(event, End):
            found = connection.end(event)
            self._ended(flow.stream, connection)
        else:
            found = connection.gap(event)
        self.held += connection.held - held
        for one in found:
            yield self._item(flow, connection, one)
        if self.held > HELD_MAX:
            yield from self._let_go()

    def _ended(self, stream: int, connection: Connection) -> None:
        """Forgets a connection that nothing more is to come of; soon, when nothing may."""
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

    def _let_go(self) -> Iterator[Item]:
        """Skips what is held of the connections that hold most, until half of it is gone."""
        ranked = sorted(self.connections.values(), key=lambda connection: -connection.held)
        for connection in ranked:
            if self.held <= HELD_MAX // 2:
                break
            held = connection.held
            skipped = connection.let_go()
            self.held += connection.held - held
            for flow, found in skipped:
                for one in found:
                    yield self._item(flow, connection, one)

    def _item(self, flow: Flow, connection: Connection, found: ScanResult) -> Item:
        packet, error = found.packet, found.error
        findings: list[Finding] = []
        if packet is not None:
            kind = packet.schema.name
            if self._lint:
                findings = lint_packet(packet, found.data)
                findings += connection.lint.packet(
                    connection.from_initiator(flow), packet, found.data, found.time_ns
                )
        elif error is not None:
            kind = "Malformed"
            if self._lint:
                findings = _malformed(found.data, error, cut=found.cut)
                connection.lint.gap()
        else:
            kind = "Skipped"
            connection.lint.gap()
        file, frames = self._place(found.frames)
        return Item(
            file, found.time_ns, frames, "tcp", flow.stream,
            flow.src, flow.src_port, flow.dst, flow.dst_port,
            packet, kind, found.size, findings, error, found.data, found.reason,
        )  # fmt: skip


def _malformed(
    data: bytes, error: MalformedPacket, protocol: Protocol = "session", *, cut: bool
) -> list[Finding]:
    """What is wrong with a malformed packet; that it ends early is no attack when the capture cut it."""
    findings = lint_malformed(data, error, protocol)
    return [finding for finding in findings if not cut or finding.id != "ATTACK-TRUNCATED"]
