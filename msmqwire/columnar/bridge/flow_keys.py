"""The keys of flows in arrays: addresses and ports as integers."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

import numpy as np

_LOW: Final = (1 << 64) - 1


def key_of(src: str, src_port: int, dst: str, dst_port: int) -> tuple[int, ...]:
    """Return the key of a flow: the first fields of a header, see `msmqwire.columnar.compiled.network`."""
    source, target = ip_address(src), ip_address(dst)
    halves = int(source) >> 64, int(source) & _LOW, int(target) >> 64, int(target) & _LOW
    signed = np.array(halves, np.uint64).view(np.int64)
    return (*map(int, signed), src_port << 16 | dst_port, int(source.version == 6))


def address_of(high: int, low: int, ipv6: int) -> str:
    """Return the text of an address of a key."""
    number = (high & _LOW) << 64 | low & _LOW
    return str(IPv6Address(number) if ipv6 else IPv4Address(number))
