"""The table of sessions, one row for each TCP connection that carries MSMQ.

A connection carries MSMQ when one of its ports is a known one, or a packet or SRMP was recognised in it. Each
flow has a tracker of its own, so a row is the same whether one task reads everything or many share the work.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from msmqwire.analysis.dissection import MSMQ_PORT, Item, Tracker
from msmqwire.capture import Datagram, End, Gap
from msmqwire.capture.ip import ACK, SYN
from msmqwire.capture.record import NO_TIME, representable, time_or_none
from msmqwire.capture.tcp import IDLE_NS_MAX
from msmqwire.schema import Record
from msmqwire.tables.columns import BOOL, INT32, INT64, TEXT, TIME

KINDS: Final = (
    "EstablishConnection", "ConnectionParameters", "SessionAck", "UserMessage", "OrderAck", "FinalAck",
    "SrmpMessage",
)  # fmt: skip


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


_PER_SIDE: Final[dict[str, tuple[str, str]]] = {
    "segments": ("segments", "TCP segments"),
    "bytes": ("payload_bytes", "Bytes of TCP payload, retransmissions included"),
    "missing": ("cut_bytes", "Bytes of TCP payload that the capture cut off"),
    "packets": ("packets", "Packets that can be read"),
    **{kind: (f"{_snake(kind)}_packets", f"{kind} packets") for kind in KINDS},
    "Malformed": ("malformed_packets", "Packets that can't be read"),
    "Skipped": ("skipped_bytes", "Bytes that belong to no packet"),
    "express": ("express_messages", "UserMessage packets with express delivery"),
    "recoverable": ("recoverable_messages", "UserMessage packets with recoverable delivery"),
    "transactional": ("transactional_messages", "UserMessage packets of a transaction"),
    "repeated": ("repeated_bytes", "Retransmitted bytes"),
    "conflicting": ("conflicting_bytes", "Of those still buffered, retransmitted bytes with another value"),
    "lost": (
        "lost_bytes",
        "Bytes that were sent and are not in the capture, as far as their number is known",
    ),
}
"""The counters of each side, by their name in `_Side.counts`: column and meaning."""


def _field(name: str, kind: Any, meaning: str) -> Any:
    return pa.field(name, kind, metadata={"comment": meaning, "group": "session"})


SESSION_SCHEMA: Final = pa.schema(
    [
        _field("first", TIME, "When its first segment was captured."),
        _field("last", TIME, "When its last segment was captured."),
        _field("duration_ns", INT64, "Nanoseconds between the two; null if 64 bits can't represent them."),
        _field("file", TEXT, "The capture file of the first segment."),
        _field("flow", INT64, "A number for the pair of endpoints, the same in both directions."),
        _field("client", TEXT, "Address of the initiator."),
        _field("client_port", INT32, "Port of the initiator."),
        _field("server", TEXT, "Address of the acceptor."),
        _field("server_port", INT32, "Port of the acceptor."),
        _field("opening_seen", BOOL, "The SYN of the initiator is in the capture."),
        _field("client_guid", TEXT, "The initiator's queue manager, of the first EstablishConnection."),
        _field("server_guid", TEXT, "The acceptor's, of the last EstablishConnection from the acceptor."),
        _field(
            "handshake",
            TEXT,
            "complete: EstablishConnection and ConnectionParameters both ways; refused: a packet says so; "
            "incomplete: some of them; none seen: none of them.",
        ),
        _field("window_size", INT32, "Messages that may be unacknowledged, as the acceptor answered."),
        _field("ack_timeout_ms", INT64, "AckTimeout of the last ConnectionParameters."),
        _field("recoverable_ack_timeout_ms", INT64, "RecoverableAckTimeout of the last one."),
        *(
            _field(f"{side}_{column}", INT64, f"{meaning}, from the {whose}.")
            for side, whose in (("client", "initiator"), ("server", "acceptor"))
            for column, meaning in _PER_SIDE.values()
        ),
        _field(
            "ended",
            TEXT,
            "fin: both sides; half-fin: one side; rst; reused: a new connection used its ports; idle: silent "
            f"for {IDLE_NS_MAX // 60_000_000_000} minutes; capture: the capture ended before.",
        ),
    ]
)
"""One row per session. Sizes are in bytes."""

_Endpoint = tuple[str, int]


@dataclass(slots=True)
class _Side:
    """The counters and the state of one direction.

    Attributes:
        counts: by the keys of `_PER_SIDE`.
        ending: the end of the direction, see `End.how`; empty while it is open.
        established: whether an EstablishConnection was seen.
        parameters: whether ConnectionParameters were seen.
    """

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_PER_SIDE, 0))
    ending: str = ""
    established: bool = False
    parameters: bool = False


@dataclass(slots=True)
class Session:
    """State of one connection so far.

    Attributes:
        first: its first segment.
        last_ns: the time of its last segment. client: the initiator, as far as it is known.
        opening_seen: whether the initiator's SYN is in the capture.
        recognised: whether a packet, or bytes skipped in search of one, was found in it.
        refused: whether a packet refused the session.
        values: the cells of the row that single packets determine.
        sides: by endpoint.
    """

    first: Datagram
    last_ns: int
    client: _Endpoint
    opening_seen: bool = False
    recognised: bool = False
    refused: bool = False
    values: dict[str, Any] = field(default_factory=dict)
    sides: dict[_Endpoint, _Side] = field(default_factory=dict)

    def side(self, src: str, port: int) -> _Side:
        """Return the direction that starts at an endpoint."""
        return self.sides.setdefault((src, port), _Side())

    def count_segment(self, segment: Datagram) -> None:
        """Count a segment."""
        if segment.flags & SYN and not self.opening_seen:
            # The initiator sends SYN without ACK; SYN with ACK is the acceptor's answer.
            is_answer = bool(segment.flags & ACK)
            source, destination = (segment.src, segment.src_port), (segment.dst, segment.dst_port)
            self.client, self.opening_seen = destination if is_answer else source, not is_answer
        self.last_ns = max(self.last_ns, segment.time_ns)
        counts = self.side(segment.src, segment.src_port).counts
        counts["segments"] += 1
        counts["bytes"] += len(segment.payload)
        counts["missing"] += segment.missing

    def count_item(self, item: Item) -> None:
        """Count a packet, a malformed one or skipped bytes."""
        self.recognised = True
        side = self.side(item.src, item.src_port)
        if item.packet is None:
            side.counts[item.kind] += item.size if item.kind == "Skipped" else 1
            return
        side.counts["packets"] += 1
        if item.kind in side.counts:  # calls of RPC and NCP have no counters of their own
            side.counts[item.kind] += 1
        if not isinstance(item.packet, Record):
            return
        match item.kind:
            case "UserMessage":
                side.counts[_delivery(item.packet)] += 1
            case "EstablishConnection":
                self._note_establishing(side, item.packet)
            case "ConnectionParameters":
                self._note_parameters(side, item.packet)

    def _note_establishing(self, side: _Side, packet: Record) -> None:
        header = packet.EstablishConnectionHeader
        is_answer = not side.established and any(
            other.established for other in self.sides.values() if other is not side
        )
        side.established = True
        self.refused |= bool(packet.InternalHeader.Flags.CS)
        self.values.setdefault("client_guid", str(header.ClientGuid))
        if is_answer or "server_guid" not in self.values:
            self.values["server_guid"] = str(header.ServerGuid)

    def _note_parameters(self, side: _Side, packet: Record) -> None:
        header = packet.ConnectionParametersHeader
        side.parameters = True
        self.refused |= bool(packet.InternalHeader.Flags.CS)
        self.values["window_size"] = header.WindowSize
        self.values["ack_timeout_ms"] = header.AckTimeout
        self.values["recoverable_ack_timeout_ms"] = header.RecoverableAckTimeout

    @property
    def is_over(self) -> bool:
        """Whether each direction that brought segments has ended."""
        return all(side.ending or not side.counts["segments"] for side in self.sides.values())

    @property
    def handshake(self) -> str:
        """The cell of the column ``handshake``."""
        sides = self.sides.values()
        if self.refused:
            return "refused"
        if len(sides) == 2 and all(side.established and side.parameters for side in sides):
            return "complete"
        return "incomplete" if any(side.established or side.parameters for side in sides) else "none seen"

    def ended(self, end_ns: int) -> str:
        """The cell of the column ``ended``, given when the capture ended."""
        endings = [side.ending for side in self.sides.values()]
        for ending in ("rst", "reused"):
            if ending in endings:
                return ending
        if "fin" in endings:
            return "fin" if endings.count("fin") == 2 else "half-fin"
        is_idle = self.last_ns != NO_TIME and end_ns - self.last_ns >= IDLE_NS_MAX
        return "idle" if is_idle else "capture"

    def row(self, flow: int, end_ns: int) -> dict[str, Any]:
        """The row of `SESSION_SCHEMA`."""
        first = self.first
        first_ns, last_ns = time_or_none(first.time_ns), time_or_none(self.last_ns)
        duration_ns = None
        if first_ns is not None and last_ns is not None:
            duration_ns = time_or_none(representable(last_ns - first_ns))
        endpoints = [(first.src, first.src_port), (first.dst, first.dst_port)]
        client, server = endpoints if endpoints[0] == self.client else reversed(endpoints)
        row = {
            "first": first_ns,
            "last": last_ns,
            "duration_ns": duration_ns,
            "file": first.file,
            "flow": flow,
            "client": client[0],
            "client_port": client[1],
            "server": server[0],
            "server_port": server[1],
            "opening_seen": self.opening_seen,
            "handshake": self.handshake,
            "ended": self.ended(end_ns),
            **self.values,
        }
        for name, endpoint in (("client", client), ("server", server)):
            counts = self.side(*endpoint).counts
            row |= {f"{name}_{column}": counts[key] for key, (column, _) in _PER_SIDE.items()}
        return row


def _delivery(message: Record) -> str:
    if message.get("TransactionHeader") is not None:
        return "transactional"
    return "recoverable" if message.UserHeader.Flags.DM else "express"


def _ends(segment: Datagram) -> tuple[frozenset[_Endpoint], int]:
    """Return both ends of the connection of a segment, and the network in which they are."""
    return frozenset(((segment.src, segment.src_port), (segment.dst, segment.dst_port))), segment.network


class FlowSessions:
    """The sessions of one flow, one after the other in each network.

    Args:
        flow: its number.
        ports: as for `msmqwire.dissect`.

    Attributes:
        last_ns: the time of the last segment of the flow.
    """

    def __init__(self, flow: int, *, ports: Collection[int]) -> None:
        self._flow = flow
        self._ports = {MSMQ_PORT, *ports}
        self._tracker = Tracker(ports=ports, lint=False, locate=lambda frames: ("", frames))
        self._sessions: dict[int, Session] = {}  # by stream
        self.last_ns = 0

    def feed(self, segment: Datagram) -> Iterator[dict[str, Any]]:
        """Yield the rows of the sessions that a segment shows to be over."""
        if segment.transport != "tcp":
            return
        self.last_ns = max(self.last_ns, segment.time_ns)
        reassembler = self._tracker.reassembler
        before = reassembler.counters.as_dict()
        events = reassembler.feed(segment)
        stream = reassembler.stream(segment)
        assert stream is not None  # the segment was just fed
        session = self._sessions.get(stream)
        if session is None:
            session = Session(segment, segment.time_ns, self._initiator(segment))
            self._sessions[stream] = session
        session.count_segment(segment)
        after = reassembler.counters
        counts = session.side(segment.src, segment.src_port).counts
        counts["repeated"] += after.repeated_bytes - before["repeated_bytes"]
        counts["conflicting"] += after.conflicting_bytes - before["conflicting_bytes"]
        self._count_events(events)
        ends = _ends(segment)  # two networks with the same addresses are two connections in one flow
        over = [
            other
            for other, session in self._sessions.items()
            if other != stream and session.is_over and _ends(session.first) == ends
        ]
        for other in over:
            yield from self._rows(other, segment.time_ns)

    def flush(self, end_ns: int) -> Iterator[dict[str, Any]]:
        """Yield the rows of the remaining sessions at the end of the capture."""
        self._count_events(self._tracker.reassembler.flush(end_ns))
        for stream in list(self._sessions):
            yield from self._rows(stream, end_ns)

    def _count_events(self, events: Iterable[Any]) -> None:
        for event in events:
            session = self._sessions[event.flow.stream]
            side = session.side(event.flow.src, event.flow.src_port)
            if isinstance(event, End):
                side.ending = event.reason
            elif isinstance(event, Gap):
                side.counts["lost"] += event.size or 0
            for item in self._tracker.event(event):
                session.count_item(item)

    def _initiator(self, segment: Datagram) -> _Endpoint:
        """The presumed initiator of a connection whose SYN is not seen: the end without the known port."""
        if segment.src_port in self._ports and segment.dst_port not in self._ports:
            return segment.dst, segment.dst_port
        return segment.src, segment.src_port

    def _rows(self, stream: int, end_ns: int) -> Iterator[dict[str, Any]]:
        session = self._sessions.pop(stream)
        on_known_port = not self._ports.isdisjoint((session.first.src_port, session.first.dst_port))
        if on_known_port or session.recognised:
            yield session.row(self._flow, end_ns)
