"""Several sessions of one queue manager at a time: [MS-MQQB] 3.1.1.3.1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fuzz.peer.binary import messages
from fuzz.peer.binary.cases import OPENED, Draw, case, opened, send
from fuzz.peer.steps import Case, Step

_IDS = ("MQQB-3.1.1.3.1-01",)


def sessions(draw: Draw) -> Iterator[Case]:
    """Return the cases of this module: the first ones, as other cases are performed at the same time."""
    yield from _interleaved()
    yield from _counts(draw)


def _interleaved() -> Iterator[Case]:
    """Two sessions are opened step by step in turn: the answers of one go over its connection."""
    first, second = opened(0), opened(1)
    text = "Each session is opened by the answers on its own connection."
    turns = [step for pair in zip(first, second, strict=True) for step in pair]
    back = [*turns[:2], *reversed(turns[2:4]), *reversed(turns[4:])]
    for steps in (turns, back):
        yield case(_IDS, text, *(replace(step, breaks=_IDS) for step in steps))


def _counts(draw: Draw) -> Iterator[Case]:
    """Packets sent over one session count in no other."""
    ids = ("MQQB-3.1.1.3.1-01",)
    text = "Each session has its own counts."
    one = send(
        draw.message(recoverable=True, wants=messages.PA), "taken", "a message in the first session", ids
    )
    two = send(draw.message(wants=messages.PA), "taken", "a message in the second one", ids, 1)
    yield case(
        ids,
        text,
        *OPENED,
        one,
        *opened(1),
        two,
        Step("acknowledged", breaks=ids, note="a message in the first session"),
    )
    yield case(ids, text, *OPENED, one, Step("settle"), Step("close"), *opened(1), two)
    many = tuple(step for number in range(6) for step in opened(number))
    last = [
        send(draw.message(wants=messages.PA), "taken", f"a message in session {n}", ids, n) for n in range(6)
    ]
    yield case(ids, text, *many, *reversed(last))
