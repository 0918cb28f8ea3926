"""Datagrams to items: those of the dissectors that are registered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, Protocol

from msmqwire.analysis.dissection import registry
from msmqwire.analysis.dissection.connection import Connection
from msmqwire.analysis.dissection.dissector import Dissector, Surroundings
from msmqwire.analysis.dissection.frame_ranges import FragmentFrames
from msmqwire.analysis.dissection.item import Item, LocateFrames
from msmqwire.analysis.dissection.message_security import NOTHING_GIVEN, Examiner
from msmqwire.analysis.dissection.msmq_connection import MSMQ_PORT
from msmqwire.analysis.protocols.readings import PROPOSED, NcpReadings
from msmqwire.capture import Data, Datagram, End, Event, Flow, Reassembler
from msmqwire.capture.connection_checkpoint import ConnectionCheckpoint

CONNECTIONS_MAX: Final = 32_768
"""TCP connections tracked at a time; those idle for longest are evicted."""
HELD_MAX: Final = 32 << 20
"""Bytes of memory that the incomplete packets of all connections may take together."""
HALF_ENDED_MAX: Final = 4096
"""Connections remembered of which one direction has ended and the other delivered nothing."""


class FlowView(Protocol):
    """The facts about a connection that dissectors ask for during its event: see `Surroundings`."""

    def is_behind(self, flow: Flow) -> bool:
        """Whether the sender has received data that was not captured, or not in order."""

    def is_one_sided(self, flow: Flow) -> bool:
        """Whether nothing of the other direction was captured."""

    def ahead(self, flow: Flow) -> int | None:
        """Return how many bytes of the other direction the sender has acknowledged ahead, None if unknown."""


class Tracker:
    """Turns datagrams, in capture order, into the items that each completes.

    Args:
        ports: TCP ports besides 1801 and UDP ports besides 3527 whose traffic is MSMQ.
        lint: whether to lint the packets.
        locate: maps frame numbers to files.
        examiner: has the keys and certificates given.
        readings: readings of fields that sources describe differently.

    Attributes:
        reassembler: reassembles the segments of all connections.
        connections: the connections that delivered anything and have not ended, by stream.
        tcp_ports: the TCP ports whose traffic is MSMQ.
        ports: those given, also of UDP.
        lints: whether packets are linted.
        fragments: the frames of segments that came in fragments.
        held: the approximate number of bytes of memory that incomplete packets take, over TCP.
        streams: the dissectors of TCP.
        view: the facts about a connection while its events are taken; a reader may have a view of its own.
        new_connection: makes a connection of its first flow and the dissectors.
    """

    def __init__(
        self,
        *,
        ports: Collection[int],
        lint: bool,
        locate: LocateFrames,
        examiner: Examiner = NOTHING_GIVEN,
        readings: NcpReadings = PROPOSED,
    ) -> None:
        self.tcp_ports, self.ports = {MSMQ_PORT, *ports}, frozenset(ports)
        self.lints = lint
        self.reassembler = Reassembler(max_flows=CONNECTIONS_MAX)
        self.connections: dict[int, Connection] = {}
        self.held = 0
        self._to_come: Counter[Flow] = Counter()  # events that are known, and not looked at
        self.fragments = FragmentFrames()
        self._half_ended: dict[int, None] = {}
        surroundings = Surroundings(
            self.tcp_ports, self.ports, lint, locate, examiner, readings, self.fragments,
            self._is_behind, self._is_one_sided, self._ahead,
        )  # fmt: skip
        self.view: FlowView = self
        self.new_connection: Callable[[Flow, Sequence[Dissector]], Connection] = Connection
        self.streams: list[Dissector] = [kind(surroundings) for kind in registry.STREAMS]
        self._datagrams = [kind(surroundings) for kind in registry.DATAGRAMS]

    def feed(self, datagram: Datagram) -> Iterator[Item]:
        """Yield the items that a datagram completes."""
        if datagram.transport == "tcp":
            if len(datagram.frames) > 1:
                self.fragments.add(datagram.frames)
            yield from self._events(self.reassembler.feed(datagram))
            return
        for dissector in self._datagrams:
            if dissector.recognises(datagram):
                yield from dissector.items(datagram)
                return

    def _events(self, events: list[Event]) -> Iterator[Item]:
        """Yield the items that events complete which became known at once, a direction after the other."""
        if len(events) > 1:
            self._to_come = Counter(event.flow for event in events if not isinstance(event, End))
        for event in events:
            if self._to_come:
                self._to_come[event.flow] -= 1
            yield from self.event(event)
        self._to_come.clear()

    def start_openings(self) -> Iterator[Item]:
        """Yield the items of directions that only wait for the time after which they start."""
        yield from self._events(self.reassembler.start_openings())

    def flush(self, time_ns: int = 0) -> Iterator[Item]:
        """End the capture, at this time or that of the last datagram; yield the last items."""
        yield from self._events(self.reassembler.flush(time_ns))
        yield from self.end_datagrams()

    def end_datagrams(self) -> Iterator[Item]:
        """Yield the last items of datagrams."""
        for dissector in self._datagrams:
            yield from dissector.end()

    def pause(self, successor_ns: int = 0) -> Iterator[Item]:
        """Yield the items that a successor can't know of, which has the frames from `successor_ns` on.

        Nothing ends.
        """
        for event in self.reassembler.pause(successor_ns):
            yield from self.event(event)

    def save(self) -> ConnectionCheckpoint | None:
        """Return a checkpoint of the only connection, without the state of its linter.

        None unless both its directions are between two packets, with nothing buffered or in doubt, of a
        protocol that can be resumed.
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

    def add_connection(self, flow: Flow) -> Connection:
        """Add the connection of a direction that is about to deliver."""
        connection = self.new_connection(flow, self.streams)
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
            yield connection.item(flow, result)
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
                yield connection.item(flow, result)

    def is_behind(self, flow: Flow) -> bool:
        """Whether the sender has received something that was not captured, or not in order.

        It has acknowledged it, or nothing of the other direction was captured at all.
        """
        other = self.reassembler.other(flow)
        if other is None:
            return self.reassembler.is_one_sided(flow)
        if not other.seen or other.is_beyond_what_was_delivered():
            return True
        return other.flow is not None and self._to_come.get(other.flow, 0) > 0

    def is_one_sided(self, flow: Flow) -> bool:
        """Whether nothing of the other direction was captured."""
        return self.reassembler.is_one_sided(flow)

    def ahead(self, flow: Flow) -> int | None:
        """Return how many bytes of the other direction the sender has acknowledged ahead, None if unknown."""
        return self.reassembler.ahead(flow)

    # Methods, as the state of a tracker may be pickled.

    def _is_behind(self, flow: Flow) -> bool:
        return self.view.is_behind(flow)

    def _is_one_sided(self, flow: Flow) -> bool:
        return self.view.is_one_sided(flow)

    def _ahead(self, flow: Flow) -> int | None:
        return self.view.ahead(flow)
