"""The base of the tables of stores."""

from __future__ import annotations

from enum import Enum


class StoreTable(Enum):
    """A base of the tables of a store. The keys of a table are all integers below 2^63, or all bytes."""

    __hash__ = object.__hash__  # Enum's is slow, and tables are keys
