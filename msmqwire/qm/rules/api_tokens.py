"""Tokens of the API: names with rights, found by the digest of a secret that is kept nowhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from msmqwire.errors import InvalidValue
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules.recovery import Stored

NAME_MAX: Final = 100
"""Limit of the name of a token in characters."""
TOKENS_MAX: Final = 10_000
"""Limit of tokens."""
CONSOLE: Final = "console"
"""The name of the token of the console, which no other one may have."""


class Right(StrEnum):
    """What a token allows; each right includes those before it."""

    READ = "read"
    READ_WRITE = "read-write"
    ADMINISTER = "administer"

    def includes(self, other: Right) -> bool:
        """Whether this right is as much as another one, or more."""
        order = list(Right)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token that holds.

    Attributes:
        name: its name.
        right: what it allows.
        created: seconds since 1970-01-01 UTC.
        digest: the SHA-256 digest of its secret.
    """

    name: str
    right: Right
    created: int
    digest: bytes


class ApiTokens:
    """The tokens of a queue manager, each in a row of the store.

    Attributes:
        when_revoked: called with each token that does not hold any more.
    """

    def __init__(self, context: Context, stored: Stored) -> None:
        self._context, self._stored = context, stored
        self._by_digest: dict[bytes, ApiToken] = {}
        self._by_name: dict[str, ApiToken] = {}
        self.when_revoked: list[Callable[[ApiToken], None]] = []

    def restore(self) -> None:
        """Restore the tokens of the store. A row that is damaged allows nothing: it is left out."""
        for key, row in self._stored.rows(Table.TOKEN):
            try:
                told = json.loads(row)
                if not isinstance(key, bytes):
                    continue
                token = ApiToken(str(told["name"]), Right(told["right"]), int(told["created"]), key)
            except (ValueError, TypeError, KeyError):
                continue
            self._add(token)

    def _add(self, token: ApiToken) -> None:
        self._by_digest[token.digest] = self._by_name[token.name] = token

    def find(self, digest: bytes) -> ApiToken | None:
        """Return the token whose secret has a digest; None if none has."""
        return self._by_digest.get(digest)

    def named(self, name: str) -> ApiToken | None:
        """Return the token with a name; None if there is none."""
        return self._by_name.get(name)

    def all(self) -> list[ApiToken]:
        """Return the tokens by name."""
        return [self._by_name[name] for name in sorted(self._by_name)]

    def create(self, name: str, right: Right, digest: bytes) -> ApiToken:
        """Add a token. Raises InvalidValue for a name that is in use, or that no token may have."""
        if not 0 < len(name) <= NAME_MAX or not name.isprintable() or name != name.strip():
            why = f"a name has 1 to {NAME_MAX} printable characters, no spaces around them"
            raise InvalidValue(why, path="name")
        if name in self._by_name or name.lower() == CONSOLE:
            raise InvalidValue(f"a token is named {name} already", path="name")
        if len(self._by_name) >= TOKENS_MAX:
            raise InvalidValue(f"there are {TOKENS_MAX} tokens: revoke some first", path="name")
        token = ApiToken(name, right, self._context.utc, digest)
        row = {"name": name, "right": str(right), "created": token.created}
        self._context.changes.put(Table.TOKEN, digest, json.dumps(row).encode())
        self._add(token)
        return token

    def revoke(self, name: str) -> ApiToken | None:
        """Remove a token, which does not hold any more; return it, or None if there is none of this name."""
        token = self._by_name.pop(name, None)
        if token is None:
            return None
        del self._by_digest[token.digest]
        self._context.changes.delete(Table.TOKEN, token.digest)
        for listener in list(self.when_revoked):
            listener(token)
        return token
