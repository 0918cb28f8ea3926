"""Keys of XML signatures, RSA and DSA, with SHA-1 as [MC-MQSRM] 2.2.7.2 has it."""

from __future__ import annotations

from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.dsa import DSAPrivateKey, DSAPublicKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA1

PrivateKey = RSAPrivateKey | DSAPrivateKey
PublicKey = RSAPublicKey | DSAPublicKey

KEY_SIZE_MIN: Final = 1024  # bits; the library signs with no shorter one
KEY_SIZE_MAX: Final = 8192
"""Bits; one check takes less than a millisecond then."""


def unusable(key: Any) -> str:
    """Return why a public or private key can't make or check signatures; empty if it can."""
    if not isinstance(key, PrivateKey | PublicKey):
        return "the key is neither RSA nor DSA"
    if not KEY_SIZE_MIN <= key.key_size <= KEY_SIZE_MAX:
        return f"a key of {key.key_size} bits, not {KEY_SIZE_MIN} to {KEY_SIZE_MAX}"
    return ""


def make_value(key: PrivateKey, data: bytes) -> bytes:
    """Return the bytes of SignatureValue: for DSA r and s, each as long as q ([XMLDSig] 6.4.1)."""
    if isinstance(key, RSAPrivateKey):
        return key.sign(data, PKCS1v15(), SHA1())
    size = _half(key.public_key())
    r, s = decode_dss_signature(key.sign(data, SHA1()))
    return r.to_bytes(size) + s.to_bytes(size)


def is_value_of(key: PublicKey, data: bytes, value: bytes) -> bool:
    """Return whether the private key that belongs to this one made a SignatureValue for these bytes."""
    try:
        if isinstance(key, RSAPublicKey):
            key.verify(value, data, PKCS1v15(), SHA1())
            return True
        size = _half(key)
        if len(value) != 2 * size:
            return False
        r, s = int.from_bytes(value[:size]), int.from_bytes(value[size:])
        key.verify(encode_dss_signature(r, s), data, SHA1())
    except (InvalidSignature, ValueError):  # ValueError: parameters of the key that make no sense
        return False
    return True


def _half(key: DSAPublicKey) -> int:
    """Return the bytes of r and of s: 20, and 32 where q has 256 bits, which are the 64 of 2.2.7.2."""
    return (key.parameters().parameter_numbers().q.bit_length() + 7) // 8
