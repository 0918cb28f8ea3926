"""Creating and deleting queues: [MS-MQDMPR] 3.1.7.1.3, 3.1.7.1.4 and 3.1.7.1.33."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from msmqwire.constants import MQ_OK, HResult, MessageClass
from msmqwire.names import parse_path_name
from msmqwire.qm.directory.attributes import ATTRIBUTES
from msmqwire.qm.directory.embedded import EmbeddedDirectory
from msmqwire.qm.directory.interface import CreateResult, ReadResult
from msmqwire.qm.model import access
from msmqwire.qm.model.elements import Queue
from msmqwire.qm.model.enumerations import (
    DirectoryOperationResult,
    PositionState,
    QueuePrivacy,
    QueueScope,
    QueueType,
)
from msmqwire.qm.model.message import NULL_GUID, Message
from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules.lookup import queue_type
from msmqwire.qm.rules.read_results import PENDING
from tests.support.engine_harness import PEEK, RECOVERABLE, EngineHarness
from tests.support.qm.directory_recorder import DirectoryRecorder
from tests.support.qm.queue_contents import bodies, body_of, completed_reads

OFFLINE = DirectoryOperationResult.DIRECTORY_NOT_CONNECTED
QUEUE_DELETED = MessageClass.MQMSG_CLASS_NACK_Q_DELETED


@pytest.fixture
def integrated(recorder: DirectoryRecorder) -> EngineHarness:
    """A queue manager with a directory."""
    harness = EngineHarness(directory=recorder)
    recorder.log.clear()
    return harness


# -- Set Queue Defaults ---------------------------------------------------------------------------------

OTHER_THAN_DEFAULT: dict[str, Any] = {
    "label": "orders",
    "type": UUID(int=5),
    "journaling": True,
    "quota": 100,
    "journal_quota": 200,
    "authentication": True,
    "privacy_level": QueuePrivacy.BODY,
    "transactional": True,
    "multicast_address": "234.1.1.1:8001",
    "base_priority": 7,
}
DEFAULTS = [
    ("01", "02", "label", ""),
    ("02", "05", "type", NULL_GUID),
    ("03", "09", "journaling", False),
    ("04", "10", "quota", 0xFFFFFFFF),
    ("05", "11", "journal_quota", 0xFFFFFFFF),
    ("06", "12", "authentication", False),
    ("07", "13", "privacy_level", QueuePrivacy.OPTIONAL),
    ("08", "14", "transactional", False),
    ("09", "15", "multicast_address", None),
    ("10", "17", "base_priority", 0),
]
PROPERTIES = {
    "02": ("MQMQ-2.3.1.2-01",),
    "03": ("MQMQ-2.3.1.4-01",),
    "07": ("MQMQ-2.3.1.12-01",),
    "10": ("MQMQ-2.3.1.6-01",),
}
"""Rows on properties of queues that state their default."""


@pytest.mark.parametrize(
    "attribute, value",
    [
        pytest.param(
            *case,
            marks=pytest.mark.requirement(
                f"DMPR-3.1.7.1.33-{row}", f"DMPR-3.1.1.2-{of}", *PROPERTIES.get(row, ())
            ),
        )
        for row, of, *case in DEFAULTS
    ],
)
def test_a_default_of_new_queues(harness: EngineHarness, attribute: str, value: object) -> None:
    queue = Queue(NULL_GUID, **OTHER_THAN_DEFAULT)
    harness.core.queues.set_defaults(queue)
    assert getattr(queue, attribute) == getattr(Queue(NULL_GUID), attribute) == value


@pytest.mark.requirement("DMPR-3.1.7.1.33-11", "DMPR-3.1.7.1.3.1-03", "DMPR-3.1.7.1.3.1-09")
def test_new_queues_have_the_default_descriptor(harness: EngineHarness) -> None:
    owner = access.sid_bytes("S-1-5-21-1-2-3-1001")
    queue = Queue(NULL_GUID)
    harness.core.queues.set_defaults(queue, owner)
    assert queue.security == access.default_security(owner, anonymous_may_send=True)
    assert queue.security


@pytest.mark.requirement("DMPR-3.1.7.1.33-12", "DMPR-3.1.7.1.3-01", "DMPR-3.1.7.1.3-04")
def test_what_is_set_after_the_defaults_is_taken_over(harness: EngineHarness) -> None:
    template = harness.queue_template(**OTHER_THAN_DEFAULT)
    template.full_path, template.private_queue_number, template.create_time = "CN=x", 99, 1
    template.identifier = UUID(int=77)
    status, queue = harness.core.queues.create(template)
    assert status == MQ_OK
    assert queue is not None
    assert {name: getattr(queue, name) for name in OTHER_THAN_DEFAULT} == OTHER_THAN_DEFAULT
    assert (queue.pathname, queue.security) == (template.pathname, template.security)
    assert (queue.full_path, queue.create_time) == ("", harness.utc)  # not taken from the template
    assert queue.private_queue_number != 99
    assert queue.identifier != template.identifier


# -- Create Queue ---------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.3-02", "DMPR-3.1.1.2-06", "MQMQ-2.3.1.3-01/b")
@pytest.mark.parametrize("pathname", ["", "here", "here\\", "here\\private$\\", "a\\b\\c", "here\\a;b;c"])
def test_a_path_name_must_be_one(harness: EngineHarness, pathname: str) -> None:
    before = dict(harness.core.queue_manager.queues)
    template = harness.queue_template()
    template.pathname = pathname
    status, queue = harness.core.queues.create(template)
    assert queue is None
    assert isinstance(status, int)
    assert status >= 0xC00E0000
    assert harness.core.queue_manager.queues == before


@pytest.mark.requirement("DMPR-3.1.1.2-09")
@pytest.mark.requirement("DMPR-3.1.7.1.3-03", "DMPR-3.1.1.2-25")
def test_a_new_queue_has_a_journal(harness: EngineHarness) -> None:
    queue = harness.queue(journal_quota=77, journaling=True)
    journal = queue.journal
    assert journal is not None
    assert journal in harness.core.queue_manager.queues.values()
    assert (journal.quota, journal.journal, journal.owner_queue) == (77, None, queue)
    for body in (b"1", b"2"):
        harness.enqueue(queue, body)
        assert body_of(harness.core.messages.dequeue(harness.open(queue))) == body
        queue.journaling = False
    assert bodies(journal) == [b"1"]


@pytest.mark.requirement("DMPR-3.1.7.1.3-03", "DMPR-3.1.1.2-25", "DMPR-3.1.1.2-26")
def test_a_subqueue_has_no_journal(harness: EngineHarness) -> None:
    queue = harness.queue()
    assert queue.subqueues == {}
    subqueue = harness.queue("orders;later")
    assert subqueue.journal is None
    assert queue.subqueues == {"later": subqueue}


@pytest.mark.requirement("DMPR-3.1.7.1.3-05", "DMPR-3.1.1.2-23", "DMPR-3.1.1.2-27", "DMPR-3.1.1.2-33/a")
def test_a_new_queue_is_empty_and_unused(harness: EngineHarness) -> None:
    queue = harness.queue()
    assert queue.queue_manager is harness.core.queue_manager
    assert queue.active is False
    assert queue.total_bytes == 0
    assert (queue.subqueues, queue.incoming, queue.descriptors) == ({}, {}, {})
    assert list(queue.positions) == []


@pytest.mark.requirement("DMPR-3.1.1.2-01", "MQMQ-2.3.1.9-01", "MQMQ-2.3.1.10-01")
@pytest.mark.requirement("DMPR-3.1.7.1.3-06", "DMPR-3.1.1.2-03", "DMPR-3.1.1.2-04")
def test_times_of_a_queue(harness: EngineHarness) -> None:
    harness.advance(5_000)
    queue = harness.queue()
    created_at = harness.utc
    assert (queue.create_time, queue.modify_time) == (created_at, created_at)
    harness.advance(7_000)
    queue.label = "new"
    harness.core.queues.changed(queue)
    assert (queue.create_time, queue.modify_time) == (created_at, created_at + 7)
    harness.run()
    harness.restart()
    restored = harness.find_queue()
    assert (restored.create_time, restored.modify_time) == (created_at, created_at + 7)


@pytest.mark.requirement("DMPR-3.1.7.1.3-07", "DMPR-3.1.1.2-24")
@pytest.mark.parametrize(
    "name, expected",
    [
        ("private$\\q", QueueType.PRIVATE),
        ("PRIVATE$\\q", QueueType.PRIVATE),
        ("q", QueueType.PUBLIC),
    ],
)
def test_the_path_name_tells_the_type(integrated: EngineHarness, name: str, expected: QueueType) -> None:
    status, queue = integrated.core.queues.create(integrated.queue_template(name, public="\\" not in name))
    assert status == MQ_OK
    assert queue is not None
    assert queue.queue_type is expected


@pytest.mark.requirement("DMPR-3.1.7.1.3-07")
def test_the_path_name_of_a_system_queue_tells_its_type() -> None:
    assert queue_type(parse_path_name("here\\system$;DEADLETTER")) is QueueType.SYSTEM


@pytest.mark.requirement(
    "DMPR-3.1.7.1.3-08",
    "DMPR-3.1.1.2-07",
    "DMPR-3.1.1.2-18",
    "DMPR-3.1.1.2-19",
    "DMPR-3.1.1.2-20",
    "MQMQ-2.3.1.22-01/b",
)
def test_names_and_scope_of_a_new_queue(harness: EngineHarness) -> None:
    harness.core.queue_manager.qualified_computer_name = "here.example.com"
    queue = harness.queue()
    assert queue.qualified_pathname == "here.example.com\\private$\\orders"
    assert parse_path_name(queue.qualified_pathname).computer == "here.example.com"
    assert queue.scope is QueueScope.ENTERPRISE
    assert "Scope" not in ATTRIBUTES["Queue"]
    assert (queue.full_path, queue.directory_path) == ("", "")


@pytest.mark.requirement("MQMQ-2.2.18.1.5.1-02", "MQMQ-2.2.18.1.7.2-03")
@pytest.mark.requirement("DMPR-3.1.7.1.3-09", "DMPR-3.1.1.2-08")
def test_numbers_of_private_queues_are_unique(harness: EngineHarness) -> None:
    queues = [harness.queue(f"q{number}") for number in range(5)]
    harness.core.queues.delete(queues[1])
    queues[1] = harness.queue("again")
    harness.run()
    harness.restart()
    harness.queue("later")
    private = [
        queue.private_queue_number
        for queue in harness.core.queue_manager.queues.values()
        if queue.private_queue_number
    ]
    assert len(private) == len(set(private)) == 8  # six of ours and two system queues
    for queue in queues:
        name = f"PRIVATE={harness.core.queue_manager.identifier}\\{queue.private_queue_number:x}"
        opened = harness.open(name).queue
        assert opened is not None
        assert opened.pathname == queue.pathname


@pytest.mark.requirement("DMPR-3.1.7.1.3-01")
@pytest.mark.requirement("DMPR-3.1.7.1.3-10", "DMPR-3.1.1.2-18", "DMPR-3.1.1.2-19")
def test_a_public_queue_is_published(integrated: EngineHarness, recorder: DirectoryRecorder) -> None:
    queue = integrated.queue("orders", public=True, label="Orders")
    assert recorder.operations() == ["create_directory_object", "read_directory"]
    published = recorder.log[0][1]
    assert published is queue
    assert recorder.log[1][1:] == (
        "Queue",
        [("Identifier", "EQUALS", queue.identifier)],
        ["FullPath", "DirectoryPath"],
    )
    stored = recorder.directory.read_directory(
        "Queue", [("Identifier", "EQUALS", queue.identifier)], None
    ).object
    assert isinstance(stored, Queue)
    path = "CN=orders,CN=msmq,CN=here,CN=Computers"
    assert (queue.full_path, queue.directory_path) == (path, f"LDAP://{path}")
    assert (stored.full_path, stored.directory_path) == (path, f"LDAP://{path}")
    assert stored.label == "Orders"


@pytest.mark.requirement("DMPR-3.1.7.1.3-10")
@pytest.mark.parametrize("readable", [True, False])
def test_a_directory_may_choose_the_identifier(
    integrated: EngineHarness, recorder: DirectoryRecorder, monkeypatch: pytest.MonkeyPatch, readable: bool
) -> None:
    given = UUID(int=0x77)

    def create(published: Queue, attributes: Any = None) -> CreateResult:
        stored = Queue(given, pathname=published.pathname, queue_type=QueueType.PUBLIC)
        return EmbeddedDirectory.create_directory_object(recorder.directory, stored, attributes)

    monkeypatch.setattr(recorder.directory, "create_directory_object", create)
    if not readable:
        failed = ReadResult(DirectoryOperationResult.OBJECT_NOT_FOUND)
        monkeypatch.setattr(recorder.directory, "read_directory", lambda *_: failed)
    queue = integrated.queue("orders", public=True)
    assert queue.identifier == given
    assert queue.full_path == ("CN=orders,CN=msmq,CN=here,CN=Computers" if readable else "")
    assert integrated.open(f"PUBLIC={given}").queue is queue


@pytest.mark.requirement("DMPR-3.1.7.1.3-11")
def test_a_public_queue_that_the_directory_does_not_take(
    integrated: EngineHarness, recorder: DirectoryRecorder
) -> None:
    recorder.status = OFFLINE
    assert integrated.core.queues.create(integrated.queue_template("orders", public=True)) == (OFFLINE, None)
    assert integrated.core.queues.lookup.path("here\\orders") is None
    assert not [
        queue for queue in integrated.core.queue_manager.queues.values() if queue.pathname == "here\\orders"
    ]


@pytest.mark.requirement("DMPR-3.1.7.1.3-12", "DMPR-3.1.7.1.3-01")
@pytest.mark.parametrize("name, skip", [("orders", True), ("private$\\orders", False), ("private$\\o", True)])
def test_no_directory_is_asked(
    integrated: EngineHarness, recorder: DirectoryRecorder, name: str, skip: bool
) -> None:
    status, queue = integrated.core.queues.create(
        integrated.queue_template(name, public="\\" not in name), skip_directory=skip
    )
    assert (status, queue is not None) == (MQ_OK, True)
    assert recorder.log == []


@pytest.mark.requirement("DMPR-3.1.7.1.3-13", "DMPR-3.1.1.1-41")
def test_a_new_queue_is_in_the_collection(harness: EngineHarness) -> None:
    status, queue = harness.core.queues.create(harness.queue_template())
    assert status == MQ_OK
    assert queue is not None
    assert harness.core.queue_manager.queues[queue.number] is queue


@pytest.mark.parametrize("again", ["private$\\orders", "PRIVATE$\\ORDERS", "private$\\orders;later"])
def test_a_queue_that_is_there_already(harness: EngineHarness, again: str) -> None:
    harness.queue()
    harness.queue("orders;later")
    assert harness.core.queues.create(harness.queue_template(again)) == (HResult.MQ_ERROR_QUEUE_EXISTS, None)


def test_a_subqueue_of_no_queue(harness: EngineHarness) -> None:
    template = harness.queue_template("none;later")
    assert harness.core.queues.create(template) == (HResult.MQ_ERROR_QUEUE_NOT_FOUND, None)


# -- Delete Queue ---------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.7.1.4-02")
def test_the_messages_of_a_deleted_queue_go_whatever_their_state(harness: EngineHarness) -> None:
    queue = harness.queue()
    positions = [
        harness.enqueue(queue, b"%d" % number, delivery_guarantee=RECOVERABLE) for number in range(4)
    ]
    opened = harness.open(queue)
    harness.core.messages.dequeue_begin(opened)
    harness.core.messages.dequeue(opened, transaction=harness.begin())
    positions[2].state = PositionState.PURGE_PENDING
    positions.insert(0, harness.enqueue(queue, b"4", harness.begin()))  # transactional ones come first
    events = harness.record_events()
    assert harness.core.queues.delete(queue) is DirectoryOperationResult.SUCCESS
    assert events.deleted() == [(position, QUEUE_DELETED) for position in positions]
    assert all(position.state is PositionState.DELETED for position in positions)
    harness.run()
    assert harness.rows(Table.MESSAGE) == harness.rows(Table.PACKET) == {}


@pytest.mark.requirement("DMPR-3.1.7.1.4-03")
def test_descriptors_of_a_deleted_queue_have_none(harness: EngineHarness) -> None:
    queue = harness.queue()
    receives, peeks = harness.open(queue), harness.open(queue, PEEK)
    waiting = harness.core.messages.dequeue(receives)
    assert waiting.status == PENDING
    harness.core.queues.delete(queue)
    assert (receives.queue, peeks.queue) == (None, None)
    assert completed_reads(harness.run()) == [(waiting.request, HResult.MQ_ERROR_QUEUE_DELETED, None)]
    assert harness.core.messages.peek(peeks).status == HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE
    assert harness.core.send(receives, Message()) == HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE
    harness.core.queues.close(receives)


@pytest.mark.requirement("DMPR-3.1.7.1.4-04", "DMPR-3.1.7.1.4-06")
def test_a_queue_is_gone_before_the_directory_is_asked(
    integrated: EngineHarness, recorder: DirectoryRecorder
) -> None:
    queue = integrated.queue("orders", public=True)
    still_listed: list[bool] = []
    delete = recorder.directory.delete_directory_object

    def check_and_delete(deleted: Queue) -> DirectoryOperationResult:
        still_listed.append(deleted in integrated.core.queue_manager.queues.values())
        return delete(deleted)

    recorder.directory.delete_directory_object = check_and_delete  # type: ignore[method-assign]
    assert integrated.core.queues.delete(queue) is DirectoryOperationResult.SUCCESS
    assert still_listed == [False]


@pytest.mark.requirement("DMPR-3.1.7.1.4-05", "DMPR-3.1.7.1.4-01")
@pytest.mark.parametrize(
    "name, skip, events",
    [
        ("orders", False, ["delete_directory_object"]),
        ("orders", True, []),
        ("private$\\orders", False, []),
    ],
)
def test_a_public_queue_is_deleted_in_the_directory(
    integrated: EngineHarness, recorder: DirectoryRecorder, name: str, skip: bool, events: list[str]
) -> None:
    queue = integrated.queue(name, public="\\" not in name)
    recorder.log.clear()
    integrated.core.queues.delete(queue, skip_directory=skip)
    assert recorder.log == [(event, queue) for event in events]


@pytest.mark.requirement("DMPR-3.1.7.1.4-06", "DMPR-3.1.7.1.4-01")
def test_the_answer_of_the_directory_is_reported(
    integrated: EngineHarness, recorder: DirectoryRecorder
) -> None:
    queue = integrated.queue("orders", public=True)
    recorder.status = OFFLINE
    assert integrated.core.queues.delete(queue) is OFFLINE
    assert integrated.core.queues.lookup.path("here\\orders") is None


def test_journal_and_subqueues_go_with_their_queue(harness: EngineHarness) -> None:
    queue = harness.queue(journaling=True)
    subqueue = harness.queue("orders;later")
    assert queue.journal is not None
    harness.enqueue(subqueue, b"1", delivery_guarantee=RECOVERABLE)
    harness.enqueue(queue.journal, b"2", delivery_guarantee=RECOVERABLE)
    harness.core.queues.delete(queue)
    harness.run()
    remaining = harness.core.queue_manager.queues.values()
    assert not {queue, subqueue, queue.journal} & set(remaining)
    harness.restart()
    assert harness.core.queues.lookup.path("here\\private$\\orders") is None
    assert harness.rows(Table.MESSAGE) == {}


def test_a_subqueue_can_be_deleted_alone(harness: EngineHarness) -> None:
    queue = harness.queue()
    harness.core.queues.delete(harness.queue("orders;later"))
    assert queue.subqueues == {}
    assert harness.find_queue() is queue
