"""The properties of the queue manager: [MS-MQMR] 3.1.4.1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from msmqwire.constants import ManagementConnected, ManagementMachineProperty, VarEnum
from msmqwire.management.variants import NULL, variant
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.elements import OutgoingQueue, Queue, QueueManager
from msmqwire.qm.model.enumerations import QueueType
from msmqwire.qm.protocols.management.names import format_name
from msmqwire.qm.protocols.management.variants import text, texts

_P: Final = ManagementMachineProperty
_BYTES_MAX: Final = (1 << 63) - 1
_BEFORE_DIRECTORY: Final = "\\\\"
TYPE: Final = "msmqwire"
"""PROPID_MGMT_MSMQ_TYPE: free text."""


def active_names(manager: QueueManager) -> Iterator[str]:
    """Yield the format names of the active queues: those that hold messages or are open.

    Queues of order acknowledgements, which no name leads to, are left out. MQMR-3.1.4.1-21.
    """
    for queue in manager.queues.values():
        if is_active(queue):
            yield format_name(manager, queue)


def is_active(queue: Queue) -> bool:
    """Return whether a queue holds messages or is open."""
    if isinstance(queue, OutgoingQueue) and queue.acknowledged_peer is not None:
        return False
    return bool(queue.descriptors) or len(queue.positions) > 0


def private_names(manager: QueueManager) -> Iterator[str]:
    """Yield the path names of the private queues: MQMR-3.1.4.1-22."""
    for queue in manager.queues.values():
        if is_private(queue):
            yield queue.pathname


def is_private(queue: Queue) -> bool:
    """Return whether a queue is a private one of applications, not a part of one."""
    if isinstance(queue, OutgoingQueue) or queue.owner_queue is not None:
        return False
    return queue.queue_type is QueueType.PRIVATE


def _directory_server(manager: QueueManager) -> Any:
    """MQMR-3.1.4.1-23, MQMR-3.1.4.1-24."""
    servers = manager.directory_server_list
    if not manager.directory_integrated or not servers:
        return NULL
    return text(_BEFORE_DIRECTORY + servers[0].removeprefix(_BEFORE_DIRECTORY))


def _connected(manager: QueueManager) -> Any:
    """MQMR-3.1.4.1-25."""
    active = manager.connection_active
    return text(
        ManagementConnected.MSMQ_CONNECTED.value if active else ManagementConnected.MSMQ_DISCONNECTED.value
    )


def _bytes(manager: QueueManager) -> Any:
    """MQMR-3.1.4.1-27: TotalBytes of all queues together."""
    return variant(VarEnum.VT_I8, min(manager.total_bytes, _BYTES_MAX))


_GETTERS: Final[dict[int, Callable[[QueueManager], Any]]] = {
    _P.PROPID_MGMT_MSMQ_ACTIVEQUEUES: lambda manager: texts(active_names(manager)),
    _P.PROPID_MGMT_MSMQ_PRIVATEQ: lambda manager: texts(private_names(manager)),
    _P.PROPID_MGMT_MSMQ_DSSERVER: _directory_server,
    _P.PROPID_MGMT_MSMQ_CONNECTED: _connected,
    _P.PROPID_MGMT_MSMQ_TYPE: lambda manager: text(TYPE),  # MQMR-3.1.4.1-26
    _P.PROPID_MGMT_MSMQ_BYTES_IN_ALL_QUEUES: _bytes,
}
MACHINE_PROPERTIES: Final = frozenset(map(int, _GETTERS))
"""The identifiers of all machine properties: 1 to 6."""


def machine_value(context: Context, identifier: int) -> Any:
    """Return the value of a property, a key of `MACHINE_PROPERTIES`, as a PROPVARIANT."""
    return _GETTERS[identifier](context.queue_manager)
