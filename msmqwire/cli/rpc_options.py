"""The options of ``msmqwire serve`` for remote read."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final

from click import BadParameter

from msmqwire.cli.common import readable
from msmqwire.cli.options import Option
from msmqwire.qm.model.enumerations import ManageAccess
from msmqwire.qm.runtime.rpc.network import RpcOptions
from msmqwire.qm.runtime.rpc.users import load_users
from msmqwire.remote_read.constants import DEFAULT_PORT
from msmqwire.rpc.constants import ENDPOINT_MAPPER_PORT, AuthLevel


class RpcAuth(Enum):
    """The values of ``--rpc-auth``."""

    NONE = "none"
    CONNECT = "connect"
    INTEGRITY = "integrity"
    PRIVACY = "privacy"


LEVELS: Final = MappingProxyType(
    {
        RpcAuth.NONE: AuthLevel.NONE,
        RpcAuth.CONNECT: AuthLevel.CONNECT,
        RpcAuth.INTEGRITY: AuthLevel.PKT_INTEGRITY,
        RpcAuth.PRIVACY: AuthLevel.PKT_PRIVACY,
    }
)
Rpc = Annotated[
    str | None,
    Option(
        metavar="ADDR:PORT",
        help=f"Address for other computers to read the queues at (remote read); usually port {DEFAULT_PORT}.",
    ),
]
Mapper = Annotated[
    str | None,
    Option(
        metavar="ADDR:PORT",
        help=f"Address of the endpoint mapper, which answers with the port of --rpc; other computers ask at "
        f"port {ENDPOINT_MAPPER_PORT}.",
    ),
]
Users = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help=r"Users that may read, one a line: DOMAIN\user:password, DOMAIN\user:$NT$ and the NT hash, "
        r"or REALM\user:$KERBEROS$. The file must be its owner's alone, mode 0600.",
    ),
]
Auth = Annotated[
    RpcAuth,
    Option(help="The least protection of calls; none takes anonymous callers, too."),
]
Manage = Annotated[
    ManageAccess,
    Option(
        help="Who may see all queues and pause, resume and disconnect them from other computers, as their "
        "administrator: none; callers, everybody whose calls --rpc-auth takes; or users, those of "
        "--rpc-users alone."
    ),
]
Pending = Annotated[
    int,
    Option(
        min=1,
        max=0xFFFFFFFF // 1000,
        help="Seconds after which a message returns to its queue if a remote reader has received it and not "
        "ended its receive.",
    ),
]


def check_rpc(
    rpc: str | None, mapper: str | None, users: Path | None, auth: RpcAuth, manage: ManageAccess
) -> None:
    """Raise BadParameter for options that do not go together."""
    if manage is not ManageAccess.NONE and rpc is None:
        raise BadParameter(f"--rpc-manage {manage.value} needs --rpc, the address that it is at")
    if manage is ManageAccess.USERS and users is None:
        raise BadParameter("--rpc-manage users needs --rpc-users, the file that lists them")
    if rpc is None:
        for option, given in (("--endpoint-mapper", mapper), ("--rpc-users", users)):
            if given is not None:
                raise BadParameter(f"{option} is for --rpc")
    elif users is None and auth is not RpcAuth.NONE:
        raise BadParameter("--rpc needs --rpc-users, or --rpc-auth none to let in everybody")


def with_users(options: RpcOptions | None, users: Path | None) -> RpcOptions | None:
    """Return options with the users of a file. Raises NoInput, and InvalidValue for contents."""
    if options is None or users is None:
        return options
    readable(users)
    return replace(options, users=load_users(users))
