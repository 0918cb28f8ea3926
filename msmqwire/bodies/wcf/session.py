"""Strings that a session has defined: [MC-NBFSE] 2.1."""

from __future__ import annotations

from typing import Final

from msmqwire.bodies.limits import Budget
from msmqwire.bodies.wcf.fault import Fault, announced, read_size
from msmqwire.bodies.wcf.problems import Problems

_WORD_COST: Final = 300


class Session:
    """Strings that a session has defined: [MC-NBFSE] 2.1.

    Attributes:
        words: them, by odd number.
        new: the number of the next one.
    """

    __slots__ = ("_known", "new", "words")

    def __init__(self) -> None:
        self.words: dict[int, str] = {}
        self._known: set[str] = set()
        self.new = 1

    def read(self, data: bytes, budget: Budget, problems: Problems) -> int:
        """Read the table of strings before a document; return where that begins. Raises Fault."""
        words, number = self.words, self.new
        size, at = read_size(data, 0)
        end = at + size
        if end > len(data):
            raise Fault(
                announced(size, len(data) - at),
                0,
                "StringTable.Size",
            )
        known = self._known
        budget.spend(size)
        while at < end:
            start = at
            length = data[at]
            at += 1
            if length > 0x7F:
                length, at = read_size(data, start)
            stop = at + length
            if stop > end:
                # NBFX-NBFSE-2.1-01
                raise Fault("a string ends after its table", start, "StringTable.Strings")
            try:
                word = data[at:stop].decode()
            except UnicodeDecodeError as exc:
                problems.add("the string is not UTF-8", at + exc.start, "StringTable.Strings")
                word = data[at:stop].decode("utf-8", "replace")
            if word in known:  # NBFX-NBFSE-2.1-02
                problems.add("a string that the session has already", start, "StringTable.Strings")
            known.add(word)
            words[number] = word
            number += 2  # NBFX-NBFSE-2.1-03
            at = stop
            if not number & 0x1FE:
                budget.spend(_WORD_COST << 8)
        self.new = number  # NBFX-NBFSE-2.1-04
        return end
