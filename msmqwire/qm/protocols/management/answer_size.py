"""The length of answers, before they are built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msmqwire.qm.protocols.management.variants import TEXTS, VARIANTS

ANSWER_MAX: Final = 32 << 20
"""Bytes of the values of an answer: the names of 100,000 queues are about 15 MB."""
_TEXT: Final = 20  # referent id, counts, NUL and padding
_ELEMENT: Final = 16  # the longest one of other vectors: a GUID
_VALUE: Final = 40


def size_of_all(values: Sequence[Any]) -> int:
    """Return about how many bytes PROPVARIANTs take together; one may be there many times."""
    sizes: dict[int, int] = {}
    total = 0
    for value in values:
        size = sizes.get(id(value))
        if size is None:
            size = sizes[id(value)] = size_of(value)
        total += size
    return total


def size_of(value: Any) -> int:
    """Return about how many bytes a PROPVARIANT takes, never fewer than it does."""
    content = value.value
    elements = getattr(content, "pElems", None)
    if elements is None:
        return _VALUE + (_TEXT + 2 * len(content) if isinstance(content, str) else _ELEMENT)
    if value.vt == TEXTS:
        return _VALUE + sum(map(len, elements)) * 2 + _TEXT * len(elements)
    if value.vt == VARIANTS:
        return _VALUE + sum(map(size_of, elements))
    return _VALUE + _ELEMENT * len(elements)
