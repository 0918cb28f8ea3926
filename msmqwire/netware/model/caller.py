"""The caller: a connection of the file server."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class AssumedRights:
    """The rights of a job's client, in force on the connection of the queue server that has the job."""

    queue_id: int
    job_number: int
    client_id: int


@dataclass(slots=True)
class Caller:
    """A connection. There is one such object for each connection while it lasts: the rules change it.

    Attributes:
        connection: its number, the station of job structures.
        task: the client's task in the request being answered.
        object_id: the object logged in; None if there is none.
        login_time: the time of its login by the clock of the file server, UTC; None without one.
        assumed: the rights of a client that are in force instead of its own.
        origin: its address, as `origin_of` has it; empty for the file server itself.
        has_proved: whether the login was by a password that a supervisor gave.
    """

    connection: int
    task: int = 0
    object_id: int | None = None
    assumed: AssumedRights | None = None
    login_time: datetime | None = None
    origin: str = ""
    has_proved: bool = False

    @property
    def assumed_client_id(self) -> int | None:
        """The client whose rights are in force."""
        return None if self.assumed is None else self.assumed.client_id

    @property
    def effective_id(self) -> int | None:
        """The object whose rights decide: the client while its rights are assumed, else the one logged in."""
        return self.object_id if self.assumed is None else self.assumed.client_id
