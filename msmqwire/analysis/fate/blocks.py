"""Plain messages by column: those that were sent once, with their session acknowledgements."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.analysis.fate.judging import event_of
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
_SECOND: Final = 1_000_000_000
_EMPTY: Final = Row(*[None] * len(Row._fields))  # type: ignore[arg-type]


class Answer:
    """An observation that many messages have in common.

    Attributes:
        observation: of each of them, without a key.
        facts: the number of all that a judgement depends on, but for times.
        position, time_ns: as of its `Where`.
    """

    __slots__ = ("_event", "facts", "observation", "position", "time_ns")

    def __init__(self, observation: Observation, facts: int) -> None:
        self.observation, self.facts = observation, facts
        self.position, self.time_ns = observation.where.position, observation.where.time_ns
        self._event: FateEvent | None = None

    @property
    def event(self) -> FateEvent:
        """The event of each of the messages."""
        if self._event is None:
            self._event = event_of(self.observation, "")
        return self._event


class Block:
    """The plain messages of a batch, by their number in it.

    Attributes:
        keys: their identities.
        positions: their places in the order of the capture.
        guids: the queue managers at both ends of their sessions.
        answers: for each of `PLACES` the answers to them.
        is_plain: which of them are plain so far.
        count: the number of these.
    """

    def __init__(self, batch: Any, positions: Any) -> None:
        names = pc.cast(batch.column("message_id"), pa.string())
        self.keys: list[str] = pc.binary_join_element_wise(batch.column("source_qm"), names, "\\").to_pylist()
        self.positions = positions
        self.guids: list[tuple[str, str]] = []
        self.answers: tuple[list[Answer | None], ...] = tuple([None] * len(self.keys) for _ in range(3))
        self.is_plain = bytearray(len(self.keys))
        self.count = 0
        self._columns = {
            name: batch.column(name).dictionary_encode() if name in SHARED else batch.column(name)
            for name in COLUMNS
        }

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

    def column(self, name: str, numbers: Any) -> list[Any]:
        """Return the values of a column for some messages, times as integers."""
        column = self._columns[name]
        return _values(column if len(numbers) == len(self.keys) else column.take(pa.array(numbers)))

    def row(self, number: int) -> Row:
        """Return the row of a message, as far as it is kept."""
        return _EMPTY._replace(
            **{name: _values(column.slice(number, 1))[0] for name, column in self._columns.items()},
            kind="UserMessage",
        )

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
        answers = [answers[number] for answers in self.answers]
        return [sent, *(answer.observation for answer in answers if answer is not None)]

    def settings(self) -> list[int]:
        """Return the setting of each message by number: all of its own that an outcome depends on."""
        sizes_and_codes = [_coded(self._columns[name]) for name in ("src", "dst", "ack_flags")]
        sizes_and_codes += [
            (2, pc.is_valid(self._columns[name]).to_numpy(zero_copy_only=False))
            for name in ("tx_number", "admin_queue")
        ]
        settings = np.zeros(len(self.keys), np.int64)
        for size, codes in sizes_and_codes:
            settings = settings * size + codes
        return settings.tolist()

    def deadlines(self) -> list[int | None]:
        """Return the first time limit of each message that has one, in nanoseconds since 1970-01-01 UTC."""
        reach, receive = (
            pc.fill_null(self._columns[name], NO_LIMIT)
            for name in ("time_to_reach_queue", "time_to_be_received")
        )
        first = pc.min_element_wise(reach, receive)
        limited = pc.if_else(pc.less(first, NO_LIMIT), first, pa.scalar(None, pa.int64()))
        seconds = pc.add(self._columns["sent_time"].cast(pa.int64()), limited)
        return [None if one is None else one * _SECOND for one in seconds.to_pylist()]


def shared(column: Any) -> tuple[list[Any], Any]:
    """Return the different texts of a column, with None at the end, and for each value its number."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    texts = [*encoded.dictionary.to_pylist(), None]
    codes = pc.fill_null(encoded.indices, len(texts) - 1).to_numpy().astype(np.int64)
    return texts, codes


def _coded(column: Any) -> tuple[int, Any]:
    """Return the number of different values of a column, and for each value its number."""
    texts, codes = shared(column)
    return len(texts), codes


def _values(column: Any) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    if not pa.types.is_dictionary(column.type):
        values: list[Any] = column.to_pylist()
        return values
    texts, codes = shared(column)
    return [texts[code] for code in codes.tolist()]
