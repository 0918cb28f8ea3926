"""Private keys from files: PEM, DER, and the keys that ``msmqwire key create`` has made in a folder."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msmqwire.errors import InvalidValue
from msmqwire.ownership import read_secret

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

KEYS_NAME: Final = "keys.json"
"""The file with the keys of a queue manager, in its folder."""
KEYS_SIZE_MAX: Final = 16 << 20
EXCHANGE: Final = "exchange"
"""The use of the keys that bodies are encrypted for."""

_PRIVATE_KEYS: Final = re.compile(  # each takes its length, without an end too
    rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[^-]*+(?:-(?!----)[^-]*+)*+-----END [A-Z0-9 ]*PRIVATE KEY-----"
)
_SHOWN: Final = re.compile(rb"\s*[a-z]+ (?:exchange|signature) [0-9a-f]{40}")
_OTHERS: Final = (
    (b"PUBLIC KEY-----", "a public key: only the private one decrypts"),
    (b"BEGIN CERTIFICATE-----", "a certificate: it verifies signatures, with --cert"),
)


def key_content(path: Path) -> bytes:
    """Return the content of a file with keys, or of that in the folder of a queue manager.

    Raises OSError, and InvalidValue for a folder without keys, and a file that other users may use.
    """
    if not path.is_dir():
        try:
            return read_secret(path, KEYS_SIZE_MAX, str(path))
        except InvalidValue:
            if path.is_file() and (public := _public_content(path)):
                return public  # its mode is not what is wrong with it
            raise
    try:
        return read_secret(path / KEYS_NAME, KEYS_SIZE_MAX, str(path / KEYS_NAME))
    except FileNotFoundError:
        why = f"no {KEYS_NAME} in this folder: key create --data makes the keys of a queue manager"
        raise InvalidValue(why, path=str(path)) from None


def _public_content(path: Path) -> bytes:
    """Return the content of a file with a certificate or a public key; nothing for a private one."""
    with path.open("rb") as file:
        content = file.read(KEYS_SIZE_MAX)
    return content if b"PRIVATE KEY" not in content and any(mark in content for mark, _ in _OTHERS) else b""


def private_keys(content: bytes) -> list[RSAPrivateKey]:
    """Return the private keys in a file: PEM, also several, DER, or those of a queue manager for encryption.

    Raises InvalidValue, which never shows a key.
    """
    from msmqwire.crypto.keys import read_private_key

    if content.lstrip()[:1] == b"{":
        return [read_private_key(key) for key in _made_here(content)]
    keys = _PRIVATE_KEYS.findall(content)
    if not keys:
        for mark, what in _OTHERS:
            if mark in content:
                raise InvalidValue(what)
        if _SHOWN.match(content):
            raise InvalidValue("public keys, as key show prints them: only the private ones decrypt")
    return [read_private_key(key) for key in keys or [content]]


def _made_here(content: bytes) -> list[bytes]:
    """Return the keys for encryption of a queue manager, in PEM, each once: providers share them."""
    if len(content) > KEYS_SIZE_MAX:
        raise InvalidValue(f"more than {KEYS_SIZE_MAX:,} bytes are no file with keys")
    try:
        found = [key["private_key"].encode() for key in json.loads(content)["keys"] if key["use"] == EXCHANGE]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidValue("neither a private key in PEM or DER nor a file of key create") from None
    if not found:
        raise InvalidValue("no key for encryption is in this file: key create makes one")
    return list(dict.fromkeys(found))
