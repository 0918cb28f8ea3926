"""The fate of messages: the outcome of each one, as far as captures show it.

Three stages, each a plain function of its input, so that one process and many tasks have the same result:
the packets of a connection in order say things of messages; some of them are about numbers, and are looked
up; all that is said of a message is folded into one `MessageFate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msmqwire.analysis.dissection import Source
from msmqwire.analysis.fate.connections import Connections
from msmqwire.analysis.fate.followers import followers
from msmqwire.analysis.fate.messages import HELD_MAX, Messages
from msmqwire.analysis.fate.model import (
    EVENTS_MAX,
    NEGATIVE,
    STUCK_MAX,
    Brief,
    EventKind,
    FateEvent,
    Latency,
    MessageFate,
    QueueSummary,
    State,
    What,
)
from msmqwire.analysis.fate.numbers import Numbers
from msmqwire.analysis.fate.observations import Observation, Several, Sighting
from msmqwire.analysis.fate.packets import Packets
from msmqwire.analysis.fate.rows import BODY_LIMIT, COLUMNS, OWN_KINDS
from msmqwire.analysis.fate.summaries import summary
from msmqwire.tables import read_capture

__all__ = [
    "BATCH_ROWS",
    "BODY_LIMIT",
    "COLUMNS",
    "EVENTS_MAX",
    "HELD_MAX",
    "KINDS",
    "NEGATIVE",
    "STUCK_MAX",
    "EventKind",
    "FateEvent",
    "Latency",
    "MessageFate",
    "QueueSummary",
    "State",
    "What",
    "fates",
    "fates_of",
    "summary",
]

KINDS = (*OWN_KINDS, *followers())
"""The kinds of packets that are needed."""
BATCH_ROWS = 16_384
"""Rows of captures that are taken at a time."""


def fates(
    captures: Source | Iterable[Source],
    *,
    acknowledgements: bool = False,
    held_max: int = HELD_MAX,
    **arguments: Any,
) -> Iterator[MessageFate]:
    """Yield the fate of each message of captures, in the order in which they are seen first.

    Args:
        captures: as for `msmqwire.read_capture`: one capture, in this order.
        acknowledgements: whether acknowledgement messages have fates of their own.
        held_max: messages and events of them that are held in memory, about a kilobyte each. If there are
            more, the message that was silent longest gets its fate early: it is not `complete`, and its later
            events are reported as those of another message.
        arguments: ``ports``, ``storage_options``, ``record_size_max``, ``flush``, ``warm_up`` and further
            ones of `msmqwire.read_capture`.

    A truncated or damaged file is reported by a `msmqwire.tables.CaptureWarning` when its end is reached.

    Raises:
        As `msmqwire.read_capture`.
    """
    reader = read_capture(
        captures,
        columns=COLUMNS,
        where=[("kind", "in", KINDS)],
        batch_rows=BATCH_ROWS,
        body_limit=BODY_LIMIT,
        **arguments,
    )
    return fates_of(reader, acknowledgements=acknowledgements, held_max=held_max)


def fates_of(
    batches: Iterable[Any], *, acknowledgements: bool = False, held_max: int = HELD_MAX
) -> Iterator[MessageFate]:
    """Yield the fate of each message of record batches that have `COLUMNS`, in the order of the capture.

    Arguments as for `fates`.
    """
    messages = Messages(acknowledgements=acknowledgements, held_max=held_max)
    yield from _followed(batches, messages)
    yield from messages.fates()


def briefs_of(batches: Iterable[Any], *, acknowledgements: bool = False) -> Iterator[Brief | MessageFate]:
    """Yield as `fates_of`, without the events of most messages: faster, for a line or a sum of each."""
    messages = Messages(acknowledgements=acknowledgements)
    yield from _followed(batches, messages)
    yield from messages.briefs()


def _followed(batches: Iterable[Any], messages: Messages) -> Iterator[MessageFate]:
    """Follow all packets; yield the fates of messages for which there is no room."""
    connections, numbers = Connections(), Numbers()

    def early(sightings: Iterable[Sighting | range]) -> Iterator[MessageFate]:
        for sighting in sightings:
            if isinstance(sighting, range):
                yield from messages.sent(sighting)
            elif isinstance(sighting, Observation):
                yield from messages.feed(sighting)
            elif isinstance(sighting, Several):
                yield from messages.several(sighting)
            else:
                for observation in numbers.feed(sighting):
                    yield from messages.feed(observation)

    position = 0
    for batch in batches:
        packets = Packets(batch, position)
        messages.begin(packets.block)
        yield from early(connections.take(packets))
        messages.finish()
        position += batch.num_rows
    yield from early(connections.end())
