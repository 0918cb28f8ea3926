"""MessageIDHistoryTable: recently received messages, to recognise duplicates.

[MS-MQQB] 3.1.1.3; [MC-MQSRM] 3.1.1.1.5 has the same: an identifier is unique across protocols.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from msmqwire.qm.model.context import Context
from msmqwire.qm.model.message import Message, ObjectId
from msmqwire.qm.model.tables import Table
from msmqwire.qm.model.timers import Timer
from msmqwire.qm.rules.memory_pool import CHARACTER_BYTES, IDENTIFIER_BYTES, Kind, MemoryPool
from msmqwire.qm.rules.origin_keys import OriginKeys
from msmqwire.qm.rules.recovery import Stored

_Key = int | tuple[int, str, str]
"""An identifier as a number, whose hash is fast; with a destination and an origin where they matter."""
_SIZE: Final = 20  # of an OBJECTID
_SHARE: Final = 4


class History:
    """Identifiers of messages with the time of their last receipt, least recent first.

    The identifiers of recoverable messages are stored.
    """

    def __init__(self, context: Context, memory: MemoryPool) -> None:
        self._context, self._memory = context, memory
        self._entries: OrderedDict[_Key, tuple[int, str]] = OrderedDict()  # time of receipt, and origin
        self._stored: dict[_Key, bytes] = {}  # keys of their rows
        self._of_origins: OriginKeys[_Key] = OriginKeys()

    def __len__(self) -> int:
        return len(self._entries)

    def restore(self, stored: Stored) -> None:
        """Take over stored identifiers and start the timer if there are any: MQQB-3.1.3.1-02."""
        rows = [(key, row) for key, row in stored.rows(Table.HISTORY) if isinstance(key, bytes)]
        for time, key in sorted((int.from_bytes(row, "little"), key) for key, row in rows):
            received = _key_of_row(key)
            self._enter(received, time, "" if isinstance(received, int) else received[2])
            self._stored[received] = key  # SRMP-3.1.3.1-01
        if self._entries:
            self._start()

    def known(self, message: Message) -> bool:
        """Return whether a message is a duplicate, and note the time if it is."""
        received = self._key(message)
        if received not in self._entries:
            return False
        self._touch(received)  # MQQB-3.1.5.8.1-03
        return True

    def add(self, message: Message) -> None:
        """Note a message: [MS-MQQB] 3.1.5.8.2.

        An origin that has a fourth of all identifiers only drives out its own.
        """
        received = self._key(message)
        size, limit = _size(received), self._context.settings.remove_duplicate_size
        entries = self._entries
        # MQQB-3.1.5.8.2-05, SRMP-3.1.1.1.5-05
        # MQQB-3.1.1.3-13
        while entries and (len(entries) >= limit or not self._memory.fits(Kind.HISTORY, "", size)):
            own = self._of_origins.of(message.origin)
            self._forget(next(iter(own if _SHARE * len(own) >= len(entries) else entries)))
        if message.recoverable:
            self._stored[received] = _row_key(message.identifier, received)  # MQQB-3.1.1.3-14
        if received in entries:
            self._touch(received)
        else:
            self._enter(received, self._context.utc, message.origin)
            self._store(received)
        # MQQB-3.1.2.8-01
        if not self._context.timers.active(Timer.MESSAGE_ID_HISTORY_CLEANUP, None):  # MQQB-3.1.5.8.2-06
            self._start()

    def _key(self, message: Message) -> _Key:
        """Return the identity of a message: copies for several destinations share an identifier.

        With `Settings.bind_senders` the origin is part of it.
        """
        origin = message.origin if self._context.settings.bind_senders else ""
        name = message.destination.canonical if message.destinations and message.destination else ""
        identifier = _number(message.identifier)
        return (identifier, name, origin) if name or origin else identifier

    def _enter(self, received: _Key, time: int, origin: str) -> None:
        self._memory.take(Kind.HISTORY, "", _size(received))
        self._entries[received] = time, origin  # MQQB-3.1.1.3-15, MQQB-3.1.5.8.2-04
        self._of_origins.add(origin, received)

    def _touch(self, received: _Key) -> None:
        _, origin = self._entries[received]
        self._entries[received] = self._context.utc, origin
        self._entries.move_to_end(received)
        self._of_origins.touch(origin, received)
        self._store(received)

    def _store(self, received: _Key) -> None:
        key = self._stored.get(received)
        if key is not None:
            self._context.changes.put(Table.HISTORY, key, self._context.utc.to_bytes(8, "little"))

    def _forget(self, received: _Key) -> None:
        _, origin = self._entries.pop(received)
        self._of_origins.remove(origin, received)
        self._memory.give_back(Kind.HISTORY, "", _size(received))
        key = self._stored.pop(received, None)
        if key is not None:
            self._context.changes.delete(Table.HISTORY, key)

    def _start(self) -> None:
        delay = self._context.settings.message_id_history_cleanup_ms
        # MQQB-3.1.2.8-02
        self._context.timers.start(Timer.MESSAGE_ID_HISTORY_CLEANUP, None, delay, self._clean)

    def _clean(self) -> None:
        """MessageIDHistory Cleanup Timer Event: [MS-MQQB] 3.1.6.7."""
        oldest = self._context.utc - self._context.settings.message_id_history_cleanup_ms // 1000
        while self._entries:
            identifier, (time, _) = next(iter(self._entries.items()))
            if time >= oldest:  # MQQB-3.1.6.7-01
                self._start()  # MQQB-3.1.6.7-02
                return
            self._forget(identifier)


def _number(identifier: ObjectId) -> int:
    return identifier.lineage.int << 32 | identifier.uniquifier


def _row_key(identifier: ObjectId, received: _Key) -> bytes:
    if isinstance(received, int):
        return bytes(identifier)
    _, name, origin = received
    return bytes(identifier) + (f"{name}\0{origin}" if origin else name).encode()


def _key_of_row(key: bytes) -> _Key:
    identifier = _number(ObjectId.from_bytes(key[:_SIZE]))
    if len(key) == _SIZE:
        return identifier
    name, _, origin = key[_SIZE:].decode().partition("\0")
    return identifier, name, origin


def _size(received: _Key) -> int:
    """Return the bytes of memory of an entry."""
    characters = 0 if isinstance(received, int) else len(received[1])
    return IDENTIFIER_BYTES + CHARACTER_BYTES * characters
