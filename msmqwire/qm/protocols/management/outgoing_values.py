"""The properties that only outgoing queues have: [MS-MQMR] 3.1.4.1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msmqwire.constants import ManagementQueueProperty, ManagementQueueState
from msmqwire.management.variants import NULL
from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.model.enumerations import OutgoingQueueState
from msmqwire.qm.protocols.management.histories import connection_history
from msmqwire.qm.protocols.management.variants import count, sequence, text, texts, time

_P: Final = ManagementQueueProperty
_S: Final = ManagementQueueState
LOCKED: Final = "LOCKED"
"""A state that 3.1.4.1 has and [MS-MQMQ] 2.3.12.11 lacks."""
_STATES: Final = {  # MQMR-3.1.4.1-44
    OutgoingQueueState.CONNECTED: _S.MGMT_QUEUE_STATE_CONNECTED.value,
    OutgoingQueueState.DISCONNECTED: _S.MGMT_QUEUE_STATE_DISCONNECTED.value,
    OutgoingQueueState.DISCONNECTING: _S.MGMT_QUEUE_STATE_DISCONNECTING.value,
    OutgoingQueueState.INACTIVE: _S.MGMT_QUEUE_STATE_NONACTIVE.value,
    OutgoingQueueState.LOCKED: LOCKED,
    OutgoingQueueState.NEED_VALIDATION: _S.MGMT_QUEUE_STATE_NEED_VALIDATE.value,
    OutgoingQueueState.WAITING: _S.MGMT_QUEUE_STATE_WAITING.value,
    OutgoingQueueState.ON_HOLD: _S.MGMT_QUEUE_STATE_ONHOLD.value,
}


def _state(queue: OutgoingQueue) -> Any:
    return text(_STATES[queue.state])


def _next_hops(queue: OutgoingQueue) -> Any:
    """MQMR-3.1.4.1-45, MQMR-3.1.4.1-46. A multicast queue has no path name: its address stands for it."""
    if queue.state is OutgoingQueueState.CONNECTED:
        return texts([str(queue.destination)] if queue.multicast else queue.next_hops)
    return texts(queue.next_hops) if queue.state is OutgoingQueueState.WAITING else NULL


def _last_ack(queue: OutgoingQueue) -> Any:
    """MQMR-3.1.4.1-48. Before the first acknowledgement of a session there is no such message."""
    info = queue.transfer
    last = info.eod_last_ack
    return NULL if last is None or not info.eod_no_ack_count or not last.number else sequence(last)


OUTGOING: Final[dict[int, Callable[[OutgoingQueue], Any]]] = {
    _P.PROPID_MGMT_QUEUE_STATE: _state,
    _P.PROPID_MGMT_QUEUE_NEXTHOPS: _next_hops,
    _P.PROPID_MGMT_QUEUE_EOD_LAST_ACK: _last_ack,
    # MQMR-3.1.4.1-49
    _P.PROPID_MGMT_QUEUE_EOD_LAST_ACK_TIME: lambda queue: time(queue.transfer.eod_last_ack_time),
    # MQMR-3.1.4.1-50
    _P.PROPID_MGMT_QUEUE_EOD_LAST_ACK_COUNT: lambda queue: count(queue.transfer.eod_last_ack_count),
    # MQMR-3.1.4.1-51
    _P.PROPID_MGMT_QUEUE_EOD_FIRST_NON_ACK: lambda queue: sequence(queue.transfer.eod_first_non_ack),
    # MQMR-3.1.4.1-52
    _P.PROPID_MGMT_QUEUE_EOD_LAST_NON_ACK: lambda queue: sequence(queue.transfer.eod_last_non_ack),
    # MQMR-3.1.4.1-53
    _P.PROPID_MGMT_QUEUE_EOD_NEXT_SEQ: lambda queue: sequence(queue.transfer.eod_next_seq),
    # MQMR-3.1.4.1-54
    _P.PROPID_MGMT_QUEUE_EOD_NO_READ_COUNT: lambda queue: count(queue.transfer.eod_no_read_count),
    # MQMR-3.1.4.1-55
    _P.PROPID_MGMT_QUEUE_EOD_NO_ACK_COUNT: lambda queue: count(queue.transfer.eod_no_ack_count),
    # MQMR-3.1.4.1-56
    _P.PROPID_MGMT_QUEUE_EOD_RESEND_TIME: lambda queue: time(queue.transfer.eod_resend_time),
    # MQMR-3.1.4.1-57
    _P.PROPID_MGMT_QUEUE_EOD_RESEND_INTERVAL: lambda queue: count(queue.transfer.eod_resend_interval),
    # MQMR-3.1.4.1-58
    _P.PROPID_MGMT_QUEUE_EOD_RESEND_COUNT: lambda queue: count(queue.transfer.eod_resend_count),
    _P.PROPID_MGMT_QUEUE_CONNECTION_HISTORY: connection_history,
}
"""The values of these properties, by their identifiers."""
