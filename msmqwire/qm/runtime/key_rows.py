"""The keys of a queue manager as rows, for people and programs; no private key is in them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msmqwire.qm.runtime.folder_security import private_key_of
from msmqwire.qm.runtime.key_ring import SHORT_NAMES, KeyRing, KeyUse, OwnKey
from msmqwire.qm.runtime.peer_keys import public_keys


def time_text(seconds: int) -> str:
    """Return a time, seconds since 1970-01-01 UTC, as ISO 8601."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def key_row(own: OwnKey, *, current: bool) -> dict[str, Any]:
    """Return a key of the queue manager; `current` says whether it is the newest of its use."""
    return {
        "provider": SHORT_NAMES[own.provider],
        "use": own.use.value,
        "bits": private_key_of(own.private_key).key_size,
        "created": time_text(own.created),
        "current": current,
        "peer": None,
    }


def key_rows(ring: KeyRing) -> list[dict[str, Any]]:
    """Return the keys of the queue manager, the newest first, then those of others."""
    rows, seen = [], set()
    for own in ring.keys:
        rows.append(key_row(own, current=(own.provider, own.use) not in seen))
        seen.add((own.provider, own.use))
    for identifier, keys in ring.peers.items():
        for provider, key in public_keys(keys).items():
            rows.append(
                {
                    "provider": SHORT_NAMES[provider],
                    "use": KeyUse.EXCHANGE.value,
                    "bits": key.key_size,
                    "created": None,
                    "current": True,
                    "peer": str(identifier),
                }
            )
    return rows
