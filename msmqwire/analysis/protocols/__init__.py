"""The protocols that join the analysis of captures, each by a module here that has a `PROTOCOL`.

The rest finds them by looking into this folder, and names none: a protocol is added and removed with its own
files. `protocol.py` has the parts of a registration. Sessions of MSMQ and its pings are the core of the
analysis, and do not register.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules, resolve_name
from typing import Any, Final, Literal

from msmqwire.analysis.protocols.protocol import CaptureProtocol

_OWN: Final = frozenset({"protocol", "readings"})
"""The modules here that are no protocols."""
_CALLS: Final = 20
"""The order of remote read."""


@cache
def protocols() -> tuple[CaptureProtocol, ...]:
    """Return the protocols, in their order."""
    names = sorted(module.name for module in iter_modules(__path__) if module.name not in _OWN)
    found = [import_module(f"{__name__}.{name}").PROTOCOL for name in names]
    return tuple(sorted(found, key=lambda protocol: protocol.order))


@cache
def _by_packet() -> dict[type, CaptureProtocol]:
    return {protocol.packet: protocol for protocol in protocols()}


def protocol_of(packet: object) -> CaptureProtocol | None:
    """Return the protocol that a packet is of; None for one of MSMQ, and for anything but a packet."""
    return _by_packet().get(type(packet))


def around_calls() -> tuple[tuple[CaptureProtocol, ...], tuple[CaptureProtocol, ...]]:
    """Return the protocols before and after remote read, which does not register, in lists of all."""
    before = tuple(protocol for protocol in protocols() if protocol.order < _CALLS)
    return before, protocols()[len(before) :]


def registered(field: str, among: Iterable[CaptureProtocol]) -> Iterator[Any]:
    """Yield the objects that protocols name as ``module:name`` in a field, imported."""
    for protocol in among:
        for entry in getattr(protocol, field):
            yield resolve_name(entry)


def ports(field: Literal["stream_ports", "datagram_ports"]) -> tuple[int, ...]:
    """Return the ports of all protocols."""
    return tuple(port for protocol in protocols() for port in getattr(protocol, field))
