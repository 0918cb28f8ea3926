"""Rows of queues, messages and transactions in the store: written to `Changes`, and read back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from enum import Enum
from struct import Struct
from typing import Any, Final, NamedTuple
from uuid import UUID

from msmqwire.names import parse_format_name
from msmqwire.qm.directory.attributes import ATTRIBUTES
from msmqwire.qm.model.elements import OutgoingQueue, Queue, QueueManager, Transaction
from msmqwire.qm.model.enumerations import (
    INFINITE,
    DirectoryServerType,
    MoveReason,
    OperatingSystemType,
    OperationType,
    OutgoingQueueState,
    PositionState,
    QueuePrivacy,
    QueueScope,
    QueueType,
)
from msmqwire.qm.model.policies import GOVERNED, is_governed
from msmqwire.qm.model.positions import NO_HISTORY, MessagePosition, MoveHistory
from msmqwire.qm.model.settings import KeptSettings
from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules import serialization
from msmqwire.service.store.changes import Changes

SEQUENTIAL_ID: Final = b"SequentialID"
QUEUE_MANAGER: Final = b"QueueManager"
SETTINGS: Final = b"Settings"

# queue, lookup identifier, size, arrival time, expiry time (0 never), state, flags; with _HISTORY the moves
# of its MoveHistory, with _DELIVERIES the rest of it; then the path name of the application dead-letter queue
# and, of a message that came over the network, a null and its origin
_MESSAGE: Final = Struct("<IQIQQBB")
_HISTORY_FIELDS: Final = Struct("<III")
_DELIVERY_FIELDS: Final = Struct("<IB")
TEXT: Final = _MESSAGE.size
"""Where the texts of a row of `Table.MESSAGE` begin, unless it has a history."""
_PEEK_WHEN_LOCKED: Final = 1
_HISTORY: Final = 2
_DELIVERIES: Final = 4
_TIME_MAX: Final = 0xFFFFFFFF


class MessageRow(NamedTuple):
    """The stored part of a message besides its packet.

    Attributes:
        queue: the number of its queue.
        arrival_time, expires: seconds since 1970-01-01 UTC; 0 for a message that does not expire.
        deadletter: ApplicationDeadletterQueue.
        origin: Message.origin; empty also for a message that version 1 has stored.
        history: the counts of its moves and returns.
    """

    queue: int
    lookup_identifier: int
    size: int
    arrival_time: int
    expires: int
    state: PositionState
    allow_peek_when_locked: bool
    deadletter: str
    origin: str
    history: MoveHistory


class StoredPosition(NamedTuple):
    """The fixed part of a row of `Table.MESSAGE`: the position of a message."""

    queue: int
    lookup_identifier: int
    size: int
    arrival_time: int
    expires: int
    state: int
    flags: int

    @property
    def has_history(self) -> bool:
        """Whether `read_message` finds a history in the row."""
        return bool(self.flags & (_HISTORY | _DELIVERIES))


def put_message(changes: Changes, position: MessagePosition) -> None:
    """Store the position and state of a message, and its packet the first time."""
    message = position.message
    expires = message.expires
    if not expires and message.time_to_be_received != INFINITE:
        expires = (message.sent_time or message.arrival_time) + message.time_to_be_received
    origin = f"\0{message.origin}" if message.origin else ""
    flags = _PEEK_WHEN_LOCKED if message.allow_peek_when_locked else 0
    history = b""
    if position.history != NO_HISTORY:
        *moves, deliveries, reason = position.history
        if any(moves):
            flags |= _HISTORY
            history = _HISTORY_FIELDS.pack(*moves)
        if deliveries or reason:
            flags |= _DELIVERIES
            history += _DELIVERY_FIELDS.pack(deliveries, reason)
    row = _MESSAGE.pack(
        position.queue.number, position.lookup_identifier, position.size, message.arrival_time, expires,
        position.state, flags,
    ) + history + f"{message.application_deadletter_queue}{origin}".encode()  # fmt: skip
    changes.put(Table.MESSAGE, position.number, row)
    if not position.stored:
        position.stored = True
        changes.put(Table.PACKET, position.number, serialization.to_stored(message))  # MQQB-3.1.1.1.1.8-03


def put_sequential_id(changes: Changes, number: int) -> None:
    """Store a bound of SequentialID."""
    changes.put(Table.META, SEQUENTIAL_ID, number.to_bytes(8, "little"))


def delete_message(changes: Changes, position: MessagePosition) -> None:
    """Delete the rows of a message."""
    if position.stored:
        position.stored = False
        changes.delete(Table.MESSAGE, position.number)
        changes.delete(Table.PACKET, position.number)


def read_position(row: bytes) -> StoredPosition:
    """Read the position of a message from a row of `Table.MESSAGE`."""
    return _new_position(_MESSAGE.unpack_from(row))


_new_position: Final = StoredPosition._make


class Origins(dict[bytes, str]):
    """The origins of messages by the end of their rows in `Table.MESSAGE`: see `TEXT`.

    There may be millions of rows, but few ends.
    """

    def __missing__(self, end: bytes) -> str:
        origin = self[end] = end.decode().partition("\0")[2]
        return origin


def read_message(row: bytes) -> MessageRow:
    """Read a row of `Table.MESSAGE`. Raises ValueError and struct.error."""
    queue, lookup, size, arrival, expires, state, flags = _MESSAGE.unpack_from(row)
    if arrival > _TIME_MAX:
        raise ValueError(f"it has arrived at {arrival}")
    end, history = _MESSAGE.size, NO_HISTORY
    if flags & _HISTORY:
        history = MoveHistory(*_HISTORY_FIELDS.unpack_from(row, end))
        end += _HISTORY_FIELDS.size
    if flags & _DELIVERIES:
        deliveries, reason = _DELIVERY_FIELDS.unpack_from(row, end)
        history = history._replace(deliveries=deliveries, reason=MoveReason(reason))
        end += _DELIVERY_FIELDS.size
    deadletter, _, origin = row[end:].decode().partition("\0")
    return MessageRow(
        queue, lookup, size, arrival, expires, PositionState(state), bool(flags & _PEEK_WHEN_LOCKED),
        deadletter, origin, history,
    )  # fmt: skip


# -- queues --------------------------------------------------------------------------------------------------

# DMPR-3.1.1-04
_NOT_STORED: Final = {
    "total_bytes", "queue_manager", "journal", "owner_queue", "subqueues", "incoming", "descriptors",
    "opened_for", "positions", "next_hops", "transfer", "connection_history", "number",  # DMPR-3.1.1.4-01
}  # fmt: skip
_ENUMS: Final[dict[str, type[Enum]]] = {
    "privacy_level": QueuePrivacy,
    "scope": QueueScope,
    "queue_type": QueueType,
    "state": OutgoingQueueState,
}


def put_queue(changes: Changes, queue: Queue) -> None:
    """Store a queue with its attributes."""
    content: dict[str, Any] = {"outgoing": isinstance(queue, OutgoingQueue)}
    for field in fields(queue):
        if field.name in _NOT_STORED:  # DMPR-3.1.1.2-01
            continue
        content[field.name] = _json_value(getattr(queue, field.name))  # DMPR-3.1.1.2-01, DMPR-3.1.1.3-03
    if is_governed(queue):  # what policies say follows from them at the next start
        for name, settable in GOVERNED.items():
            own = queue.own.get(name, settable.default)
            content[settable.attribute] = settable.nothing if own is None else own
    if isinstance(queue, OutgoingQueue) and queue.destination is not None:
        # DMPR-3.1.1.3-01
        content["destination"] = queue.destination.text  # a web server's paths may be case-sensitive
    content["journal_of"] = content["subqueue_of"] = None
    if queue.owner_queue is not None:
        relation = "journal_of" if queue.owner_queue.journal is queue else "subqueue_of"
        content[relation] = queue.owner_queue.number
    changes.put(Table.QUEUE, queue.number, json.dumps(content).encode())


def _json_value(value: Any) -> Any:
    """Return the JSON form of an attribute."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return [_json_value(element) for element in value]
    if isinstance(value, dict):
        return value
    return value if value is None or isinstance(value, (str, int)) else str(value)


def delete_queue(changes: Changes, queue: Queue) -> None:
    """Delete the row of a queue."""
    changes.delete(Table.QUEUE, queue.number)


def read_queue(number: int, row: bytes) -> tuple[Queue, int | None, int | None]:
    """Read a row of `Table.QUEUE`.

    Returns:
        The queue, the number of the queue whose journal it is, and the number of the queue whose subqueue it
        is.
    """
    content = json.loads(row)
    kind = OutgoingQueue if content.pop("outgoing") else Queue
    if kind is OutgoingQueue:
        content.setdefault("asked_by", None)  # version 1 did not store it
    journal_of, subqueue_of = content.pop("journal_of"), content.pop("subqueue_of")
    for name, value in content.items():
        if name in _ENUMS:
            content[name] = _ENUMS[name](value)
        elif name in ("identifier", "type", "acknowledged_peer") and value is not None:  # DMPR-3.1.1.2-05
            content[name] = UUID(value)  # DMPR-3.1.1.2-05
        elif name == "security":
            content[name] = bytes.fromhex(value)
        elif name == "destination" and value is not None:  # DMPR-3.1.1.3-01
            content[name] = parse_format_name(value, spx=True)  # DMPR-3.1.1.3-01
    return kind(number=number, **content), journal_of, subqueue_of


# -- the queue manager ---------------------------------------------------------------------------------------

_MANAGER: Final = (
    *(name for name in ATTRIBUTES["QueueManager"].values() if name != "identifier"),  # DMPR-3.1.1-03
    "last_domain", "directory_server_list", "srmp_http_support", "srmp_pgm_support", "hardened_security",
    # DMPR-3.1.1-02
    "initialization_retry_timer_duration",
)  # fmt: skip
"""The persistent attributes of a queue manager; DirectoryIntegrated follows from whether it is given a
directory.
"""


def _guids(texts: list[str]) -> list[UUID]:
    return [UUID(text) for text in texts]


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "operating_system_type": OperatingSystemType,
    "directory_server_type": DirectoryServerType,
    "last_domain": UUID,
    "security": bytes.fromhex,
    "public_encryption_key_list": bytes.fromhex,
    "public_signing_key_list": bytes.fromhex,
    **{name: _guids for name in _MANAGER if name.endswith("identifier_list")},  # DMPR-3.1.1.1-14 to -17
}


def put_queue_manager(changes: Changes, manager: QueueManager) -> None:
    """Store the queue manager with its attributes: DMPR-3.1.1-12."""
    content = {name: _json_value(getattr(manager, name)) for name in _MANAGER}
    changes.put(Table.META, QUEUE_MANAGER, json.dumps(content).encode())


def read_queue_manager(manager: QueueManager, row: bytes) -> None:
    """Set the attributes of a queue manager from a row that `put_queue_manager` wrote."""
    for name, value in json.loads(row).items():
        read = _READERS.get(name)
        # DMPR-3.1.1-02 and -03
        setattr(manager, name, value if read is None or value is None else read(value))  # DMPR-3.1.1.1-29


def put_settings(changes: Changes, settings: KeptSettings) -> None:
    """Store the settings that survive a restart."""
    # MQQB-3.1.1.3-19 to -23
    changes.put(Table.META, SETTINGS, json.dumps(settings.given).encode())


def read_settings(row: bytes) -> KeptSettings:
    """Read a row that `put_settings` wrote."""
    return KeptSettings(**json.loads(row))


# -- transactions --------------------------------------------------------------------------------------------

_OPERATION: Final = Struct("<BQIH")  # type, message, target queue, reason


def put_transaction(changes: Changes, transaction: Transaction) -> None:
    """Store a transaction that a coordinator will decide, with all its messages."""
    operations = []
    for operation in transaction.operations:
        position = operation.position
        position.recoverable = True  # even an express message, from now on
        put_message(changes, position)
        operations.append(
            _OPERATION.pack(
                operation.operation_type,
                position.number,
                operation.target.number if operation.target else 0,
                operation.dequeue_reason or 0,
            )
        )
    changes.put(Table.TRANSACTION, transaction.identifier.bytes, b"".join(operations))


def delete_transaction(changes: Changes, transaction: Transaction) -> None:
    """Delete the row of a transaction that has ended."""
    if transaction.prepared:
        changes.delete(Table.TRANSACTION, transaction.identifier.bytes)


def read_transaction(row: bytes) -> list[tuple[OperationType, int, int, int]]:
    """Read a row of `Table.TRANSACTION`: type, message, target queue and reason of each operation."""
    return [
        (OperationType(kind), number, target, reason)
        for kind, number, target, reason in _OPERATION.iter_unpack(row)
    ]
