"""A TCP connection that carries MSMQ: the packets of a session in both directions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from msmqwire.analysis.dissection.dissector import Conversation, Dissector, Opening, Surroundings
from msmqwire.analysis.dissection.finder import PacketFinder, ScanResult
from msmqwire.analysis.dissection.followed_direction import UNKNOWN, Ignored
from msmqwire.analysis.dissection.message_security import SignatureStatus
from msmqwire.analysis.lint import Finding, SessionLint, lint_malformed, lint_packet, lint_wrong_signature
from msmqwire.analysis.lint.queue_managers import TWO_ADDRESSES, Place, QueueManagers, two_addresses
from msmqwire.analysis.lint.registry import FieldOffsets
from msmqwire.analysis.protocols import protocols
from msmqwire.capture import Data, End, Flow, Gap
from msmqwire.capture.events import Endpoint
from msmqwire.capture.record import time_or_none
from msmqwire.errors import MalformedPacket
from msmqwire.framing import begins_packet, has_header
from msmqwire.headers.base import PREFIX_SIZE
from msmqwire.schema import Record

MSMQ_PORT: Final = 1801
_ENCLOSING_PORTS: Final = frozenset(
    port for protocol in protocols() if protocol.packets.message for port in protocol.traffic.stream_ports
)
"""The ports of protocols whose packets have messages of MSMQ in them."""


class MsmqSessions(Dissector):
    """Sessions of MSMQ: on its ports all streams of no other protocol, on other ports from a BaseHeader on.
    There the bytes before it are reported as skipped.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        super().__init__(surroundings)
        self._queue_managers = QueueManagers()

    def claims(self, flow: Flow) -> bool:
        return self._around.on_msmq_port(flow)

    def recognises(self, opening: Opening) -> bool | None:
        data, segment = opening.data, opening.segment
        if begins_packet(data[:PREFIX_SIZE]):
            return True if len(data) >= PREFIX_SIZE or self.claims(opening.flow) else None
        # A segment inside a packet that encloses messages may have the header of one.
        may_begin_inside = len(data) == len(segment) and not opening.is_claimed
        ports = opening.flow.src_port, opening.flow.dst_port
        return may_begin_inside and has_header(segment) and _ENCLOSING_PORTS.isdisjoint(ports)

    def follow(self, flow: Flow, first: Flow, ignored: dict[Endpoint, Ignored]) -> MsmqConnection:
        inside = None if self.claims(flow) else flow.sender
        return MsmqConnection(self._around, self._queue_managers, first, ignored, inside)

    def resume(self, flows: Sequence[Flow]) -> MsmqConnection:
        conversation = MsmqConnection(self._around, self._queue_managers, flows[0], {})
        for flow in flows:
            conversation.finder(flow)
        return conversation


class MsmqConnection(Conversation):
    """Both directions of a connection that carries MSMQ.

    Args:
        surroundings: the context that all connections share.
        queue_managers: likewise.
        first: the direction that has delivered first.
        ignored: the bytes skipped before it was recognised, by sender.
        inside: the sender of the bytes by which it was recognised, which need not begin with a packet.

    Attributes:
        finders: the packet finders, by sender.
    """

    __slots__ = (
        "_client",
        "_flows",
        "_ignored",
        "_inside",
        "_linter",
        "_midstream",
        "_queue_managers",
        "finders",
    )

    def __init__(
        self,
        surroundings: Surroundings,
        queue_managers: QueueManagers,
        first: Flow,
        ignored: dict[Endpoint, Ignored],
        inside: Endpoint | None = None,
    ) -> None:
        super().__init__(surroundings)
        self._queue_managers, self._ignored, self._inside = queue_managers, ignored, inside
        self._midstream = first.midstream
        self._linter: SessionLint | None = None
        self._client: Endpoint | None = None
        to_port, from_port = (port in surroundings.tcp_ports for port in (first.dst_port, first.src_port))
        if to_port != from_port:
            self._client = first.sender if to_port else first.receiver
        self.finders: dict[Endpoint, PacketFinder] = {}
        self._flows: dict[Endpoint, Flow] = {}

    @property
    def held(self) -> int:
        return sum(finder.held for finder in self.finders.values())

    @property
    def idle(self) -> bool:
        return not self.finders

    @property
    def _session(self) -> SessionLint:
        """The linter of the session, made when it is needed."""
        if self._linter is None:
            self._linter = SessionLint(midstream=self._midstream)
        return self._linter

    def between_packets(self, flows: Collection[Flow]) -> bool:
        all_there = self.finders.keys() == {flow.sender for flow in flows}
        return all_there and all(finder.between_packets for finder in self.finders.values())

    def data(self, event: Data) -> Iterable[ScanResult]:
        finder = self.finders.get(event.flow.sender)
        if finder is None:
            return self._first_data(event)
        return finder.feed(event.data, event.frame, event.time_ns)

    def _first_data(self, event: Data) -> Iterator[ScanResult]:
        flow = event.flow
        inside = flow.sender == self._inside and not begins_packet(event.data[:PREFIX_SIZE])
        yield from self._open(flow, midstream=flow.midstream or inside)
        yield from self.finders[flow.sender].feed(event.data, event.frame, event.time_ns)

    def gap(self, event: Gap) -> Iterator[ScanResult]:
        self._session.gap()
        yield from self._open(event.flow, midstream=event.flow.midstream)
        finder = self.finders[event.flow.sender]
        yield from finder.gap(event.size, event.reason, event.frame, event.time_ns)

    def end(self, event: End) -> Iterable[ScanResult]:
        finder = self.finders.pop(event.flow.sender, None)
        return () if finder is None else finder.end(cut=event.reason not in ("fin", "rst"))

    def discard(self) -> list[tuple[Flow, list[ScanResult]]]:
        return [(self._flows[sender], self.finders[sender].discard()) for sender in sorted(self.finders)]

    def finder(self, flow: Flow) -> PacketFinder:
        """Return the finder of a direction of which nothing is skipped that is not reported."""
        self._open(flow)
        return self.finders[flow.sender]

    def _open(self, flow: Flow, *, midstream: bool = False) -> list[ScanResult]:
        """Make sure that a direction has a finder; return the bytes skipped before."""
        sender = flow.sender
        if sender in self.finders:
            return []
        self._flows[sender] = flow
        self.finders[sender] = PacketFinder(midstream=midstream)
        size, frame, time_ns = self._ignored.pop(sender, (0, 0, 0))
        return [ScanResult.skipped(size, UNKNOWN, (frame,), time_ns)] if size else []

    # -- results to findings ------------------------------------------------------------------------

    def _kind(self, packet: Record) -> str:
        return packet.schema.name

    def _lint(self, flow: Flow, result: ScanResult, packet: Record) -> list[Finding]:
        if self._client is None:
            self._client = flow.sender  # the initiator speaks first
        by_client = flow.sender == self._client
        findings = lint_packet(packet, result.data) + self._lint_signature(packet)
        findings += self._lint_address(flow, packet, result, by_client=by_client)
        findings += self._session.packet(
            by_client, packet, result.data, time_or_none(result.time_ns),
            is_behind=self._around.is_behind(flow),
        )  # fmt: skip
        return findings

    def _lint_signature(self, packet: Record) -> list[Finding]:
        """Judge the signature of a message, if there are keys or certificates."""
        examiner = self._around.examiner
        if not examiner.was_given_any:
            return []
        examined = examiner.examine(packet)
        is_wrong = examined is not None and examined.signature_status is SignatureStatus.INVALID
        return lint_wrong_signature(packet) if is_wrong else []

    def _lint_address(
        self, flow: Flow, packet: Record, result: ScanResult, *, by_client: bool
    ) -> Iterator[Finding]:
        """Yield that the queue manager which has sent a packet was seen at another address, too."""
        claim = self._session.claim(by_client, packet)
        if claim is None:
            return
        guid, path = claim
        file, frames = self._around.locate(result.frames)
        here = Place(flow.src, file, frames[-1])
        there = self._queue_managers.add(guid, here)
        if there is not None:
            yield TWO_ADDRESSES.at(path, FieldOffsets(packet).of(path), two_addresses(guid, here, there))

    def _lint_malformed(self, data: bytes, error: MalformedPacket) -> list[Finding]:
        self._session.gap()
        return lint_malformed(data, error)

    def _skipped(self) -> None:
        self._session.gap()
