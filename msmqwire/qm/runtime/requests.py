"""Requests to the queue manager of a folder from programs with asyncio: many at a time.

What `msmqwire.qm.runtime.local` is to commands and other programs that do one thing after the other.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any, Protocol

from msmqwire.errors import StoreInUse
from msmqwire.qm.runtime.folder import DataFolder
from msmqwire.qm.runtime.in_store_requests import InStoreRequests
from msmqwire.qm.runtime.local import RETRY_S, STARTING_S
from msmqwire.qm.runtime.pushed import Pushed
from msmqwire.qm.runtime.served_requests import ServedRequests


class Requests(Protocol):
    """The queue manager of a folder.

    Attributes:
        served: whether requests go through a server.
    """

    served: bool

    async def call(self, op: str, /, **request: Any) -> dict[str, Any]:
        """Run a request of `msmqwire.qm.runtime.operations`, and return its answer.

        Of one that asks for records ``records`` are the messages, each as its receipt and record.

        Raises InvalidValue, InvalidName and QueueError; Unreachable if the server has gone; StoreRefused if
        no server runs and the disk refuses the commit; EngineFailed and RuntimeError for an internal error.
        """

    async def subscribe(self, queue: str, window: int) -> Pushed:
        """Let messages of a queue be pushed, up to a window that are not ended. Raises as `call` does."""

    def done(self, subscription: int, upto: int) -> None:
        """Delete pushed messages up to a receipt, without waiting for it."""

    async def unsubscribe(self, subscription: int, upto: int) -> None:
        """Delete pushed messages up to a receipt, durably, and return the others. Raises as `call` does."""

    async def close(self) -> None:
        """End the session.

        Reads that wait and subscriptions end with MQ_ERROR_OPERATION_CANCELLED, messages received and not
        ended return to their queues, transactions are aborted.
        """


async def open_requests(path: str | os.PathLike[str], *, create: bool = False) -> Requests:
    """Open the queues of a folder: through its server, or in its store if none runs.

    Raises as `msmqwire.qm.runtime.local.attach` does.
    """
    folder = DataFolder(path)
    until = time.monotonic() + STARTING_S
    while True:
        served = await ServedRequests.connect(folder)
        if served is not None:
            return served
        try:
            return await InStoreRequests.start(folder, create=create)
        except StoreInUse:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(RETRY_S)
