"""The queue manager of a folder on this computer, for programs."""

from __future__ import annotations

import os
from functools import partial

from msmqwire.crypto.readings import DEFAULT, Readings
from msmqwire.errors import InvalidValue
from msmqwire.qm.client.entering import EnteredOnce
from msmqwire.qm.client.local_queues import LocalReading, LocalSending
from msmqwire.qm.client.queue import Queue
from msmqwire.qm.client.synchronous_queue import SyncQueue
from msmqwire.qm.runtime.local_names import queue_name
from msmqwire.qm.runtime.message_signers import own_signer
from msmqwire.qm.runtime.requests import LastingRequests, open_requests
from msmqwire.qm.security.signing import Signer
from msmqwire.service.loop_thread import SyncConnection


class QueueManager:
    """The queue manager of a folder, to which entering `msmqwire.attach` gives access.

    While its server is restarted, calls raise Unreachable; they succeed again after that.

    Attributes:
        name: the name of the computer.
        identifier: the GUID of the queue manager.
    """

    def __init__(self, requests: LastingRequests, folder: str | os.PathLike[str]) -> None:
        self._requests, self._folder = requests, folder
        self.name, self.identifier = requests.name, requests.identifier

    @property
    def served(self) -> bool:
        """Whether the queue manager was reached through a server.

        Without a server nothing is sent to other computers, and express messages are refused: they would be
        lost.
        """
        return self._requests.served

    def queue(self, name: str) -> Queue:
        r"""Return a queue to send to and read. Whether it exists is checked on first use.

        Args:
            name: ``private$\orders``, with ``;name`` for a subqueue and ``;journal`` for its journal;
                ``system$;deadletter`` and ``system$;deadxact``; or a format name, also of a queue of another
                computer, to which this queue manager sends.

        Raises:
            InvalidName: the name is none of these.
        """
        if not isinstance(name, str):
            raise InvalidValue(f"{name!r:.100} is not a text", path="name")
        format_name = str(queue_name(name, self.name))
        sending = LocalSending(self._requests, format_name, self.identifier)
        return Queue(sending, partial(LocalReading, self._requests, format_name, self.name))

    def signer(self, sid: str | None = None, readings: Readings = DEFAULT) -> Signer:
        """Return a signer of messages with the newest certificate that ``msmqwire cert create`` has made
        here.

        The key is read from the folder; this queue manager does not get it.

        Args:
            sid: the SID of the certificate's user; any by default.
            readings: the readings of the specification that the receivers follow.

        Raises InvalidValue if there is none.
        """
        return own_signer(self._folder, sid, readings)

    async def create_queue(self, name: str, *, transactional: bool = False, label: str = "") -> Queue:
        r"""Create a queue, or return the one that is there.

        Args:
            name: ``private$\orders``; without ``private$`` a public queue, of the embedded directory.
            transactional: whether it takes transactional messages only.
            label: a text of up to 124 characters; an existing queue keeps its label.

        Raises:
            QueueError: MQ_ERROR_QUEUE_EXISTS if the existing queue differs in `transactional`.
            InvalidName: the name can't be a queue of this computer.
            InvalidValue: the label is too long.
        """
        queue = self.queue(name)
        await self._requests.call(
            "create", queue=name, transactional=transactional, label=label, missing=True
        )
        return queue


class SyncQueueManager:
    """The queue manager of a folder: `QueueManager` without ``await``, for any number of threads.

    Attributes:
        name, identifier: as there.
    """

    def __init__(self, connection: SyncConnection, manager: QueueManager) -> None:
        self._connection, self._manager = connection, manager
        self.name, self.identifier = manager.name, manager.identifier

    @property
    def served(self) -> bool:
        """See `QueueManager.served`."""
        return self._manager.served

    def queue(self, name: str) -> SyncQueue:
        """Return a queue. See `QueueManager.queue`."""
        return SyncQueue(self._connection, self._manager.queue(name))

    def signer(self, sid: str | None = None) -> Signer:
        """Return a signer of messages with a certificate of the folder. See `QueueManager.signer`."""
        return self._manager.signer(sid)

    def create_queue(self, name: str, *, transactional: bool = False, label: str = "") -> SyncQueue:
        """Create a queue, or return the one that is there. See `QueueManager.create_queue`."""
        work = self._manager.create_queue(name, transactional=transactional, label=label)
        return SyncQueue(self._connection, self._connection.run(work))


class Attachment(EnteredOnce[QueueManager, SyncQueueManager]):
    """The result of `msmqwire.attach`, which can be entered once."""

    _path = "attachment"
    _example = "with msmqwire.attach(...) as manager: manager"

    def __init__(self, folder: str | os.PathLike[str], create: bool) -> None:
        super().__init__()
        self._folder, self._create = folder, create
        self._requests: LastingRequests | None = None

    async def _open(self) -> QueueManager:
        self._requests = await open_requests(self._folder, create=self._create)
        return QueueManager(self._requests, self._folder)

    def _synchronous(self, sync: SyncConnection, opened: QueueManager) -> SyncQueueManager:
        return SyncQueueManager(sync, opened)

    async def _leave(self, *, wait: bool) -> None:
        assert self._requests is not None, "it was entered"
        await self._requests.close()


def attach(path: str | os.PathLike[str], *, create: bool = False) -> Attachment:
    """Return access to the queue manager of a folder: through its server, or in its store if none runs.

    Enter it with ``async with``, which gives a `QueueManager`, or with ``with``, which gives a
    `SyncQueueManager`: the same without ``await``. Leaving it ends waiting reads, which raise QueueError with
    MQ_ERROR_OPERATION_CANCELLED. Messages that were received and not ended return to their queues.

    A server may be restarted meanwhile: calls raise Unreachable during the outage and succeed after it.

    Args:
        path: the folder, DIR of ``msmqwire serve --data DIR``.
        create: create a queue manager, with the name of this computer, if the folder has none.

    A program that has used a folder through its server does not open the store itself later, as that would
    keep the server from starting again: without a server entering raises Unreachable then. One that is
    starting is waited for.

    Entering raises the subclasses of StoreError: StoreMissing if the folder has no queue manager, StoreInUse
    if another process has its store open without serving it. It raises InvalidValue for unusable keys in the
    folder.

    Raises:
        InvalidValue: the path is not the name of a folder.
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidValue(f"{path!r:.100} is not the name of a folder", path="path")
    return Attachment(path, create)
