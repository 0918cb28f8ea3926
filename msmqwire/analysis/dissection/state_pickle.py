"""Pickles of the state of capture readers, for other processes of the same program.

A protocol may have state that pickle does not know a name of: `Traffic.reduce` pickles it. A pickle is only
for readers that trust its maker.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from functools import cache
from pkgutil import resolve_name
from typing import Any

from msmqwire.analysis.protocols import protocols


def dumps(value: Any) -> bytes:
    """Return a value as a pickle."""
    file = io.BytesIO()
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(value)
    return file.getvalue()


def loads(data: bytes) -> Any:
    """Return the value of a pickle that `dumps` has made."""
    return pickle.loads(data)


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        for reduce in _reducers():
            found = reduce(obj)
            if found is not NotImplemented:
                return found
        return NotImplemented


@cache
def _reducers() -> tuple[Callable[[Any], Any], ...]:
    places = (protocol.traffic.reduce for protocol in protocols())
    return tuple(resolve_name(place) for place in places if place)
