"""The table of sessions, one row for each TCP connection that is MSMQ, and the job that makes it:
``spark-submit spark_udfs/jobs/sessions.py CAPTURES... --out DIR``.

A connection is MSMQ when one of its ports is known to be, or a packet was recognised in it. Each flow has a
tracker of its own, so that a row says the same whoever makes it: one task that reads everything, or many.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from msmqwire.capture import Datagram, End, Gap, IpDecoder, open_records
from msmqwire.capture.ip import ACK, SYN
from msmqwire.capture.tcp import IDLE_NS_MAX
from msmqwire.columnar import CaptureWarning
from msmqwire.columnar.columns import BOOL, INT32, INT64, TEXT, TIME
from msmqwire.dissection import MSMQ_PORT, Item, Tracker
from msmqwire.errors import CaptureError
from spark_udfs.jobs import common
from spark_udfs.reassembly.flow_numbers import flow_number
from spark_udfs.reassembly.segment_order import Segments, pieces
from spark_udfs.source.schema import arrow_fields, as_spark, spark_schema

if TYPE_CHECKING:
    from argparse import Namespace

    from pyspark.sql import DataFrame, SparkSession

    from spark_udfs.reassembly.arrange import Flows

KINDS: Final = (
    "EstablishConnection", "ConnectionParameters", "SessionAck", "UserMessage", "OrderAck", "FinalAck",
)  # fmt: skip
BATCH_ROWS: Final = 4096


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


_PER_SIDE: Final[dict[str, tuple[str, str]]] = {
    "segments": ("segments", "TCP segments"),
    "bytes": ("payload_bytes", "Bytes of TCP payload, sent again or not"),
    "missing": ("cut_bytes", "Bytes of TCP payload that the capture cut off"),
    "packets": ("packets", "Packets that can be read"),
    **{kind: (f"{_snake(kind)}_packets", f"{kind} packets") for kind in KINDS},
    "Malformed": ("malformed_packets", "Packets that can't be read"),
    "Skipped": ("skipped_bytes", "Bytes that are in no packet"),
    "express": ("express_messages", "UserMessage packets with express delivery"),
    "recoverable": ("recoverable_messages", "UserMessage packets with recoverable delivery"),
    "transactional": ("transactional_messages", "UserMessage packets of a transaction"),
    "repeated": ("repeated_bytes", "Bytes that were sent again"),
    "conflicting": ("conflicting_bytes", "Of those that were still held, bytes with another value"),
    "lost": (
        "lost_bytes",
        "Bytes that were sent and are not in the capture, as far as their number is known",
    ),
}
"""What is counted of each side, by the name in `_Side.counts`: column and meaning."""


def _field(name: str, kind: Any, meaning: str) -> Any:
    return pa.field(name, kind, metadata={"comment": meaning, "group": "session"})


SESSION_SCHEMA: Final = pa.schema(
    [
        _field("first", TIME, "When its first segment was captured."),
        _field("last", TIME, "When its last segment was captured."),
        _field("duration_ns", INT64, "Nanoseconds between the two."),
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
"""One row a session. Sizes are bytes."""

_SideKey = tuple[str, int]


@dataclass(slots=True)
class _Side:
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_PER_SIDE, 0))
    how: str = ""
    established: bool = False
    parameters: bool = False


@dataclass(slots=True)
class Session:
    """What is known so far of a connection.

    Attributes:
        first: its first segment.
        last_ns: when its last segment was captured.
        client: who opened it, as far as is known.
        recognised: whether a packet was found in it, or bytes that were skipped for one.
    """

    first: Datagram
    last_ns: int
    client: _SideKey
    opening_seen: bool = False
    recognised: bool = False
    refused: bool = False
    values: dict[str, Any] = field(default_factory=dict)
    sides: dict[_SideKey, _Side] = field(default_factory=dict)

    def side(self, src: str, port: int) -> _Side:
        return self.sides.setdefault((src, port), _Side())

    def segment(self, one: Datagram) -> None:
        """Counts a segment."""
        if one.flags & SYN and not self.opening_seen:
            # Whoever sends SYN without ACK opens it, or the one that SYN and ACK answer.
            opener = (one.dst, one.dst_port) if one.flags & ACK else (one.src, one.src_port)
            self.client, self.opening_seen = opener, not one.flags & ACK
        self.last_ns = max(self.last_ns, one.time_ns)
        counts = self.side(one.src, one.src_port).counts
        counts["segments"] += 1
        counts["bytes"] += len(one.payload)
        counts["missing"] += one.missing

    def item(self, item: Item) -> None:
        """Counts a packet, a malformed one or skipped bytes."""
        self.recognised = True
        side = self.side(item.src, item.src_port)
        if item.packet is None:
            side.counts[item.kind] += item.size if item.kind == "Skipped" else 1
            return
        side.counts["packets"] += 1
        side.counts[item.kind] += 1
        packet = item.packet
        if item.kind == "UserMessage":
            transactional = packet.get("TransactionHeader") is not None
            recoverable = bool(packet.UserHeader.Flags.DM)
            delivery = "transactional" if transactional else "recoverable" if recoverable else "express"
            side.counts[delivery] += 1
        elif item.kind == "EstablishConnection":
            header = packet.EstablishConnectionHeader
            answers = side.established is False and any(
                other.established for other in self.sides.values() if other is not side
            )
            side.established = True
            self.refused |= bool(packet.InternalHeader.Flags.CS)
            self.values.setdefault("client_guid", str(header.ClientGuid))
            if answers or "server_guid" not in self.values:
                self.values["server_guid"] = str(header.ServerGuid)
        elif item.kind == "ConnectionParameters":
            header = packet.ConnectionParametersHeader
            side.parameters = True
            self.refused |= bool(packet.InternalHeader.Flags.CS)
            self.values["window_size"] = header.WindowSize
            self.values["ack_timeout_ms"] = header.AckTimeout
            self.values["recoverable_ack_timeout_ms"] = header.RecoverableAckTimeout

    @property
    def handshake(self) -> str:
        sides = self.sides.values()
        if self.refused:
            return "refused"
        if len(sides) == 2 and all(side.established and side.parameters for side in sides):
            return "complete"
        return "incomplete" if any(side.established or side.parameters for side in sides) else "none seen"

    def ended(self, end_ns: int) -> str:
        hows = [side.how for side in self.sides.values()]
        for how in ("rst", "reused"):
            if how in hows:
                return how
        if "fin" in hows:
            return "fin" if hows.count("fin") == 2 else "half-fin"
        return "idle" if end_ns - self.last_ns >= IDLE_NS_MAX else "capture"

    def row(self, flow: int, end_ns: int) -> dict[str, Any]:
        """The row of `SESSION_SCHEMA`."""
        one = self.first
        ends = [(one.src, one.src_port), (one.dst, one.dst_port)]
        client, server = ends if ends[0] == self.client else reversed(ends)
        row = {
            "first": one.time_ns,
            "last": self.last_ns,
            "duration_ns": self.last_ns - one.time_ns,
            "file": one.file,
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
        for name, side in (("client", client), ("server", server)):
            counts = self.side(*side).counts
            row |= {f"{name}_{column}": counts[key] for key, (column, _) in _PER_SIDE.items()}
        return row


class FlowSessions:
    """The sessions of one flow, one after the other.

    Args:
        flow: its number.
        ports: as for `msmqwire.dissect`.
    """

    def __init__(self, flow: int, *, ports: Collection[int]) -> None:
        self._flow = flow
        self._ports = {MSMQ_PORT, *ports}
        self._tracker = Tracker(ports=ports, lint=False, locate=lambda frames: ("", frames))
        self._sessions: dict[int, Session] = {}
        self.last_ns = 0

    def feed(self, segment: Datagram) -> Iterator[dict[str, Any]]:
        """The rows of sessions that a segment shows to be over."""
        if segment.transport != "tcp":
            return
        self.last_ns = max(self.last_ns, segment.time_ns)
        reassembler = self._tracker.reassembler
        before = reassembler.counters.as_dict()
        events = reassembler.feed(segment)
        stream = reassembler.stream(segment)
        assert stream is not None  # it was fed just now
        session = self._sessions.get(stream)
        if session is None:
            session = Session(segment, segment.time_ns, self._opener(segment))
            self._sessions[stream] = session
        session.segment(segment)
        after = reassembler.counters
        counts = session.side(segment.src, segment.src_port).counts
        counts["repeated"] += after.repeated_bytes - before["repeated_bytes"]
        counts["conflicting"] += after.conflicting_bytes - before["conflicting_bytes"]
        self._take(events)
        for number in [number for number in self._sessions if number != stream and self._over(number)]:
            yield from self._rows(number, segment.time_ns)

    def flush(self, end_ns: int) -> Iterator[dict[str, Any]]:
        """The capture has ended: the rows of what is left."""
        self._take(self._tracker.reassembler.flush(end_ns))
        for number in list(self._sessions):
            yield from self._rows(number, end_ns)

    def _take(self, events: Iterable[Any]) -> None:
        for event in events:
            session = self._sessions[event.flow.stream]
            side = session.side(event.flow.src, event.flow.src_port)
            if isinstance(event, End):
                side.how = event.reason
            elif isinstance(event, Gap):
                side.counts["lost"] += event.size or 0
            for item in self._tracker.event(event):
                session.item(item)

    def _opener(self, segment: Datagram) -> _SideKey:
        """Who opened a connection, while its SYN was not seen: whose port is not the known one."""
        if segment.src_port in self._ports and segment.dst_port not in self._ports:
            return segment.dst, segment.dst_port
        return segment.src, segment.src_port

    def _over(self, number: int) -> bool:
        sides = self._sessions[number].sides.values()
        return all(side.how or not side.counts["segments"] for side in sides)

    def _rows(self, number: int, end_ns: int) -> Iterator[dict[str, Any]]:
        session = self._sessions.pop(number)
        known = not self._ports.isdisjoint((session.first.src_port, session.first.dst_port))
        if known or session.recognised:
            yield session.row(self._flow, end_ns)


def session_rows(
    batches: Iterable[Any], *, ports: Collection[int] = (), end_ns: int = 0
) -> Iterator[dict[str, Any]]:
    """The sessions of segments; arguments as for `spark_udfs.reassembly.packets.items`."""
    for flow, _, _, _, segments in pieces(Segments(batches), {}):
        sessions = FlowSessions(flow, ports=ports)
        for segment in segments:
            yield from sessions.feed(segment)
        yield from sessions.flush(end_ns)


def session_batches(paths: Iterable[str], ports: Collection[int] = ()) -> Iterator[Any]:
    """The sessions of captures, read by one task, as record batches with `SESSION_SCHEMA`.

    A connection that is silent for long is told when another segment shows it; the others at the end. A file
    that is cut off or damaged is read as far as it goes.
    """
    yield from _batches(_read_sessions(paths, ports), SESSION_SCHEMA)


def _read_sessions(paths: Iterable[str], ports: Collection[int]) -> Iterator[dict[str, Any]]:
    decoder, known = IpDecoder(), dict[int, FlowSessions]()
    now = look_at = 0
    for segment in _segments(paths, decoder):
        flow = flow_number(segment.src, segment.src_port, segment.dst, segment.dst_port)
        if flow not in known:
            known[flow] = FlowSessions(flow, ports=ports)
        yield from known[flow].feed(segment)
        now = max(now, segment.time_ns)
        if now >= look_at:
            look_at = now + IDLE_NS_MAX // 8
            for number in [n for n, one in known.items() if now - one.last_ns >= IDLE_NS_MAX]:
                yield from known.pop(number).flush(now)
    for sessions in known.values():
        yield from sessions.flush(now)


def _segments(paths: Iterable[str], decoder: IpDecoder) -> Iterator[Datagram]:
    for path in paths:
        try:
            for record in open_records(path):
                segment = decoder.decode(record)
                if segment is not None and segment.transport == "tcp":
                    yield segment
        except CaptureError as exc:
            warnings.warn(CaptureWarning(exc), stacklevel=2)


def sessions_of(found: Flows, *, partitions: int | None = None) -> DataFrame:
    """The sessions of flows, which must not be cut: ``arrange(..., piece_size=None)``."""
    stage = partial(_session_stage, ports=found.ports, end_ns=found.end_ns)
    return found.arranged(partitions).mapInArrow(stage, spark_schema(SESSION_SCHEMA))


def _session_stage(batches: Iterable[Any], ports: tuple[int, ...], end_ns: int) -> Iterator[Any]:
    schema = arrow_fields(spark_schema(SESSION_SCHEMA))
    for batch in _batches(session_rows(batches, ports=ports, end_ns=end_ns), SESSION_SCHEMA):
        yield as_spark(batch.columns, schema)


def _batches(rows: Iterable[dict[str, Any]], schema: Any) -> Iterator[Any]:
    held: list[dict[str, Any]] = []
    for row in rows:
        held.append(row)
        if len(held) >= BATCH_ROWS:
            yield pa.RecordBatch.from_pylist(held, schema=schema)
            held = []
    if held:
        yield pa.RecordBatch.from_pylist(held, schema=schema)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; its exit status."""
    parser = common.parser("sessions", "Makes the table of the MSMQ sessions in captures.")
    parser.add_argument("--format", choices=("parquet", "csv"), default="parquet", help="of the table")
    return common.run(parser.parse_args(argv), _sessions)


def _sessions(spark: SparkSession, args: Namespace) -> common.Counts:
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    found = common.flows_of(spark, args, piece_size=None)
    seen = Observation("sessions")
    sums = {"packets": "packets", "malformed": "malformed_packets", "skipped_bytes": "skipped_bytes"}
    rows = sessions_of(found, partitions=args.partitions).observe(
        seen,
        *(
            F.coalesce(F.sum(F.col(f"client_{column}") + F.col(f"server_{column}")), F.lit(0)).alias(name)
            for name, column in sums.items()
        ),
    )
    common.write(rows, args, form=args.format)
    return common.Counts(**seen.get, damaged_files=len(found.damaged))


if __name__ == "__main__":
    # Not as __main__: executors know it by its name.
    sys.exit(import_module("spark_udfs.jobs.sessions").main())
