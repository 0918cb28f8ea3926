"""A search among the messages of a queue: piece by piece, with bounded work for each request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msmqwire.errors import StoreDamaged
from msmqwire.qm.model.message import Message, ObjectId
from msmqwire.qm.runtime.available import available
from msmqwire.qm.runtime.message_json import identifier_text

if TYPE_CHECKING:
    from msmqwire.qm.model.elements import Queue
    from msmqwire.qm.runtime.engine_driver import EngineDriver

FIND_MAX: Final = 256
"""Limit of a text that is looked for, in characters."""
IDENTIFIER_LEAST: Final = 8
"""The shortest part of an identifier that is found, in characters."""
BODY_BYTES: Final = 64 << 10
"""The part of each body that is searched, from its beginning on."""
_MESSAGE_COST: Final = 2 << 10
_SLICE_COST: Final = 512 << 10
"""The work at once, before others have their turn: bytes of bodies, and `_MESSAGE_COST` a message."""
_REQUEST_COST: Final = 16 << 20
"""The work for one request: 8,000 messages with short bodies, or 16 MiB of bodies that are shown."""
_ENCODINGS: Final = ("utf-8", "utf-16-le")


class Found(NamedTuple):
    """What a search has found.

    Attributes:
        items: what was shown of the messages.
        last: the lookup identifier behind which the search goes on; None if it has come to the end.
        examined: the number of messages that were looked at.
    """

    items: list[Any]
    last: int | None
    examined: int


class Needle:
    """A text that is looked for in the label, the identifiers and the body of messages, in any case.

    In identifiers only one of `IDENTIFIER_LEAST` characters or more is: all GUIDs have short ones.
    """

    def __init__(self, text: str) -> None:
        self._folded = text.casefold()
        # The case of letters beyond ASCII can't be ignored in bytes: all are tried that people type.
        ways = {text, text.lower(), text.upper()}
        self._bytes = {
            way.encode(encoding, "surrogatepass").lower() for way in ways for encoding in _ENCODINGS
        }

    def is_in(self, message: Message) -> bool:
        """Whether a message has the text."""
        texts = [message.label]
        correlation = message.correlation_identifier
        if len(self._folded) >= IDENTIFIER_LEAST:
            texts.append(identifier_text(message.identifier))
        if len(self._folded) >= IDENTIFIER_LEAST and any(correlation):
            texts += [identifier_text(ObjectId.from_bytes(correlation)), correlation.hex()]
        if any(self._folded in text.casefold() for text in texts):
            return True
        body = message.body[:BODY_BYTES].lower()
        # Bytes of UTF-16 that look like capital letters are folded too: what is found is checked as text.
        return any(one in body for one in self._bytes) and self._is_in_text(message.body[:BODY_BYTES])

    def _is_in_text(self, body: bytes) -> bool:
        return any(self._folded in body.decode(encoding, "ignore").casefold() for encoding in _ENCODINGS)


async def search(
    driver: EngineDriver,
    find: Callable[[], Queue],
    needle: Needle,
    after: int | None,
    limit: int,
    show: Callable[[Message], Any],
) -> Found:
    """Look for a text in the messages of a queue that can be read, up to a number of them.

    A search that has done its work for one request returns fewer, or none, and goes on behind ``last``. The
    event loop is free between slices of a few milliseconds, in which messages may come and go.

    Args:
        driver: runs the queue manager.
        find: returns the queue; it may be gone after a slice, so that this raises QueueError.
        needle: the text.
        after: the lookup identifier behind which to begin; None for the first message.
        limit: the most messages to be found.
        show: returns what is shown of a message.
    """
    items: list[Any] = []
    examined = cost = 0

    def slice_of(behind: int | None) -> tuple[int | None, bool]:
        """Search a slice; return the last message, and whether the queue has ended."""
        nonlocal examined, cost
        last, until = behind, cost + _SLICE_COST
        for position in available(find(), behind):
            if cost >= until or len(items) >= limit:
                return last, False
            last = position.lookup_identifier
            try:
                message = position.message
            except StoreDamaged:  # a reader will come to it
                message = None
            examined += 1
            cost += _MESSAGE_COST
            if message is not None:
                cost += min(len(message.body), BODY_BYTES)
                if needle.is_in(message):
                    cost += len(message.body)
                    items.append(show(message))
        return last, True

    last, ended = after, False
    while not ended and len(items) < limit and cost < _REQUEST_COST:
        last, ended = driver.read(slice_of, last)
        await asyncio.sleep(0)
    return Found(items, None if ended else last, examined)
