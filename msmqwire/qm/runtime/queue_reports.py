"""The report of a queue as other computers get it, for local clients: [MS-MQMR] 2.2.3.2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msmqwire.management.reports import queue_report
from msmqwire.qm.core import Core
from msmqwire.qm.protocols.management.queue_values import QUEUE_PROPERTIES, queue_values
from msmqwire.qm.runtime.queues import find


def report(core: Core, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the report of the ``queue`` of a request, and whether the queue manager is on the network.

    Raises QueueError, InvalidName and InvalidValue.
    """
    queue = find(core, request)
    identifiers = sorted(QUEUE_PROPERTIES)
    values = zip(identifiers, queue_values(core.context, queue, identifiers), strict=True)
    return {
        "report": queue_report(request["queue"], dict(values)).to_json(),
        "connected": core.queue_manager.connection_active,
    }
