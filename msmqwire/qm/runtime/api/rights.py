"""Who has shown a token, and what it allows."""

from __future__ import annotations

from dataclasses import dataclass

from msmqwire.qm.rules.api_tokens import Right

__all__ = ["Caller", "Right"]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request.

    Attributes:
        name: the name of the token, for logs.
        right: what it allows.
        key: identifies the token; the same for all requests with it, and no secret.
    """

    name: str
    right: Right
    key: str
