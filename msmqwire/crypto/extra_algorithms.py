"""The broken algorithms that neither Python nor `cryptography` has: the extra ``ciphers`` brings them."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Final

from msmqwire.constants import EncryptionAlgorithm, HashAlgorithm
from msmqwire.errors import UnsupportedAlgorithm
from msmqwire.extras import MissingExtra

_LIBRARY: Final = "Cryptodome"
_ALGORITHMS: Final = frozenset(
    {
        HashAlgorithm.CALG_MD2,
        HashAlgorithm.CALG_MD4,
        EncryptionAlgorithm.CALG_RC2,
        EncryptionAlgorithm.CALG_RC4,
    }
)


@cache
def _has_library() -> bool:
    return find_spec(_LIBRARY) is not None


def is_installed(algorithm: int) -> bool:
    """Return whether an algorithm can be computed here, as far as it takes the extra."""
    return algorithm not in _ALGORITHMS or _has_library()


def check_installed(algorithm: int, path: str) -> None:
    """Raise UnsupportedAlgorithm, which says how to install it, for an algorithm that takes the extra."""
    if not is_installed(algorithm):
        raise UnsupportedAlgorithm(algorithm, why_not(algorithm), path=path)


def why_not(algorithm: int) -> str:
    """Return the package to install for an algorithm of the extra."""
    return f"{algorithm:#x} can't be computed: {MissingExtra(_LIBRARY, 'ciphers')}"
