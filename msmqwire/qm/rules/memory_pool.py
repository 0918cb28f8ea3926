"""Memory for everything that peers can make the queue manager keep, in shares by kind and by origin."""

from __future__ import annotations

from enum import Enum
from itertools import chain
from typing import Final

from msmqwire.qm.model.message import Message
from msmqwire.service.origin_shares import OriginShares


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

    Each kind has shares of its own: see `OriginShares`.

    Attributes:
        limit: bytes for all kinds together.
        known: the origins of places that the administrator or an application of this computer has named.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.known: set[str] = set()
        self._kinds = {kind: OriginShares(limit * _SIXTEENTHS[kind] // 16, self.known) for kind in Kind}

    @property
    def used(self) -> dict[Kind, int]:
        """Bytes in use by kind."""
        return {kind: shares.used for kind, shares in self._kinds.items()}

    def share(self, kind: Kind) -> int:
        """Return the bytes available for a kind."""
        return self._kinds[kind].limit

    def used_by(self, kind: Kind, origin: str) -> int:
        """Return the bytes of a kind in use for an origin."""
        return self._kinds[kind].used_by(origin)

    def fits(self, kind: Kind, origin: str, size: int) -> bool:
        """Return whether `size` more bytes may be kept for an origin."""
        return self._kinds[kind].fits(origin, size)

    def crowding(self, kind: Kind, origin: str, size: int) -> str:
        """Return the origin that has to make room, if `size` more bytes do not fit for `origin`."""
        return self._kinds[kind].crowding(origin, size)

    def take(self, kind: Kind, origin: str, size: int) -> None:
        """Count bytes kept for an origin."""
        self._kinds[kind].take(origin, size)

    def give_back(self, kind: Kind, origin: str, size: int) -> None:
        """Count bytes as free again."""
        self._kinds[kind].give_back(origin, size)


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
