"""The function that performs each call."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from msmqwire.errors import NcpRefused
from msmqwire.ncp.constants import CompletionCode
from msmqwire.netware.protocol import bindery, files, jobs, queues, servicing
from msmqwire.netware.protocol.calls import CallContext, Operation, Result
from msmqwire.netware.protocol.session import Perform
from msmqwire.netware.rules.service import QueueService

OPERATIONS: Final[Mapping[str, Operation]] = {
    **queues.OPERATIONS,
    **jobs.OPERATIONS,
    **servicing.OPERATIONS,
    **bindery.OPERATIONS,
    **files.OPERATIONS,
}
"""The functions by the name of the call. A call that is missing here is not supported."""


def perform(service: QueueService, call: Perform, now: datetime) -> Result:
    """Perform a call; return the data of its reply, or the bytes of a file to read or write first.

    Raises NcpRefused, with nothing changed.
    """
    request = call.request
    assert request.call is not None
    assert request.data is not None
    operation = OPERATIONS.get(request.call.name)
    if operation is None:
        raise NcpRefused(f"{request.call.name} is not supported here", CompletionCode.NCP_NOT_SUPPORTED)
    return operation(CallContext(service, call.caller, request.data, now, call.room))
