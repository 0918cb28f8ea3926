"""Why a text is not JSON, in words."""

from __future__ import annotations

from json import JSONDecodeError


def why_not_json(error: ValueError | RecursionError) -> str:
    """Return the fault in a text that `json.loads` refuses, and its place: ``not JSON from line 2 on``."""
    if isinstance(error, JSONDecodeError):
        place = f"line {error.lineno}, column {error.colno}"
        return f'not JSON from {place} on; an example is {{"name": [1, "text"]}}'
    if isinstance(error, UnicodeDecodeError):
        return f"not JSON: byte {error.start} is not UTF-8"
    return "not JSON that can be read: it is nested too deep, or has a number of thousands of digits"
