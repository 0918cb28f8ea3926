"""The data folder of a queue manager: its store, its identity and the address of its server."""

from __future__ import annotations

import json
import os
import secrets
import socket
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4

from msmqwire.constants import HResult
from msmqwire.errors import InvalidName, StoreMissing, StoreRefused
from msmqwire.names import PathName
from msmqwire.qm.core import Core
from msmqwire.qm.model.elements import QueueManager
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.settings import KeptSettings, Settings
from msmqwire.qm.protocols.remote_read.configuration import RemoteReadConfiguration
from msmqwire.qm.protocols.srmp.configuration import SrmpConfiguration
from msmqwire.qm.rules import recovery
from msmqwire.qm.rules.routing import Routes
from msmqwire.qm.runtime.key_ring import KEYS
from msmqwire.qm.runtime.logs import log
from msmqwire.qm.runtime.restoring import restoring
from msmqwire.qm.runtime.user_certificates import DIRECTORY
from msmqwire.qm.security.configuration import SecurityConfiguration
from msmqwire.qm.store import Store
from msmqwire.qm.store.sqlite import SqliteStore

STORE: Final = "queues.msmq"
CONTROL: Final = "control"
QUOTA: Final = 8 << 30
"""Default quota of a new queue manager in bytes. The specification's QueueManagerQuota is 1 MiB."""
_SOCKET: Final = "control.sock"
_NEW_CONTROL: Final = CONTROL + ".new"
_OWNER_ONLY: Final = 0o700
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_FILES: Final = (
    *(STORE + suffix for suffix in ("", "-wal", "-shm", ".lock", ".new", ".reserve")),
    *(CONTROL, _NEW_CONTROL, _SOCKET),
    *(KEYS, KEYS + ".new", DIRECTORY),
)
_LOCAL: Final = (".", "localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class ControlAddress:
    """Address of the control channel of a server.

    Attributes:
        path: of a Unix socket; empty for none.
        port: TCP port of the loopback address 127.0.0.1, where there are no Unix sockets.
        token: proof, over TCP, that a client can read the folder.
    """

    path: str = ""
    port: int = 0
    token: str = ""


class DataFolder:
    """The data folder, DIR of ``msmqwire serve --data DIR``.

    Attributes:
        path: the folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def create(self) -> None:
        """Create the folder if it is missing, accessible to its owner only, and secure one that is there.

        Raises StoreRefused.
        """
        try:
            self.path.mkdir(mode=_OWNER_ONLY, parents=True, exist_ok=True)
            if os.name == "posix":
                self._secure()
        except OSError as exc:
            raise StoreRefused(exc.strerror or str(exc), file=str(self.path)) from None

    def _secure(self) -> None:
        """Let nobody else create files in the folder, or refuse one in which somebody else can, or has.

        Whoever can write into it can put links in place of our files, and a socket in place of ours.
        """
        trusted = {os.geteuid(), 0}
        status = self.path.stat()
        if status.st_uid not in trusted:
            raise StoreRefused("the folder belongs to another user", file=str(self.path))
        others = status.st_mode & _WRITABLE_BY_OTHERS
        if others and status.st_uid == os.geteuid():
            self.path.chmod(stat.S_IMODE(status.st_mode) & ~_WRITABLE_BY_OTHERS)
            log.warning("others could write into the folder: not any more", extra={"folder": str(self.path)})
        elif others & stat.S_IWOTH:
            raise StoreRefused("everybody can write into the folder", file=str(self.path))
        for name in _FILES:
            path = self.path / name
            try:
                owner = path.lstat().st_uid  # of a link itself: its owner chose where it leads
            except FileNotFoundError:
                continue
            if owner not in trusted:
                raise StoreRefused("the file belongs to another user", file=str(path))

    def open_store(self, *, create: bool) -> SqliteStore:
        """Open the store exclusively. Raises the subclasses of StoreError."""
        if create:
            self.create()
        elif not (self.path / STORE).exists():
            raise StoreMissing("there is no queue manager in this folder", file=str(self.path))
        return SqliteStore(self.path / STORE, create=create)

    # -- the control channel ------------------------------------------------------------------------------

    @property
    def socket_path(self) -> Path:
        """Path of the Unix socket, unless it is too long for one."""
        return self.path.resolve() / _SOCKET

    def write_control(self, address: ControlAddress) -> None:
        """Write the address of the control channel, readable by the owner of the folder only."""
        new = self.path / _NEW_CONTROL
        new.unlink(missing_ok=True)  # left by a server that was killed; a link would be followed
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump({"path": address.path, "port": address.port, "token": address.token}, file)
        os.replace(new, self.path / CONTROL)

    def remove_control(self) -> None:
        """Remove the address of the control channel: the server has stopped."""
        (self.path / CONTROL).unlink(missing_ok=True)

    def control(self) -> ControlAddress | None:
        """Return the address that a server has written; it may have been killed since."""
        try:
            address = json.loads((self.path / CONTROL).read_text(encoding="utf-8"))
            return ControlAddress(str(address["path"]), int(address["port"]), str(address["token"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None


def default_name() -> str:
    """Return the name of this computer without its domain."""
    return socket.gethostname().partition(".")[0] or "localhost"


def check_name(name: str) -> str:
    """Return `name` if path names and direct format names allow it for a computer. Raises InvalidName."""
    if not name.isascii() or not all(char.isalnum() or char in "-_." for char in name) or name in ("", "."):
        raise InvalidName(
            f"{name!r:.80} is not the name of a computer: letters, digits, hyphens, dots",
            hresult=HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME,
        )
    PathName(name, "queue", private=True)
    return name


def stored_name(store: Store) -> str:
    """Return the computer name of the queue manager that a store belongs to; empty for a new store.

    Raises StoreDamaged.
    """
    manager = QueueManager(NULL_GUID)
    with restoring(store):
        recovery.restore_attributes(manager, store)
        return check_name(manager.computer_name) if manager.computer_name else ""


def open_core(
    store: Store,
    name: str,
    *,
    settings: Settings | None = None,
    keep: KeptSettings | None = None,
    addresses: tuple[str, ...] = (),
    known_hosts: Collection[str] = (),
    srmp: SrmpConfiguration | None = None,
    remote_read: RemoteReadConfiguration | None = None,
    security: SecurityConfiguration | None = None,
    routes: Routes | None = None,
    identifier: UUID = NULL_GUID,
    quota: int | None = None,
) -> Core:
    """Create the core of a store without starting it; a new queue manager gets `QUOTA` by default.

    Raises StoreDamaged.
    """
    if quota is None and not stored_name(store):
        quota = QUOTA
    with restoring(store):
        return Core(
            store,
            new_guid=uuid4,
            computer_name=name,
            settings=settings,
            keep=keep,
            addresses=(*_LOCAL, *addresses),
            known_hosts=known_hosts,
            srmp=srmp,
            remote_read=remote_read,
            routes=routes,
            security=security or SecurityConfiguration(random_bytes=secrets.token_bytes),
            identifier=identifier,
            quota=quota,
        )
