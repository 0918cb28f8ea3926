"""Options for reading queues of other computers: the server and the caller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from msmqwire.errors import InvalidValue
from msmqwire.names import DirectName, FormatName
from msmqwire.qm.runtime.rpc.credentials import ANONYMOUS, Credentials
from msmqwire.rpc.constants import ENDPOINT_MAPPER_PORT, AuthLevel

AUTH_LEVELS: Final[Mapping[str, AuthLevel]] = {
    "none": AuthLevel.NONE,
    "connect": AuthLevel.CONNECT,
    "integrity": AuthLevel.PKT_INTEGRITY,
    "privacy": AuthLevel.PKT_PRIVACY,
}


class RemoteOptions(NamedTuple):
    """The address of the server of remote read, and the caller.

    Attributes:
        host: its address, or a name that can be resolved.
        port: the port of the interface; None to ask the endpoint mapper.
        mapper_port: the port of the endpoint mapper.
        credentials: the credentials of the caller.
    """

    host: str
    port: int | None = None
    mapper_port: int = ENDPOINT_MAPPER_PORT
    credentials: Credentials = ANONYMOUS


def credentials_of(user: object, password: object, auth: object) -> Credentials:
    """Return the credentials of the caller:

    `auth` is a key of AUTH_LEVELS, by default ``privacy`` with a user, else ``none``.

    Raises InvalidValue, with the argument as the path.
    """
    for value, path in ((user, "user"), (password, "password")):
        if value is not None and not isinstance(value, str):
            raise InvalidValue("not a text", path=path)
    if auth is None:
        auth = "none" if user is None else "privacy"
    level = AUTH_LEVELS.get(auth) if isinstance(auth, str) else None
    if level is None:
        raise InvalidValue(f"{auth!r:.100} is none of {', '.join(AUTH_LEVELS)}", path="auth")
    if (user is None) != (password is None):
        why, path = ("a user has a password", "password") if password is None else ("no user", "user")
        raise InvalidValue(why, path=path)
    if level > AuthLevel.NONE and not user:
        raise InvalidValue(f"{auth} needs a user", path="user")
    return Credentials(level, str(user), str(password)) if level > AuthLevel.NONE else ANONYMOUS


def readable(name: FormatName) -> DirectName | None:
    """Return a name by which a queue of another computer can be read: ``DIRECT=TCP:`` or ``DIRECT=OS:``."""
    return name if isinstance(name, DirectName) and name.protocol in ("TCP", "OS") else None
