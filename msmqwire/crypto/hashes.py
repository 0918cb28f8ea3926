"""The hashes under signatures: [MS-MQMQ] 2.2.19.3.

MD2, MD4, MD5 and SHA-1 are broken: two messages with the same hash can be made, and a signature over them
proves nothing against an attacker. They are here to read messages of old systems.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Final

from msmqwire.constants import HashAlgorithm
from msmqwire.crypto.extra_algorithms import check_installed
from msmqwire.errors import UnsupportedAlgorithm

_FIELD: Final = "MessagePropertiesHeader.HashAlgorithm"


def digest(algorithm: int, data: bytes) -> bytes:
    """Return the hash of bytes by an algorithm of MessagePropertiesHeader.HashAlgorithm.

    MD2 [RFC1319], MD4 [RFC1320], MD5 [RFC1321] and SHA-1 are broken.
    Raises UnsupportedAlgorithm for any other, SHA-384 (0x800D) among them, MQMQ-2.2.19.3-29, and for MD2 and
    MD4 without the extra ``ciphers``.
    """
    return _known(algorithm)[0](data)


def digest_info(algorithm: int, data: bytes) -> bytes:
    """Return the DigestInfo of [RFC8017] 9.2, the hash of bytes after the name of its algorithm.

    Raises as `digest`.
    """
    function, head = _known(algorithm)
    return head + function(data)


def _known(algorithm: int) -> tuple[Callable[[bytes], bytes], bytes]:
    check_installed(algorithm, _FIELD)
    try:
        return _ALGORITHMS[algorithm]
    except KeyError:
        raise UnsupportedAlgorithm(algorithm, path=_FIELD) from None


def _md2(data: bytes) -> bytes:
    from Cryptodome.Hash import MD2

    return MD2.new(data).digest()


def _md4(data: bytes) -> bytes:
    from Cryptodome.Hash import MD4

    return MD4.new(data).digest()


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()


def _sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _sha512(data: bytes) -> bytes:
    return hashlib.sha512(data).digest()


# The beginning of a DigestInfo: [RFC8017] 9.2, note 1; for MD4 in the same manner (OID 1.2.840.113549.2.4).
_ALGORITHMS: Final[Mapping[int, tuple[Callable[[bytes], bytes], bytes]]] = {
    HashAlgorithm.CALG_MD2: (_md2, bytes.fromhex("3020300c06082a864886f70d020205000410")),
    HashAlgorithm.CALG_MD4: (_md4, bytes.fromhex("3020300c06082a864886f70d020405000410")),
    HashAlgorithm.CALG_MD5: (_md5, bytes.fromhex("3020300c06082a864886f70d020505000410")),
    HashAlgorithm.CALG_SHA1: (_sha1, bytes.fromhex("3021300906052b0e03021a05000414")),
    HashAlgorithm.CALG_SHA_256: (_sha256, bytes.fromhex("3031300d060960864801650304020105000420")),
    HashAlgorithm.CALG_SHA_512: (_sha512, bytes.fromhex("3051300d060960864801650304020305000440")),
}
