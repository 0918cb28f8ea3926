"""The properties of a queue: [MS-MQMR] 3.1.4.1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from msmqwire.constants import (
    ManagementQueueForeign,
    ManagementQueueLocation,
    ManagementQueueProperty,
    ManagementQueueState,
    ManagementQueueType,
    ManagementQueueXact,
)
from msmqwire.management.variants import NULL
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import OutgoingQueue, Queue, QueueManager
from msmqwire.qm.model.enumerations import QueueType
from msmqwire.qm.protocols.management.histories import source_info
from msmqwire.qm.protocols.management.names import format_name, path_name, type_of
from msmqwire.qm.protocols.management.outgoing_values import OUTGOING
from msmqwire.qm.protocols.management.variants import count, text, texts

_P: Final = ManagementQueueProperty
_TYPES: Final = {  # MQMR-3.1.4.1-34
    QueueType.PUBLIC: ManagementQueueType.MGMT_QUEUE_TYPE_PUBLIC.value,
    QueueType.PRIVATE: ManagementQueueType.MGMT_QUEUE_TYPE_PRIVATE.value,
    QueueType.SYSTEM: ManagementQueueType.MGMT_QUEUE_TYPE_MACHINE.value,
    QueueType.CONNECTOR: ManagementQueueType.MGMT_QUEUE_TYPE_CONNECTOR.value,
}


def _pathname(manager: QueueManager, queue: Queue) -> Any:
    """MQMR-3.1.4.1-32."""
    return text(path_name(queue))


def _format_name(manager: QueueManager, queue: Queue) -> Any:
    return text(format_name(manager, queue))  # MQMR-3.1.4.1-33


def _type(manager: QueueManager, queue: Queue) -> Any:
    if isinstance(queue, OutgoingQueue) and queue.multicast:  # MQMR-3.1.4.1-34
        return text(ManagementQueueType.MGMT_QUEUE_TYPE_MULTICAST.value)
    return text(_TYPES[type_of(queue)])


def _location(manager: QueueManager, queue: Queue) -> Any:
    remote = isinstance(queue, OutgoingQueue)  # MQMR-3.1.4.1-35
    location = ManagementQueueLocation
    return text(
        location.MGMT_QUEUE_REMOTE_LOCATION.value if remote else location.MGMT_QUEUE_LOCAL_LOCATION.value
    )


def _xact(manager: QueueManager, queue: Queue) -> Any:
    kinds = ManagementQueueXact  # MQMR-3.1.4.1-36
    return text(
        kinds.MGMT_QUEUE_TRANSACTIONAL_TYPE.value
        if queue.transactional
        else kinds.MGMT_QUEUE_NOT_TRANSACTIONAL_TYPE.value
    )


def _foreign(manager: QueueManager, queue: Queue) -> Any:
    """ForeignSystem of this queue manager: MQMR-3.1.4.1-37, MQMR-3.1.4.1-38."""
    kinds = ManagementQueueForeign
    if manager.directory_offline:
        private = type_of(queue) is QueueType.PRIVATE
        return text(
            kinds.MGMT_QUEUE_NOT_FOREIGN_TYPE.value if private else kinds.MGMT_QUEUE_UNKNOWN_TYPE.value
        )
    return text(
        kinds.MGMT_QUEUE_FOREIGN_TYPE.value
        if manager.foreign_system
        else kinds.MGMT_QUEUE_NOT_FOREIGN_TYPE.value
    )


def _messages(manager: QueueManager, queue: Queue) -> Any:
    return count(len(queue.positions))  # MQMR-3.1.4.1-39: a deleted position leaves the list


def _bytes(manager: QueueManager, queue: Queue) -> Any:
    return count(queue.total_bytes)  # MQMR-3.1.4.1-40


def _journal_messages(manager: QueueManager, queue: Queue) -> Any:
    return count(0 if queue.journal is None else len(queue.journal.positions))  # MQMR-3.1.4.1-41


def _journal_bytes(manager: QueueManager, queue: Queue) -> Any:
    """By the letter 0 while Journaling is False, though the journal may hold messages: MQMR-3.1.4.1-42."""
    return count(queue.journal.total_bytes if queue.journaling and queue.journal is not None else 0)


def _state(manager: QueueManager, queue: Queue) -> Any:
    return text(ManagementQueueState.MGMT_QUEUE_STATE_LOCAL.value)  # MQMR-3.1.4.1-43


def _sources(manager: QueueManager, queue: Queue) -> Any:
    return source_info(queue)


def _subqueue_count(manager: QueueManager, queue: Queue) -> Any:
    return count(len(queue.subqueues))  # MQMR-3.1.4.1-62


def _subqueue_names(manager: QueueManager, queue: Queue) -> Any:
    return texts(sub.pathname.rpartition(";")[2] for sub in queue.subqueues.values())  # MQMR-3.1.4.1-63


_LOCAL: Final[dict[int, Callable[[QueueManager, Queue], Any]]] = {
    _P.PROPID_MGMT_QUEUE_PATHNAME: _pathname,
    _P.PROPID_MGMT_QUEUE_FORMATNAME: _format_name,
    _P.PROPID_MGMT_QUEUE_TYPE: _type,
    _P.PROPID_MGMT_QUEUE_LOCATION: _location,
    _P.PROPID_MGMT_QUEUE_XACT: _xact,
    _P.PROPID_MGMT_QUEUE_FOREIGN: _foreign,
    _P.PROPID_MGMT_QUEUE_MESSAGE_COUNT: _messages,
    _P.PROPID_MGMT_QUEUE_BYTES_IN_QUEUE: _bytes,
    _P.PROPID_MGMT_QUEUE_JOURNAL_MESSAGE_COUNT: _journal_messages,
    _P.PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL: _journal_bytes,
    _P.PROPID_MGMT_QUEUE_STATE: _state,
    _P.PROPID_MGMT_QUEUE_EOD_SOURCE_INFO: _sources,
    _P.PROPID_MGMT_QUEUE_SUBQUEUE_COUNT: _subqueue_count,
    _P.PROPID_MGMT_QUEUE_SUBQUEUE_NAMES: _subqueue_names,
}
QUEUE_PROPERTIES: Final = frozenset(map(int, (*_LOCAL, *OUTGOING)))
"""The identifiers of all queue properties: 1 to 27."""


def queue_value(context: Context, queue: Queue, identifier: int) -> Any:
    """Return the value of a property, a key of `QUEUE_PROPERTIES`, as a PROPVARIANT.

    It is VT_NULL where the property does not apply: MQMR-3.1.4.1-47.
    """
    outgoing = OUTGOING.get(identifier)
    if outgoing is not None:
        if isinstance(queue, OutgoingQueue):
            return outgoing(queue)
        if identifier not in _LOCAL:
            return NULL
    return _LOCAL[identifier](context.queue_manager, queue)


def queue_values(context: Context, queue: Queue, identifiers: Sequence[int]) -> list[Any]:
    """Return the values of properties of a queue, in their order.

    Raises KeyError for an identifier that is not in `QUEUE_PROPERTIES`.
    """
    return [queue_value(context, queue, identifier) for identifier in identifiers]
