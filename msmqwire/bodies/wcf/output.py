"""Characters of a document, which are counted before they take memory."""

from __future__ import annotations

import re
from typing import Final

from msmqwire.bodies.limits import Budget, LimitExceeded


class Output:
    """Characters of a document; their memory is counted as they come.

    Attributes:
        parts: the latest of them.
        ahead: characters among them that are counted already.
    """

    __slots__ = ("_budget", "_chunks", "_total", "_wide", "ahead", "parts")

    def __init__(self, budget: Budget) -> None:
        self.parts: list[str] = []
        self.ahead = 0
        self._budget = budget
        self._chunks: list[str] = []
        self._total, self._wide = 0, 1

    def count(self, characters: int) -> None:
        """Count characters before they are made. Raises LimitExceeded."""
        self.ahead += characters
        self._budget.text(characters)

    def flush(self) -> None:
        """Count the pieces and put them together. Raises LimitExceeded."""
        parts = self.parts
        if not parts:
            return
        chunk = "".join(parts)
        parts.clear()
        size = len(chunk)
        index = len(self._chunks)
        self._chunks.append(chunk)
        if chunk.isascii():
            if self._wide == 1 and not self.ahead:
                # The usual message.
                self._total += size
                self._budget.text(size)
                self._budget.spend(size // 8)
                return
        else:
            wide = 4 if _WIDE.search(chunk) else 2 if _NOT_LATIN.search(chunk) else 1
            if wide > self._wide:
                # One such character makes all that came before as wide as itself.
                try:
                    self._budget.spend((wide - self._wide) * self._total)
                except LimitExceeded:
                    self._chunks[index] = chunk.encode("ascii", "replace").decode("ascii")
                    raise
                self._wide = wide
        self._total += size
        # All is there twice while it is put together: an eighth is for everything else.
        self._budget.spend((self._wide - 1) * size + size // 8)
        if size > self.ahead:
            self._budget.text(size - self.ahead)
        self.ahead = max(0, self.ahead - size)

    def text(self) -> str:
        """Return all of them."""
        self._chunks += self.parts
        return "".join(self._chunks)


_WIDE: Final = re.compile("[\U00010000-\U0010ffff]")
_NOT_LATIN: Final = re.compile("[\u0100-\U0010ffff]")
