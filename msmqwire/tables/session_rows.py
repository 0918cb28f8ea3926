"""Rows of sessions that follow each other in a capture, in place of their items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msmqwire.analysis.dissection import Item
from msmqwire.analysis.lint import Finding
from msmqwire.tables.compiled.scan_arrays import RowBlock


class Places(NamedTuple):
    """Where the packets of rows were captured.

    Attributes:
        files: names of files.
        file: for each row the file of its last frame, by its place in `files`.
        first, last: for each row its first and its last frame, numbered in their files.
    """

    files: Sequence[str]
    file: Any
    first: Any
    last: Any


class SessionRows(NamedTuple):
    """Rows that become an item of a TCP connection each; valid up to the next part of the dissection.

    Attributes:
        block: the block that they are in.
        within: their numbers in it.
        findings: the findings of the rows of the block that have any.
        item: returns the item of a row of the block.
        places: returns where rows of the block were captured.
    """

    block: RowBlock
    within: range
    findings: dict[int, list[Finding]]
    item: Callable[[int], Item]
    places: Callable[[range], Places]
