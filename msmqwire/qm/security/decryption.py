"""Encrypted bodies of received messages: [MS-MQQB] 3.1.5.8.3."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from msmqwire.constants import CIPHERS_OF_LEVEL, PROVIDER_OF_LEVEL, CryptographicProvider, EncryptionAlgorithm
from msmqwire.errors import DecryptionFailed
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.rules.expiring_cache import ExpiringCache
from msmqwire.qm.security import legacy
from msmqwire.qm.security.configuration import SecurityConfiguration
from msmqwire.qm.security.session_keys import CachedSymmetricKey
from msmqwire.qm.security.work_limits import WorkLimits, bytes_ms, private_ms

_REDUCED: Final = 11
"""Zero bytes at the end of a key of the Enhanced provider that has 40 bits: MQQB-3.1.5.8.3-23."""

_FAILURE_MS: Final = 20.0
"""The price of a failure beside its work: an attacker who distinguishes failures needs many for each byte."""

_Found = tuple[CryptographicProvider, int, UUID, bytes]
"""The attributes that identify a key: MQQB-3.1.5.8.3-18."""


class Decryption:
    """Decrypts bodies.

    No answer, and no later message, shows a sender whether a key could not be unwrapped or a body had a wrong
    padding: both end in the same place. A key is therefore put into the cache only once it has decrypted a
    body, otherwise the second message with it would be faster than one with a wrong key.
    """

    def __init__(self, context: Context, work: WorkLimits) -> None:
        self._context, self._work = context, work
        settings = context.settings
        self.receive_symmetric_key_cache: ExpiringCache[_Found, CachedSymmetricKey] = ExpiringCache(
            context,
            # MQQB-3.1.3.1-06, MQQB-3.1.2.10-01
            Timer.RECEIVE_SYMMETRIC_KEY_CACHE_CLEANUP,  # MQQB-3.1.5.8.3-22
            settings.receive_symmetric_key_cache_size,
            settings.symmetric_key_short_lifetime_ms,
        )

    def decrypted(self, message: Message, configuration: SecurityConfiguration) -> bytes:
        """Return the body of an encrypted message.

        Raises:
            DecryptionFailed: the message is to be refused with NACK_BAD_ENCRYPTION.
            TooMuchWork: it is to be sent again later.
        """
        provider = PROVIDER_OF_LEVEL.get(message.privacy_level)  # MQQB-3.1.5.8.3-15
        algorithm = message.encryption_algorithm
        # MQMQ-2.2.19.3-38 and -39
        if provider is None or algorithm not in CIPHERS_OF_LEVEL[message.privacy_level]:
            raise DecryptionFailed
        if not legacy.is_read(self._context, algorithm):
            raise DecryptionFailed
        self._work.check(message.origin)
        try:
            body = self._decrypted(message, provider, configuration)
        except DecryptionFailed:
            self._work.spend(message.origin, _FAILURE_MS)
            raise
        legacy.warn(self._context, algorithm, f"a message of {message.origin} is encrypted")
        return body

    def _decrypted(
        self, message: Message, provider: CryptographicProvider, configuration: SecurityConfiguration
    ) -> bytes:
        from msmqwire.crypto.ciphers import decrypt

        origin, cost = message.origin, bytes_ms(message.encryption_algorithm, len(message.body))
        source, algorithm = message.source_machine_identifier, message.encryption_algorithm
        found = provider, algorithm, source, message.symmetric_key  # MQQB-3.1.5.8.3-18
        cached = self.receive_symmetric_key_cache.get(found)
        if cached is not None:
            self._check_length(cached)
            self._work.spend(origin, cost)
            return decrypt(cached.symmetric_key, message.body)  # MQQB-3.1.5.8.3-18, MQQB-3.1.5.8.3-25
        for cached in self._unwrapped(message, provider, configuration):
            self._work.spend(origin, cost)
            try:
                body = decrypt(cached.symmetric_key, message.body)  # MQQB-3.1.5.8.3-25
            except DecryptionFailed:
                continue  # MQQB-3.1.5.8.3-26, MQQB-3.1.5.8.3-27
            self._check_length(cached)
            # MQQB-3.1.5.8.3-19, MQQB-3.1.5.8.3-20
            self.receive_symmetric_key_cache.add(found, cached, origin)
            return body
        raise DecryptionFailed

    def _unwrapped(
        self, message: Message, provider: CryptographicProvider, configuration: SecurityConfiguration
    ) -> list[CachedSymmetricKey]:
        """Return the session key as the keys of a provider unwrap it.

        All of them are tried, so that the time does not reveal which one is right, if any.
        """
        from msmqwire.crypto.keys import unwrap

        keys = configuration.exchange_keys.get(provider, ())
        self._work.spend(message.origin, sum(map(private_ms, keys)))
        algorithm, blob = message.encryption_algorithm, message.symmetric_key
        return [
            CachedSymmetricKey(
                message.source_machine_identifier,  # MQQB-3.1.1.3.3-01
                provider,  # MQQB-3.1.1.3.3-02
                algorithm,  # MQQB-3.1.1.3.3-03
                blob,  # MQQB-3.1.1.3.3-04
                # MQQB-3.1.5.8.3-19
                unwrap(blob, key, configuration.readings, algorithm, provider),  # MQQB-3.1.1.3.3-05
            )
            for key in keys
        ]

    def _check_length(self, cached: CachedSymmetricKey) -> None:
        """Raise DecryptionFailed for a reduced key if such keys are rejected: MQQB-3.1.5.8.3-23."""
        if (
            self._context.settings.reject_enhanced_rc2_using_40_bit_keys  # MQQB-3.1.1.3-11
            and cached.crypto_service_provider is CryptographicProvider.ENHANCED
            and cached.crypto_algorithm == EncryptionAlgorithm.CALG_RC2  # MQQB-3.1.5.8.3-24
            and cached.symmetric_key.key.endswith(bytes(_REDUCED))
        ):
            raise DecryptionFailed
