"""RSA keys as blobs and files, and session keys that they wrap: [MS-MQQB] 2.4, [MS-MQMQ] 2.2.20.6."""

from __future__ import annotations

from typing import Final

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

from msmqwire.constants import CryptographicProvider, KeyAlgorithm
from msmqwire.crypto.ciphers import SessionKey
from msmqwire.crypto.readings import Readings

KEY_SIZE_MIN: Final = 384
"""Bits. Keys of the Base provider have 512, which is broken: MQQB-3.1.7.1.5-05."""
KEY_SIZE_MAX: Final = 16384
"""Bits; CryptoAPI makes none longer. One check takes a few milliseconds then."""


def public_key_of(blob: bytes) -> RSAPublicKey:
    """Return the key of a PUBLICKEYBLOB. Raises MalformedPacket.

    Keys of less than 2048 bits are broken or weak, and read all the same.
    """
    raise NotImplementedError


def public_key_blob(
    key: RSAPublicKey | RSAPrivateKey, kind: KeyAlgorithm = KeyAlgorithm.CALG_RSA_KEYX
) -> bytes:
    """Return the PUBLICKEYBLOB of a key for encryption, or for signatures: MQMQ-2.2.20.6-30 and -31.

    Raises InvalidValue for a key whose size or exponent the blob can't hold.
    """
    raise NotImplementedError


def read_public_key(content: bytes) -> RSAPublicKey:
    """Return the public key in the content of a file.

    That is a PUBLICKEYBLOB, as it is or in hexadecimal, a certificate, a public or a private key, in PEM or DER.
    Raises InvalidValue.
    """
    raise NotImplementedError


def read_private_key(content: bytes) -> RSAPrivateKey:
    """Return the private key in the content of a file, in PEM or DER, without a password. Raises InvalidValue."""
    raise NotImplementedError


def wrap(session_key: SessionKey, public_key: RSAPublicKey) -> bytes:
    """Return the SIMPLEBLOB of a session key for the owner of a public key: [MS-MQQB] 2.4.2.

    Raises InvalidValue for a session key that does not fit into the RSA key.
    """
    raise NotImplementedError


def unwrap(
    blob: bytes,
    private_key: RSAPrivateKey,
    readings: Readings,
    algorithm: int,
    provider: CryptographicProvider,
) -> SessionKey:
    """Return the session key of a SIMPLEBLOB, for messages with this algorithm and provider.

    A fault of the blob, whatever it is, shows nowhere but in `ciphers.decrypt`, which raises the same
    DecryptionFailed as for a wrong body: the key returned is not usable then. So a sender can't use this
    queue manager to decrypt keys of others, by asking which blobs are well-formed.
    """
    raise NotImplementedError
