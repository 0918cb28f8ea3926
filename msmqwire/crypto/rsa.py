"""The kinds of RSA keys for messages."""

from __future__ import annotations

from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

KEY_SIZE_MIN: Final = 384
"""Bits. Keys of the Base provider have 512, which is broken: MQQB-3.1.7.1.5-05."""
KEY_SIZE_MAX: Final = 16384
"""Bits; CryptoAPI makes none longer. One check takes a few milliseconds then."""
EXPONENT_MAX: Final = 0xFFFFFFFF  # MQMQ-2.2.20.6-32


def unusable(key: Any) -> str:
    """Return why a public or private key can't be one of messages; empty if it can."""
    if not isinstance(key, RSAPublicKey | RSAPrivateKey):
        return "the key is not RSA"
    if not KEY_SIZE_MIN <= key.key_size <= KEY_SIZE_MAX:
        return f"a key of {key.key_size} bits, not {KEY_SIZE_MIN} to {KEY_SIZE_MAX}"
    if public_part(key).public_numbers().e > EXPONENT_MAX:
        return "a public exponent of more than 32 bits"
    return ""


def public_part(key: RSAPublicKey | RSAPrivateKey) -> RSAPublicKey:
    """Return the key itself if it is public, else the public one that belongs to it."""
    return key.public_key() if isinstance(key, RSAPrivateKey) else key
