"""The protocols that join the analysis of captures, each by a module here that has a `PROTOCOL`.

The rest finds them by looking into this folder, and names none: a protocol is added and removed with its own
files. `protocol.py` has the parts of a registration. Sessions of MSMQ and its pings are the core of the
analysis, and do not register.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from msmqwire.analysis.protocols.protocol import CaptureProtocol

_OWN: Final = frozenset({"protocol", "readings"})
"""The modules here that are not protocols."""


@cache
def protocols() -> tuple[CaptureProtocol, ...]:
    """Return the protocols, in their order."""
    names = sorted(module.name for module in iter_modules(__path__) if module.name not in _OWN)
    found = [import_module(f"{__name__}.{name}").PROTOCOL for name in names]
    return tuple(sorted(found, key=lambda protocol: protocol.order))


@cache
def _by_packet() -> dict[type, CaptureProtocol]:
    return {protocol.packets.type: protocol for protocol in protocols()}


def protocol_of(packet: object) -> CaptureProtocol | None:
    """Return the protocol that a packet is of; None for one of MSMQ, and for anything but a packet."""
    return _by_packet().get(type(packet))


def stream_ports() -> tuple[int, ...]:
    """Return the ports of TCP of all protocols."""
    return tuple(port for protocol in protocols() for port in protocol.traffic.stream_ports)


def datagram_ports() -> tuple[int, ...]:
    """Return the ports of UDP of all protocols."""
    return tuple(port for protocol in protocols() for port in protocol.traffic.datagram_ports)
