"""The keys in the folder of a queue manager, in a file that only its owner can read."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from msmqwire.constants import CryptographicProvider
from msmqwire.crypto import key_files
from msmqwire.durable import make_private
from msmqwire.errors import InvalidValue, StoreInUse, StoreRefused
from msmqwire.ownership import read_secret, write_secret
from msmqwire.qm.runtime.data_folder import KEYS

_LOCK: Final = "keys.lock"
_LOCK_WAIT_S: Final = 10.0
_VERSION: Final = 1
PROVIDERS: Final[Mapping[str, CryptographicProvider]] = MappingProxyType(
    {
        "aes": CryptographicProvider.AES,
        "enhanced": CryptographicProvider.ENHANCED,
        "base": CryptographicProvider.BASE,
    }
)
"""The cryptographic providers by their short names."""
SHORT_NAMES: Final = MappingProxyType({provider: name for name, provider in PROVIDERS.items()})

PeerKeys = Mapping[CryptographicProvider, bytes]
"""The PUBLICKEYBLOBs of another queue manager."""


class KeyUse(Enum):
    """The use of a key of a queue manager."""

    EXCHANGE = key_files.EXCHANGE
    SIGNATURE = "signature"


@dataclass(frozen=True, slots=True)
class OwnKey:
    """A key of the queue manager. Its repr does not show it.

    Attributes:
        provider: its provider.
        use: its use.
        created: seconds since 1970-01-01 UTC.
        private_key: PEM.
    """

    provider: CryptographicProvider
    use: KeyUse
    created: int
    private_key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class OwnCertificate:
    """An internal certificate of a user, with its key. Its repr does not show the key.

    Attributes:
        sid: the user for whom it is registered, as text.
        certificate: DER.
        private_key: PEM.
    """

    sid: str
    certificate: bytes = field(repr=False)
    private_key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The keys and certificates that a folder keeps.

    Attributes:
        keys: the keys of the queue manager, the newest first.
        certificates: the certificates made here, the newest first. peers: the public keys of other queue
            managers, by their identifiers.
        revoked: MD5 digests of revoked certificates.
    """

    keys: tuple[OwnKey, ...] = ()
    certificates: tuple[OwnCertificate, ...] = ()
    peers: Mapping[UUID, PeerKeys] = field(default_factory=dict)
    revoked: frozenset[bytes] = frozenset()

    def with_keys(self, keys: Sequence[OwnKey]) -> KeyRing:
        """Return a ring with these keys of the queue manager, which are the newest."""
        return replace(self, keys=(*keys, *self.keys))

    def with_certificate(self, certificate: OwnCertificate) -> KeyRing:
        """Return a ring with this certificate, the newest."""
        return replace(self, certificates=(certificate, *self.certificates))

    def with_peer(self, identifier: UUID, keys: PeerKeys) -> KeyRing:
        """Return a ring with these keys of another queue manager, which replace its former ones."""
        return replace(self, peers={**self.peers, identifier: keys})

    def with_revoked(self, digest: bytes) -> KeyRing:
        """Return a ring in which a certificate is revoked."""
        return replace(self, revoked=self.revoked | {digest})


class KeyFile:
    """The file with the keys of a folder, `KEYS`."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.path = folder, folder / KEYS

    def read(self) -> KeyRing:
        """Return the content of the file, nothing if it is missing.

        Raises InvalidValue for invalid content or a file that other users can access, and StoreRefused if it
        can't be read. No error shows a key.
        """
        try:
            content = read_secret(self.path, key_files.KEYS_SIZE_MAX, KEYS, follow=False)
        except FileNotFoundError:
            return KeyRing()
        except OSError as exc:
            raise StoreRefused(exc.strerror or str(exc), file=str(self.path)) from None
        try:
            return _from_json(json.loads(content))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InvalidValue(f"{self.path} is not a file of keys of this version", path=KEYS) from None

    def change(self, changed: Callable[[KeyRing], KeyRing]) -> KeyRing:
        """Replace the content of the file by a function's result, and return it.

        Raises as `read` and `exclusively` do.
        """
        with self.exclusively():
            ring = changed(self.read())
            try:
                write_secret(self.path, json.dumps(_to_json(ring), indent=1).encode())
            except OSError as exc:
                raise StoreRefused(exc.strerror or str(exc), file=str(self.path)) from None
            return ring

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Keep other processes from changing keys or users of the folder while the block runs.

        Raises StoreInUse if another process takes long, and StoreRefused.
        """
        path = self._folder / _LOCK
        try:
            make_private(path)
            with closing(sqlite3.connect(path, timeout=_LOCK_WAIT_S, isolation_level=None)) as lock:
                lock.execute("BEGIN EXCLUSIVE")  # as the lock of a store: it ends with the process
                yield
        except sqlite3.Error as exc:
            if getattr(exc, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                raise StoreInUse("another process changes its keys; try again", file=str(path)) from None
            raise StoreRefused(str(exc), file=str(path)) from None
        except OSError as exc:
            raise StoreRefused(exc.strerror or str(exc), file=str(path)) from None


def _to_json(ring: KeyRing) -> dict[str, Any]:
    return {
        "version": _VERSION,
        "keys": [
            {
                "provider": SHORT_NAMES[key.provider],
                "use": key.use.value,
                "created": key.created,
                "private_key": key.private_key.decode(),
            }
            for key in ring.keys
        ],
        "certificates": [
            {"sid": own.sid, "certificate": own.certificate.hex(), "private_key": own.private_key.decode()}
            for own in ring.certificates
        ],
        "peers": {
            str(identifier): {SHORT_NAMES[provider]: blob.hex() for provider, blob in keys.items()}
            for identifier, keys in ring.peers.items()
        },
        "revoked": sorted(digest.hex() for digest in ring.revoked),
    }


def _from_json(content: Any) -> KeyRing:
    """Raises ValueError, KeyError, TypeError and AttributeError for anything not written by `_to_json`."""
    if content["version"] != _VERSION:
        raise ValueError("another version")
    return KeyRing(
        keys=tuple(
            OwnKey(
                PROVIDERS[key["provider"]],
                KeyUse(key["use"]),
                int(key["created"]),
                key["private_key"].encode(),
            )
            for key in content["keys"]
        ),
        certificates=tuple(
            OwnCertificate(str(own["sid"]), bytes.fromhex(own["certificate"]), own["private_key"].encode())
            for own in content["certificates"]
        ),
        peers={
            UUID(identifier): {PROVIDERS[name]: bytes.fromhex(blob) for name, blob in keys.items()}
            for identifier, keys in content["peers"].items()
        },
        revoked=frozenset(map(bytes.fromhex, content["revoked"])),
    )
