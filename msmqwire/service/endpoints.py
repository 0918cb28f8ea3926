"""Addresses and ports at which a service listens, and from which it connects."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Final, TypeAlias

LOOPBACK: Final = "127.0.0.1"

Endpoint: TypeAlias = tuple[str, int]
"""An address and a port."""


def canonical(address: str) -> str:
    """Return an address without its zone, and a mapped IPv4 address in dotted form."""
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(parsed)


def local_address(listening: str, peer: str) -> tuple[str, int] | None:
    """Return the local address to connect from: on the loopback the listening address, else None for any."""
    try:
        local, remote = ip_address(listening), ip_address(peer)
    except ValueError:
        return None
    is_loopback = local.is_loopback and remote.is_loopback and local.version == remote.version
    return (str(local), 0) if is_loopback else None  # MQQB-2.1.1-06
