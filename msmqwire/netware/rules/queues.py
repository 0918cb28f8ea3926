"""Calls about whole queues: create, destroy, status."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from msmqwire.errors import NcpRefused
from msmqwire.names.printable import counted
from msmqwire.ncp.constants import QUEUE_PATH_MAX, SEGMENT_SIZE, CompletionCode
from msmqwire.netware.model import names
from msmqwire.netware.model.bindery import (
    ANY_READ_SUPER_WRITE,
    Q_DIRECTORY,
    Q_OPERATORS,
    Q_SERVERS,
    Q_USERS,
    SUPER_READ_SUPER_WRITE,
    Property,
)
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.changes import (
    Change,
    DeleteQueue,
    MakeQueueDirectory,
    PutOrder,
    PutQueue,
    RemoveQueueDirectory,
)
from msmqwire.netware.model.queue import JobQueue, QueueRow, QueueStatusReport, queue_directory
from msmqwire.netware.model.settings import Settings
from msmqwire.netware.rules.bindery import Bindery
from msmqwire.netware.rules.bindery_rights import BinderyRights
from msmqwire.netware.rules.job_life import JobLife
from msmqwire.netware.rules.objects import Objects
from msmqwire.netware.rules.queue_table import QueueTable
from msmqwire.netware.rules.refusals import limit_reached, no_queue_rights
from msmqwire.netware.rules.roles import MEMBER, QueueRole, Roles
from msmqwire.netware.rules.servicing import Servicing
from msmqwire.netware.rules.trustees import Trustees
from msmqwire.netware.rules.volumes import VolumeRules

_STATUS_MAX: Final = 0xFF


class JobQueues:
    """The queues of the file server."""

    def __init__(
        self,
        settings: Settings,
        queues: QueueTable,
        *,
        objects: Objects,
        bindery: Bindery,
        rights: BinderyRights,
        trustees: Trustees,
        volumes: VolumeRules,
        roles: Roles,
        life: JobLife,
        servicing: Servicing,
        changes: list[Change],
    ) -> None:
        self._settings, self._queues, self._objects, self._bindery = settings, queues, objects, bindery
        self._rights, self._trustees, self._roles, self._life = rights, trustees, roles, life
        self._servicing, self._volumes, self._changes = servicing, volumes, changes

    def create(self, caller: Caller, name: str, type_: int, path: str) -> int:
        r"""Create a queue: its object with the four properties, its directory with the system files.

        Args:
            path: the directory below which the queue directory is made, ``SYS:SYSTEM``.

        Returns:
            The ID of the queue.

        Raises:
            NcpRefused: NO_OBJECT_CREATE_RIGHTS for all but supervisors, INVALID_PATH, DIRECTORY_FULL, and as
                `Bindery.create_object`.
        """
        # QMS-createq-01 and QMS-qobject-07
        new = self._bindery.new_object(caller, name, type_, security=ANY_READ_SUPER_WRITE)
        if len(path) > QUEUE_PATH_MAX:  # QMS-qdir-09
            raise NcpRefused(
                f"a path of {counted(len(path), 'character')}, more than {QUEUE_PATH_MAX:,}",
                CompletionCode.INVALID_PATH,
            )
        if len(self._queues) >= self._settings.queues_max:
            raise limit_reached("queues")
        directory = queue_directory(path, new.id)  # QMS-qdir-07 and QMS-qdir-08
        place = names.volume_path(directory)  # QMS-qdir-04 and QMS-qdir-06
        if self._queues.has_directory(place) or self._volumes.entry(place) is not None:
            raise NcpRefused(f"{path} has another use", CompletionCode.INVALID_PATH)
        above = self._volumes.missing_above(place)
        value = directory.encode("ascii").ljust(SEGMENT_SIZE, b"\0")  # QMS-createq-05
        # QMS-qdir-01, QMS-qdir-10, QMS-qprops-01, QMS-createq-04 and QMS-createq-06
        new = new.with_property(Property(Q_DIRECTORY, False, SUPER_READ_SUPER_WRITE, segments=(value,)))
        for set_name in (Q_USERS, Q_SERVERS, Q_OPERATORS):
            # QMS-qdir-02, QMS-createq-04, QMS-createq-06 and QMS-createq-12
            new = new.with_property(Property(set_name, True, ANY_READ_SUPER_WRITE))
        self._objects.add(new)  # QMS-bindery-02, QMS-createq-02 and QMS-using-01
        queue = JobQueue(QueueRow(new.id, place))  # QMS-createq-05
        self._queues.add(queue)
        self._volumes.add_directories(caller, above)
        # QMS-qdir-05, QMS-qdir-06 and QMS-process-01
        self._changes.append(MakeQueueDirectory(new.id, place))
        self._changes += PutQueue(queue.row), PutOrder(new.id, ())
        return new.id

    def destroy(self, caller: Caller, queue_id: int) -> None:
        """Destroy a queue with its jobs, its directory and its object; its servers are detached.

        Raises:
            NcpRefused: ERR_NO_QUEUE; ERR_NO_Q_RIGHTS for all but supervisors.
        """
        queue = self._queues.found(queue_id)
        if not self._rights.is_supervisor(caller):
            raise no_queue_rights("only a supervisor destroys queues")  # QMS-createq-16
        self._life.forget_queue(queue)  # QMS-ext-15
        self._servicing.forget_queue(queue)
        self._queues.remove(queue)  # QMS-createq-15
        self._trustees.forget_object(queue_id)
        self._objects.delete(queue_id)
        self._changes += DeleteQueue(queue_id), RemoveQueueDirectory(queue_id, queue.row.directory)

    def read_status(self, caller: Caller, queue_id: int) -> QueueStatusReport:
        """Return the status of a queue, the number of its jobs, and its attached servers.

        Raises:
            NcpRefused: ERR_NO_QUEUE; ERR_NO_Q_RIGHTS for all but users, operators and servers.
        """
        queue = self._queues.found(queue_id)
        self._roles.check_queue(caller, queue, MEMBER)  # QMS-monitor-11, QMS-monitor-03 and QMS-monitor-05
        # QMS-service-02
        servers = tuple((server.object_id, connection) for connection, server in queue.servers.items())
        return QueueStatusReport(queue_id, queue.row.status, len(queue.jobs), servers)

    def set_status(self, caller: Caller, queue_id: int, status: int) -> None:
        """Set the status of a queue, bits of `QueueStatus`; undefined bits are kept without effect.

        Raises:
            NcpRefused: ERR_NO_QUEUE; ERR_NO_Q_RIGHTS for all but operators; FAILURE for more than 8 bits.
        """
        queue = self._queues.found(queue_id)
        # QMS-monitor-12, QMS-qoperators-05, QMS-qoperators-07, QMS-createq-09 and QMS-monitor-01
        self._roles.check_queue(caller, queue, QueueRole.OPERATOR)
        if not 0 <= status <= _STATUS_MAX:
            raise NcpRefused(f"{status:#x} is not a status of a queue", CompletionCode.FAILURE)
        queue.row = replace(queue.row, status=status)
        self._changes.append(PutQueue(queue.row))
