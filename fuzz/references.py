"""References between the parts of structures, as the schemas declare them."""

from __future__ import annotations

from functools import cache

from msmqwire.schema import Flags, Header, Sub, UInt


@cache
def has_integers(schema: Header) -> bool:
    """Whether every value of a schema has an integer or a flag word."""
    return any(
        isinstance(part, UInt | Flags) or (isinstance(part, Sub) and has_integers(part.header))
        for part in schema.parts
    )
