"""Streams of messages to a transactional queue: acceptance and acknowledgement."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from fuzz.peer.binary.messages import merged
from fuzz.peer.srmp.cases import accepted, case
from fuzz.peer.srmp.messages import STREAM, envelope, post, receipts, stream, url, wants_receipt
from fuzz.peer.srmp.taken import number_of
from fuzz.peer.steps import Case, Step
from fuzz.peer.target import Target

RECEIPT = "SRMP-3.1.2.3-01"
IGNORED = "SRMP-3.1.5.1.6.3-04"


def checks(target: Target, source: random.Random) -> Iterator[Case]:
    """Return the cases, each with values that are drawn anew; none if the peer has no transactional queue."""
    if target.transactional_queue:
        yield from _in_order(target, source)
        yield from _out_of_order(target, source)
        yield from _beginnings(target, source)


def message(
    target: Target,
    number: int,
    current: int,
    requirement: str = RECEIPT,
    *,
    previous: int | None = None,
    begins: bool | None = None,
    ordinal: int = 0,
    more: dict[str, Any] | None = None,
) -> Step:
    """Return the step of a message of a stream.

    Args:
        target: the peer.
        number: the number of the message. current, previous: its numbers in the stream.
        requirement: the requirement that a peer breaks by acting otherwise.
        begins: whether it has a start element; by default the first one has.
        ordinal: which stream.
        more: elements that are put over the usual ones.
    """
    start = receipts(target, f"s{ordinal}") if (current == 1 if begins is None else begins) else None
    groups = merged(stream(STREAM + ordinal, current, start, previous), more or {})
    queue = target.transactional_queue
    data = post(target, envelope(target, number, groups, queue=queue), b"%d" % current, to=url(target, queue))
    return accepted(requirement, data, f"message {current} of a stream")


def _in_order(target: Target, source: random.Random) -> Iterator[Case]:
    base = number_of(source)
    text = "The messages of a stream are taken, and acknowledged by stream receipts."
    yield case(RECEIPT, text, message(target, base, 1))
    steps = [message(target, base + at, at, "SRMP-3.1.5.1.6.3-02") for at in range(1, 6)]
    yield case("SRMP-3.1.5.1.6.3-02", text, *steps)
    yield case("SRMP-3.1.6.3-03", text, steps[0], Step("receipts"), steps[1], Step("receipts"), steps[2])
    at_once = accepted(
        "SRMP-3.1.5.1.6.3-02", b"".join(step.data for step in steps), "five messages of a stream at once"
    )
    yield case("SRMP-3.1.5.1.6.3-02", text, at_once)
    text = "A message of a stream has its delivery receipt beside the stream receipt."
    wanted = wants_receipt(target, base)
    yield case("SRMP-3.1.1.1.2.5-04", text, message(target, base, 1, "SRMP-3.1.1.1.2.5-04", more=wanted))
    text = "A gap that previous bridges is none."
    step = message(target, base + 1, 5, "SRMP-3.1.5.1.6.3-03", previous=1)
    last = message(target, base + 2, 6, "SRMP-3.1.5.1.6.3-02")
    yield case("SRMP-3.1.5.1.6.3-03", text, message(target, base, 1), step, last)
    step = message(target, base + 1, 1_000_000, "SRMP-3.1.5.1.6.3-03", previous=1)
    yield case("SRMP-3.1.5.1.6.3-03", text, message(target, base, 1), step)


def _out_of_order(target: Target, source: random.Random) -> Iterator[Case]:
    base = number_of(source)
    first, second, third = (message(target, base + at, at, "SRMP-3.1.5.1.6.3-02") for at in (1, 2, 3))
    text = "A message is not accepted before the one before it, and is when it comes again then."
    yield case("SRMP-3.1.1.3.2-03", text, first, third, Step("receipts"), second, third)
    yield case("SRMP-2.2.5.3-05", text, first, second, message(target, base + 4, 4), Step("receipts"), third)
    bridge = message(target, base + 5, 5, IGNORED, previous=3)
    yield case(IGNORED, "A gap is one if previous was not accepted.", first, bridge, Step("receipts"), second)
    text = "A message that comes again is not taken again."
    wanted = wants_receipt(target, base)
    again = message(target, base, 1, "SRMP-2.2.5.3-04", more=wanted)
    yield case("SRMP-2.2.5.3-04", text, again, again, Step("receipts"), again, second)
    yield case("SRMP-2.2.5.3-04", text, first, second, first, second, third)
    text = "A number that was there is no next one, whatever the message."
    yield case(
        IGNORED,
        text,
        first,
        second,
        message(target, base + 9, 1, IGNORED),
        message(target, base + 8, 2, IGNORED),
    )


def _beginnings(target: Target, source: random.Random) -> Iterator[Case]:
    base = number_of(source)
    text = "A stream begins with message 1 and a start element only."
    step = message(target, base, 1, "SRMP-2.2.5.3.4-06", begins=False)
    yield case("SRMP-2.2.5.3.4-06", text, step, message(target, base + 1, 1, "SRMP-3.1.5.1.6.3-01"))
    for current in (0, 2, 7, (1 << 32) - 1):
        step = message(target, base, current, IGNORED, begins=True)
        yield case(IGNORED, text, step, message(target, base + 1, 1, "SRMP-3.1.5.1.6.3-01"))
    text = "A new stream begins anew, with receipts of its own."
    steps = [message(target, base + at, at) for at in (1, 2)]
    steps += [message(target, base + 10 + at, at, "SRMP-3.1.5.1.6.3-01", ordinal=1) for at in (1, 2, 3)]
    yield case("SRMP-3.1.5.1.6.3-01", text, *steps[:2], Step("receipts"), *steps[2:])
    yield case("SRMP-3.1.5.1.6.3-01", text, *steps)
