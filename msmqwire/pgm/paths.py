"""The addresses that NAKs of a session may go to, and the bytes that may go there: RFC 3208 section 6.3.

A packet names its path itself, and anybody can forge one. A receiver that believed it would be a weapon
against the address named, so it asks only who has been heard, and sends no more than has come from there.
"""

from __future__ import annotations

from typing import Final

from msmqwire.pgm.effects import Address
from msmqwire.pgm.rate import TokenBucket


class Paths:
    """The source of a session and, once an SPM of it names one, the router on the way to it.

    Attributes:
        source: the address of the source.
        named: whether an SPM has come: nobody is asked before.
    """

    def __init__(self, source: Address, headers: int, ways: int) -> None:
        """Begin.

        Args:
            source: the address that the session's first packet came from.
            headers: the octets that the network puts before each packet, received or sent.
            ways: the copies of a NAK that the source is sent.
        """
        self._headers: Final = headers
        self._ways: Final = ways
        self.source: Final = source
        self._router = source
        self._left: dict[Address, int] = {source: 0}
        self.named = False

    def name(self, path: Address) -> None:
        """Note the path of an SPM. A router is nowhere to send to until it is heard."""
        self.named = True
        if path != self._router:
            self._router = path
            self._left = {self.source: self._left[self.source], path: self._left.get(path, 0)}

    def heard(self, sender: Address, size: int) -> None:
        """Count a packet that the source, or the router that it names, has sent downstream."""
        if sender in self._left:
            self._left[sender] += size + self._headers

    def is_router(self, sender: Address) -> bool:
        """Return whether an address is that of the router which the source names."""
        return sender == self._router != self.source

    def nearest(self, size: int) -> Address | None:
        """Return where a NAK of `size` octets may go: the router, else the source; None if to neither."""
        places = self._router, self.source
        return next((one for one in places if self._left[one] >= self.cost(size, one)), None)

    def cost(self, size: int, to: Address) -> int:
        """Return the octets of a NAK, the copy to the group included."""
        return (1 + (self._ways if to == self.source else 1)) * (size + self._headers)

    def sent(self, size: int, to: Address) -> None:
        """Count a NAK."""
        self._left[to] -= self.cost(size, to)


class NakRate:
    """The octets of NAKs a second of one address's sessions: a share of those of a whole receiver."""

    def __init__(self, total: TokenBucket, share: TokenBucket) -> None:
        self._buckets: Final = total, share

    def allows(self, size: int, now: float) -> bool:
        """Return whether a packet may go now."""
        return all(bucket.ready_at(size, now) <= now for bucket in self._buckets)

    def take(self, size: int, now: float) -> None:
        """Count a packet."""
        for bucket in self._buckets:
            bucket.take(size, now)
