"""Messages waiting to be sent: [MS-MQDMPR] 3.1.1.18, 3.1.7.1.28, 3.1.7.1.29, 3.1.7.1.34 and 3.1.7.3.9."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from msmqwire.qm.model.elements import OutgoingQueue
from msmqwire.qm.model.positions import MessagePosition
from msmqwire.qm.rules.dispatch import Dispatch
from tests.support.engine_harness import SEND, EngineHarness
from tests.support.qm.event_recorder import EventRecorder


class Sender(EventRecorder):
    """A protocol with a callback while it sends."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[MessagePosition], None] = lambda position: None

    def send_user_message(self, position: MessagePosition, protocol_data: object) -> None:
        super().send_user_message(position, protocol_data)
        self.meanwhile(position)

    @property
    def sent(self) -> list[Any]:
        return [event[2] for event in self.log if event[0] == "send"]


class Table:
    """Outgoing queues whose messages are sent only by the test."""

    def __init__(self) -> None:
        self.harness = EngineHarness()
        self.harness.core.context.subscribers.clear()
        self.sender = Sender()
        self.harness.core.context.subscribers.append(self.sender)
        self.dispatch: Dispatch = self.harness.core.dispatch
        self.low, self.high = self.queue("low", 0), self.queue("high", 10)

    def queue(self, name: str, base_priority: int) -> OutgoingQueue:
        queue = self.harness.open(f"DIRECT=OS:there\\private$\\{name}", SEND).queue
        assert isinstance(queue, OutgoingQueue)
        queue.base_priority = base_priority
        return queue

    def put(self, queue: OutgoingQueue) -> MessagePosition:
        return self.harness.enqueue(queue)

    def hold(self) -> None:
        """Hold back sending until all messages are added: one message is in progress."""
        first = self.put(self.low)
        self.sender.meanwhile = lambda position: self.fill() if position is first else None
        self.dispatch.add(first, "first", 0)

    def fill(self) -> None:
        for queue, data, priority in (
            (self.low, "low 3", 3),
            (self.high, "high 0", 0),
            (self.low, "low 7", 7),
            (self.high, "high 3", 3),
            (self.low, "low 3 too", 3),
            (self.low, "low 0", 0),
        ):
            self.dispatch.add(self.put(queue), data, priority)


@pytest.fixture
def table() -> Table:
    return Table()


@pytest.mark.requirement(
    "DMPR-3.1.7.1.28-01", "DMPR-3.1.1.18-01", "DMPR-3.1.1.18-02", "DMPR-3.1.1.18-04", "DMPR-3.1.1.1-50",
    "DMPR-3.1.7.3.9-02",
)  # fmt: skip
def test_an_entry_has_message_and_data(table: Table) -> None:
    recorded = []

    def record_entries(position: MessagePosition) -> None:
        second_entry = table.put(table.low)
        table.dispatch.add(second_entry, "other", 0)
        entries = {entry.position: entry for entry in table.dispatch._entries.values()}
        recorded.append((entries[position], entries[second_entry]))
        table.sender.meanwhile = lambda position: None
        recorded.append((entries[position].send_in_progress, entries[second_entry].send_in_progress))

    table.sender.meanwhile = record_entries
    first = table.put(table.low)
    table.dispatch.add(first, "data", 4)
    (first_entry, second_entry), progress = recorded
    assert (first_entry.position, first_entry.protocol_data) == (first, "data")
    assert progress == (True, False)
    assert second_entry.send_in_progress is False


@pytest.mark.requirement(
    "DMPR-3.1.7.1.28-02", "DMPR-3.1.7.3.9-02", "DMPR-3.1.1.18-03", "DMPR-3.1.7.3.9-05", "DMPR-3.1.1.2-17"
)
def test_the_most_urgent_message_is_sent_first(table: Table) -> None:
    table.hold()
    assert table.sender.sent == [
        "first",
        "high 3",  # 13
        "high 0",  # 10
        "low 7",
        "low 3",
        "low 3 too",
        "low 0",
    ]
    assert len(table.dispatch) == 0


@pytest.mark.requirement("DMPR-3.1.7.1.28-03", "DMPR-3.1.7.3.9-03")
def test_what_is_added_is_sent(table: Table) -> None:
    position = table.put(table.low)
    table.dispatch.add(position, "data", 3)
    assert table.sender.log[-1] == ("send", position, "data")


@pytest.mark.requirement("DMPR-3.1.7.3.9-04")
def test_a_message_without_data_is_sent_without(table: Table) -> None:
    position = table.put(table.low)
    table.dispatch.add(position, None, 3)
    assert table.sender.log[-1] == ("send", position, None)


@pytest.mark.requirement("DMPR-3.1.7.3.9-01", "DMPR-3.1.7.1.28-01")
def test_one_message_is_sent_at_a_time(table: Table) -> None:
    depth, deepest = 0, 0
    second = table.put(table.high)

    def during(position: MessagePosition) -> None:
        nonlocal depth, deepest
        depth += 1
        deepest = max(deepest, depth)
        if position is not second:
            table.dispatch.add(second, "more urgent", 7)
            table.dispatch.send()
            assert table.sender.sent == ["first"]
        depth -= 1

    table.sender.meanwhile = during
    table.dispatch.add(table.put(table.low), "first", 0)
    assert deepest == 1
    assert table.sender.sent == ["first", "more urgent"]


@pytest.mark.requirement("DMPR-3.1.7.1.29-01")
def test_a_removed_entry_is_skipped_and_the_next_one_is_sent(table: Table) -> None:
    gone, stays = table.put(table.high), table.put(table.low)

    def remove(position: MessagePosition) -> None:
        if position not in (gone, stays):
            table.dispatch.add(gone, "gone", 7)
            table.dispatch.add(stays, "stays", 0)
            table.dispatch.remove(gone)
            table.dispatch.remove(position)

    table.sender.meanwhile = remove
    table.dispatch.add(table.put(table.low), "first", 0)
    assert table.sender.sent == ["first", "stays"]
    table.dispatch.remove(gone)  # not in the dispatch, so nothing to send
    assert table.sender.sent == ["first", "stays"]


@pytest.mark.requirement("DMPR-3.1.7.1.29-01")
@pytest.mark.parametrize("present", [True, False])
def test_a_removal_lets_the_next_message_go(
    table: Table, monkeypatch: pytest.MonkeyPatch, present: bool
) -> None:
    gone, stays = table.put(table.high), table.put(table.low)
    with monkeypatch.context() as held:
        held.setattr(table.dispatch, "send", lambda: None)
        if present:
            table.dispatch.add(gone, "gone", 7)
        table.dispatch.add(stays, "stays", 0)
    assert table.sender.sent == []
    table.dispatch.remove(gone)
    assert table.sender.sent == ["stays"]


@pytest.mark.requirement("DMPR-3.1.7.1.34-01")
def test_the_entries_of_a_queue_are_removed_together(table: Table) -> None:
    def fill(position: MessagePosition) -> None:
        table.sender.meanwhile = lambda position: None
        table.fill()
        before = list(table.sender.log)
        table.dispatch.remove_queue(table.low)
        assert table.sender.log == before  # this triggers no sending

    table.sender.meanwhile = fill
    table.dispatch.add(table.put(table.low), "first", 0)
    assert table.sender.sent == ["first", "high 3", "high 0"]


@pytest.mark.requirement("DMPR-3.1.7.3.9-02")
def test_messages_discarded_or_of_idle_queues_are_not_sent(table: Table) -> None:
    gone, idle = table.put(table.high), table.put(table.high)

    def fill(position: MessagePosition) -> None:
        table.sender.meanwhile = lambda position: None
        table.dispatch.add(gone, "gone", 7)
        table.dispatch.add(idle, "idle", 7)
        table.harness.core.messages.discard(gone)
        table.high.descriptors.clear()
        table.high.positions.remove(idle)
        assert table.high.active is False
        table.dispatch.add(table.put(table.low), "low", 0)

    table.sender.meanwhile = fill
    table.dispatch.add(table.put(table.low), "first", 0)
    assert table.sender.sent == ["first", "low"]


@pytest.mark.requirement("DMPR-3.1.7.3.9-05")
def test_nothing_to_send(table: Table) -> None:
    table.dispatch.send()
    assert table.sender.log == []


@pytest.mark.requirement("DMPR-3.1.1-13", "DMPR-3.1.1.1-50")
def test_nothing_waits_to_be_sent_after_a_restart() -> None:
    harness = EngineHarness()
    harness.core.context.subscribers.clear()
    harness.core.dispatch.add(harness.enqueue(harness.outgoing()), "data", 3)
    harness.run()
    harness.restart()
    assert len(harness.core.dispatch) == 0
