"""All messages of a capture: plain ones by column, an object for each of the others."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Final, NamedTuple, TypeVar

import numpy as np

from msmqwire.analysis.fate.block_fates import BlockFates
from msmqwire.analysis.fate.blocks import PLACES, Block
from msmqwire.analysis.fate.message import Message, Namesakes
from msmqwire.analysis.fate.model import Brief, MessageFate
from msmqwire.analysis.fate.observations import Observation, Several

HELD_MAX: Final = 1 << 20
"""Messages and events that are held; of more, the message that was silent longest gets its fate now."""
_NUMBER_BITS: Final = 32
"""Bits of the number of a message in its block."""
_NUMBER: Final = (1 << _NUMBER_BITS) - 1
_SPARSE: Final = 4
"""A block with at most one plain packet in this number is given up, to free its memory."""

_Fate = TypeVar("_Fate")
_Held = Message | Namesakes | int
"""A message that is alone, several of one identity, or the place of a plain message: its block and number."""


class Messages:
    """All messages of a capture.

    Args:
        acknowledgements: whether acknowledgement messages have fates of their own.
        held_max: messages and events of them that are held at a time.
    """

    def __init__(self, *, acknowledgements: bool = False, held_max: int = HELD_MAX) -> None:
        self._messages: OrderedDict[str, _Held] = OrderedDict()
        self._blocks: dict[int, Block] = {}
        self._begun = -1
        self._acknowledgements, self._held_max = acknowledgements, held_max
        self._held = 0

    def begin(self, block: Block) -> None:
        """Take plain messages of this block from now on."""
        self._begun += 1
        self._blocks[self._begun] = block

    def finish(self) -> None:
        """Take no more plain messages of the block."""
        self._give_up_if_sparse(self._begun)

    def sent(self, numbers: range) -> Iterator[MessageFate]:
        """Take the sendings of plain messages of the block; yield as `feed`."""
        messages, block, begun = self._messages, self._blocks[self._begun], self._begun << _NUMBER_BITS
        keys = block.keys
        for number in numbers:
            key = keys[number]
            if not key:
                continue
            if key in messages:
                yield from self.take(key, block.observations(number)[0])
                continue
            messages[key] = begun | number
            block.add(number)
            self._held += 2
            if self._held > self._held_max:
                yield from self._early()

    def feed(self, observation: Observation) -> Iterable[MessageFate]:
        """Take the next observation; return the fates of messages for which there is no room any more."""
        return self.take(observation.key, observation)

    def several(self, several: Several) -> Iterator[MessageFate]:
        """Take the next observation, of several messages; yield as `feed`."""
        messages, observation = self._messages, several.observation
        place = PLACES[observation.what]
        last, given = -1, 0
        for key in several.keys:
            held = messages.get(key)
            if type(held) is int:
                which, number = held >> _NUMBER_BITS, held & _NUMBER
                if which != last:
                    last, given = which, 0
                    block = self._blocks[which]
                    answers = block.answers[place]
                if not answers[number]:
                    given = given or block.give(observation)
                    answers[number] = given
                    messages.move_to_end(key)
                    self._held += 1
                    if self._held > self._held_max:
                        yield from self._early()
                        last = -1
                    continue
            yield from self.take(key, observation)

    def take(self, key: str, observation: Observation) -> Iterable[MessageFate]:
        """Take the next observation of a message; return as `feed`."""
        held = self._messages.get(key)
        if held is None:
            message = self._messages[key] = Message()
            self._held += 1
        else:
            self._messages.move_to_end(key)
            message = self._about(key, held, observation)
        before = len(message.observations)
        message.add(observation)
        if not self._acknowledgements and message.is_acknowledgement:  # nobody asks for more
            message.forget()
        self._held += len(message.observations) - before
        return () if self._held <= self._held_max else list(self._early())

    def _about(self, key: str, held: _Held, observation: Observation) -> Message:
        """Return which of the messages of an identity an observation is about."""
        if isinstance(held, int):
            held = self._messages[key] = self._made(held)
        if isinstance(held, Message):
            if observation.message is None or held.may_be(observation.message):
                return held
            held = self._messages[key] = Namesakes(held)
        before = len(held.messages)
        message = held.about(observation)
        self._held += len(held.messages) - before
        return message

    def _made(self, place: int) -> Message:
        """Make an object of a plain message, which it is no more."""
        number = place & _NUMBER
        message = self._blocks[place >> _NUMBER_BITS].taken(number)
        if place >> _NUMBER_BITS != self._begun:
            self._give_up_if_sparse(place >> _NUMBER_BITS)
        return message

    def _give_up_if_sparse(self, which: int) -> None:
        """Make objects of the last messages of a block."""
        block = self._blocks.get(which)
        if block is not None and block.count * _SPARSE <= len(block.keys):
            for number in block.plain().tolist():
                self._messages[block.keys[number]] = block.taken(number)
            del self._blocks[which]

    def _early(self) -> Iterator[MessageFate]:
        """Yield the fates of the messages that were silent longest, until the others have room."""
        while self._held > self._held_max:
            key, held = self._messages.popitem(last=False)
            if isinstance(held, int):
                held = self._made(held)
            messages = _messages_of(held)
            self._held -= sum(1 + len(message.observations) for message in messages)
            for message in messages:
                if self._is_asked_for(message):
                    yield _fate(held, message, key, complete=False)

    def _is_asked_for(self, message: Message) -> bool:
        return self._acknowledgements or not message.is_acknowledgement

    def fates(self) -> Iterator[MessageFate]:
        """Yield the fates of all messages, in the order in which they were seen first."""
        return self._end(BlockFates.fates)

    def briefs(self) -> Iterator[Brief | MessageFate]:
        """Yield the same without events, where there is no object."""
        return self._end(BlockFates.briefs)

    def _end(self, shown: Callable[[BlockFates], Iterator[_Fate]]) -> Iterator[_Fate | MessageFate]:
        seen = self._objects()
        if seen and self._make_those_seen_with(seen):
            seen = self._objects()
        seen.reverse()
        self._messages.clear()
        while self._blocks:
            block = self._blocks.pop(next(iter(self._blocks)))
            positions = block.positions[block.plain()].tolist()
            fates, begun = shown(BlockFates(block)), 0
            while seen and positions and seen[-1].position < positions[-1]:
                before = bisect_left(positions, seen[-1].position)
                yield from islice(fates, before - begun)
                begun = before
                yield seen.pop().fate()
            yield from fates
        while seen:
            yield seen.pop().fate()

    def _objects(self) -> list[_Seen]:
        """Return the messages that have objects and are asked for, in the order of their first packets."""
        if sum(block.count for block in self._blocks.values()) == len(self._messages):
            return []
        seen = [
            _Seen(message.observations[0].where.position, held, message, key)
            for key, held in self._messages.items()
            if not isinstance(held, int)
            for message in _messages_of(held)
            if message.observations and self._is_asked_for(message)
        ]
        seen.sort(key=attrgetter("position"))
        return seen

    def _make_those_seen_with(self, seen: Sequence[_Seen]) -> bool:
        """Make objects of plain messages in whose packet another was seen first; return if any was made."""
        positions, made = np.array([one.position for one in seen], np.int64), False
        for block in self._blocks.values():
            plain = block.plain()
            for number in plain[np.isin(block.positions[plain], positions)].tolist():
                self._messages[block.keys[number]] = block.taken(number)
                made = True
        return made


class _Seen(NamedTuple):
    """A message that has an object, and the position of its first packet."""

    position: int
    held: Message | Namesakes
    message: Message
    key: str

    def fate(self) -> MessageFate:
        return _fate(self.held, self.message, self.key, complete=True)


def _messages_of(held: Message | Namesakes) -> Sequence[Message]:
    return (held,) if isinstance(held, Message) else held.messages


def _fate(held: Message | Namesakes, message: Message, key: str, *, complete: bool) -> MessageFate:
    if isinstance(held, Message):
        return message.fate(key, complete=complete)
    return held.fate(message, key, complete=complete)
