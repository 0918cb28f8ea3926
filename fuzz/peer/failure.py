"""What is wrong with a peer."""

from __future__ import annotations


class PeerFailure(Exception):
    """The peer did what no right peer does, or did not do what every right peer does.

    Attributes:
        requirements: the ids of the requirements that it breaks.
        text: what happened, in a sentence.
        what: a word for the kind of the failure, the same whenever this one is seen again: failures of one
            kind against the same requirements are one finding.
    """

    def __init__(self, requirements: tuple[str, ...], text: str, what: str = "answer") -> None:
        super().__init__(text)
        self.requirements, self.text, self.what = requirements, text, what

    @property
    def key(self) -> tuple[str, tuple[str, ...]]:
        """By which two failures are known to be one finding."""
        return self.what, tuple(sorted(self.requirements))
