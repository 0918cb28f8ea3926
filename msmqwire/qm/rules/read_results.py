"""Results of reading messages: [MS-MQDMPR] 3.1.7.1.10 to 3.1.7.1.15 and 3.1.7.1.17."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from msmqwire.constants import HResult
from msmqwire.qm.model.enumerations import CursorResult
from msmqwire.qm.model.message import Message
from msmqwire.qm.model.positions import MessagePosition

PENDING: Final = HResult.MQ_INFORMATION_OPERATION_PENDING
FAILED: Final[Mapping[CursorResult, HResult]] = {
    CursorResult.ALREADY_RECEIVED: HResult.MQ_ERROR_MESSAGE_ALREADY_RECEIVED,  # MQRR-3.1.4.7-54
    CursorResult.NOT_FOUND: HResult.MQ_ERROR_MESSAGE_NOT_FOUND,
    CursorResult.ILLEGAL_CURSOR_ACTION: HResult.MQ_ERROR_ILLEGAL_CURSOR_ACTION,
}
"""Status of a read by the result of its cursor, if that is neither a message nor a wait."""


class ReadOutcome(NamedTuple):
    """The result of a read.

    Attributes:
        status: MQ_OK, an error, or MQ_INFORMATION_OPERATION_PENDING for a read that waits and ends with a
            `ReadCompleted` of its request number.
        message: the message.
        position: its position, which Dequeue Message End needs.
        request: the number of a waiting read.
    """

    status: int
    message: Message | None = None
    position: MessagePosition | None = None
    request: int = 0
