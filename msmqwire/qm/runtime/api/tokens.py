"""Tokens of the API, found by their digests: secrets are kept nowhere."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from msmqwire.qm.runtime.api.rights import Caller, Right

TOKEN_BYTES: Final = 32
"""Random bytes of a token: 256 bits are not found by trying."""
TOKEN_MAX: Final = 256
"""The most characters of a token: longer ones are not checked."""
CONSOLE: Final = "console"
"""The name of the token of the console, which is in a file of the folder while it runs."""


def new_token() -> str:
    """Return a new secret."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def digest(secret: str) -> bytes:
    """Return what is compared in place of a secret, so that the time reveals nothing about it."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


class Tokens:
    """The tokens that hold.

    Any number of wrong ones keeps a right one from nothing: nothing counts them.

    Attributes:
        on_revoked: called with the caller of each token that does not hold any more, at once.
    """

    def __init__(self, console: str) -> None:
        """Take the secret of the console's own token."""
        self._console = digest(console)
        self._callers: dict[bytes, Caller] = {
            self._console: Caller(CONSOLE, Right.ADMINISTER, self._console.hex())
        }
        self.on_revoked: list[Callable[[Caller], None]] = []

    def find(self, secret: object) -> Caller | None:
        """Return whose token a secret is; None for a wrong one."""
        if not isinstance(secret, str) or len(secret) > TOKEN_MAX:
            return None
        return self._callers.get(digest(secret.strip()))
