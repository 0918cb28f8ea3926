"""The fates of plain messages of a block, by the judge of single attempts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any, Final, TypeVar

import numpy as np

from msmqwire.analysis.fate.arrays import coded, integers
from msmqwire.analysis.fate.blocks import Block
from msmqwire.analysis.fate.hops import REACHED_BY_HOP
from msmqwire.analysis.fate.judging import Outcome, outcome_of_hop
from msmqwire.analysis.fate.model import Brief, EventKind, FateEvent, MessageFate
from msmqwire.analysis.fate.observations import split_identity

_Fate = TypeVar("_Fate")
_RECEIVED, _STORED = (REACHED_BY_HOP[what].value for what in (EventKind.RECEIVED, EventKind.STORED))
_NEVER: Final = np.iinfo(np.int64).min
"""In place of the time of an answer that there is not."""


class BlockFates:
    """Makes the fates of the messages of a block that have stayed plain, in their order."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._numbers = block.plain()
        self._answers = np.array(block.answers, np.int64)[:, self._numbers]
        self._sent = np.array(block.column("time", self._numbers), np.int64)
        wheres = [answer.observation.where for answer in block.given]
        times = [_NEVER, *(_NEVER if where.time_ns is None else where.time_ns for where in wheres)]
        self._times = np.array(times, np.int64)[self._answers]
        self._outcomes = self._judged()
        self._needs_object = self._are_in_disorder() | self._are_late()

    def briefs(self) -> Iterator[Brief | MessageFate]:
        """Yield fates without events."""
        columns = self._columns("label", "destination", "body_size")
        briefs = map(
            Brief._make,
            zip(
                self._keys(),
                *columns,
                self._sent.tolist(),
                repeat(0),
                repeat(0),
                [outcome.state for outcome in self._outcomes],
                [outcome.reason for outcome in self._outcomes],
                [outcome.words.whole for outcome in self._outcomes],
                [outcome.stuck for outcome in self._outcomes],
                self._latencies(),
                [outcome.missing for outcome in self._outcomes],
                [outcome.findings for outcome in self._outcomes],
                strict=False,
            ),
        )
        return self._with_objects(briefs)

    def fates(self) -> Iterator[MessageFate]:
        """Yield fates."""
        return self._with_objects(self._fates())

    def _fates(self) -> Iterator[MessageFate]:
        columns = self._columns(
            "label", "destination", "admin_queue", "class_name", "body_size", "recoverable", "tx_number",
            "sent_time", "stream", "file", "frame", "src", "dst",
        )  # fmt: skip
        rows = zip(
            self._keys(), self._sent.tolist(), self._outcomes, self._events(), self._latencies(), *columns,
            strict=True,
        )  # fmt: skip
        for key, sent_ns, outcome, events, latencies, *cells in rows:
            label, destination, admin_queue, class_name, body_size, recoverable, tx_number = cells[:7]
            sent_time, stream, file, frame, src, dst = cells[7:]
            source_qm, message_id = split_identity(key)
            yield MessageFate(
                key,
                source_qm,
                message_id,
                label,
                destination,
                admin_queue,
                "tcp",
                class_name or "NORMAL",
                body_size,
                bool(recoverable),
                tx_number is not None,
                sent_time,
                sent_ns,
                (FateEvent(sent_ns, EventKind.SENT, stream, file, frame, src, dst), *events),
                0,
                0,
                0,
                outcome.state,
                outcome.reason,
                outcome.words.whole,
                outcome.stuck,
                latencies,
                True,
                outcome.missing,
                src,
                outcome.findings,
            )

    def _with_objects(self, fates: Iterator[_Fate]) -> Iterator[_Fate | MessageFate]:
        """Return the fates, those that need an object by the judge of all observations."""
        if not self._needs_object.any():
            return fates
        numbers = zip(self._numbers.tolist(), self._needs_object.tolist(), strict=True)
        return (
            self._fate_of_object(number) if needs_object else fate
            for (number, needs_object), fate in zip(numbers, fates, strict=True)
        )

    def _fate_of_object(self, number: int) -> MessageFate:
        return self._block.taken(number).fate(self._block.keys[number], complete=True)

    def _judged(self) -> list[Outcome]:
        """Return the outcome of each message: those with equal facts are judged once."""
        facts = np.array([0, *(answer.facts for answer in self._block.given)], np.int64)
        codes = self._block.settings()[self._numbers]
        for answers in self._answers:
            _, codes = coded(integers(codes * (len(facts) + 1) + facts[answers]))
        firsts = np.zeros(int(codes.max(initial=-1)) + 1, np.int64)
        firsts[codes[::-1]] = self._numbers[::-1]
        outcomes = [self._outcome(number) for number in firsts.tolist()]
        return [outcomes[code] for code in codes.tolist()]

    def _outcome(self, number: int) -> Outcome:
        observations = self._block.observations(number)
        message = observations[0].message
        outcome = None if message is None else outcome_of_hop(message, observations)
        assert outcome is not None, "all that is seen of a plain message is of one attempt to send it"
        return outcome

    def _are_in_disorder(self) -> Any:
        """Return which messages have answers before their sending, or before an answer of a place before."""
        given = self._block.given
        positions = np.array([0, *(answer.observation.where.position for answer in given)], np.int64)
        last = self._block.positions[self._numbers]
        found = np.zeros(len(last), bool)
        for answers in self._answers:
            found |= (answers > 0) & (positions[answers] < last)
            last = np.maximum(last, positions[answers])
        return found

    def _are_late(self) -> Any:
        """Return of which messages the time may have been over before the last event."""
        last = np.maximum(self._sent, self._times.max(axis=0))
        has_limits = np.array([bool(outcome.words.limits) for outcome in self._outcomes], bool)
        return has_limits & (last > self._block.deadlines()[self._numbers])

    def _latencies(self) -> list[dict[str, int]]:
        """Return the latencies of each message."""
        columns = []
        for times in self._times[:2]:
            latencies = times - self._sent
            columns.append(np.where((times >= self._sent) & (latencies >= 0), latencies, -1).tolist())
        found: list[dict[str, int]] = []
        for received, stored in zip(*columns, strict=True):
            latencies = {} if received < 0 else {_RECEIVED: received}
            if stored >= 0:
                latencies[_STORED] = stored
            found.append(latencies)
        return found

    def _events(self) -> Iterator[list[FateEvent]]:
        """Yield the events of the answers to each message."""
        given = self._block.given
        for answers in zip(*self._answers.tolist(), strict=True):
            yield [given[answer - 1].event for answer in answers if answer]

    def _keys(self) -> list[str]:
        keys = self._block.keys
        return [keys[number] for number in self._numbers.tolist()]

    def _columns(self, *names: str) -> list[list[Any]]:
        return [self._block.column(name, self._numbers) for name in names]
