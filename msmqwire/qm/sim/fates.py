"""The fates of messages that a protocol allows."""

from __future__ import annotations

from typing import Final, NamedTuple


class Fates(NamedTuple):
    """The possible fates of a message under the protocol that carries it. The defaults are those of sessions.

    Attributes:
        begins_anew: whether a sequence may begin anew with its remaining messages, and repeat messages that
            have arrived: only the history of the receiver recognises them.
        expires_in_doubt: whether a message whose time is over is given up even if it may have arrived.
        reach_time: the default TimeToReachQueue in seconds, if only that limit counts at the sender; None if
            all limits count there, and there is no default.
        drops_only_late: whether a receiver silently drops messages that are not transactional only if they
            are late or there is no room, not if their queue does not accept them.
        receipt_is_enough: whether a transactional message may be journaled as soon as it is in its queue.
    """

    begins_anew: bool = False
    expires_in_doubt: bool = False
    reach_time: int | None = None
    drops_only_late: bool = False
    receipt_is_enough: bool = False


OF_SESSIONS: Final = Fates()
