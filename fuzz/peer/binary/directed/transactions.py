"""Transactional messages: their order, OrderAck and FinalAck: [MS-MQQB] 3.1.5.8.6, 3.1.7.2.2 and 3.1.7.17."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from fuzz.peer.binary import messages
from fuzz.peer.binary.cases import OPENED, Draw, case, opened, send
from fuzz.peer.steps import Case, Step

_ALL: Final = messages.PA | messages.NA
_SOON_S: Final = 1
"""TimeToBeReceived of messages whose end is awaited."""


def transactions(draw: Draw) -> Iterator[Case]:
    """Return the cases of this module."""
    yield from _refused(draw)
    if draw.target.transactional_queue:
        yield from _order(draw)
        yield from _final(draw)


def _message(
    draw: Draw,
    place: tuple[int, int, int],
    note: str,
    ids: tuple[str, ...] = ("MQQB-3.1.5.8.6-05",),
    connection: int = 0,
) -> Step:
    packet = draw.message(queue=draw.target.transactional_queue, sequence=place, wants=messages.PA)
    return send(packet, "taken", note, ids, connection)


def _order(draw: Draw) -> Iterator[Case]:
    yield from _again(draw)
    one, later = draw.sequence(), draw.sequence()
    one, later = min(one, later), max(one, later) + 1
    accepted = "Messages in their order are taken and acknowledged by an OrderAck."
    refused = "Messages out of their order are not taken, and not acknowledged by an OrderAck."
    stories: list[tuple[str, str, list[tuple[int, int, int]]]] = [
        ("MQQB-3.1.5.8.6-03", accepted, [(one, 1, 0)]),
        ("MQQB-3.1.5.8.6-03", accepted, [(one, 1, 0), (one, 2, 1), (one, 3, 2)]),
        ("MQQB-3.1.5.8.6-03", accepted, [(one, 1, 0), (one, 5, 1), (one, 9, 5)]),
        ("MQQB-3.1.5.8.6-04", accepted, [(one, 7, 0), (one, 8, 7)]),
        ("MQQB-3.1.5.8.6-04", accepted, [(one, 1, 0), (one, 2, 1), (later, 1, 0), (later, 2, 1)]),
        ("MQQB-3.1.5.8.6-05", refused, [(one, 1, 0), (one, 1, 0)]),
        ("MQQB-3.1.5.8.6-05", refused, [(one, 1, 0), (one, 3, 2)]),
        ("MQQB-3.1.5.8.6-05", refused, [(one, 1, 0), (one, 3, 2), (one, 2, 1), (one, 3, 2)]),
        ("MQQB-3.1.5.8.6-05", refused, [(one, 1, 0), (one, 2, 1), (one, 1, 0), (one, 2, 1), (one, 3, 2)]),
        ("MQQB-3.1.5.8.6-05", refused, [(one, 2, 1)]),
        ("MQQB-3.1.5.8.6-05", refused, [(later, 1, 0), (one, 1, 0), (later, 2, 1)]),
        ("MQQB-3.1.5.8.6-05", refused, [(one, 1, 0), (later, 2, 1)]),
    ]
    for requirement, text, story in stories:
        steps = [
            _message(
                draw,
                place,
                f"number {place[1]} after {place[2]} of sequence {1 + (place[0] != one)}",
                (requirement,),
            )
            for place in story
        ]
        yield case((requirement, "MQQB-3.1.5.8.6-02"), text, *OPENED, *steps)
    wrapped = ((one >> 32) + 1 << 32) | 1
    low = (one >> 32 << 32) | 0xFFFFFFF0
    ids = ("MQMQ-2.2.18.1.2-03",)
    steps = [
        _message(draw, (low, 1, 0), "a sequence", ids),
        _message(draw, (wrapped, 1, 0), "one with a lower Ordinal", ids),
    ]
    text = "Sequences compare by TimeStamp first, then by Ordinal."
    yield case(ids, text, *OPENED, *steps)
    segment = [
        draw.message(
            queue=draw.target.transactional_queue, sequence=(one, number, number - 1), wants=messages.PA
        )
        for number in range(1, draw.source.randrange(4, 20))
    ]
    data = b"".join(packet.to_bytes() for packet in segment)
    note = f"{len(segment)} transactional messages in one segment"
    yield case(("MQQB-3.1.1.6.2-06",), accepted, *OPENED, send(data, "taken", note), Step("fence"))


def _again(draw: Draw) -> Iterator[Case]:
    """A message that comes again, as when its acknowledgement was lost: over a new session, or the same."""
    one = draw.sequence()
    same = draw.message(queue=draw.target.transactional_queue, sequence=(one, 1, 0), wants=messages.PA)
    ids: tuple[str, ...] = ("MQQB-3.1.5.8.6-05", "MQQB-3.1.1.3.1-15", "MQQB-3.1.1.3.1-16")
    first = send(same, "taken", "number 1", ids)
    again = send(same, "taken", "number 1 again in a new session", ids, 1)
    second = _message(draw, (one, 2, 1), "number 2 in the new session", ids, 1)
    text = "A transactional message that is resent over a new session is not delivered again."
    yield case(ids, text, *OPENED, first, Step("settle"), Step("close"), *opened(1), again, second)
    ids = ("MQQB-3.1.5.8.6-02",)
    again = send(same, "taken", "number 1 again", ids)
    text = "A transactional message that is resent is acknowledged by an OrderAck once more."
    yield case(ids, text, *OPENED, replace(first, breaks=ids), Step("settle"), again, Step("settle"))


def _refused(draw: Draw) -> Iterator[Case]:
    """A transactional message that its queue refuses has a FinalAck."""
    place = draw.sequence(), 1, 0
    text = "A transactional message for a queue that is not transactional is refused, with a FinalAck."
    ids: tuple[str, ...] = ("MQQB-3.1.5.8.2-12", "MQQB-3.1.5.8.2-11")
    note = "a transactional message for a queue that is not transactional"
    packet = draw.message(sequence=place, wants=_ALL)
    yield case(ids, text, *OPENED, send(packet, "class 8009, final 8009, uncounted", note, ids))
    packet = draw.message(sequence=place)
    yield case(ids[:1], text, *OPENED, send(packet, "final 8009, uncounted", note, ids[:1]))
    text = "A transactional message for a queue that is not there is refused, with a FinalAck."
    ids = ("MQQB-3.1.5.8.2-10",)
    note = "a transactional message for a queue that is not there"
    packet = draw.message(sequence=place, wants=_ALL, queue=draw.unknown_queue())
    yield case(ids, text, *OPENED, send(packet, "maybe 8000, final 8000, uncounted", note, ids))


def _final(draw: Draw) -> Iterator[Case]:
    """A message has a FinalAck when it leaves its queue: here because it is not received in time."""
    text = "A transactional message with JN or JP has a FinalAck when it leaves its queue."
    ids = ("MQQB-3.1.7.2.2-01", "MQQB-2.2.5-02")
    for name in ("JN", "JP"):
        fields = {"UserHeader": {"TimeToBeReceived": _SOON_S, "Flags": {name: 1}}}
        packet = draw.message(fields, queue=draw.target.transactional_queue, sequence=(draw.sequence(), 1, 0))
        step = send(packet, "taken, final C002", f"a transactional message with {name}", ids)
        yield case(ids, text, *OPENED, step, Step("settle"))
