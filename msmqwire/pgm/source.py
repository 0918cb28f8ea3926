"""The source of a transport session, without I/O and clock: RFC 3208 sections 5 and 16, [MC-MQSRM] 2.1.3."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from msmqwire.errors import InvalidValue, MalformedPacket
from msmqwire.names.printable import counted
from msmqwire.pgm.constants import (
    AMBIENT_SPM_IVL,
    AMBIENT_SPM_PACKETS,
    APDU_MAX,
    IHB_MAX,
    IHB_MIN,
    NCF_SHARE,
    TOKEN_BUCKET,
    TPDU_MAX,
    TXW_ADV_SHARE,
    TXW_MAX_RTE,
    TXW_SECS,
)
from msmqwire.pgm.effects import Address, Finished, Multicast, SourceEffect, Transmitted
from msmqwire.pgm.layouts import NAK_LIST_MAX, PgmType
from msmqwire.pgm.packets import build_pgm, checksum_is_right, parse_pgm
from msmqwire.pgm.rate import TokenBucket
from msmqwire.pgm.sequence import near, wire
from msmqwire.pgm.transmit_window import Sent, TransmitWindow
from msmqwire.pgm.values import (
    Body,
    Data,
    Nak,
    Nla,
    OptFin,
    OptFragment,
    Option,
    OptNakList,
    OptRst,
    OptSyn,
    PgmPacket,
    Spm,
)

FRAME_MAX: Final = 24 + 4 + 16 + 4 + 4
"""Octets of a data packet with OPT_LENGTH, OPT_FRAGMENT, OPT_SYN and OPT_FIN, its data apart."""
NAK_MAX: Final = 1 + NAK_LIST_MAX
"""The sequence numbers of one NAK or NCF."""
WAITING_MAX: Final = 4 << 20
"""Bytes that may wait to be sent, headers included: a minute at TXW_MAX_RTE. Our own limit, like the next."""
WINDOW_MAX: Final = 64 << 20
"""Bytes of data in the transmit window: three times those of TXW_MAX_RTE in TXW_SECS."""
_HELD_BACK_MAX: Final = 2.0  # times TXW_SECS that NAKs may hold back the window


class _Waiting(NamedTuple):
    """A data packet that has not been sent. `last` says that it ends its APDU."""

    options: tuple[Option, ...]
    data: bytes
    last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """The identity of a source, and the settings of an administrator (SRMP-2.1.3.1-01, SRMP-2.1.3.1-02).

    Attributes:
        gsi: 6 octets that no other source has.
        port: the data-source port; with the GSI it names the session.
        group_port: the data-destination port.
        address: the source's address, where NAKs are to go.
        group: the multicast address.
        tpdu_max: the longest packet.
    """

    gsi: bytes
    port: int
    group_port: int
    address: Address
    group: Address
    tpdu_max: int = TPDU_MAX
    txw_max_rte: float = TXW_MAX_RTE
    txw_secs: float = TXW_SECS


class Source:
    """Sends APDUs to a group and repairs the packets that receivers miss.

    Every method returns the effects to carry out. The owner calls `tick` at `next_time`, or later.

    TXW_MAX_RTE holds for SPM, ODATA and RDATA together: data wait for their turn, SPMs only
    count. Repairs and new data take turns, and so do those who ask for repairs, so that NAKs, which any
    sender can forge, stop neither new data nor the repairs of others.
    NCFs have a rate of their own, `NCF_SHARE` of that one.

    Attributes:
        waiting: the bytes of data not sent for the first time yet.
        refused: the packets received that were malformed, not for this source or not worth an answer.
    """

    def __init__(self, settings: SourceSettings, now: float, *, first: int = 0) -> None:
        """Begin a session with the sequence number `first`. Raises InvalidValue."""
        if not FRAME_MAX < settings.tpdu_max <= 0xFFFF:
            raise InvalidValue(f"{settings.tpdu_max} is not in {FRAME_MAX + 1}..65535", path="tpdu_max")
        self._settings = settings
        self._nlas = Nla(settings.address), Nla(settings.group)
        self._window = TransmitWindow(first)
        self._queue = deque[_Waiting]()
        self._asked = dict[int, None]()  # the sequence numbers that an NCF is due for
        self._next, self._first = first, first
        self._bucket = TokenBucket(settings.txw_max_rte, TOKEN_BUCKET, now)
        self._ncf_bucket = TokenBucket(settings.txw_max_rte * NCF_SHARE, TOKEN_BUCKET, now)
        self._spm_sequence, self._spm_at, self._last_spm = 0, now, now
        self._heartbeat, self._since_spm = IHB_MIN, 0
        self._advance_every = settings.txw_secs * TXW_ADV_SHARE
        self._advance_at = now + self._advance_every
        self._data_at = self._ncf_at = float("inf")
        self._repaired_last = False
        self._closed = self._ended = False
        self.waiting = self.refused = 0

    # --- calls of the owner -------------------------------------------------------------------------------

    def next_time(self) -> float:
        """Return when `tick` is to be called next; infinity once the session is finished."""
        due = min(self._spm_at, self._advance_at, self._data_at, self._ncf_at)
        return float("inf") if self._ended else due

    def has_room(self, size: int) -> bool:
        """Return whether an APDU of `size` bytes may wait; one always may."""
        return not self._queue or self.waiting + size + FRAME_MAX * len(self._queue) <= WAITING_MAX

    def tick(self, now: float) -> list[SourceEffect]:
        """Do the work that is due."""
        if self._ended:
            return []
        effects: list[SourceEffect] = []
        if now >= self._advance_at:
            # SRMP-2.1.3.1-13: the oldest TXW_ADV_SECS of TXW_SECS, so that no packet outlives TXW_SECS.
            # Neither NAKs nor their absence move this timer: SRMP-2.1.3-02, SRMP-2.1.3-13.
            self._window.advance(now - self._settings.txw_secs + self._advance_every)
            self._window.shrink(now - _HELD_BACK_MAX * self._settings.txw_secs, WINDOW_MAX)
            while self._advance_at <= now:
                self._advance_at += self._advance_every  # SRMP-2.1.3-14
        effects += self._confirm(now)
        effects += self._pump(now)
        if now >= self._spm_at:
            effects.append(self._spm(now))
        if self._drained and not self._window:
            self._ended = True
            effects.append(Finished())
        return effects

    def send(self, apdu: bytes, now: float) -> list[SourceEffect]:
        """Send an APDU.

        Raises InvalidValue if it is over 64 KiB, after the end, or if too much waits.
        """
        if len(apdu) > APDU_MAX:  # SRMP-2.1.3.1-15
            raise InvalidValue(f"{counted(len(apdu), 'byte')}, more than {APDU_MAX:,}", path="apdu")
        if self._closed or self._ended:
            raise InvalidValue("the session is closed", path="apdu")
        if not self.has_room(len(apdu)):
            raise InvalidValue(f"{counted(self.waiting, 'byte', 'wait')} already", path="apdu")
        self._queue.extend(self._fragments(apdu))
        self.waiting += len(apdu)
        return self.tick(now)

    def received(self, data: bytes, now: float, asker: Hashable = None) -> list[SourceEffect]:
        """Answer a packet: an NCF for a NAK as soon as the rate allows, RDATA later. Other packets are
        dropped. `asker` is the address of its sender.
        """
        sequences = [] if self._ended else self._asked_for(data)
        if not sequences:
            self.refused += 1
        # SRMP-2.1.3-04: every NAK in the window is answered, however many there are. NAKs that come faster
        # than the rate of NCFs are answered together.
        for sequence in sequences:
            if self._window.ask(sequence, now, asker):
                self._asked[sequence] = None
        if sequences:
            self._ncf_at = min(self._ncf_at, now)
        return self.tick(now)

    def close(self, now: float) -> list[SourceEffect]:
        """Send the waiting packets, then announce the end; repair until the window is empty."""
        self._closed = True
        if self._drained:
            self._spm_at = now
        return self.tick(now)

    def cancel(self, now: float) -> list[SourceEffect]:
        """End at once with OPT_RST and serve no more NAKs."""
        if self._ended:
            return []
        self._queue.clear()
        self._window.clear()
        self._asked.clear()
        self._ended, self.waiting = True, 0  # SRMP-2.1.3-12
        return [self._spm(now, OptRst()), Finished()]  # SRMP-2.1.3-12

    # --- inside --------------------------------------------------------------------------------------------

    @property
    def _drained(self) -> bool:
        return self._closed and not self._queue

    def _fragments(self, apdu: bytes) -> list[_Waiting]:
        size = self._settings.tpdu_max - FRAME_MAX
        first = self._next
        self._next += max(1, -(-len(apdu) // size))
        if len(apdu) <= size:
            return [_Waiting((), apdu, True)]
        return [
            _Waiting((OptFragment(wire(first), at, len(apdu)),), apdu[at : at + size], at + size >= len(apdu))
            for at in range(0, len(apdu), size)
        ]

    def _confirm(self, now: float) -> Iterable[SourceEffect]:
        """Send NCFs for the packets asked for, as far as their rate allows."""
        while self._ncf_at <= now:
            asked = list(islice(self._asked, NAK_MAX))
            sequences = [sequence for sequence in asked if sequence in self._window]
            if sequences:
                first, *others = map(wire, sequences)
                body = Nak(first, *self._nlas)
                ncf = self._packet(PgmType.NCF, body, (OptNakList(tuple(others)),) if others else ())
                self._ncf_at = self._ncf_bucket.ready_at(len(ncf), now)
                if self._ncf_at > now:
                    return
                self._ncf_bucket.take(len(ncf), now)
                yield Multicast(ncf)  # SRMP-2.1.3-04
            for sequence in asked:
                del self._asked[sequence]
            if not self._asked:
                self._ncf_at = float("inf")

    def _pump(self, now: float) -> Iterable[SourceEffect]:
        """Send repairs that are due and new data in turn, as far as the rate allows."""
        while True:
            repair = self._window.next_repair(now)
            due = repair is not None and repair[0] <= now and not (self._queue and self._repaired_last)
            if repair is not None and due:
                kind, sequence, last = PgmType.RDATA, repair[1], False
                options, data = self._window[sequence].options, self._window[sequence].data
            elif self._queue:
                kind, sequence = PgmType.ODATA, self._window.lead + 1
                options, data, last = self._queue[0]
                # The last packet of the session may be on its way before anyone knows: SPMs tell as well.
                options += (OptSyn(),) if sequence == self._first else ()  # SRMP-2.1.3-08
                options += (OptFin(),) if self._closed and len(self._queue) == 1 else ()
            else:
                self._data_at = repair[0] if repair else float("inf")
                return
            body = Data(wire(sequence), wire(self._window.trail))
            packet = self._packet(kind, body, options, data)
            ready = self._bucket.ready_at(len(packet), now)
            if ready > now:  # SRMP-2.1.3-03
                self._data_at = ready
                return
            self._bucket.take(len(packet), now)  # SRMP-2.1.3-03
            self._repaired_last = due
            if due:
                self._window.repaired(sequence)
            else:
                self._queue.popleft()
                self.waiting -= len(data)
                self._window.append(Sent(options, data, now))
                self._window.shrink(float("-inf"), WINDOW_MAX)
            yield Multicast(packet)
            if last:
                yield Transmitted()
            self._data_sent(now)
            # SRMP-2.1.3.1-11
            if self._since_spm >= AMBIENT_SPM_PACKETS or (self._drained and not due):
                yield self._spm(now)

    def _data_sent(self, now: float) -> None:
        """Count a data packet: an ambient SPM follows in time, then heartbeats."""
        self._since_spm += 1  # SRMP-2.1.3.1-11
        self._heartbeat = IHB_MIN
        # SRMP-2.1.3.1-11
        self._spm_at = min(self._spm_at, max(now, self._last_spm + AMBIENT_SPM_IVL))

    def _spm(self, now: float, *options: Option) -> Multicast:
        """Make an SPM, ambient or heartbeat, and set the time of the next."""
        body = Spm(self._spm_sequence, wire(self._window.trail), wire(self._window.lead), self._nlas[0])
        if self._drained:
            options += (OptFin(),)
        packet = self._packet(PgmType.SPM, body, options)
        self._bucket.take(len(packet), now)  # SRMP-2.1.3-03
        self._spm_sequence = wire(self._spm_sequence + 1)
        self._since_spm, self._last_spm = 0, now
        self._spm_at = now + self._heartbeat  # SRMP-2.1.3.1-05
        self._heartbeat = min(2 * self._heartbeat, IHB_MAX)  # SRMP-2.1.3.1-05
        return Multicast(packet)

    def _packet(
        self, kind: PgmType, body: Body, options: tuple[Option, ...] = (), data: bytes = b""
    ) -> bytes:
        settings = self._settings
        return build_pgm(
            PgmPacket(kind, settings.port, settings.group_port, settings.gsi, body, options, data)
        )

    def _asked_for(self, data: bytes) -> list[int]:
        """Return the sequence numbers in the window that a NAK of this session asks for, each once."""
        try:
            packet = parse_pgm(data)
        except MalformedPacket:
            return []
        body = packet.body
        # Upstream the ports are the other way round: section 8. NNAKs are for statistics alone.
        session = packet.GSI, packet.DestinationPort, packet.SourcePort
        ours = self._settings.gsi, self._settings.port, self._settings.group_port
        if (
            packet.Type != PgmType.NAK
            or not isinstance(body, Nak)
            or session != ours
            or not checksum_is_right(data)
        ):
            return []
        asked = [body.RequestedSequenceNumber]
        for option in packet.options:
            if isinstance(option, OptNakList):
                asked += option.SequenceNumbers
        numbers = dict.fromkeys(near(self._window.lead, number) for number in asked)
        # More than one list does not fit into the NCF, and none is due.
        return [number for number in numbers if number in self._window][:NAK_MAX]
