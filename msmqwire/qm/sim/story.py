"""The events of a run, as a sequence diagram in text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_COLUMN_WIDTH = 10


class Line(NamedTuple):
    """An event at a node, or from it to another one.

    Attributes:
        at: milliseconds since the start.
        node: name of the node; "" for the run as a whole.
        text: the text of the event. other: name of the node that the arrow points to; "" for none.
    """

    at: int
    node: str
    text: str
    other: str


class Story:
    """The lines of a run, in order.

    Attributes:
        enabled: whether lines are recorded.
    """

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        self.lines: list[Line] = []

    def add(self, at: int, node: str, text: str, other: str = "") -> None:
        """Append a line."""
        self.lines.append(Line(at, node, text, other))

    def diagram(self, nodes: Sequence[str]) -> str:
        """Draw a column for each node and an arrow for each event between two of them."""
        width = _COLUMN_WIDTH
        columns = {name: number * width for number, name in enumerate(nodes)}
        header = "        ms  " + "".join(f"{name:<{width}}" for name in nodes)
        rows = [header.rstrip()]
        for line in self.lines:
            cells = ["|" if column % width == 0 else " " for column in range(width * len(nodes))]
            source, target = columns.get(line.node), columns.get(line.other)
            if source is not None:
                cells[source] = "*"
            if source is not None and target is not None and source != target:
                low, high = min(source, target), max(source, target)
                cells[low + 1 : high] = "-" * (high - low - 1)
                cells[target] = ">" if target > source else "<"
            rows.append(f"{line.at:>10}  {''.join(cells)}{line.text}")
        return "\n".join(rows)
