"""The counts of a session: its acknowledgements, its window: [MS-MQQB] 3.1.5.5, 3.1.5.8.7 and 3.1.6.4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fuzz.peer.binary import messages
from fuzz.peer.binary.cases import MALFORMED, OPENED, Draw, case, opened, send
from fuzz.peer.binary.live import Shift, with_counts
from fuzz.peer.steps import Case, Step

_LATE: Final = {"RecoverableAckTimeout": 120_000, "AckTimeout": 120_000}
"""Timeouts with which no acknowledgement comes before there must be one."""
_AT_ONCE: Final = 33
"""Recoverable messages after which the first 32 are acknowledged at once."""


def counts(draw: Draw) -> Iterator[Case]:
    """Return the cases of this module."""
    yield from _acknowledged(draw)
    yield from _validated(draw)
    yield from _unsent(draw)
    yield from _window(draw)


def _acknowledged(draw: Draw) -> Iterator[Case]:
    """Messages are acknowledged in time, and as stored when they are recoverable."""
    source = draw.source
    ids = ("MQQB-3.1.6.4-01",)
    text = "A recoverable message is acknowledged as stored within RecoverableAckTimeout."
    for express in (0, source.randrange(1, 8)):
        note = f"{express} express messages and a recoverable one"
        many = [send(draw.message(), "taken", note, ids) for _ in range(express)]
        last = send(draw.message(recoverable=True), "taken", note, ids)
        wait = Step("acknowledged", breaks=ids, note=note)
        yield case(ids, text, *OPENED, *many, last, wait, wait)
    note = "recoverable messages, with express ones between them"
    several = [
        send(draw.message(recoverable=bool(number % 2)), "taken", note, ids)
        for number in range(source.randrange(6, 12))
    ]
    again = send(draw.message(recoverable=True), "taken", "another one", ids)
    yield case(
        ("MQQB-3.1.6.4-08", "MQQB-3.1.6.4-06"),
        "RecoverableMsgAckSeqNumber and RecoverableMsgAckFlags name the recoverable messages alone.",
        *OPENED,
        *several,
        Step("acknowledged", breaks=ids, note=note),
        again,
        Step("acknowledged", breaks=ids, note="another recoverable message"),
    )
    ids = ("MQQB-3.1.5.8.7-01",)
    late = messages.parameters({"ConnectionParametersHeader": _LATE})
    many_at_once = [draw.message(recoverable=True) for _ in range(_AT_ONCE)]
    fence = b"".join(packet.to_bytes() for packet in many_at_once)
    note = f"{_AT_ONCE} recoverable messages"
    yield case(
        ids,
        "The first 32 recoverable messages are acknowledged at once when there is one more.",
        *OPENED[:2],
        Step("agree", data=late.to_bytes(), note="ConnectionParameters with late acknowledgements"),
        send(fence, "taken", note, ids),
        Step("fence"),
    )
    more = [draw.message(recoverable=True) for _ in range(source.randrange(_AT_ONCE, 60))]
    note = f"{len(more)} recoverable messages"
    yield case(
        ids,
        "Of more than 32 recoverable messages each is acknowledged as stored.",
        *OPENED,
        send(b"".join(packet.to_bytes() for packet in more), "taken", note, ids),
        Step("acknowledged", breaks=ids, note=note),
    )
    unknown = draw.message(queue=draw.unknown_queue())
    ids = ("MQQB-3.1.5.8.2-02",)
    note = "a message that is refused"
    yield case(
        ids,
        "A message that is refused is counted and acknowledged like another.",
        *OPENED,
        send(unknown, "maybe 8000", note, ids),
        send(draw.message(recoverable=True), "taken", "a recoverable message"),
        Step("acknowledged", breaks=ids, note=note),
    )


def _validated(draw: Draw) -> Iterator[Case]:
    """Validate Message Counts: [MS-MQQB] 3.1.5.5.5."""
    source = draw.source
    ack = messages.session_ack().to_bytes()
    before = (
        send(draw.message(), "taken", "an express message"),
        send(draw.message(recoverable=True), "taken", "a recoverable message"),
    )
    ids: tuple[str, ...] = ("MQQB-3.1.5.5.5-01",)
    text = "A SessionHeader whose counts are not those of the messages ends the session."
    wrong: list[tuple[str, Shift]] = [
        ("UserMsgSequenceNumber one too high", Shift(sent=1)),
        ("UserMsgSequenceNumber one too low", Shift(sent=-1)),
        ("UserMsgSequenceNumber far off", Shift(sent=source.randrange(2, 127))),
        ("RecoverableMsgSeqNumber one too high", Shift(recoverable=1)),
        ("RecoverableMsgSeqNumber one too low", Shift(recoverable=-1)),
    ]
    for what, shift in wrong:
        note = f"a SessionAck with {what}"
        yield case(ids, text, *OPENED, *before, send(with_counts(ack, shift), "closed", note, ids))
    for what, shift in wrong[::3]:
        carrier = draw.message({"SessionHeader": {}}, recoverable=bool(source.randrange(2)))
        note = f"a message that carries a SessionHeader with {what}"
        step = send(with_counts(carrier.to_bytes(), shift), "closed", note, ids)
        yield case(ids, text, *OPENED, *before, step)
    ids = ("MQMQ-2.2.20.4-11", "MQQB-3.1.5.5.5-01")
    text = "A message with a wrong UserMsgSequenceNumber is put into its queue, and the session ends."
    for kind in (False, True):
        carrier = draw.message({"SessionHeader": {}}, recoverable=kind, wants=messages.PA)
        data = with_counts(carrier.to_bytes(), Shift(sent=source.randrange(1, 127)))
        note = f"{'a recoverable' if kind else 'an express'} message with a wrong UserMsgSequenceNumber"
        yield case(ids, text, *OPENED, send(data, "closed, taken", note, ids), *opened(1), Step("settle"))
    ids = ("MQQB-3.1.5.5.5-01",)
    text = "A SessionHeader whose counts are not those of the messages ends the session."
    shift = Shift(sent=source.choice([1, -1]))
    note = "a SessionAck with a wrong count before any message"
    yield case(ids, text, *OPENED, send(with_counts(ack, shift), "closed", note, ids))
    text = "A SessionHeader whose counts are right is taken, alone or in a message."
    right = send(with_counts(ack), "open", "a right SessionAck", ("MQQB-3.1.5.5-02",))
    yield case(("MQQB-3.1.5.5-02",), text, *OPENED, right, *before, right, right)
    for kind in (False, True):
        carrier = draw.message({"SessionHeader": {}}, recoverable=kind, wants=messages.PA)
        ids = ("MQQB-3.1.5.8.4-01",)
        note = f"{'a recoverable' if kind else 'an express'} message with a right SessionHeader"
        step = send(with_counts(carrier.to_bytes()), "taken", note, ids)
        yield case(ids, text, *OPENED, *before, step, send(draw.message(), "taken", "a message"), right)
    ids = ("MQMQ-2.2.20.4-14", MALFORMED)
    text = "A WindowSize of 0 ends the session."
    none = send(with_counts(ack, Shift(window=0)), "closed", "a SessionAck with a WindowSize of 0", ids)
    yield case(ids, text, *OPENED, none)
    yield case(ids, text, *OPENED, *before, none)
    carrier = draw.message({"SessionHeader": {}})
    note = "a message with a WindowSize of 0"
    step = send(with_counts(carrier.to_bytes(), Shift(window=0)), "closed", note, ids)
    yield case(ids, text, *OPENED, step)
    text = "The window may have any other size."
    for size in (1, 0xFFFF, source.randrange(2, 0xFFFF)):
        ids = ("MQQB-3.1.5.5-04",)
        step = send(with_counts(ack, Shift(window=size)), "open", f"a WindowSize of {size}", ids)
        yield case(ids, text, *OPENED, step)


def _unsent(draw: Draw) -> Iterator[Case]:
    """A message that was never sent is acknowledged: the text does not cover that."""
    source, ids = draw.source, ("MQQB-3.1.5.5.1-01",)
    ack = messages.session_ack().to_bytes()
    for what, shift in (
        ("AckSequenceNumber", Shift(acknowledged=source.randrange(1, 127))),
        ("RecoverableMsgAckSeqNumber", Shift(base=source.randrange(1, 127), flags=0xFFFFFFFF)),
        ("RecoverableMsgAckFlags without a number", Shift(flags=source.randrange(1, 1 << 32))),
    ):
        yield case(
            ids,
            "An acknowledgement of what was never sent harms no other session.",
            *OPENED,
            send(with_counts(ack, shift), "", f"{what} of a message that was never sent", ids),
            *opened(1),
            send(draw.message(wants=messages.PA), "taken", "a message in another session", ids, 1),
        )


def _window(draw: Draw) -> Iterator[Case]:
    """The peer sends acknowledgements until its window is full, and goes on when they are acknowledged."""
    ids = ("MQQB-3.1.7.1-03",)
    steps: list[Step] = []
    for part in range(4):
        many = [draw.message(wants=messages.PA).to_bytes() for _ in range(24)]
        steps.append(send(b"".join(many), "taken", f"messages {part * 24 + 1} to {part * 24 + 24}", ids))
        steps.append(Step("fence"))
    yield case(
        ids,
        "No more messages are unacknowledged than the window has; the rest come later.",
        *OPENED,
        Step("hold"),
        *steps,
        Step("wait", 400),
        Step("release"),
        Step("settle"),
    )
