"""The message security of a folder: its keys and users, as a queue manager uses them."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from msmqwire.constants import CryptographicProvider
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.errors import InvalidValue
from msmqwire.qm.directory.embedded import EmbeddedDirectory
from msmqwire.qm.runtime.data_folder import KEYS
from msmqwire.qm.runtime.key_ring import KeyFile, KeyRing, KeyUse, PeerKeys
from msmqwire.qm.runtime.peer_keys import public_keys
from msmqwire.qm.runtime.user_certificates import open_users
from msmqwire.qm.security.configuration import SecurityConfiguration

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

    from msmqwire.qm.core import Core


class FolderSecurity:
    """Reads the keys and users of a folder, again when a command has changed them.

    Attributes:
        folder: the folder.
        configuration: the security configuration to open a queue manager with.
    """

    def __init__(self, folder: Path, readings: Readings = DEFAULT) -> None:
        """Read them; `readings` are for the configuration.

        Raises InvalidValue for unusable keys, and the subclasses of StoreError.
        """
        self.folder = folder
        self._file, self._readings = KeyFile(folder), readings
        self._users = open_users(folder)
        try:
            self._ring = self._file.read()
            self.configuration = self._configured(self._ring, self._users)
        except BaseException:
            self.close()
            raise

    def read_again(self) -> None:
        """Read the folder again. Raises as the constructor does; then nothing has changed."""
        ring, users = self._file.read(), self._users or open_users(self.folder)
        if ring != self._ring or users is not self._users:
            self._users = users
            self.configuration, self._ring = self._configured(ring, users), ring

    def use(self, core: Core) -> None:
        """Let a queue manager use the configuration read last."""
        if core.protection.configuration is self.configuration:
            core.protection.forget()  # other users at most
        else:
            core.protection.configure(self.configuration)
            core.changed()

    def keep_peer_keys(self, identifier: UUID, keys: PeerKeys) -> None:
        """Encrypt for another queue manager with these keys once they are in use, and keep them.

        Raises InvalidValue for an invalid key, and the subclasses of StoreError.
        """
        public_keys(keys)
        if self._ring.peers.get(identifier) != keys:
            self._file.change(lambda ring: ring.with_peer(identifier, keys))
            self.read_again()

    def close(self) -> None:
        """Close the directory."""
        if self._users is not None:
            self._users.close()

    def _configured(self, ring: KeyRing, users: EmbeddedDirectory | None) -> SecurityConfiguration:
        """Return a configuration. Raises InvalidValue."""
        return SecurityConfiguration(
            random_bytes=secrets.token_bytes,
            **_keys(ring),
            peer_keys={identifier: public_keys(keys) for identifier, keys in ring.peers.items()},
            revoked=ring.revoked,
            users=users,
            readings=self._readings,
        )


def _keys(ring: KeyRing) -> dict[str, Any]:
    """Return the keys of the queue manager, as `SecurityConfiguration` names them. Raises InvalidValue."""
    loaded: dict[bytes, RSAPrivateKey] = {}
    exchange: dict[CryptographicProvider, list[RSAPrivateKey]] = {}
    signing: dict[CryptographicProvider, RSAPublicKey] = {}
    for own in ring.keys:
        key = loaded.get(own.private_key)
        if key is None:
            key = loaded[own.private_key] = private_key_of(own.private_key)
        if own.use is KeyUse.EXCHANGE:
            exchange.setdefault(own.provider, []).append(key)
        else:
            signing.setdefault(own.provider, key.public_key())
    return {"exchange_keys": exchange, "signing_keys": signing}


def private_key_of(pem: bytes) -> RSAPrivateKey:
    """Return a key of the file with the keys. Raises InvalidValue."""
    from msmqwire.crypto.keys import read_private_key

    try:
        return read_private_key(pem)
    except InvalidValue as exc:
        raise InvalidValue(exc.why, path=KEYS) from None
