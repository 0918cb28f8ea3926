"""The protocols that join the command line, each by a module here that has a `PROTOCOL`.

The core finds them by looking into this folder, and names none. Their part of the analysis of captures is in
`msmqwire.analysis.protocols`. What the queue manager speaks is among its own options.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from msmqwire.cli.protocols.protocol import CliProtocol

_OWN: Final = frozenset({"protocol", "texts"})
"""The modules here that are not protocols."""


@cache
def protocols() -> tuple[CliProtocol, ...]:
    """Return the protocols, in their order."""
    names = sorted(module.name for module in iter_modules(__path__) if module.name not in _OWN)
    found = [import_module(f"{__name__}.{name}").PROTOCOL for name in names]
    return tuple(sorted(found, key=lambda protocol: protocol.order))
