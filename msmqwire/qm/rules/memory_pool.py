"""Memory for everything that peers can make the queue manager keep, in shares by kind and by origin."""

from __future__ import annotations

from enum import Enum
from itertools import chain
from typing import Final

from msmqwire.qm.model.message import Message


class Kind(Enum):
    """The kinds of data kept in memory on account of peers."""

    __hash__ = object.__hash__  # Enum's is slow, and members are dictionary keys

    EXPRESS = "express"  # express messages, including local ones
    SENDERS = "senders"  # transactional sequences that end here
    ROUTES = "routes"  # queues of acknowledgements to the senders of transactional messages
    HISTORY = "history"  # MessageIDHistoryTable
    QUEUES = "queues"  # outgoing queues that peers asked for


_SIXTEENTHS: Final = {
    Kind.EXPRESS: 8, Kind.SENDERS: 3, Kind.ROUTES: 2, Kind.HISTORY: 1, Kind.QUEUES: 2,
}  # fmt: skip
_ORIGINS: Final = 4
"""An unknown origin may have a fourth of the memory for a kind; other origins have the rest."""
_RESERVE: Final = 4
"""The last fourth is for this computer and known origins; half of it also for any origin that has little."""
_LITTLE: Final = 64

EXPRESS_BYTES: Final = 1_536
"""Bytes of an express message beside those of its packet, as measured: its attributes, names and position."""
SENDER_BYTES: Final = 768
"""Bytes of a transactional sequence, as measured."""
QUEUE_BYTES: Final = 16_384
"""Bytes of an outgoing queue and its transfer, as measured."""
IDENTIFIER_BYTES: Final = 384
"""Bytes of an entry of MessageIDHistoryTable, as measured."""
CHARACTER_BYTES: Final = 12
"""Bytes of a character of a name, which is held several times: at most four each."""
_TEXT_BYTES: Final = 4
"""The most bytes of a character of an envelope."""
ELEMENT_BYTES: Final = 160
"""Bytes of a name in a multiple-element format name beside its characters, as measured."""


class MemoryPool:
    """Counts the memory in use, and decides whether more may be used.

    Origins are those of `origin_of`; an empty one is this computer, which has no separate limit.

    Attributes:
        limit: bytes for all kinds together.
        used: bytes by kind.
        known: the origins of places that the administrator or an application of this computer has named; they
            have no separate limit either.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used: dict[Kind, int] = dict.fromkeys(Kind, 0)
        self.known: set[str] = set()
        self._shares = {kind: limit * _SIXTEENTHS[kind] // 16 for kind in Kind}
        self._by_origin: dict[Kind, dict[str, int]] = {kind: {} for kind in Kind}

    def share(self, kind: Kind) -> int:
        """Return the bytes available for a kind."""
        return self._shares[kind]

    def used_by(self, kind: Kind, origin: str) -> int:
        """Return the bytes of a kind in use for an origin."""
        return self._by_origin[kind].get(origin, 0)

    def fits(self, kind: Kind, origin: str, size: int) -> bool:
        """Return whether `size` more bytes may be kept for an origin."""
        share, used = self._shares[kind], self.used[kind] + size
        if not origin or origin in self.known:
            return used <= share
        own = self.used_by(kind, origin) + size
        reserve = share // _RESERVE
        if own <= share // _LITTLE:
            reserve //= 2
        return own <= share // _ORIGINS and used <= share - reserve

    def crowding(self, kind: Kind, origin: str, size: int) -> str:
        """Return the origin that has to make room, if `size` more bytes do not fit for `origin`."""
        own = self.used_by(kind, origin) + size
        if origin not in self.known and own > self.share(kind) // _ORIGINS:
            return origin
        by_origin = self._by_origin[kind]
        return max(by_origin, key=by_origin.__getitem__, default=origin)

    def take(self, kind: Kind, origin: str, size: int) -> None:
        """Count bytes kept for an origin."""
        self.used[kind] += size
        by_origin = self._by_origin[kind]
        by_origin[origin] = by_origin.get(origin, 0) + size

    def give_back(self, kind: Kind, origin: str, size: int) -> None:
        """Count bytes as free again."""
        self.used[kind] -= size
        by_origin = self._by_origin[kind]
        left = by_origin[origin] - size
        if left:
            by_origin[origin] = left
        else:
            del by_origin[origin]


def express_bytes(message: Message) -> int:
    """Return the bytes of memory of an express message beside those of its packet."""
    size = EXPRESS_BYTES
    if message.soap_envelope:
        texts = len(message.soap_envelope) + len(message.soap_header) + len(message.soap_body)
        size += _TEXT_BYTES * texts + len(message.soap_compound_message)
    if not (message.destinations or message.administrations or message.responses):
        return size
    names = chain(message.destinations, message.administrations, message.responses)
    return size + sum(ELEMENT_BYTES + CHARACTER_BYTES * len(name.canonical) for name in names)
