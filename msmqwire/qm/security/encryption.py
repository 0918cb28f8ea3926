"""Bodies encrypted for their destination: [MS-MQQB] 3.1.7.1.5."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from uuid import UUID

from msmqwire.constants import (
    CIPHERS_OF_LEVEL,
    PROVIDER_OF_LEVEL,
    CryptographicProvider,
    EncryptionAlgorithm,
    HResult,
)
from msmqwire.errors import InvalidValue, QueueError
from msmqwire.headers.base import PACKET_SIZE_MAX
from msmqwire.names import PrivateName, PublicName
from msmqwire.qm.directory.attributes import Operator
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import QueueManager
from msmqwire.qm.model.enumerations import SenderIdentifierType
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.rules.directory_events import DirectoryEvents
from msmqwire.qm.rules.expiring_cache import ExpiringCache
from msmqwire.qm.rules.message_to_packet import packet_size
from msmqwire.qm.security import legacy
from msmqwire.qm.security.configuration import SecurityConfiguration
from msmqwire.qm.security.published_keys import PROVIDER_TYPES, keys_of
from msmqwire.qm.security.session_keys import CachedSymmetricKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    from msmqwire.crypto.ciphers import SessionKey

RemoteKeys = Mapping[CryptographicProvider, "RSAPublicKey"]
"""RemoteQMPublicKey: the public keys of a queue manager by provider."""

_LEVELS: Final = {provider: level for level, provider in PROVIDER_OF_LEVEL.items()}
_BITS: Final = {
    EncryptionAlgorithm.CALG_AES_256: 256,
    EncryptionAlgorithm.CALG_AES_128: 128,
    EncryptionAlgorithm.CALG_AES_192: 192,
}
_ENHANCED_BITS: Final = 128
_REDUCED_BITS: Final = 40

_Found = tuple[CryptographicProvider, int, UUID]
"""The attributes that identify a key: MQQB-3.1.7.1.5-13."""


def not_for_direct_names() -> QueueError:
    """Return the refusal of a name that does not identify the key to encrypt with: MQQB-3.1.7.1.5-02."""
    return QueueError(
        "a body is encrypted for queues with a PRIVATE= or PUBLIC= name only",
        HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION,
    )


class Encryption:
    """Encrypts bodies.

    Attributes:
        send_symmetric_key_cache: session keys of the AES and the Enhanced provider.
        send_base_symmetric_key_cache: session keys of the Base provider.
    """

    def __init__(self, context: Context, directory: DirectoryEvents) -> None:
        self._context, self._directory = context, directory
        settings = context.settings
        size, short = settings.send_symmetric_key_cache_size, settings.symmetric_key_short_lifetime_ms
        # The keys of the Base provider never live long: notes 63, 64 and 69 of [MS-MQQB].
        # MQQB-3.1.1.3-06
        lifetime = settings.symmetric_key_long_lifetime_ms if settings.long_lived_keys else short
        self.send_symmetric_key_cache: ExpiringCache[_Found, CachedSymmetricKey] = ExpiringCache(
            context,
            # MQQB-3.1.3.1-08, MQQB-3.1.2.11-01
            Timer.SEND_SYMMETRIC_KEY_CACHE_CLEANUP,
            size,
            lifetime,
        )
        self.send_base_symmetric_key_cache: ExpiringCache[_Found, CachedSymmetricKey] = ExpiringCache(
            context,
            # MQQB-3.1.3.1-08, MQQB-3.1.2.12-01
            Timer.SEND_BASE_SYMMETRIC_KEY_CACHE_CLEANUP,
            size,
            short,
        )

    def encrypted(
        self,
        message: Message,
        destination: UUID | None,
        remote: dict[UUID, RemoteKeys],
        configuration: SecurityConfiguration,
    ) -> Message:
        """Return a copy of a message with its body encrypted, for a session.

        Args:
            message: a message of this queue manager with a PrivacyLevel.
            destination: the queue manager of its queue, who decrypts it, even if another one is the next hop.
            remote: RemoteQMPublicKey of the session, by queue manager; completed here.
            configuration: the configuration of this queue manager.

        Raises QueueError with the reason if it can't be encrypted: 3.1.7.1.5.1.
        """
        from msmqwire.crypto.ciphers import encrypt

        # MQQB-5.1-02
        if not isinstance(message.destination, PrivateName | PublicName) or destination is None:
            raise not_for_direct_names()
        key = self._key_for(message, destination, remote, configuration)
        try:
            body = encrypt(key.symmetric_key, message.body)
        except InvalidValue as exc:
            raise QueueError(str(exc), HResult.MQ_ERROR_CORRUPTED_SECURITY_DATA) from None
        legacy.warn(self._context, key.crypto_algorithm, f"a message is encrypted for {destination}")
        changed: dict[str, object] = {
            "body": body,  # MQQB-3.1.7.1.5-19
            "encrypted": True,
            "privacy_level": _LEVELS[key.crypto_service_provider],  # MQQB-3.1.7.1.5-20
            "encryption_algorithm": key.crypto_algorithm,
            "symmetric_key": key.encrypted_symmetric_key,
        }
        if not (message.signature or message.multiple_destination_signature):
            # MQQB-3.1.7.1.5-21. Beside a signature ProviderInfo would name who made that: MQMQ-2.2.20.6-09.
            changed["authentication_provider_name"] = str(key.crypto_service_provider)
            changed["authentication_provider_type"] = PROVIDER_TYPES[key.crypto_service_provider]
        if not message.sender_identifier:
            changed["sender_identifier_type"] = SenderIdentifierType.NONE  # MQMQ-2.2.20.6-03 and -04
        encrypted = message.copy(**changed)
        if packet_size(encrypted) > PACKET_SIZE_MAX:
            raise QueueError(
                "encrypted it is too large for a packet", HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
            )
        return encrypted

    def _key_for(
        self,
        message: Message,
        destination: UUID,
        remote: dict[UUID, RemoteKeys],
        configuration: SecurityConfiguration,
    ) -> CachedSymmetricKey:
        if destination in remote:  # MQQB-3.1.3.2-16
            with suppress(QueueError):
                provider, algorithm = self._choice(message, remote[destination])
                cached = self._cache_of(provider).get((provider, algorithm, destination))
                if cached is not None:
                    return cached
        # Not only once in a session: they may have changed since its last key was made, or may not have been
        # suitable.
        keys = self._keys_of(destination, configuration)
        remote[destination] = keys  # MQQB-3.1.1.3.1-04
        provider, algorithm = self._choice(message, keys)
        cache = self._cache_of(provider)
        cached = cache.get((provider, algorithm, destination))
        if cached is None:  # MQQB-3.1.7.1.5-13
            cached = self._new_key(destination, provider, algorithm, keys[provider], configuration)
            cache.add((provider, algorithm, destination), cached)  # MQQB-3.1.7.1.5-16
        return cached

    def _cache_of(self, provider: CryptographicProvider) -> ExpiringCache[_Found, CachedSymmetricKey]:
        if provider is CryptographicProvider.BASE:
            return self.send_base_symmetric_key_cache
        return self.send_symmetric_key_cache

    def _keys_of(self, destination: UUID, configuration: SecurityConfiguration) -> RemoteKeys:
        """Read the public keys of a queue manager: MQQB-3.1.7.1.5-03. Raises QueueError."""
        if (configured := configuration.peer_keys.get(destination)) is not None:
            return configured
        read = self._directory.read_directory(
            "QueueManager", [("Identifier", Operator.EQUALS, destination)], ["PublicEncryptionKeyList"]
        )
        keys = (
            keys_of(read.object.public_encryption_key_list) if isinstance(read.object, QueueManager) else {}
        )
        if not keys:  # MQQB-3.1.7.1.5-04 and -11
            raise QueueError(
                f"no public key of the queue manager {destination} is known",
                HResult.MQ_ERROR_PUBLIC_KEY_NOT_FOUND,
            )
        return keys

    def _choice(self, message: Message, keys: RemoteKeys) -> tuple[CryptographicProvider, int]:
        """Choose provider and cipher: [MS-MQQB] 3.1.7.1.5.

        A cipher that the message asks for, that its PrivacyLevel has and that is not switched off takes
        precedence, as with Windows NT to Server 2003 (note 66), otherwise the best provider with a key.

        Raises QueueError.
        """
        settings, level = self._context.settings, message.privacy_level
        asked = PROVIDER_OF_LEVEL.get(level)
        if asked is None:
            raise QueueError(f"there is no PrivacyLevel {level}", HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE)
        algorithm = message.encryption_algorithm
        if (
            asked in keys  # MQQB-3.1.7.1.5-12
            and algorithm in CIPHERS_OF_LEVEL[level]
            and legacy.is_sent(self._context, algorithm)
        ):
            return asked, algorithm
        if CryptographicProvider.AES in keys:  # MQQB-3.1.7.1.5-06
            # MQQB-3.1.1.3-07
            return CryptographicProvider.AES, settings.preferred_advanced_algorithm.algorithm
        # MQQB-3.1.1.3-08, MQQB-3.1.7.1.5-08
        provider, preferred = CryptographicProvider.ENHANCED, settings.preferred_enhanced_algorithm
        if asked is CryptographicProvider.BASE and provider not in keys:
            # MQQB-3.1.1.3-09, MQQB-3.1.7.1.5-10
            provider, preferred = CryptographicProvider.BASE, settings.preferred_base_algorithm
        if asked is CryptographicProvider.AES or provider not in keys:  # MQQB-3.1.7.1.5-07, -09 and -11
            wanted = asked if asked is CryptographicProvider.AES else provider
            raise QueueError(
                f"its destination has no key of the {wanted}",
                HResult.MQ_ERROR_COMPUTER_DOES_NOT_SUPPORT_ENCRYPTION,
            )
        if not legacy.is_sent(self._context, preferred.algorithm):
            raise QueueError(
                f"its destination only has a key for {preferred.value}, which is broken and switched off "
                f"(send_{preferred.value})",
                HResult.MQ_ERROR_ENCRYPTION_PROVIDER_NOT_SUPPORTED,
            )
        return provider, preferred.algorithm

    def _new_key(
        self,
        destination: UUID,
        provider: CryptographicProvider,
        algorithm: int,
        public_key: RSAPublicKey,
        configuration: SecurityConfiguration,
    ) -> CachedSymmetricKey:
        """Make a session key: MQQB-3.1.7.1.5-14. Raises QueueError."""
        from msmqwire.crypto.keys import wrap

        try:
            key = self._session_key(provider, algorithm, configuration)
            blob = wrap(key, public_key)
        except InvalidValue as exc:
            raise QueueError(str(exc), HResult.MQ_ERROR_CORRUPTED_SECURITY_DATA) from None
        return CachedSymmetricKey(destination, provider, algorithm, blob, key)  # MQQB-3.1.1.3.3-01

    def _session_key(
        self, provider: CryptographicProvider, algorithm: int, configuration: SecurityConfiguration
    ) -> SessionKey:
        from msmqwire.crypto.ciphers import new_session_key

        if configuration.random_bytes is None:
            raise InvalidValue("there is no source of random numbers", path="random_bytes")
        bits = _BITS.get(algorithm, _ENHANCED_BITS)  # type: ignore[call-overload]
        rc2 = algorithm == EncryptionAlgorithm.CALG_RC2
        reduced = rc2 and self._context.settings.send_enhanced_rc2_using_40_bit_keys  # MQQB-3.1.1.3-10
        if provider is CryptographicProvider.BASE or (provider is CryptographicProvider.ENHANCED and reduced):
            bits = _REDUCED_BITS
        return new_session_key(algorithm, bits, configuration.random_bytes, configuration.readings, provider)
