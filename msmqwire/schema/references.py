"""The references between the parts of structures, as their declarations have them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from msmqwire.schema.nodes import (
    Choice,
    Header,
    Maybe,
    OemText,
    Part,
    Raw,
    Ref,
    Repeat,
    Sub,
    Text,
    inner_headers,
)


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


def references(part: Part) -> Iterator[str]:
    """Yield the paths that a part refers to."""
    match part:
        case Raw(length=Ref() as ref) | OemText(length=Ref() as ref) | Sub(within=Ref() as ref):
            yield from _paths(ref)
        case Text():
            for length in (part.length, part.otherwise):
                if isinstance(length, Ref):
                    yield from _paths(length)
        case Maybe():
            if isinstance(part.when, str):
                yield part.when
            yield from references(part.node)
        case Choice():
            yield part.by
            if part.within:
                yield from _paths(part.within)
        case Repeat():
            yield part.count
        case _:
            pass


def _paths(ref: Ref) -> Iterator[str]:
    yield ref.path
    if ref.over:
        yield ref.over
