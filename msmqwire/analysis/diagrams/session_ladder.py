"""A session as a ladder: both ends as lanes, its packets as arrows between them, from top to bottom."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, BinaryIO, Final, NamedTuple

from msmqwire.analysis.dissection import Item, dissect
from msmqwire.analysis.report.alike import alone
from msmqwire.analysis.report.facts import Group, facts_of
from msmqwire.analysis.report.limits import Limits
from msmqwire.analysis.report.repeats import Repeats
from msmqwire.analysis.report.sessions import Session, session_key
from msmqwire.names.printable import counted, cut, format_endpoint

RUNGS_DEFAULT: Final = 200
ABOUT_MAX: Final = 300
"""Characters of the text about one packet."""

Source = str | os.PathLike[str] | BinaryIO


class Rung(NamedTuple):
    """One packet of a ladder, or bytes that were skipped.

    Attributes:
        time_ns: when it was captured, nanoseconds since 1970-01-01 UTC; None for none.
        to_right: whether it goes to the right.
        kind: its name, as that of an item.
        group: its purpose.
        about: it in one line.
        is_again: whether it was sent before.
        findings: the number of its departures from the specifications.
        frame: the last frame that carries it.
    """

    time_ns: int | None
    to_right: bool
    kind: str
    group: Group
    about: str
    is_again: bool
    findings: int
    frame: int


@dataclass(frozen=True, slots=True, repr=False)
class Ladder:
    """A session to be looked at: an SVG in notebooks, text by ``str`` and ``print``, in colours by rich.

    Attributes:
        session: its ends and the counts of all its packets; None if there are no packets.
        rungs: its packets, from the first.
        left_out: the number of packets beyond these.
    """

    session: Session | None
    rungs: tuple[Rung, ...] = field(default=())
    left_out: int = 0

    @property
    def title(self) -> str:
        """The session in one line."""
        session = self.session
        if session is None:
            return "No such session"
        packets, gaps = sum(session.packets), session.groups[Group.GAP]
        parts = [session.protocol, session.state, counted(packets, "packet")]
        parts += [f"{session.again:,} sent again"] * bool(session.again)
        parts += [counted(gaps, "gap")] * bool(gaps)
        parts += [counted(session.findings, "finding")] * bool(session.findings)
        name = "" if session.stream is None else f"Stream {session.stream}: "
        return f"{name}{session.left} and {session.right}, {', '.join(part for part in parts if part)}"

    @property
    def remark(self) -> str:
        """A sentence on the packets not drawn; empty if all are."""
        if not self.left_out:
            return ""
        return f"{counted(self.left_out, 'more packet')} not drawn; a larger limit draws more."

    def __repr__(self) -> str:
        return f"<Ladder {self.title}>"

    def __str__(self) -> str:
        from msmqwire.analysis.diagrams.ladder_text import lines

        return "\n".join(text for text, _ in lines(self))

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """Yield the ladder as text with colours, as wide as the console."""
        from msmqwire.analysis.diagrams.ladder_text import rich_lines

        yield from rich_lines(self, options.max_width)

    def _repr_html_(self) -> str:
        """Return the ladder as an SVG in HTML, for notebooks."""
        from msmqwire.analysis.diagrams.ladder_svg import to_html

        return to_html(self)


def ladder(
    source: Source | Iterable[Source] | Iterable[Item],
    *,
    stream: int | None = None,
    limit: int = RUNGS_DEFAULT,
) -> Ladder:
    """Draw a session of a capture as a ladder.

    Args:
        source: a capture, or several as parts of one, as `msmqwire.dissect` takes them; or items that it has
            returned. They are read to their end.
        stream: the number of the TCP connection, `stream` of its items. By default the first connection that
            has packets; if there is none, the first two ends that sent each other datagrams.
        limit: the most packets to draw, from the first. Those after them are counted.

    Raises:
        ValueError: the limit is negative.
        FileNotFoundError, OSError, UnsupportedStore: as `msmqwire.dissect`.
    """
    if limit < 0:
        raise ValueError("a limit is not negative")
    drawing: _Drawing | None = None
    for item in _items(source):
        if stream is not None and item.stream != stream:
            continue
        is_first_of_tcp = drawing is not None and item.stream is not None and drawing.session.stream is None
        if drawing is None or is_first_of_tcp:
            drawing = _Drawing(item, limit)
        drawing.add(item)
    if drawing is None:
        return Ladder(None)
    return Ladder(drawing.session, tuple(drawing.rungs), drawing.left_out)


def _items(source: Source | Iterable[Source] | Iterable[Item]) -> Iterator[Item]:
    if isinstance(source, str | os.PathLike) or hasattr(source, "read"):
        yield from dissect(source)  # type: ignore[arg-type]
        return
    several: Iterator[Any] = iter(source)
    first = next(several, None)
    if isinstance(first, Item):
        yield first
        yield from several
    elif first is not None:
        yield from dissect(chain([first], several))


class _Drawing:
    """A ladder while its items are read."""

    def __init__(self, first: Item, limit: int) -> None:
        left, right = _ends(first)
        self.session = Session(first.stream, left, right)
        self.rungs: list[Rung] = []
        self.left_out = 0
        self._key, self._limit = session_key(first, (left, right)), limit
        self._repeats = Repeats(Limits().identities)

    def add(self, item: Item) -> None:
        """Take in an item, if it is of this session."""
        ends = _ends(item)
        if session_key(item, ends) != self._key:
            return
        facts = facts_of(item)
        is_again = self._repeats.has(item, facts)
        to_right = ends[0] == self.session.left
        self.session.add(alone(item, facts, is_again=is_again), ends[0])
        if item.kind == "EstablishConnection":
            self.session.note_handshake(item, to_left=not to_right)
        if len(self.rungs) == self._limit:
            self.left_out += 1
            return
        frame = item.frames[-1] if item.frames else 0
        about = cut(facts.about, ABOUT_MAX)
        self.rungs.append(
            Rung(item.time_ns, to_right, item.kind, facts.group, about, is_again, len(item.findings), frame)
        )


def _ends(item: Item) -> tuple[str, str]:
    return format_endpoint(item.src, item.src_port), format_endpoint(item.dst, item.dst_port)
