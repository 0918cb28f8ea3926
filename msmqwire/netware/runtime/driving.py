"""The interface that performs operations on a queue service and makes them durable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from msmqwire.netware.model.files import AnyFile
from msmqwire.netware.rules.service import QueueService

T = TypeVar("T")


class OperationDriver(Protocol):
    """Performs operations in order, each durable before it returns."""

    async def run(self, operation: Callable[[QueueService], T]) -> T:
        """Perform an operation; return its result once its changes are durable.

        Raises NcpRefused if the service refuses it, StoreError if the disk does: nothing of it remains.
        """

    async def read_file(self, file: AnyFile, offset: int, count: int) -> bytes:
        """Return bytes of a file. Raises StoreError."""

    async def write_file(self, file: AnyFile, offset: int, data: bytes) -> None:
        """Write bytes of a file. Raises StoreError."""
