"""Addresses that no other process of a test run uses, for ports that are fixed."""

from __future__ import annotations

import os

_PROCESS = os.getpid()


def own_loopback(number: int) -> str:
    """Return an address of the loopback interface."""
    return f"127.{1 + _PROCESS // 250 % 250}.{_PROCESS % 250}.{number}"


def own_group(number: int) -> str:
    """Return a multicast address. All who listen to it hear what comes to the second port of PGM in UDP."""
    return f"234.{1 + _PROCESS // 250 % 250}.{_PROCESS % 250}.{number}"
