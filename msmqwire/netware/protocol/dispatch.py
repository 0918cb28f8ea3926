"""The function that performs each call."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from msmqwire.errors import NcpRefused
from msmqwire.ncp.constants import CompletionCode
from msmqwire.netware.model.passwords import PasswordHashing
from msmqwire.netware.protocol import bindery, files, jobs, queues, server, servicing
from msmqwire.netware.protocol.calls import CallContext, Host, Operation, Result
from msmqwire.netware.protocol.session import Perform
from msmqwire.netware.rules.service import QueueService

MAY_HASH: Final = frozenset({"LoginObject", "ChangeBinderyObjectPassword"})
"""The calls that may need the hash of a password."""
OPERATIONS: Final[Mapping[str, Operation]] = {
    **queues.OPERATIONS,
    **jobs.OPERATIONS,
    **servicing.OPERATIONS,
    **bindery.OPERATIONS,
    **files.OPERATIONS,
    **server.OPERATIONS,
}
"""The functions by the name of the call. A call that is missing here is not supported."""


def perform(
    service: QueueService, call: Perform, now: datetime, host: Host, hashing: PasswordHashing
) -> Result:
    """Perform a call; return the data of its reply, or the bytes of a file to read or write first.

    Raises NcpRefused and, by `hashing`, HashNeeded, with nothing changed.
    """
    request = call.request
    assert request.call is not None
    assert request.data is not None
    operation = OPERATIONS.get(request.call.name)
    if operation is None:
        raise NcpRefused(f"{request.call.name} is not supported here", CompletionCode.NCP_NOT_SUPPORTED)
    return operation(CallContext(service, call.caller, request.data, now, call.room, host, hashing))
