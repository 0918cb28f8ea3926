"""States of a message at its sender, and their transitions: figures 3 and 6 of [MC-MQSRM] 3.1.1.1.2."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class SrmpMessageState(Enum):
    """Progress of the transfer of a message."""

    __hash__ = object.__hash__  # Enum's is slow, and members are dictionary keys

    PREPARE_TO_SEND = "Prepare to Send"
    WAIT_FOR_RESPONSE = "Wait for HTTP Response"
    WAIT_FOR_RETRANSMISSION = "Wait for Retransmission Timer Event"
    WAIT_FOR_STREAM_RECEIPT = "Wait for Stream Receipt"
    WAIT_FOR_FINAL_RECEIPT = "Wait for Final Stream Receipt"
    DONE = "deleted"


class SrmpMessageEvent(Enum):
    """The events that change the state of a message."""

    __hash__ = object.__hash__  # Enum's is slow, and members are dictionary keys

    SENT = "sent"
    ACCEPTED = "200"
    REFUSED = "400"
    FAILED = "5xx or time-out"
    RETRANSMISSION_TIMER = "Retransmission Timer"
    STREAM_RECEIPT_WAIT_TIMER = "Stream Receipt Wait Timer"
    STREAM_RECEIPT = "stream receipt, dead-letter queue not asked for"
    STREAM_RECEIPT_FINAL_AWAITED = "stream receipt, dead-letter queue asked for"
    FINAL_RECEIPT = "final stream receipt"
    EXPIRED = "TimeToReachQueue is over"
    GIVEN_UP = "given up, or deleted from its queue"


_S, _E = SrmpMessageState, SrmpMessageEvent

_REGULAR: Final[Mapping[tuple[SrmpMessageState, SrmpMessageEvent], SrmpMessageState]] = {
    (_S.PREPARE_TO_SEND, _E.SENT): _S.WAIT_FOR_RESPONSE,  # SRMP-3.1.1.1.2.1-02, SRMP-3.1.1.1.2.4-01
    (_S.PREPARE_TO_SEND, _E.EXPIRED): _S.DONE,  # SRMP-3.1.1.1.2.1-03, SRMP-3.1.1.1.2.4-02
    # SRMP-3.1.1.1.2.1-04 and -05, SRMP-3.1.1.1.2.4-03
    (_S.WAIT_FOR_RESPONSE, _E.FAILED): _S.WAIT_FOR_RETRANSMISSION,
    (_S.WAIT_FOR_RESPONSE, _E.REFUSED): _S.DONE,  # SRMP-3.1.1.1.2.1-06, SRMP-3.1.1.1.2.4-04
    (_S.WAIT_FOR_RESPONSE, _E.ACCEPTED): _S.DONE,  # SRMP-3.1.1.1.2.1-07, -08
    # SRMP-3.1.1.1.2.1-09, SRMP-3.1.1.1.2.4-03
    (_S.WAIT_FOR_RETRANSMISSION, _E.RETRANSMISSION_TIMER): _S.PREPARE_TO_SEND,
    # Checked at once, not only at the next attempt: there may never be another one.
    (_S.WAIT_FOR_RETRANSMISSION, _E.EXPIRED): _S.DONE,
    **{(state, _E.GIVEN_UP): _S.DONE for state in (_S.PREPARE_TO_SEND, _S.WAIT_FOR_RESPONSE,
                                                   _S.WAIT_FOR_RETRANSMISSION)},
}  # fmt: skip
_SENT: Final = (
    _S.PREPARE_TO_SEND, _S.WAIT_FOR_RESPONSE, _S.WAIT_FOR_RETRANSMISSION, _S.WAIT_FOR_STREAM_RECEIPT,
)  # fmt: skip
"""The states in which a stream receipt may come: the receipt for an earlier transmission may be late."""
_STREAM: Final[Mapping[tuple[SrmpMessageState, SrmpMessageEvent], SrmpMessageState]] = {
    **_REGULAR,  # SRMP-3.1.1.1.2.4-01 to -04
    (_S.WAIT_FOR_RESPONSE, _E.ACCEPTED): _S.WAIT_FOR_STREAM_RECEIPT,  # SRMP-3.1.1.1.2.4-05
    (_S.WAIT_FOR_STREAM_RECEIPT, _E.EXPIRED): _S.DONE,  # SRMP-3.1.1.1.2.4-06
    (_S.WAIT_FOR_STREAM_RECEIPT, _E.STREAM_RECEIPT_WAIT_TIMER): _S.PREPARE_TO_SEND,  # SRMP-3.1.6.2-01
    **{(state, _E.STREAM_RECEIPT): _S.DONE for state in _SENT},  # SRMP-3.1.1.1.2.4-07
    **{(state, _E.STREAM_RECEIPT_FINAL_AWAITED): _S.WAIT_FOR_FINAL_RECEIPT
       for state in _SENT},  # SRMP-3.1.1.1.2.4-08
    **{(state, _E.FINAL_RECEIPT): _S.DONE
       for state in (*_SENT, _S.WAIT_FOR_FINAL_RECEIPT)},  # SRMP-3.1.1.1.2.4-09, -10
    (_S.WAIT_FOR_FINAL_RECEIPT, _E.EXPIRED): _S.DONE,  # SRMP-3.1.1.1.2.4-11
    (_S.WAIT_FOR_STREAM_RECEIPT, _E.GIVEN_UP): _S.DONE,
    (_S.WAIT_FOR_FINAL_RECEIPT, _E.GIVEN_UP): _S.DONE,
}  # fmt: skip
MESSAGES: Final = {"Regular or durable": _REGULAR, "Stream": _STREAM}
"""The next state by kind of message, state and event."""
