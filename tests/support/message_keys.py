"""RSA keys for tests of message security, and signatures put into packets."""

from __future__ import annotations

from datetime import datetime
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from msmqwire.crypto.keys import read_private_key
from msmqwire.schema import Record
from tests.support.paths import ROOT

VECTORS = ROOT / "tests/vectors/crypto"


def private_key(bits: int = 1024, which: int = 0) -> RSAPrivateKey:
    """A key of this length, the same one each time; `which` is for further ones."""
    return _private_key(bits, which)


@cache
def _private_key(bits: int, which: int) -> RSAPrivateKey:
    if bits < 1024:  # cryptography makes none so short
        return read_private_key((VECTORS / f"rsa-{bits}.pem").read_bytes())
    return rsa.generate_private_key(65537, bits)


@cache
def elliptic_certificate() -> bytes:
    """A certificate in DER that is right, but not of an RSA key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1)
    builder = builder.not_valid_before(datetime(2026, 1, 1)).not_valid_after(datetime(2027, 1, 1))
    return builder.sign(key, SHA256()).public_bytes(Encoding.DER)


def with_signature(packet: Record, signature: bytes, algorithm: int, *, multiple: bool = False) -> Record:
    """A copy of a packet with a signature in its SecurityHeader, or in its MultiQueueFormatHeader."""
    security, lists = packet.SecurityHeader, packet.MultiQueueFormatHeader
    properties = packet.MessagePropertiesHeader.replace(HashAlgorithm=int(algorithm))
    if multiple:
        lists = lists.replace(Signature=lists.Signature.replace(Signature=signature))
        return packet.replace(MessagePropertiesHeader=properties, MultiQueueFormatHeader=lists).recomputed()
    data = security.SecurityData.replace(Signature=signature)
    return packet.replace(
        MessagePropertiesHeader=properties, SecurityHeader=security.replace(SecurityData=data)
    ).recomputed()
