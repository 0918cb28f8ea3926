"""Calls and replies, for the code that performs calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msmqwire.netware.model.caller import Caller
from msmqwire.netware.model.files import FileAccess
from msmqwire.netware.model.passwords import PasswordHashing
from msmqwire.netware.protocol.connection_numbers import ConnectionNumbers
from msmqwire.netware.rules.service import QueueService
from msmqwire.schema import Record


@dataclass(frozen=True, slots=True)
class Host:
    """The file server around a service, as calls show it.

    Attributes:
        name: its name, at most 47 characters.
        connections: its service connections.
    """

    name: str
    connections: ConnectionNumbers


@dataclass(frozen=True, slots=True)
class CallContext:
    """A call to be performed.

    Attributes:
        service: the service that performs it.
        caller: its caller.
        data: the data of the request.
        now: the clock of the file server, UTC.
        room: bytes of data that the client accepts in the reply.
        host: the file server around the service.
        hashing: the hashes of passwords, and a salt for a new one.
    """

    service: QueueService
    caller: Caller
    data: Record
    now: datetime
    room: int
    host: Host
    hashing: PasswordHashing


Fields = Mapping[str, Any]
"""The data of a reply."""


@dataclass(frozen=True, slots=True)
class ToRead:
    """Bytes of a file to read; `msmqwire.netware.protocol.files.data_read` makes the data of the reply."""

    access: FileAccess


@dataclass(frozen=True, slots=True)
class ToWrite:
    """Bytes to write to a file, before a reply without data."""

    access: FileAccess
    data: bytes


Result = Fields | ToRead | ToWrite
Operation = Callable[[CallContext], Result]
"""Performs a call. Raises NcpRefused, with nothing changed."""

NO_DATA: Fields = {}
