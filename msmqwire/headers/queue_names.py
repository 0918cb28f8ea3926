"""The queues of a UserHeader as format names: [MS-MQMQ] 2.1 and 2.2.19.2."""

from __future__ import annotations

from typing import Any

from msmqwire.errors import InvalidName
from msmqwire.names import from_user_header_queue
from msmqwire.names.header_names import AT_ADMIN, DIRECT, LIKE_ADMIN
from msmqwire.schema import Record


def text(value: str | bytes | None) -> str | None:
    """Return text unchanged; decode ill-formed text with replacement characters."""
    return value.decode("utf-16-le", "replace") if isinstance(value, bytes) else value


def destination(user: Record) -> str | None:
    """Return DestinationQueue as a format name."""
    return queue_name(user, "destination", user.Flags.DQ, user.DestinationQueue)


def admin_queue(user: Record) -> str | None:
    """Return AdminQueue as a format name."""
    return queue_name(user, "admin", user.Flags.AQ, user.AdminQueue)


def response_queue(user: Record) -> str | None:
    """Return ResponseQueue as a format name; that of the administration queue if RQ is 1."""
    if user.Flags.RQ == LIKE_ADMIN:
        return admin_queue(user)
    return queue_name(user, "response", user.Flags.RQ, user.ResponseQueue)


def queue_name(user: Record, role: Any, kind: int, queue: Record | None) -> str | None:
    """Return a queue of a UserHeader as a format name; a direct one exactly as in the packet.

    None if there is no queue, or it can't be named (RQ 4 beside an AQ without the GUID of a host).
    """
    if queue is None:
        return None
    if kind == DIRECT:
        return f"DIRECT={text(queue.DirectFormatName)}"
    source, target = user.SourceQueueManager, user.QueueManagerAddress
    try:
        admin = None
        if kind == AT_ADMIN and user.AdminQueue is not None:
            admin = from_user_header_queue(
                user.Flags.AQ, user.AdminQueue, role="admin", source_qm=source, destination_qm=target
            )
        name = from_user_header_queue(
            kind, queue, role=role, source_qm=source, destination_qm=target, admin=admin
        )
    except InvalidName:
        return None
    return None if name is None else str(name)
