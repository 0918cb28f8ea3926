"""A TCP connection in a capture: whether it is MSMQ, HTTP, RPC or NCP, and its packets in both directions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from msmqwire.capture import Data, End, Flow, Gap
from msmqwire.capture.events import Endpoint
from msmqwire.dissection.finder import PacketFinder, ScanResult
from msmqwire.dissection.followed_direction import UNKNOWN, Ignored
from msmqwire.dissection.http_connection import HTTP_PORT, METHOD, HttpConnection
from msmqwire.dissection.ncp_connection import NcpConnection
from msmqwire.dissection.ncp_finder import begins_unit, has_unit
from msmqwire.dissection.rpc_calls import Handles
from msmqwire.dissection.rpc_connection import RPC_PORTS, RpcConnection
from msmqwire.dissection.rpc_finder import begins_bind, begins_pdu, may_begin_pdu
from msmqwire.framing import begins_packet, find_header
from msmqwire.headers.base import PREFIX_SIZE
from msmqwire.lint import SessionLint
from msmqwire.netware.headers import NCP_PORT
from msmqwire.netware.readings import PROPOSED, Readings


class Connection:
    """Both directions of a TCP connection.

    On the MSMQ ports it is MSMQ; on others as soon as one of its segments contains a BaseHeader. The bytes
    before that are then reported as skipped. A segment that begins with POST, or has it anywhere if the port
    is 80, makes it HTTP until a request has turned out not to be SRMP, and been answered. A segment that
    begins with a bind to the RemoteRead interface makes it DCE/RPC; on the ports of MSMQ and its RPC any PDU.
    A segment that begins with a unit of NCP makes it NCP, and on its port any that is none of the others.

    Args:
        flow: the direction that has delivered first.
        ports: the MSMQ ports.
        handles: the context handles of all connections.
        readings: how disputed fields of NCP are read.

    Attributes:
        is_msmq: whether it is MSMQ, not over HTTP or RPC.
        http: the messages, if it is HTTP.
        rpc: the calls, if it is DCE/RPC.
        ncp: the requests and replies, if it is NCP.
        ended: the senders whose directions have ended.
        finders: the packet finders, by sender.
        pending: by sender, data too short to be recognised or ruled out.
        ignored: by sender, how many bytes were skipped so far, with their last frame and its time.
    """

    __slots__ = (
        "_client",
        "_flows",
        "_handles",
        "_lint",
        "_midstream",
        "_on_http_port",
        "_on_ncp_port",
        "_on_rpc_port",
        "_readings",
        "ended",
        "finders",
        "http",
        "ignored",
        "is_msmq",
        "ncp",
        "pending",
        "rpc",
    )

    def __init__(
        self, flow: Flow, ports: Collection[int], handles: Handles, readings: Readings = PROPOSED
    ) -> None:
        self.is_msmq = flow.src_port in ports or flow.dst_port in ports
        self.http: HttpConnection | None = None
        self.rpc: RpcConnection | None = None
        self.ncp: NcpConnection | None = None
        self._handles, self._readings = handles, readings
        self._on_http_port = not self.is_msmq and HTTP_PORT in (flow.src_port, flow.dst_port)
        self._on_rpc_port = not self.is_msmq and not RPC_PORTS.isdisjoint((flow.src_port, flow.dst_port))
        self._on_ncp_port = not self.is_msmq and NCP_PORT in (flow.src_port, flow.dst_port)
        self.ended: set[Endpoint] = set()
        self._midstream = flow.midstream
        self._lint: SessionLint | None = None
        self._client: Endpoint | None = None
        if flow.dst_port in ports and flow.src_port not in ports:
            self._client = flow.sender
        elif flow.src_port in ports and flow.dst_port not in ports:
            self._client = flow.receiver
        self.finders: dict[Endpoint, PacketFinder] = {}
        self._flows: dict[Endpoint, Flow] = {}
        self.pending: dict[Endpoint, list[Data]] = {}
        self.ignored: dict[Endpoint, Ignored] = {}

    @property
    def lint(self) -> SessionLint:
        """The linter of the session."""
        if self._lint is None:
            self._lint = SessionLint(midstream=self._midstream)
        return self._lint

    @property
    def followed(self) -> HttpConnection | RpcConnection | NcpConnection | None:
        """What it is, if not MSMQ itself."""
        return self.http or self.rpc or self.ncp

    @property
    def held(self) -> int:
        """The approximate number of bytes of memory that incomplete packets take."""
        followed = self.followed
        if followed is not None:
            return followed.held
        return sum(finder.held for finder in self.finders.values())

    @property
    def idle(self) -> bool:
        """Whether no direction has delivered anything that is not ended yet."""
        followed = self.followed
        return not self.finders and not self.pending and (followed is None or followed.idle)

    def between_packets(self, flows: Collection[Flow]) -> bool:
        """Whether it is MSMQ, nothing has ended, and `flows` are all its directions, each between packets."""
        return (
            self.is_msmq
            and not (self.ended or self.pending or self.ignored)
            and self.finders.keys() == {flow.sender for flow in flows}
            and all(finder.between_packets for finder in self.finders.values())
        )

    def resume(self, flows: Collection[Flow]) -> None:
        """Resume as MSMQ, with these directions between two packets."""
        self.is_msmq = True
        for flow in flows:
            self._flows[flow.sender] = flow
            self.finders[flow.sender] = PacketFinder()

    def from_initiator(self, flow: Flow) -> bool:
        """Whether a direction is the one from the initiator to the acceptor."""
        if self._client is None:
            self._client = flow.sender  # the initiator speaks first
        return flow.sender == self._client

    def data(self, event: Data) -> Iterable[ScanResult]:
        """Feed the next bytes of a direction; its results are made while they are iterated over."""
        finder = self.finders.get(event.flow.sender)
        if finder is not None:
            return finder.feed(event.data, event.frame, event.time_ns)
        if self.rpc is not None:
            return self.rpc.data(event)
        if self.ncp is not None:
            return self.ncp.data(event)
        if self.http is not None and (self.http.certain or not _has_header(event.data)):
            return self._http_data(self.http, event)
        return self._first_data(event)

    def _http_data(self, http: HttpConnection, event: Data) -> Iterator[ScanResult]:
        yield from http.data(event)
        if http.is_over:
            self.ignored, self.http = http.abandon(), None

    def _first_data(self, event: Data) -> Iterator[ScanResult]:
        midstream = False
        if self.is_msmq:
            if not self.finders and self._is_other_on_port(event):
                yield from self._replay(event)
                return
        else:
            if self.http is not None:
                self.ignored, self.http = self.http.abandon(), None
            if not self._recognise(event):
                yield from self._replay(event)
                return
            midstream = not self.pending.get(event.flow.sender) and not begins_packet(
                event.data[:PREFIX_SIZE]
            )
        yield from self._open(event.flow, midstream=midstream)
        yield from self.finders[event.flow.sender].feed(event.data, event.frame, event.time_ns)

    def _replay(self, event: Data) -> Iterator[ScanResult]:
        """Yield the results of the pending data and of a segment that has made it HTTP, RPC or NCP."""
        if self.followed is not None:
            yield from self._replay_pending()
            yield from self.data(event)

    def _replay_pending(self) -> Iterator[ScanResult]:
        pending = [earlier for of_sender in self.pending.values() for earlier in of_sender]
        self.pending.clear()
        for data in pending:
            yield from self.data(data)

    def _follow_on_ncp_port(self) -> Iterator[ScanResult]:
        """Yield the results of the pending data where the port alone makes it NCP."""
        if self._on_ncp_port and not self.is_msmq and self.followed is None:
            self.ncp = NcpConnection(self.ignored, self._readings)
            yield from self._replay_pending()

    def gap(self, event: Gap) -> Iterator[ScanResult]:
        """Report a gap in a direction; yield the results of the bytes before it."""
        if self.http is not None:
            yield from self.http.gap(event)
            return
        yield from self._follow_on_ncp_port()
        followed = self.rpc or self.ncp
        if followed is not None:
            yield from followed.gap(event)
            return
        if not self.is_msmq:
            self._ignore(self.pending.pop(event.flow.sender, []))
            return
        self.lint.gap()
        yield from self._open(event.flow)
        finder = self.finders[event.flow.sender]
        yield from finder.gap(event.size, event.reason, event.frame, event.time_ns)

    def end(self, event: End) -> Iterator[ScanResult]:
        """End a direction; yield its last results."""
        sender = event.flow.sender
        self.ended.add(sender)
        if self.pending:
            yield from self._follow_on_ncp_port()
        if self.followed is not None:
            yield from self.followed.end(event)
        if not self.is_msmq:
            self.pending.pop(sender, None)
        if sender not in self.finders and sender not in self.pending:
            return
        yield from self._open(event.flow)
        yield from self.finders.pop(sender).end(cut=event.reason not in ("fin", "rst"))

    def discard(self) -> list[tuple[Flow, list[ScanResult]]]:
        """Skip the buffered bytes of both directions to free memory, that of the lower address first."""
        if self.followed is not None:
            return self.followed.discard()
        return [(self._flows[sender], self.finders[sender].discard()) for sender in sorted(self.finders)]

    def finder(self, flow: Flow) -> PacketFinder:
        """Return the finder of a direction that has no pending data."""
        self._open(flow)
        return self.finders[flow.sender]

    def _open(self, flow: Flow, *, midstream: bool = False) -> list[ScanResult]:
        """Make sure that a direction has a finder; return its results for the pending data."""
        sender = flow.sender
        if sender in self.finders:
            return []
        self._flows[sender] = flow
        size, frame, time_ns = self.ignored.pop(sender, (0, 0, 0))
        finder = self.finders[sender] = PacketFinder(midstream=flow.midstream or midstream)
        pending = self.pending.pop(sender, [])
        results = [
            result for event in pending for result in finder.feed(event.data, event.frame, event.time_ns)
        ]
        if not size:
            return results
        return [ScanResult.skipped(size, UNKNOWN, (frame,), time_ns), *results]

    def _recognise(self, event: Data) -> bool:
        """Return whether a segment shows that the connection is MSMQ; set `http`, `rpc` or `ncp` if not."""
        sender = event.flow.sender
        pending = self.pending.pop(sender, [])
        head = b"".join(earlier.data for earlier in pending) + event.data[:PREFIX_SIZE]
        if begins_packet(head[:PREFIX_SIZE]):
            self.pending[sender] = [*pending, event] if len(head) < PREFIX_SIZE else pending
            self.is_msmq = len(head) >= PREFIX_SIZE
        elif head.startswith(METHOD) or (self._on_http_port and _may_begin_request(event.data)):
            self.pending[sender] = pending
            self.http = HttpConnection(event.flow, self.ignored)
        elif METHOD.startswith(head):
            self.pending[sender] = [*pending, event]
        elif self._may_be_rpc(event, pending):
            self.pending[sender] = pending if self.rpc is not None else [*pending, event]
        elif self._may_be_ncp(event, pending):
            self.pending[sender] = pending if self.ncp is not None else [*pending, event]
        elif pending:
            self._ignore(pending)  # no packet began in it, but one may begin in this segment
            return self._recognise(event)
        else:
            # Of an answer of RemoteRead, a segment inside it may have the header of a message.
            self.is_msmq = not self._on_rpc_port and _has_header(event.data)
            self._ignore([] if self.is_msmq else [event])
        return self.is_msmq

    def _may_be_rpc(self, event: Data, pending: list[Data]) -> bool:
        """Return whether a segment, with pending data before it, may be RPC; set `rpc` if it is."""
        if not may_begin_pdu((pending[0] if pending else event).data):
            return False
        data = b"".join([*(earlier.data for earlier in pending), event.data])
        is_rpc = begins_pdu(data) if self._on_rpc_port else begins_bind(data)
        if is_rpc:
            self.rpc = RpcConnection(self._handles, self.ignored)
        return is_rpc is not False

    def _may_be_ncp(self, event: Data, pending: list[Data]) -> bool:
        """Return whether a segment, with pending data before it, may be NCP; set `ncp` if it is."""
        is_ncp: bool | None = self._on_ncp_port
        if not is_ncp:
            is_ncp = begins_unit(b"".join([*(earlier.data for earlier in pending), event.data]))
        if is_ncp:
            self.ncp = NcpConnection(self.ignored, self._readings)
        return is_ncp is not False

    def _is_other_on_port(self, event: Data) -> bool:
        """Return whether a connection on an MSMQ port, with no packet so far, may be RPC or NCP; set it."""
        pending = self.pending.get(event.flow.sender, [])
        data = b"".join([*(earlier.data for earlier in pending), event.data])
        is_rpc, is_ncp = begins_pdu(data), begins_unit(data)
        if is_ncp is False and event.flow.midstream:
            is_ncp = not _has_header(data) and has_unit(data)
        if is_rpc:
            self.is_msmq, self.rpc = False, RpcConnection(self._handles, self.ignored)
        elif is_ncp:
            self.is_msmq, self.ncp = False, NcpConnection(self.ignored, self._readings)
        elif is_rpc is None or is_ncp is None:
            self.pending[event.flow.sender] = [*pending, event]
        return not (is_rpc is False and is_ncp is False)

    def _ignore(self, events: list[Data]) -> None:
        """Count bytes that are skipped while the connection is not recognised."""
        for event in events:
            size = self.ignored.get(event.flow.sender, (0, 0, 0))[0]
            self.ignored[event.flow.sender] = size + len(event.data), event.frame, event.time_ns


def _may_begin_request(data: bytes) -> bool:
    """Whether a segment contains the method of SRMP, or the beginning of it at its end, and no BaseHeader."""
    ends = any(data.endswith(METHOD[:size]) for size in range(1, len(METHOD)))
    return (ends or METHOD in data) and not _has_header(data)


def _has_header(data: bytes) -> bool:
    """Whether a segment contains a BaseHeader at any offset."""
    return 0 <= find_header(data) <= len(data) - PREFIX_SIZE
