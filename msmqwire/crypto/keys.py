"""RSA keys as blobs and files, and session keys that they wrap: [MS-MQQB] 2.4, [MS-MQMQ] 2.2.20.6."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from cryptography.exceptions import UnsupportedAlgorithm as UnsupportedByCryptography
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey, RSAPublicNumbers
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    load_der_private_key,
    load_der_public_key,
    load_pem_private_key,
    load_pem_public_key,
)

from msmqwire.constants import CryptographicProvider, KeyAlgorithm
from msmqwire.crypto.certificates import UNREADABLE, SenderCertificate
from msmqwire.crypto.ciphers import SessionKey, key_bits, received_session_key
from msmqwire.crypto.extra_algorithms import is_installed
from msmqwire.crypto.readings import Readings
from msmqwire.crypto.rsa import KEY_SIZE_MAX, KEY_SIZE_MIN, public_part, unusable
from msmqwire.errors import DecryptionFailed, InvalidValue, MalformedPacket
from msmqwire.headers import PUBLICKEYBLOB, SIMPLEBLOB
from msmqwire.names.printable import counted
from msmqwire.schema import UInt, field_offset

FILE_SIZE_MAX: Final = 0x20000
"""Bytes of a file with a key."""
_HEAD: Final = ("bType", "bVersion", "reserved", "magic")  # of every PUBLICKEYBLOB: MQQB-2.4.1-01
_KINDS: Final = frozenset(KeyAlgorithm)
_FIXED: Final = {
    part.name: part.default for part in PUBLICKEYBLOB.parts if isinstance(part, UInt) and part.name in _HEAD
}
_BLOB_START: Final = b"\x06"  # PUBLICKEYBLOB.bType; DER begins with 0x30
_HEXADECIMAL: Final = re.compile(rb"[0-9A-Fa-f\s]+")
_PADDING: Final = PKCS1v15()
_HASH_SIZE: Final = 32
ENCRYPTED_KEY_SIZE: Final = 256
"""Bytes that the text gives encryptedKey: MQQB-2.4.2-03."""


# -- blobs ----------------------------------------------------------------------------------------------


def public_key_of(blob: bytes) -> RSAPublicKey:
    """Return the key of a PUBLICKEYBLOB. Raises MalformedPacket.

    Keys of less than 2048 bits are weak, those of 512 broken; they are read all the same.
    """
    record, end = PUBLICKEYBLOB.read(blob)
    for name in _FIXED:
        if record[name] != _FIXED[name]:
            raise _malformed(name, f"{record[name]:#x} is not {_FIXED[name]:#x}")
    if record.aiKeyAlg not in _KINDS:
        raise _malformed("aiKeyAlg", f"{record.aiKeyAlg:#x} is neither 0x2400 nor 0xa400")
    if not KEY_SIZE_MIN <= record.bitLen <= KEY_SIZE_MAX:
        raise _malformed("bitLen", f"{record.bitLen} is not in {KEY_SIZE_MIN}..{KEY_SIZE_MAX}")
    if end != len(blob):
        raise _malformed(
            "bitLen",
            f"{record.bitLen}, but {counted(len(blob) - end, 'byte', 'are')} left after the modulus",
        )
    modulus = int.from_bytes(record.modulus, "little")
    if modulus.bit_length() != record.bitLen or not modulus & 1:
        raise _malformed("modulus", f"no odd number of {record.bitLen} bits")
    if not record.pubExp & 1 or record.pubExp == 1:
        raise _malformed("pubExp", f"{record.pubExp} is not a public exponent")
    return RSAPublicNumbers(record.pubExp, modulus).public_key()


def _malformed(name: str, why: str) -> MalformedPacket:
    return MalformedPacket(why, path=f"PUBLICKEYBLOB.{name}", offset=field_offset(PUBLICKEYBLOB, name))


def public_key_blob(
    key: RSAPublicKey | RSAPrivateKey, kind: KeyAlgorithm = KeyAlgorithm.CALG_RSA_KEYX
) -> bytes:
    """Return the PUBLICKEYBLOB of a key for encryption, or for signatures.

    Raises InvalidValue for a key that messages can't have.
    """
    _check(key, "PUBLICKEYBLOB")
    numbers = public_part(key).public_numbers()
    modulus = numbers.n.to_bytes(-(-key.key_size // 8), "little")  # MQMQ-2.2.20.6-33
    return PUBLICKEYBLOB.build(
        # MQMQ-2.2.20.6-30 to -32
        {"aiKeyAlg": int(kind), "bitLen": key.key_size, "pubExp": numbers.e, "modulus": modulus}
    )


def _check(key: Any, path: str = "") -> None:
    if why := unusable(key):
        raise InvalidValue(why, path=path)


# -- files ----------------------------------------------------------------------------------------------


def read_public_key(content: bytes) -> RSAPublicKey:
    """Return the public key in the content of a file.

    That is a PUBLICKEYBLOB, as it is or in hexadecimal, or in PEM or DER a certificate, a public key or a
    private one, whose public part it is. Raises InvalidValue.
    """
    _check_size(content)
    if _HEXADECIMAL.fullmatch(content):
        content = _from_hexadecimal(content)
    if content[:1] == _BLOB_START:
        try:
            return public_key_of(content)
        except MalformedPacket as exc:
            raise InvalidValue(exc.why, path=exc.path, offset=exc.offset) from None
    if not _is_pem(content):
        return _first(content, _DER_LOADERS)
    if b"-----BEGIN CERTIFICATE-----" in content:
        return SenderCertificate.read_file(content).key
    return _first(content, _PEM_LOADERS)


def _first(content: bytes, loaders: Sequence[Callable[[bytes], Any]]) -> RSAPublicKey:
    """Return the public key that the first of these functions reads that can."""
    for load in loaders:
        try:
            key = load(content)
        except (*UNREADABLE, InvalidValue):
            continue
        _check(key)
        return public_part(key)
    raise InvalidValue("neither a PUBLICKEYBLOB nor a certificate or key in PEM or DER")


def read_private_key(content: bytes) -> RSAPrivateKey:
    """Return the private key in the content of a file, PEM or DER, without a password.

    Raises InvalidValue.
    """
    key = load_private_key(content)
    _check(key)
    return key  # type: ignore[return-value]


def load_private_key(content: bytes) -> PrivateKeyTypes:
    """Return the private key in the content of a file, PEM or DER, of whatever kind. Raises InvalidValue."""
    _check_size(content)
    try:
        return (load_pem_private_key if _is_pem(content) else load_der_private_key)(content, None)
    except TypeError:
        raise InvalidValue("the private key is encrypted") from None
    except (ValueError, UnsupportedByCryptography):
        raise InvalidValue("not a private key in PEM or DER") from None


def _is_pem(content: bytes) -> bool:
    return b"-----BEGIN " in content


def _check_size(content: bytes) -> None:
    if len(content) > FILE_SIZE_MAX:
        raise InvalidValue(
            f"{counted(len(content), 'byte', 'are')} not a file with a key, at most {FILE_SIZE_MAX:,}"
        )


def _from_hexadecimal(content: bytes) -> bytes:
    try:
        return bytes.fromhex("".join(content.decode("ascii").split()))
    except ValueError:
        raise InvalidValue("half a byte at the end of the hexadecimal digits") from None


def _certified_key(content: bytes) -> RSAPublicKey:
    return SenderCertificate.read(content).key


_PEM_LOADERS: Final = (load_pem_public_key, load_private_key)
_DER_LOADERS: Final = (load_der_public_key, load_private_key, _certified_key)


# -- session keys ---------------------------------------------------------------------------------------


def wrap(session_key: SessionKey, public_key: RSAPublicKey) -> bytes:
    """Return the SIMPLEBLOB of a session key for the owner of a public key: [MS-MQQB] 2.4.2.

    Raises InvalidValue for a session key that is not usable or does not fit into the RSA key.
    """
    if not session_key.usable:
        raise InvalidValue("the key was not in its SIMPLEBLOB", path="SessionKey")
    try:
        encrypted = public_key.encrypt(session_key.key, _PADDING)
    except ValueError:
        why = (
            f"{counted(len(session_key.key), 'byte', 'do')} not fit into a key of {public_key.key_size} bits"
        )
        raise InvalidValue(why, path="SessionKey") from None
    return _simple_head(session_key.algorithm) + encrypted[::-1]


def unwrap(
    blob: bytes,
    private_key: RSAPrivateKey,
    readings: Readings,
    algorithm: int,
    provider: CryptographicProvider,
) -> SessionKey:
    """Return the session key of a SIMPLEBLOB, for messages with this algorithm and provider.

    A fault of the blob, whatever it is, shows nowhere but in `ciphers.decrypt`, which raises the same
    DecryptionFailed as for a wrong body: the key returned is not usable then. So no peer can use this queue
    manager to decrypt keys of other senders, by asking it which blobs are well-formed.

    Raises DecryptionFailed for an algorithm that the provider does not have, or that is not installed.
    """
    bits = key_bits(algorithm, provider)
    if bits is None or not is_installed(algorithm):  # MQMQ-2.2.19.3-38 and -39
        raise DecryptionFailed
    head = _simple_head(algorithm)
    size = -(-private_key.key_size // 8)
    encrypted = blob[len(head) :]
    # The text gives 256 bytes whatever the key: zeros up to there change nothing (MQQB-2.4.2-03). More would
    # make any number of blobs of one key, each with its place in caches.
    fits = blob.startswith(head) and size <= len(encrypted) <= max(size, ENCRYPTED_KEY_SIZE)
    fits = fits and not any(encrypted[size:])
    encrypted = encrypted[:size].ljust(size, b"\0")[::-1]
    try:
        key = private_key.decrypt(encrypted, _PADDING)
    except ValueError:  # not less than the modulus
        key = b""
    stands_in = _end_of_stand_in(private_key, encrypted).endswith(key)
    usable = fits and len(key) * 8 == bits and not stands_in
    if not usable:
        key = bytes(range(1, bits // 8 + 1))  # as good as any: nothing decrypted with it is given out
    return received_session_key(key, algorithm, provider, readings, usable=usable)


def _end_of_stand_in(private_key: RSAPrivateKey, encrypted: bytes) -> bytes:
    """Return the last bytes of the substitute that decrypting gives instead of an error if the padding is
    wrong.

    That is made from the private key and the ciphertext and has a length made so too ("implicit rejection",
    draft-irtf-cfrg-rsa-guidance, section 7). Now and then it has the length of a session key, and would pass
    for one: with RC4, which has no padding, for the key of a message.
    """
    size = len(encrypted)
    secret = sha256(private_key.private_numbers().d.to_bytes(size)).digest()
    derived = hmac.digest(secret, encrypted, "sha256")
    last = (size - 1) // _HASH_SIZE
    blocks = (
        hmac.digest(derived, number.to_bytes(2) + b"message" + (size * 8).to_bytes(2), "sha256")
        for number in range(max(last - 1, 0), last + 1)
    )
    return b"".join(blocks)[: size - max(last - 1, 0) * _HASH_SIZE]


@lru_cache(maxsize=8)
def _simple_head(algorithm: int) -> bytes:
    """Return the bytes of a SIMPLEBLOB before encryptedKey."""
    return SIMPLEBLOB.build({"sessionKeyAlgorithm": algorithm, "encryptedKey": b""})
