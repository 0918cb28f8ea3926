"""MessageIDHistoryTable, messages received lately, so that one sent again is known: [MS-MQQB] 3.1.1.3."""

from __future__ import annotations

from collections import OrderedDict
from uuid import UUID

from msmqwire.qm.model.changes import Table
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.message import ObjectId
from msmqwire.qm.model.timers import Timer


class History:
    """Identifiers of messages by the time of their last receipt, the earliest first.

    Those of recoverable messages survive.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._times: OrderedDict[ObjectId, int] = OrderedDict()
        self._stored: set[ObjectId] = set()

    def __len__(self) -> int:
        return len(self._times)

    def restore(self, rows: list[tuple[bytes, bytes]]) -> None:
        """What the store has; starts the timer if that is anything: MQQB-3.1.3.1-02."""
        found = sorted((int.from_bytes(row, "little"), key) for key, row in rows)
        for time, key in found:
            identifier = _identifier(key)
            self._times[identifier] = time
            self._stored.add(identifier)
        if self._times:
            self._start()

    def known(self, identifier: ObjectId) -> bool:
        """Whether a message was received before; if so, it has been received now: MQQB-3.1.5.8.1-03."""
        if identifier not in self._times:
            return False
        self._touch(identifier)
        return True

    def add(self, identifier: ObjectId, *, recoverable: bool) -> None:
        """A message was received: MQQB-3.1.5.8.2-04 to -06."""
        if len(self._times) >= self._context.settings.remove_duplicate_size:
            self._forget(next(iter(self._times)))
        if recoverable:
            self._stored.add(identifier)
        self._touch(identifier)
        if not self._context.timers.active(Timer.MESSAGE_ID_HISTORY_CLEANUP, None):
            self._start()

    def _touch(self, identifier: ObjectId) -> None:
        self._times[identifier] = self._context.utc
        self._times.move_to_end(identifier)
        if identifier in self._stored:
            row = self._context.utc.to_bytes(8, "little")
            self._context.changes.put(Table.HISTORY, bytes(identifier), row)

    def _forget(self, identifier: ObjectId) -> None:
        del self._times[identifier]
        if identifier in self._stored:
            self._stored.discard(identifier)
            self._context.changes.delete(Table.HISTORY, bytes(identifier))

    def _start(self) -> None:
        delay = self._context.settings.message_id_history_cleanup_ms
        self._context.timers.start(Timer.MESSAGE_ID_HISTORY_CLEANUP, None, delay, self._clean)

    def _clean(self) -> None:
        """MessageIDHistory Cleanup Timer Event: [MS-MQQB] 3.1.6.7."""
        oldest = self._context.utc - self._context.settings.message_id_history_cleanup_ms // 1000
        while self._times:
            identifier, time = next(iter(self._times.items()))
            if time >= oldest:
                self._start()
                return
            self._forget(identifier)


def _identifier(key: bytes) -> ObjectId:
    return ObjectId(UUID(bytes_le=key[:16]), int.from_bytes(key[16:], "little"))
