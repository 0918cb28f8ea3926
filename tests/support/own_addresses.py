"""Addresses that no other process of a test run uses, for ports that are fixed."""

from __future__ import annotations

import os
import socket

_PROCESS = os.getpid()


def own_loopback(number: int) -> str:
    """Return an address of the loopback interface."""
    return f"127.{1 + _PROCESS // 250 % 250}.{_PROCESS % 250}.{number}"


def own_group(number: int) -> str:
    """Return a multicast address. All its listeners receive datagrams to the second port of PGM in UDP."""
    return f"234.{1 + _PROCESS // 250 % 250}.{_PROCESS % 250}.{number}"


def has_ipv6() -> bool:
    """Whether an IPv6 socket can be bound."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind(("::", 0))
    except OSError:
        return False
    return True
