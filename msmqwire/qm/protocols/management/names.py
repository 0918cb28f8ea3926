"""The names of queues in answers, and the queues of names in calls: [MS-MQMR] 2.2.1.5 and 3.1.4.1."""

from __future__ import annotations

from typing import Any, Final

from msmqwire.constants import HResult
from msmqwire.errors import InvalidName
from msmqwire.names import ConnectorName, DirectName, FormatName, MachineName, PublicName
from msmqwire.names.addresses import HTTP_PORTS
from msmqwire.qm.model.elements import OutgoingQueue, Queue, QueueManager
from msmqwire.qm.model.enumerations import QueueType
from msmqwire.qm.protocols.management.refused import ManagementRefused
from msmqwire.qm.rules.lookup import Lookup
from msmqwire.rpc.queue_format import name_of

_JOURNAL: Final = ";JOURNAL"


def find_queue(lookup: Lookup, queue_format: Any) -> Queue:
    """Return the queue that a call is about. It is neither opened nor created, and may be shared in any way.

    A local queue comes before an outgoing one. Raises ManagementRefused.
    """
    if queue_format is None:  # MQMR-2.2.1.2-06
        raise ManagementRefused(HResult.MQ_ERROR_INVALID_PARAMETER)
    try:
        name = name_of(queue_format)
    except InvalidName:  # MQMR-2.2.1.5-03
        raise ManagementRefused(HResult.MQ_ERROR_INVALID_PARAMETER) from None
    if name is None:
        raise ManagementRefused(HResult.MQ_ERROR_INVALID_PARAMETER)
    queue = lookup.find(name) or lookup.outgoing(name)  # MQMR-3.1.4.1-29, MQMR-3.1.4.1-31
    if queue is None:
        raise ManagementRefused(HResult.MQ_ERROR_QUEUE_NOT_FOUND)  # MQMR-3.1.4.1-30, MQMR-3.1.4.2-27
    return queue


def format_name(manager: QueueManager, queue: Queue) -> str:
    """Return the format name of a queue, which `find_queue` finds again: MQMR-3.1.4.1-33.

    That of a local queue has the computer's present name: another domain makes QualifiedPathname invalid.
    """
    if isinstance(queue, OutgoingQueue):
        return str(queue.destination)
    host = manager.qualified_computer_name or manager.computer_name
    computer, backslash, rest = queue.pathname.partition("\\")
    if not backslash:
        return computer  # a connector's path is its format name
    return f"DIRECT=OS:{host}\\{rest}{_JOURNAL if is_journal(queue) else ''}"


def path_name(queue: Queue) -> str | None:
    """Return the path name of a queue; an outgoing queue has that of its destination (1.1), if it is known.

    A GUID, a URL and a multicast address name no path.
    """
    if not isinstance(queue, OutgoingQueue):
        return queue.pathname or None
    name = queue.destination
    if not isinstance(name, DirectName) or name.protocol in HTTP_PORTS:
        return None
    path = name.canonical.partition(":")[2]
    return path.replace("\\PRIVATE$\\", "\\private$\\", 1) if name.private else path


def is_journal(queue: Queue) -> bool:
    """Return whether a queue is the journal of another."""
    return queue.owner_queue is not None and queue.owner_queue.journal is queue


def type_of(queue: Queue) -> QueueType:
    """Return the QueueType; an outgoing queue has that of its destination."""
    name = queue.destination if isinstance(queue, OutgoingQueue) else None
    return queue.queue_type if name is None else _type_named(name)


def _type_named(name: FormatName) -> QueueType:
    match name:
        case DirectName():
            return QueueType.PRIVATE if name.private else QueueType.PUBLIC
        case PublicName():
            return QueueType.PUBLIC
        case MachineName():
            return QueueType.SYSTEM
        case ConnectorName():
            return QueueType.CONNECTOR
    return QueueType.PRIVATE
