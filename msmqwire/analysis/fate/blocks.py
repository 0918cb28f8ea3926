"""Plain packets by column: messages that were sent once, with their session acknowledgements."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.analysis.fate.arrays import coded, filled, flags, integers, shared, text_scalar
from msmqwire.analysis.fate.judging import event_of, facts_of
from msmqwire.analysis.fate.message import Message
from msmqwire.analysis.fate.model import EventKind, FateEvent
from msmqwire.analysis.fate.observations import Observation, Where
from msmqwire.analysis.fate.row_attributes import NO_LIMIT, attributes_of
from msmqwire.analysis.fate.rows import SHARED, Row

COLUMNS: Final = (
    "time", "file", "frame", "stream", "src", "dst", "time_to_reach_queue", "source_qm", "destination_qm",
    "time_to_be_received", "sent_time", "message_id", "hop_count", "recoverable", "journal_negative",
    "destination", "admin_queue", "tx_number", "ack_flags", "label", "message_class", "class_name",
    "body_size", "body", "encrypted",
)  # fmt: skip
"""The columns that are kept of messages."""
PLACES: Final = {
    EventKind.RECEIVED: 0,
    EventKind.STORED: 1,
    EventKind.UNACKNOWLEDGED: 2,
    EventKind.NOT_STORED: 2,
}
"""The events that a plain message may have, each once, by their place: none has both of the last two."""
_BETWEEN: Final = text_scalar("\\")
_SECOND: Final = 1_000_000_000
_PLACE: Final[dict[str, int]] = {name: place for place, name in enumerate(Row._fields)}
_EMPTY: Final[list[Any]] = [None] * len(Row._fields)


class Answer:
    """An observation that many messages have in common.

    Attributes:
        observation: of each of them, without a key.
        facts: the number of all in it that an outcome depends on, in its block.
    """

    __slots__ = ("_event", "facts", "observation")

    def __init__(self, observation: Observation, facts: int) -> None:
        self.observation, self.facts = observation, facts
        self._event: FateEvent | None = None

    @property
    def event(self) -> FateEvent:
        """The event of each of the messages."""
        if self._event is None:
            self._event = event_of(self.observation, "")
        return self._event


class Block:
    """The plain packets of a batch, by their number in it.

    Attributes:
        keys: the identities of their messages; empty for a session acknowledgement.
        positions: their places in the order of the capture.
        guids: the queue managers at both ends of their sessions.
        given: answers to them.
        answers: for each of `PLACES` the answer to each of them, as a number from 1 in `given`; 0 for none.
        is_plain: which of them are messages that are plain so far.
        count: the number of these.
    """

    def __init__(self, batch: Any, positions: Any) -> None:
        ids = pc.cast(batch.column("message_id"), pa.string())
        keys = pc.binary_join_element_wise(batch.column("source_qm"), ids, _BETWEEN)
        self.keys = [key or "" for key in keys.to_pylist()]
        self.positions = positions
        self.guids: list[tuple[str, str]] = []
        self.given: list[Answer] = []
        self._facts: dict[tuple[object, ...], int] = {}
        self.answers = tuple([0] * len(self.keys) for _ in range(3))
        self.is_plain = bytearray(len(self.keys))
        self.count = 0
        self._texts: dict[str, Any] = {name: shared(batch.column(name)) for name in COLUMNS if name in SHARED}
        self._columns: dict[str, Any] = {
            name: _integers(batch.column(name)) for name in COLUMNS if name not in SHARED
        }

    def give(self, observation: Observation) -> int:
        """Take an answer to messages of the block; return its number."""
        facts = self._facts.setdefault(facts_of(observation), len(self._facts) + 1)
        self.given.append(Answer(observation, facts))
        return len(self.given)

    def add(self, number: int) -> None:
        """Take a message as plain."""
        self.is_plain[number] = True
        self.count += 1

    def plain(self) -> Any:
        """Return the numbers of plain messages."""
        return np.flatnonzero(np.frombuffer(self.is_plain, np.uint8))

    def taken(self, number: int) -> Message:
        """Return the object of a message, which is plain no more."""
        self.is_plain[number] = False
        self.count -= 1
        message = Message()
        for observation in self.observations(number):
            message.add(observation)
        return message

    def column(self, name: str, chosen: Any) -> list[Any]:
        """Return the values of a column for the messages with some numbers, times as integers."""
        if name in self._texts:
            texts, codes = self._texts[name]
            return [texts[code] for code in codes[chosen].tolist()]
        column = self._columns[name]
        values: list[Any] = column.take(integers(chosen)).to_pylist()
        return values

    def row(self, number: int) -> Row:
        """Return the row of a message, as far as it is kept."""
        cells = _EMPTY.copy()
        for name, (texts, codes) in self._texts.items():
            cells[_PLACE[name]] = texts[codes[number]]
        for name, column in self._columns.items():
            cells[_PLACE[name]] = column[number].as_py()
        return Row._make(cells)

    def observations(self, number: int) -> list[Observation]:
        """Return the observations of a message so far: its sending first."""
        row = self.row(number)
        where = Where(
            int(self.positions[number]), row.time, row.stream, row.file, row.frame, row.src, row.dst
        )
        sender_qm, receiver_qm = self.guids[number]
        sent = Observation(
            self.keys[number], where, EventKind.SENT, sender_qm=sender_qm, receiver_qm=receiver_qm,
            message=attributes_of(row, "tcp"),
        )  # fmt: skip
        given = [answers[number] for answers in self.answers]
        return [sent, *(self.given[answer - 1].observation for answer in given if answer)]

    def settings(self) -> Any:
        """Return the setting of each message by number: all of its own that an outcome depends on."""
        settings = np.zeros(len(self.keys), np.int64)
        for name in ("src", "dst"):
            texts, codes = self._texts[name]
            settings = settings * len(texts) + codes
        asked_for, codes = coded(integers(filled(self._columns["ack_flags"], 0)))
        settings = settings * len(asked_for) + codes
        _, queues = self._texts["admin_queue"]
        is_transactional = flags(pc.is_valid(self._columns["tx_number"]))
        has_admin_queue = queues < len(self._texts["admin_queue"][0]) - 1
        return settings * 4 + is_transactional * 2 + has_admin_queue

    def deadlines(self) -> Any:
        """Return the first time limit of each message, in nanoseconds since 1970-01-01 UTC."""
        limit = np.minimum(
            filled(self._columns["time_to_reach_queue"], NO_LIMIT),
            filled(self._columns["time_to_be_received"], NO_LIMIT),
        )
        sent = self._columns["sent_time"]
        seconds = filled(sent, 0) + limit
        is_limited = (limit < NO_LIMIT) & flags(pc.is_valid(sent))
        return np.where(is_limited, seconds * _SECOND, np.iinfo(np.int64).max)


def _integers(column: Any) -> Any:
    """Return a column, times as integers."""
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
