"""Keys of a table by the origin of their entries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class OriginKeys(Generic[K]):
    """The keys of a table by origin, the least recently used entries first.

    An origin that makes a table grow can so lose its own entries, while other origins keep theirs.
    """

    def __init__(self) -> None:
        self._keys: dict[str, OrderedDict[K, None]] = {}

    def of(self, origin: str) -> Collection[K]:
        """Return the keys of an origin."""
        return self._keys.get(origin, ())

    def add(self, origin: str, key: K) -> None:
        """Add the key of an entry on its use."""
        self._keys.setdefault(origin, OrderedDict())[key] = None

    def touch(self, origin: str, key: K) -> None:
        """Move the key of an entry after all other keys, on its use."""
        self._keys[origin].move_to_end(key)

    def remove(self, origin: str, key: K) -> None:
        """Remove the key of an entry that is gone."""
        keys = self._keys[origin]
        del keys[key]
        if not keys:
            del self._keys[origin]
