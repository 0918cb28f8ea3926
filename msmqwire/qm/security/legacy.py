"""The broken algorithms, and the administrator's switches for sending and reading them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.constants import EncryptionAlgorithm, HashAlgorithm
from msmqwire.crypto.extra_algorithms import is_installed, why_not
from msmqwire.qm.model.context import Context

LEGACY: Final[Mapping[int, str]] = {
    HashAlgorithm.CALG_MD2: "md2",
    HashAlgorithm.CALG_MD4: "md4",
    HashAlgorithm.CALG_MD5: "md5",
    HashAlgorithm.CALG_SHA1: "sha1",
    EncryptionAlgorithm.CALG_RC2: "rc2",
    EncryptionAlgorithm.CALG_RC4: "rc4",
}
"""Algorithms that give no proof or secrecy against a serious attacker, by their names in `Settings`."""


def is_sent(context: Context, algorithm: int) -> bool:
    """Return whether messages may be sent with an algorithm: `Settings.send_md5` and the like."""
    return _is_on(context, "send", algorithm)


def is_read(context: Context, algorithm: int) -> bool:
    """Return whether an algorithm of a received message is accepted: `Settings.read_md5` and the like.

    An algorithm that is not installed is not accepted, which is reported to the administrator from time to
    time.
    """
    if not _is_on(context, "read", algorithm):
        return False
    if not is_installed(algorithm):
        context.trouble(
            f"missing {LEGACY[algorithm]}", f"a message is refused: {why_not(algorithm)}", warning=True
        )
        return False
    return True


def warn(context: Context, algorithm: int, where: str) -> None:
    """Report to the administrator, from time to time, that a broken algorithm is in use."""
    name = LEGACY.get(algorithm)
    if name is not None:
        why = f"{where}; {name.upper()} is broken: use SHA-256, SHA-512 or AES"
        context.trouble(f"legacy {name}", why, warning=True)


def _is_on(context: Context, verb: str, algorithm: int) -> bool:
    name = LEGACY.get(algorithm)
    return name is None or bool(getattr(context.settings, f"{verb}_{name}"))
