"""Client rights: a queue server takes the rights of the client of a job in its service."""

from __future__ import annotations

from msmqwire.netware.model.caller import AssumedRights, Caller


class ClientRights:
    """The connections on which the rights of clients are in force, by queue and job number."""

    def __init__(self) -> None:
        self._callers: dict[tuple[int, int], Caller] = {}

    def assume(self, caller: Caller, rights: AssumedRights) -> None:
        """Put the rights of a client in force on a connection, in place of any assumed before."""
        self.restore(caller)
        caller.assumed = rights
        self._callers[rights.queue_id, rights.job_number] = caller

    def restore(self, caller: Caller) -> None:
        """Put the connection's own rights in force."""
        if caller.assumed is not None:
            del self._callers[caller.assumed.queue_id, caller.assumed.job_number]
            caller.assumed = None

    def end(self, queue_id: int, job_number: int) -> None:
        """Put the server's own rights in force, if the rights of this job's client are: QMS-ext-16."""
        caller = self._callers.get((queue_id, job_number))
        if caller is not None:
            self.restore(caller)
