"""The roles of a caller at a queue: QMS-monitor-16. Being a supervisor gives none."""

from __future__ import annotations

from enum import Flag, auto

from msmqwire.netware.model.bindery import Q_OPERATORS, Q_SERVERS, Q_USERS
from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.job import Job
from msmqwire.netware.model.queue import JobQueue
from msmqwire.netware.rules.equivalence import Equivalence
from msmqwire.netware.rules.objects import Objects
from msmqwire.netware.rules.refusals import no_job, no_job_rights, no_queue_rights


class QueueRole(Flag):
    """The properties of a queue that admit a caller, and whether a job is its own."""

    USER = auto()
    OPERATOR = auto()
    SERVER = auto()
    OWNER = auto()


NOBODY = QueueRole(0)
MEMBER = QueueRole.USER | QueueRole.OPERATOR | QueueRole.SERVER


class Roles:
    """Works out roles anew at each call, so that a change of the sets shows at once."""

    def __init__(self, objects: Objects, equivalence: Equivalence) -> None:
        self._objects, self._equivalence = objects, equivalence

    def on_queue(self, caller: Caller, queue: JobQueue) -> QueueRole:
        """Return the roles of a caller, or of the client whose rights it has assumed, on a queue."""
        holder = self._objects[queue.id]
        roles = NOBODY
        for name, role in (
            (Q_USERS, QueueRole.USER),  # QMS-qusers-01
            (Q_OPERATORS, QueueRole.OPERATOR),  # QMS-qoperators-01
            (Q_SERVERS, QueueRole.SERVER),  # QMS-qservers-01
        ):
            # QMS-monitor-16, QMS-supervisor-02 and QMS-createq-13
            if self._equivalence.admitted(caller.effective_id, holder, name):
                roles |= role  # QMS-qusers-01, QMS-qoperators-01 and QMS-qservers-01
        return roles

    def may_service(self, caller: Caller, queue: JobQueue) -> bool:
        """Return whether Q_SERVERS admits the object logged in, whatever rights it has assumed."""
        # QMS-qservers-05
        return self._equivalence.admitted(caller.object_id, self._objects[queue.id], Q_SERVERS)

    def check_queue(self, caller: Caller, queue: JobQueue, allowed: QueueRole) -> QueueRole:
        """Return the roles of a caller on a queue, one of which has to be among the allowed.

        Raises:
            NcpRefused: ERR_NO_Q_RIGHTS.
        """
        roles = self.on_queue(caller, queue)
        if not roles & allowed:  # QMS-bindery-03, QMS-monitor-04 and QMS-submit-01
            raise no_queue_rights("neither the object nor an equivalent of it is in the queue's sets")
        return roles

    def check_job(
        self, caller: Caller, queue: JobQueue, number: int, allowed: QueueRole
    ) -> tuple[Job, QueueRole]:
        """Return a job and the roles of a caller on it, one of which has to be among the allowed.

        Raises:
            NcpRefused: ERR_NO_Q_JOB, or ERR_NO_Q_JOB_RIGHTS; for a caller without a part in the queue
                ERR_NO_Q_RIGHTS in either case.
        """
        roles = self.on_queue(caller, queue)
        job = queue.jobs.get(number)
        owner = self._objects.get(caller.effective_id)  # none once the object has been deleted
        if job is not None and owner is not None and owner.id == job.client_id:  # QMS-monitor-02
            roles |= QueueRole.OWNER
        if roles & allowed and job is not None:
            return job, roles
        if not roles & MEMBER:
            raise no_queue_rights("the caller has no part in the queue")
        if job is None:
            raise no_job(number)
        raise no_job_rights(f"no right on job {number}: it is for {allowed}")
