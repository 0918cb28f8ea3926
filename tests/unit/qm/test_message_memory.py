"""Recoverable messages in memory: removed ones leave it, whatever stands before them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from msmqwire.qm.model.message import Message
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.rules.message_memory import MessageMemory

SIZE = 100
MESSAGE = cast(Message, SimpleNamespace(origin="", outcome_requested=True))


def loaded(position: MessagePosition) -> Message:
    return MESSAGE


def stored(memory: MessageMemory, number: int) -> MessagePosition:
    position = MessagePosition(cast(Any, None), number, number, SIZE)
    position.keep_in_memory(MESSAGE)
    position.stored = True
    memory.add(position)
    return position


def committed(memory: MessageMemory) -> None:
    memory.changes_taken()
    memory.changes_durable()


def test_removed_messages_do_not_wait_for_an_older_one() -> None:
    memory = MessageMemory(1 << 30)
    memory.load = loaded
    first = stored(memory, 0)
    most = 0
    for number in range(1, 10_000):
        stored(memory, number).stored = False
        committed(memory)
        most = max(most, len(memory))
    assert most <= 1024
    assert first.in_memory


def test_a_sweep_keeps_what_is_not_durable_and_counts_bytes() -> None:
    memory = MessageMemory(3 * SIZE)
    memory.load = loaded
    waiting = [stored(memory, number) for number in range(3)]
    for number in range(3, 3000):
        stored(memory, number).stored = False
    memory.changes_taken()
    late = stored(memory, 3000)
    memory.changes_durable()
    assert [position.in_memory for position in waiting] == [False] * 3
    assert late.in_memory  # its row is not taken yet
    committed(memory)
    assert late.in_memory  # 100 bytes are within the limit
    more = [stored(memory, 3001 + number) for number in range(4)]
    committed(memory)
    assert [position.in_memory for position in (late, *more)] == [False, False, True, True, True]
