"""The words by which commands and programs name the types of bindery objects: ``print-server``, ``print``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.errors import InvalidArgument
from msmqwire.names.nearest import unknown_name
from msmqwire.ncp.constants import ObjectType

OBJECT_TYPES: Final[Mapping[str, ObjectType]] = {
    "user": ObjectType.NWOT_USER,
    "group": ObjectType.NWOT_GROUP,
    "print-queue": ObjectType.NWOT_PRINT_QUEUE,
    "archive-queue": ObjectType.NWOT_ARCHIVE_QUEUE,
    "job-queue": ObjectType.NWOT_JOB_QUEUE,
    "print-server": ObjectType.NWOT_PRINT_SERVER,
    "archive-server": ObjectType.NWOT_ARCHIVE_SERVER,
    "job-server": ObjectType.NWOT_JOB_SERVER,
    "file-server": ObjectType.NWOT_FILE_SERVER,
}
QUEUE_TYPES: Final[Mapping[str, ObjectType]] = {
    "print": ObjectType.NWOT_PRINT_QUEUE,
    "archive": ObjectType.NWOT_ARCHIVE_QUEUE,
    "job": ObjectType.NWOT_JOB_QUEUE,
}
"""Words for names that can only mean queues."""

_TYPE_MAX: Final = 0xFFFE


def type_number(text: str | int, words: Mapping[str, ObjectType] = OBJECT_TYPES) -> int:
    """Return the number of a type, from one of the words, the number itself, or its text: 7, 0x0007.

    Raises InvalidArgument.
    """
    if isinstance(text, str) and text.lower() in words:
        return int(words[text.lower()])
    try:
        number = text if isinstance(text, int) else int(text, 0)
    except ValueError:
        number = 0
    if not 0 < number <= _TYPE_MAX:
        wrong = unknown_name(text, words, "type")
        raise InvalidArgument(f"{wrong.why}, or a number to {_TYPE_MAX:#x}", path="type", near=wrong.near)
    return number


def type_word(number: int, words: Mapping[str, ObjectType] = OBJECT_TYPES) -> str:
    """Return the word for a type, or its number as 0x and four digits."""
    return next((word for word, known in words.items() if known == number), f"0x{number:04X}")
