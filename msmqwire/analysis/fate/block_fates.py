"""The fates of plain messages of a block, by the judge of single attempts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from msmqwire.analysis.fate.blocks import Answer, Block
from msmqwire.analysis.fate.judging import Outcome, outcome_of_hop
from msmqwire.analysis.fate.model import Brief, EventKind, FateEvent, MessageFate
from msmqwire.analysis.fate.observations import split_identity


class _Judged(NamedTuple):
    """A plain message with its outcome.

    Attributes:
        number: its number in the block.
        sent_ns: when it was seen.
        answers: to it, in order.
        outcome: None if it needs an object, as answers are not in order or its time was over.
    """

    number: int
    sent_ns: int
    answers: list[Answer]
    outcome: Outcome | None


class BlockFates:
    """Makes the fates of the messages of a block that have stayed plain, in their order."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._numbers = block.plain()

    def briefs(self) -> Iterator[Brief | MessageFate]:
        """Yield fates without events."""
        keys = self._block.keys
        columns = self._columns("label", "destination", "body_size")
        for judged, label, destination, body_size in zip(self._judged(), *columns, strict=True):
            number, sent_ns, answers, outcome = judged
            if outcome is None:
                yield self._fate_of_object(number)
                continue
            times = [sent_ns, *[answer.time_ns for answer in answers]]
            yield Brief(
                keys[number],
                label,
                destination,
                body_size,
                sent_ns,
                0,
                0,
                outcome.state,
                outcome.reason,
                outcome.words.whole,
                outcome.stuck,
                outcome.latencies(sent_ns, times),
                outcome.missing,
                outcome.findings,
            )

    def fates(self) -> Iterator[MessageFate]:
        """Yield fates."""
        keys = self._block.keys
        columns = self._columns(
            "label", "destination", "admin_queue", "class_name", "body_size", "recoverable", "tx_number",
            "sent_time", "stream", "file", "frame", "src", "dst",
        )  # fmt: skip
        for judged, *cells in zip(self._judged(), *columns, strict=True):
            number, sent_ns, answers, outcome = judged
            if outcome is None:
                yield self._fate_of_object(number)
                continue
            label, destination, admin_queue, class_name, body_size, recoverable, tx_number, sent_time = cells[
                :8
            ]
            stream, file, frame, src, dst = cells[8:]
            times = [sent_ns, *[answer.time_ns for answer in answers]]
            yield MessageFate(
                keys[number],
                *split_identity(keys[number]),
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
                (
                    FateEvent(sent_ns, EventKind.SENT, stream, file, frame, src, dst),
                    *[answer.event for answer in answers],
                ),
                0,
                0,
                0,
                outcome.state,
                outcome.reason,
                outcome.words.whole,
                outcome.stuck,
                outcome.latencies(sent_ns, times),
                True,
                outcome.missing,
                src,
                outcome.findings,
            )

    def _judged(self) -> Iterator[_Judged]:
        block = self._block
        settings, deadlines = block.settings(), block.deadlines()
        (times,) = self._columns("time")
        known: dict[tuple[int, int, int, int], Outcome | None] = {}
        for number, sent_ns in zip(self._numbers.tolist(), times, strict=True):
            received, stored, ended = [answers[number] for answers in block.answers]
            answers = [answer for answer in (received, stored, ended) if answer is not None]
            facts = (
                settings[number],
                0 if received is None else received.facts,
                0 if stored is None else stored.facts,
                0 if ended is None else ended.facts,
            )
            if facts in known:
                outcome = known[facts]
            else:
                outcome = known[facts] = self._outcome(number)
            if len(answers) > 1 and answers[1].position < answers[0].position:
                outcome = None
            deadline = deadlines[number]
            if deadline is not None and outcome is not None and outcome.words.limits:
                late = [one.time_ns for one in answers if one.time_ns is not None and one.time_ns > deadline]
                if late or sent_ns > deadline:
                    outcome = None
            yield _Judged(number, sent_ns, answers, outcome)

    def _outcome(self, number: int) -> Outcome | None:
        observations = self._block.observations(number)
        message = observations[0].message
        return None if message is None else outcome_of_hop(message, observations)

    def _columns(self, *names: str) -> list[list[Any]]:
        return [self._block.column(name, self._numbers) for name in names]

    def _fate_of_object(self, number: int) -> MessageFate:
        return self._block.taken(number).fate(self._block.keys[number], complete=True)
