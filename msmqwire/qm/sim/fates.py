"""The fates of messages that a protocol allows."""

from __future__ import annotations

from typing import Final, NamedTuple


class Fates(NamedTuple):
    """What may become of a message by the protocol that it goes by. The defaults are those of sessions.

    Attributes:
        begins_anew: a sequence may begin anew with what is left of it, and repeat what has come: only the
            history of the receiver tells.
        expires_in_doubt: a message whose time is over is given up even if it may have arrived.
        reach_time: seconds to reach the queue, which alone count at the sender, where a message names none;
            None if all limits of a message count there, and none is the default.
        drops_only_late: of what is not transactional a receiver drops silently only what there is no room for
            and what is too late, not what its queue does not take.
        receipt_is_enough: a transactional message may be journaled as soon as it is in its queue.
    """

    begins_anew: bool = False
    expires_in_doubt: bool = False
    reach_time: int | None = None
    drops_only_late: bool = False
    receipt_is_enough: bool = False


OF_SESSIONS: Final = Fates()
