"""Calls of queue servers: attach, take jobs, finish or abort them, take the rights of their clients.

The object logged in at the connection decides, whatever rights it has assumed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime

from msmqwire.errors import NcpRefused
from msmqwire.names.printable import counted
from msmqwire.ncp.constants import (
    ANY_JOB_TYPE,
    ANY_SERVER,
    SERVER_STATUS_SIZE,
    CompletionCode,
    QueueStatus,
)
from msmqwire.netware.model.caller import AssumedRights, Caller
from msmqwire.netware.model.job import Job, JobState
from msmqwire.netware.model.queue import AttachedServer, JobQueue
from msmqwire.netware.model.settings import Settings
from msmqwire.netware.rules.client_rights import ClientRights
from msmqwire.netware.rules.job_life import JobLife
from msmqwire.netware.rules.objects import Objects
from msmqwire.netware.rules.open_files import OpenFiles
from msmqwire.netware.rules.queue_table import QueueTable
from msmqwire.netware.rules.refusals import no_job, no_job_rights, no_object, no_queue_rights
from msmqwire.netware.rules.roles import QueueRole, Roles


class Servicing:
    """The attached queue servers of all queues. A queue that does not exist is ERR_NO_QUEUE in each call."""

    def __init__(
        self,
        settings: Settings,
        queues: QueueTable,
        *,
        objects: Objects,
        roles: Roles,
        life: JobLife,
        files: OpenFiles,
        client_rights: ClientRights,
    ) -> None:
        self._settings, self._queues, self._objects, self._roles = settings, queues, objects, roles
        self._life, self._files, self._client_rights = life, files, client_rights
        self._attached: dict[int, set[int]] = defaultdict(set)

    def attach(self, caller: Caller, queue_id: int) -> None:
        """Attach a queue server to a queue; does nothing if it is attached already.

        Raises:
            NcpRefused: ERR_NO_Q_RIGHTS for all but servers of the queue, ERR_Q_HALTED, ERR_Q_MAX_SERVERS.
        """
        queue = self._queues.found(queue_id)
        if not self._roles.may_service(caller, queue):  # QMS-qservers-02 and QMS-createq-08
            raise no_queue_rights("the caller is not a server of the queue")  # QMS-service-03
        if caller.connection in queue.servers:
            return
        if queue.row.status & QueueStatus.QS_SERVERS_CANT_ATTACH:  # QMS-ext-11
            raise NcpRefused("no server may attach to the queue", CompletionCode.ERR_Q_HALTED)
        if len(queue.servers) >= self._settings.servers_max:  # QMS-ext-10
            raise NcpRefused(f"{len(queue.servers)} servers are attached", CompletionCode.ERR_Q_MAX_SERVERS)
        assert caller.object_id is not None
        queue.servers[caller.connection] = AttachedServer(caller, caller.object_id)  # QMS-service-02
        self._attached[caller.connection].add(queue_id)

    def detach(self, caller: Caller, queue_id: int) -> None:
        """Detach a queue server from a queue; the service of its jobs there has failed.

        Raises:
            NcpRefused: ERR_Q_STN_NOT_SERVER.
        """
        queue = self._queues.found(queue_id)
        self._attached_server(caller, queue)
        for served_id, number in sorted(self._life.served_by.get(caller.connection, ())):
            if served_id == queue_id:
                self._life.fail_service(queue, queue.jobs[number])
        self._detach(queue, caller.connection)  # QMS-service-15

    def service(
        self, caller: Caller, queue_id: int, types: Collection[int] = (ANY_JOB_TYPE,), *, now: datetime
    ) -> Job:
        """Hand the first job that fits to an attached queue server, with its file open for reading.

        Args:
            types: the types that fit; all types if ANY_JOB_TYPE is among them.
            now: the clock of the file server, UTC.

        Returns:
            The job with its position and file handle.

        Raises:
            NcpRefused: ERR_Q_STN_NOT_SERVER if the caller is not attached, or no server of the queue any
                more; ERR_Q_HALTED; ERR_NO_Q_JOB if none fits; NO_MORE_FILE_HANDLES.
        """
        queue = self._queues.found(queue_id)
        self._attached_server(caller, queue)  # QMS-service-07
        if not self._roles.may_service(caller, queue):  # QMS-qservers-02 and QMS-createq-08
            raise _not_attached()
        if queue.row.status & QueueStatus.QS_CANT_SERVICE_JOBS:  # QMS-monitor-22
            raise NcpRefused("the queue hands out no jobs", CompletionCode.ERR_Q_HALTED)
        for number in queue.order:
            job = queue.jobs[number]
            # QMS-manage-07 and QMS-jobfields-21
            may_have_it = job.target_server_id in (ANY_SERVER, caller.object_id)
            # QMS-manage-10, QMS-ext-12 and QMS-jobfields-31
            has_type = job.job_type in types or ANY_JOB_TYPE in types
            # QMS-manage-06, QMS-manage-09, QMS-manage-14 and QMS-flags-10
            if may_have_it and has_type and job.state(now) is JobState.READY:
                self._files.check_room(caller)
                # QMS-manage-14, QMS-flags-10, QMS-service-06 and QMS-using-01
                return self._life.take(caller, queue, job)
        # QMS-service-08 and QMS-ext-13
        raise NcpRefused("no job of the queue can be serviced", CompletionCode.ERR_NO_Q_JOB)

    def finish(self, caller: Caller, queue_id: int, number: int) -> None:
        """Finish the service of a job, which is removed.

        Raises:
            NcpRefused: ERR_Q_STN_NOT_SERVER if the caller is not attached; ERR_NO_Q_JOB; ERR_NO_Q_JOB_RIGHTS
                if it does not have the job.
        """
        self._life.remove(*self._served_job(caller, queue_id, number))  # QMS-service-14

    def abort(self, caller: Caller, queue_id: int, number: int) -> None:
        """Abort the service of a job: it stays at its place or is removed, depending on NWCF_SERVICE_RESTART.

        Raises as `finish`.
        """
        self._life.fail_service(*self._served_job(caller, queue_id, number))  # QMS-ext-01

    def change_to_client_rights(self, caller: Caller, queue_id: int, number: int) -> None:
        """Let the rights of the client of a job decide on this connection, until they are restored.

        Raises:
            NcpRefused: as `finish`; NO_SUCH_OBJECT if the client has been deleted.
        """
        _, job = self._served_job(caller, queue_id, number)
        if self._objects.get(job.client_id) is None:
            raise no_object(f"{job.client_id:08X}")
        self._client_rights.assume(caller, AssumedRights(queue_id, number, job.client_id))  # QMS-service-10

    def restore_server_rights(self, caller: Caller) -> None:
        """Let the rights of the queue server decide again; does nothing if they do.

        Raises:
            NcpRefused: ERR_Q_STN_NOT_SERVER if the caller is attached to no queue.
        """
        if caller.connection not in self._attached:
            raise _not_attached()
        self._client_rights.restore(caller)  # QMS-service-13

    def read_server_status(self, caller: Caller, queue_id: int, server_id: int, station: int) -> bytes:
        """Return the status record of an attached server.

        Raises:
            NcpRefused: ERR_NO_Q_RIGHTS for all but users and operators; ERR_NO_Q_SERVER if no such server is
                attached.
        """
        queue = self._queues.found(queue_id)
        self._roles.check_queue(caller, queue, QueueRole.USER | QueueRole.OPERATOR)  # QMS-monitor-13
        server = queue.servers.get(station)
        if server is None or server.object_id != server_id:
            raise NcpRefused(
                f"the server {server_id:08X} is not attached from station {station}",
                CompletionCode.ERR_NO_Q_SERVER,
            )
        return server.status

    def set_server_status(self, caller: Caller, queue_id: int, status: bytes) -> None:
        """Set the status record of the calling server, 64 bytes.

        Raises:
            NcpRefused: ERR_Q_STN_NOT_SERVER for all but an attached server; BAD_LENGTH.
        """
        server = self._attached_server(caller, self._queues.found(queue_id))  # QMS-monitor-14
        if len(status) != SERVER_STATUS_SIZE:  # QMS-ext-18
            raise NcpRefused(f"a status record of {counted(len(status), 'byte')}", CompletionCode.BAD_LENGTH)
        server.status = bytes(status)

    def connection_lost(self, connection: int) -> None:
        """Detach a connection from all queues; its jobs have ended before."""
        for queue_id in sorted(self._attached.get(connection, ())):
            self._detach(self._queues[queue_id], connection)

    def forget_queue(self, queue: JobQueue) -> None:
        """Detach all servers of a queue that is destroyed."""
        for connection in list(queue.servers):
            self._detach(queue, connection)

    def _detach(self, queue: JobQueue, connection: int) -> None:
        del queue.servers[connection]
        queues = self._attached[connection]
        queues.discard(queue.id)
        if not queues:
            del self._attached[connection]

    def _attached_server(self, caller: Caller, queue: JobQueue) -> AttachedServer:
        server = queue.servers.get(caller.connection)
        if server is None:  # QMS-monitor-14 and QMS-service-07
            raise _not_attached()  # QMS-monitor-14 and QMS-service-07
        return server

    def _served_job(self, caller: Caller, queue_id: int, number: int) -> tuple[JobQueue, Job]:
        queue = self._queues.found(queue_id)
        self._attached_server(caller, queue)
        job = queue.jobs.get(number)
        if job is None:
            raise no_job(number)
        if (queue_id, number) not in self._life.served_by.get(caller.connection, ()):  # QMS-ext-03
            raise no_job_rights(f"the caller does not have job {number}")
        return queue, job


def _not_attached() -> NcpRefused:
    return NcpRefused("the caller is not attached as a server", CompletionCode.ERR_Q_STN_NOT_SERVER)
