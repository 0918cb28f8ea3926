"""References between the parts of structures, as the schemas declare them."""

from __future__ import annotations

from functools import cache

from msmqwire.schema import Flags, Header, Sub, UInt
from msmqwire.schema.nodes import inner_headers, references


@cache
def deciding(header: Header) -> frozenset[str]:
    """Return the paths that the parts of a structure refer to, and its inner structures beyond themselves."""
    paths: set[str] = set()
    for part in header.parts:
        paths.update(references(part))
        for inner in inner_headers(part):
            paths |= _outward(inner)
    return frozenset(paths)


@cache
def _outward(header: Header) -> frozenset[str]:
    """The paths that a structure refers to in those around it."""
    return frozenset(path for path in deciding(header) if path.partition(".")[0] not in header.fields)


@cache
def has_integers(schema: Header) -> bool:
    """Whether every value of a schema has an integer or a flag word."""
    return any(
        isinstance(part, UInt | Flags) or (isinstance(part, Sub) and has_integers(part.header))
        for part in schema.parts
    )


def stands_alone(schema: Header) -> bool:
    """Whether nothing in a schema refers to a structure around it."""
    return not _outward(schema)
