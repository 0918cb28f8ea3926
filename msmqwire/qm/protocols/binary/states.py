"""States of sessions, messages and pings, and their transitions: the figures of [MS-MQQB] 3.1.1.1."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class SessionRole(Enum):
    """The side of a session; both sides are equal once it is open."""

    __hash__ = object.__hash__  # Enum's is slow, and members are dictionary keys

    INITIATOR = "initiator"
    ACCEPTOR = "acceptor"


class SessionState(Enum):
    """SessionState: [MS-MQQB] 3.1.1.3.1."""

    __hash__ = object.__hash__  # Enum's is slow, and members are dictionary keys

    WAITING_EC_MSG = "WAITING_EC_MSG"  # MQQB-3.1.1.3.1-21
    WAITING_ECR_MSG = "WAITING_ECR_MSG"  # MQQB-3.1.1.3.1-21
    WAITING_CP_MSG = "WAITING_CP_MSG"  # MQQB-3.1.1.3.1-21
    WAITING_CPR_MSG = "WAITING_CPR_MSG"  # MQQB-3.1.1.3.1-21
    OPEN = "OPEN"  # MQQB-3.1.1.3.1-21
    CLOSED = "CLOSED"  # MQQB-3.1.1.3.1-21
    WAITING_RECONNECT = "WAITING_RECONNECT"  # MQQB-3.1.1.3.1-21


class SessionEvent(Enum):
    """The events that change the state of a session."""

    __hash__ = object.__hash__  # Enum's is slow, and members are dictionary keys

    START = "EstablishConnection request sent"
    ACCEPT = "transport connection accepted"
    ESTABLISH_CONNECTION = "EstablishConnection received"
    CONNECTION_PARAMETERS = "ConnectionParameters received"
    USER_MESSAGE = "UserMessage received"
    SESSION_ACK = "SessionAck received"
    ORDER_ACK = "OrderAck received"
    FINAL_ACK = "FinalAck received"
    CLOSE = "closed"
    RECONNECT_LATER = "messages wait"


_I, _A = SessionRole.INITIATOR, SessionRole.ACCEPTOR
_S, _E = SessionState, SessionEvent

SESSION: Final[Mapping[tuple[SessionRole, SessionState, SessionEvent], SessionState]] = {
    (_I, _S.CLOSED, _E.START): _S.WAITING_ECR_MSG,  # MQQB-3.1.1.1.1.1-01, MQQB-3.1.5.2.3-07
    (_I, _S.WAITING_RECONNECT, _E.START): _S.WAITING_ECR_MSG,  # MQQB-3.1.1.1.1.1-15
    # MQQB-3.1.1.1.1.1-04
    (_I, _S.WAITING_ECR_MSG, _E.ESTABLISH_CONNECTION): _S.WAITING_CPR_MSG,  # MQQB-3.1.5.3.2-07
    (_I, _S.WAITING_CPR_MSG, _E.CONNECTION_PARAMETERS): _S.OPEN,  # MQQB-3.1.5.4.2-03, MQQB-3.1.1.1.1.1-06
    (_A, _S.CLOSED, _E.ACCEPT): _S.WAITING_EC_MSG,  # MQQB-3.1.5.10-01, MQQB-3.1.1.1.1.2-01
    # MQQB-3.1.1.1.1.2-03
    (_A, _S.WAITING_EC_MSG, _E.ESTABLISH_CONNECTION): _S.WAITING_CP_MSG,  # MQQB-3.1.5.3.1-10
    (_A, _S.WAITING_CP_MSG, _E.CONNECTION_PARAMETERS): _S.OPEN,  # MQQB-3.1.5.4.1-03, MQQB-3.1.1.1.1.2-05
    **{
        (role, _S.OPEN, event): _S.OPEN  # MQQB-3.1.1.1.1.1-07 and -08, MQQB-3.1.1.1.1.2-06 and -07
        for role in SessionRole
        for event in (_E.USER_MESSAGE, _E.SESSION_ACK, _E.ORDER_ACK, _E.FINAL_ACK)
    },
    **{(role, state, _E.CLOSE): _S.CLOSED for role in SessionRole for state in _S},
    (_I, _S.CLOSED, _E.RECONNECT_LATER): _S.WAITING_RECONNECT,  # MQQB-3.1.5.9-04, MQQB-3.1.1.1.1.1-13
}
"""The next state by role, state and event. An event without entry closes the session."""


class SessionMessageState(Enum):
    """Progress of the transfer of a message: figures 5, 7 and 9 of [MS-MQQB] 3.1.1.1."""

    __hash__ = object.__hash__  # Enum's is slow, and members are dictionary keys

    WAITING_TO_SEND = "Waiting to Send"
    WAITING_FOR_SESSION_ACK = "Waiting for SessionAck"
    WAITING_FOR_ORDER_ACK = "Waiting for OrderAck"
    WAITING_FOR_FINAL_ACK = "Waiting for Final Ack"
    DONE = "deleted"


class SessionMessageEvent(Enum):
    """The events that change the state of a message."""

    __hash__ = object.__hash__  # Enum's is slow, and members are dictionary keys

    SENT = "sent"
    SESSION_ACK = "session acknowledgement"
    ORDER_ACK = "order acknowledgement"
    FINAL_ACK = "final acknowledgement"
    TIMEOUT = "timeout, or the session is lost"
    EXPIRED = "TimeToReachQueue is over"


_M, _V = SessionMessageState, SessionMessageEvent

_UNORDERED: Final[Mapping[tuple[SessionMessageState, SessionMessageEvent], SessionMessageState]] = {
    (_M.WAITING_TO_SEND, _V.SENT): _M.WAITING_FOR_SESSION_ACK,  # MQQB-3.1.1.1.1.3-03, MQQB-3.1.1.1.1.5-03
    (_M.WAITING_TO_SEND, _V.EXPIRED): _M.DONE,  # MQQB-3.1.1.1.1.3-05, MQQB-3.1.1.1.1.5-05
    (_M.WAITING_FOR_SESSION_ACK, _V.SESSION_ACK): _M.DONE,  # MQQB-3.1.1.1.1.3-10, MQQB-3.1.1.1.1.5-10
    (_M.WAITING_FOR_SESSION_ACK, _V.TIMEOUT): _M.WAITING_TO_SEND,  # MQQB-3.1.1.1.1.3-04, MQQB-3.1.1.1.1.5-04
    (_M.WAITING_FOR_SESSION_ACK, _V.EXPIRED): _M.DONE,  # MQQB-3.1.1.1.1.3-06, MQQB-3.1.1.1.1.5-06
}
_TRANSACTIONAL: Final[Mapping[tuple[SessionMessageState, SessionMessageEvent], SessionMessageState]] = {
    (_M.WAITING_TO_SEND, _V.SENT): _M.WAITING_FOR_SESSION_ACK,  # MQQB-3.1.1.1.1.7-03
    (_M.WAITING_TO_SEND, _V.EXPIRED): _M.DONE,  # MQQB-3.1.1.1.1.7-09
    (_M.WAITING_FOR_SESSION_ACK, _V.SESSION_ACK): _M.WAITING_FOR_ORDER_ACK,  # MQQB-3.1.1.1.1.7-04
    (_M.WAITING_FOR_SESSION_ACK, _V.TIMEOUT): _M.WAITING_TO_SEND,  # MQQB-3.1.1.1.1.7-05
    (_M.WAITING_FOR_SESSION_ACK, _V.EXPIRED): _M.DONE,  # MQQB-3.1.1.1.1.7-10
    (_M.WAITING_FOR_ORDER_ACK, _V.TIMEOUT): _M.WAITING_TO_SEND,  # MQQB-3.1.1.1.1.7-06
    (_M.WAITING_FOR_ORDER_ACK, _V.ORDER_ACK): _M.WAITING_FOR_FINAL_ACK,  # MQQB-3.1.1.1.1.7-08
    (_M.WAITING_FOR_FINAL_ACK, _V.FINAL_ACK): _M.DONE,  # MQQB-3.1.1.1.1.7-16
}
MESSAGES: Final = {"Express": _UNORDERED, "Recoverable": _UNORDERED, "Transactional": _TRANSACTIONAL}
"""The next state by kind of message, state and event.

A transactional message that asks for no final acknowledgement is done with its order acknowledgement.
"""


class PingState(Enum):
    """Send Ping Request: figure 11 of [MS-MQQB] 3.1.1.1."""

    __hash__ = object.__hash__  # Enum's is slow, and members are dictionary keys

    WAITING = "waiting for a response"
    ACCEPTED = "TRUE"
    REFUSED = "FALSE"


PING: Final[Mapping[tuple[PingState, str], PingState]] = {
    (PingState.WAITING, "Ping Response, RF 0"): PingState.ACCEPTED,  # MQQB-3.1.1.1.1.9-04, MQQB-4.1.2-02
    (PingState.WAITING, "Ping Response, RF 1"): PingState.REFUSED,  # MQQB-3.1.1.1.1.9-03
    # MQQB-3.1.6.8-01, MQQB-3.1.7.6-03
    (PingState.WAITING, "Ping Response Timer"): PingState.REFUSED,  # MQQB-3.1.1.1.1.9-02
}
