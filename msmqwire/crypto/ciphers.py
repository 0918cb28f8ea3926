"""The ciphers of message bodies: [MS-MQMQ] 2.2.19.3.

RC2 and RC4 are broken, with keys of 40 bits above all; they are here to read what old systems send. None of
these ciphers notices a changed body: only a signature does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from msmqwire.constants import CryptographicProvider
from msmqwire.crypto.readings import DEFAULT, Readings

RandomBytes: TypeAlias = Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class SessionKey:
    """A symmetric key of messages. Its repr does not show the key.

    Attributes:
        algorithm: of EncryptionAlgorithm.
        key: the bytes that a SIMPLEBLOB carries.
        effective_bits: that RC2 makes use of ([RFC2268] 2, T1); for the other ciphers the bits of `key`.
        salt: what the cipher's key has behind `key`.
        usable: False for one that was not in its SIMPLEBLOB: `decrypt` works with it and then fails.
    """

    algorithm: int
    key: bytes = field(repr=False)
    effective_bits: int
    salt: bytes = field(default=b"", repr=False)
    usable: bool = field(default=True, repr=False)


def new_session_key(
    algorithm: int,
    bits: int,
    random: RandomBytes,
    readings: Readings = DEFAULT,
    provider: CryptographicProvider | None = None,
) -> SessionKey:
    """Return a new key for messages, [MS-MQQB] 3.1.7.1.5.

    Args:
        algorithm: of EncryptionAlgorithm.
        bits: 128, 192 or 256 as the AES algorithm has it, 40 or 128 for RC2 and RC4.
        random: returns so many random bytes.
        readings: whether a key of 40 bits of the Base provider is salted.
        provider: for which the key is. With the Enhanced one RC2 keys of 40 bits get 88 zero bits more
            (MQQB-3.1.7.1.5-15). None is the one that the algorithm and the bits call for.

    Raises UnsupportedAlgorithm for an unknown algorithm, InvalidValue for bits that it does not have.
    """
    raise NotImplementedError


def encrypt(session_key: SessionKey, data: bytes) -> bytes:
    """Return bytes encrypted: RC2 and AES in CBC mode with a zero vector and PKCS #5 padding, RC4 as it is.

    RC2 and RC4 are broken. Raises UnsupportedAlgorithm, InvalidValue for a key that does not fit.
    """
    raise NotImplementedError


def decrypt(session_key: SessionKey, data: bytes) -> bytes:
    """Return what `encrypt` encrypted.

    Raises DecryptionFailed, which is the same for a key that could not be unwrapped, bytes that are no whole
    blocks and a wrong padding, after the same work.
    """
    raise NotImplementedError
