"""The hashes under signatures: [MS-MQMQ] 2.2.19.3.

MD2, MD4, MD5 and SHA-1 are broken: two messages with the same hash can be made, and what they sign proves
nothing against somebody who tries. They are here to read what old systems send.
"""

from __future__ import annotations


def digest(algorithm: int, data: bytes) -> bytes:
    """Return the hash of bytes by an algorithm of MessagePropertiesHeader.HashAlgorithm.

    MD2 [RFC1319], MD4 [RFC1320], MD5 [RFC1321] and SHA-1 are broken.
    Raises UnsupportedAlgorithm for any other, SHA-384 (0x800D) among them: MQMQ-2.2.19.3-29.
    """
    raise NotImplementedError


def digest_info(algorithm: int, data: bytes) -> bytes:
    """Return the DigestInfo of [RFC8017] 9.2, the hash of bytes with the name of its algorithm. Raises as `digest`."""
    raise NotImplementedError
