"""The ciphers of message bodies: [MS-MQMQ] 2.2.19.3.

RC2 and RC4 are broken, with keys of 40 bits above all; they are here to read messages of old systems. None of
these ciphers notices a changed body: only a signature does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7

from msmqwire.constants import CryptographicProvider, EncryptionAlgorithm
from msmqwire.crypto.extra_algorithms import check_installed
from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.errors import DecryptionFailed, InvalidValue, UnsupportedAlgorithm
from msmqwire.names.printable import agreeing, counted

if TYPE_CHECKING:
    from Cryptodome.Cipher._mode_cbc import CbcMode

RandomBytes: TypeAlias = Callable[[int], bytes]

RC2: Final = EncryptionAlgorithm.CALG_RC2
RC4: Final = EncryptionAlgorithm.CALG_RC4
AES_KEY_BITS: Final[Mapping[int, int]] = {
    EncryptionAlgorithm.CALG_AES_128: 128,
    EncryptionAlgorithm.CALG_AES_192: 192,
    EncryptionAlgorithm.CALG_AES_256: 256,
}
"""The bits of a key: MQQB-3.1.7.1.5-06."""

_FIELD: Final = "MessagePropertiesHeader.EncryptionAlgorithm"
_KEY_40, _KEY_128 = 40, 128
_SALT: Final = bytes(11)  # of the Base provider: 40 bits and these are 128
_ZERO_BITS: Final = bytes(11)  # MQQB-3.1.7.1.5-15: 88 of them
_AES_BLOCK, _RC2_BLOCK = 16, 8
_RC2_BITS: Final = range(40, 1025)
_RC2_KEY: Final = range(5, 129)  # bytes
_RC4_KEY: Final = range(5, 257)
# MQMQ-2.2.19.3-40
_AES_MODE: Final = CBC(bytes(_AES_BLOCK))  # the vector is zero
_AES_PADDING: Final = PKCS7(_AES_BLOCK * 8)  # MQMQ-2.2.19.3-40
_RC2_PADDING: Final = PKCS7(_RC2_BLOCK * 8)  # MQMQ-2.2.19.3-40


@dataclass(frozen=True, slots=True)
class SessionKey:
    """A symmetric key of messages. Its repr does not show the key.

    Attributes:
        algorithm: a value of EncryptionAlgorithm.
        key: the bytes that a SIMPLEBLOB carries.
        effective_bits: that RC2 makes use of ([RFC2268] 2, T1); for the other ciphers the bits of `key`.
        salt: the bytes of the cipher's key after `key`.
        usable: False for one that was not in its SIMPLEBLOB: `decrypt` works with it and then fails.

    Raises UnsupportedAlgorithm for an unknown algorithm, and for RC2 and RC4 without the extra ``ciphers``;
    InvalidValue for a key that it can't have.
    """

    algorithm: int
    key: bytes = field(repr=False)
    effective_bits: int
    salt: bytes = field(default=b"", repr=False)
    usable: bool = field(default=True, repr=False)

    def __post_init__(self) -> None:
        check_installed(self.algorithm, _FIELD)
        size = len(self.key) + len(self.salt)
        if self.algorithm == RC2:
            fits = size in _RC2_KEY and self.effective_bits in _RC2_BITS
        elif self.algorithm == RC4:
            fits = size in _RC4_KEY and self.effective_bits == len(self.key) * 8
        else:
            bits = AES_KEY_BITS.get(self.algorithm)
            if bits is None:
                raise UnsupportedAlgorithm(self.algorithm, path=_FIELD)
            fits = size * 8 == self.effective_bits == bits
        if not fits:
            why = (
                f"{counted(size, 'byte')} with {self.effective_bits} effective bits"
                f" {agreeing(size, 'are')} not a key of {self.algorithm:#x}"
            )
            raise InvalidValue(why, path="SessionKey")


def new_session_key(
    algorithm: int,
    bits: int,
    random: RandomBytes,
    readings: Readings = DEFAULT,
    provider: CryptographicProvider | None = None,
) -> SessionKey:
    """Return a new key for messages, [MS-MQQB] 3.1.7.1.5.

    Args:
        algorithm: a value of EncryptionAlgorithm.
        bits: 128, 192 or 256 as the AES algorithm has it, 40 or 128 for RC2 and RC4.
        random: returns a number of random bytes.
        readings: whether a key of 40 bits of the Base provider is salted.
        provider: for which the key is; None is the one that the algorithm and the bits call for. With the
            Enhanced one an RC2 key of 40 bits gets 88 zero bits more (MQQB-3.1.7.1.5-15).

    Raises UnsupportedAlgorithm for an unknown algorithm, InvalidValue for bits that this provider does not
    have for it.
    """
    if provider is None:
        provider = provider_of(algorithm, bits)
    if provider is CryptographicProvider.ENHANCED and algorithm == RC2 and bits == _KEY_40:
        return SessionKey(algorithm, random(bits // 8) + _ZERO_BITS, _KEY_128)
    if bits != key_bits(algorithm, provider):
        why = f"{provider} has no keys of {bits} bits for {algorithm:#x}"
        raise InvalidValue(why, path="SessionKey")
    return received_session_key(random(bits // 8), algorithm, provider, readings)


def provider_of(algorithm: int, bits: int) -> CryptographicProvider:
    """Return the provider that has keys of this algorithm and length. Raises UnsupportedAlgorithm."""
    if algorithm in AES_KEY_BITS:
        return CryptographicProvider.AES
    if algorithm not in (RC2, RC4):
        raise UnsupportedAlgorithm(algorithm, path=_FIELD)
    return CryptographicProvider.BASE if bits == _KEY_40 else CryptographicProvider.ENHANCED


def key_bits(algorithm: int, provider: CryptographicProvider) -> int | None:
    """Return the bits of a key in a SIMPLEBLOB; None if the provider has no such keys: MQMQ-2.2.19.3-39."""
    if provider is CryptographicProvider.AES:
        return AES_KEY_BITS.get(algorithm)
    if algorithm not in (RC2, RC4):
        return None
    return _KEY_40 if provider is CryptographicProvider.BASE else _KEY_128


def received_session_key(
    key: bytes, algorithm: int, provider: CryptographicProvider, readings: Readings, *, usable: bool = True
) -> SessionKey:
    """Return the key whose bytes a SIMPLEBLOB carries, `key_bits` bits of it."""
    salted = provider is CryptographicProvider.BASE and readings.salted_40_bit_keys
    return SessionKey(algorithm, key, len(key) * 8, _SALT if salted else b"", usable)


def encrypt(session_key: SessionKey, data: bytes) -> bytes:
    """Return bytes encrypted: RC2 and AES in CBC mode with a zero vector and PKCS #5 padding, RC4 as it is.

    RC2 and RC4 are broken. As the vector is always the same, so are the results for the same bytes.
    Raises InvalidValue for a key that is not usable.
    """
    if not session_key.usable:
        raise InvalidValue("the key was not in its SIMPLEBLOB", path="SessionKey")
    if session_key.algorithm == RC4:
        return _rc4(session_key, data)
    if session_key.algorithm == RC2:
        return _rc2(session_key).encrypt(_padded(data, _RC2_BLOCK))
    return _aes(session_key).encryptor().update(_padded(data, _AES_BLOCK))


def _padded(data: bytes, block: int) -> bytes:
    """Return bytes with the padding of PKCS #5 appended: each byte of it is their number."""
    missing = block - len(data) % block
    return data + bytes((missing,)) * missing


def decrypt(session_key: SessionKey, data: bytes) -> bytes:
    """Return the bytes that `encrypt` encrypted.

    Raises DecryptionFailed, which is the same for a key that could not be unwrapped, bytes that are not whole
    blocks and a wrong padding, after the same work.
    """
    if session_key.algorithm == RC4:
        clear = _rc4(session_key, data)
    else:
        rc2 = session_key.algorithm == RC2
        if not data or len(data) % (_RC2_BLOCK if rc2 else _AES_BLOCK):
            raise DecryptionFailed
        padded = _rc2(session_key).decrypt(data) if rc2 else _aes(session_key).decryptor().update(data)
        unpadder = (_RC2_PADDING if rc2 else _AES_PADDING).unpadder()  # compares in constant time
        try:
            clear = unpadder.update(padded) + unpadder.finalize()  # MQQB-3.1.5.8.3-25
        except ValueError:
            raise DecryptionFailed from None  # MQQB-3.1.5.8.3-26
    if not session_key.usable:
        raise DecryptionFailed
    return clear


def _aes(session_key: SessionKey) -> Cipher[CBC]:
    return Cipher(AES(session_key.key), _AES_MODE)


def _rc2(session_key: SessionKey) -> CbcMode:
    from Cryptodome.Cipher import ARC2

    # Its types do not know effective_keylen, without which T1 is 1024.
    options: dict[str, Any] = {"effective_keylen": session_key.effective_bits}
    key = session_key.key + session_key.salt
    return cast("CbcMode", ARC2.new(key, ARC2.MODE_CBC, bytes(_RC2_BLOCK), **options))


def _rc4(session_key: SessionKey, data: bytes) -> bytes:
    from Cryptodome.Cipher import ARC4

    return ARC4.new(session_key.key + session_key.salt).encrypt(data)
