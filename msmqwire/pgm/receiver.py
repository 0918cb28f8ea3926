"""The receiver of a group, without I/O, clock and chance: RFC 3208 section 6, [MC-MQSRM] 2.1.3."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from msmqwire.errors import MalformedPacket
from msmqwire.pgm.constants import NAK_MAX_RTE, TXW_SECS
from msmqwire.pgm.effects import (
    Address,
    Deliver,
    Ended,
    EndReason,
    Joined,
    Lost,
    Multicast,
    ReceiverEffect,
    Tsi,
    Unicast,
)
from msmqwire.pgm.layouts import NAK_LIST_MAX, PgmType
from msmqwire.pgm.memory import Memory
from msmqwire.pgm.packets import build_pgm, checksum_is_right, parse_pgm
from msmqwire.pgm.paths import NakRate, Paths
from msmqwire.pgm.rate import TokenBucket
from msmqwire.pgm.reassembly import Reassembly
from msmqwire.pgm.receive_window import Arrived, Hole, ReceiveWindow
from msmqwire.pgm.sequence import near, wire
from msmqwire.pgm.values import (
    Data,
    Nak,
    Nla,
    OptFin,
    OptFragment,
    OptJoin,
    OptNakList,
    OptRst,
    PgmPacket,
    Spm,
)

SOURCES_MAX: Final = 64
"""Sources followed at the same time. Our own limit, like the next ones."""
SOURCES_PER_ADDRESS_MAX: Final = 8
SILENCE_MAX: Final = TXW_SECS
"""Seconds without a packet after which a source is forgotten: it could not repair anything any more."""

NAK_SHARE: Final = 0.25
"""The part of NAK_MAX_RTE that is for the sources of one address."""

_NAK_MAX: Final = 1 + NAK_LIST_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverSettings:
    """The group that a receiver listens to (SRMP-2.1.2-02): the multicast address and the data-destination
    port; and the octets that the network puts before each packet, those of IPv4 and UDP by default.
    """

    group: Address
    group_port: int
    headers: int = 28


class Receiver:
    """Follows every source of a group, asks for lost packets and delivers APDUs in order.

    Every method returns the effects to carry out. The owner calls `tick` at `next_time`, or later.

    Anybody can forge packets of any source, so a source is heard only from the address that its first
    packet came from, and a new one always finds a place: that of one that has ended, else of one that has
    delivered nothing, else of the one that has been silent the longest. One address has few places.

    For the same reason NAKs go to addresses that were heard alone: see `Paths`.

    Attributes:
        sources_max: the sources followed at the same time.
        refused: the packets received that were malformed, not for this group or of no use.
    """

    def __init__(
        self, settings: ReceiverSettings, random: Callable[[], float], memory: Memory | None = None
    ) -> None:
        """Listen.

        Args:
            settings: the group to listen to, and timers.
            random: returns numbers of [0, 1), from which back-off times are made.
            memory: for data after gaps, which several receivers can share.
        """
        self._settings, self._random = settings, random
        self._memory = Memory() if memory is None else memory
        self._nak_bucket = TokenBucket(NAK_MAX_RTE, 1.0, 0.0)
        self._sessions = dict[Tsi, _Session]()
        self.sources_max = SOURCES_MAX
        self.refused = 0

    @property
    def buffered(self) -> int:
        """The bytes of data kept after gaps."""
        return sum(session.window.buffered for session in self._sessions.values())

    @property
    def kept(self) -> int:
        """The packets kept and the sequence numbers noted, of all sources."""
        return sum(session.window.kept for session in self._sessions.values())

    @property
    def sources(self) -> int:
        """The sources known."""
        return len(self._sessions)

    def next_time(self) -> float:
        """Return when `tick` is to be called next; infinity while there is no source."""
        return min((session.next_time() for session in self._sessions.values()), default=float("inf"))

    def tick(self, now: float) -> list[ReceiverEffect]:
        """Do the work that is due."""
        effects: list[ReceiverEffect] = []
        for tsi, session in list(self._sessions.items()):
            effects += session.tick(now)
            if now >= session.forget_at:
                effects += session.end(EndReason.SILENT)
                del self._sessions[tsi]
        return effects

    def received(self, data: bytes, sender: Address, now: float, ways: int = 1) -> list[ReceiverEffect]:
        """Take a packet from the group.

        Args:
            data: the packet.
            sender: the source address of its IP packet.
            now: the time.
            ways: the copies of a NAK that the owner sends to this address.
        """
        try:
            packet = parse_pgm(data)
        except MalformedPacket:
            self.refused += 1
            return self.tick(now)
        upstream = packet.Type == PgmType.NAK
        ports = packet.SourcePort, packet.DestinationPort
        group_port, port = ports if upstream else ports[::-1]
        effects: list[ReceiverEffect] = []
        session, is_new = None, False
        if group_port == self._settings.group_port and checksum_is_right(data):  # SRMP-2.1.2-02
            tsi = Tsi(packet.GSI, port)
            session = self._sessions.get(tsi)
            if session is None:
                session = self._join(tsi, packet, Paths(sender, self._settings.headers, ways))
                is_new = True
        if session is not None and not upstream:
            session.paths.heard(sender, len(data))
        if session is None or not session.hears(packet, sender) or not session.takes(packet):
            self.refused += 1
            return self.tick(now)
        if is_new:
            effects += self._make_room(sender)
            self._sessions[tsi] = session
            effects.append(Joined(tsi, wire(session.window.next)))
        effects += session.received(packet, now)
        return effects + self.tick(now)

    def close(self) -> None:
        """Give back all memory; nothing may be received any more."""
        for session in self._sessions.values():
            session.window.release()
        self._sessions.clear()

    def _join(self, tsi: Tsi, packet: PgmPacket, paths: Paths) -> _Session | None:
        """Return the session that a packet begins, if it does."""
        following = _begins_at(packet)
        if following is None:
            return None
        sessions = self._sessions.values()
        share = next((one.naks for one in sessions if one.source == paths.source), None)
        if share is None:
            share = NakRate(self._nak_bucket, TokenBucket(NAK_SHARE * NAK_MAX_RTE, 1.0, 0.0))
        return _Session(tsi, following, paths, self._settings, self._random, self._memory, share)

    def _make_room(self, sender: Address) -> Iterator[ReceiverEffect]:
        """End sessions until there is a place for one more of this address."""
        own = [tsi for tsi, session in self._sessions.items() if session.source == sender]
        while self._sessions and (len(own) >= SOURCES_PER_ADDRESS_MAX or self.sources >= self.sources_max):
            tsi = min(
                own if len(own) >= SOURCES_PER_ADDRESS_MAX else self._sessions,
                key=lambda one: self._sessions[one].worth,
            )
            yield from self._sessions.pop(tsi).end(EndReason.REPLACED)
            own = [one for one in own if one != tsi]


def _begins_at(packet: PgmPacket) -> int | None:
    """Return where the session that a packet begins is followed from: RFC 3208 section 6.1.

    The end of a session begins none. Earlier packets are not asked for, unless OPT_JOIN allows it;
    OPT_SYN changes nothing.
    """
    match packet.body:
        case Spm(TrailingEdgeSequenceNumber=trail, LeadingEdgeSequenceNumber=lead):
            following = lead + 1
        case Data(TrailingEdgeSequenceNumber=trail, DataPacketSequenceNumber=following) if (
            packet.Type == PgmType.ODATA
        ):
            pass
        case _:
            return None
    for option in packet.options:
        if isinstance(option, OptRst) or (isinstance(option, OptFin) and isinstance(packet.body, Spm)):
            return None
        if isinstance(option, OptJoin):  # SRMP-2.1.3-09
            allowed = max(near(following, option.MinimumSequenceNumber), near(following, trail))
            following = min(following, allowed)
    return following  # SRMP-2.1.3-09


class _Session:
    """A source as a receiver knows it."""

    def __init__(
        self,
        tsi: Tsi,
        following: int,
        paths: Paths,
        settings: ReceiverSettings,
        random: Callable[[], float],
        memory: Memory,
        naks: NakRate,
    ) -> None:
        self._tsi, self._settings, self._random = tsi, settings, random
        self._memory, self.naks, self.paths = memory, naks, paths
        self.source = paths.source
        self._nlas = Nla(self.source), Nla(settings.group)
        self.window = ReceiveWindow(following, random, memory)
        self._reassembly = Reassembly(following)
        self._spm_sequence: int | None = None
        self._last: int | None = None
        self.ended = self._has_delivered = False
        self.forget_at = float("inf")

    @property
    def worth(self) -> tuple[bool, bool, float]:
        """The rank of a source when not all can be followed: the least is given up."""
        return not self.ended, self._has_delivered, self.forget_at

    def next_time(self) -> float:
        return min(self.forget_at, self.window.next_time())

    def hears(self, packet: PgmPacket, sender: Address) -> bool:
        """Return whether it is the source that speaks, its router in an NCF, or anybody in a NAK."""
        kind = packet.Type
        return (
            sender == self.source
            or kind == PgmType.NAK
            or (kind == PgmType.NCF and self.paths.is_router(sender))
        )

    def takes(self, packet: PgmPacket) -> bool:
        """Return whether a packet makes sense here and now."""
        reference = self.window.lead
        match packet.body:
            case Spm() as spm:
                # One that was overtaken says nothing new: section 6.2.
                overtaken = (
                    self._spm_sequence is not None
                    and near(self._spm_sequence, spm.SPMSequenceNumber) <= self._spm_sequence
                )
                lead = near(reference, spm.LeadingEdgeSequenceNumber)
                return not overtaken and near(lead, spm.TrailingEdgeSequenceNumber) <= lead + 1
            case Data() as data:
                sequence = near(reference, data.DataPacketSequenceNumber)
                return near(sequence, data.TrailingEdgeSequenceNumber) <= sequence
            case Nak():
                return packet.Type in (PgmType.NAK, PgmType.NCF)
            case _:
                return False

    def received(self, packet: PgmPacket, now: float) -> Iterator[ReceiverEffect]:
        """Take a packet of this session that makes sense."""
        if packet.Type != PgmType.NAK:  # that one is from another receiver
            self.forget_at = now + SILENCE_MAX
        if self.ended:
            return
        window = self.window
        match packet.body:
            case Spm() as spm:
                self._spm_sequence = spm.SPMSequenceNumber
                self.paths.name(_path_of(spm, self.source))
                last = near(window.lead, spm.LeadingEdgeSequenceNumber)
                window.heard(near(last, spm.TrailingEdgeSequenceNumber), last)
            case Data() as data:
                last = near(window.lead, data.DataPacketSequenceNumber)
                fragment = next((o for o in packet.options if isinstance(o, OptFragment)), None)
                window.heard(near(last, data.TrailingEdgeSequenceNumber), last)
                window.store(Arrived(last, fragment, packet.data))
            case Nak() as nak:
                numbers = [nak.RequestedSequenceNumber]
                for option in packet.options:
                    numbers += option.SequenceNumbers if isinstance(option, OptNakList) else ()
                sequences = [near(window.lead, number) for number in numbers]
                if packet.Type == PgmType.NCF:
                    # It tells of data that were sent before they are known to be missing: section 6.3.
                    window.heard(window.next, max(sequences))
                    window.look_for_gaps(now)
                    window.confirmed(sequences, now)
                else:
                    window.asked_by_others(sequences, now)
                return
            case _:
                return
        for option in packet.options:
            if isinstance(option, OptRst):
                yield from self.end(EndReason.RST, option.error_code)  # SRMP-2.1.3-11
                return  # SRMP-2.1.3-11
            if isinstance(option, OptFin):
                self._last = last
        yield from self._deliver(now)

    def tick(self, now: float) -> Iterator[ReceiverEffect]:
        """Send the NAKs that are due, and go on after the packets given up."""
        if now < self.window.next_time():
            return
        due = self.window.due(now)
        # Nobody to ask is known before the first SPM: section 6.3. Time goes on all the same.
        if self.paths.named:
            yield from self._ask(due, now)
        yield from self._deliver(now)

    def _ask(self, due: list[int], now: float) -> Iterator[ReceiverEffect]:
        """Send NAKs as far as they may go; the rest waits, and counts as never asked for."""
        while due:
            asked, nak, path = self._longest_nak(due[:_NAK_MAX])
            if path is None or not self.naks.allows(cost := self.paths.cost(len(nak), path), now):
                self.window.postpone(due, now)
                return
            self.naks.take(cost, now)
            self.paths.sent(len(nak), path)
            yield Unicast(nak, path)
            yield Multicast(nak, ttl=1)  # SRMP-2.1.3-07
            due = due[asked:]

    def _longest_nak(self, sequences: list[int]) -> tuple[int, bytes, Address | None]:
        """Return the number of packets that one NAK may ask for, the NAK, and where it may go."""
        while True:
            nak = self._nak(sequences)
            path = self.paths.nearest(len(nak))
            if path is not None or len(sequences) == 1:
                return len(sequences), nak, path
            sequences = sequences[: len(sequences) // 2]

    def end(self, reason: EndReason, error_code: int = 0) -> Iterator[ReceiverEffect]:
        """End the session. It stays known, so that late packets do not begin it again."""
        if self.ended:
            return
        self.ended = True
        window = self.window
        first = self._reassembly.drop(window.next)
        if reason is not EndReason.RST and (first is not None or window.next <= window.lead):
            yield self._lost(window.next if first is None else first, window.lead)
        window.release()  # SRMP-2.1.3-11
        self.window = ReceiveWindow(window.lead + 1, self._random, self._memory)
        yield Ended(self._tsi, reason, error_code)

    def _deliver(self, now: float) -> Iterator[ReceiverEffect]:
        for item in self.window.drain():
            if isinstance(item, Hole):
                first = self._reassembly.hole(item.last + 1)
                yield self._lost(item.first if first is None else first, item.last)
                continue
            result = self._reassembly.add(*item)
            if result.lost_first is not None:
                yield self._lost(result.lost_first, result.lost_last)
            if result.apdu is not None:
                self._has_delivered = True
                yield Deliver(self._tsi, result.apdu)
        has_all = self._last is not None and self.window.next > self._last  # SRMP-2.1.3-10
        if not has_all:  # SRMP-2.1.3-10
            self.window.look_for_gaps(now)
            return
        yield from self.end(EndReason.FIN)  # SRMP-2.1.3-10

    def _lost(self, first: int, last: int) -> Lost:
        return Lost(self._tsi, wire(first), wire(last))

    def _nak(self, sequences: Iterable[int]) -> bytes:
        first, *others = map(wire, sequences)
        body = Nak(first, *self._nlas)
        options = (OptNakList(tuple(others)),) if others else ()
        ports = self._settings.group_port, self._tsi.port
        return build_pgm(PgmPacket(PgmType.NAK, *ports, self._tsi.gsi, body, options))


def _path_of(spm: Spm, source: Address) -> Address:
    """Return where NAKs go: the address that an SPM gives, or its source where that can't be one.

    An SPM could make a receiver send to all computers, or to its own services.
    """
    path = spm.PathNLA.Address
    elsewhere = path.is_multicast or path.is_unspecified or path.is_reserved
    return source if elsewhere or (path.is_loopback and not source.is_loopback) else path
