"""The data folder of a queue manager: its store, its identity and the address of its server."""

from __future__ import annotations

import json
import os
import socket
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
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.rules import recovery
from msmqwire.qm.store import Store
from msmqwire.qm.store.sqlite import SqliteStore

STORE: Final = "queues.msmq"
CONTROL: Final = "control"
QUOTA: Final = 8 << 30
"""Default quota of a new queue manager in bytes. The specification's QueueManagerQuota is 1 MiB."""
_OWNER_ONLY: Final = 0o700
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
        """Create the folder if it is missing, accessible to its owner only. Raises StoreRefused."""
        try:
            self.path.mkdir(mode=_OWNER_ONLY, parents=True, exist_ok=True)
        except OSError as exc:
            raise StoreRefused(exc.strerror or str(exc), file=str(self.path)) from None

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
        return self.path.resolve() / "control.sock"

    def write_control(self, address: ControlAddress) -> None:
        """Write the address of the control channel, readable by the owner of the folder only."""
        new = self.path / (CONTROL + ".new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
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
    """Return the computer name of the queue manager that a store belongs to; empty for a new store."""
    manager = QueueManager(NULL_GUID)
    recovery.restore_attributes(manager, store)
    return manager.computer_name


def open_core(
    store: Store,
    name: str,
    *,
    settings: Settings | None = None,
    addresses: tuple[str, ...] = (),
    known_hosts: Collection[str] = (),
    identifier: UUID = NULL_GUID,
    quota: int | None = None,
) -> Core:
    """Create the core of a store without starting it; a new queue manager gets `QUOTA` by default."""
    if quota is None and not stored_name(store):
        quota = QUOTA
    return Core(
        store,
        new_guid=uuid4,
        computer_name=name,
        settings=settings,
        addresses=(*_LOCAL, *addresses),
        known_hosts=known_hosts,
        identifier=identifier,
        quota=quota,
    )
