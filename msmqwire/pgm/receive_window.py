"""The receive window: packets that came out of order, and missing ones. RFC 3208 sections 6.1 to 6.3."""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple

from msmqwire.pgm.constants import (
    NAK_DATA_RETRIES,
    NAK_NCF_RETRIES,
    NAK_RB_IVL,
    NAK_RDATA_IVL,
    NAK_RPT_IVL,
)
from msmqwire.pgm.memory import Memory
from msmqwire.pgm.values import OptFragment

# Our own limits. Beyond them nothing is lost: packets without room are asked for again when there is some.
WINDOW_MAX: Final = 4096
"""Sequence numbers from the next to be delivered to the last that is kept."""
BUFFER_MAX: Final = 1 << 20
"""Bytes of data that are kept after a gap."""
MISSING_MAX: Final = 256
"""Sequence numbers asked for at the same time: at TXW_MAX_RTE this number comes before retries run out."""
TIMERS_MAX: Final = 4 * MISSING_MAX
"""Timers, those that have become void included."""
_PACKET_BYTES: Final = 256
"""Memory of a packet apart from its data."""


class State(Enum):
    """The event awaited for a missing packet: RFC 3208 section 6.3."""

    BACK_OFF = auto()
    WAIT_NCF = auto()
    WAIT_DATA = auto()


@dataclass(slots=True)
class Missing:
    """A packet that has not come, with the time at which its state ends."""

    state: State
    at: float
    ncf_retries: int = 0
    data_retries: int = 0
    is_left_to_others: bool = False


class Arrived(NamedTuple):
    """A packet that is next in order."""

    sequence: int
    fragment: OptFragment | None
    data: bytes


class Hole(NamedTuple):
    """Sequence numbers that will never come."""

    first: int
    last: int


class ReceiveWindow:
    """From `next`, the first sequence number not delivered, to `lead`, the last one known.

    Sequence numbers below `scanned` are either kept, missing or given up; those from there on wait for room,
    and some of those below `noted` may be missing or given up already.
    """

    def __init__(self, following: int, random: Callable[[], float], memory: Memory) -> None:
        self._random: Final = random
        self._memory: Final = memory
        self.next = self._scanned = self._noted = self._trail = following
        self.lead = following - 1
        self.buffered = 0
        self._packets: Final = dict[int, Arrived]()
        self._order: Final = list[int]()
        self._missing: Final = dict[int, Missing]()
        self._given_up: Final = set[int]()
        self._timers = list[tuple[float, int]]()

    @property
    def kept(self) -> int:
        """The packets kept and the sequence numbers noted: the measure of this window's memory."""
        return len(self._packets) + len(self._missing) + len(self._given_up) + len(self._timers)

    def next_time(self) -> float:
        return self._timers[0][0] if self._timers else float("inf")

    def heard(self, trail: int, lead: int) -> None:
        """Note the edges of the transmit window. Neither goes back."""
        self._trail = max(self._trail, trail)
        self.lead = max(self.lead, lead, trail - 1)

    def store(self, packet: Arrived) -> bool:
        """Keep a packet, unless it has come before or there is no room for it."""
        sequence = packet.sequence
        if sequence < self.next or sequence in self._packets or sequence in self._given_up:
            return False
        self.lead = max(self.lead, sequence)
        ahead = sequence - self.next
        if ahead and (ahead >= WINDOW_MAX or self.buffered + len(packet.data) > BUFFER_MAX):
            return False
        size = len(packet.data) + _PACKET_BYTES
        if not self._memory.take(self, size):
            if ahead:
                return False
            self.release()  # packets after one that can be delivered are worth less
            if not self._memory.take(self, size):
                return False
        self._packets[sequence] = packet
        insort(self._order, sequence)  # SRMP-2.1.3-06
        self.buffered += len(packet.data)
        self._missing.pop(sequence, None)
        return True

    def drain(self) -> Iterator[Arrived | Hole]:
        """Take the next packets in order as far as they go."""
        while True:
            if (packet := self._packets.pop(self.next, None)) is not None:
                del self._order[0]
                self._give_back(packet)
                self._go_on(self.next + 1)  # SRMP-2.1.3-06
                yield packet
            elif (end := self._hole_end()) > self.next:  # SRMP-2.1.3-06
                hole = Hole(self.next, end - 1)
                self._go_on(end)
                yield hole
            else:
                return

    def release(self) -> None:
        """Drop the packets kept: they count as never come, and are asked for when there is room."""
        for packet in self._packets.values():
            self._give_back(packet)
        if self._order:
            self._scanned = min(self._scanned, self._order[0])
        self._packets.clear()
        self._order.clear()

    def _give_back(self, packet: Arrived) -> None:
        self.buffered -= len(packet.data)
        self._memory.give_back(self, len(packet.data) + _PACKET_BYTES)

    def _hole_end(self) -> int:
        """Return the first sequence number that may still come; `next` if that one may."""
        end = self.next
        while end in self._given_up:
            end += 1
        if end < self._trail:
            end = min(self._order[0], self._trail) if self._order else self._trail
        return end

    def _go_on(self, following: int) -> None:
        for sequence in range(self.next, min(following, self._noted)):
            self._missing.pop(sequence, None)
            self._given_up.discard(sequence)
        self.next = following
        self._scanned = max(self._scanned, following)
        self._noted = max(self._noted, following)

    def look_for_gaps(self, now: float) -> None:
        """Begin to back off for missing packets, as far as there is room."""
        end = min(self.lead + 1, self.next + WINDOW_MAX)
        while self._scanned < end and len(self._missing) < MISSING_MAX:
            sequence = self._scanned
            self._scanned += 1
            if sequence in self._packets or sequence in self._missing or sequence in self._given_up:
                continue
            self._missing[sequence] = missing = Missing(State.BACK_OFF, 0.0)
            self._enter(sequence, missing, State.BACK_OFF, now)
        self._noted = max(self._noted, self._scanned)

    def confirmed(self, sequences: Iterable[int], now: float) -> None:
        """An NCF was heard: no NAK is sent, the data are awaited."""
        for sequence in sequences:
            missing = self._missing.get(sequence)
            if missing is not None and missing.state is not State.WAIT_DATA:
                missing.ncf_retries = 0
                self._enter(sequence, missing, State.WAIT_DATA, now)

    def asked_by_others(self, sequences: Iterable[int], now: float) -> None:
        """A NAK of another receiver was heard: as if it had been ours, once between two of ours.

        Anybody can forge one that goes to nobody else, and so keep a receiver from asking.
        """
        for sequence in sequences:
            missing = self._missing.get(sequence)
            if missing is not None and missing.state is State.BACK_OFF and not missing.is_left_to_others:
                missing.is_left_to_others = True
                self._enter(sequence, missing, State.WAIT_NCF, now)

    def postpone(self, sequences: Iterable[int], now: float) -> None:
        """Packets that were due could not be asked for: they are due again later."""
        for sequence in sequences:
            missing = self._missing[sequence]
            missing.state, missing.at = State.BACK_OFF, now + NAK_RPT_IVL
            self._push(sequence, missing)

    def due(self, now: float) -> list[int]:
        """Return the packets to send NAKs for, and give up those that were asked for often enough."""
        naks: list[int] = []
        while self._timers and self._timers[0][0] <= now:
            at, sequence = heapq.heappop(self._timers)
            missing = self._missing.get(sequence)
            if missing is None or missing.at != at:
                continue
            if missing.state is State.BACK_OFF:
                naks.append(sequence)
                missing.is_left_to_others = False
                self._enter(sequence, missing, State.WAIT_NCF, now)
                continue
            if missing.state is State.WAIT_NCF:
                missing.ncf_retries += 1
            else:
                missing.data_retries += 1
            # SRMP-2.1.3.1-08
            if missing.ncf_retries > NAK_NCF_RETRIES or missing.data_retries > NAK_DATA_RETRIES:
                del self._missing[sequence]
                self._given_up.add(sequence)
            else:
                self._enter(sequence, missing, State.BACK_OFF, now)
        return sorted(naks)

    def _enter(self, sequence: int, missing: Missing, state: State, now: float) -> None:
        if state is State.BACK_OFF:
            least, most = NAK_RB_IVL  # SRMP-2.1.3.1-10
            delay = least + self._random() * (most - least)
        else:
            delay = NAK_RPT_IVL if state is State.WAIT_NCF else NAK_RDATA_IVL
        missing.state, missing.at = state, now + delay
        self._push(sequence, missing)

    def _push(self, sequence: int, missing: Missing) -> None:
        heapq.heappush(self._timers, (missing.at, sequence))
        if len(self._timers) > TIMERS_MAX:
            # Most are of packets that came or were passed over, as many as a peer likes.
            self._timers = [(missing.at, sequence) for sequence, missing in self._missing.items()]
            heapq.heapify(self._timers)
