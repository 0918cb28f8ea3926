"""What survives a restart and what does not: [MS-MQDMPR] 3.1.1."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from msmqwire.names import parse_format_name
from msmqwire.qm.directory.embedded import EmbeddedDirectory
from msmqwire.qm.model import access
from msmqwire.qm.model.elements import OutgoingQueue, Queue, QueueManager
from msmqwire.qm.model.enumerations import (
    DirectoryServerType,
    OperatingSystemType,
    OutgoingQueueState,
    PositionState,
    QueueManagerState,
    QueuePrivacy,
    QueueType,
)
from msmqwire.qm.model.tables import Table
from msmqwire.qm.rules.directory_events import DirectoryEvents
from tests.support.engine_harness import OWN_ID, RECOVERABLE, SEND, EngineHarness
from tests.support.qm.queue_contents import bodies, body_of, states

DESCRIPTOR = access.default_security(access.sid_bytes("S-1-5-21-1-2-3-1001"))
ONE, TWO = UUID(int=0x51), UUID(int=0x52)

DIRECTORY_ATTRIBUTES: list[tuple[str, str, Any]] = [
    ("02", "queue_manager_version", "Windows 9.9 (Build 1, x86) - MSMQ 5.0 (Build 2)"),
    ("05", "operating_system_version", "6.1"),
    ("06", "operating_system_type", OperatingSystemType.WIN_SERVER),
    ("07", "qualified_computer_name", "here.example.com"),
    ("08", "create_time", 1_600_000_000),
    ("09", "modify_time", 1_600_000_001),
    ("10", "queue_manager_quota", 12_345_678),
    ("11", "journal_quota", 4_321),
    ("12", "foreign_system", True),
    ("13", "full_path", "CN=msmq,CN=here"),
    ("14", "site_identifier_list", [ONE, TWO]),
    ("15", "connected_network_identifier_list", [TWO]),
    ("16", "out_routing_server_identifier_list", [ONE]),
    ("17", "in_routing_server_identifier_list", [TWO, ONE]),
    ("18", "directory_server", True),
    ("19", "remote_access_server", True),
    ("20", "routing_server", True),
    ("21", "supporting_server", True),
    ("22", "directory_server_type", DirectoryServerType.PRIMARY_SITE_CONTROLLER),
    ("23", "public_encryption_key_list", b"\x00\x01keys"),
    ("24", "public_signing_key_list", b"\xff\x01keys"),
    ("25", "security", DESCRIPTOR),
    ("26", "clustered", True),
]
PERSISTENT_ATTRIBUTES: list[tuple[str, str, Any]] = [
    ("28", "last_domain", TWO),
    ("29", "directory_server_list", ["DC1", "DC2"]),
    ("31", "srmp_http_support", True),
    ("32", "srmp_pgm_support", True),
    ("36", "hardened_security", True),
    ("48", "initialization_retry_timer_duration", 240),
]


ONLY_STORED = ("23", "24", "28")
"""Rows that say more than that a value survives: states.tsv."""


def parameters(cases: list[tuple[str, str, Any]], *also: str) -> list[Any]:
    return [
        pytest.param(name, value, marks=pytest.mark.requirement(f"DMPR-3.1.1.1-{row}", *also), id=name)
        for row, name, value in cases
        if row not in ONLY_STORED
    ] + [pytest.param(name, value, id=name) for row, name, value in cases if row in ONLY_STORED]


@pytest.fixture
def harness() -> EngineHarness:
    return EngineHarness(quota=None)


# -- the queue manager ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "attribute, value",
    parameters(DIRECTORY_ATTRIBUTES, "DMPR-3.1.1-03", "DMPR-3.1.1-12")
    + parameters(PERSISTENT_ATTRIBUTES, "DMPR-3.1.1-02", "DMPR-3.1.1-12"),
)
@pytest.mark.parametrize("orderly", [True, False])
def test_an_attribute_of_the_queue_manager_survives(
    harness: EngineHarness, attribute: str, value: object, orderly: bool
) -> None:
    setattr(harness.core.queue_manager, attribute, value)
    if orderly:
        harness.stop()
    else:
        harness.core.changed()
        harness.run()
    harness.restart()
    assert getattr(harness.core.queue_manager, attribute) == value


@pytest.mark.parametrize(
    "attribute, value",
    # the directory sets FullPath and the times
    parameters(
        [case for case in DIRECTORY_ATTRIBUTES if case[0] not in ("08", "09", "13")],
        "DMPR-3.1.1-03",
        "DMPR-3.1.3-15",
    ),
)
def test_an_attribute_of_the_queue_manager_is_published(attribute: str, value: object) -> None:
    directory = EmbeddedDirectory()
    manager = QueueManager(OWN_ID, computer_name="here")
    setattr(manager, attribute, value)
    directory.create_directory_object(manager, None)
    harness = EngineHarness(directory=directory, quota=None)
    assert getattr(harness.core.queue_manager, attribute) == value
    published = harness.core.directory.read_directory(
        "QueueManager", [("Identifier", "EQUALS", OWN_ID)]
    ).object
    assert published is not None
    assert getattr(published, attribute) == value


@pytest.mark.requirement("DMPR-3.1.1.1-08", "DMPR-3.1.1.1-09", "DMPR-3.1.1.1-13")
@pytest.mark.requirement("MQMQ-2.3.2.16-01", "MQMQ-2.3.2.17-01")
def test_path_and_times_of_the_manager_come_from_the_directory() -> None:
    times = [1_600_000_000]
    directory = EmbeddedDirectory(utc=lambda: times[-1])
    described = QueueManager(OWN_ID, computer_name="here", full_path="CN=mine")
    directory.create_directory_object(described, None)
    created = directory.read_directory("QueueManager").object
    assert isinstance(created, QueueManager)
    assert (created.create_time, created.modify_time) == (1_600_000_000, 1_600_000_000)
    times.append(1_600_000_005)
    directory.write_directory(described)
    manager = EngineHarness(directory=directory).core.queue_manager
    assert manager.full_path == "CN=msmq,CN=here,CN=Computers"
    assert (manager.create_time, manager.modify_time) == (1_600_000_000, 1_600_000_005)


@pytest.mark.requirement("DMPR-3.1.1.1-30", "DMPR-3.1.1-12")
def test_the_mode_stays_over_a_restart() -> None:
    for directory in (None, EmbeddedDirectory()):
        harness = EngineHarness(directory=directory)
        for _ in range(2):
            assert harness.core.queue_manager.directory_integrated is (directory is not None)
            harness.restart()


@pytest.mark.requirement(
    "DMPR-3.1.1-04", "DMPR-3.1.1-13", "DMPR-3.1.1.1-34", "DMPR-3.1.1.1-35", "DMPR-3.1.1.1-37",
    "DMPR-3.1.1.2-33/b",
)  # fmt: skip
def test_what_is_volatile_begins_anew(harness: EngineHarness) -> None:
    queue = harness.queue()
    manager, core = harness.core.queue_manager, harness.core
    core.queues.begin_flow_control()
    core.queues.take_offline()
    manager.directory_offline, manager.machine_domain_id = True, ONE
    opened = harness.open(queue)
    core.queues.open_cursor(opened)
    core.messages.dequeue(opened)
    core.changed()
    harness.stop()
    assert manager.state is QueueManagerState.STOPPED
    harness.restart()
    manager, queue = harness.core.queue_manager, harness.find_queue()
    assert manager.throttled is False
    assert manager.connection_active is True
    assert manager.directory_offline is False
    assert manager.machine_domain_id != ONE
    assert manager.state is QueueManagerState.READY
    assert all(not each_queue.descriptors for each_queue in manager.queues.values())
    assert queue.active is False
    assert harness.advance(10**9) == []


VOLATILE = {
    "total_bytes", "queue_manager", "journal", "owner_queue", "subqueues", "incoming", "descriptors",
    "opened_for", "positions", "next_hops", "transfer", "connection_history",
}  # fmt: skip


@pytest.mark.requirement("DMPR-3.1.1-04")
def test_what_is_volatile_is_not_written(harness: EngineHarness, queue: Queue) -> None:
    """Nor what is found again when all queues are read: a stored number would be counted twice."""
    outgoing = harness.outgoing()
    outgoing.next_hops = ["IP=10.0.0.9"]
    harness.core.queues.changed(outgoing)
    harness.queue("orders;late")
    harness.enqueue(queue, b"1", delivery_guarantee=RECOVERABLE)
    harness.enqueue(queue, b"22")
    harness.core.queues.changed(queue)
    harness.run()
    rows = [json.loads(row) for row in harness.rows(Table.QUEUE).values()]
    assert {name for row in rows for name in row} >= {"label", "quota", "destination", "state"}
    assert [row.keys() & VOLATILE for row in rows] == [set()] * len(rows)
    harness.restart()
    (kept,) = harness.find_queue().positions
    assert kept.queue.total_bytes == kept.size > 0
    assert {*kept.queue.subqueues} == {"late"}


@pytest.mark.requirement("DMPR-3.1.1.1-33/b")
def test_without_a_directory_it_is_never_away(harness: EngineHarness) -> None:
    manager = harness.core.queue_manager
    assert manager.directory_integrated is False
    before = QueueManager(ONE, directory_integrated=True, directory_offline=True)
    DirectoryEvents(before, None, harness.core.context.timers)
    assert (before.directory_integrated, before.directory_offline) == (False, False)
    harness.core.queues.create(harness.queue_template("orders", public=True))
    harness.core.directory.check_directory_online()
    assert manager.directory_offline is False


# -- queues ---------------------------------------------------------------------------------------------

QUEUE_ATTRIBUTES: list[tuple[str, str, Any]] = [
    ("02", "label", "Orders € 7"),
    ("03", "create_time", 1_600_000_000),
    ("05", "type", ONE),
    ("07", "qualified_pathname", "here.example\\private$\\orders"),
    ("09", "journaling", True),
    ("10", "quota", 77),
    ("11", "journal_quota", 78),
    ("12", "authentication", True),
    ("13", "privacy_level", QueuePrivacy.BODY),
    ("14", "transactional", True),
    ("", "multicast_address", "234.1.1.1:8001"),
    ("16", "security", DESCRIPTOR),
    ("17", "base_priority", -5),
    ("18", "full_path", "CN=orders"),
    ("19", "directory_path", "LDAP://CN=orders"),
]


def queue_parameters(*left_out: str) -> list[Any]:
    return [
        pytest.param(
            name,
            value,
            marks=pytest.mark.requirement("DMPR-3.1.1.2-01", *([f"DMPR-3.1.1.2-{row}"] if row else [])),
            id=name,
        )
        for row, name, value in QUEUE_ATTRIBUTES
        if row not in left_out
    ]


@pytest.mark.requirement("DMPR-3.1.1-12", "DMPR-3.1.1-02")
@pytest.mark.parametrize("attribute, value", queue_parameters())
def test_an_attribute_of_a_private_queue_survives(
    harness: EngineHarness, attribute: str, value: object
) -> None:
    queue = harness.queue()
    setattr(queue, attribute, value)
    harness.core.queues.changed(queue)
    harness.run()
    harness.restart()
    assert getattr(harness.find_queue(), attribute) == value


@pytest.mark.requirement("DMPR-3.1.1-03", "DMPR-3.1.1-12")
@pytest.mark.parametrize("attribute, value", queue_parameters("03", "07", "18", "19"))
def test_public_queue_attributes_are_published_and_survive(attribute: str, value: object) -> None:
    harness = EngineHarness(directory=EmbeddedDirectory())
    identifier = harness.queue("orders", public=True, **{attribute: value}).identifier
    published = harness.core.directory.read_directory("Queue", [("Identifier", "EQUALS", identifier)]).object
    assert published is not None
    assert getattr(published, attribute) == value
    harness.restart()
    assert getattr(harness.find_queue("orders", public=True), attribute) == value
    assert harness.find_queue("orders", public=True).identifier == identifier


@pytest.mark.requirement("DMPR-3.1.1.2-01", "DMPR-3.1.1.2-03", "DMPR-3.1.1.2-07")
def test_times_and_full_name_of_a_public_queue_are_published() -> None:
    directory = EmbeddedDirectory(utc=lambda: harness.utc)
    harness = EngineHarness(directory=directory)
    harness.core.queue_manager.qualified_computer_name = "here.example"
    harness.advance(5_000)
    queue = harness.queue("orders", public=True)
    published = harness.core.directory.read_by_identifier("Queue", queue.identifier)
    assert isinstance(published, Queue)
    assert (published.create_time, published.modify_time) == (harness.utc, harness.utc)
    assert published.qualified_pathname == "here.example\\orders"
    private = harness.queue("own")
    assert harness.core.directory.read_by_identifier("Queue", private.identifier) is None


@pytest.mark.requirement("DMPR-3.1.1.2-01")
@pytest.mark.requirement("DMPR-3.1.1.2-24", "DMPR-3.1.1.2-08", "DMPR-3.1.1.2-06", "DMPR-3.1.1-12")
def test_types_names_and_numbers_of_queues_survive() -> None:
    harness = EngineHarness(directory=EmbeddedDirectory())
    harness.queue()
    harness.queue("orders", public=True)
    harness.queue("orders;later")

    def queue_properties() -> dict[int, tuple[object, ...]]:
        return {
            number: (queue.queue_type, queue.pathname, queue.private_queue_number)
            for number, queue in harness.core.queue_manager.queues.items()
        }

    before = queue_properties()
    assert {kind for kind, *_ in before.values()} == {QueueType.PRIVATE, QueueType.PUBLIC, QueueType.SYSTEM}
    harness.restart()
    assert queue_properties() == before


@pytest.mark.requirement("DMPR-3.1.1.1-41", "DMPR-3.1.1.2-25", "DMPR-3.1.1.2-26", "DMPR-3.1.1.2-23")
def test_journals_and_subqueues_keep_their_queue_after_a_restart(harness: EngineHarness) -> None:
    harness.queue(journaling=True)
    harness.queue("orders;Later")
    harness.outgoing()
    harness.run()
    before = set(harness.core.queue_manager.queues)
    harness.restart()
    queue = harness.find_queue()
    assert set(harness.core.queue_manager.queues) == before
    assert all(
        each_queue.queue_manager is harness.core.queue_manager
        for each_queue in harness.core.queue_manager.queues.values()
    )
    assert queue.journal is not None
    assert queue.journal.owner_queue is queue
    (later,) = queue.subqueues.values()
    assert later.owner_queue is queue
    assert (later.journal, later.pathname) == (None, "here\\private$\\orders;Later")
    harness.enqueue(queue, b"1")
    assert body_of(harness.core.messages.dequeue(harness.open(queue))) == b"1"
    assert bodies(queue.journal) == [b"1"]


@pytest.mark.requirement("DMPR-3.1.1.3-01", "DMPR-3.1.1.3-03", "DMPR-3.1.1-12")
@pytest.mark.parametrize(
    "name",
    [
        "DIRECT=OS:there\\private$\\orders",
        "DIRECT=TCP:10.1.2.3\\q",
        f"PRIVATE={ONE}\\5",
        "DIRECT=HTTP://there/msmq/q",
        "MULTICAST=234.1.1.1:8001",
    ],
)
def test_an_outgoing_queue_survives(harness: EngineHarness, name: str) -> None:
    number = harness.outgoing(name).number
    harness.run()
    harness.restart()
    queue = harness.core.queue_manager.queues[number]
    assert isinstance(queue, OutgoingQueue)
    assert queue.destination == parse_format_name(name)
    assert queue.multicast is name.startswith("MULTICAST")
    assert harness.open(name, SEND).queue is queue


@pytest.mark.requirement("DMPR-3.1.1-04", "DMPR-3.1.1.3-02", "DMPR-3.1.1.4-01/b")
@pytest.mark.parametrize("state", [OutgoingQueueState.CONNECTED, OutgoingQueueState.WAITING])
def test_a_connection_does_not_survive(harness: EngineHarness, state: OutgoingQueueState) -> None:
    queue = harness.outgoing()
    queue.state, queue.next_hops = state, ["IP=10.0.0.9"]
    queue.transfer.eod_no_read_count, queue.transfer.eod_last_ack_time = 3, 1_600_000_000
    harness.core.queues.changed(queue)
    harness.run()
    harness.restart()
    restored = harness.outgoing()
    assert restored.state is OutgoingQueueState.INACTIVE
    assert restored.next_hops == []
    assert (restored.transfer.eod_no_read_count, restored.transfer.eod_last_ack_time) == (0, 0)
    assert len(restored.connection_history) == 0


# -- messages -------------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.1-12", "DMPR-3.1.1-13", "DMPR-3.1.1.11-06", "DMPR-3.1.1.12-17")
def test_recoverable_messages_survive_in_their_places(harness: EngineHarness) -> None:
    queue = harness.queue()
    for number, priority in enumerate((3, 5, 3, 7)):
        harness.enqueue(queue, b"r%d" % number, priority=priority, delivery_guarantee=RECOVERABLE)
        harness.enqueue(queue, b"e%d" % number, priority=priority)
    total = sum(position.size for position in queue.positions if position.recoverable)
    lookup_identifiers = [position.lookup_identifier for position in queue.positions if position.recoverable]
    harness.run()
    harness.restart()
    queue = harness.find_queue()
    assert bodies(queue) == [b"r3", b"r1", b"r0", b"r2"]
    assert states(queue) == [PositionState.AVAILABLE] * 4
    assert [position.lookup_identifier for position in queue.positions] == lookup_identifiers
    assert queue.total_bytes == harness.core.queue_manager.total_bytes == total


def test_messages_keep_on_surviving(harness: EngineHarness) -> None:
    harness.queue()
    for number in range(4):
        harness.enqueue(harness.find_queue(), b"%d" % number, delivery_guarantee=RECOVERABLE)
        harness.run()
        harness.restart()
    assert bodies(harness.find_queue()) == [b"0", b"1", b"2", b"3"]
    opened = harness.open(harness.find_queue())
    assert body_of(harness.core.messages.dequeue(opened)) == b"0"
    harness.run()
    harness.restart()
    assert bodies(harness.find_queue()) == [b"1", b"2", b"3"]


def test_what_was_not_committed_is_not_there(harness: EngineHarness) -> None:
    queue = harness.queue()
    harness.enqueue(queue, b"1", delivery_guarantee=RECOVERABLE)
    harness.restart()
    assert bodies(harness.find_queue()) == []


@pytest.mark.requirement("DMPR-3.1.1.1-49", "DMPR-3.1.7.1.9-05")
def test_numbers_go_on_when_only_express_messages_came(harness: EngineHarness) -> None:
    queue = harness.queue()
    last = [harness.enqueue(queue).lookup_identifier for _ in range(5_000)][-1]
    harness.run()
    harness.restart()
    harness.restart()
    assert harness.enqueue(harness.find_queue()).lookup_identifier > last


@pytest.mark.requirement("DMPR-3.1.1-12")
@pytest.mark.requirement("DMPR-3.1.1.1-49")
def test_the_count_survives_exactly_when_it_stops_in_order(harness: EngineHarness) -> None:
    queue = harness.queue()
    harness.core.queue_manager.sequential_id = 1 << 40
    for _ in range(10):
        harness.enqueue(queue)
    last = harness.core.queue_manager.sequential_id
    assert last == (1 << 40) + 10
    for _ in range(3):
        harness.stop()
        harness.restart()
        assert harness.core.queue_manager.sequential_id == last


def test_queue_numbers_are_never_used_again(harness: EngineHarness) -> None:
    queue = harness.queue()
    assert isinstance(queue, Queue)
    before = set(harness.core.queue_manager.queues)
    harness.restart()
    assert harness.queue("new").number not in before
