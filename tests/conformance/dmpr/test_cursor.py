"""Cursors and every arrow of their state diagram, in the table and in practice: [MS-MQDMPR] 3.2."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from msmqwire.constants import MQ_OK, HResult
from msmqwire.qm.model.elements import Cursor, OpenQueueDescriptor, Queue
from msmqwire.qm.model.enumerations import CursorResult, CursorState
from msmqwire.qm.rules import cursors
from msmqwire.qm.rules.cursors import TRANSITIONS
from msmqwire.remote_read.constants import Action
from tests.support.engine_harness import EngineHarness
from tests.support.qm.queue_contents import bodies, body_of
from tests.support.rpc.remote_read_harness import RemoteReadHarness

UNREAD, READ = CursorState.UNREAD, CursorState.READ
WAIT_PEEK, WAIT_RECEIVE = CursorState.WAIT_PEEK, CursorState.WAIT_RECEIVE
SUCCEEDED, WAITING = CursorResult.SUCCEEDED, CursorResult.WAITING
ALREADY_RECEIVED, ILLEGAL = CursorResult.ALREADY_RECEIVED, CursorResult.ILLEGAL_CURSOR_ACTION


class Table:
    """An open queue with messages and a cursor."""

    def __init__(self, messages: int = 0) -> None:
        self.harness = EngineHarness()
        self.queue: Queue = self.harness.queue()
        self.descriptor: OpenQueueDescriptor = self.harness.open(self.queue)
        cursor = self.harness.core.queues.open_cursor(self.descriptor)
        assert cursor is not None
        self.cursor: Cursor = cursor
        self.messages = [self.put(number) for number in range(1, messages + 1)]

    def put(self, number: int):
        return self.harness.enqueue(self.queue, b"%d" % number)

    def receive(self) -> bytes:
        """Let another reader receive the first message."""
        return body_of(self.harness.core.messages.dequeue(self.descriptor, timeout=0))


def unread(messages: int = 0) -> Table:
    return Table(messages)


def read(messages: int = 1) -> Table:
    """The cursor has read the first message."""
    table = Table(messages)
    assert cursors.get_message_for_peek(table.cursor) == (SUCCEEDED, table.messages[0])
    return table


def wait_peek() -> Table:
    table = Table()
    assert cursors.get_message_for_peek(table.cursor) == (WAITING, None)
    return table


def wait_receive() -> Table:
    table = Table()
    assert cursors.get_next_message_for_dequeue(table.cursor, no_wait=False) == (WAITING, None)
    return table


MADE = {UNREAD: unread, READ: read, WAIT_PEEK: wait_peek, WAIT_RECEIVE: wait_receive}


def received() -> Table:
    """The cursor has read a message that another reader has since received."""
    table = read()
    table.receive()
    return table


def peek(table: Table) -> CursorResult:
    return cursors.get_message_for_peek(table.cursor)[0]


def peek_next(table: Table) -> CursorResult:
    return cursors.get_next_message_for_peek(table.cursor)[0]


def dequeue(table: Table) -> CursorResult:
    return cursors.get_next_message_for_dequeue(table.cursor, no_wait=False)[0]


def dequeue_without_waiting(table: Table) -> CursorResult:
    return cursors.get_next_message_for_dequeue(table.cursor, no_wait=True)[0]


def available(table: Table) -> None:
    cursors.message_available(table.cursor, table.put(9))


def expired(table: Table) -> None:
    cursors.wait_time_expired(table.cursor)


NOT_FOUND = CursorResult.NOT_FOUND
ARROWS = [
    # row of the figure, state, event name in the table, setup, event, result, next state
    ("02", UNREAD, "Get Message For Peek: found", lambda: unread(1), peek, SUCCEEDED, READ),
    ("03", UNREAD, "Get Message For Peek: End", unread, peek, WAITING, WAIT_PEEK),
    ("04", UNREAD, "Get Next Message For Peek", lambda: unread(1), peek_next, ILLEGAL, UNREAD),
    ("05", UNREAD, "Get Next Message For Dequeue: found", lambda: unread(1), dequeue, SUCCEEDED, UNREAD),
    ("06", UNREAD, "Get Next Message For Dequeue: End, waits", unread, dequeue, WAITING, WAIT_RECEIVE),
    (
        "06", UNREAD, "Get Next Message For Dequeue: End, does not wait", unread, dequeue_without_waiting,
        NOT_FOUND, UNREAD,
    ),
    ("07", READ, "Get Message For Peek", read, peek, SUCCEEDED, READ),
    ("07", READ, "Get Message For Peek", received, peek, ALREADY_RECEIVED, READ),
    ("08", READ, "Get Next Message For Peek: found", lambda: read(2), peek_next, SUCCEEDED, READ),
    ("09", READ, "Get Next Message For Peek: End", read, peek_next, WAITING, WAIT_PEEK),
    ("10", READ, "Get Next Message For Dequeue: Available", read, dequeue, SUCCEEDED, UNREAD),
    ("11", READ, "Get Next Message For Dequeue: not Available", received, dequeue, ALREADY_RECEIVED, READ),
    ("12", WAIT_PEEK, "Message Available", wait_peek, available, None, READ),
    ("13", WAIT_PEEK, "Wait Time Expired", wait_peek, expired, None, UNREAD),
    ("14", WAIT_RECEIVE, "Message Available", wait_receive, available, None, UNREAD),
    ("15", WAIT_RECEIVE, "Wait Time Expired", wait_receive, expired, None, UNREAD),
]  # fmt: skip


@pytest.mark.parametrize(
    "state, name, prepared, event, result, following",
    [
        pytest.param(*arrow, marks=pytest.mark.requirement(f"DMPR-3.2.1.1-{row}"), id=f"{row}-{number}")
        for number, (row, *arrow) in enumerate(ARROWS)
    ],
)
def test_an_arrow_of_the_figure(
    state: CursorState,
    name: str,
    prepared: Callable[[], Table],
    event: Callable[[Table], CursorResult | None],
    result: CursorResult | None,
    following: CursorState,
) -> None:
    assert TRANSITIONS[state, name] is following
    table = prepared()
    assert table.cursor.state is state
    assert event(table) is result
    assert table.cursor.state is following


def test_the_table_has_the_arrows_of_the_figure_and_no_others() -> None:
    assert set(TRANSITIONS) == {(state, name) for _, state, name, *_ in ARROWS}


@pytest.mark.requirement("DMPR-3.2.1.1-17")
@pytest.mark.parametrize("state", [WAIT_PEEK, WAIT_RECEIVE])
@pytest.mark.parametrize("event", [peek, peek_next, dequeue, dequeue_without_waiting])
def test_a_waiting_cursor_refuses_every_read_and_keeps_waiting(
    state: CursorState, event: Callable[[Table], CursorResult]
) -> None:
    table = MADE[state]()
    table.put(1)
    stood = table.cursor.position
    assert event(table) is ILLEGAL
    assert table.cursor.state is state
    assert table.cursor.position is stood


@pytest.mark.requirement("DMPR-3.2.1.1-17")
def test_a_read_on_a_cursor_that_waits_leaves_its_wait_alone() -> None:
    table = Table()
    messages = table.harness.core.messages
    waiting = messages.peek(table.descriptor, cursor=table.cursor, timeout=1_000)
    refused = messages.dequeue(table.descriptor, cursor=table.cursor, timeout=1_000)
    assert refused.status == HResult.MQ_ERROR_ILLEGAL_CURSOR_ACTION
    assert list(table.descriptor.waiting) == [waiting.request]


@pytest.mark.requirement("DMPR-3.1.7.1.1-02")
@pytest.mark.requirement("DMPR-3.1.1.2-31/b")
@pytest.mark.requirement("DMPR-3.2.1.1-01", "DMPR-3.2.7.1-01", "DMPR-3.2.1.2-02", "DMPR-3.2.1.2-03")
def test_a_new_cursor_is_unread_and_stands_at_start() -> None:
    table = Table(1)
    assert table.cursor.state is UNREAD
    assert table.cursor.position is table.queue.positions.start
    assert table.cursor.descriptor is table.descriptor


@pytest.mark.requirement("DMPR-3.2.7.1-02", "DMPR-3.1.7.1.1-01")
def test_no_cursor_is_made_for_a_queue_that_is_gone() -> None:
    table = Table()
    table.harness.core.queues.delete(table.queue)
    before = dict(table.descriptor.cursors)
    assert table.harness.core.queues.open_cursor(table.descriptor) is None
    assert table.descriptor.cursors == before


@pytest.mark.requirement("DMPR-3.2.1.2-01", "DMPR-3.2.7.1-01")
def test_handles_of_cursors_are_unique_in_the_queue_manager() -> None:
    harness = EngineHarness()
    first, second = harness.queue(), harness.queue("others")
    descriptors = [harness.open(first), harness.open(first), harness.open(second)]
    opened = [harness.core.queues.open_cursor(descriptor) for descriptor in descriptors for _ in range(3)]
    assert len({cursor.handle for cursor in opened if cursor is not None}) == 9


@pytest.mark.requirement("DMPR-3.2.1.2-04")
def test_the_states_of_a_cursor() -> None:
    assert {state.value for state in CursorState} == {"Unread", "WaitReceive", "WaitPeek", "Read"}


@pytest.mark.requirement("DMPR-3.2.1.1-16")
@pytest.mark.parametrize("state", list(MADE))
def test_a_cursor_can_be_closed_in_every_state(state: CursorState) -> None:
    table = MADE[state]()
    table.harness.core.queues.close_cursor(table.cursor)
    assert table.descriptor.cursors == {}


@pytest.mark.requirement("DMPR-3.2-01")
def test_a_cursor_of_remote_read_is_one_of_the_queue_manager() -> None:
    harness = RemoteReadHarness()
    queue = harness.queue()
    for body in (b"1", b"2", b"3"):
        harness.enqueue(queue, body)
    client = harness.client()
    handle = client.open()
    remote = client.create_cursor(handle)
    (descriptor,) = queue.descriptors.values()
    (cursor,) = descriptor.cursors.values()
    assert body_of(harness.core.messages.peek(descriptor, cursor=cursor)) == b"1"
    assert client.read(handle, Action.MQ_ACTION_PEEK_NEXT, cursor=remote) == b"2"
    assert body_of(harness.core.messages.peek_next(descriptor, cursor)) == b"3"


@pytest.mark.requirement("DMPR-3.2.7.2-01")
def test_a_peek_of_an_unread_cursor_moves_it_to_the_message() -> None:
    table = unread(2)
    assert cursors.get_message_for_peek(table.cursor) == (SUCCEEDED, table.messages[0])
    assert table.cursor.position is table.messages[0]
    assert table.cursor.state is READ


@pytest.mark.requirement("DMPR-3.2.7.2-01")
def test_a_peek_of_an_unread_cursor_goes_on_behind_its_position() -> None:
    table = read(2)
    assert dequeue(table) is SUCCEEDED  # Unread, still at the first message
    assert cursors.get_message_for_peek(table.cursor) == (SUCCEEDED, table.messages[1])


@pytest.mark.requirement("DMPR-3.1.1.12-03")
@pytest.mark.requirement("DMPR-3.2.7.2-01")
def test_an_unread_cursor_peeks_at_a_peekable_locked_message() -> None:
    table = Table()
    hidden = table.harness.enqueue(table.queue, b"hidden")
    shown = table.harness.enqueue(table.queue, b"shown", allow_peek_when_locked=True)
    for _ in range(2):
        table.harness.core.messages.dequeue_begin(table.descriptor, timeout=0)
    assert cursors.get_message_for_peek(table.cursor) == (SUCCEEDED, shown)
    assert hidden.listed


@pytest.mark.requirement("DMPR-3.2.7.2-02")
def test_a_peek_at_end_waits_where_it_is() -> None:
    table = unread()
    assert cursors.get_message_for_peek(table.cursor) == (WAITING, None)
    assert table.cursor.state is WAIT_PEEK
    assert table.cursor.position is table.queue.positions.start


@pytest.mark.requirement("DMPR-3.2.7.2-03")
def test_a_peek_of_a_read_cursor_gives_the_same_message_again() -> None:
    table = read(2)
    for _ in range(3):
        assert cursors.get_message_for_peek(table.cursor) == (SUCCEEDED, table.messages[0])
    assert table.cursor.position is table.messages[0]


@pytest.mark.requirement("DMPR-3.2.7.2-04")
@pytest.mark.parametrize("shown", [False, True])
def test_a_peek_of_a_read_cursor_whose_message_is_taken(shown: bool) -> None:
    table = Table()
    position = table.harness.enqueue(table.queue, b"1", allow_peek_when_locked=shown)
    assert peek(table) is SUCCEEDED
    table.harness.core.messages.dequeue_begin(table.descriptor, timeout=0)
    assert cursors.get_message_for_peek(table.cursor) == (ALREADY_RECEIVED, None)
    assert table.cursor.state is READ
    assert table.cursor.position is position


@pytest.mark.requirement("DMPR-3.2.7.3-01")
@pytest.mark.parametrize("back", [lambda: unread(2), lambda: read(2), wait_peek, wait_receive])
def test_peek_next_is_illegal_for_every_unread_cursor(back: Callable[[], Table]) -> None:
    table = back()
    if table.cursor.state is READ:
        dequeue(table)
    elif table.cursor.state is not UNREAD:
        expired(table)
    assert table.cursor.state is UNREAD
    stood = table.cursor.position
    assert cursors.get_next_message_for_peek(table.cursor) == (ILLEGAL, None)
    assert table.cursor.state is UNREAD
    assert table.cursor.position is stood


@pytest.mark.requirement("DMPR-3.2.7.3-02")
def test_peek_next_moves_a_read_cursor_to_the_next_message() -> None:
    table = read(3)
    table.receive()  # the message at the cursor
    assert cursors.get_next_message_for_peek(table.cursor) == (SUCCEEDED, table.messages[1])
    assert table.cursor.position is table.messages[1]
    assert table.cursor.state is READ


@pytest.mark.requirement("DMPR-3.2.7.3-02")
def test_peek_next_shows_a_peekable_locked_message() -> None:
    table = read()
    table.harness.enqueue(table.queue, b"hidden")
    shown = table.harness.enqueue(table.queue, b"shown", allow_peek_when_locked=True)
    for _ in range(3):
        table.harness.core.messages.dequeue_begin(table.descriptor, timeout=0)
    assert cursors.get_next_message_for_peek(table.cursor) == (SUCCEEDED, shown)


@pytest.mark.requirement("DMPR-3.2.7.3-03")
def test_peek_next_at_end_waits_where_it_is() -> None:
    table = read()
    assert cursors.get_next_message_for_peek(table.cursor) == (WAITING, None)
    assert table.cursor.state is WAIT_PEEK
    assert table.cursor.position is table.messages[0]


@pytest.mark.requirement("DMPR-3.2.7.4-01")
def test_dequeue_moves_an_unread_cursor_and_leaves_it_unread() -> None:
    table = unread(2)
    for position in table.messages:
        result = cursors.get_next_message_for_dequeue(table.cursor, no_wait=False)
        assert result == (SUCCEEDED, position)
        assert table.cursor.position is position
        assert table.cursor.state is UNREAD


@pytest.mark.requirement("DMPR-3.2.7.4-01")
def test_dequeue_skips_a_locked_message_that_can_be_peeked_at() -> None:
    table = Table()
    table.harness.enqueue(table.queue, b"1", allow_peek_when_locked=True)
    table.harness.core.messages.dequeue_begin(table.descriptor, timeout=0)
    free = table.put(2)
    assert cursors.get_next_message_for_dequeue(table.cursor, no_wait=True) == (SUCCEEDED, free)


@pytest.mark.requirement("DMPR-3.2.7.4-02")
def test_dequeue_at_end_that_does_not_wait() -> None:
    table = unread()
    assert cursors.get_next_message_for_dequeue(table.cursor, no_wait=True) == (NOT_FOUND, None)
    assert table.cursor.state is UNREAD


@pytest.mark.requirement("DMPR-3.2.7.4-03")
def test_dequeue_at_end_that_waits() -> None:
    table = unread()
    assert cursors.get_next_message_for_dequeue(table.cursor, no_wait=False) == (WAITING, None)
    assert table.cursor.state is WAIT_RECEIVE


@pytest.mark.requirement("DMPR-3.2.7.4-04")
def test_dequeue_takes_the_message_that_a_read_cursor_stands_at() -> None:
    table = read(2)
    result = cursors.get_next_message_for_dequeue(table.cursor, no_wait=False)
    assert result == (SUCCEEDED, table.messages[0])
    assert table.cursor.state is UNREAD
    assert table.cursor.position is table.messages[0]


@pytest.mark.requirement("DMPR-3.2.7.4-05")
def test_dequeue_of_a_message_that_another_has_taken() -> None:
    table = received()
    assert cursors.get_next_message_for_dequeue(table.cursor, no_wait=False) == (ALREADY_RECEIVED, None)
    assert table.cursor.state is READ


@pytest.mark.requirement("DMPR-3.2.7.5-01")
@pytest.mark.parametrize(
    "before, after", [(WAIT_PEEK, READ), (WAIT_RECEIVE, UNREAD), (UNREAD, UNREAD), (READ, READ)]
)
def test_message_available_moves_the_cursor_in_every_state(before: CursorState, after: CursorState) -> None:
    table = MADE[before]()
    position = table.put(9)
    cursors.message_available(table.cursor, position)
    assert table.cursor.state is after
    assert table.cursor.position is position


@pytest.mark.requirement("DMPR-3.2.7.6-01", "DMPR-3.1.1.2-32")
def test_a_receive_timeout_moves_the_cursor_past_all_messages() -> None:
    table = unread(1)
    assert dequeue(table) is SUCCEEDED  # the cursor is at the only message
    assert dequeue(table) is WAITING
    cursors.wait_time_expired(table.cursor)
    assert table.cursor.state is UNREAD
    assert table.cursor.position is table.queue.positions.end
    later = table.put(2)
    assert cursors.get_message_for_peek(table.cursor) == (SUCCEEDED, later)


@pytest.mark.requirement("DMPR-3.2.7.6-02")
def test_a_peek_timeout_leaves_the_cursor_in_place() -> None:
    table = read()
    assert peek_next(table) is WAITING
    cursors.wait_time_expired(table.cursor)
    assert table.cursor.state is UNREAD
    assert table.cursor.position is table.messages[0]


@pytest.mark.requirement("DMPR-3.2.1.2-03", "DMPR-3.1.1-10/a")
def test_a_cursor_keeps_its_place_when_the_message_there_goes() -> None:
    table = read(3)
    second = table.harness.core.queues.open_cursor(table.descriptor)
    assert second is not None
    assert cursors.get_message_for_peek(second) == (
        SUCCEEDED,
        table.messages[0],
    )  # two cursors at one position
    assert second.position is table.cursor.position is table.messages[0]
    assert second.descriptor.queue is table.cursor.descriptor.queue is table.queue
    table.receive()
    table.receive()
    assert bodies(table.queue) == [b"3"]
    for cursor in (table.cursor, second):
        assert cursors.get_next_message_for_peek(cursor) == (SUCCEEDED, table.messages[2])


def test_a_cursor_on_an_empty_queue_that_fills_again() -> None:
    table = read()
    table.receive()
    table.put(2)
    messages = table.harness.core.messages
    assert body_of(messages.peek_next(table.descriptor, table.cursor, timeout=0)) == b"2"
    assert messages.peek_next(table.descriptor, table.cursor, timeout=0).status != MQ_OK
    assert table.cursor.state is UNREAD
