"""The keys of flows in arrays: addresses and ports as integers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

_LOW: Final = (1 << 64) - 1


def key_of(src: str, src_port: int, dst: str, dst_port: int, network: int = 0) -> tuple[int, ...]:
    """Return the key of a flow: the first fields of a header, see `msmqwire.tables.compiled.network`."""
    src_high, src_low, is_ipv6 = _halves(src)
    dst_high, dst_low, _ = _halves(dst)
    return src_high, src_low, dst_high, dst_low, src_port << 16 | dst_port, network << 1 | is_ipv6


@lru_cache(1 << 16)
def _halves(address: str) -> tuple[int, int, int]:
    """Return both halves of an address as signed integers, and whether it is one of IPv6."""
    parsed = ip_address(address)
    high, low = (half - (half >> 63 << 64) for half in (int(parsed) >> 64, int(parsed) & _LOW))
    return high, low, int(parsed.version == 6)


@lru_cache(1 << 16)
def address_of(high: int, low: int, ipv6: int) -> str:
    """Return the text of an address."""
    number = (high & _LOW) << 64 | low & _LOW
    return str(IPv6Address(number) if ipv6 else IPv4Address(number))


def ends_of(key: Iterable[int]) -> tuple[str, int, str, int, int]:
    """Return the parts of this key: both endpoints, and their network."""
    src_high, src_low, dst_high, dst_low, ports, is_ipv6 = map(int, key)
    src, dst = address_of(src_high, src_low, is_ipv6 & 1), address_of(dst_high, dst_low, is_ipv6 & 1)
    return src, ports >> 16, dst, ports & 0xFFFF, is_ipv6 >> 1
