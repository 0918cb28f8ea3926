"""Origins of peers: the keys by which limits count them."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

UNKNOWN_ORIGIN: Final = "unknown"
"""The origin of messages that an older version has stored on behalf of peers."""
LOOPBACK_ORIGIN: Final = "127.0.0.1"
"""The origin of all addresses of the loopback: any user of this computer has the 2^24 of IPv4."""
_PREFIX: Final = 64


@lru_cache(maxsize=4096)  # limits ask for it with every call of a peer
def origin_of(address: str) -> str:
    """Return the origin by which limits count a peer: its IPv4 address, or the /64 network of its IPv6 one.

    A peer that has one address of an IPv6 network has 2^64 of them. All addresses of the loopback are one
    origin. A text that is not an IP address is its own origin.
    """
    try:
        ip = ip_address(address)
    except ValueError:
        return address or UNKNOWN_ORIGIN
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    if _is_loopback(ip):
        return LOOPBACK_ORIGIN
    if isinstance(ip, IPv4Address):
        return str(ip)
    return str(IPv6Network((int(ip), _PREFIX), strict=False))


def _is_loopback(ip: IPv4Address | IPv6Address) -> bool:
    return ip.is_loopback


def speaker_of(address: str) -> str:
    """Return the key by which a peer speaks for its own queues only: its origin, on the loopback its address.

    Limits count the loopback as one origin, but each queue manager there listens at another address.
    """
    origin = origin_of(address) if address else ""
    return address if origin == LOOPBACK_ORIGIN else origin
