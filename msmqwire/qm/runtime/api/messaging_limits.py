"""Limits of the messages that the tokens of the API hold."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MessagingLimits:
    """Limits of the messages that the tokens of the API hold.

    Attributes:
        held: messages received and not settled, of all tokens; one token has 10,000 at most.
        transactions: transactions begun and not ended, of all tokens; one token has 1,000 at most.
        streams, streams_per_token: streams of events, of all tokens and of one.
        unread_bytes: bytes of messages that clients have not read yet, of all of them together.
        stall_s: seconds in which a client reads nothing of its stream before that ends.
        keep_alive_s: seconds without a message after which a stream sends a comment.
        idle_s: seconds after which the session of a token that holds nothing is closed.
    """

    held: int = 100_000
    transactions: int = 10_000
    streams: int = 512
    streams_per_token: int = 256
    unread_bytes: int = 256 << 20
    stall_s: float = 30.0
    keep_alive_s: float = 15.0
    idle_s: float = 60.0
