"""The protocols that have joined: each has a `Registration` in the module ``registration`` of its folder.

The rest of the queue manager looks for them in this folder and names none, so that a protocol is added or
removed with its own files alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules, resolve_name
from typing import Any

from msmqwire.qm import protocols
from msmqwire.qm.protocols.interface import Registration


@cache
def registrations() -> tuple[Registration, ...]:
    """Return the registrations of all protocols, in their order."""
    folders = (module.name for module in iter_modules(protocols.__path__) if module.ispkg)
    modules = (f"{protocols.__name__}.{folder}.registration" for folder in folders)
    found = [import_module(module).PROTOCOL for module in modules if find_spec(module) is not None]
    return tuple(sorted(found, key=lambda registration: registration.order))


def registered(field: str) -> Iterator[tuple[str, Any]]:
    """Yield the name of each protocol with a part registered in a field, and the part, imported."""
    for registration in registrations():
        if named := getattr(registration, field):
            yield registration.name, resolve_name(named)


def effects() -> Iterator[type]:
    """Yield the kinds of effects that protocols have registered."""
    for registration in registrations():
        yield from map(resolve_name, registration.effects)
