"""The reason why messages of an outgoing queue do not reach its destination, in words."""

from __future__ import annotations

from typing import Final

from msmqwire.names.class_words import class_words
from msmqwire.qm.model.elements import ConnectionHistory, OutgoingQueue
from msmqwire.qm.model.enumerations import ConnectionStatus

_UNDER_WAY: Final = (ConnectionStatus.IN_PROCESS, ConnectionStatus.ESTABLISH_PACKET_RECEIVED)
_FAILURES: Final = {
    ConnectionStatus.DNS_FAILURE: "{} has no address",
    ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE: "no route to its queue manager is known",
    ConnectionStatus.CONNECTION_REFUSED: "{} refuses the session",
}
_TOO_LATE: Final = class_words("NACK_REACH_QUEUE_TIMEOUT")


def last_failure(queue: OutgoingQueue) -> ConnectionHistory | None:
    """Return the last attempt to reach a queue if it has failed, even while another one is under way."""
    for reached in reversed(queue.connection_history):
        if reached.status not in _UNDER_WAY:
            return None if reached.status is ConnectionStatus.ESTABLISHED else reached
    return None


def failure_words(failure: ConnectionHistory, place: str) -> str:
    """Return the failure in words; `place` is the destination of the messages."""
    return failure.detail or _FAILURES.get(failure.status, f"{failure.status.value} at {{}}").format(place)


def too_late(queue: OutgoingQueue, place: str) -> str:
    """Return why a message expired without being sent; empty if nothing has failed."""
    failure = last_failure(queue)
    return "" if failure is None else f"{_TOO_LATE}: {failure_words(failure, place)}"
