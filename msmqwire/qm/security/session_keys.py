"""The symmetric keys of messages that the queue manager has in its caches: [MS-MQQB] 3.1.1.3.3."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from msmqwire.constants import CryptographicProvider

if TYPE_CHECKING:
    from msmqwire.crypto.ciphers import SessionKey


@dataclass(frozen=True, slots=True)
class CachedSymmetricKey:
    """A session key made by a peer, or made here for a peer: [MS-MQQB] 3.1.1.3.3.

    The cache knows its CachedTime.

    Attributes:
        remote_qm_guid: RemoteQMGuid; for a key made here, the queue manager that can decrypt with it, even if
            another one is the next hop.
        crypto_service_provider: CryptoServiceProvider.
        crypto_algorithm: CryptoAlgorithm.
        encrypted_symmetric_key: EncryptedSymmetricKey, a SIMPLEBLOB.
        symmetric_key: SymmetricKey.
    """

    remote_qm_guid: UUID
    crypto_service_provider: CryptographicProvider
    crypto_algorithm: int
    encrypted_symmetric_key: bytes = field(repr=False)
    symmetric_key: SessionKey = field(repr=False)
