"""Plain packets by column: messages that were sent once, with their session acknowledgements."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
_SECOND: Final = 1_000_000_000
_EMPTY: Final = Row(*[None] * len(Row._fields))  # type: ignore[arg-type]


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
        numbers = pc.cast(batch.column("message_id"), pa.string())
        keys = pc.binary_join_element_wise(batch.column("source_qm"), numbers, "\\")
        self.keys: list[str] = pc.fill_null(keys, "").to_pylist()
        self.positions = positions
        self.guids: list[tuple[str, str]] = []
        self.given: list[Answer] = []
        self._facts: dict[tuple[object, ...], int] = {}
        self.answers = tuple([0] * len(self.keys) for _ in range(3))
        self.is_plain = bytearray(len(self.keys))
        self.count = 0
        self._texts = {name: shared(batch.column(name)) for name in COLUMNS if name in SHARED}
        self._columns = {name: batch.column(name) for name in COLUMNS if name not in SHARED}

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

    def column(self, name: str, numbers: Any) -> list[Any]:
        """Return the values of a column for some messages, times as integers."""
        if name in self._texts:
            texts, codes = self._texts[name]
            return [texts[code] for code in codes[numbers].tolist()]
        column = self._columns[name]
        return _values(column if len(numbers) == len(self.keys) else column.take(pa.array(numbers)))

    def row(self, number: int) -> Row:
        """Return the row of a message, as far as it is kept."""
        cells: dict[str, Any] = {name: texts[codes[number]] for name, (texts, codes) in self._texts.items()}
        cells |= {name: _values(column.slice(number, 1))[0] for name, column in self._columns.items()}
        return _EMPTY._replace(**cells, kind="UserMessage")

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
        flags, codes = coded(pc.fill_null(self._columns["ack_flags"], 0))
        settings = settings * len(flags) + codes
        _, queues = self._texts["admin_queue"]
        is_transactional = pc.is_valid(self._columns["tx_number"]).to_numpy(zero_copy_only=False)
        has_admin_queue = queues < len(self._texts["admin_queue"][0]) - 1
        return settings * 4 + is_transactional * 2 + has_admin_queue

    def deadlines(self) -> Any:
        """Return the first time limit of each message, in nanoseconds since 1970-01-01 UTC."""
        limits = (
            pc.fill_null(self._columns[name], NO_LIMIT)
            for name in ("time_to_reach_queue", "time_to_be_received")
        )
        limit = pc.min_element_wise(*limits).to_numpy()
        sent = self._columns["sent_time"].cast(pa.int64())
        seconds = pc.fill_null(sent, 0).to_numpy() + limit
        is_limited = (limit < NO_LIMIT) & pc.is_valid(sent).to_numpy(zero_copy_only=False)
        return np.where(is_limited, seconds * _SECOND, np.iinfo(np.int64).max)


def coded(values: Any) -> tuple[list[Any], Any]:
    """Return the different values of an array, and for each value its number."""
    encoded = values.dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)


def shared(column: Any) -> tuple[list[str | None], Any]:
    """Return the different texts of a column, with None at the end, and for each cell the number of its."""
    encoded = column.dictionary_encode()
    texts = [*encoded.dictionary.to_pylist(), None]
    return texts, pc.fill_null(encoded.indices, len(texts) - 1).to_numpy()


def _values(column: Any) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values
