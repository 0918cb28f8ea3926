"""A job from its creation to its start."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from msmqwire.errors import MsmqError
from msmqwire.names.printable import counted
from msmqwire.netware.client.connection import NcpConnection
from msmqwire.netware.client.files import JobFile
from msmqwire.netware.client.job import JobEntry, entry_of, request_fields
from msmqwire.netware.client.undoing import result_or_undone
from msmqwire.netware.model.job import JobRequest
from msmqwire.schema import Record


class OpenJob:
    """A job that is not released yet: its file can be written.

    Attributes:
        entry: its fields as the server has filled them in; without description and queueRecord.
    """

    def __init__(self, file: JobFile, entry: JobEntry) -> None:
        self._file = file
        self.entry = entry

    def __repr__(self) -> str:
        return f"<OpenJob {self.number}, {counted(self.size, 'byte')}>"

    @property
    def number(self) -> int:
        """The number of the job in its queue."""
        return self.entry.job_number

    @property
    def size(self) -> int:
        """Bytes in its file."""
        return self._file.written

    async def write(self, data: bytes) -> None:
        """Append bytes; see `JobFile.write`."""
        await self._file.write(data)


@asynccontextmanager
async def open_job(connection: NcpConnection, queue_id: int, request: JobRequest) -> AsyncIterator[OpenJob]:
    """Create a job; start it when the block ends, remove it if an exception leaves the block.

    Raises NcpRefused, MalformedPacket and Unreachable. If the connection is lost before the job was started,
    NWCF_SERVICE_AUTO_START decides.
    """

    async def remove(created: Record) -> None:
        await connection.call("RemoveJobFromQueue", QueueID=queue_id, JobNumber=created.Job.jobNumber)

    creating = connection.begin("CreateQueueJobAndFile", QueueID=queue_id, Job=request_fields(request))
    created = await result_or_undone(creating, remove)
    try:
        job = created.Job
        yield OpenJob(JobFile(connection, job.jobFileHandle), entry_of(job))
        # QMS-submit-02
        await connection.call("CloseFileAndStartQueueJob", QueueID=queue_id, JobNumber=job.jobNumber)
    except BaseException:
        with suppress(MsmqError):  # the connection may be lost, the job gone
            await remove(created)  # QMS-submit-10
        raise
