"""From fields of a packet to values of columns, where they are not the same."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msmqwire.constants import class_name
from msmqwire.errors import InvalidName
from msmqwire.names import from_user_header_queue
from msmqwire.schema import Record


def text(value: str | bytes | None) -> str | None:
    """Text as it is; one that is not well-formed with what can't be read replaced."""
    return value.decode("utf-16-le", "replace") if isinstance(value, bytes) else value


def unless_empty(value: bytes) -> bytes | None:
    """Bytes, null for none."""
    return value or None


def class_text(value: int) -> str:
    """The name of a message class."""
    return class_name(value)


def sender_id(security: Record) -> str | None:
    """The SecurityID: a SID (S-1-...) or a GUID as text, by its type and size; else hex."""
    data: bytes = security.SecurityData.SecurityID
    if not data:
        return None
    if security.Flags.ST == 1 and len(data) >= 8 and len(data) == 8 + 4 * data[1]:
        authority = int.from_bytes(data[2:8], "big")
        parts = (int.from_bytes(data[i : i + 4], "little") for i in range(8, len(data), 4))
        return "-".join(["S", str(data[0]), str(authority), *map(str, parts)])
    if security.Flags.ST == 2 and len(data) == 16:
        return str(UUID(bytes_le=data))
    return data.hex()


def destination(user: Record) -> str | None:
    """DestinationQueue as a format name."""
    return queue_name(user, "destination", user.Flags.DQ, user.DestinationQueue)


def admin_queue(user: Record) -> str | None:
    """AdminQueue as a format name."""
    return queue_name(user, "admin", user.Flags.AQ, user.AdminQueue)


def response_queue(user: Record) -> str | None:
    """ResponseQueue as a format name; that of the administration queue where RQ is 1."""
    if user.Flags.RQ == 1:
        return admin_queue(user)
    return queue_name(user, "response", user.Flags.RQ, user.ResponseQueue)


def queue_name(user: Record, role: Any, kind: int, queue: Record | None) -> str | None:
    """A queue of a UserHeader as a format name; a direct one as it stands in the packet.

    Null where there is none, and where it can't be told (RQ 4 without the host of an
    administration queue).
    """
    if queue is None:
        return None
    if kind == 7:
        return f"DIRECT={text(queue.DirectFormatName)}"
    source, target = user.SourceQueueManager, user.QueueManagerAddress
    try:
        admin = None
        if role == "response" and user.AdminQueue is not None:
            admin = from_user_header_queue(
                user.Flags.AQ, user.AdminQueue, role="admin", source_qm=source, destination_qm=target
            )
        name = from_user_header_queue(
            kind, queue, role=role, source_qm=source, destination_qm=target, admin=admin
        )
    except InvalidName:
        return None
    return None if name is None else str(name)
