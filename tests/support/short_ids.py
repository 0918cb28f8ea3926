"""A pytest plugin for the names of cases: a long value has its beginning and its size in them.

pytest writes texts and bytes whole into the id of a case: documents, packets, a million letters. An id is for
a person who looks for a failure, or types it. Ids that a test gives itself stay.
"""

from __future__ import annotations

import pytest

WHOLE = 40
"""Of a value as it is written into an id, the characters up to which it is there whole."""
HEAD = 24
ID_MAX = 100
"""Characters of a whole id: that of a case with several values."""


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    return short_id(val) if isinstance(val, str | bytes) else None


def short_id(value: str | bytes) -> str | None:
    """The beginning of a long value and its size; bytes that are not text are in hexadecimal digits."""
    beginning = value[: WHOLE + 1]
    text = beginning if isinstance(beginning, str) else beginning.decode("latin-1")
    written = [letter.encode("unicode_escape").decode("ascii") for letter in text]
    if len("".join(written)) <= WHOLE:
        return None
    if isinstance(beginning, bytes) and not all(map(str.isprintable, text)):
        written = [f"{byte:02x}" for byte in beginning]
    head, size = "", HEAD
    for letter in written:
        size -= len(letter)
        if size < 0:
            break
        head += letter
    return f"{head}...{len(value)}"
