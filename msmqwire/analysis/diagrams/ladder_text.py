"""Ladders as text: lanes of bars, arrows of dashes; resends have waves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from msmqwire.analysis.report.facts import Group
from msmqwire.names.printable import cut

if TYPE_CHECKING:
    from msmqwire.analysis.diagrams.session_ladder import Ladder, Rung

WIDTH: Final = 84
"""Characters between the lanes, where nothing else says how many."""
WIDTH_MIN: Final = 30
TIMES: Final = 16
"""Characters of a time."""
MARGINS: Final = TIMES + 9
"""Characters outside of the lanes."""
STYLES: Final = {
    Group.HANDSHAKE: "magenta",
    Group.MESSAGE: "bold cyan",
    Group.ACKNOWLEDGEMENT: "green",
    Group.CALL: "cyan",
    Group.ANSWER: "blue",
    Group.OTHER: "",
    Group.MALFORMED: "bold red",
    Group.GAP: "yellow",
}


def label(rung: Rung) -> str:
    """Return the text of an arrow."""
    parts = [rung.kind if rung.group is not Group.GAP else "gap", rung.about]
    return " ".join(part for part in ["again:" * rung.is_again, *parts] if part)


def seconds(rung: Rung, ladder: Ladder) -> str:
    """Return the time of a packet after the first one that has one; "-" for none."""
    first_ns = next((one.time_ns for one in ladder.rungs if one.time_ns is not None), None)
    if rung.time_ns is None or first_ns is None:
        return "-"
    return f"{(rung.time_ns - first_ns) / 1e9:+.6f} s"


def lines(ladder: Ladder, width: int = WIDTH) -> Iterator[tuple[str, str]]:
    """Yield the lines of a ladder, each with its style."""
    yield ladder.title, "bold"
    session = ladder.session
    if session is None:
        return
    gap = max(1, width + 2 - len(session.left))
    yield f"{'':{TIMES}} {session.left}{session.right:>{gap}}", "bold"
    for rung in ladder.rungs:
        found = f"  {rung.findings} !" if rung.findings else ""
        yield f"{seconds(rung, ladder):>{TIMES}} |{_arrow(rung, width)}|{found}", STYLES[rung.group]
    if ladder.remark:
        yield ladder.remark, "italic"


def _arrow(rung: Rung, width: int) -> str:
    shaft = "." if rung.group is Group.GAP else "~" if rung.is_again else "-"
    text = f" {cut(label(rung), width - 6)} "
    if rung.to_right:
        return f"{shaft * 2}{text}".ljust(width - 1, shaft) + ">"
    return f"<{shaft * 2}{text}".ljust(width, shaft)


def rich_lines(ladder: Ladder, width: int) -> Iterator[Any]:
    """Yield the lines of a ladder for a console of rich that is so wide."""
    from rich.text import Text

    for text, style in lines(ladder, max(WIDTH_MIN, width - MARGINS)):
        yield Text(text, style, no_wrap=True, overflow="ellipsis")
