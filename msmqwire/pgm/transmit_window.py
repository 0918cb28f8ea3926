"""The transmit window of a source: the packets that it can still repair. RFC 3208 sections 5.1 and 16."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from msmqwire.pgm.constants import RDATA_DELAY
from msmqwire.pgm.repairs import Repairs
from msmqwire.pgm.values import Option


@dataclass(slots=True)
class Sent:
    """A data packet that was sent, without the fields that change from one sending to the next."""

    options: tuple[Option, ...]
    data: bytes
    sent_at: float


class TransmitWindow:
    """Sent packets from `trail` to `lead`, one less than `trail` if there is none, and the repairs due.

    Attributes:
        size: the bytes of their data.
    """

    def __init__(self, first: int) -> None:
        self.trail: int = first
        self.size = 0
        self._packets: Final = deque[Sent]()
        self._repairs: Final = Repairs()

    def __len__(self) -> int:
        return len(self._packets)

    def __contains__(self, sequence: int) -> bool:
        return self.trail <= sequence <= self.lead

    def __getitem__(self, sequence: int) -> Sent:
        return self._packets[sequence - self.trail]

    @property
    def lead(self) -> int:
        return self.trail + len(self._packets) - 1

    def next_repair(self, now: float) -> tuple[float, int] | None:
        """Return the time and the sequence number of the next repair, if there is one."""
        return self._repairs.next(now)

    def append(self, packet: Sent) -> None:
        self._packets.append(packet)
        self.size += len(packet.data)

    def ask(self, sequence: int, now: float, asker: Hashable) -> bool:
        """Note that an address asks for a packet in the window; return False if it asks for too many."""
        # SRMP-2.1.3.1-12, SRMP-2.1.3-05
        delay = (sequence - self.trail) * RDATA_DELAY / (self.lead - self.trail + 1)
        return self._repairs.ask(sequence, now + delay, asker)

    def repaired(self, sequence: int) -> None:
        """Take a repair off the list: it is sent."""
        self._repairs.repaired(sequence)

    def advance(self, before: float) -> None:
        """Forget packets sent before a time, up to the first that is still asked for: SRMP-2.1.3.1-14."""
        while self._packets and self._packets[0].sent_at < before and self.trail not in self._repairs:
            self._drop_first()

    def shrink(self, before: float, size_max: int) -> None:
        """Forget packets sent before a time, and the oldest ones beyond a size, asked for or not.

        A peer that asks for the first packet again and again would keep all packets after it in memory.
        """
        while self._packets and (self._packets[0].sent_at < before or self.size > size_max):
            self._drop_first()

    def _drop_first(self) -> None:
        self.size -= len(self._packets.popleft().data)
        self._repairs.forget(self.trail)
        self.trail += 1

    def clear(self) -> None:
        self.trail = self.lead + 1
        self._packets.clear()
        self._repairs.clear()
        self.size = 0
