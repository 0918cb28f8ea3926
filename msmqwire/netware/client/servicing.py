"""A job in service at a queue server, from taking it to finishing or aborting it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from msmqwire.errors import InvalidValue, MsmqError, NcpRefused
from msmqwire.names.printable import counted
from msmqwire.ncp.constants import CompletionCode
from msmqwire.netware.client.connection import NcpConnection
from msmqwire.netware.client.files import JobFile
from msmqwire.netware.client.job import JobEntry, entry_of
from msmqwire.netware.client.undoing import result_or_undone
from msmqwire.schema import Record

WHOLE_MAX: Final = 64 << 20
"""Bytes of the largest file that `ServicedJob.read` returns at once."""
_POLL_S: Final = 0.5
"""Seconds between requests for a job while there is none: the protocol has no call that waits."""

_KEEP_ALIVE_S: Final = 60.0
"""Seconds between requests that keep a connection alive while a job is processed."""


class ServicedJob:
    """A job that this queue server has.

    Attributes:
        entry: all its fields.
        size: bytes in its file.
        lost: a task that ends with the reason when the connection is lost: the job is then no longer this
            queue server's.
    """

    def __init__(
        self,
        connection: NcpConnection,
        queue_id: int,
        file: JobFile,
        entry: JobEntry,
        size: int,
        lost: asyncio.Task[None],
    ) -> None:
        self._connection, self._queue_id, self._file = connection, queue_id, file
        self.entry, self.size, self.lost = entry, size, lost

    def __repr__(self) -> str:
        return f"<ServicedJob {self.number}, {counted(self.size, 'byte')}>"

    @property
    def number(self) -> int:
        """The number of the job in its queue."""
        return self.entry.job_number

    def blocks(self) -> AsyncIterator[bytes]:
        """Return the bytes that the client wrote, in parts, from the beginning; see `JobFile.blocks`."""
        return self._file.blocks(self.size)

    async def read(self) -> bytes:
        """Return all bytes that the client wrote; see `JobFile.blocks`.

        Raises InvalidValue for a file of more than `WHOLE_MAX` bytes: read its blocks.
        """
        if self.size > WHOLE_MAX:
            raise InvalidValue(
                f"{counted(self.size, 'byte')}, more than {WHOLE_MAX:,}: read its blocks", path="size"
            )
        return b"".join([block async for block in self.blocks()])

    @asynccontextmanager
    async def client_rights(self) -> AsyncIterator[None]:
        """Have the rights of the job's client in the block, and the queue server's own after it.

        Open files keep the rights they were opened with. Raises NcpRefused, MalformedPacket and Unreachable.
        """
        # QMS-service-11
        await self._connection.call(
            "ChangeToClientRights", QueueID=self._queue_id, JobNumber=self.entry.job_number
        )
        try:
            yield
        except BaseException:
            with suppress(MsmqError):  # the end of the job restores them, too
                await self._connection.call("RestoreQueueServerRights")
            raise
        await self._connection.call("RestoreQueueServerRights")


@asynccontextmanager
async def serviced_job(
    connection: NcpConnection, queue_id: int, job_type: int, wait: float
) -> AsyncIterator[ServicedJob]:
    """Take a job; finish it when the block ends, abort it if an exception leaves the block.

    Raises NcpRefused, with ERR_NO_Q_JOB if there is none for `wait` seconds, MalformedPacket and Unreachable.
    """
    taken = await _take(connection, queue_id, job_type, wait)
    number = taken.Job.jobNumber
    lost = asyncio.create_task(_loss(connection, queue_id))
    try:
        read = await connection.call("ReadQueueJobEntry", QueueID=queue_id, JobNumber=number)
        # QMS-service-04
        size = (await connection.call("GetQueueJobFileSize", QueueID=queue_id, JobNumber=number)).FileSize
        file = JobFile(connection, taken.Job.jobFileHandle)
        yield ServicedJob(connection, queue_id, file, entry_of(read.Job), size, lost)
        await connection.call("FinishServicingQueueJob", QueueID=queue_id, JobNumber=number, Charge=0)
    except BaseException:
        with suppress(MsmqError):  # the connection may be lost, the job removed
            await _abort(connection, queue_id, number)
        raise
    finally:
        lost.cancel()
        await asyncio.gather(lost, return_exceptions=True)


async def _loss(connection: NcpConnection, queue_id: int) -> None:
    """Raise the error that ends a connection. Until then, keep the server from ending it as idle."""
    while True:
        await asyncio.wait([connection.ended], timeout=_KEEP_ALIVE_S)
        with suppress(NcpRefused):
            await connection.call("ReadQueueCurrentStatus", QueueID=queue_id)


async def _take(connection: NcpConnection, queue_id: int, job_type: int, wait: float) -> Record:
    async def abort(taken: Record) -> None:
        await _abort(connection, queue_id, taken.Job.jobNumber)

    loop = asyncio.get_running_loop()
    until = loop.time() + wait
    while True:
        taking = connection.begin("ServiceQueueJob", QueueID=queue_id, ServiceType=job_type)
        try:
            return await result_or_undone(taking, abort)
        except NcpRefused as exc:
            left = until - loop.time()
            if exc.code != CompletionCode.ERR_NO_Q_JOB or left <= 0:
                raise
        await asyncio.sleep(min(_POLL_S, left))


async def _abort(connection: NcpConnection, queue_id: int, number: int) -> None:
    await connection.call("AbortServicingQueueJob", QueueID=queue_id, JobNumber=number)
