"""Idempotency keys: requests of clients that are carried out once, however often they are repeated."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from struct import Struct
from typing import Final, NamedTuple

from msmqwire.qm.model.context import Context
from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules.recovery import Stored

KEPT_S: Final = 24 * 3600
"""Seconds that a key is kept."""
KEYS_MAX: Final = 100_000
"""Limit of the keys of one owner; beyond it the oldest one is forgotten."""
_HASH_BYTES: Final = 16
_ROW: Final = Struct("<Q32s")
_LOOK_S: Final = 60


class KeptAnswer(NamedTuple):
    """What is kept of a request that was carried out.

    Attributes:
        digest: the digest of the request, 32 bytes.
        answer: its answer.
    """

    digest: bytes
    answer: bytes


class _Entry(NamedTuple):
    kept_at: int  # seconds since 1970-01-01 UTC
    kept: KeptAnswer | None  # None for one that is in the store


class IdempotencyKeys:
    """The keys of all owners, and the answers to their requests.

    A key is put in the changes of its request, so that both or neither are durable. One for a request that
    changes nothing durable, as for express messages, is kept in memory: it ends as they do.
    """

    def __init__(self, context: Context, stored: Stored) -> None:
        self._context, self._stored = context, stored
        self._owners: dict[bytes, dict[bytes, _Entry]] = {}  # by hashes of owner and key, the oldest first
        self._looked = 0

    def restore(self) -> None:
        """Restore the keys of the store."""
        found = []
        for key, row in self._stored.rows(Table.IDEMPOTENCY):
            if isinstance(key, bytes) and len(key) == 2 * _HASH_BYTES and len(row) >= _ROW.size:
                found.append((_ROW.unpack_from(row)[0], key))
        for kept_at, key in sorted(found):
            keys = self._owners.setdefault(key[:_HASH_BYTES], {})
            keys[key[_HASH_BYTES:]] = _Entry(kept_at, None)
        self._forget_old()

    def find(self, owner: str, key: str) -> KeptAnswer | None:
        """Return what is kept of the request of an owner with a key.

        Changes made with the key must be durable.
        """
        owner_hash, key_hash = _hash(owner), _hash(key)
        entry = self._owners.get(owner_hash, {}).get(key_hash)
        if entry is None or self._is_old(entry):
            return None
        if entry.kept is not None:
            return entry.kept
        row = self._stored.row(Table.IDEMPOTENCY, owner_hash + key_hash)
        if row is None:
            return None
        return KeptAnswer(_ROW.unpack_from(row)[1], row[_ROW.size :])

    def put(self, owner: str, key: str, kept: KeptAnswer, *, durable: bool) -> None:
        """Keep the answer to a request of an owner with a key, durably or until the end of the process."""
        owner_hash, key_hash = _hash(owner), _hash(key)
        self._forget_old()
        keys = self._owners.setdefault(owner_hash, {})
        before = keys.pop(key_hash, None)
        if before is not None and before.kept is None and not durable:
            self._context.changes.delete(Table.IDEMPOTENCY, owner_hash + key_hash)
        now = self._context.utc
        keys[key_hash] = _Entry(now, None if durable else kept)
        if durable:
            row = _ROW.pack(now, kept.digest) + kept.answer
            self._context.changes.put(Table.IDEMPOTENCY, owner_hash + key_hash, row)
        if len(keys) > KEYS_MAX:
            self._forget(owner_hash, next(iter(keys)))

    def forget(self, owner: str, key: str) -> None:
        """Forget a key, if it is kept."""
        owner_hash, key_hash = _hash(owner), _hash(key)
        if key_hash in self._owners.get(owner_hash, ()):
            self._forget(owner_hash, key_hash)

    def forget_owner(self, owner: str) -> None:
        """Forget all keys of an owner, which does not exist any more."""
        owner_hash = _hash(owner)
        for key_hash in list(self._owners.get(owner_hash, ())):
            self._forget(owner_hash, key_hash)

    def __len__(self) -> int:
        return sum(map(len, self._owners.values()))

    def _forget_old(self) -> None:
        """Forget the keys whose time is over, now and then."""
        if abs(self._context.utc - self._looked) < _LOOK_S:
            return
        self._looked = self._context.utc
        for owner_hash, key_hash in list(self._old()):
            self._forget(owner_hash, key_hash)

    def _old(self) -> Iterator[tuple[bytes, bytes]]:
        for owner_hash, keys in self._owners.items():
            for key_hash, entry in keys.items():
                if not self._is_old(entry):
                    break
                yield owner_hash, key_hash

    def _is_old(self, entry: _Entry) -> bool:
        return self._context.utc - entry.kept_at >= KEPT_S

    def _forget(self, owner_hash: bytes, key_hash: bytes) -> None:
        keys = self._owners[owner_hash]
        if keys.pop(key_hash).kept is None:
            self._context.changes.delete(Table.IDEMPOTENCY, owner_hash + key_hash)
        if not keys:
            del self._owners[owner_hash]


def _hash(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES).digest()
