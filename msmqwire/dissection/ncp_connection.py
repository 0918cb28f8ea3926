"""A TCP connection that carries NCP: its units, and the requests and replies in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msmqwire.capture import Data, End, Flow, Gap
from msmqwire.capture.events import Endpoint
from msmqwire.dissection.finder import ScanResult
from msmqwire.dissection.followed_direction import UNKNOWN, FollowedDirection, Ignored
from msmqwire.dissection.ncp_exchanges import NcpExchanges
from msmqwire.dissection.ncp_finder import NcpFinder, NcpRange
from msmqwire.errors import MalformedPacket
from msmqwire.lint import NcpLint
from msmqwire.netware.headers import NCP_PORT, NCP_TCP_REQUEST
from msmqwire.netware.readings import Readings


class NcpConnection:
    """Both directions of a connection that carries NCP.

    Args:
        ignored: by sender how many bytes came before it was recognised, the last frame of them and its time;
            a direction takes what is its own when it begins.
        readings: how disputed fields are read.

    Attributes:
        lint: the linter of the connection.
    """

    __slots__ = ("_directions", "_exchanges", "_ignored", "lint")

    def __init__(self, ignored: dict[Endpoint, Ignored], readings: Readings) -> None:
        self._ignored = ignored
        self._directions: dict[Endpoint, FollowedDirection[NcpFinder]] = {}
        self._exchanges = NcpExchanges(readings)
        self.lint = NcpLint()

    @property
    def held(self) -> int:
        """The approximate number of bytes of memory that incomplete units take, open requests and lint."""
        buffered = sum(direction.finder.held for direction in self._directions.values())
        return buffered + self._exchanges.held + self.lint.held

    @property
    def idle(self) -> bool:
        """Whether no direction has delivered anything that is not ended yet."""
        return not self._directions

    def data(self, event: Data) -> Iterator[ScanResult]:
        """Yield the results of the next bytes of a direction."""
        direction = self._direction(event.flow)
        return self._results(direction, direction.finder.feed(event.data, event.frame, event.time_ns))

    def gap(self, event: Gap) -> Iterator[ScanResult]:
        """Yield the results of the bytes before a gap, and of the gap."""
        direction = self._direction(event.flow)
        yield from self._results(direction, direction.finder.gap())
        self.lint.gap()
        if event.size:
            yield from direction.report_skipped()
            reason = f"not in the capture: {event.reason}"
            yield ScanResult.skipped(event.size, reason, (event.frame,), event.time_ns)

    def end(self, event: End) -> Iterator[ScanResult]:
        """End a direction; yield its last results."""
        direction = self._directions.pop(event.flow.sender, None)
        if direction is not None:
            cut = event.reason not in ("fin", "rst")
            yield from self._results(direction, direction.finder.end(cut=cut))
            yield from direction.report_skipped()

    def discard(self) -> list[tuple[Flow, list[ScanResult]]]:
        """Let go of the buffered bytes of both directions, and of open requests, to free memory."""
        self._exchanges.discard()
        self.lint.discard()
        return [
            (direction.flow, list(self._results(direction, direction.finder.discard())))
            for direction in self._directions.values()
        ]

    def _direction(self, flow: Flow) -> FollowedDirection[NcpFinder]:
        sender = flow.sender
        if sender not in self._directions:
            size, frame, time_ns = self._ignored.pop(sender, (0, 0, 0))
            finder = NcpFinder(midstream=flow.midstream, by_server=flow.src_port == NCP_PORT)
            if flow.midstream or size:
                self.lint.gap()
            self._directions[sender] = FollowedDirection(flow, finder, size, UNKNOWN, frame, time_ns)
        return self._directions[sender]

    def _results(
        self, direction: FollowedDirection[NcpFinder], ranges: Iterable[NcpRange]
    ) -> Iterator[ScanResult]:
        for found in ranges:
            if found.message is None and found.error is None:
                self.lint.gap()
                yield from direction.skip(found, found.reason)
                continue
            yield from direction.report_skipped()
            yield self._result(found)

    def _result(self, found: NcpRange) -> ScanResult:
        unit = found.message
        if unit is None:
            self.lint.gap()
            return ScanResult(
                found.data, found.size, None, found.error, "", found.frames, found.time_ns, found.cut
            )
        start = found.size - len(unit.packet)
        read = self._exchanges.read(
            unit.packet,
            found.frames[-1],
            by_client=unit.preamble.schema is NCP_TCP_REQUEST,
            preamble=unit.preamble,
        )
        return ScanResult(
            found.data if not read.reason else b"",
            found.size,
            read.packet,
            None if read.error is None else behind(read.error, start),
            read.reason,
            found.frames,
            found.time_ns,
            exchange=read.number,
            request_frame=read.request_frame,
        )


def behind(error: MalformedPacket, size: int) -> MalformedPacket:
    """Return an error in what stands behind so many bytes, its offset counted from the first of them."""
    offset = None if error.offset is None else size + error.offset
    return MalformedPacket(error.why, path=error.path, offset=offset, requirement=error.requirement)
