"""Ladders as SVG in HTML: it loads nothing, runs nothing, and fits light and dark pages."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msmqwire.analysis.diagrams.ladder_text import label, seconds
from msmqwire.analysis.report.facts import Group
from msmqwire.names.printable import counted, cut

if TYPE_CHECKING:
    from msmqwire.analysis.diagrams.session_ladder import Ladder, Rung

WIDTH: Final = 1000
LEFT, RIGHT = 140, 860
TOP: Final = 56
ROW: Final = 32
LABEL_MAX: Final = 94
"""Characters that fit between the lanes."""
COLOURS: Final = {
    Group.HANDSHAKE: "#9c5fc4",
    Group.MESSAGE: "#1f83d6",
    Group.ACKNOWLEDGEMENT: "#2e9b5b",
    Group.CALL: "#1593a5",
    Group.ANSWER: "#6b7fd7",
    Group.OTHER: "#888888",
    Group.MALFORMED: "#d4351c",
    Group.GAP: "#c77700",
}
"""The colours differ visibly on white and on black."""


def to_html(ladder: Ladder) -> str:
    """Return a ladder as HTML."""
    return "".join(_parts(ladder))


def _parts(ladder: Ladder) -> Iterator[str]:
    title = html.escape(ladder.title)
    session = ladder.session
    yield f'<div class="msmqwire-ladder"><strong>{title}</strong>'
    if session is not None:
        height = TOP + ROW * len(ladder.rungs) + 12
        yield (
            f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img" aria-label="{title}"'
            ' style="display:block;max-width:100%;height:auto" font-family="sans-serif" font-size="12"'
            ' fill="currentColor">'
        )
        for x, end in ((LEFT, session.left), (RIGHT, session.right)):
            yield f'<text x="{x}" y="20" text-anchor="middle" font-weight="bold">{html.escape(end)}</text>'
            yield f'<path d="M{x} 30V{height}" stroke="currentColor" opacity=".5"/>'
        for number, rung in enumerate(ladder.rungs):
            yield from _rung(rung, TOP + ROW * number, seconds(rung, ladder))
        yield "</svg>"
        yield f"<div>{''.join(_legend(ladder))}</div>"
    if ladder.remark:
        yield f"<div>{html.escape(ladder.remark)}</div>"
    yield "</div>"


def _rung(rung: Rung, y: int, time: str) -> Iterator[str]:
    colour, text = COLOURS[rung.group], label(rung)
    yield f'<g class="{rung.group.value}{" again" * rung.is_again}">'
    yield f"<title>{html.escape(f'frame {rung.frame}, {time}: {text}')}</title>"
    yield f'<text x="{LEFT - 12}" y="{y + 4}" text-anchor="end" opacity=".75">{time}</text>'
    middle = (LEFT + RIGHT) // 2
    yield f'<text x="{middle}" y="{y - 5}" text-anchor="middle">{html.escape(cut(text, LABEL_MAX))}</text>'
    dashes = "2 6" if rung.group is Group.GAP else "9 4" if rung.is_again else "none"
    yield (f'<path d="M{LEFT} {y}H{RIGHT}" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>')
    if rung.group is not Group.GAP:
        tip, back = (RIGHT, RIGHT - 10) if rung.to_right else (LEFT, LEFT + 10)
        yield f'<path d="M{tip} {y}L{back} {y - 5}V{y + 5}Z" fill="{colour}"/>'
    if rung.findings:
        found = counted(rung.findings, "finding")
        yield f'<text x="{RIGHT + 12}" y="{y + 4}" fill="{COLOURS[Group.MALFORMED]}">{found}</text>'
    yield "</g>"


def _legend(ladder: Ladder) -> Iterator[str]:
    for group in dict.fromkeys(rung.group for rung in ladder.rungs):
        yield f'<span style="color:{COLOURS[group]};margin-right:1.5em">&#9632; {group.value}</span>'
    if any(rung.is_again for rung in ladder.rungs):
        yield "<span>dashed: sent again</span>"
