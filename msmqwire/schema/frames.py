"""Structures while they are being completed, and the values computed into them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msmqwire.errors import InvalidValue
from msmqwire.schema.nodes import Header, UInt


@dataclass(slots=True)
class Frame:
    """A structure being completed.

    Attributes:
        header: its schema.
        path, start: its path, and its offset.
        given: the fields that the caller gave.
        values: the fields that are settled.
        words: its flag words by their bits.
        inner: the structures that are its fields.
        end: the offset after it.
    """

    header: Header
    path: str
    start: int
    given: Mapping[str, Any]
    values: dict[str, Any] = field(default_factory=dict)
    words: dict[str, dict[str, int]] = field(default_factory=dict)
    inner: dict[str, Frame] = field(default_factory=dict)
    end: int = 0

    def set_default(self, path: str, value: int) -> None:
        """Set a field of this structure or of one inside it, if omitted."""
        frame = self
        *above, name = path.split(".")
        for inner in above:
            frame = frame.inner[inner]
        frame.values.setdefault(name, value)

    def set_computed(self, name: str, value: int) -> None:
        """Set a field, if omitted. Raises InvalidValue for a value that does not fit."""
        if name in self.values:
            return
        part = self.header.part(name)
        if isinstance(part, UInt) and not _allows(part, value):
            path = f"{self.path}.{name}".lstrip(".")
            raise InvalidValue(f"{value}, computed, does not fit", path=path)
        self.values[name] = value


def _allows(part: UInt, value: int) -> bool:
    """Whether an integer can have a value."""
    return 0 <= value < 1 << part.bits and (part.must is None or value in part.must)
