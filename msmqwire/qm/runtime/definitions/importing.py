"""Definitions of a queue manager: exported, and imported all or nothing.

An import is checked whole first. Everything in the store of queues is changed in one commit, which notes what
is to change in keys and directory; that follows, and then the note goes. A process that is killed before the
commit has changed nothing, after it the next start does the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msmqwire.errors import InvalidValue
from msmqwire.qm.model.tables import Table
from msmqwire.qm.runtime.definitions import (
    key_definitions,
    option_definitions,
    policy_definitions,
    queue_definitions,
)
from msmqwire.qm.runtime.definitions.changes import Change, Plan
from msmqwire.qm.runtime.definitions.text import ITEMS_MAX, VERSION, VERSION_NAME, check_version
from msmqwire.qm.runtime.folder import IMPORT_NOTE
from msmqwire.qm.runtime.kept_options import ROW as OPTIONS
from msmqwire.qm.runtime.kept_options import KeptOptions
from msmqwire.qm.runtime.key_ring import KeyFile, KeyRing

if TYPE_CHECKING:
    from msmqwire.qm.core import Core


def _check_triggers(plan: Plan, items: list[Any], path: str) -> None:
    if items:
        raise InvalidValue("this version has no triggers", path=f"{path}[0]")


_CHECKS: Final[Mapping[str, Callable[[Plan, list[Any], str], None]]] = {
    "settings": option_definitions.check_settings,
    "hosts": option_definitions.check_hosts,
    "routes": option_definitions.check_routes,
    "policies": policy_definitions.check,
    "queues": queue_definitions.check,
    "triggers": _check_triggers,
    "certificates": key_definitions.check_certificates,
    "keys": key_definitions.check_keys,
    "peer_keys": key_definitions.check_peer_keys,
}
"""The lists of definitions, in the order in which they are imported."""


class FolderKeys(NamedTuple):
    """The keys of a folder, and the certificates that are registered in it."""

    ring: KeyRing
    registered: list[tuple[bytes, bytes, Sequence[bytes]]]

    @classmethod
    def read(cls, folder: Path | None) -> FolderKeys:
        """Read them, outside of a queue manager, which a file that can't be read must not end.

        Raises as `KeyFile.read` and the directory do.
        """
        if folder is None:
            return cls(KeyRing(), [])
        return cls(KeyFile(folder).read(), key_definitions.registered(folder))


def exported(core: Core, keys: FolderKeys, kept: KeptOptions, *, secrets: bool) -> dict[str, Any]:
    """Return the definitions of a queue manager; with private keys if `secrets`."""
    ring = keys.ring
    found: dict[str, Any] = {
        VERSION_NAME: VERSION,
        "queues": queue_definitions.exported(core),
        "policies": policy_definitions.exported(core),
        "triggers": [],
        "certificates": key_definitions.certificates(*keys, secrets=secrets),
        "routes": option_definitions.hosts(kept, routes=True),
        "hosts": option_definitions.hosts(kept, routes=False),
        "settings": option_definitions.settings(kept),
    }
    if secrets:
        found |= {"keys": key_definitions.keys(ring), "peer_keys": key_definitions.peer_keys(ring)}
    return found


def planned(core: Core, keys: FolderKeys, kept: KeptOptions, definitions: Mapping[str, Any]) -> Plan:
    """Return what an import of definitions would change, without changing anything.

    Raises InvalidValue with the path of the first wrong item, as ``queues[7].quota``.
    """
    check_version(definitions)
    for name, items in definitions.items():
        if name == VERSION_NAME:
            continue
        if name not in _CHECKS:
            raise InvalidValue(f"none of {', '.join(_CHECKS)}", path=name[:100])
        if not isinstance(items, list):
            raise InvalidValue("not a list", path=name)
    count = sum(len(items) for name, items in definitions.items() if name != VERSION_NAME)
    if count > ITEMS_MAX:
        raise InvalidValue(
            f"{count:,} items, and there may be {ITEMS_MAX:,}: divide the definitions", path=""
        )
    plan = Plan(core, keys.ring, key_definitions.names_of(keys.registered), kept)
    for name, check in _CHECKS.items():
        if name in definitions:
            check(plan, definitions[name], name)
    if plan.options != kept:
        plan.steps.append(_options_step(core, plan.options, kept))
    return plan


def _options_step(core: Core, options: KeptOptions, former: KeptOptions) -> Callable[[], Callable[[], None]]:
    def step() -> Callable[[], None]:
        keep(core, options)
        return lambda: keep(core, former)

    return step


def keep(core: Core, options: KeptOptions) -> None:
    """Keep options in the folder."""
    core.context.changes.put(Table.META, OPTIONS, options.row())


def apply(plan: Plan) -> list[Change]:
    """Make the changes of a plan in the store of queues, for one commit, and note those of the other files.

    Raises QueueError if the queue manager refuses one; then nothing is changed.
    """
    undo: list[Callable[[], None]] = []
    try:
        for step in plan.steps:
            undo.append(step())
    except BaseException:
        for back in reversed(undo):
            back()
        raise
    if plan.secrets:
        plan.core.context.changes.put(Table.META, IMPORT_NOTE, json.dumps(plan.secrets).encode())
    return plan.changes


def finished(core: Core) -> None:
    """Remove the note of an import, whose changes of keys and directory are made."""
    core.context.changes.delete(Table.META, IMPORT_NOTE)
