"""Passwords of bindery objects: only a salted hash of each is kept, in its property PASSWORD.

The hash is scrypt (RFC 7914) with N = 2^14, r = 8 and p = 1: 16 MiB and some 50 ms for each password that is
set or tried, so that a stolen store does not give the passwords away soon.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msmqwire.errors import InvalidValue
from msmqwire.ncp.constants import PASSWORD_MAX
from msmqwire.schema.texts import OEM_CODE_PAGE

SALT_SIZE: Final = 16
"""Bytes of a salt."""
_DIGEST_SIZE: Final = 32
_SCHEME: Final = b"scrypt/1"
"""The name of the function with its parameters, in front of a stored hash."""
_SELF_MADE: Final = b"\1"
"""After a stored hash that is `PasswordHash.self_made`."""
_N, _R, _P = 1 << 14, 8, 1
_MEMORY_MAX: Final = 32 << 20


def normal(password: bytes) -> bytes:
    """Return a password in capitals, in which clients of NetWare send it: case does not count."""
    return password.upper()


def digest(password: bytes, salt: bytes) -> bytes:
    """Return the hash of a password. Slow on purpose; other threads run meanwhile.

    The length is hashed too: scrypt pads a password with zeros.
    """
    sized = len(password).to_bytes(4, "big") + normal(password)
    return hashlib.scrypt(sized, salt=salt, n=_N, r=_R, p=_P, maxmem=_MEMORY_MAX, dklen=_DIGEST_SIZE)


def to_bytes(password: str) -> bytes:
    """Return the bytes of a password as calls have them. Raises InvalidValue."""
    try:
        data = password.encode(OEM_CODE_PAGE)
    except UnicodeEncodeError:
        raise InvalidValue("it has a character that is not in code page 437", path="password") from None
    if not 0 < len(data) <= PASSWORD_MAX or not password.isprintable():
        raise InvalidValue(f"a password has 1 to {PASSWORD_MAX} printable characters", path="password")
    return data


class HashNeeded(Exception):
    """A call needs the hash of a password. It has changed nothing, and is made again once that is known."""

    def __init__(self, password: bytes, salt: bytes) -> None:
        super().__init__("the hash of a password is needed")
        self.password, self.salt = normal(password), salt


class PasswordHashing:
    """Hashes for a call, computed at once.

    Attributes:
        salt: random bytes for a new password, `SALT_SIZE` of them.
    """

    def __init__(self, salt: bytes = b"") -> None:
        self.salt = salt

    def digest(self, password: bytes, salt: bytes) -> bytes:
        """Return the hash of a password; another implementation may raise HashNeeded."""
        return digest(password, salt)


@dataclass(frozen=True, slots=True)
class PasswordHash:
    """The hash of a password, as a store keeps it.

    Attributes:
        self_made: whether the object, or whoever has logged in by its name, gave it the password while it had
            none. So a login by it does not prove who that is.
    """

    salt: bytes
    digest: bytes
    self_made: bool = False

    @classmethod
    def of(cls, password: bytes, hashing: PasswordHashing, *, self_made: bool = False) -> PasswordHash:
        """Return the hash of a new password."""
        assert len(hashing.salt) == SALT_SIZE
        return cls(hashing.salt, hashing.digest(password, hashing.salt), self_made)

    @classmethod
    def read(cls, segments: Sequence[bytes]) -> PasswordHash | None:
        """Return the hash in the value of a property; None if it holds none.

        Versions of msmqwire that did not check passwords kept no value.
        """
        value = b"".join(segments)
        scheme, hashed = value[: len(_SCHEME)], value[len(_SCHEME) :]
        self_made = len(hashed) > SALT_SIZE + _DIGEST_SIZE
        hashed = hashed.removesuffix(_SELF_MADE) if self_made else hashed
        if scheme != _SCHEME or len(hashed) != SALT_SIZE + _DIGEST_SIZE:
            return None
        return cls(hashed[:SALT_SIZE], hashed[SALT_SIZE:], self_made)

    @property
    def segments(self) -> tuple[bytes]:
        """The value of the property."""
        return (_SCHEME + self.salt + self.digest + (_SELF_MADE if self.self_made else b""),)

    def fits(self, password: bytes, hashing: PasswordHashing) -> bool:
        """Return whether this is the hash of a password."""
        return hmac.compare_digest(hashing.digest(password, self.salt), self.digest)
