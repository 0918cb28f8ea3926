"""The fate of a message, and its acknowledgement: [MS-MQQB] 3.1.5.8 and 3.1.7.15."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from fuzz.peer.binary import messages
from fuzz.peer.binary.cases import OPENED, Draw, case, opened, send
from fuzz.peer.steps import IDENTITY, Case, Step
from msmqwire.names.header_names import AT_DESTINATION

_ALL: Final = messages.PA | messages.NA
_LONG_AGO: Final = 1_000_000_000
"""SentTime of a message that has expired: in the year 2001."""


def delivery(draw: Draw) -> Iterator[Case]:
    """Return the cases of this module."""
    yield from _arrival(draw)
    yield from _refused(draw)
    yield from _expired(draw)
    yield from _duplicates(draw)
    yield from _hops(draw)
    yield from _administration_queues(draw)


def _arrival(draw: Draw) -> Iterator[Case]:
    ids = ("MQQB-3.1.5.8.10-01",)
    text = "The arrival of a message is acknowledged if it asks for that, and only then."
    for recoverable in (False, True):
        kind = "a recoverable" if recoverable else "an express"
        for wants, what in (
            (messages.PA, "that asks for PA"),
            (_ALL, "that asks for PA and NA"),
            (messages.NA, "that asks for NA alone"),
            (0, "that asks for nothing"),
        ):
            packet = draw.message(recoverable=recoverable, wants=wants)
            yield case(ids, text, *OPENED, send(packet, "taken", f"{kind} message {what}", ids))
    fields = {"MessagePropertiesHeader": {"Flags": {"PA": 1}}}
    note = "PA without an administration queue"
    ids = ("MQMQ-2.2.19.2-26",)
    text = "A message that asks for acknowledgements and names no queue for them is taken."
    yield case(ids, text, *OPENED, send(draw.message(fields), "taken", note, ids))
    ids = ("MQQB-3.1.7.15-11",)
    text = "CorrelationID of an acknowledgement is the identifier of its message."
    many = [draw.message(wants=messages.PA, recoverable=bool(number % 2)) for number in range(6)]
    steps = [send(packet, "taken", f"message {number}", ids) for number, packet in enumerate(many, 1)]
    yield case(ids, text, *OPENED, *steps)
    highest = messages.message(draw.target, 0xFFFFFFFF, wants=messages.PA)
    yield case(ids, text, *OPENED, send(highest, "taken", "a message with the highest MessageID", ids))


def _refused(draw: Draw) -> Iterator[Case]:
    """Queues that are not there, or of the other kind: [MS-MQQB] 3.1.5.8.2."""
    text = "A message for a queue that is not there is refused, and the session goes on."
    for recoverable in (False, True):
        for wants in (0, messages.NA, _ALL):
            packet = draw.message(queue=draw.unknown_queue(), wants=wants, recoverable=recoverable)
            expects = f"maybe 8000{', uncounted' if recoverable else ''}"
            ids = ("MQQB-3.1.5.8.2-09",)
            after = send(draw.message(wants=messages.PA), "taken", "a message after it", ids)
            note = "a message for a queue that is not there"
            yield case(ids, text, *OPENED, send(packet, expects, note, ids), after)
    if draw.target.transactional_queue:
        packet = draw.message(queue=draw.target.transactional_queue, wants=_ALL)
        ids = ("MQQB-3.1.5.8.2-13",)
        text = "A message outside a transaction is refused by a transactional queue."
        note = "a message outside a transaction for a transactional queue"
        yield case(ids, text, *OPENED, send(packet, "class 800A", note, ids))
        packet = draw.message(queue=draw.target.transactional_queue, wants=messages.PA)
        yield case(ids, text, *OPENED, send(packet, "maybe 800A", f"{note} that asks for PA alone", ids))


def _expired(draw: Draw) -> Iterator[Case]:
    """Message Expiration: [MS-MQQB] 3.1.5.8 and [MS-MQMQ] 2.2.19.1."""
    ids = ("MQQB-3.1.5.8-04", "MQMQ-2.2.19.1-23")
    text = "A message that is older than its TimeToReachQueue is refused."
    for age in (0, draw.source.randrange(1, 1 << 20)):
        old = {"BaseHeader": {"TimeToReachQueue": age}, "UserHeader": {"SentTime": _LONG_AGO}}
        note = f"a message of 2001 with {age} seconds to reach its queue"
        step = send(draw.message(old, wants=_ALL), "class 8002", note, ids)
        yield case(ids, text, *OPENED, step)
        step = send(draw.message(old, wants=messages.PA), "maybe 8002", note, ids)
        yield case(ids, text, *OPENED, step)
    text = "A message that is younger than its TimeToReachQueue is taken."
    forever = {"UserHeader": {"SentTime": _LONG_AGO, "TimeToBeReceived": messages.INFINITE}}
    note = "a message of 2001 that does not expire"
    yield case(ids, text, *OPENED, send(draw.message(forever, wants=_ALL), "taken", note, ids))
    young = {"BaseHeader": {"TimeToReachQueue": draw.source.randrange(3600, 1 << 31)}}
    note = "a new message with an hour and more to reach its queue"
    yield case(ids, text, *OPENED, send(draw.message(young, wants=_ALL), "taken", note, ids))


def _duplicates(draw: Draw) -> Iterator[Case]:
    """Duplicate Detection: [MS-MQQB] 3.1.5.8.1."""
    ids = ("MQQB-3.1.5.8.1-02",)
    text = "A message that comes again is not delivered again."
    for recoverable in (False, True):
        packet = draw.message(wants=_ALL, recoverable=recoverable)
        again = send(packet, "taken, uncounted", "the same message again", ids)
        first = send(packet, "taken", "a message", ids)
        yield case(ids, text, *OPENED, first, again, again, Step("settle"))
        second = send(packet, "taken, uncounted", "the same message in a new session", ids, 1)
        after = send(draw.message(wants=messages.PA), "taken", "another message", ids, 1)
        for end in ("close", "reset"):
            yield case(ids, text, *OPENED, first, Step("settle"), Step(end), *opened(1), second, after)
        beside = send(packet, "taken, uncounted", "the same message in another session", ids, 1)
        yield case(ids, text, *OPENED, *opened(1), first, Step("settle"), beside, after)
    same = draw.number()
    other = {"UserHeader": {"SourceQueueManager": UUID(int=draw.source.getrandbits(128), version=4)}}
    foreign = messages.message(draw.target, same, other)
    own = messages.message(draw.target, same, wants=messages.PA)
    text = "A message of another queue manager with the same MessageID is another message."
    yield case(
        ("MQMQ-2.2.18.1.3-03",),
        text,
        *OPENED,
        send(foreign, "taken", "a message of another queue manager"),
        send(own, "taken", "a message with the same MessageID", ("MQMQ-2.2.18.1.3-03",)),
    )


def _hops(draw: Draw) -> Iterator[Case]:
    """A message for another queue manager that has passed too many routing servers: [MS-MQQB] 3.1.5.8.2."""
    ids = ("MQQB-3.1.5.8.2-18",)
    text = "A message that has passed too many routing servers is refused."
    away = {
        "UserHeader": {
            "QueueManagerAddress": UUID(int=draw.source.getrandbits(128) | 1, version=4),
            "Flags": {"RC": 0x1D, "DQ": AT_DESTINATION},
            "DestinationQueue": {"PrivateQueueIdentifier": draw.source.randrange(100, 1 << 20)},
        }
    }
    packet = draw.message(away, wants=messages.NA)
    note = "a message for another queue manager with RC 0x1D"
    step = send(packet, "class 8005, uncounted", note, ids)
    yield case(ids, text, *OPENED, step)


def _administration_queues(draw: Draw) -> Iterator[Case]:
    """Each form of AdminQueue: [MS-MQQB] 3.1.7.15."""
    text = "A message with any form of AdminQueue is taken, whether or not the acknowledgement finds its way."
    forms: list[tuple[int, str, dict[str, Any]]] = [
        (2, "MQQB-3.1.7.15-06", {"PrivateQueueIdentifier": draw.source.randrange(1, 1 << 31)}),
        (3, "MQQB-3.1.7.15-07", {"PrivateQueueIdentifier": draw.source.randrange(1000, 1 << 31)}),
        (5, "MQQB-3.1.7.15-08", {"PublicQueueIdentifier": UUID(int=draw.source.getrandbits(128), version=4)}),
        (6, "MQQB-3.1.7.15-09", {"SourceQueueManager": IDENTITY, "PrivateQueueIdentifier": 77}),
        (7, "MQQB-3.1.7.15-19", {"DirectFormatName": "OS:msmqwire.invalid\\private$\\none"}),
    ]
    for number, requirement, name in forms:
        fields = {
            "UserHeader": {"Flags": {"AQ": number}, "AdminQueue": name},
            "MessagePropertiesHeader": {"Flags": {"PA": 1, "NA": 1}},
        }
        packet, ids = draw.message(fields), (requirement,)
        after = send(draw.message(wants=messages.PA), "taken", "a message after it", ids)
        yield case(ids, text, *OPENED, send(packet, "taken", f"a message with AQ {number}", ids), after)
