"""APDUs from data packets in order: RFC 3208 section 9.2, SRMP-2.1.3-06, SRMP-2.1.3.1-15."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from msmqwire.pgm.constants import APDU_MAX
from msmqwire.pgm.sequence import near
from msmqwire.pgm.values import OptFragment


class Result(NamedTuple):
    """The result of a packet: an APDU, and the first lost sequence number, up to `lost_last`."""

    apdu: bytes | None = None
    lost_first: int | None = None
    lost_last: int = 0


@dataclass(slots=True)
class Reassembly:
    """The APDU that is being put together. It takes memory for received bytes, never for a promised length.

    Attributes:
        resumed: the sequence number from which packets follow each other again, after joining or a loss: the
            remains of an APDU that began before are passed over.
    """

    resumed: int
    _first: int | None = None
    _length: int = 0
    _data: bytearray = field(default_factory=bytearray)

    def add(self, sequence: int, fragment: OptFragment | None, data: bytes) -> Result:
        """Take the packet that follows the last one."""
        if fragment is None:
            return Result(data, self.drop(sequence), sequence - 1)
        first = near(sequence, fragment.FirstSequenceNumber)
        lost, lost_last = None, sequence - 1
        if first == sequence and fragment.Offset == 0:
            lost = self.drop(sequence)
            if fragment.Length <= APDU_MAX:
                self._first, self._length = sequence, fragment.Length
        expected = (self._first, len(self._data), self._length)
        if expected == (first, fragment.Offset, fragment.Length) and (
            len(self._data) + len(data) <= self._length
        ):
            self._data += data
            if len(self._data) < self._length:
                return Result(None, lost, lost_last)
            apdu = bytes(self._data)
            self._clear()
            return Result(apdu, lost, lost_last)
        if self._first is None and first < self.resumed:
            return Result()
        # A fragment that fits nowhere: nothing of its APDU is used.
        before = self.drop(sequence + 1)
        lost = before if lost is None else lost
        self.resumed = sequence + 1
        return Result(None, sequence if lost is None else lost, sequence)

    def drop(self, resumed: int) -> int | None:
        """Give up the APDU that is being put together; return its first sequence number, if there is one."""
        first = self._first
        self._clear()
        if first is not None:
            self.resumed = resumed
        return first

    def hole(self, resumed: int) -> int | None:
        """Packets up to `resumed` are lost: as `drop`, and no APDU that began in them is used."""
        first = self.drop(resumed)
        self.resumed = resumed
        return first

    def _clear(self) -> None:
        self._first, self._length = None, 0
        self._data = bytearray()
