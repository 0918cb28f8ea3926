"""The caller of a remote procedure, and its identity in access checks and limits."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from msmqwire.headers.security_descriptor import sid_bytes
from msmqwire.names.origins import origin_of
from msmqwire.qm.model.access import ANONYMOUS, LOCAL_SYSTEM, Token

_SUB_AUTHORITIES: Final = 4


def user_sid(name: str) -> bytes:
    r"""Return the SID for a user known only by name, ``DOMAIN\user`` in any case.

    A queue manager outside a domain has no accounts with SIDs of their own: S-1-5-21 is followed by 128 bits
    of a hash of the name, so that a descriptor can name the user.
    """
    digest = sha256(name.upper().encode("utf-16-le", "surrogatepass")).digest()
    parts = [int.from_bytes(digest[4 * i : 4 * i + 4], "little") for i in range(_SUB_AUTHORITIES)]
    return sid_bytes("-".join(["S-1-5-21", *map(str, parts)]))


@dataclass(frozen=True, slots=True)
class Caller:
    r"""The caller, as the security provider of its association identifies it: [MS-RPCE] 3.3.3.4.3.

    Attributes:
        name: ``DOMAIN\user``; empty for an anonymous caller.
        sid: its SID; empty if only the name is known, see `user_sid`.
        groups: the SIDs of its groups.
        origin: the address from which it calls.
    """

    name: str = ""
    sid: bytes = b""
    groups: frozenset[bytes] = frozenset()
    origin: str = ""

    @property
    def is_anonymous(self) -> bool:
        """Whether the caller is not identified."""
        return not self.name

    @property
    def identity(self) -> tuple[str, bytes]:
        """The key that all calls of one user share."""
        return self.name.upper(), self.sid

    @property
    def counted_as(self) -> str:
        """The key under which limits count the caller: its name, or its origin without one."""
        return self.name.upper() or origin_of(self.origin)

    @property
    def token(self) -> Token:
        """The user on whose behalf access is checked.

        A server admits only the users that its administrator has listed, or everybody if it is so configured.
        They have the rights of the queue manager's own account, S-1-5-18, which owns its queues by default,
        unless an entry of the descriptor denies these rights to the caller or one of its groups.
        """
        user = ANONYMOUS if self.is_anonymous else self.sid or user_sid(self.name)
        return Token.of(user, self.groups | {LOCAL_SYSTEM})
