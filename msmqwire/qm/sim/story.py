"""What happened in a run, as a sequence diagram in text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Line(NamedTuple):
    """One thing that happened: at a node, or from it to another one."""

    at: int
    node: str
    text: str
    other: str


class Story:
    """The lines of a run, in order.

    Attributes:
        wanted: whether lines are kept.
    """

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted
        self.lines: list[Line] = []

    def add(self, at: int, node: str, text: str, other: str = "") -> None:
        """One more line."""
        self.lines.append(Line(at, node, text, other))

    def diagram(self, nodes: Sequence[str], *, last: int | None = None) -> str:
        """A column for each node, an arrow for what goes from one to another; the last lines, or all."""
        lines = self.lines if last is None else self.lines[-last:]
        width = 10
        columns = {name: number * width for number, name in enumerate(nodes)}
        head = "        ms  " + "".join(f"{name:<{width}}" for name in nodes)
        rows = [head.rstrip()]
        for line in lines:
            art = ["|" if place % width == 0 else " " for place in range(width * len(nodes))]
            place, other = columns.get(line.node), columns.get(line.other)
            if place is not None:
                art[place] = "*"
            if place is not None and other is not None and place != other:
                low, high = min(place, other), max(place, other)
                for between in range(low + 1, high):
                    art[between] = "-"
                art[other] = ">" if other > place else "<"
            rows.append(f"{line.at:>10}  {''.join(art)}{line.text}")
        return "\n".join(rows)
