"""Messages that are damaged in the store: they are reported by name and set aside, and others are served.

The message stays in the store and in the count of its queue until the queue is purged; after a restart
readers come to it again. What needs such a message in the midst of its work, as sending it, ends the queue
manager instead.
"""

from __future__ import annotations

from typing import Final

from msmqwire.constants import MQ_OK, HResult
from msmqwire.errors import StoreDamaged
from msmqwire.qm.model.context import Context
from msmqwire.qm.model.effects import ErrorReport
from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.rules.read_results import ReadOutcome

DAMAGED: Final = "damaged"
"""The kind of trouble."""


def readable(context: Context, position: MessagePosition) -> Message | None:
    """Return the message of an available position for its reader; None if it is damaged.

    Raises StoreDamaged for a damaged message of an outgoing queue: none may be sent in its place.
    """
    try:
        return position.message
    except StoreDamaged as exc:
        if isinstance(position.queue, OutgoingQueue):
            raise
        queue = position.queue.pathname
        text = f"message {position.number} of {queue} is set aside, lookup {position.lookup_identifier}"
        context.troubles[DAMAGED] += 1
        context.effects.append(ErrorReport(f"{DAMAGED}: {text}: {exc.why}"))
        position.set_aside()
        return None


def outcome_of(context: Context, position: MessagePosition) -> ReadOutcome:
    """Return the outcome of reading an available position."""
    message = readable(context, position)
    if message is None:
        return ReadOutcome(HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED)
    return ReadOutcome(MQ_OK, message, position)
