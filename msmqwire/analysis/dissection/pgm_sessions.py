"""The messages in captured PGM packets: RFC 3208 section 9.2, [MC-MQSRM] 2.1.2.

As an observer that can't ask for repairs, it waits for them until the transmit window has gone past, a
limit is reached or the capture ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from msmqwire.analysis.dissection.frame_ranges import completed
from msmqwire.capture import Datagram
from msmqwire.capture.ip import Transport
from msmqwire.capture.segment_buffer import SEGMENT_COST
from msmqwire.pgm import Data, OptFragment, OptionFlags, OptRst, PgmPacket, PgmType, Spm
from msmqwire.pgm.memory import Memory
from msmqwire.pgm.reassembly import Reassembly
from msmqwire.pgm.receive_window import WINDOW_MAX, Arrived, Hole, ReceiveWindow
from msmqwire.pgm.sequence import near, wire

SESSIONS_MAX: Final = 256
"""Transport sessions followed at a time; those silent for longest are ended."""
PARTS_MAX: Final = 4096
"""Packets of an application data unit whose frames are remembered: the last ones."""
HELD_MAX: Final = 16 << 20
"""Bytes of memory that the packets after gaps may take in all sessions together."""

_NO_TIMERS: Final = 0.5  # a window draws it for back-off times, which are not needed here

Origin = tuple[Transport, str, int, str, int, int]
"""The transport of a session, address and port of its source and of the group, and their network."""


class Apdu(NamedTuple):
    """An application data unit, with the frames of its packets and the time of the last of these."""

    origin: Origin
    data: bytes
    frames: tuple[int, ...]
    time_ns: int


class Lost(NamedTuple):
    """Sequence numbers that the capture does not have, up to `last`, and the frame that made that clear."""

    origin: Origin
    first: int
    last: int
    frame: int
    time_ns: int


class PgmSessions:
    """The transport sessions of a capture, each followed from its first packet on.

    A session is known by its source, its group and its TSI.

    Attributes:
        held: the approximate number of bytes of memory that packets after gaps take.
    """

    def __init__(self) -> None:
        self._sessions: dict[object, _Session] = {}  # the one heard last is the last
        self.held = 0

    def feed(self, datagram: Datagram, packet: PgmPacket) -> Iterator[Apdu | Lost]:
        """Yield the messages that a packet, whose checksum is right, completes."""
        if packet.Type not in (PgmType.SPM, PgmType.ODATA, PgmType.RDATA):
            return
        if packet.Options is not None and packet.Options & OptionFlags.P:
            return  # parity: SRMP-2.1.3-01 leaves forward error correction out
        origin = (datagram.transport, *datagram.key)
        key = origin, packet.GSI, packet.SourcePort
        session = self._sessions.pop(key, None)
        if session is not None:
            self.held -= session.held
            if session.is_left_by(packet):
                yield from session.end()
                session = None
        if session is None:
            if packet.Type == PgmType.RDATA:
                return  # earlier packets are not waited for
            session = _Session(origin, packet)
        self._sessions[key] = session
        yield from session.feed(datagram, packet)
        self.held += session.held
        while len(self._sessions) > SESSIONS_MAX or self.held > HELD_MAX:
            oldest = self._sessions.pop(next(iter(self._sessions)))
            self.held -= oldest.held
            yield from oldest.end()

    def flush(self) -> Iterator[Apdu | Lost]:
        """End all sessions."""
        for session in self._sessions.values():
            yield from session.end()
        self._sessions.clear()
        self.held = 0


def _no_timers() -> float:
    return _NO_TIMERS


class _Session:
    """A transport session."""

    def __init__(self, origin: Origin, packet: PgmPacket) -> None:
        following = _sequence(packet)
        self._origin = origin
        self._window = ReceiveWindow(following, _no_timers, Memory())
        self._reassembly = Reassembly(following)
        self._origins: dict[int, tuple[tuple[int, ...], int]] = {}  # frames and time by sequence number
        self._parts: deque[tuple[int, tuple[int, ...], int]] = deque(maxlen=PARTS_MAX)  # of an APDU
        self._frame = self._time_ns = 0

    @property
    def held(self) -> int:
        return self._window.buffered + SEGMENT_COST * (len(self._origins) + len(self._parts))

    def is_left_by(self, packet: PgmPacket) -> bool:
        """Whether a packet is so far away that its source must have begun anew."""
        return abs(near(self._window.lead, _sequence(packet)) - self._window.next) > WINDOW_MAX

    def feed(self, datagram: Datagram, packet: PgmPacket) -> Iterator[Apdu | Lost]:
        window = self._window
        self._frame, self._time_ns = datagram.frames[-1], datagram.time_ns
        match packet.body:
            case Spm() as spm:
                lead = near(window.lead, spm.LeadingEdgeSequenceNumber)
                trail = near(lead, spm.TrailingEdgeSequenceNumber)
                if trail <= lead + 1:
                    window.heard(trail, lead)
            case Data() as data:
                sequence = near(window.lead, data.DataPacketSequenceNumber)
                trail = near(sequence, data.TrailingEdgeSequenceNumber)
                if trail <= sequence:
                    window.heard(trail, sequence)
                    yield from self._store(sequence, datagram, packet)
        yield from self._drain()
        if any(isinstance(option, OptRst) for option in packet.options):
            yield from self.end()

    def _store(self, sequence: int, datagram: Datagram, packet: PgmPacket) -> Iterator[Apdu | Lost]:
        window = self._window
        if sequence < window.next or sequence in self._origins:
            return
        fragment = next((option for option in packet.options if isinstance(option, OptFragment)), None)
        arrived = Arrived(sequence, fragment, packet.data)
        if not window.store(arrived):  # there is no room while gaps before it are waited for
            window.heard(sequence, sequence)
            yield from self._drain()
            window.store(arrived)
        self._origins[sequence] = datagram.frames, datagram.time_ns

    def _drain(self) -> Iterator[Apdu | Lost]:
        for item in self._window.drain():
            if isinstance(item, Hole):
                first = self._reassembly.hole(item.last + 1)
                self._parts.clear()
                yield self._lost(item.first if first is None else first, item.last)
                continue
            self._parts.append((item.sequence, *self._origins.pop(item.sequence)))
            result = self._reassembly.add(*item)
            if result.lost_first is not None:
                yield self._lost(result.lost_first, result.lost_last)
            if result.apdu is not None:
                first = (
                    near(item.sequence, item.fragment.FirstSequenceNumber) if item.fragment else item.sequence
                )
                frames = {f: t for number, of, t in self._parts if number >= first for f in of}
                yield Apdu(self._origin, result.apdu, *completed(frames))
                self._parts.clear()

    def end(self) -> Iterator[Apdu | Lost]:
        """Give up the missing packets; yield the messages after them."""
        window = self._window
        window.heard(window.lead + 1, window.lead)
        yield from self._drain()
        first = self._reassembly.drop(window.next)
        if first is not None:
            yield self._lost(first, window.next - 1)
        self._parts.clear()

    def _lost(self, first: int, last: int) -> Lost:
        return Lost(self._origin, wire(first), wire(last), self._frame, self._time_ns)


def _sequence(packet: PgmPacket) -> int:
    """The sequence number at which a packet stands: of SPM, the one that follows."""
    body = packet.body
    if isinstance(body, Spm):
        return body.LeadingEdgeSequenceNumber + 1
    assert isinstance(body, Data)
    return body.DataPacketSequenceNumber
