"""The meaning of negative acknowledgements, in words: [MS-MQMQ] 2.2.18.1.6."""

from __future__ import annotations

from typing import Final

from msmqwire.constants import class_name, is_negative
from msmqwire.constants.explanations.message_classes import MESSAGE_CLASSES

_WORDS: Final = {
    class_name(number): texts.meaning for number, texts in MESSAGE_CLASSES.items() if is_negative(number)
}


def class_words(name: str) -> str:
    """Return the meaning of a class of negative acknowledgements in words; `name` is that of `class_name`."""
    return _WORDS.get(name, "it is refused")


def class_with_words(name: str) -> str:
    """Return the name of such a class and its meaning: ``NACK_BAD_DST_Q: there is no such queue``."""
    return f"{name}: {class_words(name)}"
