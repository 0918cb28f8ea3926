"""A TCP connection that carries HTTP: the SRMP in it, requests paired with responses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from msmqwire.analysis.dissection.dissector import Dissector, Opening, Surroundings
from msmqwire.analysis.dissection.finder import ScanResult
from msmqwire.analysis.dissection.followed_conversation import FollowedConversation
from msmqwire.analysis.dissection.followed_direction import UNKNOWN, FollowedDirection, Ignored
from msmqwire.analysis.dissection.http_finder import HttpFinder, HttpRange
from msmqwire.analysis.dissection.skip_reasons import OTHER_HTTP
from msmqwire.analysis.dissection.stream_finder import BEGINS_INSIDE
from msmqwire.analysis.lint import Finding
from msmqwire.analysis.lint.srmp import lint_srmp
from msmqwire.analysis.lint.srmp_attacks import lint_malformed_srmp
from msmqwire.analysis.protocols.srmp import PROTOCOL
from msmqwire.capture import Data, Flow
from msmqwire.capture.events import Endpoint
from msmqwire.errors import MalformedPacket
from msmqwire.framing import begins_packet, has_header
from msmqwire.headers.base import PREFIX_SIZE
from msmqwire.srmp.http_message import HttpMessage, RequestLine
from msmqwire.srmp.message import SrmpMessage
from msmqwire.srmp.message_json import PACKET
from msmqwire.srmp.recognition import begins_srmp, is_srmp, read_srmp

(HTTP_PORT,) = PROTOCOL.traffic.stream_ports
METHOD: Final = b"POST "
"""The bytes that make a segment the first to follow: at its beginning, or anywhere if the port is
HTTP_PORT.
"""
STATUS: Final = b"HTTP/"
UNANSWERED_MAX: Final = 4096
"""Requests of a connection that wait for their responses. Once there are more, none is paired."""
ALTERNATING_MIN: Final = 2
"""Exchanges, each of a request that the server received alone, until pairs are believed again."""


class _Request(NamedTuple):
    """A request without a response.

    Attributes:
        number: among those of SRMP in its connection; None for one that is none, or of which that is unknown.
        first_frame: the first frame that carried it.
        frame: the last one.
        is_srmp: whether it is SRMP; None if that is unknown, as only its end was captured.
        end: its end, in bytes of its direction.
    """

    number: int | None
    first_frame: int
    frame: int
    is_srmp: bool | None
    end: int = 0


class _EarlyResponse(NamedTuple):
    """A response that belongs to no request so far: to one before the capture, or later in it.

    Attributes:
        frame: the last frame that carried it.
        acknowledged: the end of the bytes of the client that it acknowledged; -1 if that is unknown.
    """

    frame: int
    acknowledged: int


@dataclass(slots=True)
class _Direction(FollowedDirection[HttpFinder]):
    """One direction."""

    began_inside: int | None = None  # the last frame of a message of which only the end was captured


class SrmpOverHttp(Dissector):
    """SRMP over HTTP, on any port but those of MSMQ.

    A segment that begins with POST, or has it anywhere if the port is 80, makes a connection HTTP until a
    request has turned out not to be SRMP, and been answered.
    """

    def recognises(self, opening: Opening) -> bool | None:
        data = opening.data
        if data.startswith(METHOD) or _may_begin_request(opening):
            return not self._around.on_msmq_port(opening.flow)
        return None if METHOD.startswith(data) and not self._around.on_msmq_port(opening.flow) else False

    def follow(self, flow: Flow, first: Flow, ignored: dict[Endpoint, Ignored]) -> HttpConnection:
        return HttpConnection(self._around, flow, ignored)


def _may_begin_request(opening: Opening) -> bool:
    """Whether a segment on HTTP's port has the method of SRMP, or the beginning of it at its end.

    It has no BaseHeader.
    """
    flow, segment = opening.flow, opening.segment
    if HTTP_PORT not in (flow.src_port, flow.dst_port):
        return False
    ends = any(segment.endswith(METHOD[:size]) for size in range(1, len(METHOD)))
    may_begin = (ends or METHOD in segment) and not has_header(segment)
    return may_begin and not begins_packet(opening.data[:PREFIX_SIZE])


class HttpConnection(FollowedConversation[_Direction]):
    """Both directions of a connection that carries HTTP. It is SRMP from its first request to a queue on.

    Until then nothing is reported. Afterwards all is: messages of SRMP, malformed ones, and as skipped bytes
    HTTP of other kinds.

    Requests and responses are paired by their order, if all of it was captured. If some was not, a response
    belongs to the only request that its sender has received by then. After several requests, or after a
    response that no request has waited for, the number of open requests is unknown, and pairs are trusted
    again once requests and responses have alternated. A response that acknowledges more than was captured so
    far stands before its request in the capture, as where the two directions come from different clocks: both
    are paired with none.

    Args:
        surroundings: the context that all connections share.
        flow: the direction of which a segment has made it HTTP.
        ignored: the number of bytes before that, their last frame and its time, by sender.

    Attributes:
        is_settled: whether a request to a queue has been seen.
    """

    __slots__ = (
        "_answered_to", "_are_certain", "_crowded", "_early", "_has_asked", "_pipelines",
        "_requests", "_to_alternate", "_unanswered", "is_settled",
    )  # fmt: skip

    def __init__(self, surroundings: Surroundings, flow: Flow, ignored: dict[Endpoint, Ignored]) -> None:
        super().__init__(surroundings, ignored)
        self.is_settled = False
        # Lists, since most connections have one or none, and an empty deque takes 600 bytes.
        self._unanswered: list[_Request] = []
        self._crowded = False
        self._early: list[_EarlyResponse] = []
        self._are_certain = True  # all requests and responses were captured
        self._has_asked = False  # a request was seen
        # Up to where requests may have been answered before they came, by bytes that were ignored.
        self._answered_to = None if ignored.keys() - {flow.sender} else -1
        self._pipelines = False  # the server has received several requests before it answered
        self._to_alternate = 0  # exchanges, before pairs are believed
        self._requests = 0
        _, frame, _ = ignored.get(flow.sender, (0, 0, 0))
        if frame > max((of[1] for sender, of in ignored.items() if sender != flow.sender), default=0):
            # The lines before were a request, at least one, without a response so far.
            before = _Request(None, frame, frame, is_srmp=None if flow.midstream else False)
            self._unanswered.append(before)
            self._has_asked = True

    @property
    def is_over(self) -> bool:
        """Whether all that was followed turned out not to be SRMP, and nothing of it is left."""
        if self.is_settled or self._unanswered:
            return False
        return all(direction.finder.between_messages for direction in self._directions.values())

    def is_left_by(self, event: Data) -> bool:
        """Whether a packet of MSMQ begins while it is not HTTP beyond doubt in any direction."""
        certain = any(direction.finder.certain for direction in self._directions.values())
        return not certain and has_header(event.data)

    def abandon(self) -> None:
        for sender, direction in self._directions.items():
            for _ in self._results(direction, direction.finder.discard()):
                raise AssertionError("a result of a connection that is not SRMP")
            if direction.size:
                self._ignored[sender] = direction.size, direction.frame, direction.time_ns

    @property
    def _reports(self) -> bool:
        return self.is_settled

    def _new_direction(self, flow: Flow, ignored: Ignored) -> _Direction:
        size, frame, time_ns = ignored
        self._are_certain &= not flow.midstream
        finder = HttpFinder(midstream=flow.midstream or size > 0)
        return _Direction(flow, finder, size, UNKNOWN, frame, time_ns)

    def _lose(self, direction: _Direction) -> None:
        self._let_go()

    def _let_go(self) -> None:
        self._unanswered.clear()
        self._are_certain = False
        if self._pipelines:
            self._doubt()

    def _doubt(self) -> None:
        """Pair nothing until requests and responses alternate."""
        self._are_certain, self._to_alternate = False, ALTERNATING_MIN

    # -- results to items ---------------------------------------------------------------------------

    def _kind(self, packet: SrmpMessage) -> str:
        return PACKET

    def _lint(self, flow: Flow, result: ScanResult, packet: SrmpMessage) -> list[Finding]:
        return lint_srmp(packet, flow.src)

    def _lint_malformed(self, data: bytes, error: MalformedPacket) -> list[Finding]:
        return lint_malformed_srmp(data, error)

    def _one_sided(self, flow: Flow) -> bool:
        return self._around.is_one_sided(flow)

    # -- ranges to results --------------------------------------------------------------------------

    def _results(self, direction: _Direction, ranges: Iterable[HttpRange]) -> Iterator[ScanResult]:
        for found in ranges:
            if found.message is not None:
                result = self._message(direction, found, found.message)
            elif found.error is not None:
                result = self._malformed(direction, found, found.error)
            else:
                result = None
                if found.reason == BEGINS_INSIDE:
                    direction.began_inside = found.frames[-1]
            if result is None:
                yield from self._skip(direction, found)
                continue
            if self.is_settled:
                yield from direction.report_skipped()
            yield result

    def _message(self, direction: _Direction, found: HttpRange, http: HttpMessage) -> ScanResult | None:
        """Return the result of a message; None if it is not SRMP."""
        if not isinstance(http.start, RequestLine):
            return self._response(direction, found, http, interim=http.start.status < 200)
        if (frame := direction.began_inside) is not None:
            end = direction.finder.position - found.size
            self._await_response(_Request(None, frame, frame, None, end), direction.flow)
            direction.began_inside = None
        request = self._request(direction, found, is_srmp=is_srmp(http))
        self.is_settled |= bool(request.is_srmp)
        return _read(found, http, request) if request.is_srmp else None

    def _request(self, direction: _Direction, found: HttpRange, *, is_srmp: bool) -> _Request:
        """Number a request, and let it wait for its response."""
        number = self._requests if is_srmp else None
        self._requests += is_srmp
        request = _Request(number, found.frames[0], found.frames[-1], is_srmp, direction.finder.position)
        self._await_response(request, direction.flow)
        return request

    def _await_response(self, request: _Request, flow: Flow) -> None:
        """Let a request wait, unless its response came before it.

        Either the request had to be put in order, or the response is too early in the capture.
        """
        self._has_asked = True
        if self._answered_to is None:
            answering = flow._replace(
                src=flow.dst, src_port=flow.dst_port, dst=flow.src, dst_port=flow.src_port
            )
            self._answered_to = self._acknowledged(answering)
        if request.end <= self._answered_to:
            self._doubt()
            return
        while self._early:
            early = self._early.pop(0)
            if request.first_frame < early.frame or request.end <= early.acknowledged:
                return
            if self._are_certain:  # its request is unknown
                self._doubt()
        if not self._crowded:
            self._unanswered.append(request)
        if len(self._unanswered) > UNANSWERED_MAX:
            self._crowded = True
            self._unanswered.clear()

    def _response(
        self, direction: _Direction, found: HttpRange, http: HttpMessage, *, interim: bool
    ) -> ScanResult | None:
        request = self._answered(direction, found, interim=interim)
        if request is None or request.is_srmp is None:
            return _read(found, http) if self.is_settled else None
        return _read(found, http, request, is_response=True) if request.is_srmp else None

    def _answered(self, direction: _Direction, found: HttpRange, *, interim: bool = False) -> _Request | None:
        """Return the request that a response answers; None if that is unknown."""
        is_ahead = (self._around.ahead(direction.flow) or 0) > 1  # one byte is a FIN, perhaps
        if not self._unanswered or (is_ahead and not self._are_certain):
            if not interim:
                self._unanswered.clear()
                self._early.append(_EarlyResponse(found.frames[-1], self._acknowledged(direction.flow)))
                del self._early[:-UNANSWERED_MAX]
                if self._has_asked and not is_ahead:
                    self._to_alternate = ALTERNATING_MIN
            return None
        received = self._received(direction)
        self._pipelines |= received > 1
        if self._are_certain or received == 1:
            request = self._unanswered[0] if interim else self._unanswered.pop(0)
            if self._to_alternate and not interim:
                self._to_alternate -= 1
            return None if self._to_alternate else request
        self._doubt()
        if not received:  # it answers an earlier request, or one that it refuses before its end
            self._unanswered.clear()
        elif not interim:
            self._unanswered.pop(0)
        return None

    def _received(self, direction: _Direction) -> int:
        """Return how many of the requests that wait the sender of a response has received."""
        acknowledged = self._acknowledged(direction.flow)
        if acknowledged < 0:
            return len(self._unanswered)
        return sum(request.end <= acknowledged for request in islice(self._unanswered, 2))

    def _acknowledged(self, flow: Flow) -> int:
        """Return up to where a sender has acknowledged the bytes of the other side; -1 if that is unknown."""
        ahead, other = self._around.ahead(flow), self._directions.get(flow.receiver)
        if ahead is None or (other is None and self._has_asked):
            return -1
        return ahead + (0 if other is None else other.finder.received)

    def _malformed(
        self, direction: _Direction, found: HttpRange, error: MalformedPacket
    ) -> ScanResult | None:
        """Return the result of a message that can't be framed; None if it is not known to be SRMP.

        It keeps its place in the order of messages: a request is answered, if only with status 400.
        """
        self.is_settled |= begins_srmp(found.data)
        if found.data.startswith(STATUS):
            request = self._answered(direction, found)
        else:
            request = self._request(direction, found, is_srmp=self.is_settled)
        return _malformed(found, error, request) if self.is_settled else None

    def _skip(self, direction: _Direction, found: HttpRange) -> Iterator[ScanResult]:
        if self.is_settled:
            yield from direction.skip(found, found.reason or OTHER_HTTP)
        else:
            direction.count(found, UNKNOWN)


def _read(
    found: HttpRange, http: HttpMessage, request: _Request | None = None, *, is_response: bool = False
) -> ScanResult:
    """Return the result of a message of SRMP, which is a request or the response to it."""
    try:
        message = read_srmp(http)
    except MalformedPacket as exc:
        return _malformed(found, exc.detached(), request)
    return ScanResult(
        found.data, found.size, message, None, "", found.frames, found.time_ns,
        exchange=None if request is None else request.number,
        request_frame=request.frame if request is not None and is_response else None,
    )  # fmt: skip


def _malformed(found: HttpRange, error: MalformedPacket, request: _Request | None) -> ScanResult:
    exchange = None if request is None else request.number
    return ScanResult(
        found.data, found.size, None, error, "", found.frames, found.time_ns, found.cut, exchange=exchange
    )
