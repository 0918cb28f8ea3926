"""Texts of a capture, each kept once, in bounded memory."""

from __future__ import annotations

from typing import Final

from msmqwire.names.printable import cut, safe

LEFT_OUT: Final = "(left out: too many different texts)"


class Texts:
    """Texts by number, in the order in which they came. Number 0 is the empty text.

    Attributes:
        texts: the texts by number.
        left_out: the number of texts that were not kept.
    """

    def __init__(self, length: int, characters: int) -> None:
        """Keep texts of at most `length` characters each, and `characters` together."""
        self.texts: list[str] = [""]
        self.left_out = 0
        self._numbers: dict[str, int] = {"": 0}
        self._length, self._room = length, characters

    def number(self, text: str, *, whole: bool = False) -> int:
        """Return the number of a text, cut or `whole`; that of `LEFT_OUT` when there is no room for it."""
        if not whole and len(text) > self._length:
            text = cut(text, self._length)
        number = self._numbers.get(text)
        if number is not None:
            return number
        if len(text) > self._room:
            self.left_out += 1
            text = LEFT_OUT
            if text in self._numbers:
                return self._numbers[text]
        self._room -= len(text)
        number = self._numbers[text] = len(self.texts)
        self.texts.append(text)
        return number

    def number_safe(self, text: str) -> int:
        """Return the number of a text made `safe`; all texts before were safe to look at."""
        number = self._numbers.get(text)
        return self.number(safe(text)) if number is None else number
