"""The interface of a protocol to dissection: `Dissector` of streams, `DatagramDissector` of datagrams.

A dissector is made once for a capture, and keeps the state that all conversations of its protocol share.
Dissectors are asked about a connection until one recognises it; the `Conversation` that this one begins
consumes the events of both directions. A new protocol joins by `registry.register`: nothing else has to know
it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from msmqwire.analysis.dissection.finder import ScanResult
from msmqwire.analysis.dissection.followed_direction import Ignored
from msmqwire.analysis.dissection.frame_ranges import FragmentFrames
from msmqwire.analysis.dissection.item import Item, LocateFrames, Packet
from msmqwire.analysis.dissection.message_security import NOTHING_GIVEN, Examiner
from msmqwire.analysis.lint import Finding
from msmqwire.analysis.protocols import protocols
from msmqwire.analysis.protocols.readings import PROPOSED, NcpReadings
from msmqwire.capture import Data, Datagram, End, Flow, Gap
from msmqwire.capture.events import Endpoint
from msmqwire.capture.record import time_or_none
from msmqwire.capture.tunnels import encapsulation_of
from msmqwire.errors import MalformedPacket

_BY_THE_CAPTURE: Final = (
    "ATTACK-TRUNCATED",
    *(id for protocol in protocols() for id in protocol.judging.of_cut),
)


def _as_numbered(frames: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    return "", frames


def _unknown(_flow: Flow) -> bool:
    return False


def _unknown_number(_flow: Flow) -> int | None:
    return None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The context that the dissectors of a capture share.

    Attributes:
        tcp_ports: the TCP ports whose traffic is MSMQ unless its bytes say otherwise.
        ports: the ports that were given besides those of the protocols.
        lint: whether to judge packets.
        locate: maps frame numbers to files.
        examiner: has the keys and certificates given.
        readings: readings of fields that sources describe differently.
        fragments: the frames of TCP segments that came in fragments.
        is_behind: whether the sender of a direction has received data that was not captured, or not in order.
        is_one_sided: whether nothing of the other direction was captured.
        ahead: the number of bytes of the other direction that the sender has acknowledged and that are not
            delivered yet; below 0 if delivered bytes are not acknowledged, None if that is unknown.
    """

    tcp_ports: Collection[int] = ()
    ports: Collection[int] = ()
    lint: bool = True
    locate: LocateFrames = _as_numbered
    examiner: Examiner = NOTHING_GIVEN
    readings: NcpReadings = PROPOSED
    fragments: FragmentFrames = field(default_factory=FragmentFrames)
    is_behind: Callable[[Flow], bool] = _unknown
    is_one_sided: Callable[[Flow], bool] = _unknown
    ahead: Callable[[Flow], int | None] = _unknown_number

    def on_msmq_port(self, flow: Flow) -> bool:
        """Whether a connection is on a port of MSMQ."""
        return flow.dst_port in self.tcp_ports or flow.src_port in self.tcp_ports


class Opening(NamedTuple):
    """The bytes by which a connection is recognised that is not known yet.

    Attributes:
        flow: their direction.
        data: those that a dissector has waited with, and those of the segment.
        segment: those of the segment alone.
        is_claimed: whether a dissector claims the connection by its ports.
    """

    flow: Flow
    data: bytes
    segment: bytes
    is_claimed: bool


class Conversation(ABC):
    """Both directions of a connection that was recognised. It consumes the events of the reassembler.

    Its findings are results, which are all to be taken before the next event; `item` makes an item of each.

    Attributes:
        is_settled: whether its protocol is certain, whatever follows.
        is_over: whether nothing of it is left and it may become something else. Not once it is settled.
        held: the approximate number of bytes of memory that incomplete units take.
        idle: whether no direction has delivered anything that is not ended yet.
    """

    __slots__ = ("_around",)

    is_settled: bool = True

    def __init__(self, surroundings: Surroundings) -> None:
        self._around = surroundings

    @property
    def is_over(self) -> bool:
        return False

    @property
    @abstractmethod
    def held(self) -> int: ...

    @property
    @abstractmethod
    def idle(self) -> bool: ...

    @abstractmethod
    def data(self, event: Data) -> Iterable[ScanResult]:
        """Take the next bytes of a direction; return its results, made while they are iterated over."""

    @abstractmethod
    def gap(self, event: Gap) -> Iterable[ScanResult]:
        """Take a gap; return the results of the bytes before it, and of the gap."""

    @abstractmethod
    def end(self, event: End) -> Iterable[ScanResult]:
        """End a direction; return its last results."""

    @abstractmethod
    def discard(self) -> list[tuple[Flow, list[ScanResult]]]:
        """Let go of the buffered bytes of both directions to free memory."""

    def is_left_by(self, event: Data) -> bool:
        """Whether something else begins in these bytes. Not once it is settled."""
        return False

    def abandon(self) -> None:  # noqa: B027
        """Give it up: the bytes that it has ignored are counted as those before it was recognised."""

    def between_packets(self, flows: Collection[Flow]) -> bool:
        """Whether `flows` are all its directions, and `Dissector.resume` would go on as it does."""
        return False

    def item(self, flow: Flow, result: ScanResult) -> Item:
        """Return the item of a result."""
        packet, error, around = result.packet, result.error, self._around
        findings: list[Finding] = []
        if packet is not None:
            kind = self._kind(packet)
            if around.lint:
                findings = self._lint(flow, result, packet)
        elif error is not None:
            kind = "Malformed"
            if around.lint:
                findings = unless_cut(self._lint_malformed(result.data, error), cut=result.cut)
        else:
            kind = "Skipped"
            self._skipped()
        carriers = around.fragments.of(result.frames)
        file, frames = around.locate(carriers)
        asked = None if result.request_frame is None else around.locate((result.request_frame,))[1][0]
        return Item(
            file, time_or_none(result.time_ns), frames, "tcp", flow.stream,
            flow.src, flow.src_port, flow.dst, flow.dst_port,
            packet, kind, result.size, findings, error, result.data, result.reason,
            result.exchange, asked, around.examiner, self._one_sided(flow), encapsulation_of(carriers[-1]),
        )  # fmt: skip

    def _kind(self, packet: Any) -> str:
        """Return the name of a packet."""
        kind: str = packet.kind
        return kind

    @abstractmethod
    def _lint(self, flow: Flow, result: ScanResult, packet: Any) -> list[Finding]:
        """Judge a packet, the last result of a direction."""

    @abstractmethod
    def _lint_malformed(self, data: bytes, error: MalformedPacket) -> list[Finding]:
        """Judge bytes that are not a packet."""

    def _skipped(self) -> None:  # noqa: B027
        """Take note that bytes were skipped."""

    def _one_sided(self, flow: Flow) -> bool | None:
        """Whether nothing of the other direction was captured; None where nobody needs to know."""
        return None


class Dissector(ABC):
    """A protocol over TCP: recognises its connections, and follows them."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._around = surroundings

    @abstractmethod
    def recognises(self, opening: Opening) -> bool | None:
        """Return whether a connection is of this protocol; None if there are too few bytes to tell."""

    @abstractmethod
    def follow(self, flow: Flow, first: Flow, ignored: dict[Endpoint, Ignored]) -> Conversation:
        """Begin a conversation.

        Args:
            flow: the direction by which it was recognised.
            first: the one that has delivered first.
            ignored: the bytes skipped so far, by sender; a direction takes its own when it begins.
        """

    def claims(self, flow: Flow) -> bool:
        """Whether a connection is of this protocol by its ports, unless its bytes say otherwise."""
        return False

    def resume(self, flows: Sequence[Flow]) -> Conversation | None:
        """Resume a conversation of which these directions are between packets; None if it can't be done."""
        return None


class DatagramDissector(ABC):
    """A protocol of datagrams."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._around = surroundings

    @abstractmethod
    def recognises(self, datagram: Datagram) -> bool:
        """Whether a datagram, of UDP or PGM, is of this protocol."""

    @abstractmethod
    def items(self, datagram: Datagram) -> Iterable[Item]:
        """Return the items that a datagram of this protocol completes."""

    def end(self) -> Iterable[Item]:
        """End the capture; return the last items."""
        return ()

    def _item(
        self,
        datagram: Datagram,
        packet: Packet | None,
        kind: str,
        findings: Sequence[Finding],
        error: MalformedPacket | None = None,
        reason: str = "",
        exchange: int | None = None,
        request_frame: int | None = None,
    ) -> Item:
        """Return the item of a datagram."""
        around = self._around
        file, frames = around.locate(datagram.frames)
        asked = None if request_frame is None else around.locate((request_frame,))[1][0]
        return Item(
            file, time_or_none(datagram.time_ns), frames, datagram.transport, None,
            datagram.src, datagram.src_port, datagram.dst, datagram.dst_port,
            packet, kind, len(datagram.payload) + datagram.missing, findings, error,
            b"" if reason else datagram.payload, reason, exchange, asked,
            encapsulation=datagram.encapsulation,
        )  # fmt: skip


def unless_cut(findings: list[Finding], *, cut: bool) -> list[Finding]:
    """Return the findings of a malformed packet; bytes that the capture has left out are not an attack."""
    return [finding for finding in findings if not cut or finding.id not in _BY_THE_CAPTURE]
