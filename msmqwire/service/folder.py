"""A folder, served by one process at a time: its protection, and the address of its control channel."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from msmqwire.errors import StoreRefused
from msmqwire.service.logs import log

_OWNER_ONLY: Final = 0o700
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_STORE_SUFFIXES: Final = ("", "-wal", "-shm", ".lock", ".new", ".reserve")


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
        more_names: the names of further files of the server.
    """

    store_name: ClassVar[str]
    control_name: ClassVar[str]
    more_names: ClassVar[tuple[str, ...]] = ()

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
            if os.name == "posix":
                self._secure()
        except OSError as exc:
            raise StoreRefused(exc.strerror or str(exc), file=str(self.path)) from None

    def _secure(self) -> None:
        """Take the right to create files in the folder from other users; refuse a folder in which another
        user can, or has.

        A user who can write into it can put links in place of our files, and a socket in place of ours.
        """
        trusted = {os.geteuid(), 0}
        status = self.path.stat()
        if status.st_uid not in trusted:
            raise StoreRefused("the folder belongs to another user", file=str(self.path))
        others = status.st_mode & _WRITABLE_BY_OTHERS
        if others and status.st_uid == os.geteuid():
            self.path.chmod(stat.S_IMODE(status.st_mode) & ~_WRITABLE_BY_OTHERS)
            log.warning("took the right to write from other users", extra={"folder": str(self.path)})
        elif others & stat.S_IWOTH:
            raise StoreRefused("everybody can write into the folder", file=str(self.path))
        control = self.control_name
        names = [self.store_name + suffix for suffix in _STORE_SUFFIXES]
        for name in (*names, control, self._new_control, self._socket_name, *self.more_names):
            path = self.path / name
            try:
                owner = path.lstat().st_uid  # the owner of a link itself: its owner chose the target
            except FileNotFoundError:
                continue
            if owner not in trusted:
                raise StoreRefused("the file belongs to another user", file=str(path))

    # -- the control channel ------------------------------------------------------------------------------

    @property
    def _new_control(self) -> str:
        return self.control_name + ".new"

    @property
    def _socket_name(self) -> str:
        return self.control_name + ".sock"

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
        """Return the address that a server has written; it may have been killed since."""
        try:
            address = json.loads((self.path / self.control_name).read_text(encoding="utf-8"))
            return ControlAddress(str(address["path"]), int(address["port"]), str(address["token"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None
