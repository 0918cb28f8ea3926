"""What a token allows, and who has shown one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Right(StrEnum):
    """What a token allows; each right includes those before it."""

    READ = "read"
    READ_WRITE = "read-write"
    ADMINISTER = "administer"

    def includes(self, other: Right) -> bool:
        """Whether this right is as much as another one, or more."""
        order = list(Right)
        return order.index(self) >= order.index(other)


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
