"""Whose token a secret is: secrets are kept nowhere, their digests are compared."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Final

from msmqwire.qm.rules.api_tokens import CONSOLE, ApiToken, ApiTokens
from msmqwire.qm.runtime.api.rights import Caller, Right
from msmqwire.qm.runtime.token_operations import TOKEN_BYTES, digest, new_token

__all__ = ["TOKEN_BYTES", "TOKEN_MAX", "Tokens", "digest", "new_token"]
TOKEN_MAX: Final = 256
"""The most characters of a token: longer ones are not checked."""


class Tokens:
    """The tokens that hold: that of the console, and those of the store once it is restored.

    Any number of wrong ones keeps a right one from nothing: nothing counts them.

    Attributes:
        on_revoked: called with the caller of each token that does not hold any more, at once.
    """

    def __init__(self, console: str) -> None:
        """Take the secret of the console's own token."""
        self._console = digest(console)
        self._stored: ApiTokens | None = None
        self.on_revoked: list[Callable[[Caller], None]] = []

    def use(self, stored: ApiTokens) -> None:
        """Take the tokens of a store, which has been restored."""
        self._stored = stored
        stored.when_revoked.append(self._revoked)

    def find(self, secret: object) -> Caller | None:
        """Return whose token a secret is; None for a wrong one."""
        if not isinstance(secret, str) or len(secret) > TOKEN_MAX:
            return None
        found = digest(secret.strip())
        if hmac.compare_digest(found, self._console):
            return Caller(CONSOLE, Right.ADMINISTER, found.hex())
        token = None if self._stored is None else self._stored.find(found)
        return None if token is None else _caller(token)

    def _revoked(self, token: ApiToken) -> None:
        for listener in list(self.on_revoked):
            listener(_caller(token))


def _caller(token: ApiToken) -> Caller:
    return Caller(token.name, token.right, token.digest.hex())
