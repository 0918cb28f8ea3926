"""The invariants of a run."""

from __future__ import annotations

from enum import StrEnum


class Invariant(StrEnum):
    """The invariants of a run, in the words of its report."""

    NO_ERRORS = "no errors"
    ONCE = "transactional messages arrive exactly once"
    IN_ORDER = "transactional messages arrive in order"
    NOT_BOTH = "none is both consumed and dead-lettered"
    HELD = "none is lost while its sender holds it"
    NOT_TWICE = "recoverable messages arrive once"
    SENT_ONLY = "only sent messages arrive"
    ACKNOWLEDGED = "acknowledgements are sent at most as often as allowed"
    DURABLE = "nothing is acknowledged before it is durable"
    NUMBERED = "a message keeps its number, and no two share one"
    TRUTHFUL = "receipts tell the truth"
    IN_TIME = "no message is sent when its time is over"
    REFUSED = "nothing is refused without a reason"
    RECEIVED_ONCE = "a message is received once"
    ACCEPTED = "a message that a reader has accepted is gone"
    GIVEN_BACK = "a message that a reader has not accepted returns to its queue"
    WALKED = "a cursor passes each message once"
    JOURNALED_ONCE = "a message is journaled once, if asked for"
    HANGS = "nothing hangs"
    MOVED = "policies move just the messages that they mean"
    BOUNDED = "memory and tables stay bounded"
    STATES = "the state of every session is one of the named states"
    PROTECTED = "signed and encrypted messages arrive as such, and nothing secret is sent"
    RECOVERABLE = "recoverable messages are never lost"
    TRANSACTIONS_LOST = "transactional messages are never lost"
