"""The configuration of remote read besides `Settings`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from msmqwire.errors import InvalidValue


class Limit(NamedTuple):
    """The limit for one caller, and for all callers together."""

    per_caller: int
    total: int


_HANDLES: Final = Limit(16_384, 65_536)
_CURSORS: Final = Limit(4_096, 65_536)
_WAITING: Final = Limit(16_384, 65_536)
_PENDING: Final = Limit(32_768, 131_072)
_TRANSACTIONS: Final = Limit(1_024, 16_384)


@dataclass(frozen=True, slots=True)
class RemoteReadConfiguration:
    """The configuration of the server of remote read.

    Beyond a limit a call fails with MQ_ERROR_INSUFFICIENT_RESOURCES.

    Attributes:
        anonymous: whether unauthenticated callers may read.
        pending_s: seconds of the Pending Request Cleanup Timer: [MS-MQRR] 3.1.2.2.
        call_timeout_s: seconds of the RPC Call Timeout Timer: [MS-MQRR] 3.1.2.1.
        handles: limit of open queues.
        cursors: limit of cursors.
        waiting: limit of reads that wait for a message.
        pending: limit of receives that are not ended, including waiting ones.
        transactions: limit of distributed transactions in which callers have enlisted this queue manager, and
            of calls that wait for it.
        subqueues_max: limit of subqueues of a queue; beyond it, opening one for a move creates none.
    """

    anonymous: bool = False
    pending_s: int = 300  # MQRR-3.1.2.2-02
    call_timeout_s: int = 300
    handles: Limit = _HANDLES
    cursors: Limit = _CURSORS
    waiting: Limit = _WAITING
    pending: Limit = _PENDING
    transactions: Limit = _TRANSACTIONS
    subqueues_max: int = 1_024

    def __post_init__(self) -> None:
        """Raise InvalidValue for a time of zero: a message must stay with its reader for a while."""
        for name in ("pending_s", "call_timeout_s"):
            if getattr(self, name) < 1:  # MQRR-3.1.2.2-02
                raise InvalidValue("not a number of seconds from 1 on", path=name)
