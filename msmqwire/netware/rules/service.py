"""The queue service of a file server: the assembly of its parts."""

from __future__ import annotations

from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.changes import Change
from msmqwire.netware.model.contents import Contents
from msmqwire.netware.model.files import AnyFile, StoredJobFile
from msmqwire.netware.model.passwords import PasswordHashing
from msmqwire.netware.model.settings import Settings
from msmqwire.netware.rules.bindery import Bindery
from msmqwire.netware.rules.bindery_rights import BinderyRights
from msmqwire.netware.rules.client_rights import ClientRights
from msmqwire.netware.rules.equivalence import Equivalence
from msmqwire.netware.rules.job_life import JobLife
from msmqwire.netware.rules.jobs import Jobs
from msmqwire.netware.rules.logins import AT_ONCE, BinderyLogins, has_given_password
from msmqwire.netware.rules.objects import Objects
from msmqwire.netware.rules.open_files import OpenFiles
from msmqwire.netware.rules.properties import BinderyProperties
from msmqwire.netware.rules.queue_table import QueueTable
from msmqwire.netware.rules.queues import JobQueues
from msmqwire.netware.rules.roles import Roles
from msmqwire.netware.rules.servicing import Servicing
from msmqwire.netware.rules.standing import Standing
from msmqwire.netware.rules.trustees import Trustees
from msmqwire.netware.rules.volumes import VolumeRules


class QueueService:
    """One file server's bindery and queues.

    A call either raises `NcpRefused` and has changed nothing, or has happened in memory; `take` then returns
    the changes that have to become durable before it is answered.

    Attributes:
        objects: all objects, for lookups without a caller.
        bindery, properties, logins: the bindery.
        queue_table: all queues, for lookups without a caller.
        queues, jobs, servicing: the calls of users, operators and queue servers.
        files: handles of open files.
        volumes: directories and files outside the queues, and their trustees.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        settings = settings or Settings()
        self._changes = changes = list[Change]()
        objects, queues = Objects(settings, changes), QueueTable()
        self.objects = objects  # QMS-qobject-03
        self.queue_table = queues  # QMS-qobject-03
        self._client_rights = client_rights = ClientRights()
        equivalence = Equivalence(objects)
        self._standing = standing = Standing(objects, equivalence)
        self.files = files = OpenFiles(settings, standing.account_of)
        rights = BinderyRights(equivalence)
        roles = Roles(objects, equivalence)
        self._trustees = trustees = Trustees(settings, equivalence, changes)
        self._life = life = JobLife(queues, files, client_rights, changes)
        self.bindery = bindery = Bindery(objects, rights, trustees, queues)
        self.properties = BinderyProperties(settings, objects, rights)
        self.logins = BinderyLogins(settings, objects, rights)
        self.servicing = servicing = Servicing(
            settings,
            queues,
            objects=objects,
            roles=roles,
            life=life,
            files=files,
            client_rights=client_rights,
        )
        self.volumes = volumes = VolumeRules(
            settings, objects=objects, queues=queues, trustees=trustees, files=files, changes=changes
        )
        self.queues = JobQueues(
            settings,
            queues,
            objects=objects,
            bindery=bindery,
            rights=rights,
            trustees=trustees,
            volumes=volumes,
            roles=roles,
            life=life,
            servicing=servicing,
            changes=changes,
        )
        self.jobs = Jobs(settings, queues, roles=roles, life=life, files=files)

    @classmethod
    def restore(cls, contents: Contents, settings: Settings | None = None) -> QueueService:
        """Return the service that a store holds, as after a restart of the file server.

        All connections are gone: jobs that were open or in service have been started, kept or removed by
        their flags, dynamic objects and properties are deleted. `take` returns the changes of the restart; in
        a new store, SUPERVISOR.

        Raises:
            InvalidValue: the contents contradict each other.
        """
        service = cls(settings)
        service.objects.restore(contents.objects, contents.next_object_id)
        service.queue_table.restore(contents.queues, contents.orders, contents.jobs, service.objects)
        service.volumes.restore(contents.entries)
        for file, size in contents.sizes.items():
            account = service._standing.account_of_owner(service._owner(file), file)
            service.files.space.add(file, size, account)
        service._trustees.restore(contents.trustees)
        service._life.restarted()
        service.bindery.restore()
        return service

    def _owner(self, file: AnyFile) -> int | None:
        """Return the object that has made a file; None if no row names the file."""
        if isinstance(file, StoredJobFile):
            queue = self.queue_table.get(file.queue_id)
            job = None if queue is None else queue.jobs.get(file.job_number)
            return None if job is None else job.client_id
        entry = self.volumes.entry(file.path)
        return None if entry is None else entry.owner_id

    def take(self) -> list[Change]:
        """Return the changes since the last time, in the order in which they happened."""
        taken = self._changes[:]
        self._changes.clear()
        return taken

    def login(
        self,
        caller: Caller,
        name: str,
        type_: int,
        password: bytes = b"",
        hashing: PasswordHashing = AT_ONCE,
    ) -> int:
        """Log an object in on a connection; an object logged in before is logged out.

        Returns:
            Its ID.

        Raises:
            NcpRefused: as `BinderyLogins.check`.
            HashNeeded: by `hashing`.
        """
        object_id = self.logins.check(name, type_, password, hashing)
        self.logout(caller)
        caller.object_id, caller.has_proved = object_id, has_given_password(self.objects[object_id])
        return object_id

    def logout(self, caller: Caller) -> None:
        """Log the object of a connection out, and end all its open jobs, jobs in service and attachments."""
        self._life.connection_lost(caller.connection)
        self.servicing.connection_lost(caller.connection)
        self.files.close_connection(caller.connection)
        self._client_rights.restore(caller)
        caller.object_id = caller.login_time = None
        caller.has_proved = False

    def connection_lost(self, caller: Caller) -> None:
        """End everything of a broken connection."""
        self.logout(caller)
