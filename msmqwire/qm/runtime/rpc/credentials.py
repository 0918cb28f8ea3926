"""Credentials for remote calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from msmqwire.errors import InvalidValue
from msmqwire.rpc.constants import AuthLevel, AuthType

if TYPE_CHECKING:
    from msmqwire.rpc.security import SecurityContext


@dataclass(frozen=True, slots=True)
class Credentials:
    r"""The caller, and the protection of calls.

    Attributes:
        level: the authentication level; above NONE there is a user.
        user: ``DOMAIN\user``.
        password: the password, or ``$NT$`` and the 32 hexadecimal digits of the NT hash.
    """

    level: AuthLevel = AuthLevel.NONE
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    def context(self, host: str) -> SecurityContext | None:
        """Return the client's end of a security context, None for anonymous calls.

        Raises AuthenticationFailed, and InvalidValue without the library for it.
        """
        if self.level <= AuthLevel.NONE:
            return None
        try:
            from msmqwire.qm.runtime.rpc.security import initiator
        except ModuleNotFoundError as exc:
            why = f"needs the extra msmqwire[qm]: {exc.name} is not installed"
            raise InvalidValue(why, path="auth") from None
        return initiator(AuthType.WINNT, self.level, user=self.user, password=self.password, host=host)


ANONYMOUS: Final = Credentials()
