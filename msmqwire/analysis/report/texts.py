"""Texts of a capture, each kept once, in bounded memory."""

from __future__ import annotations

from typing import Final

from msmqwire.names.printable import cut, safe

LEFT_OUT: Final = "(left out: too many different texts)"


class SafeNumbers(dict[str, int]):
    """The numbers of texts by themselves; one that has none yet is made `safe`, and gets one."""

    def __init__(self, texts: Texts) -> None:
        super().__init__({"": 0})
        self._texts = texts

    def __missing__(self, text: str) -> int:
        return self._texts.number(safe(text))


class Texts:
    """Texts by number, in the order in which they came. Number 0 is the empty text.

    Attributes:
        texts: the texts by number.
        numbers: their numbers; in place of `number` for texts that are not made safe yet.
        left_out: the number of texts that were not kept.
    """

    def __init__(self, length: int, characters: int) -> None:
        """Keep texts of at most `length` characters each, and `characters` together."""
        self.texts: list[str] = [""]
        self.left_out = 0
        self.numbers = SafeNumbers(self)
        self._length, self._room = length, characters

    def number(self, text: str, *, whole: bool = False) -> int:
        """Return the number of a text, cut or `whole`; that of `LEFT_OUT` when there is no room for it."""
        if not whole and len(text) > self._length:
            text = cut(text, self._length)
        number = self.numbers.get(text)
        if number is not None:
            return number
        if len(text) > self._room:
            self.left_out += 1
            text = LEFT_OUT
            if text in self.numbers:
                return self.numbers[text]
        self._room -= len(text)
        number = self.numbers[text] = len(self.texts)
        self.texts.append(text)
        return number
