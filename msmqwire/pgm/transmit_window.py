"""The transmit window of a source: the packets that it can still repair. RFC 3208 sections 5.1 and 16."""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass
from typing import Final

from msmqwire.pgm.constants import RDATA_DELAY
from msmqwire.pgm.values import Option


@dataclass(slots=True)
class Sent:
    """A data packet that was sent, without the fields that change from one sending to the next."""

    options: tuple[Option, ...]
    data: bytes
    sent_at: float
    pending: bool = False


class TransmitWindow:
    """Sent packets from `trail` to `lead`, one less than `trail` if there is none, and the repairs due.

    Attributes:
        size: the bytes of their data.
    """

    def __init__(self, first: int) -> None:
        self.trail: int = first
        self.size = 0
        self._packets: Final = deque[Sent]()
        self._repairs = list[tuple[float, int]]()

    def __len__(self) -> int:
        return len(self._packets)

    def __contains__(self, sequence: int) -> bool:
        return self.trail <= sequence <= self.lead

    def __getitem__(self, sequence: int) -> Sent:
        return self._packets[sequence - self.trail]

    @property
    def lead(self) -> int:
        return self.trail + len(self._packets) - 1

    @property
    def next_repair(self) -> tuple[float, int] | None:
        """The time of the first repair, and its sequence number."""
        return self._repairs[0] if self._repairs else None

    def append(self, packet: Sent) -> None:
        self._packets.append(packet)
        self.size += len(packet.data)

    def ask(self, sequence: int, now: float) -> None:
        """Note that a packet in the window was asked for; while it is pending, that changes nothing."""
        packet = self[sequence]
        if not packet.pending:
            packet.pending = True
            # SRMP-2.1.3.1-12, SRMP-2.1.3-05
            delay = (sequence - self.trail) * RDATA_DELAY / (self.lead - self.trail + 1)
            heapq.heappush(self._repairs, (now + delay, sequence))

    def repaired(self) -> None:
        """Take the first repair off the list: it is sent."""
        _, sequence = heapq.heappop(self._repairs)
        self[sequence].pending = False

    def advance(self, before: float) -> None:
        """Forget packets sent before a time, up to the first that is still asked for: SRMP-2.1.3.1-14."""
        while self._packets and self._packets[0].sent_at < before and not self._packets[0].pending:
            self._drop_first()

    def shrink(self, before: float, size_max: int) -> None:
        """Forget packets sent before a time, and the oldest ones beyond a size, asked for or not.

        A peer that asks for the first packet again and again would keep all packets after it in memory.
        """
        asked_for = False
        while self._packets and (self._packets[0].sent_at < before or self.size > size_max):
            asked_for |= self._packets[0].pending
            self._drop_first()
        if asked_for:
            self._repairs = [repair for repair in self._repairs if repair[1] >= self.trail]
            heapq.heapify(self._repairs)

    def _drop_first(self) -> None:
        self.size -= len(self._packets.popleft().data)
        self.trail += 1

    def clear(self) -> None:
        self.trail = self.lead + 1
        self._packets.clear()
        self._repairs.clear()
        self.size = 0
