"""Why bytes are refused, in words: of the reference reader, and of the compiled one of captures.

Values and sizes are those that were read, sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msmqwire.names.printable import agreed, agreeing, counted


def too_short(size: int, left: int) -> str:
    """A field that would go on past the end of the enclosing structure."""
    return f"takes {counted(size, 'byte')} and {agreed(left, 'are')} left"


def cut_off(size: int, left: int) -> str:
    """A field that would go on past the end of the bytes."""
    return f"takes {counted(size, 'byte')}, the data ends after {left} of them"


def too_long(value: int, path: str, size: int, left: int) -> str:
    """A length or count of a part that would go on past the enclosing structure; `path` is that part's."""
    return f"{value}: {path} would take {counted(size, 'byte')} and {agreed(left, 'are')} left"


def not_between(value: int, low: int, high: int) -> str:
    """A value outside a range."""
    return f"{value} is not in {low}..{high}"


def none_of(value: int, values: Iterable[int]) -> str:
    """A value that is none of those allowed."""
    return f"{value:#06x} is not " + " or ".join(f"{allowed:#06x}" for allowed in sorted(values))


def without_layout(value: int) -> str:
    """A value that chooses among layouts and has none."""
    return f"{value:#x} has no layout"


def not_terminated(size: int) -> str:
    """A text without its null."""
    return f"{counted(size, 'byte')} that {agreeing(size, 'do')} not end on a null character"


def too_large(value: int, size: int) -> str:
    """A size of a structure that ends before."""
    return f"{value}, but the structure ends after {counted(size, 'byte')}"


def too_small(value: int) -> str:
    """A size of a structure that is less than its minimum."""
    return f"{value} is too small"


def beyond(value: int, left: int) -> str:
    """A size of a structure that would go on past the enclosing structure."""
    return f"{value}, but {counted(left, 'byte', 'are')} left"


def too_many(count: int, limit: int) -> str:
    """A list that is longer than we read."""
    return f"{count} is more than {limit}, our limit"


def too_few(count: int, size: int, left: int) -> str:
    """A list for which there is not enough, even if all its elements are as small as can be."""
    return f"{count}: {counted(size, 'byte')} at least, and {agreed(left, 'are')} left"


NO_NULL: Final = "no null character ends it"
"""A text that should end with its first null."""
NOTHING_LEFT: Final = "the data ends before it"
"""A field that is found by its value."""


def unlike_view(size: int, path: str, expected: int) -> str:
    """Bytes of another size than the structure that they hold; `path` is that structure's."""
    return f"{size}, but {path} takes {counted(expected, 'byte')}"


def followed(size: int) -> str:
    """Bytes after a structure."""
    return f"{counted(size, 'byte', 'follow')} the end of the structure"


def not_constant(value: int, expected: int, digits: int) -> str:
    """A value that is not the only one allowed, in hexadecimal digits."""
    return f"{value:#0{digits + 2}x} is not {expected:#x}"


def not_internal(kind: int) -> str:
    """A kind of internal packet that there is not."""
    return f"{kind} is not 1, 2 or 3"


NO_SESSION_HEADER: Final = "not set in a SessionAck"
"""The flag that a SessionAck must have."""


def other_size(taken: int, size: int) -> str:
    """A packet of another size than the bytes that are to be it."""
    return f"the packet takes {counted(taken, 'byte')}, {agreed(size, 'are')} there"
