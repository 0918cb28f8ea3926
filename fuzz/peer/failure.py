"""A failure of a peer."""

from __future__ import annotations

from typing import Final

DOWN: Final = "down"
"""The kind of a failure after which a fresh session is not answered."""
SILENT: Final = frozenset({"gone", "hang", "no answer"})
"""The kinds of failures of a fresh session by which a peer is known to be down."""
WRONG_ANSWER: Final = "wrong answer"
"""The kind of a failure that `lint` has found: the requirements named may depend on chance."""
NO_QUEUE: Final = "no queue"
"""The kind of the failure that a queue of the peer is not there, by its own word."""


class PeerFailure(Exception):
    """The peer did something that no correct peer does, or omitted something that every correct peer does.

    Attributes:
        requirements: the ids of the requirements that it breaks.
        text: the event, in a sentence.
        what: a word for the kind of the failure, the same at each occurrence: failures of one kind against
            the same requirements are one finding.
    """

    def __init__(self, requirements: tuple[str, ...], text: str, what: str = "answer") -> None:
        super().__init__(text)
        self.requirements, self.text, self.what = requirements, text, what

    @property
    def key(self) -> tuple[str, tuple[str, ...]]:
        """The key by which two failures are known to be one finding."""
        return self.what, tuple(sorted(self.requirements))

    def resembles(self, other: PeerFailure) -> bool:
        """Return whether this is the other failure, seen again."""
        same = self.what == other.what
        if self.what == DOWN:  # the named requirement depends on the packets of the last session
            return same
        return same and (
            self.what == WRONG_ANSWER
            or self.requirements == other.requirements
            or bool({*self.requirements} & {*other.requirements})
        )
