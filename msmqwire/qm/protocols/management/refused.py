"""Calls that fail."""

from __future__ import annotations


class ManagementRefused(Exception):
    """A call fails: `status` is its return value, an HRESULT."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{status:#010x}")
        self.status = int(status)
