"""The activity of a queue manager: its sessions, its transactions, and counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from msmqwire.qm.model.elements import ConnectionHistory, OutgoingQueue, Transaction
from msmqwire.qm.protocols.binary.session import Session
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.message_json import number

if TYPE_CHECKING:
    from msmqwire.qm.core import Core

COUNT_MAX: Final = 200
"""Limit of the sessions and of the transactions in an answer."""
_UINT32_MAX: Final = 0xFFFFFFFF


def activity(driver: EngineDriver, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``sessions`` and ``transactions``, their numbers, and ``counters``.

    Of the sessions and of the transactions ``count`` are returned, from ``offset`` on. Raises InvalidValue.
    """
    offset = number(request.get("offset", 0), "offset", _UINT32_MAX)
    count = number(request.get("count", COUNT_MAX), "count", COUNT_MAX)
    sessions, transactions = driver.core.binary.sessions, driver.core.queue_manager.transactions
    return {
        "sessions": [session_json(one) for one in islice(sessions.values(), offset, offset + count)],
        "sessions_total": len(sessions),
        "transactions": [
            transaction_json(one) for one in islice(transactions.values(), offset, offset + count)
        ],
        "transactions_total": len(transactions),
        "counters": counters(driver),
    }


def counters(driver: EngineDriver) -> dict[str, int]:
    """Return the counters: messages ``put`` into queues and ``taken`` out of them, commits, bytes."""
    put, taken = _moved(driver.core)
    figures = {"put": put, "taken": taken, "commits": driver.commits}
    if driver.traffic is not None:
        figures["bytes_received"] = driver.traffic.bytes_received
        figures["bytes_sent"] = driver.traffic.bytes_sent
    return figures


def _moved(core: Core) -> tuple[int, int]:
    put = core.queue_manager.sequential_id
    return put, put - sum(len(queue.positions) for queue in core.queue_manager.queues.values())


def connection_history_json(queue: OutgoingQueue) -> list[dict[str, Any]]:
    """Return the states that the connections of an outgoing queue have reached, the latest first."""
    return [_reached(one) for one in reversed(queue.connection_history)]


def _reached(one: ConnectionHistory) -> dict[str, Any]:
    return {
        "time": one.time,
        "status": one.status.value,
        "error": f"0x{one.error:08X}" if one.error else None,
        "addresses": list(one.addresses),
    }


def session_json(session: Session) -> dict[str, Any]:
    """Return a session with another queue manager."""
    return {
        "number": session.number,
        "peer": session.place,
        "address": session.remote_address or None,
        "queue_manager": str(session.remote_guid) if session.remote_guid.int else None,
        "role": session.role.value,
        "state": session.state.value,
        "window": session.window_size,
        "peer_window": session.received_window_size,
        "sent_unacknowledged": session.unacked_message_count,
        "sent_unacknowledged_bytes": session.unacked_bytes,
        "sent_unsaved": len(session.unsaved),
        "received_unacknowledged": session.unacked_received_count,
        "queues": len(session.transfers),
        "failures": session.failures,
    }


def transaction_json(transaction: Transaction) -> dict[str, Any]:
    """Return a transaction that has not ended."""
    kinds = Counter(entry.operation_type.name.lower() for entry in transaction.operations)
    return {
        "transaction": str(transaction.identifier),
        "operations": len(transaction.operations),
        "kinds": dict(kinds),
        "coordinator": not transaction.single_phase,
        "prepared": transaction.prepared,
    }
