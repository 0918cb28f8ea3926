"""A folder, served by one process at a time: its protection, and the address of its control channel."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

from msmqwire import ownership
from msmqwire.errors import InvalidValue, StoreRefused
from msmqwire.names.printable import counted
from msmqwire.ownership import Trusted
from msmqwire.service.logs import log

_OWNER_ONLY: Final = 0o700
_SOCKET: Final = ".sock"
_CONTROL_MAX: Final = 65_536


@dataclass(frozen=True, slots=True)
class ControlAddress:
    """Address of the control channel of a server.

    Attributes:
        path: the path of a Unix socket; empty for none.
        port: TCP port of the loopback address 127.0.0.1, on systems without Unix sockets.
        token: proof, over TCP, that a client can read the folder.
    """

    path: str = ""
    port: int = 0
    token: str = ""


class ServedFolder:
    """A folder with a store and the address of the server that has it open.

    Attributes:
        path: the folder.
        store_name: the name of the file of its store.
        control_name: the name of the file with the address of the control channel; its socket ends in
            ``.sock``.
    """

    store_name: ClassVar[str]
    control_name: ClassVar[str]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @classmethod
    def changes(cls, op: str, request: Mapping[str, Any]) -> bool:
        """Return whether a request may have changed anything that outlives its connection."""
        raise NotImplementedError

    def create(self) -> None:
        """Create the folder if it is missing, accessible to its owner only, or secure the existing one.

        Raises StoreRefused.
        """
        try:
            self.path.mkdir(mode=_OWNER_ONLY, parents=True, exist_ok=True)
        except OSError as exc:
            raise StoreRefused(exc.strerror or str(exc), file=str(self.path)) from None
        self.secure()
        for parent in ownership.movers(self.path):
            log.warning(
                "other users can put another folder in its place",
                extra={"folder": str(self.path), "writable": str(parent)},
            )

    def secure(self) -> None:
        """Take the right to create files in the folder from other users; refuse a folder in which another
        user can, or has. Raises StoreRefused.

        A user who can write into it can put links in place of our files, a socket in place of ours, and
        journals beside our stores.
        """
        if not ownership.HAS_MODES:
            return
        try:
            users = self._users()
            faults = list(ownership.entry_faults(self.path, users, sockets=_SOCKET))
        except OSError as exc:
            raise StoreRefused(exc.strerror or str(exc), file=str(self.path)) from None
        if faults:
            path, why = faults[0]
            more = f" (and {counted(len(faults) - 1, 'more entry', 'are')} not safe)" if faults[1:] else ""
            raise StoreRefused(f"{why}{more}", file=str(path))

    def _users(self) -> Trusted:
        """Let others not write into the folder; return who may have written its files.

        Raises StoreRefused, and OSError.
        """
        status = self.path.stat()
        if status.st_uid == os.geteuid() and status.st_mode & ownership.WRITABLE_BY_OTHERS:
            self.path.chmod(stat.S_IMODE(status.st_mode) & ~ownership.WRITABLE_BY_OTHERS)
            log.warning("took the right to write from other users", extra={"folder": str(self.path)})
            status = self.path.stat()  # not every file system has modes
        users = ownership.folder_users(status)
        if fault := ownership.folder_fault(status, users):
            if status.st_uid not in users.owners and os.geteuid() == 0:
                fault += ": run the command as that user"
            raise StoreRefused(fault, file=str(self.path))
        return users

    # -- the control channel ------------------------------------------------------------------------------

    @property
    def _new_control(self) -> str:
        return self.control_name + ".new"

    @property
    def _socket_name(self) -> str:
        return self.control_name + _SOCKET

    @property
    def socket_path(self) -> Path:
        """Path of the Unix socket, unless it is too long for one."""
        return self.path.resolve() / self._socket_name

    def write_control(self, address: ControlAddress) -> None:
        """Write the address of the control channel, readable only by the owner of the folder."""
        new = self.path / self._new_control
        new.unlink(missing_ok=True)  # left by a server that was killed; a link would be followed
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump({"path": address.path, "port": address.port, "token": address.token}, file)
        os.replace(new, self.path / self.control_name)

    def remove_control(self) -> None:
        """Remove the address of the control channel: the server has stopped."""
        (self.path / self.control_name).unlink(missing_ok=True)

    def control(self) -> ControlAddress | None:
        """Return the address that a server has written; it may have been killed since.

        Raises StoreRefused if somebody else may have written it: requests would go to a server of theirs.
        """
        path = self.path / self.control_name
        try:
            users = self._writers()
            content = ownership.read_own(path, _CONTROL_MAX, users)
        except InvalidValue as exc:
            raise StoreRefused(exc.why, file=str(path)) from None
        except OSError:
            return None
        try:
            data = json.loads(content)
            address = ControlAddress(str(data["path"]), int(data["port"]), str(data["token"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        return address if not address.path or _holds_sockets(Path(address.path).parent, users) else None

    def _writers(self) -> Trusted | None:
        """Return who may have written the address; None where files have no owners. Raises OSError.

        Root uses the servers of other users.
        """
        if not ownership.HAS_MODES:
            return None
        status = self.path.stat()
        users = ownership.folder_users(status)
        return users if os.geteuid() else replace(users, owners=users.owners | {status.st_uid})


def _holds_sockets(folder: Path, users: Trusted | None) -> bool:
    """Return whether only `users` can have put a socket into a folder.

    Folders of the temporary folder are gone after a restart of the system: anybody may make one of the same
    name, and a link to it.
    """
    try:
        status = folder.lstat()
    except (OSError, ValueError):
        return False
    if users is None:
        return stat.S_ISDIR(status.st_mode)
    return stat.S_ISDIR(status.st_mode) and not ownership.folder_fault(status, users)
