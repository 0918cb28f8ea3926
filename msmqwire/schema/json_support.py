"""Support for generated writers of JSON."""

from __future__ import annotations

from functools import lru_cache
from json import dumps
from json.encoder import encode_basestring_ascii
from typing import Final
from uuid import UUID

from msmqwire.schema.nodes import SCHEMAS, Flags
from msmqwire.schema.record import flags_class

WORDS_MAX: Final = 1024
"""Texts of flag words that are kept of one field: those of most packets are a few."""


class FlagTexts(dict[int, str]):
    """The texts of the words of one field, made when they are asked for.

    Attributes:
        kind: the class of the words.
    """

    __slots__ = ("kind",)

    def __init__(self, key: str, name: str) -> None:
        part = SCHEMAS[key].part(name)
        assert isinstance(part, Flags)
        self.kind = flags_class(key, part)

    def __missing__(self, word: int) -> str:
        if len(self) >= WORDS_MAX:
            self.clear()
        text = self[word] = dumps(self.kind(word).bits())
        return text


@lru_cache(maxsize=4096)
def guid_text(number: int) -> str:
    """Return the text of a GUID. Those of queue managers recur, and making one takes a microsecond."""
    return str(UUID(int=number))


def quoted(text: str) -> str:
    """Return a text as JSON has it in ASCII, in quotation marks, without control characters."""
    return encode_basestring_ascii(text).replace("\x7f", "\\u007f")
