"""Which readers of a queue exclude each other: [MS-MQDMPR] 3.1.7.1.5."""

from __future__ import annotations

from typing import Final

from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import QueueAccessType, QueueShareMode

_PEEKS: Final = (QueueAccessType.PEEK_ACCESS, QueueAccessType.PEEK_ADMIN_ACCESS)
_RECEIVE: Final = QueueAccessType.RECEIVE_ACCESS


def violates_sharing(queue: Queue, access_type: QueueAccessType, share_mode: QueueShareMode) -> bool:
    """Whether opening a queue conflicts with another descriptor of it."""
    denies = share_mode is QueueShareMode.DENY_RECEIVE  # DMPR-3.1.7.1.5-20 and -23
    for other, other_share in +queue.opened_for:
        excludes = other_share is QueueShareMode.DENY_RECEIVE and access_type is _RECEIVE
        if other is _RECEIVE and (denies or excludes):  # DMPR-3.1.7.1.5-20, -21 and -23
            return True
        if other in _PEEKS and excludes:  # DMPR-3.1.7.1.5-22
            return True
    return False
