"""The queue manager of a data folder: its name, its addresses, its core."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid4

from msmqwire.constants import HResult
from msmqwire.errors import InvalidName
from msmqwire.names import PathName
from msmqwire.names.addresses import is_loopback
from msmqwire.qm.model.elements import QueueManager
from msmqwire.qm.model.hand_outs import HandOuts
from msmqwire.qm.model.message import NULL_GUID
from msmqwire.qm.model.settings import KeptSettings, Settings
from msmqwire.qm.model.tables import Table
from msmqwire.qm.protocols.remote_read.configuration import RemoteReadConfiguration
from msmqwire.qm.rules import recovery
from msmqwire.qm.rules.routing import Routes
from msmqwire.qm.security.configuration import SecurityConfiguration
from msmqwire.service.restoring import restoring
from msmqwire.service.store import Store

if TYPE_CHECKING:
    from msmqwire.qm.core import Core

QUOTA: Final = 8 << 30
"""Default quota of a new queue manager in bytes. The specification's QueueManagerQuota is 1 MiB."""
LISTENING: Final = b"ListensAt"
IMPORT_NOTE: Final = b"Import"
"""The row with what an import of definitions has yet to change in keys and directory."""
_LOCALHOST: Final = "localhost"
_OF_LOCALHOST: Final = ("127.0.0.1", "::1")


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


def check_domain(domain: str, name: str) -> str:
    """Return `domain` if it can follow the name of a computer, or is empty. Raises InvalidName."""
    if domain:
        check_name(domain)
        check_name(f"{name}.{domain}")
        if not all(domain.split(".")):
            raise InvalidName(
                f"{domain!r:.80} is not a DNS domain: it has an empty part",
                hresult=HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME,
            )
    return domain


def stored_name(store: Store) -> str:
    """Return the computer name of the queue manager that a store belongs to; empty for a new store.

    Raises StoreDamaged.
    """
    manager = QueueManager(NULL_GUID)
    with restoring(store):
        recovery.restore_attributes(manager, store)
        return check_name(manager.computer_name) if manager.computer_name else ""


def own_addresses(listening: str) -> tuple[str, ...]:
    """Return the names and addresses of a queue manager that listens at an address; empty if it is not known.

    If it listens at a loopback address, other loopback addresses are not its own: another queue manager may
    listen there.
    """
    if listening == _LOCALHOST or not is_loopback(listening):
        return (".", listening, _LOCALHOST, *_OF_LOCALHOST)
    return (".", listening, _LOCALHOST) if listening in _OF_LOCALHOST else (".", listening)


def open_core(
    store: Store,
    name: str,
    *,
    listening: str | None = None,
    settings: Settings | None = None,
    keep: KeptSettings | None = None,
    known_hosts: Collection[str] = (),
    domain: str = "",
    configurations: Mapping[str, object] | None = None,
    remote_read: RemoteReadConfiguration | None = None,
    security: SecurityConfiguration | None = None,
    routes: Routes | None = None,
    identifier: UUID = NULL_GUID,
    quota: int | None = None,
    hand_outs: HandOuts | None = None,
) -> Core:
    """Create the core of a store without starting it; a new queue manager gets `QUOTA` by default.

    `listening` is its address for sessions, by default that of the last run.

    Raises StoreDamaged.
    """
    from msmqwire.qm.core import Core  # all protocols

    if quota is None and not stored_name(store):
        quota = QUOTA
    with restoring(store):
        before = (store.row(Table.META, LISTENING) or b"").decode()
        core = Core(
            store,
            new_guid=uuid4,
            computer_name=name,
            settings=settings,
            keep=keep,
            addresses=own_addresses(before if listening is None else listening),
            known_hosts=known_hosts,
            domain=domain,
            configurations=configurations,
            remote_read=remote_read,
            routes=routes,
            security=security or SecurityConfiguration(random_bytes=secrets.token_bytes),
            identifier=identifier,
            quota=quota,
            hand_outs=hand_outs,
        )
    if store.row(Table.META, IMPORT_NOTE) is not None:
        core.context.changes.delete(Table.META, IMPORT_NOTE)  # it has been done: see `finish_import`
    if listening is not None and listening != before:
        core.context.changes.put(Table.META, LISTENING, listening.encode())
    return core
