"""New RSA keys, kept in the folder of a queue manager."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from msmqwire.constants import CryptographicProvider
from msmqwire.errors import InvalidValue
from msmqwire.qm.runtime.key_ring import KeyUse, OwnKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

BITS: Final = 2048
"""The length of a new key by default."""
BITS_MIN, BITS_MAX = 1024, 16_384
_EXPONENT: Final = 65_537  # DMPR-5.1-02


def new_key(bits: int) -> RSAPrivateKey:
    """Return a new key. Raises InvalidValue for an unsupported length."""
    from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

    if not BITS_MIN <= bits <= BITS_MAX:
        raise InvalidValue(f"{bits} is not {BITS_MIN} to {BITS_MAX}", path="bits")
    return generate_private_key(_EXPONENT, bits)  # DMPR-5.1-02


def pem_of(key: RSAPrivateKey) -> bytes:
    """Return a key as PEM, not encrypted."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def own_keys(
    key: RSAPrivateKey, use: KeyUse, providers: Iterable[CryptographicProvider], now: int
) -> list[OwnKey]:
    """Return a key as the queue manager's, for these providers."""
    pem = pem_of(key)
    return [OwnKey(provider, use, now, pem) for provider in providers]
