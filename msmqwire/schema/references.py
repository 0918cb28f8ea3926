"""The references between the parts of structures, as their declarations have them."""

from __future__ import annotations

from functools import cache

from msmqwire.schema.nodes import Header, inner_headers, references


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


def stands_alone(schema: Header) -> bool:
    """Return whether nothing in a schema refers to a structure around it."""
    return not _outward(schema)
