"""A TCP connection in a capture: is it MSMQ, and what are its packets?"""

from __future__ import annotations

from collections.abc import Collection

from msmqwire.capture import Data, End, Flow, Gap
from msmqwire.dissection.finder import PacketFinder, ScanResult
from msmqwire.framing import begins_packet, find_header
from msmqwire.headers.base import PREFIX_SIZE
from msmqwire.lint import SessionLint

_Side = tuple[str, int]


class Connection:
    """Both directions of a TCP connection.

    On the known ports it is MSMQ; on others as soon as a segment of it has a BaseHeader. What came
    before is then reported as skipped.

    Attributes:
        known: whether it is MSMQ.
        ended: the senders whose directions have ended.
        finders: what finds the packets, by sender.
        pending: by sender, too few bytes to tell what they are.
        ignored: by sender, how many bytes were passed over, with their last frame and its time.
    """

    __slots__ = (
        "_client",
        "_flows",
        "_lint",
        "_midstream",
        "ended",
        "finders",
        "ignored",
        "known",
        "pending",
    )

    def __init__(self, flow: Flow, ports: Collection[int]) -> None:
        self.known = flow.src_port in ports or flow.dst_port in ports
        self.ended: set[_Side] = set()
        self._midstream = flow.midstream
        self._lint: SessionLint | None = None
        self._client: _Side | None = None
        if flow.dst_port in ports and flow.src_port not in ports:
            self._client = _side(flow)
        self.finders: dict[_Side, PacketFinder] = {}
        self._flows: dict[_Side, Flow] = {}
        self.pending: dict[_Side, list[Data]] = {}
        self.ignored: dict[_Side, tuple[int, int, int]] = {}

    @property
    def lint(self) -> SessionLint:
        """The judge of the session."""
        if self._lint is None:
            self._lint = SessionLint(midstream=self._midstream)
        return self._lint

    @property
    def held(self) -> int:
        """Bytes of memory held of packets that are not whole yet, about."""
        return sum(finder.held for finder in self.finders.values())

    @property
    def idle(self) -> bool:
        """Whether neither direction has brought anything that is still to be ended."""
        return not self.finders and not self.pending

    def between_packets(self, flows: Collection[Flow]) -> bool:
        """Whether it is MSMQ, nothing has ended, and these, all its directions, stand between packets."""
        return (
            self.known
            and not (self.ended or self.pending or self.ignored)
            and self.finders.keys() == {_side(flow) for flow in flows}
            and all(finder.between_packets for finder in self.finders.values())
        )

    def resume(self, flows: Collection[Flow]) -> None:
        """Go on as MSMQ between two packets of these directions."""
        self.known = True
        for flow in flows:
            self._flows[_side(flow)] = flow
            self.finders[_side(flow)] = PacketFinder()

    def from_initiator(self, flow: Flow) -> bool:
        """Whether a direction is that from the initiator to the acceptor."""
        if self._client is None:
            self._client = _side(flow)  # the initiator speaks first
        return _side(flow) == self._client

    def data(self, event: Data) -> list[ScanResult]:
        """The next bytes of a direction."""
        finder = self.finders.get(_side(event.flow))
        if finder is not None:
            return finder.feed(event.data, event.frame, event.time_ns)
        inside = False
        if not self.known:
            if not self._recognised(event):
                return []
            inside = not self.pending.get(_side(event.flow)) and not begins_packet(event.data[:PREFIX_SIZE])
        found = self._open(event.flow, inside=inside)
        finder = self.finders[_side(event.flow)]
        return found + finder.feed(event.data, event.frame, event.time_ns)

    def gap(self, event: Gap) -> list[ScanResult]:
        """A hole in a direction."""
        if not self.known:
            self._ignore(self.pending.pop(_side(event.flow), []))
            return []
        self.lint.gap()
        found = self._open(event.flow)
        finder = self.finders[_side(event.flow)]
        return found + finder.gap(event.size, event.reason, event.frame, event.time_ns)

    def end(self, event: End) -> list[ScanResult]:
        """The end of a direction."""
        side = _side(event.flow)
        self.ended.add(side)
        if not self.known:
            self.pending.pop(side, None)
        if side not in self.finders and side not in self.pending:
            return []
        found = self._open(event.flow)
        return found + self.finders.pop(side).end(cut=event.how not in ("fin", "rst"))

    def let_go(self) -> list[tuple[Flow, list[ScanResult]]]:
        """Memory is short: what is held is skipped."""
        return [(self._flows[side], finder.let_go()) for side, finder in self.finders.items()]

    def finder(self, flow: Flow) -> PacketFinder:
        """The finder of a direction of which nothing else is held."""
        self._open(flow)
        return self.finders[_side(flow)]

    def _open(self, flow: Flow, *, inside: bool = False) -> list[ScanResult]:
        """Has a finder for a direction; what it finds in what was held of it."""
        side = _side(flow)
        if side in self.finders:
            return []
        self._flows[side] = flow
        size, frame, time_ns = self.ignored.pop(side, (0, 0, 0))
        finder = self.finders[side] = PacketFinder(midstream=flow.midstream or inside)
        held = self.pending.pop(side, [])
        found = [one for piece in held for one in finder.feed(piece.data, piece.frame, piece.time_ns)]
        if not size:
            return found
        reason = "before anything was recognised as MSMQ"
        return [ScanResult(b"", size, None, None, reason, (frame,), time_ns), *found]

    def _recognised(self, event: Data) -> bool:
        side = _side(event.flow)
        held = self.pending.pop(side, [])
        head = b"".join(piece.data for piece in held) + event.data[:PREFIX_SIZE]
        if held and not begins_packet(head[:PREFIX_SIZE]):
            self._ignore(held)  # what was held began nothing; this segment may still
            return self._recognised(event)
        if begins_packet(head[:PREFIX_SIZE]):
            self.pending[side] = [*held, event] if len(head) < PREFIX_SIZE else held
            self.known = len(head) >= PREFIX_SIZE
        else:
            self.known = _has_header(event.data)
            self._ignore([] if self.known else [event])
        return self.known

    def _ignore(self, pieces: list[Data]) -> None:
        """Counts bytes that are passed over while the connection may be anything."""
        for piece in pieces:
            size = self.ignored.get(_side(piece.flow), (0, 0, 0))[0]
            self.ignored[_side(piece.flow)] = size + len(piece.data), piece.frame, piece.time_ns


def _has_header(data: bytes) -> bool:
    """Whether a BaseHeader stands anywhere in a segment."""
    return 0 <= find_header(data) <= len(data) - PREFIX_SIZE


def _side(flow: Flow) -> _Side:
    return flow.src, flow.src_port
