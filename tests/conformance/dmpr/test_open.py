"""Opening and closing queues and cursors: [MS-MQDMPR] 3.1.7.1.1, 3.1.7.1.2, 3.1.7.1.5 and 3.1.7.1.6."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from msmqwire.constants import MQ_OK, HResult
from msmqwire.qm.model import access
from msmqwire.qm.model.elements import OpenQueueDescriptor, OutgoingQueue, Queue, QueueManager
from msmqwire.qm.model.enumerations import (
    OutgoingQueueState,
    PositionState,
    QueueAccessType,
    QueueShareMode,
    QueueType,
    RemoteReadState,
)
from msmqwire.qm.model.message import Message
from tests.support.engine_harness import OWN_ID, PEEK, RECEIVE, SEND, EngineHarness, format_name
from tests.support.qm.directory_recorder import DirectoryRecorder
from tests.support.qm.queue_contents import completed_reads

NOT_FOUND = 0xC00E0003
SHARING = 0xC00E0009
UNSUPPORTED_NAME = 0xC00E0020
UNSUPPORTED_ACCESS = 0xC00E0045
ILLEGAL_NAME = HResult.MQ_ERROR_ILLEGAL_FORMATNAME
NONE, DENY = QueueShareMode.DENY_NONE, QueueShareMode.DENY_RECEIVE
PEEK_ADMIN, RECEIVE_ADMIN = QueueAccessType.PEEK_ADMIN_ACCESS, QueueAccessType.RECEIVE_ADMIN_ACCESS
MOVE = QueueAccessType.MOVE_ACCESS
THERE, ORDERS = UUID(int=0xB2), UUID(int=0x0D)
CANCELLED = HResult.MQ_ERROR_OPERATION_CANCELLED
SEVERAL = "DIRECT=OS:there\\private$\\a,DIRECT=OS:here\\private$\\orders"
NOT_TO_SEND = [access_type for access_type in QueueAccessType if access_type is not SEND]


@pytest.fixture
def harness() -> EngineHarness:
    return EngineHarness(addresses=("here.example", "10.0.0.1"))


@pytest.fixture
def integrated() -> EngineHarness:
    """A queue manager whose directory has a public queue on another machine."""
    recorder = DirectoryRecorder()
    remote = QueueManager(THERE, computer_name="there")
    public = Queue(ORDERS, pathname="there\\orders", base_priority=9)
    public.queue_type = QueueType.PUBLIC
    recorder.publish(remote, public)
    return EngineHarness(directory=recorder)


def outcome(
    harness: EngineHarness, name: str, access_type: QueueAccessType, share: QueueShareMode = NONE
) -> int:
    """The status of an open that fails and leaves no trace."""
    manager = harness.core.queue_manager
    before = dict(manager.queues), [dict(queue.descriptors) for queue in manager.queues.values()]
    status, descriptor = harness.core.queues.open(format_name(name), access_type, share)
    assert descriptor is None
    after = dict(manager.queues), [dict(queue.descriptors) for queue in manager.queues.values()]
    assert after == before
    return status


# -- Open Queue: names ----------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.5-01")
def test_a_list_that_cannot_be_resolved(harness: EngineHarness) -> None:
    assert outcome(harness, f"DL={THERE}", SEND) == ILLEGAL_NAME


@pytest.mark.requirement("DMPR-3.1.7.1.5-01", "DMPR-3.1.7.1.5-24")
def test_the_expanded_name_is_used(harness: EngineHarness, queue: Queue) -> None:
    twice = "DIRECT=OS:here\\private$\\orders,DIRECT=OS:HERE\\private$\\orders"
    descriptor = harness.open(twice, SEND)
    assert descriptor.multiple is False
    assert descriptor.queue is queue
    assert str(descriptor.format_name).lower() == "direct=os:here\\private$\\orders"


@pytest.mark.requirement("DMPR-3.1.7.1.5-02")
def test_the_statuses_of_an_open(harness: EngineHarness, queue: Queue) -> None:
    assert outcome(harness, "DIRECT=OS:here\\private$\\z", RECEIVE) == 0xC00E0003
    assert outcome(harness, HTTP, RECEIVE) == 0xC00E0020
    assert outcome(harness, SEVERAL, SEND, DENY) == 0xC00E0045
    assert harness.core.queues.open(format_name(queue), RECEIVE, DENY)[0] == 0
    assert outcome(harness, str(format_name(queue)), RECEIVE, DENY) == 0xC00E0009


@pytest.mark.requirement("DMPR-3.1.1.16-08")
@pytest.mark.requirement("DMPR-3.1.7.1.5-24", "DMPR-3.1.1.16-06", "DMPR-3.1.1.16-05")
@pytest.mark.parametrize("access_type", [RECEIVE, SEND, PEEK, MOVE])
@pytest.mark.parametrize("share", [NONE, DENY])
def test_an_open_queue(
    harness: EngineHarness, queue: Queue, access_type: QueueAccessType, share: QueueShareMode
) -> None:
    name = format_name(queue)
    status, descriptor = harness.core.queues.open(name, access_type, share)
    assert status == MQ_OK == 0
    assert descriptor is not None
    assert queue.descriptors == {descriptor.handle: descriptor}
    assert (descriptor.access_type, descriptor.share_mode) == (access_type, share)
    assert (descriptor.queue, descriptor.format_name) == (queue, name)
    assert descriptor.multiple is False
    assert descriptor.children == []
    assert descriptor.remote_read_state is RemoteReadState.NONE
    assert (descriptor.cursors, descriptor.waiting) == ({}, {})


@pytest.mark.requirement("DMPR-3.1.1.16-06")
def test_a_message_is_for_the_name_that_was_opened(harness: EngineHarness, queue: Queue) -> None:
    descriptor, message = harness.open(queue, SEND), Message(body=b"m")
    assert harness.core.send(descriptor, message) == MQ_OK
    assert message.destination == descriptor.format_name == format_name(queue)


@pytest.mark.requirement("DMPR-3.1.1.16-01", "DMPR-3.1.1.16-02", "DMPR-3.1.7.1.5-24", "DMPR-3.1.7.1.5-05")
def test_handles_are_unique(harness: EngineHarness, queue: Queue) -> None:
    other = harness.queue("others")
    descriptors = [harness.open(target) for target in (queue, other, queue)] + [harness.open(SEVERAL, SEND)]
    descriptors += descriptors[-1].children
    assert len({descriptor.handle for descriptor in descriptors}) == 6
    assert len({descriptor.context_value for descriptor in descriptors}) == 6
    assert all(descriptor.handle > 0 for descriptor in descriptors)


@pytest.mark.requirement("DMPR-3.1.7.1.5-03")
@pytest.mark.parametrize("access_type", NOT_TO_SEND)
def test_several_queues_are_opened_only_to_send(
    harness: EngineHarness, queue: Queue, access_type: QueueAccessType
) -> None:
    assert outcome(harness, SEVERAL, access_type) == UNSUPPORTED_NAME


@pytest.mark.requirement("DMPR-3.1.7.1.5-04")
def test_several_queues_are_shared(harness: EngineHarness, queue: Queue) -> None:
    assert outcome(harness, SEVERAL, SEND, DENY) == UNSUPPORTED_ACCESS


@pytest.mark.requirement(
    "DMPR-3.1.7.1.5-05", "DMPR-3.1.7.1.5-06", "DMPR-3.1.1.16-07", "DMPR-3.1.1.16-08", "DMPR-3.1.1.16-09"
)
def test_several_queues_are_opened_each_for_itself(harness: EngineHarness, queue: Queue) -> None:
    parent = harness.open(SEVERAL, SEND)
    assert (parent.access_type, parent.share_mode) == (SEND, NONE)
    assert (parent.multiple, parent.queue) == (True, None)
    assert parent.remote_read_state is RemoteReadState.NONE
    assert {name.lower() for name in str(parent.format_name).split(",")} == set(SEVERAL.lower().split(","))
    assert len(parent.children) == 2
    for child in parent.children:
        assert (child.access_type, child.share_mode, child.multiple) == (SEND, NONE, False)
        assert child.children == []
        assert child.queue is not None
        assert child.queue.descriptors == {child.handle: child}
    assert {type(child.queue) for child in parent.children} == {Queue, OutgoingQueue}
    names = {str(child.format_name).lower() for child in parent.children}
    assert names == set(SEVERAL.lower().split(","))


@pytest.mark.requirement("DMPR-3.1.7.1.5-07")
def test_several_queues_one_of_which_is_not_there(harness: EngineHarness, queue: Queue) -> None:
    outgoing = harness.outgoing("DIRECT=OS:aaa\\private$\\a")
    before = len(outgoing.descriptors)
    name = "DIRECT=OS:aaa\\private$\\a,DIRECT=OS:here\\private$\\orders,DIRECT=OS:here\\private$\\z"
    status, descriptor = harness.core.queues.open(format_name(name), SEND)
    assert (status, descriptor) == (NOT_FOUND, None)
    assert len(outgoing.descriptors) == before
    assert queue.descriptors == {}


HTTP = "DIRECT=HTTP://there/msmq/private$/orders"


@pytest.mark.parametrize(
    "name, access_types",
    [
        pytest.param(HTTP, NOT_TO_SEND, marks=pytest.mark.requirement("DMPR-3.1.7.1.5-08")),
        pytest.param(
            "DIRECT=HTTPS://there/msmq/q", NOT_TO_SEND, marks=pytest.mark.requirement("DMPR-3.1.7.1.5-08")
        ),
        pytest.param(
            f"MACHINE={OWN_ID};DEADLETTER", [SEND], marks=pytest.mark.requirement("DMPR-3.1.7.1.5-09")
        ),
        pytest.param(f"MACHINE={THERE};JOURNAL", [SEND], marks=pytest.mark.requirement("DMPR-3.1.7.1.5-09")),
        pytest.param(
            "MULTICAST=234.1.1.1:8001", NOT_TO_SEND, marks=pytest.mark.requirement("DMPR-3.1.7.1.5-10")
        ),
    ],
)
def test_what_cannot_be_done_with_a_name(
    harness: EngineHarness, name: str, access_types: list[QueueAccessType]
) -> None:
    assert {outcome(harness, name, access_type) for access_type in access_types} == {UNSUPPORTED_NAME}


@pytest.mark.requirement("DMPR-3.1.7.1.5-11")
@pytest.mark.parametrize("access_type", NOT_TO_SEND)
@pytest.mark.parametrize("name", ["DIRECT=OS:here\\private$\\z", "DIRECT=OS:there\\q", f"PUBLIC={ORDERS}"])
def test_a_queue_that_is_not_here_cannot_be_read(
    harness: EngineHarness, name: str, access_type: QueueAccessType
) -> None:
    assert outcome(harness, name, access_type) == NOT_FOUND


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.requirement(f"DMPR-3.1.7.1.5-{row}"))
        for row, name in [
            ("12", "DIRECT=OS:here\\private$\\z"),
            ("12", "DIRECT=OS:HERE\\z"),
            ("12", "DIRECT=OS:here.example\\private$\\z"),
            ("12", "DIRECT=TCP:10.0.0.1\\private$\\z"),
            ("12", "DIRECT=HTTP://here/msmq/private$/z"),
            ("12", "DIRECT=HTTPS://here.example/msmq/z"),
            ("15", f"PRIVATE={OWN_ID}\\77"),
        ]
    ],
)
def test_a_missing_local_queue_cannot_be_opened_to_send(harness: EngineHarness, name: str) -> None:
    assert outcome(harness, name, SEND) == NOT_FOUND


@pytest.mark.requirement("DMPR-3.1.7.1.5-13")
def test_a_public_queue_that_the_directory_does_not_know(integrated: EngineHarness) -> None:
    assert outcome(integrated, f"PUBLIC={UUID(int=99)}", SEND) == UNSUPPORTED_NAME
    read = "read_directory", "Queue", [("Identifier", "EQUALS", UUID(int=99))], None
    assert integrated._core_options["directory"].log[-1] == read


@pytest.mark.requirement("DMPR-3.1.7.1.5-14")
def test_a_public_queue_that_should_be_here_and_is_not(integrated: EngineHarness) -> None:
    queue = integrated.queue("gone", public=True)
    integrated.core.queues.delete(queue, skip_directory=True)
    assert outcome(integrated, f"PUBLIC={queue.identifier}", SEND) == NOT_FOUND


@pytest.mark.requirement("DMPR-3.1.7.1.5-17")
def test_an_outgoing_queue_to_a_public_one_has_its_base_priority(integrated: EngineHarness) -> None:
    assert integrated.outgoing(f"PUBLIC={ORDERS}").base_priority == 9


@pytest.mark.requirement("DMPR-3.1.7.1.5-16", "DMPR-3.1.1.3-01", "DMPR-3.1.1.3-02", "DMPR-3.1.1.3-08")
@pytest.mark.parametrize("name", ["DIRECT=OS:there\\private$\\orders", f"PRIVATE={THERE}\\5", HTTP])
def test_an_outgoing_queue_is_made_once(harness: EngineHarness, name: str) -> None:
    destination = format_name(name)
    status, descriptor = harness.core.queues.open(destination, SEND)
    assert status == MQ_OK
    assert descriptor is not None
    queue = descriptor.queue
    assert isinstance(queue, OutgoingQueue)
    assert (queue.destination, queue.label) == (destination, destination.canonical)
    assert queue.next_hops == []
    assert queue.state is OutgoingQueueState.INACTIVE
    assert queue.multicast is False
    assert queue in harness.core.queue_manager.queues.values()
    assert harness.open(name, SEND).queue is queue
    other_identifiers = {
        other.identifier for other in harness.core.queue_manager.queues.values() if other is not queue
    }
    assert queue.identifier not in other_identifiers


@pytest.mark.requirement("DMPR-3.1.7.1.5-18", "DMPR-3.1.1.3-09", "DMPR-3.1.1.1-36")
def test_an_outgoing_queue_is_locked_while_security_is_hardened(harness: EngineHarness) -> None:
    assert harness.core.queue_manager.hardened_security is False
    harness.core.queue_manager.hardened_security = True
    assert harness.outgoing().state is OutgoingQueueState.LOCKED
    assert harness.outgoing(HTTP).state is OutgoingQueueState.INACTIVE


@pytest.mark.requirement("DMPR-3.1.7.1.5-19", "DMPR-3.1.1.3-03")
def test_an_outgoing_queue_to_a_multicast_address(harness: EngineHarness) -> None:
    assert harness.outgoing("MULTICAST=234.1.1.1:8001").multicast is True


# -- Open Queue: sharing --------------------------------------------------------------------------------

SHARED = [
    # row, share mode and access type of the open descriptor, then of the new one, whether that is refused
    *(("20", DENY, RECEIVE, DENY, new, True) for new in (RECEIVE, PEEK, SEND, MOVE)),
    ("21", DENY, RECEIVE, NONE, RECEIVE, True),
    *(("21", DENY, RECEIVE, NONE, new, False) for new in (PEEK, SEND, MOVE)),
    *(("22", DENY, old, share, RECEIVE, True) for old in (PEEK, PEEK_ADMIN) for share in (NONE, DENY)),
    *(
        ("22", DENY, old, share, new, False)
        for old in (PEEK, PEEK_ADMIN)
        for share in (NONE, DENY)
        for new in (PEEK, SEND, MOVE)
    ),
    *(("23", NONE, RECEIVE, DENY, new, True) for new in (RECEIVE, PEEK, SEND, MOVE)),
    *(("23", NONE, RECEIVE, NONE, new, False) for new in (RECEIVE, PEEK, SEND, MOVE)),
    *(("23", NONE, PEEK, DENY, new, False) for new in (RECEIVE, PEEK)),
]


@pytest.mark.requirement("DMPR-3.1.1.16-04", "DMPR-3.1.7.1.6-05")
@pytest.mark.parametrize(
    "old_share, old_access, share, access_type, refused",
    [
        pytest.param(
            *case,
            marks=pytest.mark.requirement(f"DMPR-3.1.7.1.5-{row}", "DMPR-3.1.1.17-05"),
            id="{.name} {.name}, then {.name} {.name}".format(*case),
        )
        for row, *case in SHARED
    ],
)
def test_who_may_open_an_open_queue(
    harness: EngineHarness,
    queue: Queue,
    old_share: QueueShareMode,
    old_access: QueueAccessType,
    share: QueueShareMode,
    access_type: QueueAccessType,
    refused: bool,
) -> None:
    first = harness.open(queue, old_access, old_share)
    assert first.share_mode is old_share
    status, _ = harness.core.queues.open(format_name(queue), access_type, share)
    assert status == (SHARING if refused else MQ_OK)
    assert len(queue.descriptors) == (1 if refused else 2)
    harness.core.queues.close(first)
    if refused:
        assert harness.open(queue, access_type, share).access_type is access_type


# -- Open Queue: access rights ---------------------------------------------------------------------------

OTHER_USER = access.Token.of(access.sid_bytes("S-1-5-21-9-9-9-1001"))


@pytest.mark.parametrize(
    "access_type, allowed", [(RECEIVE, False), (PEEK, False), (MOVE, False), (SEND, True)]
)
def test_other_users_may_only_send_to_a_new_queue(
    harness: EngineHarness, access_type: QueueAccessType, allowed: bool
) -> None:
    owner = access.sid_bytes("S-1-5-21-1-2-3-1001")
    template = harness.queue_template()
    harness.core.queues.set_defaults(template, owner)
    queue = harness.queue(security=template.security)
    status, _ = harness.core.queues.open(format_name(queue), access_type, user=OTHER_USER)
    assert status == (MQ_OK if allowed else HResult.MQ_ERROR_ACCESS_DENIED)
    assert harness.core.queues.open(format_name(queue), access_type, user=access.Token.of(owner))[0] == MQ_OK


@pytest.mark.requirement("DMPR-3.1.3-22")
@pytest.mark.parametrize("name", ["order_queue$", "notify_queue$"])
@pytest.mark.parametrize("access_type", [RECEIVE, PEEK, SEND, MOVE])
def test_queues_of_the_system_are_not_for_applications(
    harness: EngineHarness, name: str, access_type: QueueAccessType
) -> None:
    queue = harness.find_queue(name)
    assert queue.queue_type is QueueType.SYSTEM
    denied = HResult.MQ_ERROR_ACCESS_DENIED
    assert outcome(harness, f"DIRECT=OS:here\\private$\\{name}", access_type) == denied
    assert outcome(harness, f"PRIVATE={OWN_ID}\\{queue.private_queue_number}", access_type) == denied


# -- Close Queue, Open Cursor, Close Cursor -------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.6-01")
def test_a_descriptor_of_no_queue_is_closed_without_effect(harness: EngineHarness, queue: Queue) -> None:
    descriptor = harness.open(queue)
    harness.core.queues.delete(queue)
    harness.run()
    harness.core.queues.close(descriptor)
    assert harness.run() == []


@pytest.mark.requirement("DMPR-3.1.7.1.6-01", "DMPR-3.1.7.1.6-02")
def test_several_queues_are_closed_together(harness: EngineHarness, queue: Queue) -> None:
    parent = harness.open(SEVERAL, SEND)
    queues = [child.queue for child in parent.children if child.queue is not None]
    other = harness.open(queue, SEND)
    harness.core.queues.close(parent)
    assert len(queues) == 2
    assert [handle for opened in queues for handle in opened.descriptors] == [other.handle]


@pytest.mark.requirement("DMPR-3.1.7.1.6-03")
def test_reads_with_a_tag_are_cancelled_by_a_close(harness: EngineHarness, queue: Queue) -> None:
    descriptor, other = harness.open(queue), harness.open(queue)
    plain = harness.core.messages.dequeue(descriptor, timeout=5_000)
    tagged = [harness.core.messages.dequeue(descriptor, tag=tag) for tag in ("mine", 0)]
    theirs = harness.core.messages.dequeue(other, tag="mine")
    harness.core.queues.close(descriptor)
    cancelled = [(read.request, CANCELLED, None) for read in tagged]
    assert completed_reads(harness.run()) == cancelled
    assert list(descriptor.waiting) == [plain.request]
    assert list(other.waiting) == [theirs.request]
    assert completed_reads(harness.advance(4_999)) == []
    assert completed_reads(harness.advance(1)) == [(plain.request, HResult.MQ_ERROR_IO_TIMEOUT, None)]
    assert descriptor.waiting == {}


@pytest.mark.requirement("DMPR-3.1.7.1.6-03", "DMPR-3.1.7.1.6-05")
def test_a_read_without_a_tag_gets_nothing_after_the_close(harness: EngineHarness, queue: Queue) -> None:
    descriptor = harness.open(queue)
    harness.core.messages.dequeue(descriptor)
    harness.core.queues.close(descriptor)
    position = harness.enqueue(queue, b"later")
    assert completed_reads(harness.run()) == []
    assert position.state is PositionState.AVAILABLE
    assert harness.receive(queue) == b"later"


@pytest.mark.requirement("DMPR-3.1.7.1.6-04", "DMPR-3.1.7.1.6-05", "DMPR-3.1.1.2-21")
def test_a_close_takes_cursors_and_descriptor_along(harness: EngineHarness, queue: Queue) -> None:
    assert queue.active is False
    descriptor = harness.open(queue)
    assert queue.active is True
    waiting = []
    for _ in range(3):
        cursor = harness.core.queues.open_cursor(descriptor)
        waiting.append(harness.core.messages.peek(descriptor, cursor=cursor).request)  # ended by Close Cursor
    harness.core.queues.close(descriptor)
    assert descriptor.cursors == {}
    assert completed_reads(harness.run()) == [(request, CANCELLED, None) for request in waiting]
    assert queue.descriptors == {}
    assert queue.active is False


@pytest.mark.requirement("DMPR-3.1.7.1.1-02", "DMPR-3.1.1.16-11")
def test_a_cursor_belongs_to_its_descriptor(harness: EngineHarness, queue: Queue) -> None:
    descriptor = harness.open(queue)
    cursor = harness.core.queues.open_cursor(descriptor)
    assert cursor is not None
    assert descriptor.cursors == {cursor.handle: cursor}
    assert cursor.descriptor is descriptor


@pytest.mark.requirement("DMPR-3.1.7.1.2-01", "DMPR-3.1.7.1.2-02")
def test_a_closed_cursor_takes_its_reads_along_and_no_others(harness: EngineHarness, queue: Queue) -> None:
    descriptor = harness.open(queue)
    queues, messages = harness.core.queues, harness.core.messages
    first, second = (cursor for _ in range(2) if (cursor := queues.open_cursor(descriptor)) is not None)
    cancelled = messages.peek(descriptor, cursor=first)
    remaining: list[Any] = [messages.peek(descriptor, cursor=second), messages.dequeue(descriptor)]
    queues.close_cursor(first)
    assert list(descriptor.waiting) == [read.request for read in remaining]
    assert descriptor.cursors == {second.handle: second}
    assert completed_reads(harness.run()) == [(cancelled.request, CANCELLED, None)]


@pytest.mark.requirement("DMPR-3.1.1.2-21")
def test_an_outgoing_queue_is_active_while_it_has_messages(harness: EngineHarness) -> None:
    descriptor: OpenQueueDescriptor = harness.open("DIRECT=OS:there\\q", SEND)
    outgoing = descriptor.queue
    assert outgoing is not None
    position = harness.enqueue(outgoing)
    harness.core.queues.close(descriptor)
    assert outgoing.active is True
    harness.core.messages.discard(position)
    assert outgoing.active is False
