"""The page of the queue manager's states: diagrams made of the tables of its engine."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from msmqwire.qm.protocols.binary.states import (
    MESSAGES,
    PING,
    SESSION,
    PingState,
    SessionMessageState,
    SessionRole,
    SessionState,
)
from msmqwire.qm.protocols.srmp.states import MESSAGES as SRMP_MESSAGES
from msmqwire.qm.protocols.srmp.states import SrmpMessageState as SrmpState

Row = tuple[Enum, str, Enum]
"""A state, an event and the next state."""

HEAD: Final = """\
# States of the queue manager

Made from the tables of `msmqwire/qm/protocols/binary/states.py` and `msmqwire/qm/protocols/srmp/states.py`
when this page is built. What a table does not have is not allowed: a packet that comes in another
state closes the session, and a receipt or response that comes in another state is ignored.
"""


def diagram(rows: Iterable[Row], first: Enum, last: Iterable[Enum]) -> str:
    """Return a state diagram for Graphviz. Events with the same transition share an arrow."""
    arrows: dict[tuple[Enum, Enum], list[str]] = {}
    for state, event, following in rows:
        arrows.setdefault((state, following), []).append(event)
    lines = [
        "```dot",
        "digraph {",
        '    bgcolor=transparent node [shape=box style=rounded fontname="sans-serif" fontsize=11]',
        '    edge [fontname="sans-serif" fontsize=10] start [shape=point width=0.15]',
    ]
    states = dict.fromkeys(state for pair in arrows for state in pair)
    ends = set(last)
    lines += [
        f'    {state.name} [label="{state.value}"{" peripheries=2" if state in ends else ""}]'
        for state in states
    ]
    lines.append(f"    start -> {first.name}")
    for (state, following), events in arrows.items():
        lines.append(f'    {state.name} -> {following.name} [label="{_BREAK.join(events)}"]')
    return "\n".join([*lines, "}", "```", ""])


def drawn(page: str) -> str:
    """Replace the descriptions of diagrams in a page by pictures that Graphviz draws of them."""
    return re.sub(r"^```dot\n(.*?)^```$", lambda block: _svg(block[1]), page, flags=re.DOTALL | re.MULTILINE)


def _svg(description: str) -> str:
    drawn = subprocess.run(["dot", "-Tsvg"], input=description, capture_output=True, text=True, check=True)
    svg = drawn.stdout[drawn.stdout.index("<svg") :].replace('"black"', '"currentColor"')
    svg = re.sub(r"<!--.*?-->|<title>.*?</title>", "", svg, flags=re.DOTALL)
    return f'<div class="state-diagram">\n{" ".join(svg.split())}\n</div>'


def table(rows: Iterable[Row]) -> str:
    """Return the transitions as a table."""
    lines = ["| state | event | next state |", "| --- | --- | --- |"]
    lines += [f"| {state.value} | {event} | {following.value} |" for state, event, following in rows]
    return "\n".join([*lines, ""])


def part(title: str, section: str, rows: list[Row], first: Enum, last: Iterable[Enum]) -> str:
    return "\n".join([f"## {title}\n", f"{section}\n", diagram(rows, first, last), table(rows)])


def rows_of(transitions: Mapping[tuple[Enum, Enum], Enum]) -> list[Row]:
    """Return the rows of a table by state and event."""
    return [(state, str(event.value), following) for (state, event), following in transitions.items()]


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD]
    for role, figure in ((SessionRole.INITIATOR, 1), (SessionRole.ACCEPTOR, 2)):
        its = {(state, event): to for (who, state, event), to in SESSION.items() if who is role}
        reached = {SessionState.CLOSED, *its.values()}
        rows = [
            row
            for row in rows_of(its)
            if (row[0] in reached and row[0] is not row[2]) or row[0] is SessionState.OPEN
        ]
        section = f"[MS-MQQB] 3.1.1.1.1.{figure}. CLOSED is also where a session begins."
        title = f"Session, {role.value}"
        parts.append(part(title, section, rows, SessionState.CLOSED, [SessionState.CLOSED]))
    merged: dict[int, list[str]] = {}
    for kind, its_messages in MESSAGES.items():
        merged.setdefault(id(its_messages), []).append(kind)
    for kinds in merged.values():
        sections = " and ".join(f"3.1.1.1.1.{_SECTIONS[kind]}" for kind in kinds)
        rows = rows_of(MESSAGES[kinds[0]])
        title = f"Message, {' or '.join(kind.lower() for kind in kinds)}, at its sender"
        parts.append(
            part(
                title,
                f"[MS-MQQB] {sections}.",
                rows,
                SessionMessageState.WAITING_TO_SEND,
                [SessionMessageState.DONE],
            )
        )
    rows = [(state, event, following) for (state, event), following in PING.items()]
    ends = [PingState.ACCEPTED, PingState.REFUSED]
    parts.append(part("Ping, at its sender", "[MS-MQQB] 3.1.1.1.1.9.", rows, PingState.WAITING, ends))
    for kind, its_transitions in SRMP_MESSAGES.items():
        title, section = f"Message of SRMP, {kind.lower()}, at its sender", f"[MC-MQSRM] {_FIGURES[kind]}."
        first, last = SrmpState.PREPARE_TO_SEND, [SrmpState.DONE]
        parts.append(part(title, section, rows_of(its_transitions), first, last))
    return "\n".join(parts)


_BREAK: Final = "\\n"
_SECTIONS: Final = {"Express": 3, "Recoverable": 5, "Transactional": 7}
_FIGURES: Final = {"Regular or durable": "3.1.1.1.2.1, figure 3", "Stream": "3.1.1.1.2.4, figure 6"}
