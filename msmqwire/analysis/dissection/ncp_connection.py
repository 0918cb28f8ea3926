"""A TCP connection that carries NCP: its units, and the requests and replies in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msmqwire.analysis.dissection.dissector import Dissector, Opening, Surroundings
from msmqwire.analysis.dissection.finder import ScanResult
from msmqwire.analysis.dissection.followed_conversation import FollowedConversation
from msmqwire.analysis.dissection.followed_direction import UNKNOWN, FollowedDirection, Ignored
from msmqwire.analysis.dissection.ncp_exchanges import NcpExchanges
from msmqwire.analysis.dissection.ncp_finder import NcpFinder, NcpRange, begins_unit, has_unit
from msmqwire.analysis.lint import Finding
from msmqwire.analysis.lint.ncp_attacks import lint_malformed_ncp
from msmqwire.analysis.lint.ncp_session import NcpLint
from msmqwire.capture import Flow
from msmqwire.capture.events import Endpoint
from msmqwire.errors import MalformedPacket
from msmqwire.framing import has_header
from msmqwire.ncp.headers import NCP_PORT, NCP_TCP_REQUEST
from msmqwire.ncp.ncp_packet import NcpPacket


class NcpOverTcp(Dissector):
    """NCP: streams that begin with a unit of it, and on its port all streams of no other protocol."""

    def claims(self, flow: Flow) -> bool:
        return NCP_PORT in (flow.src_port, flow.dst_port) and not self._around.on_msmq_port(flow)

    def recognises(self, opening: Opening) -> bool | None:
        flow, data = opening.flow, opening.data
        begins = begins_unit(data)
        if begins is None and self.claims(flow):
            return True
        if begins is False and flow.midstream and self._around.on_msmq_port(flow):
            return not has_header(data) and has_unit(data)
        return begins

    def follow(self, flow: Flow, first: Flow, ignored: dict[Endpoint, Ignored]) -> NcpConnection:
        return NcpConnection(self._around, ignored)


class NcpConnection(FollowedConversation[FollowedDirection[NcpFinder]]):
    """Both directions of a connection that carries NCP."""

    __slots__ = ("_exchanges", "_session")

    def __init__(self, surroundings: Surroundings, ignored: dict[Endpoint, Ignored]) -> None:
        super().__init__(surroundings, ignored)
        self._exchanges = NcpExchanges(surroundings.readings)
        self._session = NcpLint()

    def _count_held(self) -> int:
        """Count incomplete units, open requests and lint."""
        return super()._count_held() + self._exchanges.held + self._session.held

    def _new_direction(self, flow: Flow, ignored: Ignored) -> FollowedDirection[NcpFinder]:
        size, frame, time_ns = ignored
        if flow.midstream or size:
            self._session.gap()
        finder = NcpFinder(midstream=flow.midstream, by_server=flow.src_port == NCP_PORT)
        return FollowedDirection(flow, finder, size, UNKNOWN, frame, time_ns)

    def _lose(self, direction: FollowedDirection[NcpFinder]) -> None:
        self._session.gap()

    def _let_go(self) -> None:
        self._exchanges.discard()
        self._session.discard()

    def _lint(self, flow: Flow, result: ScanResult, packet: NcpPacket) -> list[Finding]:
        return self._session.packet(packet)

    def _lint_malformed(self, data: bytes, error: MalformedPacket) -> list[Finding]:
        return lint_malformed_ncp(data, error)

    def _results(
        self, direction: FollowedDirection[NcpFinder], ranges: Iterable[NcpRange]
    ) -> Iterator[ScanResult]:
        for found in ranges:
            if found.message is None and found.error is None:
                self._session.gap()
                yield from direction.skip(found, found.reason)
                continue
            yield from direction.report_skipped()
            yield self._result(found)

    def _result(self, found: NcpRange) -> ScanResult:
        unit = found.message
        if unit is None:
            self._session.gap()
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
    """Return an error in the data after a number of bytes, its offset counted from the first of them."""
    offset = None if error.offset is None else size + error.offset
    return MalformedPacket(error.why, path=error.path, offset=offset, requirement=error.requirement)
