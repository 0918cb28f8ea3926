"""The state that all rules of one queue manager share: the model, the time, changes and effects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol
from uuid import UUID

from msmqwire.qm.model.effects import Effect, ErrorReport
from msmqwire.qm.model.elements import OutgoingQueue, Queue, QueueManager
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.model.refusals import Refusals, reason_of
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.model.timers import Timers
from msmqwire.service.store.changes import Changes

_TROUBLE_MS: Final = 60_000
"""The interval in milliseconds in which each kind of trouble is reported once."""


class Subscriber(Protocol):
    """The events on messages and queues that a protocol receives: [MS-MQDMPR] 3.1.7.2."""

    def message_position_available(self, queue: Queue, position: MessagePosition) -> None:
        """[MS-MQDMPR] 3.1.7.2.2."""

    def message_position_deleted(self, queue: Queue, position: MessagePosition, reason: int) -> None:
        """[MS-MQDMPR] 3.1.7.2.1. The position still has its message."""

    def queue_paused(self, queue: OutgoingQueue) -> None:
        """[MS-MQDMPR] 3.1.7.2.3."""

    def queue_resumed(self, queue: OutgoingQueue) -> None:
        """[MS-MQDMPR] 3.1.7.2.4."""

    def taken_offline(self) -> None:
        """Take Offline, [MS-MQDMPR] 3.1.4.12: no message goes to or comes from another queue manager."""

    def brought_online(self) -> None:
        """Bring Online, [MS-MQDMPR] 3.1.4.13: what waits is transferred."""

    def send_user_message(self, position: MessagePosition, protocol_data: object) -> None:
        """Send User Message Wrapper, raised by Dispatch Send Message: [MS-MQDMPR] 3.1.7.3.9."""


class Context:
    """The state of a queue manager on which its rules operate.

    Attributes:
        queue_manager: LocalQueueManager.
        settings: set by the administrator.
        timers: all timers; their `now` is the time since the system started.
        utc: seconds since 1970-01-01 UTC.
        changes: rows that have changed since the owner took them.
        effects: to be carried out once these changes are durable.
        subscribers: the protocols beside the core.
        troubles: occurrences of each kind of trouble with peers.
        refusals: the trace of messages that ended undelivered.
        new_guid: returns a new, globally unique GUID.
    """

    def __init__(self, queue_manager: QueueManager, settings: Settings, new_guid: Callable[[], UUID]) -> None:
        self.queue_manager, self.settings, self.new_guid = queue_manager, settings, new_guid
        self.timers = Timers()
        self.utc = 0
        self.changes = Changes()
        self.effects: list[Effect] = []
        self.subscribers: list[Subscriber] = []
        self.troubles: Counter[str] = Counter()
        self.refusals = Refusals()
        self._reported: dict[str, tuple[int, int]] = {}  # by kind: time of the last report, and count

    @property
    def now(self) -> int:
        """Milliseconds since the system started."""
        return self.timers.now

    def trouble(self, kind: str, text: str, *, warning: bool = False) -> None:
        """Count trouble of a kind, and report it to the administrator, at most once a minute for each kind.

        Args:
            kind: one of few: peers must not choose it.
            text: of the report.
            warning: False for an error, True if nothing has gone wrong yet.
        """
        self.troubles[kind] += 1
        count = self.troubles[kind]
        when, reported = self._reported.get(kind, (self.now - _TROUBLE_MS, 0))
        if self.now - when < _TROUBLE_MS:
            return
        more = f", and {count - reported - 1} more of this kind" if count - reported > 1 else ""
        self.effects.append(ErrorReport(f"{kind}: {text}{more}", warning))
        self._reported[kind] = self.now, count

    def refused(
        self,
        reason: int | str,
        message: Message | None = None,
        queue: Queue | None = None,
        *,
        why: str = "",
        peer: str | None = None,
        kind: str = "refused",
    ) -> None:
        """Leave the trace of a message that is refused, dropped or has expired.

        This does not notify its sender; the specification has other means for that.

        Args:
            reason: a message class, or one of the texts of `refusals`. Deletion by an administrator leaves no
                trace.
            message: None if it could not be read.
            queue: its queue or destination; None for none, or for several.
            why: further details, in words.
            peer: the address that it came from, if the message does not have it.
            kind: the kind of trouble that it counts as.
        """
        name = reason_of(reason)
        if name is None:
            return
        self.troubles[kind] += 1
        if message is not None:
            peer = peer or message.peer or message.origin
        self.refusals.add(
            name, peer=peer or None, queue=queue, message=message, why=why, now=self.now, utc=self.utc
        )

    def take(self) -> tuple[Changes, list[Effect]]:
        """Return the changes and effects since the last call."""
        taken = self.changes, self.effects
        self.changes, self.effects = Changes(), []
        return taken
